/* Lets the n-th allocation of each of the E2B provider's operations fail, for every n, against the
 * emulator: each call reports once, with success or SBX_ENOMEM, and leaves no memory behind. */
#include "sandbox/object.h"

#include "core/err.h"
#include "core/transfer.h"
#include "support/loop_fixture.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef struct emulator {
  pid_t pid;
  int keep; /* it ends when this is closed */
  char api_url[64], sandbox_url[64], api_key[64];
} emulator;

typedef struct fixture {
  emulator e2b;
  uv_loop_t uv;
  sbx_loop *loop;
  sbx_sandbox *sb;
  int reported;
  int code;
} fixture;

/* ---- the emulator --------------------------------------------------------------------------- */

static void read_text(const sbx_json *root, const char *name, char out[64]) {
  sbx_slice value;
  assert_true(sbx_json_string(sbx_json_get(root, name), &value) && value.len < 64);
  memcpy(out, value.ptr, value.len);
  out[value.len] = '\0';
}

static void read_addresses(emulator *e, int fd) {
  char line[512];
  size_t len = 0;
  while (len + 1 < sizeof line && read(fd, line + len, 1) == 1 && line[len] != '\n')
    len++;
  sbx_json_doc *doc = NULL;
  assert_int_equal(sbx_json_parse(&doc, sbx_slice_of(line, len), NULL), SBX_OK);
  read_text(sbx_json_root(doc), "apiUrl", e->api_url);
  read_text(sbx_json_root(doc), "sandboxUrl", e->sandbox_url);
  read_text(sbx_json_root(doc), "apiKey", e->api_key);
  sbx_json_free(doc, false);
}

static void start_emulator(emulator *e) {
  static char program[] = "test/emulators/e2b/main.js", flag[] = "--until-stdin-closes";
  static char node[] = "node", limit[] = "--limit=10000";
  char *argv[] = {node, program, flag, limit, NULL};
  int in[2], out[2];
  posix_spawn_file_actions_t actions;
  assert_int_equal(pipe(in) | pipe(out), 0);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_addclose(&actions, in[1]);
  posix_spawn_file_actions_addclose(&actions, out[0]);
  assert_int_equal(posix_spawnp(&e->pid, node, &actions, NULL, argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  e->keep = in[1];
  read_addresses(e, out[0]);
  close(out[0]);
}

/* ---- one loop and one sandbox --------------------------------------------------------------- */

static void report(void *arg, const sbx_err *err) {
  fixture *f = arg;
  f->reported++;
  f->code = err != NULL ? err->code : SBX_OK;
  if (err != NULL)
    assert_true(err->message[0] != '\0');
}

static void on_exec(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  assert_true((err == NULL) == (result != NULL));
  report(arg, err);
}

static void on_read(void *arg, const sbx_err *err, const sbx_slice *bytes) {
  (void)bytes;
  report(arg, err);
}

static void on_listed(void *arg, const sbx_err *err, const sbx_entry *entries, size_t count) {
  (void)entries, (void)count;
  report(arg, err);
}

static void on_output(void *arg, sbx_stream stream, sbx_slice bytes) {
  (void)arg, (void)stream, (void)bytes;
}

static void new_sandbox(fixture *f) {
  char options[512];
  snprintf(options, sizeof options,
           "{\"apiKey\":\"%s\",\"baseURL\":\"%s\",\"sandboxUrl\":\"%s\","
           "\"template\":\"code-interpreter-v1\",\"headers\":{\"x-a\":\"b\"},\"proxy\":\"\"}",
           f->e2b.api_key, f->e2b.api_url, f->e2b.sandbox_url);
  assert_int_equal(sbx_sandbox_new(&f->sb, f->loop, "e2b", sbx_slice_str(options), NULL), SBX_OK);
}

static void await(fixture *f, int reported) {
  while (f->reported < reported)
    uv_run(&f->uv, UV_RUN_ONCE);
}

static void begun(fixture *f, int rc) {
  if (rc != SBX_OK) {
    f->reported++;
    f->code = rc;
  }
}

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  alarm(getenv("SBX_VALGRIND") != NULL ? 600 : 120);
  start_emulator(&f->e2b);
  loop_open(&f->uv, &f->loop);
  new_sandbox(f);
  begun(f, sbx_sandbox_start(f->sb, report, f, NULL, NULL));
  await(f, 1);
  assert_int_equal(f->code, SBX_OK);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  sbx_sandbox_free(f->sb);
  loop_end(&f->uv, f->loop);
  close(f->e2b.keep);
  waitpid(f->e2b.pid, NULL, 0);
  free(f);
  return 0;
}

/* ---- each operation ------------------------------------------------------------------------- */

/* Begins one operation on f->sb; begun() gets what that returned. */
typedef void (*begin_fn)(fixture *f);

/* Live allocations without those of kept connections, each of which has two. */
static size_t count_live(const fixture *f) {
  return sbx_alloc_live() - 2 * sbx_transfer_connections(f->loop);
}

/* What an op has left to itself (an answer that nobody waits for) ends when that has come. */
static void settle(fixture *f, size_t live) {
  for (int i = 0; i < 15000 && count_live(f) != live; i++) {
    uv_run(&f->uv, UV_RUN_NOWAIT);
    usleep(1000);
  }
  assert_int_equal(count_live(f), live);
}

static void each_fails(fixture *f, begin_fn begin, size_t least) {
  size_t step = getenv("SBX_VALGRIND") != NULL ? 7 : 1;
  /* Once whole, so that what lasts (a context, a connection) is there. */
  f->reported = 0;
  begin(f);
  await(f, 1);
  assert_int_equal(f->code, SBX_OK);
  bool failed = true;
  for (size_t n = 1; failed; n += step) {
    uv_run(&f->uv, UV_RUN_NOWAIT);
    size_t live = count_live(f);
    f->reported = 0;
    sbx_alloc_fail_at(n, false);
    begin(f);
    await(f, 1);
    failed = sbx_alloc_failed();
    sbx_alloc_fail_at(0, false);
    if (f->code != SBX_OK && !(failed && f->code == SBX_ENOMEM))
      fail_msg("allocation %zu: %s", n, sbx_err_name(f->code));
    settle(f, live);
    assert_int_equal(f->reported, 1);
    assert_true(!failed || n < 2000);
    if (!failed)
      assert_true(n > least);
  }
}

static void begin_exec(fixture *f, const sbx_exec_spec *spec) {
  begun(f, sbx_sandbox_exec(f->sb, spec, on_output, on_exec, f, NULL, NULL));
}

static void begin_shell(fixture *f) {
  static const sbx_env_var env[] = {{{"NAME", 4}, {"value", 5}}};
  const sbx_exec_spec spec = {.text = sbx_slice_str("echo out; echo err >&2"),
                              .stdin_bytes = sbx_slice_str("in"),
                              .env = env,
                              .env_count = 1};
  begin_exec(f, &spec);
}

static void begin_endless(fixture *f) {
  const sbx_exec_spec spec = {.text = sbx_slice_str("sleep 100"), .timeout_ms = 20};
  begin_exec(f, &spec);
}

static void begin_code(fixture *f) {
  const sbx_exec_spec spec = {
      .kind = SBX_EXEC_CODE, .text = sbx_slice_str("print(1)\n1/0"), .context = sbx_slice_str("a")};
  begin_exec(f, &spec);
}

static void begin_write(fixture *f) {
  begun(f, sbx_sandbox_write(f->sb, sbx_slice_str("f"), sbx_slice_str("x"), report, f, NULL, NULL));
}

static void begin_read(fixture *f) {
  begun(f, sbx_sandbox_read(f->sb, sbx_slice_str("f"), 0, on_read, f, NULL, NULL));
}

static void begin_list(fixture *f) {
  begun(f, sbx_sandbox_list(f->sb, 9, on_listed, f, NULL, NULL));
}

static void begin_lifetime(fixture *f) {
  begun(f, sbx_sandbox_control(f->sb, SBX_SET_LIFETIME, 300, report, f, NULL, NULL));
}

static void begin_resume(fixture *f) {
  begun(f, sbx_sandbox_control(f->sb, SBX_RESUME, 300, report, f, NULL, NULL));
}

static void test_operations(void **state) {
  fixture *f = *state;
  each_fails(f, begin_shell, 40);
  each_fails(f, begin_write, 15);
  each_fails(f, begin_read, 15);
  each_fails(f, begin_list, 15);
  each_fails(f, begin_lifetime, 15);
  each_fails(f, begin_resume, 15);
  each_fails(f, begin_code, 15);
}

static void test_limits(void **state) {
  fixture *f = *state;
  each_fails(f, begin_endless, 15);
}

/* A whole life, in which allocation `n` fails. */
static void test_lives(void **state) {
  fixture *f = *state;
  sbx_sandbox *first = f->sb;
  size_t step = getenv("SBX_VALGRIND") != NULL ? 11 : 1;
  bool failed = true;
  for (size_t n = 1; failed; n += step) {
    size_t live = count_live(f);
    new_sandbox(f);
    f->reported = 0;
    sbx_alloc_fail_at(n, false);
    begun(f, sbx_sandbox_start(f->sb, report, f, NULL, NULL));
    await(f, 1);
    int started = f->code;
    begun(f, sbx_sandbox_close(f->sb, SBX_CLOSE_GRACE_DEFAULT_MS, report, f, NULL));
    await(f, 2);
    failed = sbx_alloc_failed();
    sbx_alloc_fail_at(0, false);
    assert_true(started == SBX_OK || (failed && started == SBX_ENOMEM));
    if (f->code != SBX_OK) { /* the delete: it may be tried again */
      assert_true(failed && f->code == SBX_ENOMEM);
      begun(f, sbx_sandbox_close(f->sb, SBX_CLOSE_GRACE_DEFAULT_MS, report, f, NULL));
      await(f, 3);
      assert_int_equal(f->code, SBX_OK);
    }
    sbx_sandbox_free(f->sb);
    settle(f, live);
    assert_true(!failed || n < 2000);
  }
  f->sb = first;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(test_operations),
      T(test_limits),
      T(test_lives),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
