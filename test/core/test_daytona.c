/* Tests of the Daytona provider's parts that need no server: options, and sending a command without
 * memory. What the command's line is stands in test_runner.c. */
#include "providers/daytona/daytona.h"

#include "support/config_test.h"
#include "support/loop_fixture.h"

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
      {BYTES("{\"apiKey\":\"k\",\"toolboxUrl\":\"http://t\"}"), SBX_EINVAL, "toolboxUrl"},
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

/* ---- the toolbox ---- */

/* An API of https must not lead the key elsewhere in the clear. */
static void test_a_toolbox_is_as_safe_as_the_api(void **state) {
  static const struct {
    const char *address;
    int code;
  } cases[] = {{"https://proxy.example/toolbox", SBX_OK},
               {"http://127.0.0.1:4000/toolbox", SBX_OK},
               {"http://proxy.example/toolbox", SBX_EPROTO},
               {"http://127.0.0.1.example/toolbox", SBX_EPROTO},
               {"ftp://proxy.example/toolbox", SBX_EPROTO}};
  (void)state;
  sbx_config *config = config_of(&sbx_daytona_provider, "{\"apiKey\":\"k\"}");
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_session *session = sbx_daytona_provider.session_new(config);
    sbx_json_doc *doc = NULL;
    sbx_buf text;
    sbx_err err;
    sbx_buf_init(&text, 200);
    sbx_buf_appendf(&text, "{\"id\":\"a\",\"toolboxProxyUrl\":\"%s\"}", cases[i].address);
    assert_int_equal(sbx_json_parse(&doc, sbx_buf_slice(&text), NULL), SBX_OK);
    assert_int_equal(sbx__daytona_take(session, sbx_json_root(doc), &err), cases[i].code);
    assert_true((session->toolbox != NULL) == (cases[i].code == SBX_OK));
    sbx_json_free(doc, true);
    sbx_buf_deinit(&text);
    sbx_daytona_provider.session_free(session);
  }
  sbx__daytona_config_free(config);
}

/* ---- a command ---- */

static const sbx_exec_spec echo = {
    .kind = SBX_EXEC_SHELL, .text = BYTES("echo 'canary'"), .timeout_ms = 1500};

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
    sbx_op *op = sbx__daytona_exec(session, &echo, output, &status, on_run_done, &r);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_options),
      cmocka_unit_test(test_options_that_are_wrong),
      cmocka_unit_test(test_options_without_memory),
      cmocka_unit_test(test_a_toolbox_is_as_safe_as_the_api),
      cmocka_unit_test(test_a_command_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
