/* http_upgrade.c - an exchange whose connection is given over to another protocol.
 *
 * libcurl connects, with all that belongs to it: proxy, TLS, unix sockets. From then on request and
 * answer are written and read here, piece by piece, as the connection takes and brings them.
 *
 * Invariants: the connection's descriptor is watched here only while libcurl has it open. What came
 * is handed on once, from the loop; after sbx__http_done() nothing of the exchange is touched. */
#include "core/http_int.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/head.h"

#include <sys/socket.h>

enum { PIECE = 32 * 1024 };

struct sbx__upgrade {
  sbx__exchange *x;
  sbx_buf request; /* its head and its body */
  sbx_slice input;
  size_t sent; /* of both, one after the other */
  bool shut;   /* nothing more is to be sent */
  bool https;
  bool ends_input;
  sbx_head head;
  size_t left; /* of the body of a refusal */
  curl_socket_t fd;
  sbx_watch *watch;
  int events; /* what is watched for */
  sbx_timer
      turn; /* TLS holds what has come in its own buffers: nothing shows it at the descriptor */
};

void sbx__http_upgrade_free(sbx__upgrade *u) {
  if (u == NULL)
    return;
  sbx_watch_stop(u->watch);
  sbx_timer_stop(&u->turn);
  if (u->request.ptr != NULL)
    sbx_wipe(u->request.ptr, u->request.len);
  sbx_buf_deinit(&u->request);
  sbx_head_deinit(&u->head);
  sbx_free(u);
}

/* ---- the request ---------------------------------------------------------------------------- */

static void put(sbx_buf *out, const char *before, sbx_slice text, const char *after) {
  sbx_buf_append_str(out, before);
  sbx_buf_append_slice(out, text);
  sbx_buf_append_str(out, after);
}

static void write_request(sbx_buf *out, const sbx__exchange *x, const sbx_http_request *request,
                          const sbx_url *url) {
  const sbx_headers *fields = request->headers;
  put(out, request->method, sbx_slice_of(" ", 1), "");
  put(out, url->path.len > 0 ? "" : "/", url->path, url->query.len > 0 ? "?" : "");
  put(out, "", url->query, " HTTP/1.1\r\nHost: ");
  put(out, url->ipv6 ? "[" : "", url->host, url->ipv6 ? "]" : "");
  sbx_buf_appendf(out, ":%u\r\nUser-Agent: cloudsandbox\r\n", (unsigned)url->port);
  for (size_t i = 0; fields != NULL && i < fields->count; i++) {
    put(out, "", fields->items[i].name, ": ");
    put(out, "", fields->items[i].value, "\r\n");
  }
  sbx_buf_appendf(out, "Connection: Upgrade\r\nUpgrade: %s\r\nContent-Length: %zu\r\n\r\n",
                  request->upgrade, x->body_len);
  sbx_buf_append(out, x->body != NULL ? x->body : "", x->body_len);
}

static void on_turn(sbx_timer *timer);

int sbx__http_upgrade_make(sbx__exchange *x, const sbx_http_request *request, const sbx_url *url,
                           sbx_err *err) {
  int rc = sbx__http_check_fields(request->headers, err);
  if (rc != SBX_OK)
    return rc;
  sbx__upgrade *u = sbx_calloc(1, sizeof *u);
  if (u == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  x->upgrade = u;
  u->x = x;
  u->input = request->input;
  u->ends_input = request->end_input;
  u->https = url->https;
  sbx_head_init(&u->head, SBX_HTTP_HEAD_MAX);
  sbx_timer_init(&u->turn, x->http.op.loop, on_turn);
  sbx_buf_init(&u->request, SIZE_MAX / 2);
  write_request(&u->request, x, request, url);
  return u->request.error == SBX_OK ? SBX_OK : sbx_err_set(err, u->request.error, NULL);
}

/* ---- sending -------------------------------------------------------------------------------- */

static sbx_slice unsent(const sbx__upgrade *u) {
  if (u->sent < u->request.len)
    return sbx_slice_skip(sbx_buf_slice(&u->request), u->sent);
  return sbx_slice_skip(u->input, u->sent - u->request.len);
}

/* The other side sees the end of what is sent. */
static void shut(sbx__upgrade *u) {
  u->shut = true;
  if (u->ends_input && !u->https)
    shutdown(u->fd, SHUT_WR);
}

/* A side that has closed may have said before why: what goes wrong here shows while reading, or is
 * of no matter. */
static void send_more(sbx__upgrade *u) {
  const sbx_curl *curl = u->x->curl;
  sbx_slice rest = unsent(u);
  /* Nothing is given to a side that has not taken the connection over yet. */
  while (!u->shut && rest.len > 0 && (u->sent < u->request.len || u->head.done)) {
    size_t n = 0;
    if (sbx_loop_is_spent(u->x->http.op.loop))
      return;
    CURLcode rc = curl->easy_send(u->x->easy, rest.ptr, rest.len, &n);
    if (rc == CURLE_AGAIN)
      return;
    u->x->sent = true;
    u->shut = rc != CURLE_OK;
    u->sent += n;
    rest = unsent(u);
  }
  if (!u->shut && rest.len == 0 && u->head.done)
    shut(u);
}

/* ---- receiving ------------------------------------------------------------------------------ */

/* How long the body of a refusal is; the connection may stay open behind it. */
static size_t body_length(const sbx_headers *headers) {
  sbx_slice text;
  size_t length = 0;
  if (!sbx_headers_get(headers, "content-length", &text))
    return sbx_headers_get(headers, "transfer-encoding", &text) ? 0 : SIZE_MAX;
  for (size_t i = 0; i < text.len && sbx_is_digit(text.ptr[i]); i++) {
    if (length <= SBX_HTTP_ERROR_BODY_MAX)
      length = length * 10 + (size_t)(text.ptr[i] - '0');
  }
  return length;
}

static int take_head(sbx__upgrade *u, sbx_slice *bytes) {
  sbx__exchange *x = u->x;
  size_t used;
  sbx_err why;
  int rc = sbx_head_feed(&u->head, *bytes, &used, &why);
  *bytes = sbx_slice_skip(*bytes, used);
  if (rc != SBX_OK)
    return sbx_err_set(&x->failure, rc, "%s %s: %s", x->method, x->target, why.message);
  if (!u->head.done)
    return SBX_OK;
  x->head_done = true;
  x->http.headers = u->head.headers;
  sbx_headers_init(&u->head.headers, SBX_HTTP_HEAD_MAX);
  /* What follows is the connection's own. */
  x->http.status = u->head.status == 101 ? 200 : u->head.status;
  if (!sbx__http_is_success(x->http.status)) {
    u->shut = true;
    u->left = body_length(&x->http.headers);
  }
  return x->on_head != NULL ? x->on_head(x->consumer, x->http.status, &x->http.headers, &x->failure)
                            : SBX_OK;
}

static int take(sbx__upgrade *u, sbx_slice bytes) {
  int rc = u->head.done ? SBX_OK : take_head(u, &bytes);
  if (rc == SBX_OK && u->head.done && !sbx__http_is_success(u->x->http.status)) {
    if (bytes.len > u->left)
      bytes.len = u->left;
    u->left -= bytes.len;
    u->x->enough = u->left == 0;
  }
  return rc == SBX_OK && bytes.len > 0 ? sbx__http_take_body(u->x, bytes) : rc;
}

typedef enum progress { WAITS, SPENT, OVER } progress;

static progress receive(sbx__upgrade *u, CURLcode *result) {
  sbx__exchange *x = u->x;
  char piece[PIECE];
  while (!sbx_loop_is_spent(x->http.op.loop)) {
    size_t n = 0;
    *result = x->curl->easy_recv(x->easy, piece, sizeof piece, &n);
    if (*result == CURLE_AGAIN)
      return WAITS;
    if (*result != CURLE_OK || n == 0)
      return OVER;
    int rc = take(u, sbx_slice_of(piece, n));
    if (rc != SBX_OK && x->failure.code == SBX_OK)
      sbx_err_set(&x->failure, rc, NULL);
    if (rc != SBX_OK || x->enough || x->http.op.finished) {
      *result = rc != SBX_OK ? CURLE_WRITE_ERROR : CURLE_OK;
      return OVER;
    }
  }
  return SPENT;
}

/* ---- the connection ------------------------------------------------------------------------- */

static void watch_for(sbx__upgrade *u, int events) {
  if (u->events != events)
    sbx_watch_set(u->watch, events);
  u->events = events;
}

static void go_on(sbx__upgrade *u) {
  sbx__exchange *x = u->x;
  CURLcode result = CURLE_OK;
  send_more(u);
  progress came = receive(u, &result);
  if (came == OVER) {
    if (!x->http.op.finished)
      sbx__http_done(x, result);
    return;
  }
  send_more(u); /* the head may have come */
  bool waits_to_send = !u->shut && (u->sent < u->request.len || u->head.done);
  watch_for(u, SBX_READABLE | (waits_to_send ? SBX_WRITABLE : 0));
  /* Not at once: without a delay it would come again in the same turn, whose share is used up. */
  if (came == SPENT && u->https)
    sbx_timer_start(&u->turn, 1);
}

static void on_turn(sbx_timer *timer) {
  go_on((sbx__upgrade *)(void *)((char *)timer - offsetof(sbx__upgrade, turn)));
}

/* An error of the descriptor shows while reading. */
static void on_event(void *arg, int events) {
  sbx__upgrade *u = arg;
  if (events & SBX_FAILED)
    u->events = 0;
  if (!u->turn.armed)
    go_on(u);
}

void sbx__http_upgrade_begin(sbx__exchange *x) {
  sbx__upgrade *u = x->upgrade;
  if (x->curl->easy_getinfo(x->easy, CURLINFO_ACTIVESOCKET, &u->fd) != CURLE_OK ||
      u->fd == CURL_SOCKET_BAD) {
    sbx__http_done(x, CURLE_COULDNT_CONNECT);
    return;
  }
  u->events = SBX_READABLE | SBX_WRITABLE;
  if (sbx_watch_start(&u->watch, x->http.op.loop, u->fd, u->events, on_event, u, &x->failure) !=
      SBX_OK) {
    sbx__http_done(x, CURLE_OUT_OF_MEMORY);
    return;
  }
  go_on(u);
}
