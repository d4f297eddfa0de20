/* Tests of exchanges whose connection is given over to another protocol. */
#include "support/http_fixture.h"

#include <errno.h>

/* What the consumer got. */
typedef struct taken {
  char text[64]; /* the beginning */
  size_t bytes;
  int heads;
  int status;
  size_t stop_at; /* bytes after which it ends the exchange; 0: never */
  sbx_op *abort;  /* aborted with the first bytes */
} taken;

static int on_head(void *arg, int status, const sbx_headers *headers, sbx_err *err) {
  taken *t = arg;
  (void)headers;
  (void)err;
  t->heads++;
  t->status = status;
  return SBX_OK;
}

static int on_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  taken *t = arg;
  assert_true(bytes.len > 0);
  for (size_t i = 0; i < bytes.len && t->bytes + i + 1 < sizeof t->text; i++)
    t->text[t->bytes + i] = bytes.ptr[i];
  t->bytes += bytes.len;
  if (t->abort != NULL)
    sbx_op_abort(t->abort, SBX_ECANCELED);
  t->abort = NULL;
  return t->stop_at != 0 && t->bytes >= t->stop_at ? sbx_err_set(err, SBX_EQUOTA, "enough")
                                                   : SBX_OK;
}

static sbx_http_request take_over(sbx_http_request request, taken *t, sbx_slice input) {
  request.repeatable = false;
  request.body = sbx_slice_str("{\"a\":1}");
  request.upgrade = "tcp";
  request.input = input;
  request.end_input = input.ptr != NULL;
  request.on_head = on_head;
  request.on_bytes = on_bytes;
  request.consumer = t;
  return request;
}

static void run_taken(fixture *f, const char *path, taken *t, sbx_slice input, reply *r) {
  sbx_http_request request = take_over(to(f, "POST", server.http, path), t, input);
  request.timeout_ms = 10000;
  run(f, NULL, &request, r);
}

static void test_both_sides(void **state) {
  fixture *f = *state;
  taken t = {0};
  reply r = {.want = "upgrade"};
  run_taken(f, "/take/echo", &t, LIT("hello"), &r);
  assert_ok(&r, 200);
  assert_string_equal(r.header, "tcp");
  assert_string_equal(t.text, "HELLO<end>");
  assert_int_equal(t.heads, 1);
  drop(&r);
  /* An input of nothing is one: the other side sees its end. */
  t = (taken){0};
  run_taken(f, "/take/echo", &t, LIT(""), &r);
  assert_string_equal(t.text, "<end>");
  drop(&r);
  /* None at all: it does not. */
  t = (taken){0};
  run_taken(f, "/take/plain", &t, sbx_slice_of(NULL, 0), &r);
  assert_ok(&r, 200);
  assert_string_equal(t.text, "raw bytes");
  drop(&r);
}

static void test_over_a_unix_socket_and_tls(void **state) {
  fixture *f = *state;
  taken t = {0};
  reply r = {0};
  sbx_http_options options = {.unix_socket = sbx_slice_str(server.unix_path)};
  sbx_http_client *client = new_client(&options);
  sbx_http_request request = take_over(
      (sbx_http_request){.method = "POST", .url = sbx_slice_str("http://docker/take/echo?x=1")}, &t,
      LIT("by socket"));
  run(f, client, &request, &r);
  assert_ok(&r, 200);
  assert_string_equal(t.text, "BY SOCKET<end>");
  drop(&r);
  sbx_http_client_free(client);

  t = (taken){0};
  client = client_with_ca(server.ca, SBX_HTTP_1_1);
  request = take_over(to_tls(f, "POST", server.https, "/take/echo?bytes=6"), &t, LIT("by tls"));
  run(f, client, &request, &r);
  assert_ok(&r, 200);
  assert_string_equal(t.text, "BY TLS<end>");
  drop(&r);
  sbx_http_client_free(client);

  /* The certificate counts as ever. */
  t = (taken){0};
  request = take_over(to_tls(f, "POST", server.https, "/take/echo?bytes=6"), &t, LIT("secret"));
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_ETLS, false, "certificate");
  assert_int_equal(t.bytes, 0);
  drop(&r);
}

static void test_heads_come_in_pieces(void **state) {
  taken t = {0};
  reply r = {0};
  run_taken(*state, "/take/drip", &t, sbx_slice_of(NULL, 0), &r);
  assert_ok(&r, 200);
  assert_string_equal(t.text, "drip");
  assert_int_equal(t.heads, 1);
  drop(&r);
}

static void test_refusals(void **state) {
  taken t = {0};
  reply r = {0};
  run_taken(*state, "/take/refuse", &t, LIT("unsent"), &r);
  assert_ok(&r, 409);
  assert_string_equal(r.body, "{\"message\":\"no, sir\"}");
  assert_int_equal(t.bytes, 0);
  drop(&r);
  run_taken(*state, "/take/chunked", &t, sbx_slice_of(NULL, 0), &r);
  assert_ok(&r, 500);
  drop(&r);
  run_taken(*state, "/take/unlimited", &t, sbx_slice_of(NULL, 0), &r);
  assert_ok(&r, 500);
  assert_int_equal(r.len, SBX_HTTP_ERROR_BODY_MAX);
  drop(&r);
}

static void test_what_is_no_answer(void **state) {
  taken t = {0};
  reply r = {0};
  run_taken(*state, "/take/cut", &t, sbx_slice_of(NULL, 0), &r);
  assert_error(&r, SBX_ENET, true, "ended inside its head");
  drop(&r);
  run_taken(*state, "/take/heads", &t, sbx_slice_of(NULL, 0), &r);
  assert_error(&r, SBX_EPROTO, true, "too many header fields");
  drop(&r);
  run_taken(*state, "/take/nonsense", &t, sbx_slice_of(NULL, 0), &r);
  assert_error(&r, SBX_EPROTO, true, "not proper HTTP");
  drop(&r);
  run_taken(*state, "/take/break", &t, sbx_slice_of(NULL, 0), &r);
  assert_error(&r, SBX_ENET, true, "");
  drop(&r);
}

static void test_much_in_both_directions(void **state) {
  static char bytes[8 << 20];
  taken t = {0};
  reply r = {0};
  memset(bytes, 'a', sizeof bytes);
  run_taken(*state, "/take/flood?bytes=50000000", &t, sbx_slice_of(NULL, 0), &r);
  assert_ok(&r, 200);
  assert_int_equal(t.bytes, 50000000);
  drop(&r);
  t = (taken){0};
  run_taken(*state, "/take/count", &t, sbx_slice_of(bytes, sizeof bytes), &r);
  assert_string_equal(t.text, "8388608");
  drop(&r);
  t = (taken){0};
  run_taken(*state, "/take/echo", &t, sbx_slice_of(bytes, sizeof bytes), &r);
  assert_int_equal(t.bytes, sizeof bytes + 5);
  drop(&r);
}

/* What it says before it hangs up counts, whatever we still had to say. */
static void test_an_early_end(void **state) {
  static char bytes[8 << 20];
  taken t = {0};
  reply r = {0};
  run_taken(*state, "/take/early", &t, sbx_slice_of(bytes, sizeof bytes), &r);
  if (r.err.code != SBX_ENET) /* it may answer what it did not read with a reset */
    assert_ok(&r, 200);
  drop(&r);
}

static void test_the_consumer_ends_it(void **state) {
  fixture *f = *state;
  taken t = {.stop_at = 100000};
  reply r = {0};
  run_taken(f, "/take/flood?bytes=50000000", &t, sbx_slice_of(NULL, 0), &r);
  assert_error(&r, SBX_EQUOTA, true, "enough");
  assert_true(t.bytes >= 100000 && t.bytes < 1000000);
  drop(&r);
  /* By ending the operation it feeds from. */
  t = (taken){0};
  sbx_http_request request = take_over(to(f, "POST", server.http, "/take/flood?bytes=50000000"), &t,
                                       sbx_slice_of(NULL, 0));
  t.abort = start(f, NULL, &request, &r);
  wait_for(f, &r);
  assert_error(&r, SBX_ECANCELED, true, "cancelled");
  drop(&r);
}

static void test_deadline_and_cancel(void **state) {
  fixture *f = *state;
  taken t = {0};
  reply r = {0};
  sbx_http_request request = take_over(to(f, "POST", server.http, "/take/silent"), &t, LIT("in"));
  request.timeout_ms = 200;
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_ETIMEOUT, true, "no complete answer");
  drop(&r);
  request = take_over(to(f, "POST", server.http, "/take/open"), &t, LIT("in"));
  sbx_op *op = start(f, NULL, &request, &r);
  while (t.bytes == 0)
    uv_run(&f->uv, UV_RUN_ONCE);
  assert_string_equal(t.text, "first");
  sbx_op_abort(op, SBX_ECANCELED);
  wait_for(f, &r);
  assert_error(&r, SBX_ECANCELED, true, "cancelled");
  drop(&r);
}

static void test_the_loop_ends_meanwhile(void **state) {
  fixture *f = *state;
  taken t = {0};
  reply r = {0};
  sbx_http_request request = take_over(to(f, "POST", server.http, "/take/open"), &t, LIT("in"));
  start(f, NULL, &request, &r);
  while (t.bytes == 0)
    uv_run(&f->uv, UV_RUN_ONCE);
  sbx_loop_close(f->loop, on_loop_closed, NULL);
  f->loop = NULL;
  wait_for(f, &r);
  assert_error(&r, SBX_ECLOSED, true, "closing");
  drop(&r);
}

/* The connection is not one of those that are kept, and its number may be another's at once. */
static void test_others_go_on_beside_it(void **state) {
  fixture *f = *state;
  reply small[20] = {{0}};
  taken t[20];
  memset(t, 0, sizeof t);
  for (size_t round = 0; round < 3; round++) {
    for (size_t i = 0; i < 20; i++) {
      sbx_http_request request =
          i % 2 == 0 ? take_over(to(f, "POST", server.http, "/take/echo"), &t[i], LIT("beside"))
                     : to(f, "GET", server.http, "/small");
      start(f, f->plain, &request, &small[i]);
    }
    for (size_t i = 0; i < 20; i++) {
      wait_for(f, &small[i]);
      assert_ok(&small[i], 200);
      if (i % 2 == 0)
        assert_string_equal(t[i].text, "BESIDE<end>");
      drop(&small[i]);
      t[i] = (taken){0};
    }
  }
}

static void test_nobody_there(void **state) {
  fixture *f = *state;
  taken t = {0};
  reply r = {0};
  sbx_http_request request = take_over(to(f, "POST", 1, "/take/echo"), &t, LIT("in"));
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_ENET, false, "cannot connect");
  drop(&r);
  sbx_http_options options = {.unix_socket = sbx_slice_str("/nonexistent/http.sock")};
  sbx_http_client *client = new_client(&options);
  request = take_over((sbx_http_request){.method = "POST", .url = sbx_slice_str("http://docker/")},
                      &t, LIT("in"));
  sbx_op *op = sbx_http_start(client, f->loop, &request, note_reply, &r);
  while (r.done == 0 && sbx_http_of(op)->os_error == 0)
    uv_run(&f->uv, UV_RUN_NOWAIT);
  wait_for(f, &r);
  assert_error(&r, SBX_ENET, false, "unix socket");
  drop(&r);
  sbx_http_client_free(client);
}

/* ---- failing allocations ---- */

static int exchange_once(size_t nth) {
  fixture f = {0};
  taken t = {0};
  reply r = {0};
  loop_open(&f.uv, &f.loop);
  sbx_http_request request = take_over(to(&f, "POST", server.http, "/take/echo"), &t, LIT("text"));
  sbx_http_client *client = NULL;
  const sbx_http_options options = {0};
  assert_int_equal(sbx_http_client_new(&client, &options, NULL), SBX_OK);
  sbx_alloc_fail_at(nth, false);
  sbx_op *op = sbx_http_start(client, f.loop, &request, note_reply, &r);
  if (op != NULL)
    wait_for(&f, &r);
  bool failed = sbx_alloc_failed();
  sbx_alloc_fail_at(0, false);
  int code = op == NULL ? SBX_ENOMEM : r.err.code;
  if (code == SBX_OK)
    assert_string_equal(t.text, "TEXT<end>");
  drop(&r);
  sbx_http_client_free(client);
  loop_end(&f.uv, f.loop);
  return failed ? code : 1;
}

static void test_every_allocation_may_fail(void **state) {
  int code = SBX_ENOMEM;
  size_t nth = 0;
  (void)state;
  while (code == SBX_ENOMEM || code == SBX_OK)
    code = exchange_once(++nth);
  assert_int_equal(code, 1);
  assert_true(nth > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HTTP_TEST(test_both_sides),
      HTTP_TEST(test_over_a_unix_socket_and_tls),
      HTTP_TEST(test_heads_come_in_pieces),
      HTTP_TEST(test_refusals),
      HTTP_TEST(test_what_is_no_answer),
      HTTP_TEST(test_much_in_both_directions),
      HTTP_TEST(test_an_early_end),
      HTTP_TEST(test_the_consumer_ends_it),
      HTTP_TEST(test_deadline_and_cancel),
      HTTP_TEST(test_the_loop_ends_meanwhile),
      HTTP_TEST(test_others_go_on_beside_it),
      HTTP_TEST(test_nobody_there),
      cmocka_unit_test(test_every_allocation_may_fail),
  };
  clean_environment();
  return cmocka_run_group_tests(tests, http_group_setup, http_group_teardown);
}
