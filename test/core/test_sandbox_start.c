/* Tests of the port's life: start, free, and what a start leaves behind. */
#include "support/sandbox_fixture.h"

/* ---- start ---- */

static void test_start_is_lazy_and_idempotent(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  settle(f);
  assert_log("");
  assert_null(sbx_sandbox_id(f->sb));
  begin_start(f, &a);
  assert_not_seen(&a);
  await(f, &a);
  assert_seen(&a, SBX_OK);
  assert_string_equal(sbx_sandbox_id(f->sb), "fake-1");
  begin_start(f, &b);
  assert_not_seen(&b);
  await(f, &b);
  assert_seen(&b, SBX_OK);
  assert_log("open1 ");
}

static void test_all_calls_share_one_start(void **state) {
  fixture *f = *state;
  seen s[5] = {0};
  fake_next(FAKE_OPEN, (fake_plan){.hang = true});
  begin_start(f, &s[0]);
  begin_start(f, &s[1]);
  begin_exec(f, &s[2], "first", 0);
  begin_write(f, &s[3]);
  run_exec(f, &s[4], "second", 0);
  assert_log("open1 ");
  fake_release(FAKE_OPEN, SBX_OK);
  settle(f);
  for (int i = 0; i < 5; i++)
    assert_seen(&s[i], SBX_OK);
  assert_log("open1 exec1 put1 exec1 ");
  assert_string_equal(fake.text, "second");
}

static void test_a_failed_start_fails_all_and_leaves_the_object_usable(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  fake_next(FAKE_OPEN, (fake_plan){.code = SBX_EPROVIDER});
  begin_start(f, &a);
  run_exec(f, &b, "true", 0);
  assert_seen(&a, SBX_EPROVIDER);
  assert_seen(&b, SBX_EPROVIDER);
  assert_string_equal(a.err.provider, "fake");
  assert_false(b.err.may_have_run);
  assert_says(&b, "could not be started: fake open failed; nothing was run");
  assert_null(sbx_sandbox_id(f->sb));
  run_exec(f, &c, "true", 0);
  assert_seen(&c, SBX_OK);
  /* What the failed one may have made is deleted. */
  assert_log("open1 close1 open2 exec2 ");
}

static void test_a_late_create_is_deleted(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  fixture_options(f, "{\"startTimeoutMs\": 10}");
  fake_next(FAKE_OPEN, (fake_plan){.hang = true});
  begin_start(f, &a);
  begin_exec(f, &b, "true", 0);
  await(f, &a);
  assert_seen(&a, SBX_ETIMEOUT);
  assert_seen(&b, SBX_ETIMEOUT);
  assert_says(&a, "no answer of https://api.fake.test within 10 ms");
  assert_log("open1 ");
  /* Usable at once, with a new one. */
  run_exec(f, &c, "true", 0);
  assert_seen(&c, SBX_OK);
  assert_log("open1 open2 exec2 ");
  fake_release(FAKE_OPEN, SBX_OK);
  settle(f);
  assert_log("open1 open2 exec2 close1 ");
  assert_string_equal(sbx_sandbox_id(f->sb), "fake-2");
  assert_int_equal(fake.live_sessions, 1);
}

static void test_a_lost_create_is_given_up_and_searched_for(void **state) {
  fixture *f = *state;
  seen a = {0};
  fixture_options(f, "{\"startTimeoutMs\": 10}");
  f->sb->places.late_timeout_ms = 10;
  fake_next(FAKE_OPEN, (fake_plan){.hang = true});
  begin_start(f, &a);
  await_count(f, FAKE_CLOSE, 1);
  settle(f);
  assert_seen(&a, SBX_ETIMEOUT);
  assert_log("open1 close1 ");
  assert_int_equal(fake.live_sessions, 0);
}

static void test_a_cancelled_caller_leaves_the_start_alone(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  fake_next(FAKE_OPEN, (fake_plan){.hang = true});
  begin_start(f, &a);
  begin_exec(f, &b, "true", 0);
  sbx_call_cancel(b.call);
  sbx_call_cancel(b.call);
  settle(f);
  assert_seen(&b, SBX_ECANCELED);
  assert_false(b.err.may_have_run);
  assert_not_seen(&a);
  sbx_call_cancel(a.call);
  settle(f);
  assert_seen(&a, SBX_ECANCELED);
  fake_release(FAKE_OPEN, SBX_OK);
  settle(f);
  begin_start(f, &c);
  settle(f);
  assert_seen(&c, SBX_OK);
  assert_log("open1 ");
}

static void test_a_cancel_just_after_the_start_has_ended(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake_next(FAKE_OPEN, (fake_plan){.hang = true});
  run_exec(f, &s, "true", 0);
  fake_release(FAKE_OPEN, SBX_OK);
  sbx_call_cancel(s.call);
  settle(f);
  assert_seen(&s, SBX_ECANCELED);
  assert_log("open1 ");
}

/* ---- free, and the loop's end ---- */

static void test_free_of_an_idle_sandbox_deletes_nothing(void **state) {
  fixture *f = *state;
  open_now(f);
  free_sandbox(f);
  assert_int_equal(fake.live_sessions, 0);
  assert_int_equal(fake.live_configs, 0);
  settle(f);
  assert_log("open1 ");
}

static void begin_all(fixture *f, seen s[6]) {
  fake_next(FAKE_EXEC, (fake_plan){.hang = true, .deaf = true});
  fake_next(FAKE_EXEC, (fake_plan){.hang = true});
  fake_next(FAKE_KILL, (fake_plan){.hang = true, .deaf = true});
  fake_next(FAKE_PUT, (fake_plan){.hang = true, .deaf = true});
  fake_next(FAKE_GET, (fake_plan){.code = SBX_ENET});
  fake_next(FAKE_PROBE, (fake_plan){.hang = true, .deaf = true});
  begin_exec(f, &s[0], "a", 0);
  begin_exec(f, &s[1], "b", 0);
  begin_write(f, &s[2]);
  begin_read(f, &s[3]);
  settle(f);
  sbx_call_cancel(s[1].call);
  begin_close(f, &s[4]);
  settle(f);
  assert_log("open1 exec1 exec1 put1 get1 probe1 kill1 ");
  for (int i = 0; i < 5; i++)
    assert_not_seen(&s[i]);
}

static void test_free_ends_the_calls_in_flight(void **state) {
  fixture *f = *state;
  seen s[6] = {0};
  open_now(f);
  begin_all(f, s);
  free_sandbox(f);
  for (int i = 0; i < 5; i++)
    assert_not_seen(&s[i]);
  settle(f);
  for (int i = 0; i < 5; i++)
    assert_seen(&s[i], SBX_ECLOSED);
  assert_true(s[0].err.may_have_run);
  assert_int_equal(fake.count[FAKE_CLOSE], 0);
  assert_int_equal(fake.live_sessions, 0);
  assert_int_equal(fake.live_configs, 0);
}

static void test_free_ends_the_callers_of_a_start(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  fake_next(FAKE_OPEN, (fake_plan){.hang = true, .deaf = true});
  begin_start(f, &a);
  begin_exec(f, &b, "true", 0);
  begin_close(f, &c);
  settle(f);
  free_sandbox(f);
  settle(f);
  assert_seen(&a, SBX_ECLOSED);
  assert_seen(&b, SBX_ECLOSED);
  assert_false(b.err.may_have_run);
  assert_seen(&c, SBX_ECLOSED);
  assert_log("open1 ");
  assert_int_equal(fake.live_sessions, 0);
}

static void test_free_ends_clean_ups(void **state) {
  fixture *f = *state;
  seen a = {0};
  fake_next(FAKE_OPEN, (fake_plan){.code = SBX_ENET});
  fake_next(FAKE_CLOSE, (fake_plan){.hang = true, .deaf = true});
  begin_start(f, &a);
  settle(f);
  assert_seen(&a, SBX_ENET);
  free_sandbox(f);
  settle(f);
  assert_log("open1 close1 ");
  assert_int_equal(fake.live_sessions, 0);
}

static void test_free_inside_a_callback(void **state) {
  fixture *f = *state;
  seen a = {.free_me = f->sb}, b = {0};
  fake_next(FAKE_EXEC, (fake_plan){0});
  fake_next(FAKE_EXEC, (fake_plan){.hang = true});
  begin_exec(f, &a, "true", 0);
  begin_exec(f, &b, "true", 0);
  f->sb = NULL;
  settle(f);
  assert_seen(&a, SBX_OK);
  assert_seen(&b, SBX_ECLOSED);
  assert_int_equal(fake.live_sessions, 0);
  assert_int_equal(fake.live_configs, 0);
}

static void test_free_inside_the_callback_of_close(void **state) {
  fixture *f = *state;
  seen a = {.free_me = f->sb};
  open_now(f);
  begin_close(f, &a);
  f->sb = NULL;
  settle(f);
  assert_seen(&a, SBX_OK);
  assert_int_equal(fake.live_configs, 0);
}

static void end_loop(fixture *f) {
  sbx_loop *loop = f->loop;
  f->loop = NULL;
  sbx_loop_close(loop, on_loop_closed, NULL);
}

static void test_the_end_of_the_loop_ends_the_calls(void **state) {
  fixture *f = *state;
  seen s[6] = {{.free_me = f->sb}};
  open_now(f);
  begin_all(f, s);
  end_loop(f);
  f->sb = NULL;
  settle(f);
  for (int i = 0; i < 5; i++)
    assert_seen(&s[i], SBX_ECLOSED);
  assert_int_equal(fake.count[FAKE_CLOSE], 0);
  assert_int_equal(loops_closed, 1);
}

static void test_the_end_of_the_loop_ends_a_start(void **state) {
  fixture *f = *state;
  seen a = {.free_me = f->sb}, b = {0}, c = {0};
  fake_next(FAKE_OPEN, (fake_plan){.hang = true});
  begin_start(f, &a);
  settle(f);
  end_loop(f);
  begin_exec(f, &b, "true", 0);
  assert_seen(&b, SBX_ECLOSED);
  begin_close(f, &c);
  assert_seen(&c, SBX_ECLOSED);
  f->sb = NULL;
  settle(f);
  assert_seen(&a, SBX_ECLOSED);
  assert_log("open1 "); /* what it made is left alone */
  assert_int_equal(loops_closed, 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(test_start_is_lazy_and_idempotent),
      T(test_all_calls_share_one_start),
      T(test_a_failed_start_fails_all_and_leaves_the_object_usable),
      T(test_a_late_create_is_deleted),
      T(test_a_lost_create_is_given_up_and_searched_for),
      T(test_a_cancelled_caller_leaves_the_start_alone),
      T(test_a_cancel_just_after_the_start_has_ended),
      T(test_free_of_an_idle_sandbox_deletes_nothing),
      T(test_free_ends_the_calls_in_flight),
      T(test_free_ends_the_callers_of_a_start),
      T(test_free_ends_clean_ups),
      T(test_free_inside_a_callback),
      T(test_free_inside_the_callback_of_close),
      T(test_the_end_of_the_loop_ends_the_calls),
      T(test_the_end_of_the_loop_ends_a_start),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
