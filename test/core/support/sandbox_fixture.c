/* sandbox_fixture.c - see the header. */
#include "sandbox_fixture.h"

#include <stdio.h>
#include <unistd.h>

/* A test that waits for what never comes must fail, not hang. */
enum { TEST_SECONDS = 60 };

void fixture_options(fixture *f, const char *options) {
  sbx_err err;
  sbx_sandbox_free(f->sb);
  f->sb = NULL;
  sbx_err_clear(&err);
  int rc = sbx__sandbox_new_with(&f->sb, f->loop, &fake_provider, sbx_slice_str(options), &err);
  assert_string_equal(err.message, "");
  assert_int_equal(rc, SBX_OK);
}

int fixture_setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  alarm(TEST_SECONDS);
  fake_reset();
  loop_open(&f->uv, &f->loop);
  fixture_options(f, "{}");
  *state = f;
  return 0;
}

int fixture_teardown(void **state) {
  fixture *f = *state;
  sbx_sandbox_free(f->sb);
  loop_end(&f->uv, f->loop);
  assert_int_equal(fake.live_ops, 0);
  assert_int_equal(fake.live_sessions, 0);
  assert_int_equal(fake.live_configs, 0);
  free(f);
  return 0;
}

/* ---- callbacks ---- */

static void note(seen *s, const sbx_err *err) {
  s->times++;
  if (err != NULL) {
    s->code = err->code;
    s->err = *err;
  }
  sbx_sandbox_free(s->free_me);
  s->free_me = NULL;
}

static void on_done(void *arg, const sbx_err *err) {
  note(arg, err);
}

static void keep_text(seen *s, sbx_slice text) {
  snprintf(s->text, sizeof s->text, "%.*s", (int)text.len, text.len > 0 ? text.ptr : "");
}

static void on_exec(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  seen *s = arg;
  assert_true((err == NULL) == (result != NULL));
  if (result != NULL) {
    s->result = *result;
    keep_text(s, result->output.bytes);
  }
  note(s, err);
}

static void on_output(void *arg, sbx_stream stream, sbx_slice bytes) {
  seen *s = arg;
  (void)stream;
  assert_int_equal(s->times, 0);
  size_t at = strlen(s->streamed);
  snprintf(s->streamed + at, sizeof s->streamed - at, "%.*s", (int)bytes.len, bytes.ptr);
  if (s->cancel_on_output)
    sbx_call_cancel(s->call);
  if (s->free_on_output)
    sbx_sandbox_free(s->free_me);
  if (s->free_on_output)
    s->free_me = NULL;
}

static void on_read(void *arg, const sbx_err *err, const sbx_slice *bytes) {
  seen *s = arg;
  s->missing = err == NULL && bytes == NULL;
  if (bytes != NULL)
    keep_text(s, *bytes);
  note(s, err);
}

static void on_listed(void *arg, const sbx_err *err, const sbx_entry *entries, size_t count) {
  seen *s = arg;
  s->count = count;
  if (count > 0)
    keep_text(s, sbx_slice_str(entries[0].path));
  note(s, err);
}

/* ---- calls; a refusal is noted as if the callback had brought it ---- */

static void note_refusal(seen *s, int rc, const sbx_err *err) {
  assert_int_equal(s->times, 0);
  if (rc != SBX_OK) {
    assert_int_equal(err->code, rc);
    note(s, err);
  }
}

void begin_start(fixture *f, seen *s) {
  sbx_err err;
  note_refusal(s, sbx_sandbox_start(f->sb, on_done, s, &s->call, &err), &err);
}

void begin_close_within(fixture *f, seen *s, uint64_t grace_ms) {
  sbx_err err;
  note_refusal(s, sbx_sandbox_close(f->sb, grace_ms, on_done, s, &err), &err);
}

void begin_close(fixture *f, seen *s) {
  begin_close_within(f, s, SBX_CLOSE_GRACE_DEFAULT_MS);
}

void begin_spec(fixture *f, seen *s, const sbx_exec_spec *spec) {
  sbx_err err;
  note_refusal(s, sbx_sandbox_exec(f->sb, spec, on_output, on_exec, s, &s->call, &err), &err);
}

void begin_exec(fixture *f, seen *s, const char *command, uint64_t timeout_ms) {
  sbx_exec_spec spec = {.text = sbx_slice_str(command), .timeout_ms = timeout_ms};
  begin_spec(f, s, &spec);
}

void begin_write_of(fixture *f, seen *s, sbx_slice bytes) {
  char path[] = "dir/file";
  sbx_err err;
  note_refusal(s, sbx_sandbox_write(f->sb, sbx_slice_str(path), bytes, on_done, s, &s->call, &err),
               &err);
  memset(path, '#', sizeof path - 1);
}

void begin_write(fixture *f, seen *s) {
  char bytes[] = "bytes";
  begin_write_of(f, s, sbx_slice_str(bytes));
  memset(bytes, '#', sizeof bytes - 1);
}

void begin_read(fixture *f, seen *s) {
  sbx_err err;
  note_refusal(s, sbx_sandbox_read(f->sb, sbx_slice_str("file"), 0, on_read, s, &s->call, &err),
               &err);
}

void begin_list(fixture *f, seen *s) {
  sbx_err err;
  note_refusal(s, sbx_sandbox_list(f->sb, 10, on_listed, s, &s->call, &err), &err);
}

void begin_control(fixture *f, seen *s, sbx_control control, uint64_t seconds) {
  sbx_err err;
  note_refusal(s, sbx_sandbox_control(f->sb, control, seconds, on_done, s, &s->call, &err), &err);
}

void free_sandbox(fixture *f) {
  sbx_sandbox_free(f->sb);
  f->sb = NULL;
}

/* ---- waiting ---- */

void settle(fixture *f) {
  for (int i = 0; i < 16; i++)
    uv_run(&f->uv, UV_RUN_NOWAIT);
}

void run_exec(fixture *f, seen *s, const char *command, uint64_t timeout_ms) {
  begin_exec(f, s, command, timeout_ms);
  settle(f);
}

void await(fixture *f, const seen *s) {
  while (s->times == 0)
    uv_run(&f->uv, UV_RUN_ONCE);
}

void await_count(fixture *f, fake_verb verb, int count) {
  while (fake.count[verb] < count)
    uv_run(&f->uv, UV_RUN_ONCE);
}

void open_now(fixture *f) {
  seen s = {0};
  begin_start(f, &s);
  await(f, &s);
  assert_seen(&s, SBX_OK);
}

/* ---- checks ---- */

void assert_seen(const seen *s, int code) {
  if (s->code != code)
    print_message("%s\n", s->err.message);
  assert_int_equal(s->times, 1);
  assert_string_equal(sbx_err_name(s->code), sbx_err_name(code));
}

void assert_not_seen(const seen *s) {
  assert_int_equal(s->times, 0);
}

void assert_log(const char *log) {
  assert_string_equal(fake.log, log);
}

void assert_says(const seen *s, const char *part) {
  if (strstr(s->err.message, part) == NULL)
    fail_msg("\"%s\" not in \"%s\"", part, s->err.message);
}
