/* Tests of the question after a failure: is the sandbox lost, or only slow? */
#include "support/sandbox_fixture.h"

static const fake_plan hangs = {.hang = true};

/* SBX_EAUTH: a service may not know a good key any more once the sandbox is gone. */
static const int doubtful[] = {SBX_ENET,      SBX_EPROTO,    SBX_EPROVIDER, SBX_ETIMEOUT,
                               SBX_ENOTFOUND, SBX_ECONFLICT, SBX_EAUTH};

static void test_a_broken_answer_and_a_sandbox_that_lives(void **state) {
  fixture *f = *state;
  open_now(f);
  for (size_t i = 0; i < sizeof doubtful / sizeof *doubtful; i++) {
    seen s = {0};
    fake.status.started = i % 2 == 0;
    fake_next(FAKE_EXEC, (fake_plan){.code = doubtful[i]});
    begin_exec(f, &s, "true", 0);
    settle(f);
    assert_seen(&s, doubtful[i]);
    assert_true(s.err.may_have_run == fake.status.started);
    assert_says(&s, "fake exec failed; ");
    assert_says(&s, fake.status.started ? "may have run" : "did not run");
    /* Never sent again. */
    assert_int_equal(fake.count[FAKE_EXEC], i + 1);
    assert_int_equal(fake.count[FAKE_PROBE], i + 1);
  }
}

static void test_a_clear_refusal_is_not_probed(void **state) {
  fixture *f = *state;
  static const int codes[] = {SBX_EINVAL, SBX_EFORBIDDEN, SBX_EBINARY, SBX_ERATE, SBX_ENOMEM};
  open_now(f);
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    seen s = {0};
    fake_next(FAKE_EXEC, (fake_plan){.code = codes[i]});
    begin_exec(f, &s, "true", 0);
    settle(f);
    assert_seen(&s, codes[i]);
  }
  assert_int_equal(fake.count[FAKE_PROBE], 0);
}

static void lose(fixture *f, seen *s) {
  fake.liveness = SBX_GONE;
  fake_next(FAKE_EXEC, (fake_plan){.code = SBX_ENET});
  run_exec(f, s, "true", 0);
  assert_seen(s, SBX_ELOST);
  assert_int_equal(fake.count[FAKE_EXEC], 1);
}

static void test_lost_then_recreated_by_the_next_call(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  lose(f, &a);
  assert_true(a.err.may_have_run);
  assert_says(&a, "files and processes");
  assert_says(&a, "was not sent again");
  assert_says(&a, "the next call starts a new, empty sandbox (fake exec failed)");
  assert_null(sbx_sandbox_id(f->sb));
  assert_int_equal(fake.live_sessions, 0);
  run_exec(f, &b, "true", 0);
  assert_seen(&b, SBX_OK);
  begin_close(f, &c);
  settle(f);
  assert_seen(&c, SBX_OK);
  /* What is gone is not deleted. */
  assert_log("open1 exec1 probe1 open2 exec2 close2 ");
}

static void assert_all_is_lost(fixture *f) {
  seen s[4] = {0};
  begin_start(f, &s[0]);
  begin_exec(f, &s[1], "true", 0);
  begin_write(f, &s[2]);
  for (int i = 0; i < 3; i++) {
    assert_seen(&s[i], SBX_ELOST);
    assert_says(&s[i], "make a new sandbox object");
  }
  begin_close(f, &s[3]);
  settle(f);
  assert_seen(&s[3], SBX_OK);
  assert_log("open1 exec1 probe1 ");
}

static void test_lost_and_rejecting_from_then_on(void **state) {
  fixture *f = *state;
  seen s = {0};
  fixture_options(f, "{\"onLost\": \"reject\"}");
  lose(f, &s);
  assert_says(&s, "make a new sandbox object");
  assert_all_is_lost(f);
}

static void test_lost_when_only_attached(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake.attached = true;
  lose(f, &s);
  assert_says(&s, "make a new sandbox object");
  assert_all_is_lost(f);
}

static void test_a_loss_ends_all_that_runs_there(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0}, d = {0};
  open_now(f);
  fake_next(FAKE_EXEC, hangs);
  fake_next(FAKE_PUT, hangs);
  begin_exec(f, &a, "sleep 30", SBX_NO_TIMEOUT);
  begin_write(f, &b);
  settle(f);
  fake.liveness = SBX_GONE;
  fake_next(FAKE_EXEC, (fake_plan){.code = SBX_EPROTO});
  run_exec(f, &c, "true", 0);
  assert_seen(&a, SBX_ELOST);
  assert_seen(&b, SBX_ELOST);
  assert_null(strstr(a.err.message, "failed"));
  assert_seen(&c, SBX_ELOST);
  assert_log("open1 exec1 put1 exec1 probe1 ");
  run_exec(f, &d, "true", 0);
  assert_seen(&d, SBX_OK);
  assert_string_equal(sbx_sandbox_id(f->sb), "fake-2");
}

static void test_the_provider_s_own_word_that_it_is_gone(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake.status.started = false;
  fake_next(FAKE_EXEC, (fake_plan){.code = SBX_ELOST});
  run_exec(f, &s, "true", 0);
  assert_seen(&s, SBX_ELOST);
  assert_false(s.err.may_have_run);
  assert_says(&s, "the command did not run");
  assert_log("open1 exec1 ");
}

static void test_a_probe_without_an_answer(void **state) {
  fixture *f = *state;
  seen s = {0};
  open_now(f);
  f->sb->probe_timeout_ms = 10;
  fake.liveness = SBX_GONE;
  fake_next(FAKE_EXEC, (fake_plan){.code = SBX_EPROVIDER});
  fake_next(FAKE_PROBE, hangs);
  begin_exec(f, &s, "true", 0);
  await(f, &s);
  assert_seen(&s, SBX_EPROVIDER);
  assert_true(s.err.may_have_run);
}

static void test_the_limit_does_not_cut_a_probe(void **state) {
  fixture *f = *state;
  seen s = {0};
  open_now(f);
  fake.liveness = SBX_GONE;
  fake_next(FAKE_EXEC, (fake_plan){.code = SBX_ENET});
  fake_next(FAKE_PROBE, hangs);
  begin_exec(f, &s, "true", 100);
  await_count(f, FAKE_PROBE, 1);
  uv_sleep(110);
  settle(f);
  assert_not_seen(&s);
  fake_release(FAKE_PROBE, SBX_OK);
  settle(f);
  assert_seen(&s, SBX_ELOST);
}

static void test_cancel_ends_a_probe(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake.liveness = SBX_GONE;
  fake_next(FAKE_EXEC, (fake_plan){.code = SBX_ENET});
  fake_next(FAKE_PROBE, hangs);
  run_exec(f, &s, "true", 0);
  assert_not_seen(&s);
  sbx_call_cancel(s.call);
  settle(f);
  assert_seen(&s, SBX_ENET);
}

static void test_a_closing_sandbox_that_gets_lost(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  open_now(f);
  fake.liveness = SBX_GONE;
  fake_next(FAKE_EXEC, hangs);
  begin_exec(f, &a, "true", 0);
  begin_close(f, &b);
  settle(f);
  fake_release(FAKE_EXEC, SBX_ENET);
  settle(f);
  assert_seen(&a, SBX_ELOST);
  assert_seen(&b, SBX_OK);
  assert_log("open1 exec1 probe1 ");
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(test_a_broken_answer_and_a_sandbox_that_lives),
      T(test_a_clear_refusal_is_not_probed),
      T(test_lost_then_recreated_by_the_next_call),
      T(test_lost_and_rejecting_from_then_on),
      T(test_lost_when_only_attached),
      T(test_a_loss_ends_all_that_runs_there),
      T(test_the_provider_s_own_word_that_it_is_gone),
      T(test_a_probe_without_an_answer),
      T(test_the_limit_does_not_cut_a_probe),
      T(test_cancel_ends_a_probe),
      T(test_a_closing_sandbox_that_gets_lost),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
