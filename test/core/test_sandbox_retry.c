/* Tests of the one thing that is repeated by itself: a create that certainly made nothing. */
#include "support/sandbox_fixture.h"

static fake_plan unreachable(void) {
  return (fake_plan){.code = SBX_ENET, .no_effect = true};
}

static fake_plan busy(uint64_t retry_after_ms) {
  return (fake_plan){.code = SBX_ERATE, .no_effect = true, .retry_after_ms = retry_after_ms};
}

static void test_a_service_that_could_not_be_reached_is_asked_again(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  fake_next(FAKE_OPEN, unreachable());
  begin_start(f, &a);
  begin_exec(f, &b, "true", 0);
  await(f, &b);
  assert_seen(&a, SBX_OK);
  assert_seen(&b, SBX_OK);
  /* The same session: nothing had been made in it. */
  assert_log("open1 open1 exec1 ");
}

static void test_it_is_given_up_after_a_few_times(void **state) {
  fixture *f = *state;
  seen a = {0};
  for (int i = 0; i < 4; i++)
    fake_next(FAKE_OPEN, busy(1));
  begin_start(f, &a);
  await(f, &a);
  settle(f);
  assert_seen(&a, SBX_ERATE);
  assert_log("open1 open1 open1 open1 close1 ");
}

static void test_a_wait_that_was_asked_for_is_kept(void **state) {
  fixture *f = *state;
  seen a = {0};
  fake_next(FAKE_OPEN, busy(60));
  uint64_t begin = sbx_now_ms();
  begin_start(f, &a);
  await(f, &a);
  assert_seen(&a, SBX_OK);
  assert_true(sbx_now_ms() - begin >= 60);
  assert_log("open1 open1 ");
}

static void test_a_wait_beyond_the_deadline_is_not_begun(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  fixture_options(f, "{\"startTimeoutMs\": 200}");
  fake_next(FAKE_OPEN, busy(200));
  begin_start(f, &a);
  settle(f);
  assert_seen(&a, SBX_ERATE);
  fake_next(FAKE_OPEN, busy(UINT64_MAX));
  begin_start(f, &b);
  settle(f);
  assert_seen(&b, SBX_ERATE);
}

static void test_nothing_else_is_repeated(void **state) {
  fixture *f = *state;
  const fake_plan plans[] = {
      {.code = SBX_ENET},                           /* something may have been made */
      {.code = SBX_ERATE, .retry_after_ms = 1},     /* the same */
      {.code = SBX_ERATE, .no_effect = true},       /* no word on when */
      {.code = SBX_EAUTH, .no_effect = true},       /* would fail again */
      {.code = SBX_EPROVIDER, .no_effect = true},   /* not ours to guess */
      {.code = SBX_ETIMEOUT, .retry_after_ms = 10}, /* unknown */
  };
  for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
    seen a = {0};
    fake.log[0] = '\0';
    fake_next(FAKE_OPEN, plans[i]);
    begin_start(f, &a);
    settle(f);
    assert_seen(&a, plans[i].code);
    assert_int_equal(strncmp(fake.log, "open", 4), 0);
    assert_null(strstr(fake.log + 1, "open"));
  }
}

static void test_close_waits_for_the_repeat(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  fake_next(FAKE_OPEN, unreachable());
  begin_start(f, &a);
  settle(f);
  begin_close(f, &b);
  settle(f);
  assert_not_seen(&b);
  await(f, &b);
  assert_seen(&a, SBX_OK);
  assert_seen(&b, SBX_OK);
  assert_log("open1 open1 close1 ");
}

static void test_free_while_waiting(void **state) {
  fixture *f = *state;
  seen a = {0};
  fake_next(FAKE_OPEN, unreachable());
  begin_start(f, &a);
  settle(f);
  free_sandbox(f);
  settle(f);
  assert_seen(&a, SBX_ECLOSED);
  assert_log("open1 ");
  assert_int_equal(fake.live_sessions, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(test_a_service_that_could_not_be_reached_is_asked_again),
      T(test_it_is_given_up_after_a_few_times),
      T(test_a_wait_that_was_asked_for_is_kept),
      T(test_a_wait_beyond_the_deadline_is_not_begun),
      T(test_nothing_else_is_repeated),
      T(test_close_waits_for_the_repeat),
      T(test_free_while_waiting),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
