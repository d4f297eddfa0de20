/* Tests of the Modal provider's parts that need no server: options, what an answer means, tokens.
 */
#include "providers/modal/access.h"
#include "providers/modal/modal.h"

#include "support/config_test.h"

#include <stdio.h>

#define TOKEN "\"tokenId\":\"ak-i\",\"tokenSecret\":\"as-s\""
#define EXPECT(buf, text) assert_true(sbx_slice_eq(sbx_buf_slice(buf), LIT(text)))

/* ---- options ---- */

static void test_options(void **state) {
  (void)state;
  sbx_config *config = config_of(&sbx_modal_provider, "{" TOKEN ",\"baseURL\":\"https://h:1/\"}");
  assert_string_equal(config->server_url, "https://h:1");
  assert_string_equal(config->app, "cloudsandbox");
  assert_true(config->owned && !config->keyless);
  EXPECT(&config->definition, "\x2a\x02\x22\x00\x38\xac\x02\xa2\x01\x00");
  EXPECT(&config->tags, "");
  sbx__modal_config_free(config);
  config = config_of(&sbx_modal_provider,
                     "{" TOKEN ",\"sandboxId\":\"sb-1\",\"imageId\":\"im-1\",\"workdir\":\"/w\","
                     "\"lifetimeSeconds\":600,\"idleTimeoutSeconds\":5,\"memoryMb\":128,"
                     "\"milliCpus\":500,\"blockNetwork\":true,\"name\":\"n\",\"env\":{\"A\":\"b\"},"
                     "\"tags\":{\"c\":\"d\"}}");
  assert_string_equal(config->server_url, "https://api.modal.com");
  assert_false(config->owned);
  EXPECT(&config->definition, "\x2a\x08\x10\x80\x01\x18\xf4\x03\x22\x00\x38\xd8\x04\x42\x02/w"
                              "\xa2\x01\x00\xb2\x01\x02\x08\x02\xf2\x01\x01n\x88\x02\x05");
  EXPECT(&config->tags, "\x22\x06\x0a\x01"
                        "c\x12\x01"
                        "d\x32\x0a\x12\x08\x0a\x06\x0a\x01"
                        "A\x12\x01"
                        "b");
  sbx__modal_config_free(config);
  config = config_of(&sbx_modal_provider, "{\"lateAuth\":true}");
  assert_true(config->keyless);
  sbx__modal_config_free(config);
}

static void test_options_that_are_wrong(void **state) {
  static const wrong_options cases[] = {
      {BYTES("{}"), SBX_EKEY, "missing token"},
      {BYTES("{\"tokenId\":\"canary\"}"), SBX_EKEY, "tokenSecret"},
      {BYTES("{\"tokenId\":\"canary\\n\",\"tokenSecret\":\"s\"}"), SBX_EINVAL, "tokenId"},
      {BYTES("{\"apiKey\":\"canary\"}"), SBX_EINVAL, "unknown option"},
      {BYTES("{" TOKEN ",\"baseURL\":\"canary\"}"), SBX_EINVAL, "baseURL"},
      {BYTES("{" TOKEN ",\"env\":{\"A\":1}}"), SBX_EINVAL, "env"},
      {BYTES("{" TOKEN ",\"tags\":[]}"), SBX_EINVAL, "tags"},
      {BYTES("{" TOKEN ",\"image\":\"i\",\"imageId\":\"im-1\"}"), SBX_EINVAL, "imageId"},
      {BYTES("{" TOKEN ",\"imageId\":\"a/b\"}"), SBX_EINVAL, "imageId"},
      {BYTES("{" TOKEN ",\"lifetimeSeconds\":86401}"), SBX_EINVAL, "lifetimeSeconds"},
      {BYTES("{" TOKEN ",\"milliCpus\":0}"), SBX_EINVAL, "milliCpus"},
      {BYTES("{" TOKEN ",\"cidrAllowlist\":\"10.0.0.0/8\"}"), SBX_EINVAL, "cidrAllowlist"},
      {BYTES("{" TOKEN ",\"domainAllowlist\":[1]}"), SBX_EINVAL, "domainAllowlist"},
      {BYTES("{" TOKEN ",\"blockNetwork\":true,\"domainAllowlist\":[]}"), SBX_EINVAL, "not both"},
      {BYTES("{" TOKEN ",\"owned\":false}"), SBX_EINVAL, "owned"},
  };
  (void)state;
  assert_refused(&sbx_modal_provider, cases, sizeof cases / sizeof *cases);
}

static void test_options_without_memory(void **state) {
  (void)state;
  int rc = SBX_ENOMEM;
  for (size_t nth = 1; rc == SBX_ENOMEM; nth++) {
    sbx_config *config = NULL;
    sbx_err err;
    sbx_alloc_fail_at(nth, false);
    rc = configure(&config, &sbx_modal_provider,
                   LIT("{" TOKEN ",\"image\":\"i\",\"env\":{\"A\":\"b\"},\"tags\":{\"c\":\"d\"},"
                       "\"domainAllowlist\":[\"x\"]}"),
                   &err);
    bool failed = sbx_alloc_failed();
    sbx_alloc_fail_at(0, false);
    if (rc == SBX_OK)
      sbx__modal_config_free(config);
    rc = failed ? SBX_ENOMEM : rc;
  }
  assert_int_equal(rc, SBX_OK);
}

/* ---- what an answer means ---- */

typedef struct answer {
  int status;
  const char *fields; /* of the only head: lines */
  const char *trailers;
  sbx_slice body;
} answer;

static void fill(sbx_headers *headers, const char *lines) {
  sbx_headers_init(headers, 4096);
  for (sbx_slice rest = sbx_slice_str(lines); rest.len > 0;) {
    sbx_slice line = sbx_slice_of(rest.ptr, sbx_slice_find(rest, '\n'));
    assert_int_equal(sbx_headers_add_line(headers, line, NULL), SBX_OK);
    rest = sbx_slice_skip(rest, line.len + 1);
  }
}

static int read_answer(const answer *a, sbx__modal_plane plane, sbx_buf *seen, sbx_err *err) {
  sbx_http reply = {.status = a->status};
  sbx_slice message;
  fill(&reply.headers, a->fields);
  fill(&reply.trailers, a->trailers);
  sbx_buf_init(&reply.body, 4096);
  sbx_buf_append_slice(&reply.body, a->body);
  int rc = sbx__modal_message(&message, plane, &reply, "try", err);
  if (rc == SBX_OK)
    sbx_buf_append_slice(seen, message);
  sbx_headers_deinit(&reply.headers);
  sbx_headers_deinit(&reply.trailers);
  sbx_buf_deinit(&reply.body);
  return rc;
}

static void test_one_message(void **state) {
  (void)state;
  const answer good = {200, "content-type: application/grpc", "grpc-status: 0",
                       LIT("\0\0\0\0\x02hi")};
  const answer empty = {200, "", "grpc-status: 0", LIT("\0\0\0\0\0")};
  sbx_buf seen;
  sbx_err err;
  sbx_buf_init(&seen, 64);
  assert_int_equal(read_answer(&good, SBX__MODAL_CONTROL, &seen, &err), SBX_OK);
  assert_int_equal(read_answer(&empty, SBX__MODAL_CONTROL, &seen, &err), SBX_OK);
  EXPECT(&seen, "hi");
  sbx_buf_deinit(&seen);
}

static void test_refusals(void **state) {
  (void)state;
  static const struct {
    answer a;
    int control, router;
    const char *says;
    bool no_effect;
  } cases[] = {
      {{200, "grpc-status: 5\ngrpc-message: not%20there%E2%82%AC", "", BYTES("")},
       SBX_ENOTFOUND,
       SBX_ECONFLICT,
       "modal: try: NOT_FOUND: not there\xe2\x82\xac",
       true},
      {{200, "", "grpc-status: 16", BYTES("")}, SBX_EAUTH, SBX_EAUTH, "UNAUTHENTICATED", true},
      {{200, "", "grpc-status: 14\ngrpc-message: %zz", BYTES("")},
       SBX_EPROVIDER,
       SBX_EPROVIDER,
       "UNAVAILABLE: %zz",
       false},
      {{200, "", "grpc-status: 8\ngrpc-message: full", BYTES("")},
       SBX_EQUOTA,
       SBX_EQUOTA,
       "RESOURCE_EXHAUSTED: full",
       true},
      {{200, "", "grpc-status: 0", BYTES("")}, SBX_EPROTO, SBX_EPROTO, "no message", false},
      {{200, "", "grpc-status: 0", BYTES("\0\0\0\0\1x\0\0\0\0\1y")},
       SBX_EPROTO,
       SBX_EPROTO,
       "more than one message",
       false},
      {{200, "", "grpc-status: 0", BYTES("\1\0\0\0\1x")},
       SBX_EPROTO,
       SBX_EPROTO,
       "flags 0x01",
       false},
      {{200, "", "grpc-status: 0", BYTES("\2\0\0\0\0")},
       SBX_EPROTO,
       SBX_EPROTO,
       "flags 0x02",
       false},
      {{200, "", "grpc-status: 0", BYTES("\0\0\0\0\2x")},
       SBX_EPROTO,
       SBX_EPROTO,
       "broke off",
       false},
      {{200, "", "grpc-status: 17", BYTES("")}, SBX_EPROTO, SBX_EPROTO, "not known", false},
      {{200, "", "grpc-status: -1", BYTES("\0\0\0\0\0")},
       SBX_ENET,
       SBX_ENET,
       "without a status",
       false},
      {{200, "", "", BYTES("\0\0\0\0\0")}, SBX_ENET, SBX_ENET, "without a status", false},
      {{503, "", "", BYTES("")}, SBX_EPROVIDER, SBX_EPROVIDER, "503", false},
      {{404, "", "", BYTES("")}, SBX_EPROTO, SBX_EPROTO, "address of Modal's API", true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sbx_buf seen;
    sbx_err err;
    sbx_buf_init(&seen, 64);
    assert_int_equal(read_answer(&cases[i].a, SBX__MODAL_ROUTER, &seen, &err), cases[i].router);
    assert_int_equal(read_answer(&cases[i].a, SBX__MODAL_CONTROL, &seen, &err), cases[i].control);
    if (strstr(err.message, cases[i].says) == NULL || err.no_effect != cases[i].no_effect)
      fail_msg("%zu: %s (%d)", i, err.message, err.no_effect);
    sbx_buf_deinit(&seen);
  }
}

/* Status{8, "slow", [Any{"type.googleapis.com/modal.client.RPCRetryPolicy", {1: 1.5}}]} */
static void test_a_wait_that_is_asked_for(void **state) {
  (void)state;
  static const answer a = {
      200, "",
      "grpc-status: 8\n"
      "grpc-status-details-bin: "
      "CAgSBHNsb3caOAovdHlwZS5nb29nbGVhcGlzLmNvbS9tb2RhbC5jbGllbnQuUlBDUmV0cnlQb2xpY3kSBQ0AAMA/",
      BYTES("")};
  sbx_buf seen;
  sbx_err err;
  sbx_buf_init(&seen, 64);
  assert_int_equal(read_answer(&a, SBX__MODAL_CONTROL, &seen, &err), SBX_ERATE);
  assert_int_equal(err.retry_after_ms, 1501);
  sbx_buf_deinit(&seen);
}

/* ---- tokens ---- */

static void test_until_when_a_token_is_good(void **state) {
  (void)state;
  uint64_t now = sbx_now_ms();
  /* {"exp":99999999999}, {"exp":1}, {"exp":"x"}; none at all */
  uint64_t until = sbx__modal_jwt_until(LIT("e30.eyJleHAiOjk5OTk5OTk5OTk5fQ.c2ln"), 5);
  assert_true(until > now + 1000000000);
  assert_int_equal(sbx__modal_jwt_until(LIT("e30.eyJleHAiOjF9.c2ln"), 5), 0);
  assert_true(sbx__modal_jwt_until(LIT("e30.eyJleHAiOiJ4In0.c2ln"), 5) >= now + 5);
  assert_true(sbx__modal_jwt_until(LIT("token"), 5) >= now + 5);
  assert_true(sbx__modal_jwt_until(LIT("a.!.c"), 5) >= now + 5);
}

static void test_access(void **state) {
  (void)state;
  static const struct {
    const char *url;
    int code;
  } cases[] = {
      {"https://w.example:443", SBX_OK},
      {"https://w.example/", SBX_OK},
      {"http://w.example", SBX_EPROTO},
      {"https://w.example/a", SBX_EPROTO},
      {"https://u@w.example", SBX_EPROTO},
      {"w.example", SBX_EPROTO},
      {"", SBX_EPROTO},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sbx_session *session = sbx__modal_session_new(NULL);
    sbx_buf message;
    sbx_err err;
    sbx_buf_init(&message, 256);
    sbx_pb_put_str(&message, 1, "jwt");
    sbx_pb_put_str(&message, 2, cases[i].url);
    assert_int_equal(sbx__modal_take_access(session, sbx_buf_slice(&message), "try", &err),
                     cases[i].code);
    assert_int_equal(session->jwt != NULL, cases[i].code == SBX_OK);
    sbx_buf_deinit(&message);
    sbx__modal_session_free(session);
  }
  assert_true(sbx__modal_is_old("sb-0123456789abcdefABCDEF"));
  assert_false(sbx__modal_is_old("sb-0123456789abcdefABCDEFghiV"));
  assert_false(sbx__modal_is_old("sb-0123456789abcdefABCDE-"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_options),
      cmocka_unit_test(test_options_that_are_wrong),
      cmocka_unit_test(test_options_without_memory),
      cmocka_unit_test(test_one_message),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_a_wait_that_is_asked_for),
      cmocka_unit_test(test_until_when_a_token_is_good),
      cmocka_unit_test(test_access),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
