/* Tests of the Vercel provider's parts that need no server: options, the lines of an answer, names
 * in archives, and sending a command without memory. */
#include "providers/vercel/logs.h"
#include "providers/vercel/vercel.h"

#include "support/config_test.h"
#include "support/loop_fixture.h"

#define CREDENTIALS "\"token\":\"k\",\"teamId\":\"t\",\"projectId\":\"p\""

/* ---- options ---- */

static void test_options(void **state) {
  (void)state;
  sbx_config *config =
      config_of(&sbx_vercel_provider, "{" CREDENTIALS ",\"baseURL\":\"http://h:1/api//\"}");
  assert_string_equal(config->api_url, "http://h:1/api");
  assert_true(config->owned && !config->keyless && !config->old_route);
  assert_string_equal(config->create_body,
                      "{\"projectId\":\"p\",\"timeout\":300000,\"ports\":[],\"persistent\":false,"
                      "\"tags\":{");
  sbx__vercel_config_free(config);
  config = config_of(&sbx_vercel_provider,
                     "{" CREDENTIALS ",\"sandboxId\":\"s\",\"runtime\":\"node24\",\"vcpus\":2,"
                     "\"lifetimeMs\":1000,\"region\":\"iad1\",\"env\":{\"A\":\"b\"},"
                     "\"tags\":{\"c\":\"d\"},\"networkPolicy\":{\"mode\":\"deny-all\"}}");
  assert_string_equal(config->api_url, "https://vercel.com/api");
  assert_true(!config->owned && config->old_route);
  assert_string_equal(
      config->create_body,
      "{\"projectId\":\"p\",\"timeout\":1000,\"runtime\":\"node24\",\"region\":\"iad1\","
      "\"ports\":[],\"persistent\":false,\"resources\":{\"vcpus\":2},"
      "\"networkPolicy\":{\"mode\":\"deny-all\"},\"env\":{\"A\":\"b\"},\"tags\":{\"c\":\"d\"");
  sbx__vercel_config_free(config);
  config = config_of(&sbx_vercel_provider, "{\"lateAuth\":true}");
  assert_true(config->keyless);
  sbx__vercel_config_free(config);
}

static void test_options_that_are_wrong(void **state) {
  static const wrong_options cases[] = {
      {BYTES("{}"), SBX_EKEY, "missing API key"},
      {BYTES("{\"token\":\"canary\",\"teamId\":\"t\"}"), SBX_EKEY, "projectId"},
      {BYTES("{\"token\":\"\",\"teamId\":\"t\",\"projectId\":\"p\"}"), SBX_EINVAL, "token"},
      {BYTES("{\"token\":\"canary\\n\",\"teamId\":\"t\",\"projectId\":\"p\"}"), SBX_EINVAL,
       "token"},
      {BYTES("{\"apiKey\":\"canary\"}"), SBX_EINVAL, "unknown option"},
      {BYTES("{" CREDENTIALS ",\"baseURL\":\"canary\"}"), SBX_EINVAL, "baseURL"},
      {BYTES("{" CREDENTIALS ",\"env\":{\"A\":1}}"), SBX_EINVAL, "env"},
      {BYTES("{" CREDENTIALS ",\"tags\":[]}"), SBX_EINVAL, "tags"},
      {BYTES("{" CREDENTIALS ",\"tags\":{\"a\":\"\",\"b\":\"\",\"c\":\"\",\"d\":\"\","
             "\"e\":\"\"}}"),
       SBX_EINVAL, "tags"},
      {BYTES("{" CREDENTIALS ",\"image\":\"i\",\"runtime\":\"r\"}"), SBX_EINVAL, "runtime"},
      {BYTES("{" CREDENTIALS ",\"vcpus\":0}"), SBX_EINVAL, "vcpus"},
      {BYTES("{" CREDENTIALS ",\"lifetimeMs\":86400001}"), SBX_EINVAL, "lifetimeMs"},
      {BYTES("{" CREDENTIALS ",\"networkPolicy\":\"deny-all\"}"), SBX_EINVAL, "networkPolicy"},
      {BYTES("{" CREDENTIALS ",\"owned\":false}"), SBX_EINVAL, "owned"},
      {BYTES("{" CREDENTIALS ",\"ca\":\"\"}"), SBX_EINVAL, "ca"},
  };
  (void)state;
  assert_refused(&sbx_vercel_provider, cases, COUNT(cases));
}

static void test_options_without_memory(void **state) {
  config_run run = {&sbx_vercel_provider,
                    BYTES("{" CREDENTIALS ",\"baseURL\":\"http://h/api\",\"image\":\"i\","
                          "\"env\":{\"A\":\"b\"},\"tags\":{\"c\":\"d\"},\"proxy\":\"\","
                          "\"networkPolicy\":{\"allow\":[\"x\"]}}")};
  (void)state;
  assert_true(each_allocation_fails(configure_once, &run) > 12);
}

/* ---- the lines of an answer ---- */

typedef struct reading {
  int code;
  bool ended;
  int64_t exit_code;
  char id[SBX__VERCEL_ID_MAX + 1];
  char printed[64];
} reading;

static reading read_in_pieces(sbx_slice text, size_t piece) {
  sbx__vercel_logs logs;
  reading r = {.code = SBX_OK};
  sbx_err err = {0};
  sbx__vercel_logs_init(&logs, sizeof r.printed - 1);
  for (size_t at = 0; r.code == SBX_OK && at < text.len; at += piece) {
    size_t len = text.len - at < piece ? text.len - at : piece;
    r.code = sbx__vercel_logs_feed(&logs, sbx_slice_of(text.ptr + at, len), &err);
  }
  if (r.code == SBX_OK)
    r.code = sbx__vercel_logs_finish(&logs, &err);
  assert_int_equal(err.code, r.code);
  r.ended = logs.ended;
  r.exit_code = logs.exit_code;
  memcpy(r.id, logs.id, sizeof r.id);
  if (logs.printed.len > 0)
    memcpy(r.printed, logs.printed.ptr, logs.printed.len);
  sbx__vercel_logs_deinit(&logs);
  return r;
}

#define BEGUN "{\"command\":{\"id\":\"cmd_1\",\"args\":[\"-c\",\"x\"],\"exitCode\":null}}\n"

static void test_an_answer_at_every_split(void **state) {
  static const char text[] = BEGUN "\r\n"
                                   "{\"stream\":\"stdout\",\"data\":\"caf\xc3\xa9\\n\"}\r\n\n"
                                   "{\"stream\":\"later\",\"data\":\"no\"}\n"
                                   "{\"else\":1}\n"
                                   "{\"stream\":\"stderr\",\"data\":\"a\\u0001\"}\n"
                                   "{\"command\":{\"id\":\"cmd_1\",\"exitCode\":0}}";
  (void)state;
  for (size_t piece = 1; piece <= sizeof text; piece++) {
    reading r = read_in_pieces(LIT(text), piece);
    assert_int_equal(r.code, SBX_OK);
    assert_true(r.ended && r.exit_code == 0);
    assert_string_equal(r.id, "cmd_1");
    assert_string_equal(r.printed, "caf\xc3\xa9\na\x01");
  }
}

static void test_answers_that_are_none(void **state) {
  static const struct {
    sbx_slice text;
    int code;
  } cases[] = {
      {BYTES(""), SBX_ENET},
      {BYTES(BEGUN), SBX_ENET},
      {BYTES(BEGUN "{\"command\":{\"exitCode\":\"0\"}}\n"), SBX_ENET},
      {BYTES(BEGUN "{\"command\":{\"exitCode\":0.5}}\n"), SBX_ENET},
      {BYTES(BEGUN "{\"command\":[0]}\n"), SBX_ENET},
      {BYTES(BEGUN "{\"stream\":\"error\",\"data\":{\"code\":\"sandbox_stopped\"}}\n"), SBX_ENET},
      {BYTES(BEGUN "{\"stream\":\"error\"}\n"), SBX_ENET},
      {BYTES(BEGUN "{\"command\":{\"exitCo"), SBX_ENET},
      {BYTES("<html>\n"), SBX_EPROTO},
      /* More than there is room for. */
      {BYTES(BEGUN "{\"stream\":\"stdout\",\"data\":\"0123456789012345678901234567890123456789"
                   "012345678901234567890123456789\"}\n"),
       SBX_EPROTO},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    assert_int_equal(read_in_pieces(cases[i].text, 1).code, cases[i].code);
    assert_int_equal(read_in_pieces(cases[i].text, 4096).code, cases[i].code);
  }
}

/* The end stands, whatever comes behind it; and so does the first id. */
static void test_an_end_stands(void **state) {
  (void)state;
  reading r = read_in_pieces(
      LIT(BEGUN "{\"command\":{\"id\":\"other\",\"exitCode\":-9}}\nnonsense\n"
                "{\"stream\":\"error\",\"data\":{}}\n{\"command\":{\"exitCode\":1}}\n"),
      7);
  assert_int_equal(r.code, SBX_OK);
  assert_int_equal(r.exit_code, -9);
  assert_string_equal(r.id, "cmd_1");
  r = read_in_pieces(LIT("{\"command\":{\"id\":\"../../x\",\"exitCode\":0}}\n"), 100);
  assert_string_equal(r.id, "");
}

/* What the words of the command say is nothing of ours. */
static void test_words_are_passed_over(void **state) {
  static const struct {
    sbx_slice text;
    int64_t exit_code;
  } cases[] = {
      {BYTES("{\"command\":{\"id\":\"c\",\"args\":[\"]\",\"\\\"],\\\"exitCode\\\":9\","
             "\"\\\\\"],\"exitCode\":1}}\n"),
       1},
      {BYTES("{\"command\":{\"id\":\"c\",\"args\":[],\"exitCode\":2}}\n"), 2},
      {BYTES("{\"command\":{\"name\":\"x,\\\"args\\\":[\",\"exitCode\":3,\"id\":\"c\"}}\n"), 3},
      {BYTES("{ \"command\" : { \"args\" : [ \"]\" ] , \"exitCode\" : 4, \"id\": \"c\" } }\n"), 4},
      {BYTES("{\"command\":{\"exitCode\":5,\"id\":\"c\",\"args\":[\"a\",\"b\"]}}\n"), 5},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    reading r = read_in_pieces(cases[i].text, 4096);
    assert_int_equal(r.code, SBX_OK);
    assert_int_equal(r.exit_code, cases[i].exit_code);
    assert_string_equal(r.id, "c");
  }
  assert_int_equal(read_in_pieces(LIT("{\"command\":{\"id\":\"c\",\"args\":[\"\\\n"), 4096).code,
                   SBX_EPROTO);
}

/* ---- names in archives ---- */

static void test_archive_names(void **state) {
  static const char *const cases[][2] = {
      {"/a", "a"},          {"/a/b.txt", "a/b.txt"}, {"//a//./b/", "a/b"}, {"/a/../b", "b"},
      {"/../../b/..", ""},  {"/a/b/../../c", "c"},   {"/a/...", "a/..."},  {"/", ""},
      {"/a/b/../c", "a/c"}, {"/a/ b", "a/ b"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_buf name;
    sbx_buf_init(&name, 100);
    assert_int_equal(sbx__vercel_archive_name(&name, sbx_slice_str(cases[i][0])), SBX_OK);
    assert_true(sbx_slice_eq_str(sbx_buf_slice(&name), cases[i][1]));
    sbx_buf_deinit(&name);
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

static sbx_op *begin_exec(sbx_session *session, sbx_output *output, sbx_exec_status *status,
                          run *r) {
  static const sbx_exec_spec echo = {
      .kind = SBX_EXEC_SHELL, .text = BYTES("echo 'canary'"), .timeout_ms = 1500};
  return sbx__vercel_exec(session, &echo, output, status, on_run_done, r);
}

static sbx_op *begin_put(sbx_session *session, sbx_output *output, sbx_exec_status *status,
                         run *r) {
  (void)output;
  (void)status;
  return sbx__vercel_put(session, LIT("caf\xc3\xa9"), LIT("bytes"), on_run_done, r);
}

/* Nobody listens at the port: with all the memory it needs, it fails there. */
static void each_allocation_fails_of(sbx_op *(*begin)(sbx_session *, sbx_output *,
                                                      sbx_exec_status *, run *)) {
  uv_loop_t uv;
  sbx_loop *loop;
  sbx_config *config = NULL;
  sbx_json_doc *doc = NULL;
  int code = SBX_ENOMEM;
  loop_open(&uv, &loop);
  assert_int_equal(
      sbx_json_parse(&doc, LIT("{" CREDENTIALS ",\"baseURL\":\"http://127.0.0.1:1/api\"}"), NULL),
      SBX_OK);
  assert_int_equal(
      sbx_provider_configure(&config, &sbx_vercel_provider, loop, sbx_json_root(doc), NULL),
      SBX_OK);
  sbx_json_free(doc, true);
  sbx_session *session = sbx_vercel_provider.session_new(config);
  assert_non_null(session);
  session->id = sbx_strndup("s", 1);
  session->dir = sbx_strndup("/d", 2);
  for (size_t nth = 1; code == SBX_ENOMEM; nth++) {
    run r = {.code = SBX_ENOMEM};
    sbx_exec_status status = {0};
    sbx_output *output = sbx_output_new(1000, SBX_KEEP_HEAD, false, NULL, NULL);
    assert_non_null(output);
    sbx_alloc_fail_at(nth, false);
    sbx_op *op = begin(session, output, &status, &r);
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
  sbx_vercel_provider.session_free(session);
  sbx__vercel_config_free(config);
  loop_end(&uv, loop);
}

static void test_without_memory(void **state) {
  (void)state;
  each_allocation_fails_of(begin_exec);
  each_allocation_fails_of(begin_put);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_options),
      cmocka_unit_test(test_options_that_are_wrong),
      cmocka_unit_test(test_options_without_memory),
      cmocka_unit_test(test_an_answer_at_every_split),
      cmocka_unit_test(test_answers_that_are_none),
      cmocka_unit_test(test_an_end_stands),
      cmocka_unit_test(test_words_are_passed_over),
      cmocka_unit_test(test_archive_names),
      cmocka_unit_test(test_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
