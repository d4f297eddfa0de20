/* Tests of sbx_loop_run_ready(): the end of a host that gets no further turn of the loop. */
#include "core/op.h"
#include "support/loop_fixture.h"

typedef struct fixture {
  uv_loop_t uv;
  sbx_loop *loop;
  sbx_task first, second;
  int runs;
  int done;
} fixture;

static fixture *now; /* of the running test, for callbacks that carry no argument */

static void count(sbx_task *task) {
  (void)task;
  now->runs++;
}

static void queue_second(sbx_task *task) {
  (void)task;
  now->runs++;
  sbx_loop_defer(now->loop, &now->second);
}

static void run_all(sbx_task *task) {
  (void)task;
  now->runs++;
  sbx_loop_defer(now->loop, &now->second);
  sbx_loop_run_ready(now->loop);
  assert_int_equal(now->runs, 2);
}

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  loop_open(&f->uv, &f->loop);
  sbx_task_init(&f->second, count);
  *state = now = f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  loop_end(&f->uv, f->loop);
  free(f);
  return 0;
}

static void test_runs_at_once_what_is_queued_meanwhile_too(void **state) {
  fixture *f = *state;
  sbx_task_init(&f->first, queue_second);
  sbx_loop_defer(f->loop, &f->first);
  sbx_loop_run_ready(f->loop);
  assert_int_equal(f->runs, 2);
  sbx_loop_run_ready(f->loop);
  assert_int_equal(f->runs, 2);
}

static void test_runs_from_inside_a_task(void **state) {
  fixture *f = *state;
  sbx_task_init(&f->first, run_all);
  sbx_loop_defer(f->loop, &f->first);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(f->runs, 2);
}

static void abort_op(sbx_op *op, int reason) {
  sbx_err err = {0};
  err.code = reason;
  sbx_op_finish(op, &err);
}

static void destroy_op(sbx_op *op) {
  sbx_free(op);
}

static const sbx_op_class op_class = {"test", abort_op, destroy_op};

static void on_done(sbx_op *op, void *arg) {
  assert_int_equal(op->err.code, SBX_ECLOSED);
  ((fixture *)arg)->done++;
}

static void test_a_closing_loop_ends_its_ops_without_a_turn(void **state) {
  fixture *f = *state;
  for (int i = 0; i < 3; i++) {
    sbx_op *op = sbx_calloc(1, sizeof *op);
    assert_non_null(op);
    sbx_op_init(op, &op_class, f->loop, on_done, f);
  }
  sbx_loop_close(f->loop, on_loop_closed, NULL);
  sbx_loop_run_ready(f->loop);
  assert_int_equal(f->done, 3);
  assert_int_equal(loops_closed, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_runs_at_once_what_is_queued_meanwhile_too, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_runs_from_inside_a_task, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_closing_loop_ends_its_ops_without_a_turn, setup,
                                      teardown),
  };
  return cmocka_run_group_tests_name("loop_ready", tests, NULL, NULL);
}
