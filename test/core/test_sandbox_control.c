/* Tests of what changes the life of a sandbox: lifetime, pause, resume. */
#include "support/sandbox_fixture.h"

static void test_controls_reach_the_provider(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  open_now(f);
  begin_control(f, &a, SBX_SET_LIFETIME, 90);
  assert_not_seen(&a);
  settle(f);
  assert_seen(&a, SBX_OK);
  assert_int_equal(fake.control, SBX_SET_LIFETIME);
  assert_int_equal(fake.seconds, 90);
  begin_control(f, &b, SBX_PAUSE, 0);
  settle(f);
  assert_seen(&b, SBX_OK);
  begin_control(f, &c, SBX_RESUME, 0);
  settle(f);
  assert_seen(&c, SBX_OK);
  assert_log("open1 control1 control1 control1 ");
}

static void test_nothing_is_started_for_a_control(void **state) {
  fixture *f = *state;
  seen a = {0};
  begin_control(f, &a, SBX_PAUSE, 0);
  assert_int_equal(a.code, SBX_ENOTREADY);
  settle(f);
  assert_log("");
}

static void test_lifetimes_that_are_none(void **state) {
  fixture *f = *state;
  open_now(f);
  const uint64_t bad[] = {0, 86401, UINT64_MAX};
  for (size_t i = 0; i < 3; i++) {
    seen a = {0};
    begin_control(f, &a, SBX_SET_LIFETIME, bad[i]);
    assert_int_equal(a.code, SBX_EINVAL);
  }
  assert_int_equal(fake.count[FAKE_CONTROL], 0);
}

static void test_a_provider_that_cannot(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  open_now(f);
  fake_provider.caps &= ~(uint32_t)(SBX_CAP_LIFETIME | SBX_CAP_PAUSE);
  begin_control(f, &a, SBX_SET_LIFETIME, 1);
  assert_int_equal(a.code, SBX_EUNSUPPORTED);
  begin_control(f, &b, SBX_PAUSE, 0);
  assert_int_equal(b.code, SBX_EUNSUPPORTED);
}

static void test_a_control_of_a_sandbox_that_is_gone(void **state) {
  fixture *f = *state;
  seen a = {0};
  open_now(f);
  fake_next(FAKE_CONTROL, (fake_plan){.code = SBX_ENOTFOUND});
  fake.liveness = SBX_GONE;
  begin_control(f, &a, SBX_PAUSE, 0);
  settle(f);
  assert_seen(&a, SBX_ELOST);
  assert_log("open1 control1 probe1 ");
}

static void test_a_control_can_be_cancelled(void **state) {
  fixture *f = *state;
  seen a = {0};
  open_now(f);
  fake_next(FAKE_CONTROL, (fake_plan){.hang = true});
  begin_control(f, &a, SBX_RESUME, 5);
  settle(f);
  sbx_call_cancel(a.call);
  settle(f);
  assert_seen(&a, SBX_ECANCELED);
}

static void test_close_waits_for_a_control(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  open_now(f);
  fake_next(FAKE_CONTROL, (fake_plan){.hang = true});
  begin_control(f, &a, SBX_PAUSE, 0);
  begin_close(f, &b);
  settle(f);
  assert_not_seen(&b);
  fake_release(FAKE_CONTROL, SBX_OK);
  settle(f);
  assert_seen(&a, SBX_OK);
  assert_seen(&b, SBX_OK);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(test_controls_reach_the_provider),
      T(test_nothing_is_started_for_a_control),
      T(test_lifetimes_that_are_none),
      T(test_a_provider_that_cannot),
      T(test_a_control_of_a_sandbox_that_is_gone),
      T(test_a_control_can_be_cancelled),
      T(test_close_waits_for_a_control),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
