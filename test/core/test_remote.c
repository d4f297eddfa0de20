/* Tests of what providers share that are reached over HTTP: what is asked again, when, and for how
 * long. The replies are made here; nothing is sent. */
#include "providers/remote/steps.h"

#include "core/err.h"
#include "support/loop_fixture.h"

typedef struct fixture {
  uv_loop_t uv;
  sbx_loop *loop;
} fixture;

/* An operation whose request always fails in one way. */
typedef struct asker {
  sbx_steps steps;
  sbx_repeat repeat;
  const sbx_repeat_rule *rule;
  sbx_err err;
} asker;

typedef struct result {
  unsigned asked;
  int code;
} result;

static void ask(sbx_steps *steps) {
  asker *a = (asker *)(void *)steps;
  ((result *)steps->op.arg)->asked++;
  if (!sbx_steps_repeat(steps, &a->repeat, a->rule, &a->err, ask))
    sbx_steps_finish(steps, &a->err);
}

static void on_done(sbx_op *op, void *arg) {
  ((result *)arg)->code = op->err.code;
}

/* How often it is asked, and what comes of it, within `deadline_ms`; 0: without a deadline. */
static result ask_by(const sbx_repeat_rule *rule, fixture *f, const sbx_err *err,
                     uint64_t deadline_ms) {
  result out = {0};
  asker *a = sbx_steps_new(sizeof *a, NULL, f->loop, on_done, &out);
  assert_non_null(a);
  a->rule = rule;
  a->err = *err;
  if (deadline_ms > 0)
    sbx_op_set_deadline(&a->steps.op, deadline_ms);
  ask(&a->steps);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  return out;
}

static result ask_all(fixture *f, const sbx_err *err, uint64_t deadline_ms) {
  return ask_by(&sbx_repeat_delete, f, err, deadline_ms);
}

static int setup(void **state) {
  static fixture f;
  loop_open(&f.uv, &f.loop);
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  loop_end(&f->uv, f->loop);
  return 0;
}

static sbx_err error_of(int code, int status) {
  sbx_err err;
  sbx_err_set(&err, code, "no");
  err.status = status;
  return err;
}

static void test_what_does_not_pass_is_asked_once(void **state) {
  static const int codes[] = {SBX_EINVAL,   SBX_EAUTH,  SBX_EFORBIDDEN, SBX_ENOTFOUND,
                              SBX_EQUOTA,   SBX_EPROTO, SBX_ETLS,       SBX_ECANCELED,
                              SBX_ETIMEOUT, SBX_ENOMEM, SBX_ECLOSED};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    sbx_err err = error_of(codes[i], 400);
    result r = ask_all(*state, &err, 0);
    assert_int_equal(r.asked, 1);
    assert_int_equal(r.code, codes[i]);
  }
}

static void test_a_failure_is_asked_again_a_few_times(void **state) {
  sbx_err err = error_of(SBX_EPROVIDER, 503);
  uint64_t begin = sbx_now_ms();
  result r = ask_all(*state, &err, 60000);
  assert_int_equal(r.asked, 5);
  assert_int_equal(r.code, SBX_EPROVIDER);
  assert_true(sbx_now_ms() - begin >= 150 + 300 + 600 + 1200);
}

static void test_the_deadline_bounds_it_and_the_reason_is_told(void **state) {
  static const int codes[] = {SBX_ECONFLICT, SBX_ENET, SBX_ERATE};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    sbx_err err = error_of(codes[i], 0);
    result r = ask_all(*state, &err, 900);
    assert_int_equal(r.asked, 3); /* now, after 150 ms, after 450 ms */
    assert_int_equal(r.code, codes[i]);
  }
}

static void test_a_conflict_lasts_longer_than_failures(void **state) {
  sbx_err err = error_of(SBX_ECONFLICT, 409);
  result r = ask_all(*state, &err, 5000);
  assert_int_equal(r.asked, 6); /* 0, 150, 450, 1050, 2250, 4250 ms */
  assert_int_equal(r.code, SBX_ECONFLICT);
}

static void test_what_the_service_asks_for_is_waited_for(void **state) {
  sbx_err err = error_of(SBX_ERATE, 429);
  err.retry_after_ms = 1000;
  uint64_t begin = sbx_now_ms();
  result r = ask_all(*state, &err, 1900);
  assert_int_equal(r.asked, 2);
  assert_int_equal(r.code, SBX_ERATE);
  assert_true(sbx_now_ms() - begin >= 1000);
}

static void test_a_pause_beyond_the_deadline_is_not_begun(void **state) {
  sbx_err err = error_of(SBX_ERATE, 429);
  err.retry_after_ms = 3600 * 1000;
  uint64_t begin = sbx_now_ms();
  result r = ask_all(*state, &err, 60000);
  assert_int_equal(r.asked, 1);
  assert_int_equal(r.code, SBX_ERATE);
  assert_true(sbx_now_ms() - begin < 5000);
  err.retry_after_ms = UINT64_MAX;
  assert_int_equal(ask_all(*state, &err, 60000).asked, 1);
}

static void test_rules_differ(void **state) {
  static const sbx_repeat_rule rule = {
      .first_pause_ms = 10, .most_pause_ms = 30, .most = 3, .timeouts = true};
  static const struct {
    int code;
    unsigned asked;
  } cases[] = {{SBX_ENET, 4},     {SBX_ERATE, 4},  {SBX_EPROVIDER, 4},
               {SBX_ETIMEOUT, 4}, {SBX_EPROTO, 1}, {SBX_ECONFLICT, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sbx_err err = error_of(cases[i].code, 0);
    uint64_t begin = sbx_now_ms();
    result r = ask_by(&rule, *state, &err, 0);
    assert_int_equal(r.asked, cases[i].asked);
    assert_int_equal(r.code, cases[i].code);
    if (r.asked > 1)
      assert_true(sbx_now_ms() - begin >= 10 + 20 + 30);
  }
}

static void on_child(sbx_op *op, void *arg) {
  (void)op;
  (void)arg;
  fail_msg("whoever waited is gone");
}

/* What runs beside an operation may end it; nobody answers to it after that. */
static void test_what_it_waits_for_ends_with_it(void **state) {
  fixture *f = *state;
  result out = {0};
  sbx_steps *steps = sbx_steps_new(sizeof *steps, NULL, f->loop, on_done, &out);
  sbx_steps *child = sbx_steps_new(sizeof *child, NULL, f->loop, on_child, steps);
  assert_non_null(steps);
  assert_non_null(child);
  sbx_steps_wait_for(steps, &child->op);
  sbx_steps_finish_code(steps, SBX_EINVAL);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(out.code, SBX_EINVAL);
}

static void test_pauses_grow_to_the_rules_most(void **state) {
  static const uint64_t pauses[] = {150, 300, 600, 1200, 2000, 2000};
  sbx_repeat repeat = {0};
  (void)state;
  for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++)
    assert_int_equal(sbx_repeat_pause(&repeat, &sbx_repeat_delete), pauses[i]);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(test_what_does_not_pass_is_asked_once),
      T(test_a_failure_is_asked_again_a_few_times),
      T(test_the_deadline_bounds_it_and_the_reason_is_told),
      T(test_a_conflict_lasts_longer_than_failures),
      T(test_what_the_service_asks_for_is_waited_for),
      T(test_a_pause_beyond_the_deadline_is_not_begun),
      T(test_rules_differ),
      T(test_what_it_waits_for_ends_with_it),
      T(test_pauses_grow_to_the_rules_most),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
