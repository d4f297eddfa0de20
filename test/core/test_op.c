/* Tests of core/op: one finish, deadline, cancel, the loop's end, disowning. */
#include "core/op.h"

#include "support/loop_fixture.h"

typedef struct log {
  int aborts[32]; /* by -reason */
  int dones;
  int destroys;
  int code;
  char message[64];
} log;

typedef struct fixture {
  uv_loop_t uv;
  sbx_loop *loop;
  log log;
} fixture;

typedef struct test_op {
  sbx_op op;
  log *log;
  sbx_op *child;       /* finished together with this one */
  bool finish_at_once; /* on abort */
} test_op;

static void abort_op(sbx_op *op, int reason) {
  test_op *t = (test_op *)(void *)op;
  t->log->aborts[-reason]++;
  if (t->child != NULL)
    sbx_op_abort(t->child, reason);
  if (!t->finish_at_once && reason != SBX_ECLOSED)
    return;
  sbx_err err;
  sbx_err_set(&err, reason, "stopped");
  sbx_op_finish(op, &err);
}

static void destroy_op(sbx_op *op) {
  test_op *t = (test_op *)(void *)op;
  t->log->destroys++;
  sbx_free(t);
}

static const sbx_op_class test_class = {"test", abort_op, destroy_op};

static void on_done(sbx_op *op, void *arg) {
  log *l = arg;
  assert_true(op->finished);
  l->dones++;
  l->code = op->err.code;
}

static test_op *new_op(fixture *f, bool finish_at_once) {
  test_op *t = sbx_calloc(1, sizeof *t);
  assert_non_null(t);
  t->log = &f->log;
  t->finish_at_once = finish_at_once;
  sbx_op_init(&t->op, &test_class, f->loop, on_done, &f->log);
  return t;
}

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  loop_open(&f->uv, &f->loop);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  loop_end(&f->uv, f->loop);
  free(f);
  return 0;
}

static void test_done_comes_later_and_once(void **state) {
  fixture *f = *state;
  test_op *t = new_op(f, true);
  sbx_err err;
  sbx_err_set(&err, SBX_ENET, "later");
  sbx_op_finish(&t->op, NULL);
  sbx_op_finish(&t->op, &err);
  sbx_op_abort(&t->op, SBX_ECANCELED);
  assert_int_equal(f->log.dones, 0);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(f->log.dones, 1);
  assert_int_equal(f->log.destroys, 1);
  assert_int_equal(f->log.code, SBX_OK);
  assert_int_equal(f->log.aborts[-SBX_ECANCELED], 0);
}

static void test_live_op_keeps_the_loop_alive(void **state) {
  fixture *f = *state;
  test_op *t = new_op(f, true);
  assert_int_not_equal(uv_run(&f->uv, UV_RUN_NOWAIT), 0);
  sbx_op_finish(&t->op, NULL);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
}

static void test_deadline(void **state) {
  fixture *f = *state;
  test_op *t = new_op(f, true);
  sbx_op_set_deadline(&t->op, 60000);
  sbx_op_set_deadline(&t->op, 1);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(f->log.aborts[-SBX_ETIMEOUT], 1);
  assert_int_equal(f->log.code, SBX_ETIMEOUT);
  assert_int_equal(f->log.dones, 1);
}

static void test_each_reason_is_passed_once(void **state) {
  fixture *f = *state;
  test_op *t = new_op(f, false);
  sbx_op_abort(&t->op, SBX_ECANCELED);
  sbx_op_abort(&t->op, SBX_ECANCELED);
  sbx_op_abort(&t->op, SBX_ETIMEOUT);
  sbx_op_abort(&t->op, SBX_ETIMEOUT);
  assert_int_equal(f->log.aborts[-SBX_ECANCELED], 1);
  assert_int_equal(f->log.aborts[-SBX_ETIMEOUT], 1);
  sbx_op_finish(&t->op, NULL);
  sbx_op_set_deadline(&t->op, 0); /* too late to matter */
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(f->log.aborts[-SBX_ETIMEOUT], 1);
}

static void test_disowned_op_frees_itself(void **state) {
  fixture *f = *state;
  test_op *t = new_op(f, true);
  sbx_op_disown(&t->op);
  sbx_op_abort(&t->op, SBX_ECANCELED);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(f->log.dones, 0);
  assert_int_equal(f->log.destroys, 1);
}

static void test_drop_takes_the_owner_s_pointer(void **state) {
  fixture *f = *state;
  sbx_op *op = &new_op(f, true)->op;
  sbx_op_drop(&op, SBX_ECANCELED);
  assert_null(op);
  sbx_op_drop(&op, SBX_ECANCELED);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(f->log.dones, 0);
  assert_int_equal(f->log.aborts[-SBX_ECANCELED], 1);
}

static void test_finish_with_a_code(void **state) {
  fixture *f = *state;
  sbx_op_finish_code(&new_op(f, true)->op, SBX_ENET);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(f->log.code, SBX_ENET);
  sbx_op_finish_code(&new_op(f, true)->op, SBX_OK);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(f->log.dones, 2);
  assert_int_equal(f->log.code, SBX_OK);
}

static void test_close_aborts_all(void **state) {
  fixture *f = *state;
  test_op *parent = new_op(f, false);
  for (int i = 0; i < 5; i++)
    new_op(f, false);
  parent->child = &new_op(f, false)->op;
  sbx_loop_close(f->loop, on_loop_closed, NULL);
  assert_int_equal(f->log.dones, 0);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  f->loop = NULL;
  assert_int_equal(f->log.dones, 7);
  assert_int_equal(f->log.destroys, 7);
  assert_int_equal(f->log.aborts[-SBX_ECLOSED], 7);
  assert_int_equal(f->log.code, SBX_ECLOSED);
}

static void start_another(sbx_op *op, void *arg) {
  fixture *f = arg;
  (void)op;
  if (f->log.destroys < 3) {
    test_op *t = new_op(f, false);
    t->op.done = start_another;
    t->op.arg = f;
  }
}

static void test_ops_born_while_closing_end_too(void **state) {
  fixture *f = *state;
  test_op *t = new_op(f, false);
  t->op.done = start_another;
  t->op.arg = f;
  sbx_loop_close(f->loop, on_loop_closed, NULL);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  f->loop = NULL;
  assert_int_equal(f->log.destroys, 4);
  assert_int_equal(f->log.aborts[-SBX_ECLOSED], 4);
}

static void test_finish_overtakes_a_queued_abort(void **state) {
  fixture *f = *state;
  sbx_loop_close(f->loop, on_loop_closed, NULL);
  test_op *t = new_op(f, false);
  sbx_op_finish(&t->op, NULL);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  f->loop = NULL;
  assert_int_equal(f->log.dones, 1);
  assert_int_equal(f->log.code, SBX_OK);
  assert_int_equal(f->log.aborts[-SBX_ECLOSED], 0);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(test_done_comes_later_and_once),
      T(test_live_op_keeps_the_loop_alive),
      T(test_deadline),
      T(test_each_reason_is_passed_once),
      T(test_disowned_op_frees_itself),
      T(test_drop_takes_the_owner_s_pointer),
      T(test_finish_with_a_code),
      T(test_close_aborts_all),
      T(test_ops_born_while_closing_end_too),
      T(test_finish_overtakes_a_queued_abort),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
