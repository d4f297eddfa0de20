/* Tests of what is refused before anything is created, and of the table of providers. */
#include "support/sandbox_fixture.h"

#define SLICE(text)                                                                                \
  { (text), sizeof(text) - 1 }

static void never_exec(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  (void)arg, (void)err, (void)result;
  fail();
}

static void never_done(void *arg, const sbx_err *err) {
  (void)arg, (void)err;
  fail();
}

static void never_read(void *arg, const sbx_err *err, const sbx_slice *bytes) {
  (void)arg, (void)err, (void)bytes;
  fail();
}

static void never_list(void *arg, const sbx_err *err, const sbx_entry *entries, size_t count) {
  (void)arg, (void)err, (void)entries, (void)count;
  fail();
}

static void assert_part(const char *text, const char *part) {
  if (strstr(text, part) == NULL)
    fail_msg("\"%s\" not in \"%s\"", part, text);
}

static const sbx_slice no_program[] = {SLICE("")};
static const sbx_slice nul_argument[] = {SLICE("a"), SLICE("b\0c")};
static const sbx_env_var shell_name[] = {{SLICE("A;touch pwned;B"), SLICE("")}};
static const sbx_env_var equals_name[] = {{SLICE("A=B"), SLICE("")}};
static const sbx_env_var empty_name[] = {{SLICE(""), SLICE("")}};
static const sbx_env_var digit_name[] = {{SLICE("1A"), SLICE("")}};
static const sbx_env_var subst_name[] = {{SLICE("$(id)"), SLICE("")}};
static const sbx_env_var line_name[] = {{SLICE("A"), SLICE("ok")}, {SLICE("A\nB"), SLICE("")}};
static const sbx_env_var nul_name[] = {{SLICE("A\0B"), SLICE("")}};
static const sbx_env_var high_name[] = {{SLICE("\xC3\x84"), SLICE("")}};
static const sbx_env_var nul_value[] = {{SLICE("TOKEN"), SLICE("secret\0tail")}};

static const struct refusal {
  sbx_exec_spec spec;
  int code;
  const char *says;
} refusals[] = {
    {{.text = SLICE("echo \0")}, SBX_EINVAL, "the command has a NUL byte at offset 5"},
    {{.kind = SBX_EXEC_CODE, .text = SLICE("\0")}, SBX_EINVAL, "the code has a NUL byte"},
    {{.kind = SBX_EXEC_CODE, .language = (sbx_language)7}, SBX_EINVAL, "use python or node"},
    {{.kind = (sbx_exec_kind)9}, SBX_EINVAL, "use shell, code or argv"},
    {{.kind = SBX_EXEC_ARGV}, SBX_EINVAL, "give its name as the first item"},
    {{.kind = SBX_EXEC_ARGV, .argc = 1}, SBX_EINVAL, "give its name as the first item"},
    {{.kind = SBX_EXEC_ARGV, .argv = no_program, .argc = 1}, SBX_EINVAL, "has no program"},
    {{.kind = SBX_EXEC_ARGV, .argv = nul_argument, .argc = 2}, SBX_EINVAL, "argument 1 has a NUL"},
    {{.cwd = SLICE("a\0b")}, SBX_EPATH, "the working directory has a NUL"},
    {{.cwd = SLICE("~root/x")}, SBX_EINVAL, "not \"~root/x\"; for a name that begins with ~"},
    {{.env = shell_name, .env_count = 1}, SBX_EINVAL, "\"A;touch pwned;B\"; use letters"},
    {{.env = equals_name, .env_count = 1}, SBX_EINVAL, "\"A=B\""},
    {{.env = empty_name, .env_count = 1}, SBX_EINVAL, "\"\"; use letters"},
    {{.env = digit_name, .env_count = 1}, SBX_EINVAL, "no digit first"},
    {{.env = subst_name, .env_count = 1}, SBX_EINVAL, "\"$(id)\""},
    {{.env = line_name, .env_count = 2}, SBX_EINVAL, "\"A B\""},
    {{.env = nul_name, .env_count = 1}, SBX_EINVAL, "not a name"},
    {{.env = high_name, .env_count = 1}, SBX_EINVAL, "not a name"},
    {{.env = nul_value, .env_count = 1}, SBX_EINVAL, "TOKEN has a NUL byte; encode it"},
    {{.env_count = 1}, SBX_EINVAL, "missing"},
    {{.timeout_ms = 2147483001},
     SBX_EINVAL,
     "2147483001 ms is too long; give at most 2147483000 ms"},
    {{.timeout_ms = SBX_NO_TIMEOUT - 1}, SBX_EINVAL, "too long"},
    {{.max_output_bytes = SIZE_MAX}, SBX_EINVAL, "give at most 1073741824"},
    {{.truncate = (sbx_truncate)5}, SBX_EINVAL, "keep the head"},
};

static void test_bad_commands(void **state) {
  fixture *f = *state;
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    const struct refusal *r = &refusals[i];
    sbx_err err;
    assert_int_equal(sbx_sandbox_exec(f->sb, &r->spec, NULL, never_exec, NULL, NULL, &err),
                     r->code);
    assert_int_equal(err.code, r->code);
    assert_part(err.message, r->says);
    assert_null(strstr(err.message, "secret"));
    assert_int_equal(sbx_sandbox_exec(f->sb, &r->spec, NULL, never_exec, NULL, NULL, NULL),
                     r->code);
  }
  settle(f);
  assert_log("");
}

static void test_odd_but_good_commands(void **state) {
  fixture *f = *state;
  static const sbx_env_var env[] = {{SLICE("_a1"), SLICE("")}, {SLICE("B"), SLICE("x=\n\"$(y)")}};
  static const sbx_slice argv[] = {SLICE("true"), SLICE("")};
  static const sbx_exec_spec good[] = {
      {.kind = SBX_EXEC_SHELL},
      {.kind = SBX_EXEC_CODE, .language = SBX_LANG_NODE, .env = env, .env_count = 2},
      {.kind = SBX_EXEC_ARGV, .argv = argv, .argc = 2, .stdin_bytes = SLICE("\0\0")},
      {.timeout_ms = 2147483000, .max_output_bytes = 1, .truncate = SBX_KEEP_HEAD_AND_TAIL},
  };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    seen s = {0};
    begin_spec(f, &s, &good[i]);
    settle(f);
    assert_seen(&s, SBX_OK);
  }
}

static void test_what_the_provider_cannot_do(void **state) {
  fixture *f = *state;
  static const sbx_exec_spec cwd = {.cwd = SLICE("dir")};
  static const sbx_exec_spec input = {.stdin_bytes = SLICE("in")};
  sbx_err err;
  fake_provider.caps = 0;
  assert_int_equal(sbx_sandbox_capabilities(f->sb), 0);
  assert_int_equal(sbx_sandbox_exec(f->sb, &cwd, NULL, never_exec, NULL, NULL, &err),
                   SBX_EUNSUPPORTED);
  assert_part(err.message, "use cd");
  assert_int_equal(sbx_sandbox_exec(f->sb, &input, NULL, never_exec, NULL, NULL, &err),
                   SBX_EUNSUPPORTED);
  assert_part(err.message, "write a file");
  assert_int_equal(sbx_sandbox_list(f->sb, 1, never_list, NULL, NULL, &err), SBX_EUNSUPPORTED);
  assert_part(err.message, "such as find");
}

static uint32_t lacks_cwd(const sbx_config *config) {
  assert_non_null(config);
  return SBX_CAP_CWD | SBX_CAP_LOCAL;
}

static void test_what_this_sandbox_of_a_provider_cannot_do(void **state) {
  fixture *f = *state;
  static const sbx_exec_spec cwd = {.cwd = SLICE("dir")};
  sbx_err err;
  fake_provider.lacks = lacks_cwd;
  assert_int_equal(sbx_sandbox_capabilities(f->sb), fake_provider.caps & ~(uint32_t)SBX_CAP_CWD);
  assert_int_equal(sbx_sandbox_exec(f->sb, &cwd, NULL, never_exec, NULL, NULL, &err),
                   SBX_EUNSUPPORTED);
}

static void test_bad_files(void **state) {
  fixture *f = *state;
  const sbx_slice empty = SLICE(""), nul = SLICE("a\0b"), good = SLICE("a");
  sbx_err err;
  assert_int_equal(sbx_sandbox_write(f->sb, empty, good, never_done, NULL, NULL, &err), SBX_EINVAL);
  assert_part(err.message, "the path is empty; give the name of a file");
  assert_int_equal(sbx_sandbox_read(f->sb, empty, 0, never_read, NULL, NULL, &err), SBX_EINVAL);
  assert_int_equal(sbx_sandbox_write(f->sb, nul, good, never_done, NULL, NULL, &err), SBX_EPATH);
  assert_part(err.message, "NUL byte at offset 1");
  assert_int_equal(sbx_sandbox_read(f->sb, nul, 0, never_read, NULL, NULL, &err), SBX_EPATH);
  assert_int_equal(sbx_sandbox_read(f->sb, good, SIZE_MAX, never_read, NULL, NULL, &err),
                   SBX_EINVAL);
  assert_part(err.message, "2 GiB");
  assert_int_equal(sbx_sandbox_list(f->sb, 0, never_list, NULL, NULL, &err), SBX_EINVAL);
  settle(f);
  assert_log("");
}

/* ---- options ---- */

static const struct bad_options {
  const char *json;
  const char *says;
} bad_options[] = {
    {"", "the options are not JSON"},
    {"{\"a\":1", "the options are not JSON"},
    {"[]", "must be one JSON object"},
    {"{\"defaultTimeoutMs\": 0}", "defaultTimeoutMs must be a whole number"},
    {"{\"defaultTimeoutMs\": -1}", "from 1 to 2147483000"},
    {"{\"defaultTimeoutMs\": 1.5}", "defaultTimeoutMs must be"},
    {"{\"defaultTimeoutMs\": \"1\"}", "defaultTimeoutMs must be"},
    {"{\"defaultTimeoutMs\": 1e12}", "defaultTimeoutMs must be"},
    {"{\"startTimeoutMs\": null}", "startTimeoutMs must be"},
    {"{\"onLost\": \"ignore\"}", "\"recreate\" or \"reject\""},
    {"{\"onLost\": true}", "\"recreate\" or \"reject\""},
    {"{\"flavour\": 1, \"onlost\": \"reject\"}",
     "unknown option \"onlost\"; this provider knows "
     "flavour, defaultTimeoutMs, startTimeoutMs, onLost"},
    {"{\"a\\u0000b\": 1}", "unknown option \"a b\""},
};

static void test_bad_options(void **state) {
  fixture *f = *state;
  for (size_t i = 0; i < sizeof bad_options / sizeof *bad_options; i++) {
    sbx_sandbox *sb = NULL;
    sbx_err err;
    sbx_slice json = sbx_slice_str(bad_options[i].json);
    assert_int_equal(sbx__sandbox_new_with(&sb, f->loop, &fake_provider, json, &err), SBX_EINVAL);
    assert_null(sb);
    assert_part(err.message, bad_options[i].says);
    assert_int_equal(sbx__sandbox_new_with(&sb, f->loop, &fake_provider, json, NULL), SBX_EINVAL);
  }
}

static void test_the_table_of_providers(void **state) {
  fixture *f = *state;
  sbx_sandbox *sb = NULL;
  sbx_err err;
  assert_ptr_equal(sbx_provider_find("local"), &sbx_local_provider);
  assert_null(sbx_provider_find("loca"));
  assert_null(sbx_provider_find(""));
  assert_int_equal(sbx_sandbox_new(&sb, f->loop, "e3b", sbx_slice_str("{}"), &err),
                   SBX_EUNSUPPORTED);
  assert_string_equal(err.message, "no such provider: e3b");
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(test_bad_commands),
      T(test_odd_but_good_commands),
      T(test_what_the_provider_cannot_do),
      T(test_what_this_sandbox_of_a_provider_cannot_do),
      T(test_bad_files),
      T(test_bad_options),
      T(test_the_table_of_providers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
