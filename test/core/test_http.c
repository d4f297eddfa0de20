/* Tests of core/http, core/transfer and core/curl_dl against a server that misbehaves on request.
 */
#include "core/http.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/http_int.h"
#include "core/json.h"
#include "support/http_server.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

extern char **environ;

static http_server server;

typedef struct fixture {
  uv_loop_t uv;
  sbx_loop *loop;
  sbx_http_client *plain;
  int closed;
} fixture;

/* What an exchange came to; copied in `done`. */
typedef struct reply {
  int done;
  sbx_err err;
  int status;
  bool sent_maybe;
  char *body; /* malloc'ed, NUL-terminated */
  size_t len;
  char header[64]; /* the value of the field named in `want` */
  const char *want;
  int *countdown;
} reply;

static void on_closed(void *arg) {
  ((fixture *)arg)->closed++;
}

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  sbx_http_options options = {0};
  assert_int_equal(uv_loop_init(&f->uv), 0);
  assert_int_equal(sbx_loop_new(&f->loop, &f->uv, NULL), SBX_OK);
  assert_int_equal(sbx_http_client_new(&f->plain, &options, NULL), SBX_OK);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  /* Kept connections and their timers do not keep an idle loop alive. */
  if (f->loop != NULL) {
    assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
    sbx_loop_close(f->loop, on_closed, f);
  }
  sbx_http_client_free(f->plain);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(f->closed, 1);
  assert_int_equal(uv_loop_close(&f->uv), 0);
  assert_int_equal(sbx_alloc_live(), 0);
  free(f);
  return 0;
}

static void on_done(sbx_op *op, void *arg) {
  reply *r = arg;
  sbx_http *http = sbx_http_of(op);
  sbx_slice value;
  r->done++;
  r->err = op->err;
  r->status = http->status;
  r->sent_maybe = http->sent_maybe;
  r->len = http->body.len;
  r->body = calloc(1, r->len + 1);
  if (r->len > 0)
    memcpy(r->body, http->body.ptr, r->len);
  if (r->want != NULL && sbx_headers_get(&http->headers, r->want, &value))
    snprintf(r->header, sizeof r->header, "%.*s", (int)value.len, value.ptr);
  if (r->countdown != NULL)
    --*r->countdown;
}

static void drop(reply *r) {
  free(r->body);
  r->body = NULL;
}

static char *url_of(char out[512], const char *scheme, uint16_t port, const char *path) {
  snprintf(out, 512, "%s://127.0.0.1:%u%s", scheme, (unsigned)port, path);
  return out;
}

static sbx_op *start(fixture *f, sbx_http_client *client, sbx_http_request *request, reply *r) {
  return sbx_http_start(client != NULL ? client : f->plain, f->loop, request, on_done, r);
}

static void run(fixture *f, sbx_http_client *client, sbx_http_request *request, reply *r) {
  assert_non_null(start(f, client, request, r));
  assert_int_equal(r->done, 0);
  while (r->done == 0)
    uv_run(&f->uv, UV_RUN_ONCE);
  assert_int_equal(r->done, 1);
}

static void get_with(fixture *f, sbx_http_client *client, const char *url, reply *r) {
  sbx_http_request request = {.method = "GET", .url = sbx_slice_str(url), .repeatable = true};
  run(f, client, &request, r);
}

static void get(fixture *f, uint16_t port, const char *path, reply *r) {
  char url[512];
  get_with(f, NULL, url_of(url, "http", port, path), r);
}

/* An integer at group.key of /counts, 0 when it is not there. */
static int64_t count(fixture *f, const char *group, const char *key) {
  reply r = {0};
  sbx_json_doc *doc = NULL;
  int64_t value = 0;
  get(f, server.http, "/counts", &r);
  assert_int_equal(r.err.code, SBX_OK);
  assert_int_equal(sbx_json_parse(&doc, sbx_slice_of(r.body, r.len), NULL), SBX_OK);
  const sbx_json *at = sbx_json_get(sbx_json_root(doc), group);
  sbx_json_int(key != NULL ? sbx_json_get(at, key) : at, 0, INT64_MAX, &value);
  sbx_json_free(doc, false);
  drop(&r);
  return value;
}

/* Whether the echoed request has this in it. */
static void assert_has(const reply *r, const char *text) {
  if (r->body == NULL || strstr(r->body, text) == NULL)
    fail_msg("no %s in: %s", text, r->body != NULL ? r->body : "(nothing)");
}

static void assert_has_not(const reply *r, const char *text) {
  if (r->body != NULL && strstr(r->body, text) != NULL)
    fail_msg("%s in: %s", text, r->body);
}

static void assert_error(const reply *r, int code, bool sent_maybe, const char *text) {
  if (r->err.code != code || r->sent_maybe != sent_maybe || !strstr(r->err.message, text))
    fail_msg("got %s sent_maybe=%d: %s", sbx_err_name(r->err.code), r->sent_maybe, r->err.message);
}

static void assert_ok(const reply *r, int status) {
  if (r->err.code != SBX_OK || r->status != status)
    fail_msg("got status %d, %s: %s", r->status, sbx_err_name(r->err.code), r->err.message);
}

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
    const char *method, *body, *expect, *no;
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
  char url[512];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    reply r = {0};
    sbx_http_request request = {.method = cases[i].method,
                                .url = sbx_slice_str(url_of(url, "http", server.http, "/echo")),
                                .body = sbx_slice_str(cases[i].body)};
    run(f, NULL, &request, &r);
    assert_ok(&r, 200);
    assert_has(&r, cases[i].method);
    assert_has(&r, cases[i].expect);
    assert_has_not(&r, cases[i].no);
    drop(&r);
  }
}

static void test_head_has_no_body(void **state) {
  fixture *f = *state;
  char url[512];
  reply r = {.want = "content-type"};
  sbx_http_request request = {.method = "HEAD",
                              .url = sbx_slice_str(url_of(url, "http", server.http, "/echo"))};
  run(f, NULL, &request, &r);
  assert_ok(&r, 200);
  assert_int_equal(r.len, 0);
  assert_string_equal(r.header, "application/json");
  drop(&r);
}

static void test_headers_are_sent(void **state) {
  fixture *f = *state;
  char url[512];
  reply r = {0};
  sbx_headers headers;
  sbx_headers_init(&headers, 4096);
  assert_int_equal(sbx_headers_add(&headers, sbx_slice_str("X-Empty"), sbx_slice_str(""), NULL), 0);
  assert_int_equal(sbx_headers_add(&headers, sbx_slice_str("X-Key"), sbx_slice_str("v 1"), NULL),
                   0);
  assert_int_equal(
      sbx_headers_add(&headers, sbx_slice_str("Content-Type"), sbx_slice_str("a/b"), NULL), 0);
  assert_int_equal(
      sbx_headers_add(&headers, sbx_slice_str("User-Agent"), sbx_slice_str("mine"), NULL), 0);
  sbx_http_request request = {.method = "POST",
                              .url = sbx_slice_str(url_of(url, "http", server.http, "/echo")),
                              .headers = &headers,
                              .body = sbx_slice_str("x")};
  sbx_op *op = start(f, NULL, &request, &r);
  assert_non_null(op);
  sbx_headers_deinit(&headers); /* all was copied */
  while (r.done == 0)
    uv_run(&f->uv, UV_RUN_ONCE);
  assert_ok(&r, 200);
  assert_has(&r, "\"x-empty\":\"\"");
  assert_has(&r, "\"x-key\":\"v 1\"");
  assert_has(&r, "\"content-type\":\"a/b\"");
  assert_has(&r, "\"user-agent\":\"mine\"");
  drop(&r);
}

static void test_framing_cannot_be_given(void **state) {
  fixture *f = *state;
  char url[512];
  reply r = {0};
  sbx_headers headers;
  sbx_headers_init(&headers, 4096);
  assert_int_equal(
      sbx_headers_add(&headers, sbx_slice_str("Content-Length"), sbx_slice_str("1"), NULL), 0);
  sbx_http_request request = {.method = "POST",
                              .url = sbx_slice_str(url_of(url, "http", server.http, "/echo")),
                              .headers = &headers};
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_EINVAL, false, "Content-Length");
  sbx_headers_deinit(&headers);
  drop(&r);
}

static void test_bad_urls(void **state) {
  static const char *const urls[] = {"", "ftp://127.0.0.1/", "file:///etc/passwd",
                                     "http://user:secret@127.0.0.1/", "http://127.0.0.1/a b"};
  fixture *f = *state;
  for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
    reply r = {0};
    get_with(f, NULL, urls[i], &r);
    assert_error(&r, SBX_EINVAL, false, "");
    assert_null(strstr(r.err.message, "secret"));
    drop(&r);
  }
}

/* A body of 2 MB, moved in: the server never sends "100 Continue", and is not asked to. */
static void test_large_body_waits_for_nothing(void **state) {
  fixture *f = *state;
  static const size_t sizes[] = {4096, 2 << 20};
  char url[512];
  for (size_t i = 0; i < 2; i++) {
    reply r = {0};
    sbx_buf body;
    char length[64];
    sbx_buf_init(&body, sizes[i]);
    assert_int_equal(sbx_buf_reserve(&body, sizes[i]), SBX_OK);
    for (size_t n = 0; n < sizes[i]; n += 16)
      sbx_buf_append(&body, "0123456789abcdef", 16);
    assert_int_equal(body.error, SBX_OK);
    sbx_http_request request = {.method = "POST",
                                .url = sbx_slice_str(url_of(url, "http", server.http, "/echo")),
                                .take_body = &body};
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

static void test_multipart(void **state) {
  fixture *f = *state;
  char url[512];
  reply r = {0};
  const sbx_http_part parts[] = {
      {.name = sbx_slice_str("path"), .content = sbx_slice_str("/a b")},
      {.name = sbx_slice_str("file"),
       .filename = sbx_slice_str("x.bin"),
       .content_type = sbx_slice_str("application/octet-stream"),
       .content = sbx_slice_of("\0\1\2", 3)},
      {.name = sbx_slice_str("empty"), .filename = sbx_slice_str("e")},
  };
  sbx_http_request request = {.method = "POST",
                              .url = sbx_slice_str(url_of(url, "http", server.http, "/echo")),
                              .parts = parts,
                              .part_count = 3};
  run(f, NULL, &request, &r);
  assert_ok(&r, 200);
  assert_has(&r, "multipart/form-data; boundary=");
  assert_has(&r, "name=\\\"path\\\"\\r\\n\\r\\n/a b\\r\\n");
  assert_has(&r, "name=\\\"file\\\"; filename=\\\"x.bin\\\"");
  assert_has(&r, "application/octet-stream\\r\\n\\r\\n\\u0000\\u0001\\u0002\\r\\n");
  drop(&r);

  const sbx_http_part bad = {.name = sbx_slice_str("a\r\nb")};
  reply refused = {0};
  request.parts = &bad;
  request.part_count = 1;
  run(f, NULL, &request, &refused);
  assert_error(&refused, SBX_EINVAL, false, "control character");
  drop(&refused);
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

static void test_compression(void **state) {
  fixture *f = *state;
  char url[512];
  reply r = {0};
  get(f, server.http, "/gzip", &r);
  assert_ok(&r, 200);
  assert_string_equal(r.body, "plain text");
  drop(&r);

  reply bad = {0};
  get(f, server.http, "/bad-gzip", &bad);
  assert_error(&bad, SBX_EPROTO, true, "compression");
  drop(&bad);

  /* The limit counts what comes out. */
  reply bomb = {0};
  sbx_http_request request = {.method = "GET",
                              .url = sbx_slice_str(url_of(url, "http", server.http, "/bomb")),
                              .max_bytes = 1 << 20};
  run(f, NULL, &request, &bomb);
  assert_error(&bomb, SBX_ETOOBIG, true, "1048576");
  drop(&bomb);
}

static void test_size_limits(void **state) {
  fixture *f = *state;
  char url[512];
  reply exact = {0};
  sbx_http_request request = {
      .method = "GET",
      .url = sbx_slice_str(url_of(url, "http", server.http, "/huge?bytes=100000")),
      .max_bytes = 100000};
  run(f, NULL, &request, &exact);
  assert_ok(&exact, 200);
  assert_int_equal(exact.len, 100000);
  drop(&exact);

  reply r = {0};
  request.max_bytes = 99999;
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_ETOOBIG, true, "99999");
  assert_true(r.len <= 99999);
  drop(&r);

  reply endless = {0};
  get(f, server.http, "/huge?bytes=100000000000", &endless);
  assert_error(&endless, SBX_ETOOBIG, true, "GET 127.0.0.1:");
  drop(&endless);

  /* Of an error the beginning is enough. */
  reply error = {0};
  get(f, server.http, "/huge-error", &error);
  assert_ok(&error, 500);
  assert_int_equal(error.len, SBX_HTTP_ERROR_BODY_MAX);
  drop(&error);
}

static void test_deep_nesting_is_only_bytes_here(void **state) {
  fixture *f = *state;
  reply r = {0};
  sbx_json_doc *doc = NULL;
  get(f, server.http, "/brackets", &r);
  assert_ok(&r, 200);
  assert_int_equal(r.len, 200000);
  assert_int_equal(sbx_json_parse(&doc, sbx_slice_of(r.body, r.len), NULL), SBX_EPROTO);
  drop(&r);
}

typedef struct stream {
  int heads;
  int status;
  size_t bytes;
  size_t calls;
  size_t fail_at; /* ends the exchange with SBX_EPROTO after this many bytes */
  bool fail_head;
} stream;

static int on_head(void *arg, int status, const sbx_headers *headers, sbx_err *err) {
  stream *s = arg;
  assert_true(headers->count > 0);
  s->heads++;
  s->status = status;
  return s->fail_head ? sbx_err_set(err, SBX_EPROTO, "unwanted head") : SBX_OK;
}

static int on_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  stream *s = arg;
  s->calls++;
  s->bytes += bytes.len;
  if (s->fail_at != 0 && s->bytes >= s->fail_at)
    return sbx_err_set(err, SBX_EPROTO, "bad frame");
  return SBX_OK;
}

static void run_stream(fixture *f, const char *path, size_t max, stream *s, reply *r) {
  char url[512];
  sbx_http_request request = {.method = "GET",
                              .url = sbx_slice_str(url_of(url, "http", server.http, path)),
                              .max_bytes = max,
                              .on_head = on_head,
                              .on_bytes = on_bytes,
                              .consumer = s};
  run(f, NULL, &request, r);
}

static void test_streamed_reply(void **state) {
  fixture *f = *state;
  stream s = {0};
  reply r = {0};
  run_stream(f, "/drip?chunks=20&ms=5", 0, &s, &r);
  assert_ok(&r, 200);
  assert_int_equal(s.heads, 1);
  assert_int_equal(s.bytes, 50);
  assert_true(s.calls > 1);
  assert_int_equal(r.len, 0);
  drop(&r);

  /* No limit unless one is set. */
  stream large = {0};
  reply all = {0};
  run_stream(f, "/huge?bytes=40000000", 0, &large, &all);
  assert_ok(&all, 200);
  assert_int_equal(large.bytes, 40000000);
  drop(&all);

  stream limited = {0};
  reply cut = {0};
  run_stream(f, "/huge?bytes=40000000", 1000000, &limited, &cut);
  assert_error(&cut, SBX_ETOOBIG, true, "1000000");
  drop(&cut);
}

static void test_consumer_can_end_it(void **state) {
  fixture *f = *state;
  stream s = {.fail_at = 100};
  reply r = {0};
  run_stream(f, "/huge?bytes=40000000", 0, &s, &r);
  assert_error(&r, SBX_EPROTO, true, "bad frame");
  drop(&r);

  stream h = {.fail_head = true};
  reply head = {0};
  run_stream(f, "/huge?bytes=40000000", 0, &h, &head);
  assert_error(&head, SBX_EPROTO, true, "unwanted head");
  assert_int_equal(h.bytes, 0);
  drop(&head);
}

static void test_error_body_is_not_streamed(void **state) {
  fixture *f = *state;
  stream s = {0};
  reply r = {0};
  run_stream(f, "/status?code=502&body=oops", 0, &s, &r);
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
      {"/half-head", SBX_ENET, ""},
      {"/close", SBX_ENET, "without an answer"},
      {"/bad-length", SBX_EPROTO, ""},
      {"/not-http", SBX_EPROTO, "not HTTP"},
      {"/http09", SBX_EPROTO, "not HTTP"},
      {"/fold", SBX_EPROTO, ""},
      {"/no-colon", SBX_EPROTO, ""},
      {"/big-head", SBX_ETOOBIG, ""},
  };
  fixture *f = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    reply r = {0};
    print_message("%s\n", cases[i].path);
    get(f, server.raw, cases[i].path, &r);
    assert_error(&r, cases[i].code, true, cases[i].text);
    drop(&r);
  }
  reply reset = {0};
  get(f, server.http, "/reset", &reset);
  assert_error(&reset, SBX_ENET, true, "GET 127.0.0.1:");
  drop(&reset);
}

static void test_odd_but_complete_replies(void **state) {
  fixture *f = *state;
  reply longer = {0};
  get(f, server.raw, "/longer", &longer);
  assert_ok(&longer, 200);
  assert_string_equal(longer.body, "hello");
  drop(&longer);
  reply open = {0};
  get(f, server.raw, "/until-close", &open);
  assert_ok(&open, 200);
  assert_string_equal(open.body, "hello");
  drop(&open);
  reply early = {.want = "x-a"}; /* belongs to the 103, not to the reply */
  get(f, server.raw, "/early", &early);
  assert_ok(&early, 200);
  assert_string_equal(early.body, "ok");
  assert_string_equal(early.header, "");
  drop(&early);
}

/* ---- time, cancel, the end ---- */

static void test_total_deadline(void **state) {
  fixture *f = *state;
  char url[512];
  reply r = {0};
  sbx_http_request request = {
      .method = "POST",
      .url = sbx_slice_str(url_of(url, "http", server.http, "/never?key=hidden")),
      .timeout_ms = 200};
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_ETIMEOUT, true, "no complete answer within 200 ms");
  assert_null(strstr(r.err.message, "hidden"));
  drop(&r);
  stream s = {0};
  reply slow = {0};
  sbx_http_request drip = {
      .method = "GET",
      .url = sbx_slice_str(url_of(url, "http", server.http, "/drip?chunks=100000&ms=5")),
      .timeout_ms = 300,
      .on_bytes = on_bytes,
      .consumer = &s};
  run(f, NULL, &drip, &slow);
  assert_error(&slow, SBX_ETIMEOUT, true, "within 300 ms");
  assert_int_equal(slow.status, 200);
  drop(&slow);
}

static void count_tick(sbx_timer *timer) {
  (*(int *)(void *)(timer + 1))++;
  sbx_timer_start(timer, 10);
}

/* A listener with a full queue drops further connects, as a host that is not there would. */
static int full_listener(int clients[64], uint16_t *port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t len = sizeof a;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
  assert_int_equal(listen(fd, 0), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
  for (int i = 0; i < 64; i++) {
    clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(clients[i], (struct sockaddr *)&a, sizeof a);
  }
  *port = ntohs(a.sin_port);
  return fd;
}

static void test_connect_deadline(void **state) {
  fixture *f = *state;
  int clients[64];
  uint16_t port;
  char url[512];
  struct {
    sbx_timer timer;
    int count;
  } ticker = {.count = 0};
  int listener = full_listener(clients, &port);
  sbx_timer_init(&ticker.timer, f->loop, count_tick);
  sbx_timer_start(&ticker.timer, 10);
  reply r = {0};
  sbx_http_request request = {
      .method = "GET", .url = sbx_slice_str(url_of(url, "http", port, "/")), .connect_ms = 300};
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_ETIMEOUT, false, "no connection within 300 ms");
  assert_true(ticker.count > 1); /* the loop went on meanwhile */
  drop(&r);
  reply total = {0};
  request.connect_ms = 60000;
  request.timeout_ms = 200;
  run(f, NULL, &request, &total);
  assert_error(&total, SBX_ETIMEOUT, false, "no connection within 200 ms");
  drop(&total);
  sbx_timer_stop(&ticker.timer);
  for (int i = 0; i < 64; i++)
    close(clients[i]);
  close(listener);
}

static void test_refused(void **state) {
  fixture *f = *state;
  reply r = {0};
  get(f, 1, "/path?token=hidden", &r);
  assert_error(&r, SBX_ENET, false, "GET 127.0.0.1:1: cannot connect");
  assert_null(strstr(r.err.message, "hidden"));
  drop(&r);
}

static void test_cancel(void **state) {
  fixture *f = *state;
  char url[512];
  reply at_once = {0};
  sbx_http_request request = {.method = "GET",
                              .url = sbx_slice_str(url_of(url, "http", server.http, "/never"))};
  sbx_op *op = start(f, NULL, &request, &at_once);
  sbx_op_abort(op, SBX_ECANCELED);
  assert_int_equal(at_once.done, 0);
  while (at_once.done == 0)
    uv_run(&f->uv, UV_RUN_ONCE);
  assert_error(&at_once, SBX_ECANCELED, false, "cancelled");
  drop(&at_once);

  reply later = {0};
  int64_t before = count(f, "requests", "/never");
  op = start(f, NULL, &request, &later);
  while (count(f, "requests", "/never") == before)
    ;
  sbx_op_abort(op, SBX_ECANCELED);
  while (later.done == 0)
    uv_run(&f->uv, UV_RUN_ONCE);
  assert_error(&later, SBX_ECANCELED, true, "cancelled");
  drop(&later);
}

static void test_loop_ends_with_requests_in_flight(void **state) {
  enum { N = 20 };
  static const char *const paths[] = {"/never", "/drip?chunks=100000&ms=5",
                                      "/huge?bytes=100000000000"};
  fixture *f = *state;
  char url[512];
  static reply r[N];
  stream s = {0};
  memset(r, 0, sizeof r);
  for (int i = 0; i < N; i++) {
    sbx_http_request request = {.method = "GET",
                                .url =
                                    sbx_slice_str(url_of(url, "http", server.http, paths[i % 3])),
                                .on_bytes = on_bytes,
                                .consumer = &s};
    assert_non_null(start(f, NULL, &request, &r[i]));
  }
  while (s.bytes == 0)
    uv_run(&f->uv, UV_RUN_ONCE);
  sbx_loop_close(f->loop, on_closed, f);
  /* One that comes too late is told so as well. */
  reply late = {0};
  sbx_http_request request = {.method = "GET", .url = sbx_slice_str("http://127.0.0.1/")};
  assert_non_null(start(f, NULL, &request, &late));
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  f->loop = NULL;
  for (int i = 0; i < N; i++) {
    assert_int_equal(r[i].done, 1);
    assert_int_equal(r[i].err.code, SBX_ECLOSED);
    drop(&r[i]);
  }
  assert_int_equal(late.err.code, SBX_ECLOSED);
  drop(&late);
}

static void test_client_may_be_freed_before_its_exchange(void **state) {
  fixture *f = *state;
  char url[512];
  reply r = {0};
  sbx_http_request request = {
      .method = "GET", .url = sbx_slice_str(url_of(url, "http", server.http, "/slow?ms=50"))};
  assert_non_null(start(f, NULL, &request, &r));
  sbx_http_client_free(f->plain);
  f->plain = NULL;
  while (r.done == 0)
    uv_run(&f->uv, UV_RUN_ONCE);
  assert_ok(&r, 200);
  drop(&r);
}

/* ---- connections ---- */

static void test_connections_are_kept(void **state) {
  fixture *f = *state;
  int64_t before = count(f, "connections", "http");
  for (int i = 0; i < 10; i++) {
    reply r = {0};
    get(f, server.http, "/small", &r);
    assert_ok(&r, 200);
    drop(&r);
  }
  assert_int_equal(count(f, "connections", "http"), before);
}

/* The server closes a kept connection as the request comes: it is sent again only where allowed. */
static void test_at_most_once(void **state) {
  fixture *f = *state;
  char url[512];
  for (int repeatable = 0; repeatable <= 1; repeatable++) {
    int64_t before = count(f, "requests", "/stale");
    reply first = {0};
    get(f, server.raw, "/stale", &first);
    assert_ok(&first, 200);
    drop(&first);
    reply r = {0};
    sbx_http_request request = {.method = "POST",
                                .url = sbx_slice_str(url_of(url, "http", server.raw, "/stale")),
                                .body = sbx_slice_str("run this"),
                                .repeatable = repeatable};
    run(f, NULL, &request, &r);
    if (repeatable) {
      assert_ok(&r, 200);
      assert_int_equal(count(f, "requests", "/stale") - before, 3);
    } else {
      assert_error(&r, SBX_ENET, true, "not sent again");
      assert_int_equal(count(f, "requests", "/stale") - before, 2);
    }
    drop(&r);
  }
}

static void test_many_at_a_time_beside_a_slow_one(void **state) {
  enum { CALLS = 300, AT_ONCE = 50 };
  fixture *f = *state;
  static reply r[CALLS];
  char url[512];
  char slow_url[512];
  stream s = {0};
  reply slow = {0};
  int pending = 0;
  memset(r, 0, sizeof r);
  sbx_http_request download = {
      .method = "GET",
      .url = sbx_slice_str(url_of(slow_url, "http", server.http, "/drip?chunks=60&ms=10")),
      .on_bytes = on_bytes,
      .consumer = &s};
  assert_non_null(start(f, NULL, &download, &slow));
  sbx_http_request request = {.method = "GET",
                              .url = sbx_slice_str(url_of(url, "http", server.http, "/small"))};
  for (int started = 0; started < CALLS || pending > 0;) {
    for (; started < CALLS && pending < AT_ONCE; started++, pending++) {
      r[started].countdown = &pending;
      assert_non_null(start(f, NULL, &request, &r[started]));
    }
    uv_run(&f->uv, UV_RUN_ONCE);
  }
  while (slow.done == 0)
    uv_run(&f->uv, UV_RUN_ONCE);
  for (int i = 0; i < CALLS; i++) {
    assert_int_equal(r[i].done, 1);
    assert_ok(&r[i], 200);
    drop(&r[i]);
  }
  assert_ok(&slow, 200);
  assert_int_equal(slow.done, 1);
  assert_int_equal(s.bytes, 170);
  drop(&slow);
}

static int socket_is_inherited(void) {
  int found = 0;
  for (int fd = 3; fd < 256; fd++) {
    struct stat st;
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) &&
        getpeername(fd, (struct sockaddr *)&address, &len) == 0 && address.ss_family == AF_INET &&
        !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
      found++;
  }
  return found;
}

static void test_sockets_are_not_inherited(void **state) {
  fixture *f = *state;
  reply r = {0};
  get(f, server.http, "/small", &r);
  assert_ok(&r, 200);
  assert_int_equal(socket_is_inherited(), 0);
  drop(&r);
}

static void test_unix_socket(void **state) {
  fixture *f = *state;
  sbx_http_client *client = NULL;
  sbx_http_options options = {.unix_socket = sbx_slice_str(server.unix_path)};
  assert_int_equal(sbx_http_client_new(&client, &options, NULL), SBX_OK);
  int64_t before = count(f, "connections", "unix");
  setenv("http_proxy", "http://127.0.0.1:1", 1); /* does not concern a unix socket */
  reply r = {0};
  get_with(f, client, "http://docker/echo", &r);
  unsetenv("http_proxy");
  assert_ok(&r, 200);
  assert_has(&r, "\"host\":\"docker\"");
  assert_int_equal(count(f, "connections", "unix"), before + 1);
  drop(&r);
  sbx_http_client_free(client);

  char longer[200];
  memset(longer, 'x', sizeof longer);
  options.unix_socket = sbx_slice_of(longer, sizeof longer);
  assert_int_equal(sbx_http_client_new(&client, &options, NULL), SBX_EINVAL);

  options.unix_socket = sbx_slice_str("/nonexistent/http.sock");
  assert_int_equal(sbx_http_client_new(&client, &options, NULL), SBX_OK);
  reply gone = {0};
  get_with(f, client, "http://docker/echo", &gone);
  assert_error(&gone, SBX_ENET, false, "unix socket");
  drop(&gone);
  sbx_http_client_free(client);
}

static char *read_file(const char *path, size_t *len) {
  char *text = calloc(1, 65536);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  *len = fread(text, 1, 65535, file);
  fclose(file);
  return text;
}

static sbx_http_client *client_with_ca(const char *path, sbx_http_version version) {
  size_t len = 0;
  char *pem = read_file(path, &len);
  sbx_http_client *client = NULL;
  sbx_http_options options = {.ca_pem = sbx_slice_of(pem, len), .version = version};
  assert_int_equal(sbx_http_client_new(&client, &options, NULL), SBX_OK);
  free(pem);
  return client;
}

/* ---- HTTP/2 ---- */

/* Ten requests at once; how many connections they took. */
static int64_t ten_over_http2(fixture *f, sbx_http_client *client, const char *url,
                              const char *listener) {
  int64_t before = count(f, "connections", listener);
  reply r[10] = {{0}};
  int pending = 10;
  sbx_http_request request = {
      .method = "POST", .url = sbx_slice_str(url), .body = sbx_slice_str("h2")};
  for (int i = 0; i < 10; i++) {
    r[i].countdown = &pending;
    assert_non_null(start(f, client, &request, &r[i]));
  }
  while (pending > 0)
    uv_run(&f->uv, UV_RUN_ONCE);
  for (int i = 0; i < 10; i++) {
    assert_ok(&r[i], 200);
    assert_has(&r[i], "\"version\":\"2.0\"");
    assert_has(&r[i], "\"text\":\"h2\"");
    drop(&r[i]);
  }
  return count(f, "connections", listener) - before;
}

static void test_http2_prior_knowledge(void **state) {
  fixture *f = *state;
  char url[512];
  sbx_http_client *client = NULL;
  sbx_http_options options = {.version = SBX_HTTP_2_PRIOR};
  const sbx_curl *curl = NULL;
  assert_int_equal(sbx_curl_get(&curl, NULL), SBX_OK);
  assert_int_equal(sbx_http_client_new(&client, &options, NULL), SBX_OK);
  url_of(url, "http", server.h2c, "/echo");
  for (int i = 0; i < 2; i++) {
    int64_t connections = ten_over_http2(f, client, url, "h2c");
    assert_int_equal(connections, sbx__http_can_share_prior(curl) ? 1 - i : 10);
  }
  sbx_http_client_free(client);
}

static void test_http2_over_tls(void **state) {
  fixture *f = *state;
  char url[512];
  sbx_http_client *client = client_with_ca(server.ca, SBX_HTTP_2);
  url_of(url, "https", server.https, "/echo");
  for (int i = 0; i < 2; i++)
    assert_int_equal(ten_over_http2(f, client, url, "https"), 1 - i);
  sbx_http_client_free(client);
}

static void test_http2_failures(void **state) {
  fixture *f = *state;
  char url[512];
  sbx_http_client *client = NULL;
  sbx_http_options options = {.version = SBX_HTTP_2_PRIOR};
  assert_int_equal(sbx_http_client_new(&client, &options, NULL), SBX_OK);
  static const char *const paths[] = {"/goaway", "/rst"};
  for (size_t i = 0; i < 2; i++) {
    reply r = {0};
    sbx_http_request request = {.method = "POST",
                                .url = sbx_slice_str(url_of(url, "http", server.h2c, paths[i]))};
    run(f, client, &request, &r);
    assert_error(&r, SBX_ENET, true, "POST 127.0.0.1:");
    assert_int_equal(count(f, "requests", paths[i]), 1);
    drop(&r);
  }
  reply again = {0};
  get_with(f, client, url_of(url, "http", server.h2c, "/refuse-once"), &again);
  assert_ok(&again, 200);
  drop(&again);
  /* A server that knows only 1.1 */
  reply old = {0};
  get_with(f, client, url_of(url, "http", server.http, "/small"), &old);
  assert_int_not_equal(old.err.code, SBX_OK);
  drop(&old);
  sbx_http_client_free(client);
}

/* ---- TLS ---- */

static void test_private_ca_by_option(void **state) {
  fixture *f = *state;
  char url[512];
  url_of(url, "https", server.https, "/echo");
  sbx_http_client *client = client_with_ca(server.ca, SBX_HTTP_1_1);
  int64_t before = count(f, "connections", "https");
  for (int i = 0; i < 3; i++) {
    reply r = {0};
    get_with(f, client, url, &r);
    assert_ok(&r, 200);
    assert_has(&r, "\"version\":\"1.1\"");
    drop(&r);
  }
  assert_int_equal(count(f, "connections", "https"), before + 1);
  sbx_http_client_free(client);
}

static void test_untrusted_certificates(void **state) {
  fixture *f = *state;
  char url[512];
  /* Not in the default bundle; another CA by option; the right CA for another name. */
  reply unknown = {0};
  get_with(f, NULL, url_of(url, "https", server.https, "/small"), &unknown);
  assert_error(&unknown, SBX_ETLS, false, "not trusted");
  drop(&unknown);
  sbx_http_client *client = client_with_ca(server.other_ca, SBX_HTTP_1_1);
  reply wrong = {0};
  get_with(f, client, url, &wrong);
  assert_error(&wrong, SBX_ETLS, false, "not trusted");
  drop(&wrong);
  reply name = {0};
  get_with(f, client, url_of(url, "https", server.misnamed, "/small"), &name);
  assert_error(&name, SBX_ETLS, false, "GET 127.0.0.1:");
  drop(&name);
  sbx_http_client_free(client);
  /* What other programs take for "do not check" changes nothing. */
  setenv("NODE_TLS_REJECT_UNAUTHORIZED", "0", 1);
  reply still = {0};
  get_with(f, NULL, url_of(url, "https", server.https, "/small"), &still);
  assert_error(&still, SBX_ETLS, false, "not trusted");
  unsetenv("NODE_TLS_REJECT_UNAUTHORIZED");
  drop(&still);
  /* No TLS on the other side at all. */
  reply plain = {0};
  get_with(f, NULL, url_of(url, "https", server.http, "/small"), &plain);
  assert_error(&plain, SBX_ETLS, false, "handshake");
  drop(&plain);
}

static void get_with_new_client(fixture *f, const char *url, reply *r) {
  sbx_http_client *client = NULL;
  sbx_http_options options = {0};
  assert_int_equal(sbx_http_client_new(&client, &options, NULL), SBX_OK);
  get_with(f, client, url, r);
  sbx_http_client_free(client);
}

static void test_ca_by_environment(void **state) {
  fixture *f = *state;
  char url[512];
  url_of(url, "https", server.https, "/small");
  static const char *const names[] = {"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"};
  for (size_t i = 0; i < 2; i++) {
    reply r = {0};
    setenv(names[i], server.ca, 1);
    get_with_new_client(f, url, &r);
    unsetenv(names[i]);
    assert_ok(&r, 200);
    drop(&r);
  }
  /* Both: the one as the base, the other in addition. */
  reply both = {0};
  setenv("SSL_CERT_FILE", server.other_ca, 1);
  setenv("NODE_EXTRA_CA_CERTS", server.ca, 1);
  get_with_new_client(f, url, &both);
  assert_ok(&both, 200);
  drop(&both);
  reply only_other = {0};
  unsetenv("NODE_EXTRA_CA_CERTS");
  get_with_new_client(f, url, &only_other);
  assert_error(&only_other, SBX_ETLS, false, "not trusted");
  drop(&only_other);
  reply no_file = {0};
  setenv("SSL_CERT_FILE", "/nonexistent/ca.pem", 1);
  get_with_new_client(f, url, &no_file);
  assert_error(&no_file, SBX_ETLS, false, "");
  drop(&no_file);
  unsetenv("SSL_CERT_FILE");
  reply no_extra = {0};
  setenv("NODE_EXTRA_CA_CERTS", "/nonexistent/ca.pem", 1);
  get_with_new_client(f, url, &no_extra);
  assert_error(&no_extra, SBX_ETLS, false, "NODE_EXTRA_CA_CERTS names a file");
  unsetenv("NODE_EXTRA_CA_CERTS");
  drop(&no_extra);
}

static void test_bad_ca_option(void **state) {
  (void)state;
  sbx_http_client *client = NULL;
  sbx_http_options options = {.ca_pem = sbx_slice_str("/etc/ssl/ca.pem")};
  sbx_err err;
  assert_int_equal(sbx_http_client_new(&client, &options, &err), SBX_EINVAL);
  assert_non_null(strstr(err.message, "PEM"));
}

/* ---- proxies ---- */

static void test_proxy_by_environment(void **state) {
  fixture *f = *state;
  char proxy[128], https_url[512], http_url[512];
  snprintf(proxy, sizeof proxy, "http://user:secret@127.0.0.1:%u", (unsigned)server.proxy);
  url_of(https_url, "https", server.https, "/small");
  url_of(http_url, "http", server.http, "/small");
  sbx_http_client *client = client_with_ca(server.ca, SBX_HTTP_1_1);
  int64_t tunnels = count(f, "tunnels", NULL);
  int64_t forwards = count(f, "forwards", NULL);
  reply through = {.want = "x-tunnel"};
  setenv("HTTPS_PROXY", proxy, 1);
  get_with(f, client, https_url, &through);
  assert_ok(&through, 200);
  assert_string_equal(through.header, ""); /* the proxy's header is not the reply's */
  drop(&through);
  assert_int_equal(count(f, "tunnels", NULL), tunnels + 1);
  reply direct = {0};
  setenv("NO_PROXY", "other.test,127.0.0.1", 1);
  get_with(f, client, https_url, &direct);
  assert_ok(&direct, 200);
  drop(&direct);
  assert_int_equal(count(f, "tunnels", NULL), tunnels + 1);
  unsetenv("NO_PROXY");
  unsetenv("HTTPS_PROXY");

  /* HTTP_PROXY in upper case is not to be trusted. */
  reply upper = {0};
  setenv("HTTP_PROXY", proxy, 1);
  get_with(f, NULL, http_url, &upper);
  assert_ok(&upper, 200);
  unsetenv("HTTP_PROXY");
  drop(&upper);
  assert_int_equal(count(f, "forwards", NULL), forwards);
  reply lower = {0};
  setenv("http_proxy", proxy, 1);
  get_with(f, NULL, http_url, &lower);
  unsetenv("http_proxy");
  assert_ok(&lower, 200);
  drop(&lower);
  assert_int_equal(count(f, "forwards", NULL), forwards + 1);
  sbx_http_client_free(client);
}

static void test_proxy_by_option(void **state) {
  fixture *f = *state;
  char proxy[128], url[512];
  snprintf(proxy, sizeof proxy, "http://127.0.0.1:%u", (unsigned)server.proxy);
  sbx_http_client *client = NULL;
  sbx_http_options options = {.proxy = sbx_slice_str(proxy)};
  assert_int_equal(sbx_http_client_new(&client, &options, NULL), SBX_OK);
  int64_t forwards = count(f, "forwards", NULL);
  reply r = {0};
  setenv("NO_PROXY", "*", 1); /* concerns the environment's proxies */
  get_with(f, client, url_of(url, "http", server.http, "/small"), &r);
  unsetenv("NO_PROXY");
  assert_ok(&r, 200);
  drop(&r);
  assert_int_equal(count(f, "forwards", NULL), forwards + 1);
  /* The proxy refuses: nothing of the request has left. */
  reply refused = {0};
  get_with(f, client, "https://refused.test/small", &refused);
  assert_error(&refused, SBX_ENET, false, "403");
  drop(&refused);
  sbx_http_client_free(client);

  sbx_http_options none = {.no_proxy = true};
  assert_int_equal(sbx_http_client_new(&client, &none, NULL), SBX_OK);
  reply direct = {0};
  setenv("http_proxy", proxy, 1);
  get_with(f, client, url, &direct);
  unsetenv("http_proxy");
  assert_ok(&direct, 200);
  drop(&direct);
  sbx_http_client_free(client);
}

static void test_unreachable_proxy(void **state) {
  fixture *f = *state;
  sbx_http_client *client = NULL;
  sbx_http_options options = {.proxy = sbx_slice_str("http://user:secret@127.0.0.1:1")};
  assert_int_equal(sbx_http_client_new(&client, &options, NULL), SBX_OK);
  reply r = {0};
  get_with(f, client, "http://somewhere.test/", &r);
  assert_error(&r, SBX_ENET, false, "GET somewhere.test:80");
  assert_null(strstr(r.err.message, "secret"));
  drop(&r);
  sbx_http_client_free(client);

  /* No resolver takes a label of 64 characters: it fails without a query. */
  sbx_http_options unknown = {
      .proxy = sbx_slice_str(
          "http://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.test:1")};
  assert_int_equal(sbx_http_client_new(&client, &unknown, NULL), SBX_OK);
  reply name = {0};
  get_with(f, client, "http://somewhere.test/", &name);
  assert_error(&name, SBX_ENET, false, "resolve");
  drop(&name);
  sbx_http_client_free(client);

  sbx_http_options bad = {.proxy = sbx_slice_str("http://a\r\nb")};
  assert_int_equal(sbx_http_client_new(&client, &bad, NULL), SBX_EINVAL);
}

/* ---- helpers ---- */

static void test_status_errors(void **state) {
  static const struct {
    int status, code;
    const char *body, *text;
  } cases[] = {
      {400, SBX_EINVAL, "{\"message\":\"no template\"}", "p: create: HTTP 400: no template"},
      {401, SBX_EAUTH, "", "p: create: HTTP 401"},
      {402, SBX_EQUOTA, "", "HTTP 402"},
      {403, SBX_EFORBIDDEN, "{\"error\":{\"message\":\"nope\"}}", "HTTP 403: nope"},
      {404, SBX_ENOTFOUND, "{\"error\":\"gone\",\"detail\":\"x\"}", "HTTP 404: gone"},
      {409, SBX_ECONFLICT, "{\"detail\":\"state\"}", "HTTP 409: state"},
      {410, SBX_ENOTFOUND, "", "HTTP 410"},
      {413, SBX_ETOOBIG, "", "HTTP 413"},
      {418, SBX_EPROTO, "tea\npot", "HTTP 418: tea"},
      {422, SBX_EINVAL, "[1]", "HTTP 422: [1]"},
      {429, SBX_ERATE, "{broken", "HTTP 429: {broken"},
      {302, SBX_EPROTO, "", "HTTP 302"},
      {500, SBX_EPROVIDER, " \r\n  first\r\nsecond", "HTTP 500: first"},
      {502, SBX_EPROVIDER,
       "<html>\n<head><TITLE>502 Bad\nGateway</TITLE></head><body>long</body></html>",
       "HTTP 502: 502 Bad Gateway"},
      {503, SBX_EPROVIDER, "<html><body>no title</body></html>", "HTTP 503"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sbx_err err;
    char expected[256];
    const char *text = cases[i].text;
    snprintf(expected, sizeof expected, "%s%s", text[0] == 'p' ? "" : "p: create: ", text);
    assert_int_equal(
        sbx_http_status_error(&err, "p", "create", cases[i].status, sbx_slice_str(cases[i].body)),
        cases[i].code);
    assert_string_equal(err.message, expected);
    assert_int_equal(err.status, cases[i].status);
    assert_string_equal(err.provider, "p");
  }
  assert_int_equal(sbx_http_status_error(NULL, "p", "v", 500, sbx_slice_of(NULL, 0)),
                   SBX_EPROVIDER);
  /* A page of 3 KB on one line stays short. */
  char page[3072];
  sbx_err err;
  memset(page, 'p', sizeof page);
  sbx_http_status_error(&err, "p", "v", 502, sbx_slice_of(page, sizeof page));
  assert_true(strlen(err.message) < SBX_ERR_REMOTE_MAX + 32);
}

static bool retry_found;
static uint64_t retry_ms;

static void read_retry(sbx_op *op, void *arg) {
  retry_found = sbx_http_retry_after(sbx_http_of(op), &retry_ms);
  on_done(op, arg);
}

static void test_retry_after(void **state) {
  fixture *f = *state;
  char url[512];
  static const struct {
    const char *path;
    bool found;
    uint64_t ms;
  } cases[] = {{"/retry?after=3", true, 3000},
               {"/retry?after=Thu,%2001%20Jan%201970%2000:00:00%20GMT", true, 0},
               {"/retry?after=soon", false, 0},
               {"/small", false, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    reply r = {0};
    sbx_http_request request = {
        .method = "GET", .url = sbx_slice_str(url_of(url, "http", server.http, cases[i].path))};
    assert_non_null(sbx_http_start(f->plain, f->loop, &request, read_retry, &r));
    while (r.done == 0)
      uv_run(&f->uv, UV_RUN_ONCE);
    assert_int_equal(retry_found, cases[i].found);
    if (cases[i].found)
      assert_int_equal(retry_ms, cases[i].ms);
    drop(&r);
  }
}

/* ---- failing allocations ---- */

static void one_exchange(fixture *f, size_t nth, bool *reached) {
  uv_loop_t uv;
  int closed = 0;
  fixture inner = {.closed = 0};
  char url[512];
  size_t before = sbx_alloc_live();
  const sbx_http_part parts[] = {{.name = sbx_slice_str("a"), .content = sbx_slice_str("1")}};
  sbx_headers headers;
  (void)f;
  (void)closed;
  sbx_headers_init(&headers, 4096);
  sbx_headers_add(&headers, sbx_slice_str("X-Key"), sbx_slice_str("secret"), NULL);
  assert_int_equal(uv_loop_init(&uv), 0);
  sbx_http_options options = {.proxy = sbx_slice_str("")};
  reply r = {0};
  sbx_http_request request = {.method = "POST",
                              .url = sbx_slice_str(url_of(url, "http", server.http, "/echo")),
                              .headers = &headers,
                              .body = sbx_slice_str("body"),
                              .parts = nth % 2 == 0 ? parts : NULL,
                              .part_count = nth % 2 == 0 ? 1 : 0};
  sbx_alloc_fail_at((nth + 1) / 2, false);
  int code = sbx_loop_new(&inner.loop, &uv, NULL);
  if (code == SBX_OK)
    code = sbx_http_client_new(&inner.plain, &options, NULL);
  if (code == SBX_OK && start(&inner, NULL, &request, &r) != NULL) {
    while (r.done == 0)
      uv_run(&uv, UV_RUN_ONCE);
    code = r.err.code;
    if (code == SBX_OK)
      assert_has(&r, "POST");
  } else {
    code = SBX_ENOMEM;
  }
  *reached = sbx_alloc_failed();
  sbx_alloc_fail_at(0, false);
  if (code != SBX_OK && code != SBX_ENOMEM)
    fail_msg("allocation %zu: %s %s", nth, sbx_err_name(code), r.err.message);
  assert_true(*reached || code == SBX_OK);
  sbx_http_client_free(inner.plain);
  if (inner.loop != NULL)
    sbx_loop_close(inner.loop, on_closed, &inner);
  uv_run(&uv, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&uv), 0);
  sbx_headers_deinit(&headers);
  drop(&r);
  assert_int_equal(sbx_alloc_live(), before);
}

static void test_every_allocation_may_fail(void **state) {
  bool reached[2] = {true, true};
  for (size_t n = 1; reached[0] || reached[1]; n++) {
    assert_true(n < 400);
    one_exchange(*state, n, &reached[n % 2]);
  }
}

/* ---- libraries ---- */

/* Runs this program again with another library; its exit status. */
static int run_again(const char *library, const char *mode) {
  char self[4096];
  ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(len > 0);
  self[len] = '\0';
  char *argv[] = {self, (char *)(uintptr_t)mode, NULL};
  pid_t pid;
  int status = 0;
  setenv("SBX_LIBCURL", library, 1);
  int rc = posix_spawn(&pid, self, NULL, NULL, argv, environ);
  unsetenv("SBX_LIBCURL");
  assert_int_equal(rc, 0);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_missing_library(void **state) {
  (void)state;
  assert_int_equal(run_again("/nonexistent/libcurl.so.4", "missing"), 0);
  assert_int_equal(run_again("libc.so.6", "missing"), 0); /* a library, but another one */
}

static void test_other_flavour(void **state) {
  (void)state;
  if (getenv("SBX_VALGRIND") != NULL)
    skip();
  int rc = run_again("libcurl-gnutls.so.4", "all");
  if (rc == 77)
    skip();
  assert_int_equal(rc, 0);
}

/* In the child: the first exchange says what is missing, and nothing else has happened. */
static int expect_missing(void) {
  void *state = NULL;
  reply r = {0};
  setup(&state);
  fixture *f = state;
  get_with(f, NULL, "http://127.0.0.1:1/", &r);
  int code = r.err.code;
  bool named = strstr(r.err.message, "libcurl") != NULL && !r.sent_maybe;
  drop(&r);
  teardown(&state);
  return code == SBX_ELIBRARY && named ? 0 : 1;
}

static int start_server(void **state) {
  (void)state;
  return http_server_start(&server);
}

static int stop_server(void **state) {
  (void)state;
  http_server_stop(&server);
  return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest exchange_tests[] = {
    T(test_get),
    T(test_methods_and_bodies),
    T(test_head_has_no_body),
    T(test_headers_are_sent),
    T(test_framing_cannot_be_given),
    T(test_bad_urls),
    T(test_large_body_waits_for_nothing),
    T(test_multipart),
    T(test_every_status_is_a_reply),
    T(test_redirects_are_not_followed),
    T(test_compression),
    T(test_size_limits),
    T(test_deep_nesting_is_only_bytes_here),
    T(test_streamed_reply),
    T(test_consumer_can_end_it),
    T(test_error_body_is_not_streamed),
    T(test_trailers_are_not_headers),
    T(test_broken_replies),
    T(test_odd_but_complete_replies),
    T(test_total_deadline),
    T(test_connect_deadline),
    T(test_refused),
    T(test_cancel),
    T(test_loop_ends_with_requests_in_flight),
    T(test_client_may_be_freed_before_its_exchange),
    T(test_connections_are_kept),
    T(test_at_most_once),
    T(test_many_at_a_time_beside_a_slow_one),
    T(test_sockets_are_not_inherited),
    T(test_unix_socket),
    T(test_http2_prior_knowledge),
    T(test_http2_over_tls),
    T(test_http2_failures),
    T(test_private_ca_by_option),
    T(test_untrusted_certificates),
    T(test_ca_by_environment),
    T(test_bad_ca_option),
    T(test_proxy_by_environment),
    T(test_proxy_by_option),
    T(test_unreachable_proxy),
    T(test_status_errors),
    T(test_retry_after),
    T(test_every_allocation_may_fail),
};

static const struct CMUnitTest library_tests[] = {
    cmocka_unit_test(test_missing_library),
    cmocka_unit_test(test_other_flavour),
};

int main(int argc, char **argv) {
  const char *library = getenv("SBX_LIBCURL");
  if (argc > 1 && strcmp(argv[1], "missing") == 0)
    return expect_missing();
  if (argc > 1 && library != NULL && dlopen(library, RTLD_LAZY | RTLD_LOCAL) == NULL)
    return 77;
  int failed = cmocka_run_group_tests(exchange_tests, start_server, stop_server);
  if (argc == 1)
    failed += cmocka_run_group_tests(library_tests, NULL, NULL);
  return failed;
}
