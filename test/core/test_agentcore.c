/* Tests of the AgentCore provider's parts that need no server: options, signatures by AWS's own
 * examples, what streams say, and sending without memory. */
#include "providers/agentcore/agentcore.h"
#include "providers/agentcore/result.h"
#include "providers/agentcore/sigv4.h"

#include "support/config_test.h"
#include "support/event_model.h"
#include "support/loop_fixture.h"

#define KEYS "\"accessKeyId\":\"AKID\",\"secretAccessKey\":\"secret\",\"region\":\"us-west-2\""

/* ---- options ---- */

static void test_options(void **state) {
  (void)state;
  sbx_config *config = config_of(&sbx_agentcore_provider, "{" KEYS "}");
  assert_string_equal(config->url, "https://bedrock-agentcore.us-west-2.amazonaws.com/"
                                   "code-interpreters/aws.codeinterpreter.v1");
  assert_true(config->owned && config->keys.source == SBX__AC_GIVEN);
  assert_string_equal(config->create_body, "{\"sessionTimeoutSeconds\":900");
  sbx__ac_config_free(config);
  config =
      config_of(&sbx_agentcore_provider,
                "{\"region\":\"cn-north-1\",\"containerUrl\":\"http://h/c\","
                "\"containerPass\":\"p\",\"instanceUrl\":\"http://i\",\"name\":\"n\","
                "\"codeInterpreter\":\"arn:aws:b:r:1:code-interpreter/x\",\"env\":{\"A\":\"b\","
                "\"C\":\"d\"},\"lifetimeSeconds\":28800,\"sandboxId\":\"s\"}");
  assert_string_equal(config->url,
                      "https://bedrock-agentcore.cn-north-1.amazonaws.com.cn/code-interpreters/"
                      "arn%3Aaws%3Ab%3Ar%3A1%3Acode-interpreter%2Fx");
  assert_true(!config->owned && config->keys.source == SBX__AC_CONTAINER);
  assert_int_equal(config->env_count, 2);
  assert_true(sbx_slice_eq_str(config->env[1].name, "C") &&
              sbx_slice_eq_str(config->env[1].value, "d"));
  sbx__ac_config_free(config);
  config = config_of(&sbx_agentcore_provider, "{\"region\":\"us-gov-west-1\"}");
  assert_int_equal(config->keys.source, SBX__AC_NONE);
  sbx__ac_config_free(config);
}

static void test_options_that_are_wrong(void **state) {
  static const wrong_options cases[] = {
      {BYTES("{}"), SBX_EINVAL, "region"},
      {BYTES("{\"region\":\"canary\"}"), SBX_EINVAL, "region"},
      {BYTES("{\"region\":\"us-west-2.canary/\"}"), SBX_EINVAL, "region"},
      {BYTES("{\"region\":\"us-west-2\",\"accessKeyId\":\"canary\"}"), SBX_EINVAL,
       "secretAccessKey"},
      {BYTES("{" KEYS ",\"sessionToken\":\"canary\\n\"}"), SBX_EINVAL, "sessionToken"},
      {BYTES("{" KEYS ",\"apiKey\":\"canary\"}"), SBX_EINVAL, "unknown option"},
      {BYTES("{" KEYS ",\"baseURL\":\"canary\"}"), SBX_EINVAL, "baseURL"},
      {BYTES("{" KEYS ",\"codeInterpreter\":\"..\"}"), SBX_EINVAL, "codeInterpreter"},
      {BYTES("{" KEYS ",\"lifetimeSeconds\":28801}"), SBX_EINVAL, "lifetimeSeconds"},
      {BYTES("{" KEYS ",\"env\":{\"A\":1}}"), SBX_EINVAL, "env"},
      {BYTES("{" KEYS ",\"owned\":false}"), SBX_EINVAL, "owned"},
      {BYTES("{\"region\":\"us-west-2\",\"instanceUrl\":\"canary\"}"), SBX_EINVAL, "instanceUrl"},
      {BYTES("{" KEYS ",\"ca\":\"\"}"), SBX_EINVAL, "ca"},
  };
  (void)state;
  assert_refused(&sbx_agentcore_provider, cases, COUNT(cases));
}

static void test_options_without_memory(void **state) {
  config_run run = {&sbx_agentcore_provider,
                    BYTES("{" KEYS ",\"baseURL\":\"http://h\",\"containerUrl\":\"http://h/c\","
                          "\"env\":{\"A\":\"b\"},\"name\":\"n\",\"proxy\":\"\"}")};
  (void)state;
  assert_true(each_allocation_fails(configure_once, &run) > 12);
}

/* ---- signatures ---- */

typedef struct example {
  const char *name, *method, *url, *type, *body, *field, *value, *service, *signature;
} example;

static sbx__sigv4 signing(const char *region, const char *service, int64_t now) {
  return (sbx__sigv4){.id = BYTES("AKIDEXAMPLE"),
                      .secret = BYTES("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
                      .region = sbx_slice_str(region),
                      .service = sbx_slice_str(service),
                      .now = now};
}

static void assert_signature(const sbx_headers *headers, const char *wanted) {
  sbx_slice value;
  assert_true(sbx_headers_get(headers, "authorization", &value));
  assert_true(value.len > 64);
  assert_slice(sbx_slice_skip(value, value.len - 64), sbx_slice_str(wanted));
}

/* AWS's published examples, of its test suite and of its manual. */
static void test_published_examples(void **state) {
  enum { THEN = 1440938160 }; /* 20150830T123600Z */
  static const char form[] = "application/x-www-form-urlencoded";
  static const example examples[] = {
      {"get-vanilla", "GET", "https://example.amazonaws.com/", NULL, "", NULL, NULL, "service",
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"get-vanilla-query-order-key-case", "GET",
       "https://example.amazonaws.com/?Param2=value2&Param1=value1", NULL, "", NULL, NULL,
       "service", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
      {"get-vanilla-query-order-value", "GET",
       "https://example.amazonaws.com/?Param1=value2&Param1=value1", NULL, "", NULL, NULL,
       "service", "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694"},
      {"post-vanilla", "POST", "https://example.amazonaws.com/", NULL, "", NULL, NULL, "service",
       "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
      {"post-x-www-form-urlencoded", "POST", "https://example.amazonaws.com/", form,
       "Param1=value1", NULL, NULL, "service",
       "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
      {"the manual's ListUsers", "GET",
       "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", NULL, "", "Content-Type",
       "application/x-www-form-urlencoded; charset=utf-8", "iam",
       "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(examples); i++) {
    const example *e = &examples[i];
    const sbx__sigv4 how = signing("us-east-1", e->service, THEN);
    const sbx_http_request request = {.method = e->method,
                                      .url = sbx_slice_str(e->url),
                                      .content_type = e->type,
                                      .body = sbx_slice_str(e->body)};
    sbx_headers headers;
    sbx_err err;
    sbx_headers_init(&headers, 4096);
    if (e->field != NULL)
      sbx_headers_add(&headers, sbx_slice_str(e->field), sbx_slice_str(e->value), &err);
    assert_int_equal(sbx__sigv4_sign(&how, &request, &headers, &err), SBX_OK);
    assert_signature(&headers, e->signature);
    sbx_headers_deinit(&headers);
  }
}

/* Computed by two other programs: with a body that is taken, a token, and a field that may change
 * on the way. */
static void test_a_tool_call(void **state) {
  static const char body[] = "{\"arguments\":{\"command\":\"id\"},\"name\":\"executeCommand\"}";
  sbx__sigv4 how = signing("us-west-2", "bedrock-agentcore", 1767323045);
  sbx_headers headers;
  sbx_buf taken;
  sbx_err err;
  sbx_slice value;
  (void)state;
  how.token = LIT("TOKEN/1==");
  sbx_buf_init(&taken, 1000);
  sbx_buf_append_slice(&taken, LIT(body));
  const sbx_http_request request = {
      .method = "POST",
      .url = BYTES("https://bedrock-agentcore.us-west-2.amazonaws.com/code-interpreters/"
                   "aws.codeinterpreter.v1/tools/invoke"),
      .content_type = "application/json",
      .take_body = &taken};
  sbx_headers_init(&headers, 4096);
  sbx_headers_add(&headers, LIT("User-Agent"), LIT("any"), &err);
  sbx_headers_add(&headers, LIT("x-amzn-code-interpreter-session-id"), LIT("01TEST"), &err);
  sbx_headers_add(&headers, LIT("Accept"), LIT("application/vnd.amazon.eventstream"), &err);
  assert_int_equal(sbx__sigv4_sign(&how, &request, &headers, &err), SBX_OK);
  assert_signature(&headers, "bcf03bb2db07f841ceecfa10ae78567f6875cac0426532168a07684aa9161f3c");
  assert_true(sbx_headers_get(&headers, "authorization", &value));
  sbx_slice begin = LIT("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102/us-west-2/"
                        "bedrock-agentcore/aws4_request, SignedHeaders=accept;content-type;host;"
                        "x-amz-date;x-amz-security-token;x-amzn-code-interpreter-session-id, "
                        "Signature=");
  assert_true(sbx_slice_starts_with(value, begin));
  sbx_headers_deinit(&headers);
  sbx_buf_deinit(&taken);
}

/* What bodies begin with alike changes no signature. */
static void test_bodies_that_begin_alike(void **state) {
  static sbx__sigv4_alike alike;
  char body[SBX__SIGV4_ALIKE + 100];
  (void)state;
  for (size_t i = 0; i < 40; i++) {
    size_t len = i % 4 == 3 ? 100 : SBX__SIGV4_ALIKE - 3 + i;
    sbx__sigv4 how = signing("us-west-2", "s", 1767323045);
    memset(body, i < 20 ? 'a' : 'b', sizeof body);
    body[len - 1] = (char)('0' + i);
    const sbx_http_request request = {
        .method = "POST", .url = BYTES("http://h/"), .body = {body, len}};
    sbx_slice values[2];
    sbx_headers headers[2];
    for (size_t k = 0; k < 2; k++) {
      sbx_err err;
      how.alike = k == 0 ? NULL : &alike;
      sbx_headers_init(&headers[k], 4096);
      assert_int_equal(sbx__sigv4_sign(&how, &request, &headers[k], &err), SBX_OK);
      assert_true(sbx_headers_get(&headers[k], "authorization", &values[k]));
    }
    assert_slice(values[1], values[0]);
    sbx_headers_deinit(&headers[0]);
    sbx_headers_deinit(&headers[1]);
  }
  assert_true(alike.known);
}

static void test_what_cannot_be_signed(void **state) {
  sbx__sigv4 how = signing("us-west-2", "s", 0);
  sbx_headers headers;
  sbx_err err;
  sbx_buf url;
  (void)state;
  sbx_headers_init(&headers, 4096);
  sbx_http_request request = {.method = "GET", .url = BYTES("ftp://h/")};
  assert_int_equal(sbx__sigv4_sign(&how, &request, &headers, &err), SBX_EINVAL);
  sbx_headers_deinit(&headers);
  sbx_buf_init(&url, 4096);
  sbx_buf_append_str(&url, "http://h/?a=1");
  for (int i = 0; i < 16; i++)
    sbx_buf_append_str(&url, "&b=2");
  request.url = sbx_buf_slice(&url);
  assert_int_equal(sbx__sigv4_sign(&how, &request, &headers, &err), SBX_ETOOBIG);
  sbx_headers_deinit(&headers);
  for (int i = 0; i < 40; i++)
    sbx_headers_add(&headers, LIT("x"), LIT("y"), &err);
  request.url = LIT("http://h/");
  assert_int_equal(sbx__sigv4_sign(&how, &request, &headers, &err), SBX_ETOOBIG);
  sbx_headers_deinit(&headers);
  sbx_buf_deinit(&url);
}

static int sign_once(void *arg) {
  const sbx__sigv4 how = signing("us-west-2", "s", 1767323045);
  const sbx_http_request request = {
      .method = "GET", .url = BYTES("http://h:81/a%3Ab?q=1"), .body = BYTES("x")};
  sbx_headers headers;
  sbx_err err;
  (void)arg;
  sbx_headers_init(&headers, 4096);
  int rc = sbx__sigv4_sign(&how, &request, &headers, &err);
  sbx_headers_deinit(&headers);
  return rc;
}

static void test_signing_without_memory(void **state) {
  (void)state;
  assert_true(each_allocation_fails(sign_once, NULL) > 6);
}

/* ---- what streams say ---- */

#define RESULT "event", ":event-type", "result"
#define OUT(text) "{\"structuredContent\":{\"stdout\":\"" text "\",\"stderr\":\"e\"}}"

static int read_result(const sbx_buf *stream, sbx__ac_result *result, sbx_err *err) {
  *err = (sbx_err){0};
  sbx__ac_result_init(result);
  return sbx__ac_result_read(result, sbx_buf_slice(stream), err);
}

static void test_results(void **state) {
  sbx__ac_result result;
  sbx_buf stream;
  sbx_err err;
  (void)state;
  sbx_buf_init(&stream, 4096);
  event_put(&stream, "event", ":event-type", "initial-response", "no JSON");
  event_put(&stream, "later", ":event-type", "result", "no JSON");
  event_put(&stream, RESULT, OUT("a"));
  event_put(&stream, RESULT, "{\"structuredContent\":{\"stdout\":\"b\"},\"isError\":true}");
  assert_int_equal(read_result(&stream, &result, &err), SBX_OK);
  assert_slice(sbx_buf_slice(&result.printed), LIT("ab"));
  assert_slice(sbx_buf_slice(&result.said), LIT("e"));
  assert_true(result.any && result.failed && !result.refused);
  sbx__ac_result_deinit(&result);
  sbx_buf_truncate(&stream, 0);
  event_put(&stream, RESULT,
            "{\"content\":[{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"image\"},7]}");
  assert_int_equal(read_result(&stream, &result, &err), SBX_OK);
  assert_slice(sbx_buf_slice(&result.printed), LIT("x"));
  sbx__ac_result_deinit(&result);
  sbx_buf_deinit(&stream);
}

static void test_exceptions(void **state) {
  static const struct {
    const char *kind, *header, *name, *payload;
    int code;
    bool refused;
    const char *says;
  } cases[] = {
      {"exception", ":exception-type", "throttlingException", "{\"message\":\"slow\"}", SBX_ERATE,
       true, "slow"},
      {"exception", ":exception-type", "accessDeniedException", "{\"Message\":\"no\"}",
       SBX_EFORBIDDEN, true, "no"},
      {"exception", ":exception-type", "validationException", "{\"message\":\"bad\"}", SBX_EINVAL,
       true, "bad"},
      {"exception", ":exception-type", "validationException",
       "{\"message\":\"the session is not active\"}", SBX_ECONFLICT, false, "not active"},
      {"exception", ":exception-type", "resourceNotFoundException", "{}", SBX_ECONFLICT, false,
       "resourceNotFoundException"},
      {"exception", ":exception-type", "serviceQuotaExceededException", "x", SBX_EQUOTA, true, "x"},
      {"exception", ":exception-type", "internalServerException", "", SBX_EPROVIDER, false,
       "internalServerException"},
      {"exception", ":exception-type", "fooException", "words", SBX_EPROVIDER, false, "words"},
      {"error", ":error-code", "Boom", "", SBX_EPROVIDER, false, "Boom"},
  };
  (void)state;
  for (size_t i = 0; i < 2 * COUNT(cases); i++) {
    bool after = i >= COUNT(cases); /* a result, so that something was done */
    size_t k = i % COUNT(cases);
    sbx__ac_result result;
    sbx_buf stream;
    sbx_err err;
    sbx_buf_init(&stream, 4096);
    if (after)
      event_put(&stream, RESULT, OUT("a"));
    event_put(&stream, cases[k].kind, cases[k].header, cases[k].name, cases[k].payload);
    assert_int_equal(read_result(&stream, &result, &err), cases[k].code);
    assert_int_equal(result.refused, cases[k].refused && !after);
    assert_non_null(strstr(err.message, cases[k].says));
    sbx__ac_result_deinit(&result);
    sbx_buf_deinit(&stream);
  }
}

static void test_streams_that_are_none(void **state) {
  sbx__ac_result result;
  sbx_buf stream;
  sbx_err err;
  (void)state;
  sbx_buf_init(&stream, 4096);
  assert_int_equal(read_result(&stream, &result, &err), SBX_ENET);
  sbx__ac_result_deinit(&result);
  event_put(&stream, RESULT, "no JSON");
  assert_int_equal(read_result(&stream, &result, &err), SBX_EPROTO);
  sbx__ac_result_deinit(&result);
  stream.len--;
  assert_int_equal(read_result(&stream, &result, &err), SBX_ENET);
  sbx__ac_result_deinit(&result);
  sbx_buf_deinit(&stream);
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
  return sbx__ac_exec(session, &echo, output, status, on_run_done, r);
}

static sbx_op *begin_put(sbx_session *session, sbx_output *output, sbx_exec_status *status,
                         run *r) {
  static char large[70000];
  (void)output;
  (void)status;
  return sbx__ac_put(session, LIT("caf\xc3\xa9"), sbx_slice_of(large, sizeof large), on_run_done,
                     r);
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
  assert_int_equal(sbx_json_parse(&doc,
                                  LIT("{" KEYS ",\"env\":{\"A\":\"b\"},"
                                      "\"baseURL\":\"http://127.0.0.1:1\"}"),
                                  NULL),
                   SBX_OK);
  assert_int_equal(
      sbx_provider_configure(&config, &sbx_agentcore_provider, loop, sbx_json_root(doc), NULL),
      SBX_OK);
  sbx_json_free(doc, true);
  sbx_session *session = sbx_agentcore_provider.session_new(config);
  assert_non_null(session);
  assert_int_equal(sbx__ac_take_id(session, LIT("s"), NULL), SBX_OK);
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
  sbx_agentcore_provider.session_free(session);
  sbx__ac_config_free(config);
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
      cmocka_unit_test(test_published_examples),
      cmocka_unit_test(test_a_tool_call),
      cmocka_unit_test(test_bodies_that_begin_alike),
      cmocka_unit_test(test_what_cannot_be_signed),
      cmocka_unit_test(test_signing_without_memory),
      cmocka_unit_test(test_results),
      cmocka_unit_test(test_exceptions),
      cmocka_unit_test(test_streams_that_are_none),
      cmocka_unit_test(test_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
