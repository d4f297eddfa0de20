/* Tests of core/http and core/transfer over time: deadlines, cancel, the loop's end, connections,
 * requests that must not be sent twice, and failing allocations. */
#include "support/http_fixture.h"

#include "core/transfer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- time, cancel, the end ---- */

static void test_total_deadline(void **state) {
  fixture *f = *state;
  stream s = {0};
  reply r = {0};
  sbx_http_request request = to(f, "POST", server.http, "/never?key=hidden");
  request.timeout_ms = 1000;
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_ETIMEOUT, true, "no complete answer within 1000 ms");
  assert_null(strstr(r.err.message, "hidden"));
  drop(&r);
  /* It counts from the start, whatever comes meanwhile. */
  request = to_stream(f, "/drip?chunks=100000&ms=5", &s);
  request.timeout_ms = 1000;
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_ETIMEOUT, true, "within 1000 ms");
  assert_int_equal(r.status, 200);
  assert_true(s.bytes > 0);
  drop(&r);
}

typedef struct ticker {
  sbx_timer timer;
  int count;
} ticker;

static void tick(sbx_timer *timer) {
  ((ticker *)(void *)timer)->count++;
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
  ticker t = {.count = 0};
  reply r = {0};
  int listener = full_listener(clients, &port);
  sbx_timer_init(&t.timer, f->loop, tick);
  sbx_timer_start(&t.timer, 10);
  sbx_http_request request = to(f, "GET", port, "/");
  request.connect_ms = 300;
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_ETIMEOUT, false, "no connection within 300 ms");
  assert_true(t.count > 1); /* the loop went on meanwhile */
  drop(&r);
  request.connect_ms = 60000;
  request.timeout_ms = 200;
  run(f, NULL, &request, &r);
  assert_error(&r, SBX_ETIMEOUT, false, "no connection within 200 ms");
  drop(&r);
  sbx_timer_stop(&t.timer);
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

/* The numbers that the next descriptors get can be watched by whoever gets them. */
static void assert_free_descriptors_are_not_watched(fixture *f) {
  enum { COUNT = 8 };
  uv_poll_t poll[COUNT];
  int fd[COUNT];
  for (int i = 0; i < COUNT; i++) {
    fd[i] = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd[i] >= 0);
    assert_int_equal(uv_poll_init(&f->uv, &poll[i], fd[i]), 0);
    uv_close((uv_handle_t *)&poll[i], NULL);
  }
  uv_run(&f->uv, UV_RUN_NOWAIT);
  for (int i = 0; i < COUNT; i++)
    close(fd[i]);
}

/* libcurl 7.88 does not tell that it closes a connection that was given up before it came about.
 * Its number is then that of the resolver's descriptor, and later on anybody's. */
static void test_no_closed_descriptor_stays_watched(void **state) {
  fixture *f = *state;
  int clients[64];
  uint16_t port;
  int listener = full_listener(clients, &port);
  for (int i = 0; i < 3; i++) {
    reply r = {0};
    sbx_http_request request = to(f, "GET", port, "/");
    request.connect_ms = 50;
    run(f, NULL, &request, &r);
    assert_error(&r, SBX_ETIMEOUT, false, "no connection within 50 ms");
    drop(&r);
    request = (sbx_http_request){.method = "GET", .url = sbx_slice_str("http://name.invalid/")};
    run(f, NULL, &request, &r);
    assert_error(&r, SBX_ENET, false, "cannot be resolved");
    drop(&r);
    assert_free_descriptors_are_not_watched(f);
    assert_int_equal(sbx_transfer_connections(f->loop), 0);
  }
  for (int i = 0; i < 64; i++)
    close(clients[i]);
  close(listener);
}

static void test_cancel(void **state) {
  fixture *f = *state;
  reply r = {0};
  sbx_http_request request = to(f, "POST", server.http, "/never");
  sbx_op *op = start(f, NULL, &request, &r);
  sbx_op_abort(op, SBX_ECANCELED);
  assert_int_equal(r.done, 0);
  wait_for(f, &r);
  assert_error(&r, SBX_ECANCELED, false, "cancelled");
  drop(&r);

  int64_t before = count(f, "requests", "/never");
  request = to(f, "POST", server.http, "/never");
  op = start(f, NULL, &request, &r);
  while (count(f, "requests", "/never") == before)
    ;
  sbx_op_abort(op, SBX_ECANCELED);
  wait_for(f, &r);
  assert_error(&r, SBX_ECANCELED, true, "cancelled");
  drop(&r);
}

static void test_loop_ends_with_requests_in_flight(void **state) {
  enum { N = 20 };
  static const char *const paths[] = {"/never", "/drip?chunks=100000&ms=5",
                                      "/huge?bytes=100000000000"};
  fixture *f = *state;
  reply *r = calloc(N + 1, sizeof *r);
  stream s = {0};
  for (int i = 0; i < N; i++) {
    sbx_http_request request = to_stream(f, paths[i % 3], &s);
    assert_non_null(start(f, NULL, &request, &r[i]));
  }
  while (s.bytes == 0)
    uv_run(&f->uv, UV_RUN_ONCE);
  sbx_loop_close(f->loop, on_loop_closed, NULL);
  /* One that comes too late is told so as well. */
  sbx_http_request late = to(f, "GET", server.http, "/small");
  assert_non_null(start(f, NULL, &late, &r[N]));
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  f->loop = NULL;
  for (int i = 0; i <= N; i++) {
    assert_int_equal(r[i].done, 1);
    assert_int_equal(r[i].err.code, SBX_ECLOSED);
    drop(&r[i]);
  }
  free(r);
}

static void test_client_may_be_freed_before_its_exchange(void **state) {
  fixture *f = *state;
  reply r = {0};
  sbx_http_request request = to(f, "GET", server.http, "/slow?ms=50");
  assert_non_null(start(f, f->plain, &request, &r));
  sbx_http_client_free(f->plain);
  f->plain = NULL;
  wait_for(f, &r);
  assert_ok(&r, 200);
  drop(&r);
}

/* ---- connections ---- */

static sbx_http_client *shared(fixture *f, const sbx_http_options *options) {
  sbx_http_client *client = NULL;
  assert_int_equal(sbx_http_client_get(&client, f->loop, options, NULL), SBX_OK);
  return client;
}

static void test_clients_are_shared_by_their_options(void **state) {
  fixture *f = *state;
  static const char pem[] = "-----BEGIN CERTIFICATE-----\n";
  const sbx_http_options options[] = {
      {.version = SBX_HTTP_1_1},
      {.version = SBX_HTTP_2},
      {.version = SBX_HTTP_2, .no_proxy = true},
      {.version = SBX_HTTP_2, .proxy = sbx_slice_str("http://p:1")},
      {.version = SBX_HTTP_2, .proxy = sbx_slice_str("http://p:2")},
      {.version = SBX_HTTP_2, .unix_socket = sbx_slice_str("/s")},
      {.version = SBX_HTTP_2, .ca_pem = sbx_slice_of(pem, sizeof pem - 1)},
      {.version = SBX_HTTP_2, .ca_pem = sbx_slice_of(pem, sizeof pem - 2)},
  };
  enum { COUNT = sizeof options / sizeof options[0] };
  sbx_http_client *clients[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    clients[i] = shared(f, &options[i]);
    for (size_t k = 0; k < i; k++)
      assert_ptr_not_equal(clients[i], clients[k]);
  }
  for (size_t i = 0; i < COUNT; i++) {
    assert_ptr_equal(shared(f, &options[i]), clients[i]);
    sbx_http_client_free(clients[i]);
  }
  reply r = {0};
  sbx_http_request request = to(f, "GET", server.http, "/small");
  run(f, clients[0], &request, &r);
  assert_ok(&r, 200);
  drop(&r);
  /* What its last owner has freed is not found any more. */
  sbx_http_client_free(clients[3]);
  sbx_http_client *again = shared(f, &options[3]);
  run(f, clients[0], &request, &r);
  drop(&r);
  sbx_http_client_free(again);
  for (size_t i = 0; i < COUNT; i++) {
    if (i != 3)
      sbx_http_client_free(clients[i]);
  }
  sbx_http_options bad = {.ca_pem = sbx_slice_str("none")};
  assert_int_equal(sbx_http_client_get(&again, f->loop, &bad, NULL), SBX_EINVAL);
}

static void test_connections_are_kept(void **state) {
  fixture *f = *state;
  reply r = {0};
  int64_t before = count(f, "connections", "http");
  for (int i = 0; i < 10; i++) {
    get(f, server.http, "/small", &r);
    assert_ok(&r, 200);
    drop(&r);
  }
  assert_int_equal(count(f, "connections", "http"), before);
}

/* The server closes a kept connection as the request comes: it is sent again only where allowed. */
static void test_at_most_once(void **state) {
  fixture *f = *state;
  reply r = {0};
  for (int repeatable = 0; repeatable <= 1; repeatable++) {
    int64_t before = count(f, "requests", "/stale");
    get(f, server.raw, "/stale", &r);
    assert_ok(&r, 200);
    drop(&r);
    sbx_http_request request = to(f, "POST", server.raw, "/stale");
    request.body = sbx_slice_str("run this");
    request.repeatable = repeatable;
    run(f, NULL, &request, &r);
    if (repeatable)
      assert_ok(&r, 200);
    else
      assert_error(&r, SBX_ENET, true, "not sent again");
    drop(&r);
    assert_int_equal(count(f, "requests", "/stale") - before, repeatable ? 3 : 2);
  }
}

/* The same in the middle of the body, as bytes and as a part of a form. */
static void test_at_most_once_in_the_middle(void **state) {
  enum { SIZE = 8 << 20 };
  fixture *f = *state;
  reply r = {0};
  char *bytes = malloc(SIZE);
  memset(bytes, 'x', SIZE);
  const sbx_http_part part = {.name = sbx_slice_str("file"), .content = sbx_slice_of(bytes, SIZE)};
  for (int i = 0; i < 4; i++) {
    bool repeatable = i % 2 == 1;
    int64_t before = count(f, "requests", "/cut");
    get(f, server.raw, "/cut", &r);
    assert_ok(&r, 200);
    drop(&r);
    sbx_http_request request = to(f, "POST", server.raw, "/cut");
    request.repeatable = repeatable;
    if (i < 2) {
      request.body = sbx_slice_of(bytes, SIZE);
    } else {
      request.parts = &part;
      request.part_count = 1;
    }
    run(f, NULL, &request, &r);
    if (repeatable)
      assert_ok(&r, 200);
    else
      assert_error(&r, SBX_ENET, true, "");
    drop(&r);
    assert_int_equal(count(f, "requests", "/cut") - before, repeatable ? 3 : 2);
  }
  free(bytes);
}

static void stop_waiting(uv_timer_t *timer) {
  *(bool *)timer->data = true;
}

/* A kept connection goes on being watched: its end is seen once, and is not what the loop lives by.
 */
static void test_the_end_of_a_kept_connection(void **state) {
  fixture *f = *state;
  reply r = {0};
  uv_timer_t timer;
  bool over = false;
  int turns = 0;
  for (int i = 0; i < 2; i++) {
    get(f, server.raw, "/leaves", &r);
    assert_ok(&r, 200);
    drop(&r);
    assert_int_equal(sbx_transfer_connections(f->loop), 1);
  }
  timer.data = &over;
  assert_int_equal(uv_timer_init(&f->uv, &timer), 0);
  assert_int_equal(uv_timer_start(&timer, stop_waiting, 200, 0), 0);
  while (!over) {
    uv_run(&f->uv, UV_RUN_ONCE);
    turns++;
  }
  assert_true(turns < 20);
  uv_close((uv_handle_t *)&timer, NULL);
  get(f, server.raw, "/leaves", &r);
  assert_ok(&r, 200);
  drop(&r);
  assert_int_equal(sbx_transfer_connections(f->loop), 1);
}

static void test_many_at_a_time_beside_a_slow_one(void **state) {
  enum { CALLS = 300, AT_ONCE = 50 };
  fixture *f = *state;
  reply *r = calloc(CALLS, sizeof *r);
  stream s = {0};
  reply slow = {0};
  int pending = 0;
  sbx_http_request request = to_stream(f, "/drip?chunks=60&ms=10", &s);
  assert_non_null(start(f, NULL, &request, &slow));
  request = to(f, "GET", server.http, "/small");
  for (int started = 0; started < CALLS || pending > 0;) {
    for (; started < CALLS && pending < AT_ONCE; started++, pending++) {
      r[started].countdown = &pending;
      assert_non_null(start(f, NULL, &request, &r[started]));
    }
    uv_run(&f->uv, UV_RUN_ONCE);
  }
  wait_for(f, &slow);
  for (int i = 0; i < CALLS; i++) {
    assert_int_equal(r[i].done, 1);
    assert_ok(&r[i], 200);
    drop(&r[i]);
  }
  assert_ok(&slow, 200);
  assert_int_equal(s.bytes, 170);
  drop(&slow);
  free(r);
}

/* Whoever may speak HTTP/2 waits for a connection that can be shared; without TLS there is none. */
/* A libcurl that cannot share HTTP/2 connections resets each stream at its end, and node's HTTP/2
 * breaks a connection that has seen a thousand resets. A request that waits for its answer all the
 * while keeps its own. */
static void test_many_over_http2(void **state) {
  enum { CALLS = 1600, AT_ONCE = 20 };
  fixture *f = *state;
  reply *r = calloc(CALLS, sizeof *r);
  reply slow = {0};
  int pending = 0;
  sbx_http_client *client = client_with_ca(server.ca, SBX_HTTP_2);
  int64_t requests = count(f, "requests", "/small");
  int64_t connections = count(f, "connections", "https");
  sbx_http_request request = to_tls(f, "GET", server.https, "/held");
  assert_non_null(start(f, client, &request, &slow));
  request = to_tls(f, "POST", server.https, "/small");
  for (int started = 0; started < CALLS || pending > 0;) {
    for (; started < CALLS && pending < AT_ONCE; pending++, started++) {
      r[started].countdown = &pending;
      assert_non_null(start(f, client, &request, &r[started]));
    }
    uv_run(&f->uv, UV_RUN_ONCE);
  }
  for (int i = 0; i < CALLS; i++) {
    assert_ok(&r[i], 200);
    drop(&r[i]);
  }
  free(r);
  assert_int_equal(count(f, "requests", "/small"), requests + CALLS);
  const sbx_curl *curl = NULL;
  assert_int_equal(sbx_curl_get(&curl, NULL), SBX_OK);
  int64_t most = curl->shares_http2 ? 1 : (1 + CALLS / 500) * (1 + AT_ONCE);
  assert_true(count(f, "connections", "https") - connections <= most);
  assert_int_equal(slow.done, 0);
  reply opened = {0};
  request = to_tls(f, "GET", server.https, "/open");
  run(f, client, &request, &opened);
  assert_ok(&opened, 200);
  drop(&opened);
  wait_for(f, &slow);
  assert_ok(&slow, 200);
  drop(&slow);
  sbx_http_client_free(client);
}

/* Of streams that end while others bring more than is read at a time. */
static void test_every_end_over_http2(void **state) {
  enum { LARGE = 3, CALLS = 60, AT_ONCE = 6 };
  fixture *f = *state;
  stream s[LARGE] = {{0}};
  reply large[LARGE] = {{0}};
  reply *r = calloc(CALLS, sizeof *r);
  int pending = 0, started = 0;
  sbx_http_client *client = client_with_ca(server.ca, SBX_HTTP_2);
  for (int i = 0; i < LARGE; i++) {
    sbx_http_request request = to_stream(f, "", &s[i]);
    sbx_http_request where = to_tls(f, "GET", server.https, "/huge?bytes=20000000");
    request.url = where.url;
    assert_non_null(start(f, client, &request, &large[i]));
  }
  sbx_http_request request = to_tls(f, "POST", server.https, "/trailers");
  request.keep_trailers = true;
  while (started < CALLS || pending > 0) {
    for (; started < CALLS && pending < AT_ONCE; pending++, started++) {
      r[started].countdown = &pending;
      r[started].want = "x-late";
      assert_non_null(start(f, client, &request, &r[started]));
    }
    uv_run(&f->uv, UV_RUN_ONCE);
  }
  for (int i = 0; i < CALLS; i++) {
    assert_ok(&r[i], 200);
    assert_string_equal(r[i].header, "1");
    drop(&r[i]);
  }
  free(r);
  for (int i = 0; i < LARGE; i++) {
    wait_for(f, &large[i]);
    assert_ok(&large[i], 200);
    assert_int_equal(s[i].bytes, 20000000);
    drop(&large[i]);
  }
  sbx_http_client_free(client);
}

static void test_a_silent_service_holds_no_other_request(void **state) {
  fixture *f = *state;
  sbx_http_options options = {.version = SBX_HTTP_2};
  sbx_http_client *client = new_client(&options);
  reply silent = {0}, r = {0};
  sbx_http_request request = to(f, "GET", server.http, "/never");
  sbx_op *op = start(f, client, &request, &silent);
  request = to(f, "GET", server.http, "/small");
  run(f, client, &request, &r);
  assert_ok(&r, 200);
  assert_int_equal(silent.done, 0);
  sbx_op_abort(op, SBX_ECANCELED);
  wait_for(f, &silent);
  drop(&silent);
  drop(&r);
  sbx_http_client_free(client);
}

/* How many connected TCP sockets a child process would get. */
static int inherited_sockets(void) {
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
  assert_int_equal(inherited_sockets(), 0);
  drop(&r);
}

static void test_unix_socket(void **state) {
  fixture *f = *state;
  reply r = {0};
  sbx_http_options options = {.unix_socket = sbx_slice_str(server.unix_path)};
  sbx_http_request request = {.method = "GET", .url = sbx_slice_str("http://docker/echo")};
  int64_t before = count(f, "connections", "unix");
  setenv("http_proxy", "http://127.0.0.1:1", 1); /* does not concern a unix socket */
  sbx_http_client *client = new_client(&options);
  run(f, client, &request, &r);
  unsetenv("http_proxy");
  assert_ok(&r, 200);
  assert_has(&r, "\"host\":\"docker\"");
  assert_int_equal(count(f, "connections", "unix"), before + 1);
  drop(&r);
  sbx_http_client_free(client);

  options.unix_socket = sbx_slice_str("/nonexistent/http.sock");
  client = new_client(&options);
  run(f, client, &request, &r);
  assert_error(&r, SBX_ENET, false, "unix socket");
  drop(&r);
  sbx_http_client_free(client);

  char longer[200];
  memset(longer, 'x', sizeof longer);
  options.unix_socket = sbx_slice_of(longer, sizeof longer);
  assert_int_equal(sbx_http_client_new(&client, &options, NULL), SBX_EINVAL);
}

/* ---- failing allocations ---- */

/* One exchange on a loop of its own, in which allocation number `nth` fails. */
static void one_exchange(size_t nth, bool form, bool *reached) {
  const sbx_http_part part = {.name = sbx_slice_str("a"), .content = sbx_slice_str("1")};
  const sbx_http_options options = {.no_proxy = true};
  fixture f = {0};
  reply r = {0};
  sbx_headers headers;
  size_t before = sbx_alloc_live();
  sbx_headers_init(&headers, 4096);
  sbx_headers_add(&headers, sbx_slice_str("X-Key"), sbx_slice_str("secret"), NULL);
  assert_int_equal(uv_loop_init(&f.uv), 0);
  sbx_http_request request = to(&f, "POST", server.http, "/echo");
  request.headers = &headers;
  request.body = sbx_slice_str("body");
  request.parts = &part;
  request.part_count = form ? 1 : 0;
  sbx_alloc_fail_at(nth, false);
  int code = sbx_loop_new(&f.loop, &f.uv, NULL);
  if (code == SBX_OK)
    code = sbx_http_client_new(&f.plain, &options, NULL);
  if (code == SBX_OK)
    code = start(&f, f.plain, &request, &r) != NULL ? SBX_OK : SBX_ENOMEM;
  if (code == SBX_OK) {
    wait_for(&f, &r);
    code = r.err.code;
  }
  *reached = sbx_alloc_failed();
  sbx_alloc_fail_at(0, false);
  assert_int_equal(code, *reached ? SBX_ENOMEM : SBX_OK);
  sbx_http_client_free(f.plain);
  if (f.loop != NULL)
    sbx_loop_close(f.loop, NULL, NULL);
  uv_run(&f.uv, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&f.uv), 0);
  sbx_headers_deinit(&headers);
  drop(&r);
  assert_int_equal(sbx_alloc_live(), before);
}

static void test_every_allocation_may_fail(void **state) {
  (void)state;
  for (int form = 0; form <= 1; form++) {
    bool reached = true;
    for (size_t n = 1; reached; n++) {
      assert_true(n < 200);
      one_exchange(n, form, &reached);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HTTP_TEST(test_total_deadline),
      HTTP_TEST(test_connect_deadline),
      HTTP_TEST(test_refused),
      HTTP_TEST(test_no_closed_descriptor_stays_watched),
      HTTP_TEST(test_cancel),
      HTTP_TEST(test_loop_ends_with_requests_in_flight),
      HTTP_TEST(test_client_may_be_freed_before_its_exchange),
      HTTP_TEST(test_clients_are_shared_by_their_options),
      HTTP_TEST(test_connections_are_kept),
      HTTP_TEST(test_at_most_once),
      HTTP_TEST(test_at_most_once_in_the_middle),
      HTTP_TEST(test_the_end_of_a_kept_connection),
      HTTP_TEST(test_many_at_a_time_beside_a_slow_one),
      HTTP_TEST(test_many_over_http2),
      HTTP_TEST(test_every_end_over_http2),
      HTTP_TEST(test_a_silent_service_holds_no_other_request),
      HTTP_TEST(test_sockets_are_not_inherited),
      HTTP_TEST(test_unix_socket),
      HTTP_TEST(test_every_allocation_may_fail),
  };
  clean_environment();
  return cmocka_run_group_tests(tests, http_group_setup, http_group_teardown);
}
