/* Tests of sbx_sandbox_exec(): outcome, the two clocks, kill, cancel. */
#include "support/sandbox_fixture.h"

static const fake_plan hangs = {.hang = true};

/* ---- outcome ---- */

static void test_exit_code_and_output(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake.output = "hello\n";
  fake.status.exit_code = 7;
  begin_exec(f, &s, "echo hello; exit 7", 0);
  settle(f);
  assert_seen(&s, SBX_OK);
  assert_int_equal(s.result.outcome, SBX_EXITED);
  assert_int_equal(s.result.exit_code, 7);
  assert_int_equal(s.result.termination, SBX_TERM_NONE);
  assert_null(s.result.signal_name);
  assert_string_equal(s.text, "hello\n");
  assert_string_equal(s.streamed, "hello\n");
}

static void test_what_the_provider_is_given(void **state) {
  fixture *f = *state;
  seen s = {0};
  run_exec(f, &s, "a", 0);
  assert_int_equal(fake.timeout_ms, 30000);
  assert_int_equal(fake.max_output_bytes, SBX_MAX_OUTPUT_BYTES_DEFAULT);
  fixture_options(f, "{\"defaultTimeoutMs\": 1234}");
  s = (seen){0};
  run_exec(f, &s, "b", 0);
  assert_int_equal(fake.timeout_ms, 1234);
  s = (seen){0};
  run_exec(f, &s, "c", SBX_NO_TIMEOUT);
  assert_true(fake.timeout_ms == SBX_NO_TIMEOUT);
  assert_string_equal(fake.text, "c");
}

static void test_arguments_are_copied_for_the_time_of_the_start(void **state) {
  fixture *f = *state;
  seen s = {0};
  char bytes[] = "echo dir input NAME value";
  sbx_env_var env[] = {{sbx_slice_of(bytes + 15, 4), sbx_slice_of(bytes + 20, 5)}};
  sbx_exec_spec spec = {.text = sbx_slice_of(bytes, 4),
                        .argc = 9, /* not of this kind: never looked at */
                        .cwd = sbx_slice_of(bytes + 5, 3),
                        .stdin_bytes = sbx_slice_of(bytes + 9, 5),
                        .env = env,
                        .env_count = 1};
  begin_spec(f, &s, &spec);
  memset(bytes, '#', sizeof bytes);
  memset(env, 0, sizeof env);
  settle(f);
  assert_seen(&s, SBX_OK);
  assert_string_equal(fake.text, "echo");
  assert_string_equal(fake.cwd, "dir");
  assert_string_equal(fake.stdin_bytes, "input");
  assert_string_equal(fake.env, "value");
}

static void test_an_argument_list_is_copied_for_the_time_of_the_start(void **state) {
  fixture *f = *state;
  seen s = {0};
  char bytes[] = "printf -- arg";
  sbx_slice argv[] = {sbx_slice_of(bytes, 6), sbx_slice_of(NULL, 0), sbx_slice_of(bytes + 10, 3)};
  sbx_exec_spec spec = {.kind = SBX_EXEC_ARGV, .argv = argv, .argc = 3};
  begin_spec(f, &s, &spec);
  memset(bytes, '#', sizeof bytes);
  memset(argv, 0, sizeof argv);
  settle(f);
  assert_seen(&s, SBX_OK);
  assert_string_equal(fake.argv, "arg");
}

static void test_a_signal(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  fake.status.outcome = SBX_SIGNALLED;
  fake.status.signal_number = 15;
  fake.status.signal_name = "SIGTERM";
  fake.status.background_killed = true;
  run_exec(f, &a, "kill $$", 0);
  assert_int_equal(a.result.outcome, SBX_SIGNALLED);
  assert_int_equal(a.result.exit_code, 143);
  assert_string_equal(a.result.signal_name, "SIGTERM");
  assert_true(a.result.background_killed);
  fake.status.signal_number = 0;
  fake.status.signal_name = NULL;
  run_exec(f, &b, "kill $$", 0);
  assert_int_equal(b.result.exit_code, 137);
  assert_null(b.result.signal_name);
}

static void assert_timed_out(const seen *s, sbx_termination termination) {
  assert_seen(s, SBX_OK);
  assert_int_equal(s->result.outcome, SBX_TIMED_OUT);
  assert_int_equal(s->result.exit_code, 124);
  assert_int_equal(s->result.termination, termination);
  assert_null(s->result.signal_name);
}

static void test_a_limit_that_the_provider_kept(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake.status.limit_kept = true;
  fake.status.tree_gone = false;
  fake.output = "some";
  run_exec(f, &s, "sleep 9", 0);
  assert_timed_out(&s, SBX_TERM_REQUESTED);
  assert_string_equal(s.text, "some");
  assert_int_equal(fake.count[FAKE_KILL], 0);
}

/* ---- our own clock ---- */

/* Runs a command that does not end before its limit. */
static void time_out(fixture *f, seen *s) {
  fake_next(FAKE_EXEC, hangs);
  begin_exec(f, s, "sleep 30", 10);
  await(f, s);
}

static void test_timeout_with_a_confirmed_kill(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake.output = "before\n";
  time_out(f, &s);
  assert_timed_out(&s, SBX_TERM_CONFIRMED);
  assert_string_equal(s.text, "before\n");
  assert_true(s.result.duration_ms >= 10);
  assert_log("open1 exec1 kill1 ");
}

static void test_the_margin_is_the_provider_s_time(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake_provider.limit_margin_ms = 20;
  fake_next(FAKE_EXEC, hangs);
  begin_exec(f, &s, "sleep 30", 1);
  await(f, &s);
  assert_timed_out(&s, SBX_TERM_CONFIRMED);
  assert_int_equal(fake.timeout_ms, 1);
  assert_true(s.result.duration_ms >= 21);
}

static void test_the_start_does_not_count(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake_next(FAKE_OPEN, hangs);
  run_exec(f, &s, "true", 200);
  uv_sleep(210);
  settle(f);
  assert_not_seen(&s);
  fake_release(FAKE_OPEN, SBX_OK);
  settle(f);
  assert_int_equal(s.result.outcome, SBX_EXITED);
}

static void test_timeout_with_a_tree_that_was_not_seen_to_end(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake.status.tree_gone = false;
  time_out(f, &s);
  /* The kill was accepted, and the command then ended: not all that it had started. */
  assert_timed_out(&s, SBX_TERM_REQUESTED);
}

static void test_timeout_with_a_kill_that_looks_for_the_tree(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake.status.tree_gone = false;
  fake_provider.kill_confirms = true;
  time_out(f, &s);
  assert_timed_out(&s, SBX_TERM_CONFIRMED);
}

static void test_timeout_with_a_kill_that_is_accepted_only(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake_provider.kill_budget_ms = 10;
  fake.kill_is_ignored = true;
  time_out(f, &s);
  assert_timed_out(&s, SBX_TERM_REQUESTED);
  assert_int_equal(fake.count[FAKE_PROBE], 0);
}

static void test_timeout_with_a_refused_kill(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake_provider.kill_budget_ms = 10;
  fake_next(FAKE_KILL, (fake_plan){.code = SBX_EPROVIDER});
  time_out(f, &s);
  assert_timed_out(&s, SBX_TERM_UNKNOWN);
  assert_log("open1 exec1 kill1 probe1 ");
}

static void answer_nothing(fixture *f, seen *s) {
  fake_provider.kill_budget_ms = 10;
  fake_next(FAKE_KILL, hangs);
  time_out(f, s);
}

static void test_a_silent_service_and_a_sandbox_that_lives(void **state) {
  fixture *f = *state;
  seen s = {0};
  answer_nothing(f, &s);
  assert_timed_out(&s, SBX_TERM_UNKNOWN);
  assert_log("open1 exec1 kill1 probe1 ");
}

static void test_a_silent_service_and_no_answer_to_the_probe(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake_next(FAKE_PROBE, (fake_plan){.code = SBX_ETIMEOUT});
  answer_nothing(f, &s);
  assert_timed_out(&s, SBX_TERM_UNKNOWN);
}

static void test_a_silent_service_and_a_sandbox_that_is_gone(void **state) {
  fixture *f = *state;
  seen s = {0}, next = {0};
  fake.liveness = SBX_GONE;
  answer_nothing(f, &s);
  assert_seen(&s, SBX_ELOST);
  assert_true(s.err.may_have_run);
  run_exec(f, &next, "true", 0);
  assert_seen(&next, SBX_OK);
  assert_log("open1 exec1 kill1 probe1 open2 exec2 ");
}

/* A command ends by itself after its limit, while the kill is not answered. */
static void end_during_the_kill(fixture *f, seen *s) {
  fake_next(FAKE_EXEC, hangs);
  fake_next(FAKE_KILL, hangs);
  begin_exec(f, s, "sleep 30", 10);
  await_count(f, FAKE_KILL, 1);
  fake_release(FAKE_EXEC, SBX_OK);
  settle(f);
}

static void test_timeout_of_a_command_that_ends_by_itself_meanwhile(void **state) {
  fixture *f = *state;
  seen s = {0};
  end_during_the_kill(f, &s);
  /* The provider saw the tree end: the answer to the kill is not waited for. */
  assert_timed_out(&s, SBX_TERM_CONFIRMED);
}

static void test_the_answer_to_a_kill_is_waited_for(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake.status.tree_gone = false;
  end_during_the_kill(f, &s);
  assert_not_seen(&s);
  fake_release(FAKE_KILL, SBX_ENOTFOUND);
  settle(f);
  assert_timed_out(&s, SBX_TERM_UNKNOWN);
  assert_int_equal(fake.count[FAKE_PROBE], 0);
}

static void test_timeout_without_a_way_to_kill(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake_provider.caps &= ~(uint32_t)SBX_CAP_KILL;
  time_out(f, &s);
  assert_timed_out(&s, SBX_TERM_UNKNOWN);
  assert_int_equal(fake.count[FAKE_KILL], 0);
}

/* ---- cancel ---- */

static void test_cancel_in_flight(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake.output = "so far";
  open_now(f);
  fake_next(FAKE_EXEC, hangs);
  run_exec(f, &s, "sleep 30", 0);
  sbx_call_cancel(s.call);
  sbx_call_cancel(s.call);
  assert_not_seen(&s);
  settle(f);
  assert_seen(&s, SBX_OK);
  assert_int_equal(s.result.outcome, SBX_CANCELLED);
  assert_int_equal(s.result.exit_code, 130);
  assert_int_equal(s.result.termination, SBX_TERM_CONFIRMED);
  assert_string_equal(s.text, "so far");
  assert_log("open1 exec1 kill1 ");
}

static void test_cancel_does_not_probe(void **state) {
  fixture *f = *state;
  seen s = {0};
  open_now(f);
  fake_provider.kill_budget_ms = 10;
  fake_next(FAKE_EXEC, hangs);
  fake_next(FAKE_KILL, hangs);
  run_exec(f, &s, "sleep 30", 0);
  sbx_call_cancel(s.call);
  await(f, &s);
  assert_seen(&s, SBX_OK);
  assert_int_equal(s.result.outcome, SBX_CANCELLED);
  assert_int_equal(s.result.termination, SBX_TERM_UNKNOWN);
  assert_int_equal(fake.count[FAKE_PROBE], 0);
}

static void test_a_timeout_wins_over_a_cancel(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  fake_provider.kill_budget_ms = 40;
  open_now(f);
  fake_next(FAKE_EXEC, hangs);
  fake_next(FAKE_KILL, hangs);
  begin_exec(f, &a, "sleep 30", 10);
  sbx_call_cancel(a.call);
  await(f, &a);
  assert_timed_out(&a, SBX_TERM_UNKNOWN);
  assert_int_equal(fake.count[FAKE_KILL], 1);
  fake_next(FAKE_EXEC, hangs);
  fake_next(FAKE_KILL, hangs);
  begin_exec(f, &b, "sleep 30", 10);
  await_count(f, FAKE_KILL, 2);
  sbx_call_cancel(b.call);
  await(f, &b);
  assert_timed_out(&b, SBX_TERM_UNKNOWN);
  assert_int_equal(fake.count[FAKE_KILL], 2);
}

static void test_cancel_after_the_end_changes_nothing(void **state) {
  fixture *f = *state;
  seen s = {0};
  open_now(f);
  fake_next(FAKE_EXEC, hangs);
  run_exec(f, &s, "true", 0);
  fake_release(FAKE_EXEC, SBX_OK);
  sbx_call_cancel(s.call);
  settle(f);
  assert_seen(&s, SBX_OK);
  assert_int_equal(s.result.outcome, SBX_EXITED);
  assert_int_equal(fake.count[FAKE_KILL], 0);
}

static void test_cancel_and_free_inside_the_output_callback(void **state) {
  fixture *f = *state;
  seen a = {.cancel_on_output = true}, b = {.free_on_output = true, .free_me = f->sb};
  fake.output = "bytes";
  fake_next(FAKE_EXEC, hangs);
  run_exec(f, &a, "yes", 0);
  assert_int_equal(a.result.outcome, SBX_CANCELLED);
  assert_seen(&a, SBX_OK);
  fake_next(FAKE_EXEC, hangs);
  begin_exec(f, &b, "yes", 0);
  f->sb = NULL;
  settle(f);
  assert_seen(&b, SBX_ECLOSED);
  assert_int_equal(fake.live_sessions, 0);
}

/* The fake provider writes from inside its exec(); the user must not see that before exec() and the
 * call that led to it have returned. */
static void test_output_never_comes_from_inside_a_call(void **state) {
  fixture *f = *state;
  seen warm = {0}, s = {0};
  run_exec(f, &warm, "yes", 0);
  fake.output = "bytes";
  begin_exec(f, &s, "yes", 0);
  assert_string_equal(s.streamed, "");
  settle(f);
  assert_string_equal(s.streamed, "bytes");
  assert_seen(&s, SBX_OK);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(test_exit_code_and_output),
      T(test_what_the_provider_is_given),
      T(test_arguments_are_copied_for_the_time_of_the_start),
      T(test_an_argument_list_is_copied_for_the_time_of_the_start),
      T(test_a_signal),
      T(test_a_limit_that_the_provider_kept),
      T(test_timeout_with_a_confirmed_kill),
      T(test_the_margin_is_the_provider_s_time),
      T(test_the_start_does_not_count),
      T(test_timeout_with_a_tree_that_was_not_seen_to_end),
      T(test_timeout_with_a_kill_that_looks_for_the_tree),
      T(test_timeout_with_a_kill_that_is_accepted_only),
      T(test_timeout_with_a_refused_kill),
      T(test_a_silent_service_and_a_sandbox_that_lives),
      T(test_a_silent_service_and_no_answer_to_the_probe),
      T(test_a_silent_service_and_a_sandbox_that_is_gone),
      T(test_timeout_of_a_command_that_ends_by_itself_meanwhile),
      T(test_the_answer_to_a_kill_is_waited_for),
      T(test_timeout_without_a_way_to_kill),
      T(test_output_never_comes_from_inside_a_call),
      T(test_cancel_in_flight),
      T(test_cancel_does_not_probe),
      T(test_a_timeout_wins_over_a_cancel),
      T(test_cancel_after_the_end_changes_nothing),
      T(test_cancel_and_free_inside_the_output_callback),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
