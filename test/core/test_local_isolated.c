/* Tests of isolated sandboxes with an allowlist: options, the proxy's life beside the sandbox's,
 * and memory that runs out. What comes through it is tested in test/isolated and in test_egress.c.
 */
#include "support/local_fixture.h"

#define ALLOW "\"isolation\":{\"allowedHosts\":[\"example.com\",\"*.example.org:8443\"]}"
/* What the proxy says to a stranger's name, asked without any program that knows proxies. */
#define ASK                                                                                        \
  "exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:} && "                                               \
  "printf 'GET http://other.example/ HTTP/1.0\\r\\n\\r\\n' >&3 && head -n 1 <&3"

static local_fixture *of(void **state) {
  return *state;
}

static void note_done(void *arg, const sbx_err *err) {
  local_result *r = arg;
  r->times++;
  if (err != NULL)
    r->err = *err;
}

/* Makes a sandbox of `options` and starts it. Skips the test where the machine cannot isolate; that
 * is said, and no pass. */
static void start_or_skip(local_fixture *f, const char *options) {
  local_result r = {0};
  local_options(f, options);
  assert_int_equal(sbx_sandbox_start(f->sb, note_done, &r, NULL, NULL), SBX_OK);
  uv_run(&f->uv, UV_RUN_DEFAULT);
  if (r.err.code == SBX_EISOLATION) {
    print_message("unavailable here: %s\n", r.err.message);
    skip();
  }
  assert_int_equal(r.times, 1);
  assert_int_equal(r.err.code, SBX_OK);
}

static void test_options_are_checked(void **state) {
  local_fixture *f = of(state);
  static const char *const refused[] = {
      "\"network\":\"listen\"",  "\"network\":\"on\",\"allowedHosts\":[\"example.com\"]",
      "\"allowedHosts\":[1]",    "\"allowedHosts\":[\"https://example.com\"]",
      "\"allowedHosts\":[\"\"]", "\"allowedHosts\":[\"127.1\"]",
  };
  for (size_t i = 0; i < COUNT(refused); i++) {
    char options[512];
    sbx_sandbox *sb = NULL;
    sbx_err err = {0};
    snprintf(options, sizeof options, "{\"guardPath\":\"/g\",\"isolation\":{%s}}", refused[i]);
    assert_int_equal(sbx_sandbox_new(&sb, f->loop, "local", sbx_slice_str(options), &err),
                     SBX_EINVAL);
    assert_true(strlen(err.message) > 0);
  }
}

static void test_the_proxy_is_there_from_start_to_close(void **state) {
  local_fixture *f = of(state);
  start_or_skip(f, ALLOW);
  local_assert_shell(f, ASK, 0,
                     "HTTP/1.1 403 other.example:80 is not in allowedHosts of this sandbox\r\n");
  local_assert_shell(f, "printenv NO_PROXY NODE_USE_ENV_PROXY", 0, "localhost,127.0.0.1,::1\n1\n");
  assert_int_equal(local_close(f), SBX_OK);
}

static void test_without_a_list_there_is_none(void **state) {
  local_fixture *f = of(state);
  start_or_skip(f, "\"isolation\":{\"allowedHosts\":[]}");
  local_assert_shell(f, "env | grep -ic proxy", 1, "0\n");
}

static void test_the_loop_ends_with_a_connection(void **state) {
  local_fixture *f = of(state);
  local_result r;
  start_or_skip(f, ALLOW);
  sbx_exec_spec spec =
      local_shell("exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; echo here; sleep 60");
  local_begin(f, &r, &spec, true);
  local_await_output(f, &r, "here");
  local_free_sandbox(f);
  local_close_loop(f);
  assert_int_equal(r.times, 1);
  local_result_free(&r);
}

/* The start is what is new here; the rest of a life is tried in test_local_life.c. */
static void test_each_allocation_of_a_start_may_fail(void **state) {
  local_fixture *f = of(state);
  start_or_skip(f, ALLOW);
  assert_int_equal(local_close(f), SBX_OK);
  bool failed = true;
  for (size_t n = 1; failed; n++) {
    local_result r = {0};
    sbx_err err;
    local_free_sandbox(f);
    uv_run(&f->uv, UV_RUN_DEFAULT);
    size_t live = sbx_alloc_live(), fds = local_count_fds();
    sbx_alloc_fail_at(n, false);
    int rc = sbx_sandbox_new(&f->sb, f->loop, "local", sbx_slice_str(f->options), &err);
    if (rc == SBX_OK)
      rc = sbx_sandbox_start(f->sb, note_done, &r, NULL, NULL);
    uv_run(&f->uv, UV_RUN_DEFAULT);
    assert_true(rc == SBX_ENOMEM || (rc == SBX_OK && r.times == 1));
    assert_true(r.err.code == SBX_OK || r.err.code == SBX_ENOMEM);
    failed = sbx_alloc_failed();
    sbx_alloc_fail_at(0, false);
    if (f->sb != NULL)
      assert_int_equal(local_close(f), SBX_OK);
    local_free_sandbox(f);
    uv_run(&f->uv, UV_RUN_DEFAULT);
    assert_int_equal(sbx_alloc_live(), live);
    assert_int_equal(local_count_fds(), fds);
    assert_int_equal(local_count_entries(f->base), 0);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, local_setup, local_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_options_are_checked),
      TEST(test_the_proxy_is_there_from_start_to_close),
      TEST(test_without_a_list_there_is_none),
      TEST(test_the_loop_ends_with_a_connection),
      TEST(test_each_allocation_of_a_start_may_fail),
  };
  return cmocka_run_group_tests_name("local, isolated", tests, NULL, NULL);
}
