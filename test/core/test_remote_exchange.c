/* Tests of what all services over HTTP share: what a reply means, whose it is, what stands between
 * a complete request and its sending. */
#include "providers/remote/exchange.h"

#include "providers/remote/identity.h"
#include "support/http_fixture.h"

/* ---- replies, made here ---- */

#define ADVICE "; is it the right address?"

static bool owns_404(const sbx_json *body) {
  return sbx_json_get(body, "own") != NULL;
}

static const sbx_remote_meaning meanings[] = {
    {400, "beyond the QUOTA", SBX_EQUOTA, "; delete some", SBX_REMOTE_EFFECT_NONE},
    {400, "made", SBX_EPROVIDER, NULL, SBX_REMOTE_EFFECT_POSSIBLE},
    {503, NULL, SBX_EPROVIDER, NULL, SBX_REMOTE_EFFECT_NONE},
    {507, NULL, SBX_EQUOTA, NULL, SBX_REMOTE_EFFECT_BY_STATUS},
    {409, "", SBX_ELOST, NULL, SBX_REMOTE_EFFECT_NONE}, /* without a body */
    {0},
};

static const sbx_remote_service service = {"some", meanings, owns_404, SBX_EPROTO, ADVICE};

typedef struct answer {
  int status;
  const char *type;
  const char *body;
} answer;

static void make_reply(sbx_http *out, const answer *a) {
  *out = (sbx_http){.status = a->status};
  sbx_headers_init(&out->headers, SBX_HTTP_HEAD_MAX);
  sbx_buf_init(&out->body, SBX_HTTP_ERROR_BODY_MAX);
  if (a->type != NULL)
    sbx_headers_add(&out->headers, LIT("Content-Type"), sbx_slice_str(a->type), NULL);
  sbx_buf_append_str(&out->body, a->body);
}

static void end_reply(sbx_http *http) {
  sbx_headers_deinit(&http->headers);
  sbx_buf_deinit(&http->body);
}

#define HTML "text/html; charset=utf-8"

static void test_one_table_says_what_a_status_means(void **state) {
  static const struct {
    answer answer;
    int code;
    bool no_effect;
    const char *says;
  } cases[] = {
      {{200, NULL, ""}, SBX_OK, false, NULL},
      {{204, NULL, ""}, SBX_OK, false, NULL},
      {{200, HTML, "<p>"}, SBX_EPROTO, false, "a web page came in place of an answer" ADVICE},
      {{302, NULL, ""}, SBX_EPROTO, false, "some: try: HTTP 302"},
      {{400, NULL, "{\"message\":\"no\"}"}, SBX_EINVAL, true, "some: try: HTTP 400: no"},
      {{400, NULL, "beyond the quota"}, SBX_EQUOTA, true, "beyond the quota; delete some"},
      {{400, NULL, "it was MADE"}, SBX_EPROVIDER, false, "MADE"},
      {{401, NULL, ""}, SBX_EAUTH, true, "HTTP 401"},
      {{402, NULL, ""}, SBX_EQUOTA, true, "HTTP 402"},
      {{403, NULL, ""}, SBX_EFORBIDDEN, true, "HTTP 403"},
      {{403, HTML, "<title>Stop</title>"}, SBX_EFORBIDDEN, true, "Stop" ADVICE},
      {{404, NULL, "{\"own\":1}"}, SBX_ENOTFOUND, true, "HTTP 404"},
      {{404, NULL, "{}"}, SBX_EPROTO, true, ADVICE},
      {{404, NULL, ""}, SBX_EPROTO, true, ADVICE},
      {{404, HTML, "<title>Lost</title>"}, SBX_EPROTO, true, "Lost" ADVICE},
      {{408, NULL, ""}, SBX_ETIMEOUT, false, "HTTP 408"},
      {{409, NULL, ""}, SBX_ELOST, true, "HTTP 409"},
      {{409, NULL, "x"}, SBX_ECONFLICT, true, "HTTP 409: x"},
      {{410, NULL, ""}, SBX_ENOTFOUND, true, "HTTP 410"},
      {{413, NULL, ""}, SBX_ETOOBIG, true, "HTTP 413"},
      {{422, NULL, ""}, SBX_EINVAL, true, "HTTP 422"},
      {{429, NULL, ""}, SBX_ERATE, true, "HTTP 429"},
      {{500, NULL, ""}, SBX_EPROVIDER, false, "HTTP 500"},
      {{502, HTML, "<title>Bad</title>"}, SBX_EPROVIDER, false, "HTTP 502: Bad"},
      {{503, NULL, ""}, SBX_EPROVIDER, true, "HTTP 503"},
      {{507, NULL, ""}, SBX_EQUOTA, false, "HTTP 507"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_http http;
    sbx_err err;
    make_reply(&http, &cases[i].answer);
    assert_int_equal(sbx_remote_exchange_check(&err, &service, &http, "try"), cases[i].code);
    if (cases[i].code != SBX_OK) {
      if (strstr(err.message, cases[i].says) == NULL)
        fail_msg("%d: %s", cases[i].answer.status, err.message);
      assert_int_equal(err.no_effect, cases[i].no_effect);
      assert_int_equal(err.status, cases[i].answer.status);
      assert_string_equal(err.provider, "some");
    }
    bool gone = cases[i].answer.status == 404 && cases[i].code == SBX_ENOTFOUND;
    assert_int_equal(sbx_remote_exchange_is_gone(&service, &http), gone);
    end_reply(&http);
  }
}

static void test_a_service_may_own_every_404(void **state) {
  static const sbx_remote_service plain = {.provider = "some"};
  static const answer bare = {404, NULL, ""};
  sbx_http http;
  sbx_err err;
  (void)state;
  make_reply(&http, &bare);
  assert_int_equal(sbx_remote_exchange_check(&err, &plain, &http, "try"), SBX_ENOTFOUND);
  assert_true(sbx_remote_exchange_is_gone(&plain, &http));
  end_reply(&http);
}

static void test_the_longest_retry_after_counts(void **state) {
  static const answer busy = {429, NULL, ""};
  sbx_http http;
  sbx_err err;
  (void)state;
  make_reply(&http, &busy);
  sbx_remote_exchange_check(&err, &service, &http, "try");
  assert_int_equal(err.retry_after_ms, 0);
  sbx_headers_add(&http.headers, LIT("Retry-After"), LIT("0"), NULL);
  sbx_remote_exchange_check(&err, &service, &http, "try");
  assert_int_equal(err.retry_after_ms, 1); /* it did say something */
  sbx_headers_add(&http.headers, LIT("Retry-After-Creates"), LIT("7"), NULL);
  sbx_headers_add(&http.headers, LIT("retry-after-reads"), LIT("3"), NULL);
  sbx_headers_add(&http.headers, LIT("retry-after-words"), LIT("soon"), NULL);
  sbx_remote_exchange_check(&err, &service, &http, "try");
  assert_int_equal(err.retry_after_ms, 7000);
  end_reply(&http);
}

static void test_an_exchange_that_failed(void **state) {
  sbx_http http = {.sent_maybe = true};
  sbx_err err;
  (void)state;
  sbx_err_set(&http.op.err, SBX_ENET, "POST h:1: broken");
  assert_int_equal(sbx_remote_exchange_check(&err, &service, &http, "try"), SBX_ENET);
  assert_string_equal(err.message, "some: try: POST h:1: broken");
  assert_false(err.no_effect);
  assert_false(sbx_remote_exchange_is_gone(&service, &http));
  http.sent_maybe = false;
  sbx_remote_exchange_check(&err, &service, &http, "try");
  assert_true(err.no_effect);
}

static void test_json_of_a_success(void **state) {
  static const struct {
    answer answer;
    int code;
  } cases[] = {{{200, NULL, "{\"a\":1}"}, SBX_OK},
               {{201, NULL, "[]"}, SBX_OK},
               {{200, NULL, ""}, SBX_EPROTO},
               {{200, NULL, "{\"a\":1"}, SBX_EPROTO},
               {{401, NULL, "{\"a\":1}"}, SBX_EAUTH}};
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_json_doc *doc = NULL;
    sbx_http http;
    sbx_err err;
    make_reply(&http, &cases[i].answer);
    assert_int_equal(sbx_remote_exchange_json(&doc, &service, &http, "try", &err), cases[i].code);
    assert_true((doc != NULL) == (cases[i].code == SBX_OK));
    if (cases[i].code == SBX_EPROTO)
      assert_non_null(strstr(err.message, "some: try: unexpected answer"));
    sbx_json_free(doc, false);
    end_reply(&http);
  }
}

/* ---- identity ---- */

static void test_an_id_once_known_does_not_change(void **state) {
  char *id = NULL;
  sbx_err err;
  (void)state;
  assert_int_equal(sbx_remote_identity_take(&id, LIT("mine"), "some", &err), SBX_OK);
  assert_string_equal(id, "mine");
  assert_int_equal(sbx_remote_identity_take(&id, LIT("mine"), "some", &err), SBX_OK);
  assert_int_equal(sbx_remote_identity_take(&id, LIT("other"), "some", &err), SBX_EPROTO);
  assert_non_null(strstr(err.message, "other"));
  assert_non_null(strstr(err.message, "mine"));
  assert_int_equal(sbx_remote_identity_take(&id, LIT("min"), "some", &err), SBX_EPROTO);
  assert_int_equal(sbx_remote_identity_take(&id, LIT(""), "some", &err), SBX_EPROTO);
  assert_string_equal(id, "mine");
  sbx_free(id);
}

static void test_what_is_no_id(void **state) {
  static const sbx_slice cases[] = {BYTES(""),     BYTES("a/b"), BYTES("a b"),   BYTES("a\0"),
                                    BYTES("a?b"),  BYTES(".."),  BYTES("a\r\n"), BYTES("\xc3\xa9"),
                                    BYTES("a%2f"), BYTES("a#b"), BYTES("a:b")};
  char long_id[130];
  char *id = NULL;
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++)
    assert_int_equal(sbx_remote_identity_take(&id, cases[i], "some", NULL), SBX_EPROTO);
  memset(long_id, 'a', sizeof long_id);
  assert_false(sbx_remote_identity_is_id(sbx_slice_of(long_id, 129)));
  assert_true(sbx_remote_identity_is_id(sbx_slice_of(long_id, 128)));
  assert_true(sbx_remote_identity_is_id(LIT("0d1f6f0e-8f0c_A")));
  assert_null(id);
}

/* ---- requests ---- */

typedef struct outcome {
  int code;
  int status;
  char seen[2048];
} outcome;

static void on_reply(sbx_steps *steps, sbx_http *http) {
  outcome *out = steps->op.arg;
  out->status = http->status;
  snprintf(out->seen, sizeof out->seen, "%.*s", (int)http->body.len,
           http->body.len > 0 ? http->body.ptr : "");
  sbx_steps_finish(steps, http->op.err.code != SBX_OK ? &http->op.err : NULL);
}

static void on_sent(sbx_op *op, void *arg) {
  ((outcome *)arg)->code = op->err.code;
}

static outcome send_to(fixture *f, const char *path, sbx_http_request *request,
                       const sbx_remote_signer *signer) {
  outcome out = {0};
  sbx_buf url;
  sbx_steps *s = sbx_steps_new(sizeof *s, NULL, f->loop, on_sent, &out);
  assert_non_null(s);
  sbx_buf_init(&url, 1024);
  sbx_buf_appendf(&url, "http://127.0.0.1:%u%s", server.http, path);
  sbx_remote_exchange_send(s, f->plain, &url, request, signer, on_reply);
  assert_null(url.ptr);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  return out;
}

/* Signs with the length of all that it gets to see. */
static int fake_sign(void *arg, const sbx_http_request *request, sbx_headers *headers,
                     sbx_err *err) {
  char text[32];
  int *calls = arg;
  size_t len = strlen(request->method) + request->url.len + request->take_body->len;
  ++*calls;
  for (size_t i = 0; i < headers->count; i++)
    len += headers->items[i].value.len;
  snprintf(text, sizeof text, "signed-%zu", len);
  return sbx_headers_add(headers, LIT("x-signature"), sbx_slice_str(text), err);
}

static void test_a_signer_sees_the_complete_request(void **state) {
  fixture *f = *state;
  sbx_headers headers;
  sbx_buf body;
  int calls = 0;
  const sbx_remote_signer signer = {fake_sign, &calls};
  char expected[64];
  sbx_headers_init(&headers, 1024);
  sbx_headers_add(&headers, LIT("x-date"), LIT("now"), NULL);
  sbx_buf_init(&body, 1024);
  sbx_buf_append_str(&body, "body!");
  sbx_http_request request = {.method = "POST", .headers = &headers, .take_body = &body};
  outcome out = send_to(f, "/echo", &request, &signer);
  int url_len = snprintf(expected, sizeof expected, "http://127.0.0.1:%u/echo", server.http);
  snprintf(expected, sizeof expected, "\"x-signature\":\"signed-%d\"", 4 + url_len + 5 + 3);
  assert_int_equal(out.code, SBX_OK);
  assert_int_equal(calls, 1);
  if (strstr(out.seen, expected) == NULL || strstr(out.seen, "\"x-date\":\"now\"") == NULL)
    fail_msg("%s is not in %s", expected, out.seen);
  assert_int_equal(headers.count, 1); /* the caller's own are as they were */
  sbx_headers_deinit(&headers);
}

static int refuse_to_sign(void *arg, const sbx_http_request *request, sbx_headers *headers,
                          sbx_err *err) {
  (void)arg;
  (void)request;
  (void)headers;
  return sbx_err_set(err, SBX_EAUTH, "no key to sign with");
}

static void test_what_cannot_be_signed_is_not_sent(void **state) {
  fixture *f = *state;
  const sbx_remote_signer signer = {refuse_to_sign, NULL};
  int64_t before = count(f, "requests", "/echo");
  sbx_http_request request = {.method = "GET"};
  assert_int_equal(send_to(f, "/echo", &request, &signer).code, SBX_EAUTH);
  assert_int_equal(count(f, "requests", "/echo"), before);
}

static void test_a_body_with_an_error_is_not_sent(void **state) {
  fixture *f = *state;
  sbx_buf body;
  int64_t before = count(f, "requests", "/echo");
  sbx_buf_init(&body, 2);
  sbx_buf_append_str(&body, "too much");
  sbx_http_request request = {.method = "POST", .take_body = &body};
  assert_int_equal(send_to(f, "/echo", &request, NULL).code, SBX_ETOOBIG);
  assert_int_equal(count(f, "requests", "/echo"), before);
}

static void test_c186_a_reply_has_a_budget(void **state) {
  fixture *f = *state;
  sbx_http_request request = {.method = "GET"};
  assert_int_equal(send_to(f, "/huge?bytes=1000000", &request, NULL).code, SBX_EPROTO);
  request.max_bytes = (size_t)1 << 30;
  assert_int_equal(send_to(f, "/small", &request, NULL).code, SBX_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_table_says_what_a_status_means),
      cmocka_unit_test(test_a_service_may_own_every_404),
      cmocka_unit_test(test_the_longest_retry_after_counts),
      cmocka_unit_test(test_an_exchange_that_failed),
      cmocka_unit_test(test_json_of_a_success),
      cmocka_unit_test(test_an_id_once_known_does_not_change),
      cmocka_unit_test(test_what_is_no_id),
      HTTP_TEST(test_a_signer_sees_the_complete_request),
      HTTP_TEST(test_what_cannot_be_signed_is_not_sent),
      HTTP_TEST(test_a_body_with_an_error_is_not_sent),
      HTTP_TEST(test_c186_a_reply_has_a_budget),
  };
  return cmocka_run_group_tests(tests, http_group_setup, http_group_teardown);
}
