/* Lets the n-th allocation of a whole life of a sandbox fail, for every n: each call reports an
 * error once or succeeds, nothing hangs, nothing leaks. */
#include "support/sandbox_fixture.h"

#include "core/alloc.h"

#include <unistd.h>

typedef struct tally {
  int begun;
  int reported;
  int failed;
} tally;

static void count(tally *t, const sbx_err *err) {
  t->reported++;
  if (err == NULL)
    return;
  t->failed++;
  assert_string_equal(sbx_err_name(err->code), sbx_err_name(SBX_ENOMEM));
  assert_true(err->message[0] != '\0');
}

static void on_done(void *arg, const sbx_err *err) {
  count(arg, err);
}

static void on_exec(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  assert_true((err == NULL) == (result != NULL));
  count(arg, err);
}

static void on_broken(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  assert_null(result);
  count(arg, err->code == SBX_ENET ? NULL : err);
}

static void on_refused(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  assert_true((err == NULL) == (result != NULL));
  count(arg, err != NULL && err->code == SBX_ECONFLICT ? NULL : err);
}

/* Of what a close or a pause has ended. */
static void on_ended(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  assert_true((err == NULL) == (result != NULL));
  bool ended = err != NULL && (err->code == SBX_ECLOSED || err->code == SBX_ECONFLICT);
  count(arg, ended ? NULL : err);
}

static void on_output(void *arg, sbx_stream stream, sbx_slice bytes) {
  (void)arg, (void)stream, (void)bytes;
}

static void on_read(void *arg, const sbx_err *err, const sbx_slice *bytes) {
  assert_true((err == NULL) == (bytes != NULL));
  count(arg, err);
}

static void on_listed(void *arg, const sbx_err *err, const sbx_entry *entries, size_t n) {
  (void)entries, (void)n;
  count(arg, err);
}

static void on_part(void *arg, const sbx_err *err, const sbx_part *part) {
  assert_int_equal(err == NULL, part != NULL);
  count(arg, err);
}

static void begun(tally *t, int rc) {
  if (rc == SBX_OK)
    t->begun++;
  else
    assert_int_equal(rc, SBX_ENOMEM);
}

static void run(uv_loop_t *uv) {
  for (int i = 0; i < 24; i++)
    uv_run(uv, UV_RUN_NOWAIT);
}

static void make_calls(sbx_sandbox *sb, uv_loop_t *uv, tally *t) {
  static const sbx_env_var env[] = {{{"NAME", 4}, {"value", 5}}};
  const sbx_exec_spec spec = {.text = sbx_slice_str("echo"),
                              .env = env,
                              .env_count = 1,
                              .truncate = SBX_KEEP_HEAD_AND_TAIL,
                              .max_output_bytes = 4};
  begun(t, sbx_sandbox_start(sb, on_done, t, NULL, NULL));
  begun(t, sbx_sandbox_exec(sb, &spec, on_output, on_exec, t, NULL, NULL));
  begun(t,
        sbx_sandbox_write(sb, sbx_slice_str("f"), sbx_slice_str("bytes"), on_done, t, NULL, NULL));
  begun(t, sbx_sandbox_read(sb, sbx_slice_str("f"), 0, on_read, t, NULL, NULL));
  begun(t, sbx_sandbox_list(sb, 9, on_listed, t, NULL, NULL));
  run(uv);
}

/* A command whose answer is cut off, and whose sandbox is then probed. */
static void make_broken_call(sbx_sandbox *sb, uv_loop_t *uv, tally *t) {
  const sbx_exec_spec spec = {.text = sbx_slice_str("true")};
  fake_next(FAKE_EXEC, (fake_plan){.code = SBX_ENET});
  begun(t, sbx_sandbox_exec(sb, &spec, NULL, on_broken, t, NULL, NULL));
  run(uv);
  fake.planned[FAKE_EXEC] = 0; /* it may not have come that far */
}

/* A command that a stopped sandbox refuses, and that goes on when it was started again. */
static void make_refused_call(sbx_sandbox *sb, uv_loop_t *uv, tally *t) {
  const sbx_exec_spec spec = {.text = sbx_slice_str("true")};
  fake_provider.restarts = true;
  fake.liveness = SBX_HALTED;
  fake_next(FAKE_EXEC, (fake_plan){.code = SBX_ECONFLICT, .no_effect = true});
  fake.status.started = false;
  begun(t, sbx_sandbox_exec(sb, &spec, NULL, on_refused, t, NULL, NULL));
  run(uv);
  fake.planned[FAKE_EXEC] = 0;
  fake.status.started = true;
  fake.liveness = SBX_ALIVE;
  fake_provider.restarts = false;
}

/* A command that is killed after its start. */
static void make_cancelled_call(sbx_sandbox *sb, uv_loop_t *uv, tally *t) {
  const sbx_exec_spec spec = {.text = sbx_slice_str("sleep")};
  int before = t->reported;
  sbx_call *call = NULL;
  fake_next(FAKE_EXEC, (fake_plan){.hang = true});
  begun(t, sbx_sandbox_exec(sb, &spec, NULL, on_exec, t, &call, NULL));
  run(uv);
  if (call != NULL && t->reported == before)
    sbx_call_cancel(call);
  run(uv);
  fake.planned[FAKE_EXEC] = 0;
}

/* A pause, a command that it cuts off, and one that comes meanwhile. */
static void make_pause(sbx_sandbox *sb, uv_loop_t *uv, tally *t) {
  const sbx_exec_spec spec = {.text = sbx_slice_str("sleep")};
  fake_next(FAKE_EXEC, (fake_plan){.hang = true});
  fake_next(FAKE_CONTROL, (fake_plan){.hang = true});
  begun(t, sbx_sandbox_exec(sb, &spec, NULL, on_ended, t, NULL, NULL));
  run(uv);
  int rc = sbx_sandbox_control(sb, SBX_PAUSE, 0, on_done, t, NULL, NULL);
  if (rc != SBX_ENOTREADY) /* there may be none yet */
    begun(t, rc);
  begun(t, sbx_sandbox_exec(sb, &spec, NULL, on_ended, t, NULL, NULL));
  run(uv);
  /* Without memory for the pause nothing is there that could hide a loss. */
  bool pausing = fake_lives(FAKE_CONTROL);
  while (fake_lives(FAKE_EXEC))
    fake_release(FAKE_EXEC, pausing ? SBX_ELOST : SBX_OK);
  run(uv);
  if (pausing)
    fake_release(FAKE_CONTROL, SBX_OK);
  run(uv);
  fake.planned[FAKE_EXEC] = fake.planned[FAKE_CONTROL] = 0;
}

/* A close that ends a command at once. */
static void close_at_once(sbx_sandbox *sb, uv_loop_t *uv, tally *t) {
  const sbx_exec_spec spec = {.text = sbx_slice_str("sleep"), .timeout_ms = SBX_NO_TIMEOUT};
  fake_next(FAKE_EXEC, (fake_plan){.hang = true});
  begun(t, sbx_sandbox_exec(sb, &spec, NULL, on_ended, t, NULL, NULL));
  run(uv);
  int rc = sbx_sandbox_close(sb, 0, on_done, t, NULL);
  begun(t, rc);
  run(uv);
  if (rc == SBX_OK)
    return;
  begun(t, sbx_sandbox_close(sb, 0, on_done, t, NULL));
  run(uv);
}

static void make_parts(sbx_sandbox *sb, uv_loop_t *uv, tally *t) {
  sbx_slice path = sbx_slice_str("d/f"), token = sbx_slice_str("0123456789abcdef0123456789abcdef");
  begun(t, sbx_sandbox_read_part(sb, path, 0, 100, sbx_slice_str("stamp"), on_part, t, NULL, NULL));
  begun(t, sbx_sandbox_write_part(sb, path, token, 3, sbx_slice_str("four"), SBX_PART_LAST, on_done,
                                  t, NULL, NULL));
  run(uv);
}

static void live(uv_loop_t *uv, sbx_loop *loop, tally *t) {
  sbx_sandbox *sb = NULL;
  int rc =
      sbx__sandbox_new_with(&sb, loop, &fake_provider, sbx_slice_str("{\"flavour\": 1}"), NULL);
  if (rc != SBX_OK) {
    assert_int_equal(rc, SBX_ENOMEM);
    return;
  }
  make_parts(sb, uv, t);
  make_calls(sb, uv, t);
  make_broken_call(sb, uv, t);
  make_refused_call(sb, uv, t);
  make_cancelled_call(sb, uv, t);
  make_calls(sb, uv, t);
  make_pause(sb, uv, t);
  close_at_once(sb, uv, t);
  sbx_sandbox_free(sb);
  run(uv);
}

/* Returns whether an allocation was made to fail. */
static bool one_life(size_t nth, bool sticky) {
  uv_loop_t uv;
  sbx_loop *loop = NULL;
  tally t = {0};
  fake_reset();
  fake.output = "more than four bytes";
  assert_int_equal(uv_loop_init(&uv), 0);
  sbx_alloc_fail_at(nth, sticky);
  int rc = sbx_loop_new(&loop, &uv, NULL);
  if (rc == SBX_OK)
    live(&uv, loop, &t);
  bool failed = sbx_alloc_failed();
  sbx_alloc_fail_at(0, false);
  if (loop != NULL)
    sbx_loop_close(loop, NULL, NULL);
  uv_run(&uv, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&uv), 0);
  assert_int_equal(t.reported, t.begun);
  assert_int_equal(fake.live_ops, 0);
  assert_int_equal(fake.live_sessions, 0);
  assert_int_equal(sbx_alloc_live(), 0);
  if (!failed)
    assert_int_equal(t.failed, 0);
  return failed;
}

static void test_every_allocation_may_fail(void **state) {
  (void)state;
  alarm(120);
  for (int sticky = 0; sticky < 2; sticky++) {
    size_t nth = 1;
    while (one_life(nth, sticky != 0))
      nth++;
    /* The scenario reached what it is about. */
    assert_true(nth > 40);
    assert_int_equal(fake.count[FAKE_KILL], 2);
    assert_int_equal(fake.count[FAKE_CONTROL], 1);
    assert_int_equal(fake.count[FAKE_CLOSE], 1);
    assert_int_equal(fake.count[FAKE_OPEN], 2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation_may_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
