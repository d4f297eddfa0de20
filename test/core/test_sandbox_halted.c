/* Tests of a sandbox that has stopped and keeps its files: it is started again, once for all who
 * wait, and a call whose work was refused meanwhile goes on when nothing of it was done. */
#include "support/sandbox_fixture.h"

static const fake_plan hangs = {.hang = true};
/* A command that a sandbox which does not run has refused. */
static const fake_plan refused = {.code = SBX_ECONFLICT, .no_effect = true};

static int setup(void **state) {
  int rc = fixture_setup(state);
  fake_provider.restarts = true;
  fake.liveness = SBX_HALTED;
  fake.status.started = false;
  return rc;
}

static void test_a_command_goes_on_after_the_start(void **state) {
  fixture *f = *state;
  seen s = {0}, c = {0};
  char text[] = "echo on", cwd[] = "/dir";
  const sbx_exec_spec spec = {.text = sbx_slice_str(text), .cwd = sbx_slice_str(cwd)};
  open_now(f);
  fake_next(FAKE_EXEC, refused);
  begin_spec(f, &s, &spec);
  memset(text, '#', sizeof text - 1);
  memset(cwd, '#', sizeof cwd - 1);
  settle(f);
  assert_seen(&s, SBX_OK);
  assert_string_equal(fake.text, "echo on");
  assert_string_equal(fake.cwd, "/dir");
  begin_close(f, &c);
  settle(f);
  assert_seen(&c, SBX_OK);
  assert_log("open1 exec1 probe1 open1 exec1 close1 ");
}

static void test_files_too(void **state) {
  fixture *f = *state;
  seen w = {0}, r = {0}, l = {0};
  open_now(f);
  fake_next(FAKE_PUT, refused);
  begin_write(f, &w);
  settle(f);
  assert_seen(&w, SBX_OK);
  assert_string_equal(fake.path, "dir/file");
  assert_string_equal(fake.bytes, "bytes");
  fake_next(FAKE_GET, refused);
  begin_read(f, &r);
  settle(f);
  assert_seen(&r, SBX_OK);
  assert_string_equal(r.text, "content");
  fake_next(FAKE_LIST, refused);
  begin_list(f, &l);
  settle(f);
  assert_seen(&l, SBX_OK);
  assert_log("open1 put1 probe1 open1 put1 get1 probe1 open1 get1 list1 probe1 open1 list1 ");
}

static void test_a_large_file_is_not_held_for_it(void **state) {
  fixture *f = *state;
  seen s = {0}, again = {0};
  size_t size = (1 << 20) + 1;
  char *bytes = calloc(1, size);
  open_now(f);
  fake_next(FAKE_PUT, refused);
  begin_write_of(f, &s, sbx_slice_of(bytes, size));
  settle(f);
  assert_seen(&s, SBX_ECONFLICT);
  assert_says(&s, "the next call starts it again");
  begin_write_of(f, &again, sbx_slice_of(bytes, size));
  settle(f);
  assert_seen(&again, SBX_OK);
  assert_log("open1 put1 probe1 open1 put1 ");
  free(bytes);
}

static void test_what_may_have_run_is_not_begun_again(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  open_now(f);
  fake.status.started = true;
  fake_next(FAKE_EXEC, (fake_plan){.code = SBX_ENET});
  run_exec(f, &a, "true", 0);
  assert_seen(&a, SBX_ENET);
  assert_true(a.err.may_have_run);
  assert_says(&a, "keeps its files, and the next call starts it again; the command may have run");
  assert_string_equal(sbx_sandbox_id(f->sb), "fake-1");
  run_exec(f, &b, "true", 0);
  assert_seen(&b, SBX_OK);
  /* Nor when only one of the two is in doubt. */
  fake_next(FAKE_EXEC, refused);
  run_exec(f, &c, "true", 0);
  assert_seen(&c, SBX_ECONFLICT);
  assert_log("open1 exec1 probe1 open1 exec1 exec1 probe1 ");
}

static void test_once_per_call(void **state) {
  fixture *f = *state;
  seen s = {0};
  open_now(f);
  fake_next(FAKE_EXEC, refused);
  fake_next(FAKE_EXEC, refused);
  run_exec(f, &s, "true", 0);
  assert_seen(&s, SBX_ECONFLICT);
  assert_false(s.err.may_have_run);
  assert_log("open1 exec1 probe1 open1 exec1 probe1 ");
}

static void test_one_start_for_all(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  open_now(f);
  fake_next(FAKE_EXEC, refused);
  fake_next(FAKE_EXEC, refused);
  fake_next(FAKE_OPEN, hangs);
  begin_exec(f, &a, "true", 0);
  begin_exec(f, &b, "true", 0);
  settle(f);
  begin_read(f, &c);
  settle(f);
  assert_not_seen(&a);
  fake_release(FAKE_OPEN, SBX_OK);
  settle(f);
  assert_seen(&a, SBX_OK);
  assert_seen(&b, SBX_OK);
  assert_seen(&c, SBX_OK);
  assert_int_equal(fake.count[FAKE_OPEN], 2);
  assert_int_equal(fake.count[FAKE_EXEC], 4);
}

static void test_a_look_that_came_before_the_start(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  open_now(f);
  fake_next(FAKE_EXEC, refused);
  fake_next(FAKE_EXEC, refused);
  fake_next(FAKE_PROBE, (fake_plan){0});
  fake_next(FAKE_PROBE, hangs);
  begin_exec(f, &a, "true", 0);
  begin_exec(f, &b, "true", 0);
  settle(f);
  assert_seen(&a, SBX_OK);
  assert_not_seen(&b);
  /* It is asked once more, which finds it started. */
  fake_release(FAKE_PROBE, SBX_OK);
  settle(f);
  assert_seen(&b, SBX_OK);
  assert_int_equal(fake.sessions, 1);
}

static void test_a_look_that_comes_after_the_start(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  open_now(f);
  fake_next(FAKE_EXEC, refused);
  fake_next(FAKE_EXEC, (fake_plan){.hang = true, .no_effect = true});
  begin_exec(f, &a, "true", 0);
  begin_exec(f, &b, "true", 0);
  settle(f);
  assert_seen(&a, SBX_OK);
  fake.liveness = SBX_ALIVE;
  fake_release(FAKE_EXEC, SBX_ECONFLICT);
  settle(f);
  assert_seen(&b, SBX_OK);
  /* With a sandbox that has been there all the time, a refusal is one. */
  fake_next(FAKE_EXEC, refused);
  run_exec(f, &c, "true", 0);
  assert_seen(&c, SBX_ECONFLICT);
  assert_log("open1 exec1 exec1 probe1 open1 exec1 probe1 exec1 exec1 probe1 ");
}

static void test_it_cannot_be_started(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  open_now(f);
  fake_next(FAKE_EXEC, refused);
  fake_next(FAKE_OPEN, (fake_plan){.code = SBX_EQUOTA, .no_effect = true});
  run_exec(f, &a, "true", 0);
  assert_seen(&a, SBX_EQUOTA);
  assert_false(a.err.may_have_run);
  assert_says(&a, "has stopped and could not be started again: fake open failed");
  assert_says(&a, "its files are kept");
  run_exec(f, &b, "true", 0);
  assert_seen(&b, SBX_OK);
  begin_close(f, &c);
  settle(f);
  assert_seen(&c, SBX_OK);
  /* Nothing was deleted on the way. */
  assert_log("open1 exec1 probe1 open1 open1 exec1 close1 ");
}

static void test_it_is_not_started_in_time(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  fixture_options(f, "{\"startTimeoutMs\": 50}");
  open_now(f);
  fake_next(FAKE_EXEC, refused);
  fake_next(FAKE_OPEN, hangs);
  begin_exec(f, &a, "true", 0);
  await(f, &a);
  settle(f);
  assert_seen(&a, SBX_ETIMEOUT);
  assert_says(&a, "no answer of https://api.fake.test within 50 ms");
  begin_close(f, &b);
  settle(f);
  assert_seen(&b, SBX_OK);
  assert_log("open1 exec1 probe1 open1 close1 ");
}

static void test_it_is_asked_again_where_that_may_help(void **state) {
  fixture *f = *state;
  seen a = {0};
  open_now(f);
  fake_next(FAKE_EXEC, refused);
  fake_next(FAKE_OPEN, (fake_plan){.code = SBX_ERATE, .no_effect = true, .retry_after_ms = 10});
  begin_exec(f, &a, "true", 0);
  await(f, &a);
  assert_seen(&a, SBX_OK);
  assert_log("open1 exec1 probe1 open1 open1 exec1 ");
}

static void test_it_turns_out_to_be_gone(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  open_now(f);
  fake_next(FAKE_EXEC, refused);
  fake_next(FAKE_OPEN, (fake_plan){.code = SBX_ELOST});
  run_exec(f, &a, "true", 0);
  assert_seen(&a, SBX_ELOST);
  assert_says(&a, "nothing was run; the next call starts a new, empty sandbox");
  assert_int_equal(fake.live_sessions, 0);
  run_exec(f, &b, "true", 0);
  assert_seen(&b, SBX_OK);
  begin_close(f, &c);
  settle(f);
  assert_log("open1 exec1 probe1 open1 open2 exec2 close2 ");
}

static void test_gone_and_not_to_be_replaced(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  fixture_options(f, "{\"onLost\": \"reject\"}");
  open_now(f);
  fake_next(FAKE_EXEC, refused);
  fake_next(FAKE_OPEN, (fake_plan){.code = SBX_ELOST});
  run_exec(f, &a, "true", 0);
  assert_seen(&a, SBX_ELOST);
  assert_says(&a, "make a new sandbox object");
  run_exec(f, &b, "true", 0);
  assert_seen(&b, SBX_ELOST);
}

/* Two commands: one waits for the start, one runs still. */
static void begin_to_start(fixture *f, seen *a, seen *b) {
  open_now(f);
  fake_next(FAKE_EXEC, refused);
  fake_next(FAKE_EXEC, hangs);
  fake_next(FAKE_OPEN, hangs);
  begin_exec(f, a, "true", 0);
  begin_exec(f, b, "sleep", SBX_NO_TIMEOUT);
  settle(f);
}

static void test_gone_while_it_is_started(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  begin_to_start(f, &a, &b);
  fake.liveness = SBX_GONE;
  fake_release(FAKE_EXEC, SBX_ENET);
  settle(f);
  assert_seen(&a, SBX_ELOST);
  assert_seen(&b, SBX_ELOST);
  assert_int_equal(fake.live_sessions, 0);
  run_exec(f, &c, "true", 0);
  assert_seen(&c, SBX_OK);
  assert_log("open1 exec1 exec1 probe1 open1 probe1 open2 exec2 ");
}

static void test_cancel_while_it_is_started(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  begin_to_start(f, &a, &b);
  sbx_call_cancel(a.call);
  settle(f);
  assert_seen(&a, SBX_ECANCELED);
  fake_release(FAKE_EXEC, SBX_OK);
  begin_close(f, &c);
  settle(f);
  assert_not_seen(&c);
  fake_release(FAKE_OPEN, SBX_OK);
  settle(f);
  assert_seen(&c, SBX_OK);
  assert_log("open1 exec1 exec1 probe1 open1 close1 ");
}

static void test_free_while_it_is_started(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  begin_to_start(f, &a, &b);
  free_sandbox(f);
  settle(f);
  assert_seen(&a, SBX_ECLOSED);
  assert_seen(&b, SBX_ECLOSED);
  assert_int_equal(fake.live_sessions, 0);
}

static void test_free_between_two_starts(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  open_now(f);
  fake_next(FAKE_EXEC, refused);
  fake_next(FAKE_EXEC, hangs);
  fake_next(FAKE_OPEN, (fake_plan){.code = SBX_ERATE, .no_effect = true, .retry_after_ms = 5000});
  begin_exec(f, &a, "true", 0);
  begin_exec(f, &b, "sleep", SBX_NO_TIMEOUT);
  settle(f);
  free_sandbox(f);
  settle(f);
  assert_seen(&a, SBX_ECLOSED);
  assert_seen(&b, SBX_ECLOSED);
  assert_int_equal(fake.live_sessions, 0);
}

static void test_a_start_call_starts_it(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  open_now(f);
  fake.status.started = true;
  fake_next(FAKE_EXEC, (fake_plan){.code = SBX_ENET});
  run_exec(f, &a, "true", 0);
  begin_start(f, &b);
  settle(f);
  assert_seen(&b, SBX_OK);
  assert_log("open1 exec1 probe1 open1 ");
}

static void test_attached_it_is_started_too(void **state) {
  fixture *f = *state;
  seen a = {0}, c = {0};
  fake.attached = true;
  open_now(f);
  fake_next(FAKE_EXEC, refused);
  run_exec(f, &a, "true", 0);
  assert_seen(&a, SBX_OK);
  begin_close(f, &c);
  settle(f);
  assert_log("open1 exec1 probe1 open1 exec1 ");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(test_a_command_goes_on_after_the_start),
      T(test_files_too),
      T(test_a_large_file_is_not_held_for_it),
      T(test_what_may_have_run_is_not_begun_again),
      T(test_once_per_call),
      T(test_one_start_for_all),
      T(test_a_look_that_came_before_the_start),
      T(test_a_look_that_comes_after_the_start),
      T(test_it_cannot_be_started),
      T(test_it_is_not_started_in_time),
      T(test_it_is_asked_again_where_that_may_help),
      T(test_it_turns_out_to_be_gone),
      T(test_gone_and_not_to_be_replaced),
      T(test_gone_while_it_is_started),
      T(test_cancel_while_it_is_started),
      T(test_free_while_it_is_started),
      T(test_free_between_two_starts),
      T(test_a_start_call_starts_it),
      T(test_attached_it_is_started_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
