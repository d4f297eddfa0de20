/* Tests of what the egress proxy reads and writes: ClientHellos, heads, bodies, answers. */
#include "providers/local/egress_head.h"
#include "providers/local/egress_reply.h"
#include "providers/local/egress_tls.h"

#include "support/core_test.h"
#include "support/hello.h"

/* ---- TLS ------------------------------------------------------------------------------------ */

typedef struct told {
  int rc;
  bool done;
  char name[300];
  const char *why;
} told;

static told feed_hello(sbx_slice bytes, size_t piece) {
  sbx__egress_hello hello;
  told t = {0};
  sbx__egress_hello_init(&hello);
  for (size_t at = 0; t.rc == SBX_OK && at < bytes.len; at += piece) {
    size_t len = bytes.len - at < piece ? bytes.len - at : piece;
    sbx_slice part = tight_copy(sbx_slice_of(bytes.ptr + at, len));
    t.rc = sbx__egress_hello_feed(&hello, part, &t.why);
    tight_free(part);
  }
  t.done = hello.done;
  if (t.rc == SBX_OK && t.done && hello.name.len > 0)
    snprintf(t.name, sizeof t.name, "%.*s", (int)hello.name.len, hello.name.ptr);
  sbx__egress_hello_deinit(&hello);
  return t;
}

/* At every split in two, in pieces of every small size, and in records of every small size. */
static void test_hello_at_every_split(void **state) {
  (void)state;
  for (size_t record = 1; record < 400; record = record < 40 ? record + 1 : record * 2) {
    sbx_buf text;
    sbx_buf_init(&text, 1 << 16);
    hello_write(&text, "api.example.com", record);
    for (size_t piece = 1; piece <= text.len; piece = piece < 20 ? piece + 1 : piece * 2) {
      told t = feed_hello(sbx_buf_slice(&text), piece);
      assert_int_equal(t.rc, SBX_OK);
      assert_true(t.done);
      assert_string_equal(t.name, "api.example.com");
    }
    sbx_buf_deinit(&text);
  }
}

static void test_hello_is_not_done_early(void **state) {
  sbx_buf text;
  (void)state;
  sbx_buf_init(&text, 1 << 16);
  hello_write(&text, "api.example.com", 50);
  for (size_t len = 0; len < text.len; len++) {
    told t = feed_hello(sbx_slice_of(text.ptr, len), len + 1);
    assert_int_equal(t.rc, SBX_OK);
    assert_false(t.done);
  }
  sbx_buf_deinit(&text);
}

static void test_hello_without_a_name(void **state) {
  sbx_buf text;
  (void)state;
  sbx_buf_init(&text, 1 << 16);
  hello_write(&text, NULL, 9999);
  told t = feed_hello(sbx_buf_slice(&text), 9999);
  assert_true(t.rc == SBX_OK && t.done && t.name[0] == '\0');
  sbx_buf_deinit(&text);
}

/* Each byte of the lengths made wrong: never a name that the whole message does not have. */
static void test_hello_with_a_wrong_byte(void **state) {
  sbx_buf text;
  (void)state;
  sbx_buf_init(&text, 1 << 16);
  hello_write(&text, "api.example.com", 9999);
  for (size_t i = 0; i < text.len; i++) {
    for (int bit = 0; bit < 8; bit++) {
      text.ptr[i] = (char)(text.ptr[i] ^ (1 << bit));
      told t = feed_hello(sbx_buf_slice(&text), 9999);
      assert_true(t.rc == SBX_OK || t.rc == SBX_EPROTO);
      text.ptr[i] = (char)(text.ptr[i] ^ (1 << bit));
    }
  }
  sbx_buf_deinit(&text);
}

#define HEAD                                                                                       \
  "\x03\x03"                                                                                       \
  "RRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRR"                                                               \
  "\x00\x00\x02\x13\x01\x01\x00"

static void test_what_is_no_hello(void **state) {
  static const sbx_slice records[] = {
      BYTES("GET / HTTP/1.1\r\n"),
      BYTES("\x80\x2e\x01\x03\x01"),                 /* SSL 2 */
      BYTES("\x15\x03\x01\x00\x02\x02\x28"),         /* an alert */
      BYTES("\x16\x03\x01\x00\x00"),                 /* an empty record */
      BYTES("\x16\x03\x01\x40\x01"),                 /* one that is too long */
      BYTES("\x16\x02\x01\x00\x04\x01"),             /* another version */
      BYTES("\x16\x03\x01\x00\x04\x02\x00\x00\x00"), /* a ServerHello */
      BYTES("\x16\x03\x01\x00\x04\x01\x00\x40\x00"), /* longer than the bound */
  };
  static const sbx_slice messages[] = {
      BYTES(""),
      BYTES("\x02\x00RRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRR\x00\x00\x02\x13\x01\x01\x00"),
      BYTES(HEAD "\x00"),                             /* half a length */
      BYTES(HEAD "\x00\x01\x00\x00"),                 /* something behind the extensions */
      BYTES(HEAD "\x00\x04\x00\x00\x00\x05"),         /* an extension that is too long */
      BYTES(HEAD "\x00\x04\x00\x00\x00\x00"),         /* an empty server name */
      BYTES(HEAD "\x00\x06\x00\x00\x00\x02\x00\x00"), /* no name in the list */
      BYTES(HEAD "\x00\x09\x00\x00\x00\x05\x00\x03\x00\x00\x00"), /* an empty one */
      BYTES(HEAD "\x00\x0a\x00\x00\x00\x06\x00\x04\x01\x00\x01"
                 "a"), /* of another type */
      BYTES(HEAD "\x00\x0e\x00\x00\x00\x0a\x00\x08\x00\x00\x01"
                 "a"
                 "\x00\x00\x01"
                 "b"), /* two */
      BYTES(HEAD "\x00\x14\x00\x00\x00\x06\x00\x04\x00\x00\x01"
                 "a"
                 "\x00\x00\x00\x06\x00\x04\x00\x00\x01"
                 "b"), /* the extension twice */
  };
  (void)state;
  for (size_t i = 0; i < COUNT(records); i++) {
    told t = feed_hello(records[i], 1);
    assert_int_equal(t.rc, SBX_EPROTO);
    assert_non_null(t.why);
  }
  for (size_t i = 0; i < COUNT(messages); i++) {
    sbx_buf text;
    sbx_buf_init(&text, 1 << 16);
    hello_write_message(&text, messages[i], 9999);
    told t = feed_hello(sbx_buf_slice(&text), 9999);
    if (t.rc != SBX_EPROTO)
      fail_msg("message %zu", i);
    assert_string_equal(t.why, "its TLS ClientHello is malformed");
    sbx_buf_deinit(&text);
  }
}

/* ---- heads ---------------------------------------------------------------------------------- */

static int parse(sbx__egress_request *request, sbx_slice head, sbx__egress_fault *fault) {
  sbx_slice copy = tight_copy(head);
  sbx__egress_request_init(request);
  assert_int_equal(sbx__egress_head_end(copy, 0), copy.len);
  int rc = sbx__egress_request_parse(request, copy, fault);
  tight_free(copy);
  return rc;
}

static void test_connect(void **state) {
  sbx__egress_request request;
  sbx__egress_fault fault;
  (void)state;
  assert_int_equal(parse(&request,
                         LIT("CONNECT Example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n"
                             "User-Agent: x\r\nProxy-Connection: Keep-Alive\r\n\r\n"),
                         &fault),
                   SBX_OK);
  assert_true(request.connect);
  assert_string_equal(request.target.name, "example.com");
  assert_int_equal(request.target.port, 443);
  assert_int_equal(request.forward.len, 0);
  sbx__egress_request_deinit(&request);
  assert_int_equal(parse(&request, LIT("CONNECT a.test:8443 HTTP/1.0\r\n\r\n"), &fault), SBX_OK);
  sbx__egress_request_deinit(&request);
  assert_int_equal(
      parse(&request, LIT("CONNECT a.test:8443 HTTP/1.1\r\nHost: a.test\r\n\r\n"), &fault), SBX_OK);
  sbx__egress_request_deinit(&request);
}

static void test_what_is_forwarded(void **state) {
  static const struct {
    const char *in, *out;
  } cases[] = {
      {"GET http://Example.com/a?b=c HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\n\r\n",
       "GET /a?b=c HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nAccept: */*\r\n\r\n"},
      {"GET http://example.com:8080 HTTP/1.0\r\n\r\n",
       "GET / HTTP/1.0\r\nHost: example.com:8080\r\nConnection: close\r\n\r\n"},
      {"GET HTTP://example.com?x HTTP/1.1\r\nHOST: example.com:80\r\n\r\n",
       "GET /?x HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n"},
      {"GET http://[fd00::1]/ HTTP/1.1\r\n\r\n",
       "GET / HTTP/1.1\r\nHost: [fd00::1]\r\nConnection: close\r\n\r\n"},
      {"POST http://a.test/ HTTP/1.1\r\nContent-Length: 3\r\nConnection: keep-alive, X-Own\r\n"
       "X-Own: 1\r\nx-other:2\r\nProxy-Authorization: Basic canary\r\nKeep-Alive: 3\r\n"
       "Upgrade: h2c\r\nTE: trailers\r\n\r\n",
       "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: 3\r\nx-other: "
       "2\r\n\r\n"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx__egress_request request;
    sbx__egress_fault fault = {0};
    if (parse(&request, sbx_slice_str(cases[i].in), &fault) != SBX_OK)
      fail_msg("%s%s", cases[i].in, fault.why);
    assert_false(request.connect);
    assert_slice(sbx_buf_slice(&request.forward), sbx_slice_str(cases[i].out));
    sbx__egress_request_deinit(&request);
  }
}

#define GET "GET http://a.test/ HTTP/1.1\r\n"
#define POST "POST http://a.test/ HTTP/1.1\r\n"

static void test_what_is_refused(void **state) {
  static const struct {
    sbx_slice head;
    int status;
  } cases[] = {
      {BYTES("\r\n\r\n"), 400},
      {BYTES("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"), 400},
      {BYTES("GET https://a.test/ HTTP/1.1\r\n\r\n"), 400},
      {BYTES("GET ftp://a.test/ HTTP/1.1\r\n\r\n"), 400},
      {BYTES("GET http:///x HTTP/1.1\r\n\r\n"), 400},
      {BYTES("GET http://user:canary@a.test/ HTTP/1.1\r\n\r\n"), 400},
      {BYTES("GET http://127.1/ HTTP/1.1\r\n\r\n"), 400},
      {BYTES("GET http://a.test\\@b.test/ HTTP/1.1\r\n\r\n"), 400},
      {BYTES("GET http://a.test/#x HTTP/1.1\r\n\r\n"), 400},
      {BYTES("GET http://a.test/ x HTTP/1.1\r\n\r\n"), 505},
      {BYTES("GET http://a.test/\xc3\xbc HTTP/1.1\r\n\r\n"), 400},
      {BYTES("GET http://a.test/\0 HTTP/1.1\r\n\r\n"), 400},
      {BYTES("GET http://a.test/ HTTP/2.0\r\n\r\n"), 505},
      {BYTES("GET http://a.test/\r\n\r\n"), 505},
      {BYTES("G@T http://a.test/ HTTP/1.1\r\n\r\n"), 400},
      {BYTES("GET  http://a.test/ HTTP/1.1\r\n\r\n"), 400},
      {BYTES("GET http://a.test/ HTTP/1.1\n\r\n\r\n"), 400},
      {BYTES("CONNECT a.test HTTP/1.1\r\n\r\n"), 400},
      {BYTES("CONNECT http://a.test/ HTTP/1.1\r\n\r\n"), 400},
      {BYTES("CONNECT a.test:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), 400},
      {BYTES("CONNECT a.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n"), 403},
      /* a second request, or a second host, inside the first */
      {BYTES(GET "Host: b.test\r\n\r\n"), 403},
      {BYTES(GET "Host: a.test:8080\r\n\r\n"), 403},
      {BYTES(GET "Host: a.test\r\nHost: a.test\r\n\r\n"), 400},
      {BYTES(GET "Host : a.test\r\n\r\n"), 400},
      {BYTES(GET " Host: a.test\r\n\r\n"), 400},
      {BYTES(GET "X: 1\r\n folded\r\n\r\n"), 400},
      {BYTES(GET "X: 1\nY: 2\r\n\r\n"), 400},
      {BYTES(GET "X: 1\rY: 2\r\n\r\n"), 400},
      {BYTES(GET "X: \0\r\n\r\n"), 400},
      {BYTES(GET "X\r\n\r\n"), 400},
      {BYTES(GET ": 1\r\n\r\n"), 400},
      {BYTES(POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\n"), 400},
      {BYTES(POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
      {BYTES(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
      {BYTES(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501},
      {BYTES(POST "Transfer-Encoding: xchunked\r\n\r\n"), 501},
      {BYTES("POST http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
      {BYTES(POST "Content-Length: +3\r\n\r\n"), 400},
      {BYTES(POST "Content-Length: 3, 3\r\n\r\n"), 400},
      {BYTES(POST "Content-Length: 0x3\r\n\r\n"), 400},
      {BYTES(POST "Content-Length:\r\n\r\n"), 400},
      {BYTES(POST "Content-Length: 9999999999999999999\r\n\r\n"), 400},
      {BYTES(POST "Content-Length: 3\r\nConnection: content-length\r\n\r\n"), 400},
      {BYTES(POST "Transfer-Encoding: chunked\r\nConnection: x, Transfer-Encoding\r\n\r\n"), 400},
      {BYTES(GET "Host: a.test\r\nConnection: host\r\n\r\n"), 400},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx__egress_request request;
    sbx__egress_fault fault = {0};
    if (parse(&request, cases[i].head, &fault) != SBX_EINVAL || fault.status != cases[i].status)
      fail_msg("case %zu: %s: %d", i, cases[i].head.ptr, fault.status);
    sbx__egress_request_deinit(&request);
  }
}

static void test_too_many_fields(void **state) {
  sbx_buf head;
  sbx__egress_request request;
  sbx__egress_fault fault = {0};
  (void)state;
  sbx_buf_init(&head, 1 << 16);
  sbx_buf_append_str(&head, GET);
  for (int i = 0; i < SBX__EGRESS_FIELDS_MAX + 1; i++)
    sbx_buf_append_str(&head, "a: b\r\n");
  sbx_buf_append_str(&head, "\r\n");
  assert_int_equal(parse(&request, sbx_buf_slice(&head), &fault), SBX_EINVAL);
  assert_int_equal(fault.status, 431);
  sbx__egress_request_deinit(&request);
  sbx_buf_deinit(&head);
}

static void test_end_of_a_head(void **state) {
  static const char text[] = "GET / HTTP/1.1\r\nA: b\r\n\r\nrest\r\n\r\n";
  size_t end = strlen(text) - strlen("rest\r\n\r\n");
  (void)state;
  for (size_t len = 0; len <= strlen(text); len++) {
    for (size_t seen = 0; seen <= len && seen < end; seen++)
      assert_int_equal(sbx__egress_head_end(sbx_slice_of(text, len), seen), len < end ? 0 : end);
  }
}

/* ---- bodies --------------------------------------------------------------------------------- */

/* How many bytes belong to the body; SIZE_MAX: malformed. */
static size_t body_len(sbx__egress_body body, sbx_slice bytes, size_t piece) {
  size_t total = 0;
  for (size_t at = 0; at < bytes.len && !body.done; at += piece) {
    size_t len = bytes.len - at < piece ? bytes.len - at : piece, used;
    sbx_slice part = tight_copy(sbx_slice_of(bytes.ptr + at, len));
    bool good = sbx__egress_body_feed(&body, part, &used);
    tight_free(part);
    if (!good)
      return SIZE_MAX;
    total += used;
    assert_true(used == len || body.done);
  }
  return body.done ? total : total + 100000;
}

static void test_ends_of_bodies(void **state) {
  static const struct {
    sbx_slice bytes;
    size_t len; /* SIZE_MAX: malformed */
  } cases[] = {
      {BYTES("0\r\n\r\nGET"), 5},
      {BYTES("3\r\nabc\r\n0\r\n\r\nGET"), 13},
      {BYTES("0003;x=\"y\"\r\nabc\r\n0\r\nT: v\r\nU: w\r\n\r\nGET"), 34},
      {BYTES("aB\r\n"), 100004},
      {BYTES("3\r\nabcd\r\n"), SIZE_MAX},
      {BYTES("3\nabc\r\n"), SIZE_MAX},
      {BYTES("3\r\nabc\n0\r\n\r\n"), SIZE_MAX},
      {BYTES("3\rabc"), SIZE_MAX},
      {BYTES("\r\n"), SIZE_MAX},
      {BYTES(" 3\r\n"), SIZE_MAX},
      {BYTES("0x3\r\n"), SIZE_MAX},
      {BYTES("-3\r\n"), SIZE_MAX},
      {BYTES(";x\r\n"), SIZE_MAX},
      {BYTES("3;\x01\r\n"), SIZE_MAX},
      {BYTES("1000000000000000\r\n"), SIZE_MAX},
      {BYTES("0\r\nT: v\n\r\n"), SIZE_MAX},
      {BYTES("0\r\nT\0\r\n\r\n"), SIZE_MAX},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    for (size_t piece = 1; piece <= cases[i].bytes.len; piece++) {
      sbx__egress_body body = {.state = SBX__EGRESS_BODY_SIZE};
      size_t len = body_len(body, cases[i].bytes, piece);
      if (len != cases[i].len)
        fail_msg("%s: %zu", cases[i].bytes.ptr, len);
    }
  }
  sbx__egress_body five = {.left = 5};
  for (size_t piece = 1; piece <= 8; piece++)
    assert_int_equal(body_len(five, LIT("12345678"), piece), 5);
}

static void test_endless_lines_of_chunks(void **state) {
  char text[10000];
  size_t used;
  (void)state;
  memset(text, 'a', sizeof text);
  text[1] = ';';
  sbx__egress_body size = {.state = SBX__EGRESS_BODY_SIZE};
  assert_false(sbx__egress_body_feed(&size, sbx_slice_of(text, sizeof text), &used));
  sbx__egress_body trailer = {.state = SBX__EGRESS_BODY_TRAILER};
  assert_false(sbx__egress_body_feed(&trailer, sbx_slice_of(text, sizeof text), &used));
}

/* ---- answers -------------------------------------------------------------------------------- */

static void assert_answer(sbx_buf *text, int rc, const char *line, const char *part) {
  assert_int_equal(rc, SBX_OK);
  const char *body = strstr(text->ptr, "\r\n\r\n"), *length = strstr(text->ptr, "Content-Length: ");
  assert_non_null(body);
  assert_non_null(length);
  if (strncmp(text->ptr, line, strlen(line)) != 0 || strstr(text->ptr, part) == NULL)
    fail_msg("%s", text->ptr);
  assert_int_equal(strlen(body + 4), strtoul(length + 16, NULL, 10));
  assert_null(strstr(text->ptr, "canary"));
  sbx_buf_deinit(text);
  sbx_buf_init(text, 1 << 16);
}

static void test_answers_say_what_and_why(void **state) {
  sbx__egress_request request;
  sbx__egress_fault fault;
  sbx__egress_addr addr = {.len = 4, .bytes = {169, 254, 169, 254}};
  sbx_buf text;
  (void)state;
  sbx_buf_init(&text, 1 << 16);
  assert_int_equal(
      parse(&request, LIT("GET http://evil.test/canary?key=canary HTTP/1.1\r\nA: canary\r\n\r\n"),
            &fault),
      SBX_OK);
  assert_answer(&text, sbx__egress_reply_refused(&text, &request, SBX__EGRESS_NOT_LISTED),
                "HTTP/1.1 403 evil.test:80 is not in allowedHosts of this sandbox\r\n", "can add");
  assert_answer(&text, sbx__egress_reply_refused(&text, &request, SBX__EGRESS_OTHER_PORT),
                "HTTP/1.1 403 evil.test:80 is in allowedHosts with other ports only\r\n",
                "host:8443");
  assert_answer(&text, sbx__egress_reply_refused(&text, &request, SBX__EGRESS_LITERAL),
                "HTTP/1.1 403 evil.test:80 is an address", "by its name");
  assert_answer(&text, sbx__egress_reply_addr(&text, &request, &addr),
                "HTTP/1.1 403 evil.test:80 leads to 169.254.169.254, a link-local address\r\n",
                "allowedHosts itself");
  assert_answer(&text, sbx__egress_reply_failed(&text, &request, 502, "connection refused"),
                "HTTP/1.1 502 cannot reach evil.test:80: connection refused\r\n",
                "outside the sandbox");
  fault = (sbx__egress_fault){400, "the URL has a user name"};
  assert_answer(&text, sbx__egress_reply_fault(&text, &request, &fault),
                "HTTP/1.1 400 the URL has a user name\r\n", "nothing was sent");
  request.is_head = true;
  assert_int_equal(sbx__egress_reply_fault(&text, &request, &fault), SBX_OK);
  assert_string_equal(text.ptr + text.len - 4, "\r\n\r\n");
  sbx_buf_deinit(&text);
  sbx__egress_request_deinit(&request);
}

static int add_variable(void *arg, const char *name, const char *value) {
  return sbx_buf_appendf(arg, "%s=%s\n", name, value);
}

static int refuse_variable(void *arg, const char *name, const char *value) {
  (void)name, (void)value;
  ++*(int *)arg;
  return SBX_ENOMEM;
}

static void test_variables(void **state) {
  sbx_buf text;
  int calls = 0;
  (void)state;
  sbx_buf_init(&text, 4096);
  assert_int_equal(sbx__egress_env(65535, add_variable, &text), SBX_OK);
  assert_string_equal(text.ptr, "HTTP_PROXY=http://127.0.0.1:65535\n"
                                "HTTPS_PROXY=http://127.0.0.1:65535\n"
                                "ALL_PROXY=http://127.0.0.1:65535\n"
                                "http_proxy=http://127.0.0.1:65535\n"
                                "https_proxy=http://127.0.0.1:65535\n"
                                "all_proxy=http://127.0.0.1:65535\n"
                                "NO_PROXY=localhost,127.0.0.1,::1\n"
                                "no_proxy=localhost,127.0.0.1,::1\n"
                                "NODE_USE_ENV_PROXY=1\n");
  sbx_buf_deinit(&text);
  assert_int_equal(sbx__egress_env(1, refuse_variable, &calls), SBX_ENOMEM);
  assert_int_equal(calls, 1);
}

/* ---- memory --------------------------------------------------------------------------------- */

static int parse_once(void *arg) {
  sbx__egress_request request;
  sbx__egress_fault fault;
  sbx__egress_request_init(&request);
  int rc = sbx__egress_request_parse(&request, *(sbx_slice *)arg, &fault);
  sbx__egress_request_deinit(&request);
  return rc;
}

static int hello_once(void *arg) {
  sbx__egress_hello hello;
  const char *why;
  sbx__egress_hello_init(&hello);
  int rc = sbx__egress_hello_feed(&hello, sbx_buf_slice(arg), &why);
  sbx__egress_hello_deinit(&hello);
  return rc;
}

static void test_no_memory(void **state) {
  sbx_slice head = LIT("GET http://a.test/ HTTP/1.1\r\nCookie: canary\r\n\r\n");
  sbx_buf hello;
  (void)state;
  assert_true(each_allocation_fails(parse_once, &head) > 0);
  sbx_buf_init(&hello, 1 << 16);
  hello_write(&hello, "a.test", 40);
  assert_true(each_allocation_fails(hello_once, &hello) > 0);
  sbx_buf_deinit(&hello);
}

#define T(name) cmocka_unit_test_teardown(name, no_leaks)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(test_hello_at_every_split),
      T(test_hello_is_not_done_early),
      T(test_hello_without_a_name),
      T(test_hello_with_a_wrong_byte),
      T(test_what_is_no_hello),
      T(test_connect),
      T(test_what_is_forwarded),
      T(test_what_is_refused),
      T(test_too_many_fields),
      T(test_end_of_a_head),
      T(test_ends_of_bodies),
      T(test_endless_lines_of_chunks),
      T(test_answers_say_what_and_why),
      T(test_variables),
      T(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
