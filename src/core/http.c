/* http.c - one HTTP exchange: starts the transfer, takes the reply, ends as an operation.
 *
 * Invariant: the functions that libcurl calls only record; the op is finished from transfer_done()
 * or abort, both outside of libcurl, after everything was released. */
#include "core/http.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/http_int.h"

#include <string.h>

/* Of all heads of an answer, with those before the final one, and its trailer. */
#define HEADS_MAX (4 * SBX_HTTP_HEAD_MAX)
/* How often libcurl, each time for up to a hundred reads, may find none of an answer's bytes. */
enum { EMPTY_MAX = 16 };

static sbx__exchange *exchange_of(sbx_op *op) {
  return (sbx__exchange *)(void *)op;
}

/* ---- called by libcurl ---- */

int sbx__http_on_prereq(void *arg, char *remote_ip, char *local_ip, int remote_port,
                        int local_port) {
  sbx__exchange *x = arg;
  (void)remote_ip;
  (void)local_ip;
  (void)remote_port;
  (void)local_port;
  if (x->sent && !x->repeatable) {
    sbx_err_set(&x->failure, SBX_ENET,
                "%s %s: the connection was closed before an answer came; the request was not sent "
                "again because it may have been executed",
                x->method, x->target);
    return CURL_PREREQFUNC_ABORT;
  }
  x->sent = true;
  return CURL_PREREQFUNC_OK;
}

/* Ends the transfer from inside: what libcurl makes of it is then not looked at. */
static size_t refuse(sbx__exchange *x, int code) {
  if (x->failure.code == SBX_OK)
    sbx_err_set(&x->failure, code, NULL);
  return 0;
}

/* Whether the value of a field names a coding besides `plain`. */
static bool has_coding(sbx_slice value, const char *plain) {
  while (value.len > 0) {
    sbx_slice item = sbx_slice_of(value.ptr, sbx_slice_find(value, ','));
    value = sbx_slice_skip(value, item.len + 1);
    while (item.len > 0 && strchr(" \t", item.ptr[0]) != NULL)
      item = sbx_slice_skip(item, 1);
    while (item.len > 0 && strchr(" \t", item.ptr[item.len - 1]) != NULL)
      item.len--;
    if (item.len > 0 && !sbx_slice_eq_nocase(item, sbx_slice_str(plain)))
      return true;
  }
  return false;
}

/* A few bytes could expand to more than memory and time allow, so nothing is decoded, and no coding
 * is offered. libcurl would decode a transfer coding unasked. */
static int check_codings(sbx__exchange *x) {
  for (size_t i = 0; i < x->http.headers.count; i++) {
    const sbx_header *field = &x->http.headers.items[i];
    bool content = sbx_slice_eq_nocase(field->name, sbx_slice_str("content-encoding"));
    bool transfer = sbx_slice_eq_nocase(field->name, sbx_slice_str("transfer-encoding"));
    if (!(content && has_coding(field->value, "identity")) &&
        !(transfer && has_coding(field->value, "chunked")))
      continue;
    /* Of an error the status says enough. */
    x->unreadable = content && !sbx__http_is_success(x->http.status);
    if (x->unreadable)
      continue;
    sbx_err_set(&x->failure, SBX_EPROTO,
                "%s %s: the answer is compressed, which was not asked for (%s-Encoding: ",
                x->method, x->target, content ? "Content" : "Transfer");
    sbx_err_append_remote(&x->failure, field->value);
    sbx_err_append(&x->failure, ")");
    return SBX_EPROTO;
  }
  return SBX_OK;
}

static int end_of_head(sbx__exchange *x) {
  long status = 0;
  x->curl->easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
  if (status >= 100 && status < 200) /* the final head comes later */
    return SBX_OK;
  x->head_done = true;
  x->http.status = (int)status;
  int code = check_codings(x);
  if (code != SBX_OK || x->on_head == NULL)
    return code;
  return x->on_head(x->consumer, x->http.status, &x->http.headers, &x->failure);
}

/* libcurl reads on without a pause as long as something comes, be it nothing but the frames of
 * empty chunks: so often it comes here in one round. */
int sbx__http_on_progress(void *arg, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                          curl_off_t up) {
  sbx__exchange *x = arg;
  (void)down_total;
  (void)down;
  (void)up_total;
  (void)up;
  uint64_t round = sbx_transfer_round(&x->transfer);
  if (round != x->round)
    x->empty = 0;
  x->round = round;
  if (!x->head_done || ++x->empty < EMPTY_MAX)
    return 0;
  sbx_err_set(&x->failure, SBX_EPROTO, "%s %s: the answer goes on, and there is nothing in it",
              x->method, x->target);
  return 1;
}

size_t sbx__http_on_header(char *ptr, size_t size, size_t count, void *arg) {
  sbx__exchange *x = arg;
  sbx_slice line = sbx_slice_of(ptr, size * count);
  int code = SBX_OK;
  x->head_bytes += line.len;
  if (x->head_bytes > HEADS_MAX)
    return refuse(x, sbx_err_set(&x->failure, SBX_EPROTO, "%s %s: the answer is all heads",
                                 x->method, x->target));
  if (x->head_done && !x->keep_trailers)
    return line.len;
  while (line.len > 0 && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r'))
    line.len--;
  if (x->head_done)
    code = line.len > 0 ? sbx_headers_add_line(&x->http.trailers, line, &x->failure) : SBX_OK;
  else if (line.len == 0)
    code = end_of_head(x);
  else if (sbx_slice_starts_with(line, sbx_slice_str("HTTP/")))
    sbx_headers_deinit(&x->http.headers);
  else
    code = sbx_headers_add_line(&x->http.headers, line, &x->failure);
  return code == SBX_OK ? size * count : refuse(x, code);
}

/* The body of an error is cut; there the status matters. */
static int keep_error_body(sbx__exchange *x, sbx_slice bytes) {
  size_t room = x->unreadable ? 0 : SBX_HTTP_ERROR_BODY_MAX - x->http.body.len;
  if (bytes.len >= room) {
    bytes.len = room;
    x->enough = true;
  }
  return sbx_buf_append_slice(&x->http.body, bytes);
}

int sbx__http_take_body(sbx__exchange *x, sbx_slice bytes) {
  if (!sbx__http_is_success(x->http.status))
    return keep_error_body(x, bytes);
  if (bytes.len > x->max_bytes - x->received)
    return sbx_err_set(&x->failure, x->has_budget ? SBX_ETOOBIG : SBX_EPROTO,
                       "%s %s: the answer has more than %zu bytes", x->method, x->target,
                       x->max_bytes);
  x->received += bytes.len;
  if (x->on_bytes != NULL)
    return x->on_bytes(x->consumer, bytes, &x->failure);
  return sbx_buf_append_slice(&x->http.body, bytes);
}

size_t sbx__http_on_write(char *ptr, size_t size, size_t count, void *arg) {
  sbx__exchange *x = arg;
  x->empty = 0;
  if (sbx_transfer_pause(&x->transfer))
    return CURL_WRITEFUNC_PAUSE;
  int code = sbx__http_take_body(x, sbx_slice_of(ptr, size * count));
  if (code != SBX_OK)
    return refuse(x, code);
  return x->enough ? 0 : size * count;
}

/* ---- the operation ---- */

static void release(sbx__exchange *x) {
  sbx__http_upgrade_free(x->upgrade); /* it watches the transfer's connection */
  x->upgrade = NULL;
  sbx_transfer_stop(&x->transfer, x->http.op.loop);
  /* An old library does not tell when it sends: then it may have. */
  x->http.sent_maybe = x->http.sent_maybe || x->sent;
  sbx__http_teardown(x);
  if (x->client != NULL)
    sbx__http_client_drop(x->client);
  x->client = NULL;
}

void sbx__http_done(sbx__exchange *x, CURLcode result) {
  sbx_err err;
  int code = SBX_OK;
  sbx_err_clear(&err);
  if (result != CURLE_OK && !(x->enough && x->failure.code == SBX_OK))
    code = sbx__http_transfer_error(x, result, &err);
  else if (!x->head_done)
    code = sbx_err_set(&err, SBX_ENET, "%s %s: the answer ended inside its head", x->method,
                       x->target);
  if (!sbx__http_is_success(x->http.status))
    sbx__http_hide_credentials(x);
  if (!x->watched)
    x->http.sent_maybe = result != CURLE_COULDNT_RESOLVE_HOST && result != CURLE_COULDNT_CONNECT &&
                         result != CURLE_COULDNT_RESOLVE_PROXY && code != SBX_ETLS;
  if (result == CURLE_COULDNT_CONNECT) {
    long os_error = 0;
    x->curl->easy_getinfo(x->easy, CURLINFO_OS_ERRNO, &os_error);
    x->http.os_error = (int)os_error;
  }
  release(x);
  sbx_op_finish(&x->http.op, code == SBX_OK ? NULL : &err);
}

/* Whether a kept connection was closed while the body was sent. libcurl sends a request again by
 * itself when it finds such a connection closed, but not in the midst of a body (7.88 to 8.x). */
static bool was_cut_off(const sbx__exchange *x, CURLcode result) {
  long made = 1;
  return (result == CURLE_SEND_ERROR || result == CURLE_RECV_ERROR) && x->repeatable &&
         !x->resent && x->upgrade == NULL && x->head_bytes == 0 && x->failure.code == SBX_OK &&
         x->curl->easy_getinfo(x->easy, CURLINFO_NUM_CONNECTS, &made) == CURLE_OK && made == 0;
}

static void transfer_done(sbx_transfer *transfer, CURLcode result);

/* Sends it once more, on a connection of its own; the deadline stays. */
static void send_again(sbx__exchange *x, CURLcode result) {
  sbx_err err;
  x->resent = true;
  x->curl->easy_setopt(x->easy, CURLOPT_FRESH_CONNECT, 1L);
  if (sbx_transfer_start(&x->transfer, x->http.op.loop, x->easy, transfer_done, &err) != SBX_OK)
    sbx__http_done(x, result);
}

static void transfer_done(sbx_transfer *transfer, CURLcode result) {
  sbx__exchange *x =
      (sbx__exchange *)(void *)((char *)transfer - offsetof(sbx__exchange, transfer));
  if (x->upgrade != NULL && result == CURLE_OK)
    sbx__http_upgrade_begin(x);
  else if (was_cut_off(x, result))
    send_again(x, result);
  else
    sbx__http_done(x, result);
}

static void abort_exchange(sbx_op *op, int reason) {
  sbx__exchange *x = exchange_of(op);
  sbx_err err;
  const char *target = x->target != NULL ? x->target : "";
  unsigned long long limit = (unsigned long long)x->timeout_ms;
  if (reason == SBX_ETIMEOUT && x->watched && !x->sent)
    sbx_err_set(&err, reason, "%s %s: no connection within %llu ms", x->method, target, limit);
  else if (reason == SBX_ETIMEOUT)
    sbx_err_set(&err, reason, "%s %s: no complete answer within %llu ms", x->method, target, limit);
  else
    sbx_err_set(&err, reason, "%s %s: %s", x->method, target,
                reason == SBX_ECLOSED ? "the event loop is closing" : "cancelled");
  if (x->transfer.active && !x->watched)
    x->http.sent_maybe = true;
  release(x);
  sbx_op_finish(op, &err);
}

static void destroy_exchange(sbx_op *op) {
  sbx__exchange *x = exchange_of(op);
  sbx_headers_deinit(&x->http.headers);
  sbx_headers_deinit(&x->http.trailers);
  sbx_buf_deinit(&x->http.body);
  sbx_free(x->target);
  sbx_free(x);
}

static const sbx_op_class exchange_class = {"http", abort_exchange, destroy_exchange};

static int take_request_body(sbx__exchange *x, const sbx_http_request *request) {
  if (request->take_body != NULL) {
    x->body = sbx_buf_take(request->take_body, &x->body_len);
    return SBX_OK;
  }
  if (request->body.len == 0)
    return SBX_OK;
  x->body = sbx_strndup(request->body.ptr, request->body.len);
  x->body_len = request->body.len;
  return x->body != NULL ? SBX_OK : SBX_ENOMEM;
}

static void copy_settings(sbx__exchange *x, const sbx_http_request *request) {
  size_t sent = request->take_body != NULL ? request->take_body->len : request->body.len;
  size_t sensible = SBX_HTTP_REPLY_MAX + 2 * sent;
  size_t unlimited = request->on_bytes != NULL ? SIZE_MAX : sensible;
  x->method = request->method;
  x->repeatable = request->repeatable;
  x->timeout_ms = request->timeout_ms != 0 ? request->timeout_ms : SBX_HTTP_TIMEOUT_MS_DEFAULT;
  x->connect_ms = request->connect_ms != 0 ? request->connect_ms : SBX_HTTP_CONNECT_MS_DEFAULT;
  x->has_budget = request->max_bytes != 0;
  x->max_bytes = request->max_bytes != 0 ? request->max_bytes : unlimited;
  x->on_head = request->on_head;
  x->on_bytes = request->on_bytes;
  x->consumer = request->consumer;
  x->keep_trailers = request->keep_trailers;
  sbx_headers_init(&x->http.headers, SBX_HTTP_HEAD_MAX);
  sbx_headers_init(&x->http.trailers, SBX_HTTP_HEAD_MAX);
  /* The body of an error may be larger than what is asked of a success. */
  size_t most = x->max_bytes > SBX_HTTP_ERROR_BODY_MAX ? x->max_bytes : SBX_HTTP_ERROR_BODY_MAX;
  sbx_buf_init(&x->http.body, most);
}

sbx_op *sbx_http_start(sbx_http_client *client, sbx_loop *loop, const sbx_http_request *request,
                       sbx_op_done done, void *arg) {
  sbx__exchange *x = sbx_calloc(1, sizeof *x);
  if (x == NULL)
    return NULL;
  sbx_op *op = &x->http.op;
  copy_settings(x, request);
  x->client = client;
  sbx__http_client_use(client);
  sbx_op_init(op, &exchange_class, loop, done, arg);
  if (sbx_loop_is_closing(loop)) /* its abort is queued */
    return op;
  sbx_err err;
  int code = take_request_body(x, request);
  if (code != SBX_OK)
    sbx_err_set(&err, code, NULL);
  if (code == SBX_OK)
    code = sbx__http_setup(x, request, &err);
  x->transfer.stays = x->upgrade != NULL;
  if (code == SBX_OK)
    code = sbx_transfer_start(&x->transfer, loop, x->easy, transfer_done, &err);
  if (code != SBX_OK) {
    release(x);
    sbx_op_finish(op, &err);
    return op;
  }
  sbx_op_set_deadline(op, x->timeout_ms);
  return op;
}
