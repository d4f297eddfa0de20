/* Tests of the close of a sandbox: what it waits for, whom it ends, and the one delete. */
#include "support/sandbox_fixture.h"

/* ---- close ---- */

static void test_close_without_a_start_sends_nothing(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  begin_close(f, &a);
  assert_not_seen(&a);
  begin_close(f, &b);
  settle(f);
  assert_seen(&a, SBX_OK);
  assert_seen(&b, SBX_OK);
  assert_log("");
}

static void test_close_is_shared_and_deletes_once(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  open_now(f);
  fake_next(FAKE_CLOSE, (fake_plan){.hang = true});
  begin_close(f, &a);
  begin_close(f, &b);
  settle(f);
  assert_not_seen(&a);
  fake_release(FAKE_CLOSE, SBX_OK);
  settle(f);
  assert_seen(&a, SBX_OK);
  assert_seen(&b, SBX_OK);
  assert_null(sbx_sandbox_id(f->sb));
  assert_int_equal(fake.live_sessions, 0);
  begin_close(f, &c);
  settle(f);
  assert_seen(&c, SBX_OK);
  assert_log("open1 close1 ");
}

static void test_a_closed_sandbox_refuses_calls(void **state) {
  fixture *f = *state;
  seen s[6] = {0};
  open_now(f);
  fake_next(FAKE_CLOSE, (fake_plan){.hang = true});
  begin_close(f, &s[0]);
  begin_start(f, &s[1]);
  begin_exec(f, &s[2], "true", 0);
  begin_write(f, &s[3]);
  begin_read(f, &s[4]);
  begin_list(f, &s[5]);
  for (int i = 1; i < 6; i++) {
    assert_seen(&s[i], SBX_ECLOSED);
    assert_says(&s[i], "closed");
  }
  fake_release(FAKE_CLOSE, SBX_OK);
  settle(f);
  assert_log("open1 close1 ");
}

static void test_close_waits_for_the_start(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  fake_next(FAKE_OPEN, (fake_plan){.hang = true});
  begin_start(f, &a);
  begin_exec(f, &b, "true", 0);
  begin_close(f, &c);
  settle(f);
  assert_not_seen(&c);
  fake_release(FAKE_OPEN, SBX_OK);
  settle(f);
  assert_seen(&a, SBX_OK);
  assert_seen(&b, SBX_OK);
  assert_seen(&c, SBX_OK);
  assert_log("open1 exec1 close1 ");
}

static void test_close_waits_for_a_start_that_nobody_wants(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  fake_next(FAKE_OPEN, (fake_plan){.hang = true});
  begin_start(f, &a);
  sbx_call_cancel(a.call);
  begin_close(f, &b);
  settle(f);
  assert_seen(&a, SBX_ECANCELED);
  assert_not_seen(&b);
  fake_release(FAKE_OPEN, SBX_OK);
  settle(f);
  assert_seen(&b, SBX_OK);
  assert_log("open1 close1 ");
}

static void test_close_waits_for_a_late_start(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  fixture_options(f, "{\"startTimeoutMs\": 10}");
  fake_next(FAKE_OPEN, (fake_plan){.hang = true});
  begin_start(f, &a);
  sbx_call_cancel(a.call);
  begin_close(f, &b);
  f->sb->places.late_timeout_ms = 10;
  await(f, &b);
  assert_seen(&b, SBX_OK);
  assert_log("open1 close1 ");
}

static void test_close_does_not_wait_long_for_a_late_start(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  fixture_options(f, "{\"startTimeoutMs\": 10}");
  fake_next(FAKE_OPEN, (fake_plan){.hang = true});
  f->sb->places.hurry_timeout_ms = 10;
  begin_start(f, &a);
  await(f, &a);
  assert_seen(&a, SBX_ETIMEOUT);
  assert_says(&a, "within 10 ms; if it comes up late it is deleted");
  begin_close(f, &b);
  await(f, &b);
  assert_seen(&b, SBX_OK);
  assert_log("open1 close1 ");
}

static void test_a_search_that_is_not_answered(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  f->sb->places.search_timeout_ms = 10;
  fake_next(FAKE_OPEN, (fake_plan){.code = SBX_ENET});
  fake_next(FAKE_CLOSE, (fake_plan){.hang = true});
  begin_start(f, &a);
  begin_close(f, &b);
  await(f, &b);
  assert_seen(&a, SBX_ENET);
  assert_seen(&b, SBX_ETIMEOUT);
  assert_says(&b,
              "may still exist: no answer of https://api.fake.test within 10 ms; close it again");
  begin_close(f, &c);
  settle(f);
  assert_seen(&c, SBX_OK);
  assert_log("open1 close1 close1 ");
}

static void test_close_waits_for_a_call(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  open_now(f);
  fake_next(FAKE_EXEC, (fake_plan){.hang = true});
  begin_exec(f, &a, "sleep 1", 0);
  begin_close(f, &b);
  settle(f);
  assert_not_seen(&a);
  assert_log("open1 exec1 ");
  fake_release(FAKE_EXEC, SBX_OK);
  settle(f);
  assert_seen(&a, SBX_OK);
  assert_seen(&b, SBX_OK);
  assert_log("open1 exec1 close1 ");
}

/* ---- the grace of a close ---- */

static const fake_plan hangs = {.hang = true};

/* Two commands, one without a limit, and a read, all of which hang. */
static void begin_hanging(fixture *f, seen s[3]) {
  open_now(f);
  fake_next(FAKE_EXEC, hangs);
  fake_next(FAKE_EXEC, hangs);
  fake_next(FAKE_GET, hangs);
  begin_exec(f, &s[0], "sleep", 30000);
  begin_exec(f, &s[1], "sleep", SBX_NO_TIMEOUT);
  begin_read(f, &s[2]);
  settle(f);
}

static void assert_shut(const seen *s, bool may_have_run) {
  assert_seen(s, SBX_ECLOSED);
  assert_true(s->err.may_have_run == may_have_run);
  assert_says(s, "the sandbox was closed");
}

static void test_a_close_ends_what_its_grace_does_not_suffice_for(void **state) {
  fixture *f = *state;
  seen s[3] = {0}, c = {0};
  begin_hanging(f, s);
  begin_close_within(f, &c, 30);
  settle(f);
  assert_not_seen(&s[0]);
  assert_not_seen(&s[2]);
  /* What has no limit is not waited for. */
  assert_shut(&s[1], true);
  assert_says(&s[1], "while this call ran; the command was ended before it was done; to let calls "
                     "end, wait for them before close(), or give it a longer graceSeconds");
  await(f, &c);
  assert_seen(&c, SBX_OK);
  assert_shut(&s[0], true);
  assert_shut(&s[2], false);
  assert_log("open1 exec1 exec1 get1 kill1 kill1 close1 ");
}

static void test_a_close_without_grace(void **state) {
  fixture *f = *state;
  seen s[3] = {0}, w = {0}, c = {0};
  begin_hanging(f, s);
  fake_next(FAKE_PUT, hangs);
  begin_write(f, &w);
  settle(f);
  begin_close_within(f, &c, 0);
  assert_not_seen(&s[0]);
  settle(f);
  assert_seen(&c, SBX_OK);
  for (int i = 0; i < 2; i++)
    assert_shut(&s[i], true);
  assert_shut(&s[2], false);
  assert_shut(&w, false);
  assert_says(&w, "the file may be incomplete");
  assert_log("open1 exec1 exec1 get1 put1 kill1 kill1 close1 ");
}

static void test_a_second_close_may_shorten_the_grace(void **state) {
  fixture *f = *state;
  seen s[3] = {0}, c[3] = {0};
  begin_hanging(f, s);
  begin_close_within(f, &c[0], 3600000);
  begin_close_within(f, &c[1], 3600000 - 1);
  settle(f);
  assert_not_seen(&c[0]);
  begin_close_within(f, &c[2], 20);
  await(f, &c[0]);
  settle(f);
  for (int i = 0; i < 3; i++)
    assert_seen(&c[i], SBX_OK);
  assert_shut(&s[0], true);
  assert_int_equal(fake.count[FAKE_CLOSE], 1);
}

static void test_a_second_close_does_not_prolong_it(void **state) {
  fixture *f = *state;
  seen s[3] = {0}, c[2] = {0};
  begin_hanging(f, s);
  begin_close_within(f, &c[0], 20);
  begin_close_within(f, &c[1], 3600000);
  await(f, &c[1]);
  settle(f);
  assert_seen(&c[0], SBX_OK);
  assert_shut(&s[0], true);
}

static void test_a_grace_has_a_bound(void **state) {
  fixture *f = *state;
  seen c = {0}, s = {0};
  begin_close_within(f, &c, 3600001);
  assert_seen(&c, SBX_EINVAL);
  run_exec(f, &s, "true", 0);
  assert_seen(&s, SBX_OK);
}

static void test_what_ends_within_the_grace_is_as_it_is(void **state) {
  fixture *f = *state;
  seen s = {0}, c = {0};
  open_now(f);
  fake_next(FAKE_EXEC, hangs);
  begin_exec(f, &s, "sleep", 30000);
  begin_close_within(f, &c, 20);
  settle(f);
  fake.status.exit_code = 3;
  fake_release(FAKE_EXEC, SBX_OK);
  settle(f);
  assert_seen(&s, SBX_OK);
  assert_int_equal(s.result.exit_code, 3);
  assert_seen(&c, SBX_OK);
  assert_log("open1 exec1 close1 ");
}

/* What its user or its limit has ended is told as that. */
static void test_a_close_of_what_ends_already(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  open_now(f);
  fake_next(FAKE_EXEC, hangs);
  fake_next(FAKE_EXEC, hangs);
  fake_next(FAKE_KILL, hangs);
  fake_next(FAKE_KILL, hangs);
  begin_exec(f, &a, "sleep", 30000);
  begin_exec(f, &b, "sleep", 1);
  settle(f);
  sbx_call_cancel(a.call);
  await_count(f, FAKE_KILL, 2);
  begin_close_within(f, &c, 0);
  settle(f);
  assert_not_seen(&c);
  fake_release(FAKE_KILL, SBX_OK);
  fake_release(FAKE_KILL, SBX_OK);
  settle(f);
  assert_seen(&a, SBX_OK);
  assert_int_equal(a.result.outcome, SBX_CANCELLED);
  assert_seen(&b, SBX_OK);
  assert_int_equal(b.result.outcome, SBX_TIMED_OUT);
  assert_seen(&c, SBX_OK);
}

static void test_a_cancel_after_the_grace_changes_nothing(void **state) {
  fixture *f = *state;
  seen s = {0}, c = {0};
  open_now(f);
  fake_next(FAKE_EXEC, hangs);
  fake_next(FAKE_KILL, hangs);
  begin_exec(f, &s, "sleep", 30000);
  settle(f);
  begin_close_within(f, &c, 0);
  sbx_call_cancel(s.call);
  fake_release(FAKE_KILL, SBX_OK);
  settle(f);
  assert_shut(&s, true);
  assert_seen(&c, SBX_OK);
}

static void test_a_kill_without_an_answer_does_not_hold_up_the_close(void **state) {
  fixture *f = *state;
  seen s = {0}, c = {0};
  open_now(f);
  fake_provider.kill_budget_ms = 20;
  fake_next(FAKE_EXEC, hangs);
  fake_next(FAKE_KILL, hangs);
  begin_exec(f, &s, "sleep", SBX_NO_TIMEOUT);
  begin_close(f, &c);
  await(f, &c);
  assert_seen(&c, SBX_OK);
  assert_shut(&s, true);
  assert_log("open1 exec1 kill1 close1 ");
}

static void test_a_close_without_grace_during_the_start(void **state) {
  fixture *f = *state;
  seen s = {0}, e[2] = {0}, c = {0};
  fake_next(FAKE_OPEN, hangs);
  begin_start(f, &s);
  begin_exec(f, &e[0], "true", 0);
  begin_exec(f, &e[1], "true", SBX_NO_TIMEOUT);
  begin_close_within(f, &c, 0);
  settle(f);
  for (int i = 0; i < 2; i++) {
    assert_shut(&e[i], false);
    assert_says(&e[i], "before this call could begin; nothing was run");
  }
  assert_not_seen(&s);
  assert_not_seen(&c);
  fake_release(FAKE_OPEN, SBX_OK);
  settle(f);
  assert_seen(&s, SBX_OK);
  assert_seen(&c, SBX_OK);
  assert_log("open1 close1 ");
}

static void test_a_free_during_the_grace(void **state) {
  fixture *f = *state;
  seen s[3] = {0}, c = {0};
  begin_hanging(f, s);
  begin_close_within(f, &c, 10);
  free_sandbox(f);
  settle(f);
  assert_seen(&c, SBX_ECLOSED);
  assert_seen(&s[0], SBX_ECLOSED);
  assert_log("open1 exec1 exec1 get1 kill1 ");
}

static void test_a_failed_delete_after_the_grace(void **state) {
  fixture *f = *state;
  seen s[3] = {0}, c[2] = {0};
  begin_hanging(f, s);
  fake_next(FAKE_CLOSE, (fake_plan){.code = SBX_EPROVIDER});
  begin_close_within(f, &c[0], 0);
  settle(f);
  assert_shut(&s[0], true);
  assert_seen(&c[0], SBX_EPROVIDER);
  begin_close(f, &c[1]);
  settle(f);
  assert_seen(&c[1], SBX_OK);
  assert_int_equal(fake.count[FAKE_KILL], 2);
}

static void test_a_failed_delete_can_be_tried_again(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0}, d = {0};
  open_now(f);
  fake_next(FAKE_CLOSE, (fake_plan){.code = SBX_EPROVIDER});
  begin_close(f, &a);
  begin_close(f, &b);
  settle(f);
  assert_seen(&a, SBX_EPROVIDER);
  assert_seen(&b, SBX_EPROVIDER);
  assert_says(&a, "may still exist: fake close failed; close it again");
  assert_string_equal(sbx_sandbox_id(f->sb), "fake-1");
  begin_start(f, &c);
  assert_seen(&c, SBX_ECLOSED);
  begin_close(f, &d);
  settle(f);
  assert_seen(&d, SBX_OK);
  assert_log("open1 close1 close1 ");
}

static void test_a_delete_that_finds_nothing_has_succeeded(void **state) {
  fixture *f = *state;
  seen a = {0};
  open_now(f);
  fake_next(FAKE_CLOSE, (fake_plan){.code = SBX_ENOTFOUND});
  begin_close(f, &a);
  settle(f);
  assert_seen(&a, SBX_OK);
}

static void test_a_delete_that_is_not_answered(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  open_now(f);
  f->sb->places.delete_timeout_ms = 10;
  fake_next(FAKE_CLOSE, (fake_plan){.hang = true});
  begin_close(f, &a);
  await(f, &a);
  assert_seen(&a, SBX_ETIMEOUT);
  begin_close(f, &b);
  settle(f);
  assert_seen(&b, SBX_OK);
}

static void test_close_tries_a_failed_clean_up_again(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  fake_next(FAKE_OPEN, (fake_plan){.code = SBX_ENET});
  fake_next(FAKE_CLOSE, (fake_plan){.code = SBX_ENET});
  fake_next(FAKE_CLOSE, (fake_plan){.code = SBX_ENET});
  begin_start(f, &a);
  settle(f);
  assert_seen(&a, SBX_ENET);
  begin_close(f, &b);
  settle(f);
  assert_seen(&b, SBX_ENET);
  begin_close(f, &c);
  settle(f);
  assert_seen(&c, SBX_OK);
  assert_log("open1 close1 close1 close1 ");
}

static void test_a_start_tries_a_failed_clean_up_again(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  fake_next(FAKE_OPEN, (fake_plan){.code = SBX_ENET});
  fake_next(FAKE_CLOSE, (fake_plan){.code = SBX_ENET});
  begin_start(f, &a);
  settle(f);
  begin_start(f, &b);
  settle(f);
  assert_seen(&b, SBX_OK);
  assert_log("open1 close1 close1 open2 ");
  begin_close(f, &c);
  settle(f);
  assert_seen(&c, SBX_OK);
  assert_log("open1 close1 close1 open2 close2 ");
}

static void test_what_was_only_attached_is_not_deleted(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  fake.attached = true;
  fake_next(FAKE_OPEN, (fake_plan){.code = SBX_ENET});
  begin_start(f, &a);
  settle(f);
  assert_seen(&a, SBX_ENET);
  begin_start(f, &b);
  settle(f);
  assert_seen(&b, SBX_OK);
  begin_close(f, &c);
  settle(f);
  assert_seen(&c, SBX_OK);
  assert_log("open1 open2 ");
  assert_int_equal(fake.live_sessions, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(test_close_without_a_start_sends_nothing),
      T(test_close_is_shared_and_deletes_once),
      T(test_a_closed_sandbox_refuses_calls),
      T(test_close_waits_for_the_start),
      T(test_close_waits_for_a_start_that_nobody_wants),
      T(test_close_waits_for_a_late_start),
      T(test_close_does_not_wait_long_for_a_late_start),
      T(test_a_search_that_is_not_answered),
      T(test_close_waits_for_a_call),
      T(test_a_close_ends_what_its_grace_does_not_suffice_for),
      T(test_a_close_without_grace),
      T(test_a_second_close_may_shorten_the_grace),
      T(test_a_second_close_does_not_prolong_it),
      T(test_a_grace_has_a_bound),
      T(test_what_ends_within_the_grace_is_as_it_is),
      T(test_a_close_of_what_ends_already),
      T(test_a_cancel_after_the_grace_changes_nothing),
      T(test_a_kill_without_an_answer_does_not_hold_up_the_close),
      T(test_a_close_without_grace_during_the_start),
      T(test_a_free_during_the_grace),
      T(test_a_failed_delete_after_the_grace),
      T(test_a_failed_delete_can_be_tried_again),
      T(test_a_delete_that_finds_nothing_has_succeeded),
      T(test_a_delete_that_is_not_answered),
      T(test_close_tries_a_failed_clean_up_again),
      T(test_a_start_tries_a_failed_clean_up_again),
      T(test_what_was_only_attached_is_not_deleted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
