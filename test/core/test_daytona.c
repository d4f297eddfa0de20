/* Tests of the Daytona provider's parts that need no server: options, the text that runs a command,
 * sending it without memory, and reading its report. */
#include "providers/daytona/daytona.h"

#include "core/enc.h"
#include "support/config_test.h"
#include "support/loop_fixture.h"

#define TAG "0123456789abcdef0123456789abcdef"
#define REPORT "a shell's greeting\n\n" TAG " ran 7 0 5 3\naGVsbG8=\n\nZXJy\n\n" TAG " end\n"

/* ---- options ---- */

static void test_options(void **state) {
  (void)state;
  sbx_config *config =
      config_of(&sbx_daytona_provider, "{\"apiKey\":\"k\",\"baseURL\":\"http://h:1/api//\"}");
  assert_string_equal(config->api_url, "http://h:1/api");
  assert_true(config->owned && config->ephemeral && !config->keyless);
  sbx__daytona_config_free(config);
  config = config_of(&sbx_daytona_provider, "{\"jwtToken\":\"j\",\"organizationId\":\"o\","
                                            "\"sandboxId\":\"s\",\"autoDeleteMinutes\":-1}");
  assert_string_equal(config->api_url, "https://app.daytona.io/api");
  assert_true(!config->owned && !config->ephemeral);
  sbx__daytona_config_free(config);
  config = config_of(&sbx_daytona_provider, "{\"lateAuth\":true}");
  assert_true(config->keyless);
  sbx__daytona_config_free(config);
}

static void test_options_that_are_wrong(void **state) {
  static const wrong_options cases[] = {
      {BYTES("{}"), SBX_EKEY, "missing API key"},
      {BYTES("{\"jwtToken\":\"canary\"}"), SBX_EKEY, "organizationId"},
      {BYTES("{\"apiKey\":\"\"}"), SBX_EINVAL, "apiKey"},
      {BYTES("{\"apiKey\":\"canary\\n\"}"), SBX_EINVAL, "apiKey"},
      {BYTES("{\"apiKey\":7}"), SBX_EINVAL, "apiKey"},
      {BYTES("{\"apikey\":\"canary\"}"), SBX_EINVAL, "unknown option"},
      {BYTES("{\"apiKey\":\"k\",\"baseURL\":\"canary\"}"), SBX_EINVAL, "baseURL"},
      {BYTES("{\"apiKey\":\"k\",\"baseURL\":\"http://h/?canary\"}"), SBX_EINVAL, "baseURL"},
      {BYTES("{\"apiKey\":\"k\",\"env\":{\"A\":1}}"), SBX_EINVAL, "env"},
      {BYTES("{\"apiKey\":\"k\",\"env\":{\"A\":\"canary\\u0000\"}}"), SBX_EINVAL, "env"},
      {BYTES("{\"apiKey\":\"k\",\"labels\":[]}"), SBX_EINVAL, "labels"},
      {BYTES("{\"apiKey\":\"k\",\"cpu\":1}"), SBX_EINVAL, "cpu"},
      {BYTES("{\"apiKey\":\"k\",\"image\":\"i\",\"cpu\":1.5}"), SBX_EINVAL, "cpu"},
      {BYTES("{\"apiKey\":\"k\",\"image\":\"i\",\"snapshot\":\"s\"}"), SBX_EINVAL, "snapshot"},
      {BYTES("{\"apiKey\":\"k\",\"owned\":false}"), SBX_EINVAL, "owned"},
      {BYTES("{\"apiKey\":\"k\",\"proxy\":7}"), SBX_EINVAL, "proxy"},
      {BYTES("{\"apiKey\":\"k\",\"ca\":\"\"}"), SBX_EINVAL, "ca"},
  };
  (void)state;
  assert_refused(&sbx_daytona_provider, cases, COUNT(cases));
}

static void test_options_without_memory(void **state) {
  config_run run = {
      &sbx_daytona_provider,
      BYTES("{\"apiKey\":\"k\",\"organizationId\":\"o\",\"baseURL\":\"http://h/api\","
            "\"image\":\"i\",\"env\":{\"A\":\"b\"},\"labels\":{\"c\":\"d\"},"
            "\"language\":\"javascript\",\"proxy\":\"\",\"toolboxUrl\":\"http://t\"}")};
  (void)state;
  assert_true(each_allocation_fails(configure_once, &run) > 15);
}

/* ---- the text ---- */

static const sbx_slice argv[] = {BYTES("a'b"), BYTES("")};
static const sbx_env_var env[] = {{BYTES("NAME"), BYTES("va'lue")}};

static const sbx_exec_spec specs[] = {
    {.kind = SBX_EXEC_SHELL, .text = BYTES("echo 'canary'"), .timeout_ms = 1500},
    {.kind = SBX_EXEC_CODE,
     .text = BYTES("canary"),
     .language = SBX_LANG_NODE,
     .stdin_bytes = BYTES("canary\0"),
     .env = env,
     .env_count = 1,
     .cwd = BYTES("sub"),
     .timeout_ms = SBX_NO_TIMEOUT},
    {.kind = SBX_EXEC_ARGV, .argv = argv, .argc = 2, .timeout_ms = 30000, .merge_streams = true},
};

/* A member of the request's body. */
static const sbx_json *parse(sbx_json_doc **doc, const sbx_buf *body, const char *name) {
  sbx_err err;
  assert_int_equal(sbx_json_parse(doc, sbx_buf_slice(body), &err), SBX_OK);
  return sbx_json_get(sbx_json_root(*doc), name);
}

static void test_text_of_the_user_is_not_in_the_program(void **state) {
  sbx_session session = {.dir = (char *)(uintptr_t) "/home/w"};
  (void)state;
  for (size_t i = 0; i < COUNT(specs); i++) {
    sbx_buf body;
    sbx_json_doc *doc;
    sbx_slice text, dir;
    int64_t limit = 0;
    assert_int_equal(sbx__daytona_write_command(&body, &session, &specs[i], TAG,
                                                (sbx__daytona_share){10, 20}, false),
                     SBX_OK);
    assert_true(sbx_json_string(parse(&doc, &body, "command"), &text));
    assert_false(sbx_remote_exchange_says(text, "canary"));
    assert_false(sbx_remote_exchange_says(text, "a'b"));
    assert_true(sbx_json_string(sbx_json_get(sbx_json_root(doc), "cwd"), &dir));
    assert_true(sbx_slice_eq_str(dir, i == 1 ? "/home/w/sub" : "/home/w"));
    bool limited = sbx_json_int(sbx_json_get(sbx_json_root(doc), "timeout"), 1, 100, &limit);
    assert_true(limited == (specs[i].timeout_ms != SBX_NO_TIMEOUT));
    if (limited)
      assert_true((uint64_t)limit * 1000 > specs[i].timeout_ms);
    assert_true((sbx_json_get(sbx_json_root(doc), "envs") != NULL) == (i == 1));
    sbx_json_free(doc, false);
    sbx_buf_deinit(&body);
  }
}

/* Folders of earlier commands go with the next one, or with a request of their own. */
static void test_folders_that_go_along(void **state) {
  static const char other[] = "fedcba9876543210fedcba9876543210";
  sbx_session session = {.left = {.tags = {TAG}, .count = 1}};
  (void)state;
  memcpy(session.left.tags[1], other, sizeof other);
  for (int way = 0; way < 6; way++) {
    sbx_buf body;
    sbx_json_doc *doc;
    sbx_slice text;
    bool run = way < 3;
    session.left.count = (size_t)way % 3;
    int rc = run ? sbx__daytona_write_command(&body, &session, &specs[0], TAG,
                                              (sbx__daytona_share){10, 20}, false)
                 : sbx__daytona_write_forget(&body, &session, TAG);
    assert_int_equal(rc, SBX_OK);
    assert_true(sbx_json_string(parse(&doc, &body, "command"), &text));
    assert_true(sbx_remote_exchange_says(
        text, way % 3 == 0   ? " '' "
              : way % 3 == 1 ? " '" TAG "' "
                             : " '" TAG " fedcba9876543210fedcba9876543210' "));
    sbx_json_free(doc, false);
    sbx_buf_deinit(&body);
  }
}

static void test_old_daemons_get_one_argument_and_exports(void **state) {
  sbx_session session = {.old_shell = true, .old_env = true};
  sbx_exec_spec large = {.kind = SBX_EXEC_SHELL, .timeout_ms = 1};
  sbx_buf body;
  sbx_json_doc *doc;
  sbx_slice text;
  (void)state;
  assert_int_equal(sbx__daytona_write_command(&body, &session, &specs[1], TAG,
                                              (sbx__daytona_share){10, 0}, true),
                   SBX_OK);
  assert_true(sbx_json_string(parse(&doc, &body, "command"), &text));
  assert_true(sbx_slice_starts_with(text, LIT("sh -c \"echo '")));
  assert_null(sbx_json_get(sbx_json_root(doc), "envs"));
  sbx_json_free(doc, false);
  sbx_buf_deinit(&body);
  /* It would not fit into an argument there. */
  char *many = calloc(1, 200000);
  assert_non_null(many);
  memset(many, 'x', 200000);
  large.text = sbx_slice_of(many, 200000);
  assert_int_equal(
      sbx__daytona_write_command(&body, &session, &large, TAG, (sbx__daytona_share){1, 0}, false),
      SBX_ETOOBIG);
  sbx_buf_deinit(&body);
  free(many);
}

/* Its escapes are made once, and not by the writer of JSON. */
static void test_a_script_is_the_same_wrapped_or_not(void **state) {
  static const char before[] = "sh -c \"echo '", after[] = "' | base64 -d | sh\"";
  (void)state;
  for (size_t i = 0; i < COUNT(specs); i++) {
    sbx_slice texts[2];
    sbx_json_doc *docs[2];
    sbx_buf bodies[2], unwrapped;
    for (int old = 0; old < 2; old++) {
      sbx_session session = {.old_shell = old == 1, .left = {.tags = {TAG}, .count = 1}};
      assert_int_equal(sbx__daytona_write_command(&bodies[old], &session, &specs[i], TAG,
                                                  (sbx__daytona_share){10, 20}, true),
                       SBX_OK);
      assert_true(sbx_json_string(parse(&docs[old], &bodies[old], "command"), &texts[old]));
    }
    sbx_slice wrapped = sbx_slice_skip(texts[1], sizeof before - 1);
    assert_true(sbx_slice_starts_with(texts[1], LIT(before)));
    wrapped.len -= sizeof after - 1;
    assert_memory_equal(wrapped.ptr + wrapped.len, after, sizeof after - 1);
    sbx_buf_init(&unwrapped, SIZE_MAX);
    assert_int_equal(sbx_base64_decode(&unwrapped, wrapped), SBX_OK);
    assert_slice(sbx_buf_slice(&unwrapped), texts[0]);
    sbx_buf_deinit(&unwrapped);
    for (int old = 0; old < 2; old++) {
      sbx_json_free(docs[old], false);
      sbx_buf_deinit(&bodies[old]);
    }
  }
}

static void test_limits_of_a_script(void **state) {
  static const struct {
    uint64_t ms;
    const char *words;
  } cases[] = {{1, TAG " 0.001 10 20 "},
               {30000, TAG " 30 10 20 "},
               {1500, TAG " 1.500 10 20 "},
               {2147483000, TAG " 2147483 10 20 "},
               {SBX_NO_TIMEOUT, TAG " 0 10 20 "}};
  sbx_session session = {0};
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_exec_spec spec = {.kind = SBX_EXEC_SHELL, .timeout_ms = cases[i].ms};
    sbx_buf body;
    assert_int_equal(
        sbx__daytona_write_command(&body, &session, &spec, TAG, (sbx__daytona_share){10, 20}, true),
        SBX_OK);
    assert_true(sbx_remote_exchange_says(sbx_buf_slice(&body), cases[i].words));
    sbx_buf_deinit(&body);
  }
}

static void test_writing_without_memory(void **state) {
  sbx_session session = {.dir = (char *)(uintptr_t) "/d", .old_shell = true};
  size_t live = sbx_alloc_live();
  (void)state;
  for (size_t i = 0; i < COUNT(specs); i++) {
    int rc = SBX_ENOMEM;
    for (size_t nth = 1; rc != SBX_OK; nth++) {
      sbx_buf body;
      sbx_alloc_fail_at(nth, false);
      rc = sbx__daytona_write_command(&body, &session, &specs[i], TAG, (sbx__daytona_share){1, 1},
                                      true);
      sbx_alloc_fail_at(0, false);
      assert_true(rc == SBX_OK || rc == SBX_ENOMEM);
      sbx_buf_deinit(&body);
      assert_int_equal(sbx_alloc_live(), live);
    }
  }
}

/* ---- a command ---- */

typedef struct run {
  bool ended;
  int code;
} run;

static void on_run_done(sbx_op *op, void *arg) {
  run *r = arg;
  r->ended = true;
  r->code = op->err.code;
}

static void on_no_output(void *arg, sbx_stream stream, sbx_slice bytes) {
  (void)arg;
  (void)stream;
  (void)bytes;
}

/* Nobody listens at the port: with all the memory it needs, the command fails there. */
static sbx_session *closed_session(sbx_loop *loop) {
  static const char options[] = "{\"apiKey\":\"k\",\"baseURL\":\"http://127.0.0.1:1/api\"}";
  sbx_config *config = NULL;
  sbx_json_doc *doc = NULL;
  assert_int_equal(sbx_json_parse(&doc, LIT(options), NULL), SBX_OK);
  assert_int_equal(
      sbx_provider_configure(&config, &sbx_daytona_provider, loop, sbx_json_root(doc), NULL),
      SBX_OK);
  sbx_json_free(doc, true);
  sbx_session *session = sbx_daytona_provider.session_new(config);
  assert_non_null(session);
  session->toolbox = sbx_strndup("http://127.0.0.1:1/t", 20);
  return session;
}

/* Fetches of the output must not outlive a command that could not be sent. */
static void test_a_command_without_memory(void **state) {
  uv_loop_t uv;
  sbx_loop *loop;
  int code = SBX_ENOMEM;
  (void)state;
  loop_open(&uv, &loop);
  sbx_session *session = closed_session(loop);
  sbx_config *config = session->config;
  for (size_t nth = 1; code == SBX_ENOMEM; nth++) {
    run r = {.code = SBX_ENOMEM};
    sbx_exec_status status = {0};
    sbx_output *output = sbx_output_new(1000, SBX_KEEP_HEAD, false, on_no_output, NULL);
    assert_non_null(output);
    sbx_alloc_fail_at(nth, false);
    sbx_op *op = sbx__daytona_exec(session, &specs[0], output, &status, on_run_done, &r);
    bool failed = sbx_alloc_failed();
    sbx_alloc_fail_at(0, false);
    while (op != NULL && !r.ended)
      uv_run(&uv, UV_RUN_ONCE);
    sbx_output_free(output);
    assert_int_equal(uv_run(&uv, UV_RUN_DEFAULT), 0);
    assert_false(status.started);
    code = failed ? SBX_ENOMEM : r.code;
  }
  assert_int_equal(code, SBX_ENET);
  sbx_daytona_provider.session_free(session);
  sbx__daytona_config_free(config);
  loop_end(&uv, loop);
}

/* ---- the report ---- */

static int read_text(sbx_slice printed, sbx__daytona_report *report) {
  sbx_err err;
  sbx_slice tight = tight_copy(printed);
  sbx__daytona_report_init(report);
  int rc = sbx__daytona_read_report(report, tight, TAG, &err);
  tight_free(tight);
  return rc;
}

static void test_report(void **state) {
  sbx__daytona_report report;
  (void)state;
  assert_int_equal(read_text(LIT(REPORT), &report), SBX_OK);
  assert_int_equal(report.end, SBX__DAYTONA_RAN);
  assert_int_equal(report.exit_code, 7);
  assert_false(report.tree_gone);
  assert_slice(sbx_buf_slice(&report.head[0]), LIT("hello"));
  assert_slice(sbx_buf_slice(&report.head[1]), LIT("err"));
  sbx__daytona_report_deinit(&report);
}

static void test_words_of_a_report(void **state) {
  static const struct {
    sbx_slice text;
    sbx__daytona_end end;
  } cases[] = {
      {BYTES(TAG " late 0 1 0 0\n\n\n\n\n" TAG " end\n"), SBX__DAYTONA_LATE},
      {BYTES(TAG " stopped 137 1 0 0\n\n\n\n\n" TAG " end\n"), SBX__DAYTONA_STOPPED},
      {BYTES(TAG " unstored 0 0 0 0\n\n\n\n\n" TAG " end\n"), SBX__DAYTONA_UNSTORED},
      {BYTES(TAG " again 0 0 0 0\n\n\n\n\n" TAG " end\n"), SBX__DAYTONA_AGAIN},
      {BYTES(TAG " going 0 0 0 0\n\n\n\n\n" TAG " end\n"), SBX__DAYTONA_GOING},
      {BYTES(TAG " absent 0 0 0 0\n\n\n\n\n" TAG " end\n"), SBX__DAYTONA_ABSENT},
      {BYTES(TAG " ended 0 0 0 0\n\n\n\n\n" TAG " end\n"), SBX__DAYTONA_ENDED},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx__daytona_report report;
    assert_int_equal(read_text(cases[i].text, &report), SBX_OK);
    assert_int_equal(report.end, cases[i].end);
    sbx__daytona_report_deinit(&report);
  }
}

/* A success only with the last letter of "end". */
static void test_report_cut_anywhere(void **state) {
  sbx__daytona_report report;
  size_t whole = sizeof REPORT - 2;
  (void)state;
  for (size_t len = 0; len <= whole; len++) {
    int rc = read_text(sbx_slice_of(REPORT, len), &report);
    assert_int_equal(rc, len < whole ? SBX_EPROTO : SBX_OK);
    sbx__daytona_report_deinit(&report);
  }
}

static void test_reports_that_are_wrong(void **state) {
  static const sbx_slice cases[] = {
      BYTES("0123456789abcdef0123456789abcdee ran 0 0 0 0\n\n\n\n\n" TAG " end\n"),
      BYTES(TAG " walked 0 0 0 0\n\n\n\n\n" TAG " end\n"),
      BYTES(TAG " ran 256 0 0 0\n\n\n\n\n" TAG " end\n"),
      BYTES(TAG " ran -1 0 0 0\n\n\n\n\n" TAG " end\n"),
      BYTES(TAG " ran 0 2 0 0\n\n\n\n\n" TAG " end\n"),
      BYTES(TAG " ran 0 0 0\n\n\n\n\n" TAG " end\n"),
      BYTES(TAG " ran 0 0 0 9999999999999999999\n\n\n\n\n" TAG " end\n"),
      BYTES(TAG " ran 0 0 1 0\naGVsbG8=\n\n\n\n" TAG " end\n"), /* more than its size */
      BYTES(TAG " ran 0 0 9 0\naG!!\n\n\n\n" TAG " end\n"),
      BYTES(TAG " ran 0 0 0 0\n\n\n\n\n" TAG " endless\n"),
      BYTES(TAG " ran 0 0 0 0\n\n\n\n" TAG " end\n"),
      BYTES(TAG TAG " ran 0 0 0 0\n\n\n\n\n" TAG " end\n"),
      BYTES("\0\0\0\n\n\n"),
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx__daytona_report report;
    assert_int_equal(read_text(cases[i], &report), SBX_EPROTO);
    sbx__daytona_report_deinit(&report);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_options),
      cmocka_unit_test(test_options_that_are_wrong),
      cmocka_unit_test(test_options_without_memory),
      cmocka_unit_test(test_text_of_the_user_is_not_in_the_program),
      cmocka_unit_test(test_folders_that_go_along),
      cmocka_unit_test(test_old_daemons_get_one_argument_and_exports),
      cmocka_unit_test(test_a_script_is_the_same_wrapped_or_not),
      cmocka_unit_test(test_limits_of_a_script),
      cmocka_unit_test(test_writing_without_memory),
      cmocka_unit_test(test_a_command_without_memory),
      cmocka_unit_test(test_report),
      cmocka_unit_test(test_words_of_a_report),
      cmocka_unit_test(test_report_cut_anywhere),
      cmocka_unit_test(test_reports_that_are_wrong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
