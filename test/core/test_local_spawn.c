/* Tests of commands whose standard input stays open, with the local provider. */
#include "support/local_fixture.h"

#include <signal.h>

enum { MUCH = 4 * 1024 * 1024 };

static local_fixture *of(void **state) {
  return *state;
}

/* What a callback of what was given has said. */
typedef struct told {
  int times;
  int code;
} told;

static void on_told(void *arg, const sbx_err *err) {
  told *t = arg;
  t->times++;
  t->code = err != NULL ? err->code : SBX_OK;
}

static void await(local_fixture *f, const told *t) {
  while (t->times == 0)
    uv_run(&f->uv, UV_RUN_ONCE);
  assert_int_equal(t->times, 1);
}

static sbx_exec_spec open_shell(const char *text) {
  sbx_exec_spec spec = local_shell(text);
  spec.open_stdin = true;
  return spec;
}

static void test_input_and_its_end_come_in_order(void **state) {
  local_fixture *f = of(state);
  local_result r;
  told first = {0}, second = {0}, empty = {0}, end = {0};
  sbx_err err;
  sbx_exec_spec spec = open_shell("exec cat");
  local_begin(f, &r, &spec, false);
  assert_int_equal(sbx_call_write(r.call, LIT("one "), on_told, &first, &err), SBX_OK);
  assert_int_equal(sbx_call_write(r.call, LIT("two"), on_told, &second, &err), SBX_OK);
  assert_int_equal(sbx_call_write(r.call, LIT(""), on_told, &empty, &err), SBX_OK);
  assert_int_equal(sbx_call_end_input(r.call, on_told, &end, &err), SBX_OK);
  assert_int_equal(sbx_call_write(r.call, LIT("x"), on_told, &end, &err), SBX_ECLOSED);
  assert_int_equal(sbx_call_end_input(r.call, on_told, &end, &err), SBX_ECLOSED);
  assert_int_equal(first.times, 0);
  local_await(f, &r);
  assert_slice(sbx_buf_slice(&r.output), LIT("one two"));
  const told *all[] = {&first, &second, &empty, &end};
  for (size_t i = 0; i < COUNT(all); i++) {
    await(f, all[i]);
    assert_int_equal(all[i]->code, SBX_OK);
  }
  local_result_free(&r);
}

static void test_a_terminal_has_a_size_and_ends(void **state) {
  local_fixture *f = of(state);
  local_result r;
  told sized = {0}, end = {0};
  sbx_err err;
  sbx_exec_spec spec = open_shell("stty -echo size; cat; stty size");
  spec.tty = (sbx_tty_size){.columns = 80, .rows = 24};
  local_begin(f, &r, &spec, false);
  assert_int_equal(sbx_call_resize(r.call, (sbx_tty_size){0, 1}, on_told, &sized, &err),
                   SBX_EINVAL);
  assert_int_equal(sbx_call_end_input(r.call, on_told, &end, &err), SBX_OK);
  local_await(f, &r);
  await(f, &end);
  assert_slice(sbx_buf_slice(&r.output), LIT("24 80\r\n24 80\r\n"));
  local_result_free(&r);
}

static void test_a_terminal_is_made_whole_or_not_at_all(void **state) {
  local_fixture *f = of(state);
  local_result r;
  told sized = {0};
  sbx_err err;
  sbx_exec_spec spec = local_shell("true");
  spec.tty = (sbx_tty_size){.columns = 80, .rows = 24};
  sbx_call *call = NULL;
  assert_int_equal(sbx_sandbox_exec(f->sb, &spec, NULL, NULL, NULL, &call, &err), SBX_EINVAL);
  spec.open_stdin = true;
  spec.tty.rows = 0;
  assert_int_equal(sbx_sandbox_exec(f->sb, &spec, NULL, NULL, NULL, &call, &err), SBX_EINVAL);
  sbx_exec_spec plain = open_shell("cat");
  local_begin(f, &r, &plain, false);
  assert_int_equal(sbx_call_resize(r.call, (sbx_tty_size){1, 1}, on_told, &sized, &err),
                   SBX_EINVAL);
  assert_int_equal(sbx_call_end_input(r.call, NULL, NULL, &err), SBX_OK);
  local_await(f, &r);
  local_result_free(&r);
}

/* The host of this library has not told the system to ignore SIGPIPE. */
static void test_a_closed_input_is_told_and_no_signal(void **state) {
  local_fixture *f = of(state);
  local_result r;
  told write = {0}, kill = {0};
  sbx_err err;
  signal(SIGPIPE, SIG_DFL);
  sbx_exec_spec spec = open_shell("exec 0<&-; echo shut; exec sleep 300");
  local_begin(f, &r, &spec, true);
  local_await_output(f, &r, "shut\n");
  assert_int_equal(sbx_call_write(r.call, LIT("x"), on_told, &write, &err), SBX_OK);
  await(f, &write);
  assert_int_equal(write.code, SBX_ECLOSED);
  assert_int_equal(sbx_call_signal(r.call, "SIGNONE", on_told, &kill, &err), SBX_EINVAL);
  assert_int_equal(sbx_call_signal(r.call, "SIGTERM", on_told, &kill, &err), SBX_OK);
  local_await(f, &r);
  await(f, &kill);
  assert_int_equal(kill.code, SBX_OK);
  assert_string_equal(r.exec.signal_name, "SIGTERM");
  local_result_free(&r);
}

static char much[MUCH];

static void test_what_waits_is_bounded_and_ends_with_the_command(void **state) {
  local_fixture *f = of(state);
  local_result r;
  told writes[SBX_INPUT_MAX / MUCH] = {0}, more = {0}, kill = {0};
  sbx_err err;
  sbx_exec_spec spec = open_shell("exec sleep 300");
  local_begin(f, &r, &spec, false);
  for (size_t i = 0; i < COUNT(writes); i++)
    assert_int_equal(sbx_call_write(r.call, sbx_slice_of(much, MUCH), on_told, &writes[i], &err),
                     SBX_OK);
  assert_int_equal(sbx_call_write(r.call, LIT("x"), on_told, &more, &err), SBX_ETOOBIG);
  assert_int_equal(sbx_call_signal(r.call, "SIGKILL", on_told, &kill, &err), SBX_OK);
  local_await(f, &r);
  assert_string_equal(r.exec.signal_name, "SIGKILL");
  for (size_t i = 0; i < COUNT(writes); i++) {
    await(f, &writes[i]);
    assert_int_equal(writes[i].code, SBX_ECLOSED);
  }
  assert_int_equal(more.times, 0);
  local_result_free(&r);
}

static void test_a_freed_sandbox_and_an_ending_loop_tell_what_waits(void **state) {
  for (int ending = 0; ending < 2; ending++) {
    local_fixture *f = of(state);
    local_result r;
    told write = {0};
    sbx_err err;
    sbx_exec_spec spec = open_shell("echo ready; exec sleep 300");
    local_begin(f, &r, &spec, true);
    local_await_output(f, &r, "ready\n");
    assert_int_equal(sbx_call_write(r.call, sbx_slice_of(much, MUCH), on_told, &write, &err),
                     SBX_OK);
    local_free_sandbox(f);
    if (ending)
      local_close_loop(f);
    await(f, &write);
    assert_int_equal(write.code, SBX_ECLOSED);
    if (r.times == 0)
      local_await(f, &r);
    assert_int_equal(r.err.code, SBX_ECLOSED);
    local_result_free(&r);
    if (!ending)
      local_options(f, "\"killGraceMs\":0");
  }
}

static void test_only_a_command_that_wants_it_is_given_something(void **state) {
  local_fixture *f = of(state);
  local_result r;
  told t = {0};
  sbx_err err;
  sbx_exec_spec spec = local_shell("true");
  local_begin(f, &r, &spec, false);
  assert_int_equal(sbx_call_write(r.call, LIT("x"), on_told, &t, &err), SBX_EINVAL);
  assert_int_equal(sbx_call_signal(r.call, "SIGTERM", on_told, &t, &err), SBX_EINVAL);
  local_await(f, &r);
  local_result_free(&r);
  spec = open_shell("cat");
  spec.stdin_bytes = LIT("x");
  assert_int_equal(sbx_sandbox_exec(f->sb, &spec, NULL, NULL, NULL, NULL, &err), SBX_EINVAL);
  assert_int_equal(t.times, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, local_setup, local_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_a_terminal_has_a_size_and_ends),
      TEST(test_a_terminal_is_made_whole_or_not_at_all),
      TEST(test_input_and_its_end_come_in_order),
      TEST(test_a_closed_input_is_told_and_no_signal),
      TEST(test_what_waits_is_bounded_and_ends_with_the_command),
      TEST(test_a_freed_sandbox_and_an_ending_loop_tell_what_waits),
      TEST(test_only_a_command_that_wants_it_is_given_something),
  };
  return cmocka_run_group_tests_name("local_spawn", tests, NULL, NULL);
}
