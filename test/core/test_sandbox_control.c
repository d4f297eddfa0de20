/* Tests of what changes the life of a sandbox: lifetime, pause, resume. */
#include "support/sandbox_fixture.h"

#include <stdlib.h>

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

/* ---- C192: a pause in flight ---- */

static const fake_plan hangs = {.hang = true};

static void begin_pause(fixture *f, seen *s) {
  fake_next(FAKE_CONTROL, hangs);
  begin_control(f, s, SBX_PAUSE, 0);
  settle(f);
  assert_not_seen(s);
}

static void test_a_call_during_a_pause_is_not_sent(void **state) {
  fixture *f = *state;
  seen p = {0}, a = {0}, w = {0}, q = {0}, r = {0}, again = {0};
  open_now(f);
  begin_pause(f, &p);
  run_exec(f, &a, "true", 0);
  begin_write(f, &w);
  begin_control(f, &q, SBX_PAUSE, 0);
  begin_control(f, &r, SBX_RESUME, 0);
  settle(f);
  const seen *all[] = {&a, &w, &q, &r};
  for (size_t i = 0; i < 4; i++) {
    assert_seen(all[i], SBX_ECONFLICT);
    assert_false(all[i]->err.may_have_run);
    assert_says(all[i], "is being paused, and nothing was sent; call resume() first");
  }
  fake_release(FAKE_CONTROL, SBX_OK);
  settle(f);
  assert_seen(&p, SBX_OK);
  run_exec(f, &again, "true", 0);
  assert_seen(&again, SBX_OK);
  assert_log("open1 control1 exec1 ");
}

static void test_what_ran_at_the_pause_is_not_lost(void **state) {
  const int codes[] = {SBX_ELOST, SBX_ENET, SBX_EPROVIDER, SBX_ENOTFOUND};
  fixture *f = *state;
  seen p = {0}, again = {0};
  open_now(f);
  fake.liveness = SBX_GONE;
  for (size_t i = 0; i < 4; i++) {
    seen a = {0}, b = {0};
    fake_next(FAKE_EXEC, hangs);
    fake_next(FAKE_EXEC, hangs);
    begin_exec(f, &a, "sleep", 0);
    begin_exec(f, &b, "sleep", 0);
    settle(f);
    p = (seen){0};
    begin_pause(f, &p);
    fake_release(FAKE_EXEC, codes[i]);
    settle(f);
    fake_release(FAKE_CONTROL, SBX_OK);
    settle(f);
    assert_seen(&p, SBX_OK);
    /* Whose end is heard of later only, too. */
    fake_release(FAKE_EXEC, codes[i]);
    settle(f);
    assert_seen(&a, SBX_ECONFLICT);
    assert_seen(&b, SBX_ECONFLICT);
    assert_true(a.err.may_have_run);
    assert_says(&a, "was paused while this call ran; the command may have run");
    assert_says(&a, "call resume() first (fake exec failed");
  }
  run_exec(f, &again, "true", 0);
  assert_seen(&again, SBX_OK);
  assert_int_equal(fake.count[FAKE_PROBE], 0);
  assert_int_equal(fake.sessions, 1);
}

static void test_a_look_that_a_pause_overtakes(void **state) {
  fixture *f = *state;
  seen a = {0}, p = {0};
  open_now(f);
  fake.liveness = SBX_GONE;
  fake_next(FAKE_EXEC, (fake_plan){.code = SBX_ENET});
  fake_next(FAKE_PROBE, hangs);
  run_exec(f, &a, "true", 0);
  begin_pause(f, &p);
  fake_release(FAKE_PROBE, SBX_OK);
  fake_release(FAKE_CONTROL, SBX_OK);
  settle(f);
  assert_seen(&a, SBX_ECONFLICT);
  assert_int_equal(fake.sessions, 1);
}

static void test_a_result_of_a_call_at_the_pause_is_one(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0}, p = {0};
  /* Its limits are in real time, which valgrind stretches beyond what the steps below expect. */
  if (getenv("SBX_VALGRIND") != NULL)
    skip();
  open_now(f);
  fake_next(FAKE_EXEC, hangs);
  fake_next(FAKE_EXEC, hangs);
  fake_next(FAKE_KILL, (fake_plan){.code = SBX_ENET});
  fake_next(FAKE_GET, hangs);
  begin_exec(f, &a, "sleep", 0);
  begin_exec(f, &b, "sleep", 500);
  begin_read(f, &c);
  settle(f);
  begin_pause(f, &p);
  fake_release(FAKE_EXEC, SBX_OK);
  fake_release(FAKE_GET, SBX_EFORBIDDEN);
  await_count(f, FAKE_KILL, 1);
  settle(f);
  fake_release(FAKE_EXEC, SBX_ENET);
  settle(f);
  assert_seen(&a, SBX_OK);
  assert_seen(&b, SBX_OK);
  assert_int_equal(b.result.outcome, SBX_TIMED_OUT);
  assert_seen(&c, SBX_EFORBIDDEN);
  fake_release(FAKE_CONTROL, SBX_OK);
  settle(f);
  assert_seen(&p, SBX_OK);
}

static void test_a_refused_pause_hides_no_loss(void **state) {
  fixture *f = *state;
  seen a = {0}, p = {0};
  open_now(f);
  fake_next(FAKE_EXEC, hangs);
  begin_exec(f, &a, "sleep", 0);
  begin_pause(f, &p);
  fake_release(FAKE_CONTROL, SBX_EQUOTA);
  settle(f);
  assert_seen(&p, SBX_EQUOTA);
  fake_release(FAKE_EXEC, SBX_ELOST);
  settle(f);
  assert_seen(&a, SBX_ELOST);
}

static void test_a_pause_of_what_is_gone(void **state) {
  fixture *f = *state;
  seen a = {0}, p = {0};
  open_now(f);
  fake.liveness = SBX_GONE;
  fake_next(FAKE_EXEC, hangs);
  begin_exec(f, &a, "sleep", 0);
  begin_pause(f, &p);
  fake_release(FAKE_CONTROL, SBX_ENOTFOUND);
  settle(f);
  assert_seen(&p, SBX_ELOST);
  assert_seen(&a, SBX_ELOST);
}

static void test_close_deletes_what_is_paused(void **state) {
  fixture *f = *state;
  seen p = {0}, c = {0};
  open_now(f);
  begin_pause(f, &p);
  begin_close_within(f, &c, 0);
  settle(f);
  assert_seen(&p, SBX_ECLOSED);
  assert_seen(&c, SBX_OK);
  assert_log("open1 control1 close1 ");
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
      T(test_a_call_during_a_pause_is_not_sent),
      T(test_what_ran_at_the_pause_is_not_lost),
      T(test_a_look_that_a_pause_overtakes),
      T(test_a_result_of_a_call_at_the_pause_is_one),
      T(test_a_refused_pause_hides_no_loss),
      T(test_a_pause_of_what_is_gone),
      T(test_close_deletes_what_is_paused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
