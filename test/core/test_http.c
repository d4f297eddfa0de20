/* Tests of core/http: what is sent, and what is made of every kind of reply. */
#include "support/http_fixture.h"

#include "core/json.h"

/* ---- requests ---- */

static void test_get(void **state) {
  fixture *f = *state;
  reply r = {.want = "content-type"};
  get(f, server.http, "/echo?a=b%20c", &r);
  assert_ok(&r, 200);
  assert_string_equal(r.header, "application/json");
  assert_has(&r, "\"method\":\"GET\"");
  assert_has(&r, "/echo?a=b%20c");
  assert_has(&r, "\"length\":0");
  assert_has(&r, "\"version\":\"1.1\"");
  assert_has(&r, "\"user-agent\":\"cloudsandbox\"");
  assert_has_not(&r, "content-length");
  assert_true(r.sent_maybe);
  drop(&r);
}

static void test_methods_and_bodies(void **state) {
  static const struct {
    const char *method, *body, *yes, *no;
  } cases[] = {
      {"POST", "{\"a\":1}", "\"content-length\":\"7\"", "content-type"},
      {"POST", "", "\"content-length\":\"0\"", "content-type"},
      {"PUT", "x", "\"content-length\":\"1\"", "urlencoded"},
      {"PUT", "", "\"content-length\":\"0\"", "transfer-encoding"},
      {"PATCH", "", "\"content-length\":\"0\"", "expect"},
      {"DELETE", "", "\"method\":\"DELETE\"", "content-length"},
      {"DELETE", "why", "\"text\":\"why\"", "content-type"},
  };
  fixture *f = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    reply r = {0};
    sbx_http_request request = to(f, cases[i].method, server.http, "/echo");
    request.body = sbx_slice_str(cases[i].body);
    run(f, NULL, &request, &r);
    assert_ok(&r, 200);
    assert_has(&r, cases[i].method);
    assert_has(&r, cases[i].yes);
    assert_has_not(&r, cases[i].no);
    drop(&r);
  }
}

static void test_head_has_no_body(void **state) {
  fixture *f = *state;
  reply r = {.want = "content-type"};
  sbx_http_request request = to(f, "HEAD", server.http, "/echo");
  run(f, NULL, &request, &r);
  assert_ok(&r, 200);
  assert_int_equal(r.len, 0);
  assert_string_equal(r.header, "application/json");
  drop(&r);
}

static void add(sbx_headers *headers, const char *name, const char *value) {
  assert_int_equal(sbx_headers_add(headers, sbx_slice_str(name), sbx_slice_str(value), NULL), 0);
}

static void test_headers_are_sent(void **state) {
  fixture *f = *state;
  reply r = {0};
  sbx_headers headers;
  sbx_headers_init(&headers, 4096);
  add(&headers, "X-Empty", "");
  add(&headers, "X-Key", "v 1");
  add(&headers, "Content-Type", "a/b");
  add(&headers, "User-Agent", "mine");
  sbx_http_request request = to(f, "POST", server.http, "/echo");
  request.headers = &headers;
  request.body = sbx_slice_str("x");
  assert_non_null(start(f, NULL, &request, &r));
  sbx_headers_deinit(&headers); /* all was copied */
  memset(f->url, 'x', sizeof f->url);
  wait_for(f, &r);
  assert_ok(&r, 200);
  assert_has(&r, "\"x-empty\":\"\"");
  assert_has(&r, "\"x-key\":\"v 1\"");
  assert_has(&r, "\"content-type\":\"a/b\"");
  assert_has(&r, "\"user-agent\":\"mine\"");
  drop(&r);
}

/* By the request, unless its headers have said it. */
static void test_the_type_of_a_body(void **state) {
  static const struct {
    const char *header, *type, *sent;
  } cases[] = {{NULL, "c/d", "\"content-type\":\"c/d\""},
               {"a/b", "c/d", "\"content-type\":\"a/b\""},
               {NULL, NULL, NULL}};
  fixture *f = *state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    reply r = {0};
    sbx_headers headers;
    sbx_headers_init(&headers, 4096);
    if (cases[i].header != NULL)
      add(&headers, "content-type", cases[i].header);
    sbx_http_request request = to(f, "POST", server.http, "/echo");
    request.headers = &headers;
    request.content_type = cases[i].type;
    request.body = sbx_slice_str("x");
    run(f, NULL, &request, &r);
    assert_ok(&r, 200);
    if (cases[i].sent != NULL)
      assert_has(&r, cases[i].sent);
    else
      assert_null(strstr(r.body, "\"content-type\""));
    drop(&r);
    sbx_headers_deinit(&headers);
  }
}

/* What is no refusal is left as it is. */
static void test_credentials_are_not_repeated(void **state) {
  static const char *const secrets[] = {"bearer-canary", "e2b_canary77", "cookie-canary"};
  fixture *f = *state;
  for (int refused = 0; refused <= 1; refused++) {
    reply r = {0};
    sbx_headers headers;
    sbx_headers_init(&headers, 4096);
    add(&headers, "Authorization", "Bearer bearer-canary");
    add(&headers, "X-API-Key", "e2b_canary77");
    add(&headers, "cookie", "a=1; b=cookie-canary");
    add(&headers, "X-Short-Key", "in");
    add(&headers, "X-Note", "kept-as-it-is");
    const char *path = refused ? "/echo?status=401" : "/echo";
    sbx_http_request request = to(f, "POST", server.http, path);
    request.headers = &headers;
    request.body = sbx_slice_str("again: e2b_canary77, e2b_canary77");
    run(f, NULL, &request, &r);
    assert_ok(&r, refused ? 401 : 200);
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++)
      assert_int_equal(strstr(r.body, secrets[i]) == NULL, refused);
    assert_has(&r, "\"x-note\":\"kept-as-it-is\"");
    assert_has(&r, "\"x-short-key\":\"in\"");
    assert_has(&r, "\"sha256\"");
    if (refused)
      assert_has(&r, "again: ***, ***");
    sbx_headers_deinit(&headers);
    drop(&r);
  }
}

static void test_framing_cannot_be_given(void **state) {
  static const char *const names[] = {"Content-Length", "transfer-encoding"};
  fixture *f = *state;
  for (size_t i = 0; i < 2; i++) {
    reply r = {0};
    sbx_headers headers;
    sbx_headers_init(&headers, 4096);
    add(&headers, names[i], "1");
    sbx_http_request request = to(f, "POST", server.http, "/echo");
    request.headers = &headers;
    run(f, NULL, &request, &r);
    assert_error(&r, SBX_EINVAL, false, "cannot be given");
    sbx_headers_deinit(&headers);
    drop(&r);
  }
}

static void test_bad_urls(void **state) {
  static const char *const urls[] = {"", "ftp://127.0.0.1/", "file:///etc/passwd",
                                     "http://user:secret@127.0.0.1/", "http://127.0.0.1/a b"};
  fixture *f = *state;
  for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
    reply r = {0};
    sbx_http_request request = {.method = "GET", .url = sbx_slice_str(urls[i])};
    run(f, NULL, &request, &r);
    assert_error(&r, SBX_EINVAL, false, "");
    assert_null(strstr(r.err.message, "secret"));
    drop(&r);
  }
}

/* The server never sends "100 Continue", and is not asked to. */
static void test_large_body_waits_for_nothing(void **state) {
  static const size_t sizes[] = {4096, 2 << 20};
  fixture *f = *state;
  for (size_t i = 0; i < 2; i++) {
    reply r = {0};
    sbx_buf body;
    char length[64];
    sbx_buf_init(&body, sizes[i]);
    for (size_t n = 0; n < sizes[i]; n += 16)
      sbx_buf_append(&body, "0123456789abcdef", 16);
    assert_int_equal(body.error, SBX_OK);
    sbx_http_request request = to(f, "POST", server.http, "/echo");
    request.take_body = &body;
    run(f, NULL, &request, &r);
    assert_ok(&r, 200);
    assert_int_equal(body.len, 0);
    snprintf(length, sizeof length, "\"length\":%zu", sizes[i]);
    assert_has(&r, length);
    assert_has_not(&r, "expect");
    drop(&r);
  }
  assert_int_equal(count(f, "expects", NULL), 0);
}

/* An answer that comes before the body was sent is the answer. */
static void test_early_answer_to_a_large_body(void **state) {
  fixture *f = *state;
  reply r = {0};
  sbx_buf body;
  sbx_buf_init(&body, 32 << 20);
  assert_int_equal(sbx_buf_reserve(&body, 32 << 20), SBX_OK);
  for (size_t n = 0; n < 32 << 20; n += 16)
    sbx_buf_append(&body, "0123456789abcdef", 16);
  sbx_http_request request = to(f, "PUT", server.raw, "/early-413");
  request.take_body = &body;
  run(f, NULL, &request, &r);
  assert_ok(&r, 413);
  assert_string_equal(r.body, "big");
  drop(&r);
}

static void test_multipart(void **state) {
  const sbx_http_part parts[] = {
      {.name = sbx_slice_str("path"), .content = sbx_slice_str("/a b")},
      {.name = sbx_slice_str("file"),
       .filename = sbx_slice_str("x.bin"),
       .content_type = sbx_slice_str("application/octet-stream"),
       .content = sbx_slice_of("\0\1\2", 3)},
      {.name = sbx_slice_str("empty"), .filename = sbx_slice_str("e")},
  };
  const sbx_http_part bad = {.name = sbx_slice_str("a\r\nb")};
  fixture *f = *state;
  reply r = {0};
  sbx_http_request request = to(f, "POST", server.http, "/echo");
  request.parts = parts;
  request.part_count = 3;
  run(f, NULL, &request, &r);
  assert_ok(&r, 200);
  assert_has(&r, "multipart/form-data; boundary=");
  assert_has(&r, "name=\\\"path\\\"\\r\\n\\r\\n/a b\\r\\n");
  assert_has(&r, "name=\\\"file\\\"; filename=\\\"x.bin\\\"");
  assert_has(&r, "application/octet-stream\\r\\n\\r\\n\\u0000\\u0001\\u0002\\r\\n");
  drop(&r);
  request.parts = &bad;
  request.part_count = 1;
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_EINVAL, false, "control character");
  drop(&r);
}

/* ---- replies ---- */

static void test_every_status_is_a_reply(void **state) {
  static const int codes[] = {204, 301, 400, 401, 403, 404, 409, 422, 429, 500, 502, 503};
  fixture *f = *state;
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    reply r = {0};
    char path[64];
    snprintf(path, sizeof path, "/status?code=%d&body=text", codes[i]);
    get(f, server.http, path, &r);
    assert_ok(&r, codes[i]);
    assert_string_equal(r.body, codes[i] == 204 ? "" : "text");
    drop(&r);
  }
}

static void test_redirects_are_not_followed(void **state) {
  fixture *f = *state;
  reply r = {.want = "location"};
  get(f, server.http, "/redirect", &r);
  assert_ok(&r, 302);
  assert_string_equal(r.header, "http://127.0.0.2:1/elsewhere");
  drop(&r);
}

/* C185: nothing is decoded, since nobody knows how much it would become. */
static void test_compression(void **state) {
  static const char *const paths[] = {"/coded?as=gzip", "/coded?as=GZIP%2C%20gzip",
                                      "/coded?as=identity%2C%20br", "/coded?as=x",
                                      "/transfer-coded"};
  fixture *f = *state;
  reply r = {0};
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    for (int streamed = 0; streamed < 2; streamed++) {
      stream s = {0};
      sbx_http_request request =
          streamed ? to_stream(f, paths[i], &s) : to(f, "GET", server.http, paths[i]);
      run(f, NULL, &request, &r);
      assert_error(&r, SBX_EPROTO, true, "compressed");
      assert_int_equal(s.bytes, 0);
      drop(&r);
    }
  }
  get(f, server.http, "/coded?as=identity", &r);
  assert_ok(&r, 200);
  assert_string_equal(r.body, "text");
  drop(&r);
  get(f, server.http, "/asked-codings", &r);
  assert_ok(&r, 200);
  assert_string_equal(r.body, "none");
  drop(&r);
  /* The status of an error says enough. */
  get(f, server.http, "/coded?as=gzip&code=503", &r);
  assert_ok(&r, 503);
  assert_string_equal(r.body, "");
  drop(&r);
}

/* C186: what nobody gave a budget has a small one. */
static void test_a_reply_has_a_budget(void **state) {
  fixture *f = *state;
  reply r = {0};
  get(f, server.http, "/huge?bytes=65536", &r);
  assert_ok(&r, 200);
  assert_int_equal(r.len, 65536);
  drop(&r);
  get(f, server.http, "/huge?bytes=65537", &r);
  assert_error(&r, SBX_EPROTO, true, "65536");
  drop(&r);
}

static void test_size_limits(void **state) {
  fixture *f = *state;
  reply r = {0};
  sbx_http_request request = to(f, "GET", server.http, "/huge?bytes=100000");
  request.max_bytes = 100000;
  run(f, NULL, &request, &r);
  assert_ok(&r, 200);
  assert_int_equal(r.len, 100000);
  drop(&r);
  request.max_bytes = 99999;
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_ETOOBIG, true, "99999");
  assert_true(r.len <= 99999);
  drop(&r);
  get(f, server.http, "/huge?bytes=100000000000", &r);
  assert_error(&r, SBX_EPROTO, true, "GET 127.0.0.1:");
  drop(&r);
  /* Of an error the beginning is enough. */
  get(f, server.http, "/huge-error", &r);
  assert_ok(&r, 500);
  assert_int_equal(r.len, SBX_HTTP_ERROR_BODY_MAX);
  drop(&r);
}

static void test_deep_nesting_is_only_bytes_here(void **state) {
  fixture *f = *state;
  reply r = {0};
  sbx_json_doc *doc = NULL;
  sbx_http_request request = to(f, "GET", server.http, "/brackets");
  request.max_bytes = 1 << 20;
  run(f, NULL, &request, &r);
  assert_ok(&r, 200);
  assert_int_equal(r.len, 200000);
  assert_int_equal(sbx_json_parse(&doc, sbx_slice_of(r.body, r.len), NULL), SBX_EPROTO);
  drop(&r);
}

static void test_streamed_reply(void **state) {
  fixture *f = *state;
  stream s = {0};
  reply r = {0};
  sbx_http_request request = to_stream(f, "/drip?chunks=20&ms=5", &s);
  run(f, NULL, &request, &r);
  assert_ok(&r, 200);
  assert_int_equal(s.heads, 1);
  assert_int_equal(s.bytes, 50);
  assert_true(s.calls > 1);
  assert_int_equal(r.len, 0);
  drop(&r);
  /* No limit unless one is set. */
  s = (stream){0};
  request = to_stream(f, "/huge?bytes=40000000", &s);
  run(f, NULL, &request, &r);
  assert_ok(&r, 200);
  assert_int_equal(s.bytes, 40000000);
  drop(&r);
  request.max_bytes = 1000000;
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_ETOOBIG, true, "1000000");
  drop(&r);
}

static void test_consumer_can_end_it(void **state) {
  fixture *f = *state;
  stream s = {.fail_at = 100};
  reply r = {0};
  sbx_http_request request = to_stream(f, "/huge?bytes=40000000", &s);
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_EPROTO, true, "bad frame");
  drop(&r);
  s = (stream){.fail_head = true};
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_EPROTO, true, "unwanted head");
  assert_int_equal(s.bytes, 0);
  drop(&r);
}

static void test_error_body_is_not_streamed(void **state) {
  fixture *f = *state;
  stream s = {0};
  reply r = {0};
  sbx_http_request request = to_stream(f, "/status?code=502&body=oops", &s);
  run(f, NULL, &request, &r);
  assert_ok(&r, 502);
  assert_int_equal(s.heads, 1);
  assert_int_equal(s.status, 502);
  assert_int_equal(s.calls, 0);
  assert_string_equal(r.body, "oops");
  drop(&r);
}

static void test_trailers_are_not_headers(void **state) {
  fixture *f = *state;
  reply r = {.want = "x-late"};
  get(f, server.http, "/trailers", &r);
  assert_ok(&r, 200);
  assert_string_equal(r.body, "body");
  assert_string_equal(r.header, "");
  drop(&r);
}

static void test_broken_replies(void **state) {
  static const struct {
    const char *path;
    int code;
    const char *text;
  } cases[] = {
      {"/half", SBX_ENET, "ended early"},
      {"/half-reset", SBX_ENET, ""},
      {"/half-chunk", SBX_ENET, ""},
      {"/no-last-chunk", SBX_ENET, ""},
      {"/bad-chunk", SBX_ENET, ""},
      {"/half-head", SBX_ENET, "inside its head"},
      {"/close", SBX_ENET, "without an answer"},
      {"/bad-length", SBX_EPROTO, ""},
      {"/not-http", SBX_EPROTO, "not HTTP"},
      {"/http09", SBX_EPROTO, "not HTTP"},
      {"/fold", SBX_EPROTO, ""},
      {"/no-colon", SBX_EPROTO, ""},
      {"/big-head", SBX_ETOOBIG, ""},
  };
  fixture *f = *state;
  reply r = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    print_message("%s\n", cases[i].path);
    get(f, server.raw, cases[i].path, &r);
    assert_error(&r, cases[i].code, true, cases[i].text);
    drop(&r);
  }
  get(f, server.http, "/reset", &r);
  assert_error(&r, SBX_ENET, true, "GET 127.0.0.1:");
  drop(&r);
}

static void test_odd_but_complete_replies(void **state) {
  fixture *f = *state;
  reply r = {0};
  get(f, server.raw, "/longer", &r);
  assert_ok(&r, 200);
  assert_string_equal(r.body, "hello");
  drop(&r);
  get(f, server.raw, "/until-close", &r);
  assert_ok(&r, 200);
  assert_string_equal(r.body, "hello");
  drop(&r);
  r.want = "x-a"; /* belongs to the 103, not to the reply */
  get(f, server.raw, "/early", &r);
  assert_ok(&r, 200);
  assert_string_equal(r.body, "ok");
  assert_string_equal(r.header, "");
  drop(&r);
}

/* ---- helpers ---- */

static void test_status_errors(void **state) {
  static const struct {
    int status, code;
    const char *body, *text;
  } cases[] = {
      {400, SBX_EINVAL, "{\"message\":\"no template\"}", "HTTP 400: no template"},
      {401, SBX_EAUTH, "", "HTTP 401"},
      {402, SBX_EQUOTA, "", "HTTP 402"},
      {403, SBX_EFORBIDDEN, "{\"error\":{\"message\":\"nope\"}}", "HTTP 403: nope"},
      {404, SBX_ENOTFOUND, "{\"error\":\"gone\",\"detail\":\"x\"}", "HTTP 404: gone"},
      {408, SBX_ETIMEOUT, "", "HTTP 408"},
      {409, SBX_ECONFLICT, "{\"detail\":\"state\"}", "HTTP 409: state"},
      {400, SBX_EINVAL, "{\"errors\":[\"f: why\",\"g: why\"],\"files\":[]}", "HTTP 400: f: why"},
      {400, SBX_EINVAL, "{\"errors\":[]}", "HTTP 400: {\"errors\":[]}"},
      {410, SBX_ENOTFOUND, "", "HTTP 410"},
      {413, SBX_ETOOBIG, "", "HTTP 413"},
      {418, SBX_EPROTO, "tea\npot", "HTTP 418: tea"},
      {422, SBX_EINVAL, "[1]", "HTTP 422: [1]"},
      {429, SBX_ERATE, "{broken", "HTTP 429: {broken"},
      {302, SBX_EPROTO, "", "HTTP 302"},
      {500, SBX_EPROVIDER, " \r\n  first\r\nsecond", "HTTP 500: first"},
      {502, SBX_EPROVIDER, "<html><head><TITLE>502 Bad\nGateway</TITLE></head><p>long</html>",
       "HTTP 502: 502 Bad Gateway"},
      {503, SBX_EPROVIDER, "<html><body>no title</body></html>", "HTTP 503"},
  };
  (void)state;
  sbx_err err;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char expected[256];
    sbx_slice body = sbx_slice_str(cases[i].body);
    snprintf(expected, sizeof expected, "p: create: %s", cases[i].text);
    int code = sbx_http_status_error(&err, "p", "create", cases[i].status, body);
    assert_int_equal(code, cases[i].code);
    assert_string_equal(err.message, expected);
    assert_int_equal(err.status, cases[i].status);
    assert_string_equal(err.provider, "p");
  }
  sbx_slice none = {NULL, 0};
  assert_int_equal(sbx_http_status_error(NULL, "p", "v", 500, none), SBX_EPROVIDER);
  /* A page of 3 KB on one line stays short. */
  char page[3072];
  memset(page, 'p', sizeof page);
  sbx_http_status_error(&err, "p", "v", 502, sbx_slice_of(page, sizeof page));
  assert_true(strlen(err.message) < SBX_ERR_REMOTE_MAX + 32);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HTTP_TEST(test_get),
      HTTP_TEST(test_methods_and_bodies),
      HTTP_TEST(test_head_has_no_body),
      HTTP_TEST(test_headers_are_sent),
      HTTP_TEST(test_the_type_of_a_body),
      HTTP_TEST(test_credentials_are_not_repeated),
      HTTP_TEST(test_framing_cannot_be_given),
      HTTP_TEST(test_bad_urls),
      HTTP_TEST(test_large_body_waits_for_nothing),
      HTTP_TEST(test_early_answer_to_a_large_body),
      HTTP_TEST(test_multipart),
      HTTP_TEST(test_every_status_is_a_reply),
      HTTP_TEST(test_redirects_are_not_followed),
      HTTP_TEST(test_compression),
      HTTP_TEST(test_a_reply_has_a_budget),
      HTTP_TEST(test_size_limits),
      HTTP_TEST(test_deep_nesting_is_only_bytes_here),
      HTTP_TEST(test_streamed_reply),
      HTTP_TEST(test_consumer_can_end_it),
      HTTP_TEST(test_error_body_is_not_streamed),
      HTTP_TEST(test_trailers_are_not_headers),
      HTTP_TEST(test_broken_replies),
      HTTP_TEST(test_odd_but_complete_replies),
      HTTP_TEST(test_status_errors),
  };
  clean_environment();
  return cmocka_run_group_tests(tests, http_group_setup, http_group_teardown);
}
