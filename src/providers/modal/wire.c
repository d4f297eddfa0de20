/* wire.c - one gRPC call over HTTP/2, and what its refusals mean. */
#include "providers/modal/wire.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/err.h"
#include "core/json.h"

#include <limits.h>
#include <string.h>
#include <time.h>

#define CONTROL "/modal.client.ModalClient/"
#define ROUTER "/modal.task_command_router.TaskCommandRouter/"

enum { MAX_URL = 16 * 1024, MAX_HEADERS = 64 * 1024, MAX_TEXT = 4096, MAX_WAIT_S = 3600 };

/* ---- request -------------------------------------------------------------------------------- */

static int put_field(sbx_headers *headers, const char *name, const char *value, sbx_err *err) {
  return value == NULL ? SBX_OK
                       : sbx_headers_add(headers, sbx_slice_str(name), sbx_slice_str(value), err);
}

static int fill_headers(sbx_headers *headers, const sbx_session *session,
                        const sbx__modal_call *call, sbx_err *err) {
  const sbx_headers *given = &session->config->headers;
  int rc = put_field(headers, "te", "trailers", err);
  if (rc == SBX_OK)
    rc = put_field(headers, "grpc-accept-encoding", "identity", err);
  if (call->plane == SBX__MODAL_ROUTER)
    return rc == SBX_OK ? put_field(headers, "authorization", session->router_secret, err) : rc;
  for (size_t i = 0; i < given->count && rc == SBX_OK; i++)
    rc = sbx_headers_add(headers, given->items[i].name, given->items[i].value, err);
  if (rc == SBX_OK && !call->bare)
    rc = put_field(headers, "x-modal-auth-token", session->auth, err);
  return rc == SBX_OK ? put_field(headers, "x-idempotency-key", call->key, err) : rc;
}

static int fill_body(sbx_buf *body, const sbx__modal_call *call) {
  sbx_slice message = sbx_buf_slice(call->message);
  sbx_buf_init(body, SIZE_MAX / 2);
  sbx_buf_reserve(body, message.len + 5);
  sbx_envelope_append(body, 0, message);
  if (call->message->error != SBX_OK)
    body->error = call->message->error;
  return body->error;
}

int sbx__modal_start(sbx_op **op, const sbx_session *session, const sbx__modal_call *call,
                     sbx_op_done done, void *arg, sbx_err *err) {
  const sbx_config *config = session->config;
  bool router = call->plane == SBX__MODAL_ROUTER;
  sbx_buf url, body;
  sbx_headers headers;
  sbx_buf_init(&url, MAX_URL);
  sbx_buf_append_str(&url, router ? session->router_url : config->server_url);
  sbx_buf_append_str(&url, router ? ROUTER : CONTROL);
  sbx_buf_append_str(&url, call->method);
  sbx_headers_init(&headers, MAX_HEADERS);
  int rc = fill_body(&body, call);
  if (rc == SBX_OK)
    rc = url.error;
  rc = rc == SBX_OK ? fill_headers(&headers, session, call, err) : sbx_err_set(err, rc, NULL);
  const sbx_http_request request = {
      .method = "POST",
      .url = sbx_buf_slice(&url),
      .headers = &headers,
      .content_type = "application/grpc",
      .take_body = &body,
      .repeatable = call->repeatable,
      .timeout_ms = call->timeout_ms != 0 ? call->timeout_ms : SBX_NO_TIMEOUT,
      .on_bytes = call->on_bytes,
      .consumer = call->consumer,
      .keep_trailers = true,
  };
  *op = rc == SBX_OK ? sbx_http_start(config->http, config->loop, &request, done, arg) : NULL;
  if (rc == SBX_OK && *op == NULL)
    rc = sbx_err_set(err, SBX_ENOMEM, NULL);
  sbx_headers_deinit(&headers);
  sbx_buf_deinit(&url);
  sbx_buf_deinit(&body);
  return rc;
}

static void on_sent(sbx_op *op, void *arg) {
  sbx_steps *steps = arg;
  sbx_steps_reply on_reply = steps->on_reply;
  steps->request = NULL;
  on_reply(steps, sbx_http_of(op));
}

void sbx__modal_send(sbx_steps *steps, const sbx__modal_call *call, sbx_steps_reply on_reply) {
  sbx_err err;
  sbx_op *op;
  steps->on_reply = on_reply;
  if (sbx__modal_start(&op, steps->session, call, on_sent, steps, &err) == SBX_OK)
    sbx_steps_wait_for(steps, op);
  else
    sbx_steps_finish(steps, &err);
}

/* ---- what came behind the answer ------------------------------------------------------------ */

/* In trailers, or with a refusal in the only head. */
static bool field_of(const sbx_http *reply, const char *name, sbx_slice *value) {
  return sbx_headers_get(&reply->trailers, name, value) ||
         sbx_headers_get(&reply->headers, name, value);
}

/* -1: there is no status, or none that is a number. */
static int status_of(const sbx_http *reply) {
  sbx_slice text;
  int status = 0;
  if (!field_of(reply, "grpc-status", &text) || text.len == 0 || text.len > 3)
    return -1;
  for (size_t i = 0; i < text.len; i++) {
    if (!sbx_is_digit(text.ptr[i]))
      return -1;
    status = status * 10 + (text.ptr[i] - '0');
  }
  return status;
}

/* The wait of an RPCRetryPolicy among the details of the status; 0: none. */
static uint64_t asked_wait(sbx_slice status) {
  static const char policy[] = "/modal.client.RPCRetryPolicy";
  sbx_pb_field field, seconds;
  while (sbx_pb_next(&status, &field)) {
    sbx_slice type, value;
    if (field.number != 3 || field.type != SBX_PB_BYTES ||
        sbx_pb_get_bytes(field.bytes, 1, &type) != SBX_OK ||
        sbx_pb_get_bytes(field.bytes, 2, &value) != SBX_OK || type.len < sizeof policy - 1 ||
        !sbx_slice_eq_str(sbx_slice_skip(type, type.len - (sizeof policy - 1)), policy) ||
        sbx_pb_find(value, 1, SBX_PB_FIXED32, &seconds) != SBX_OK)
      continue;
    float wait = sbx_pb_float(seconds.value);
    return wait > 0 && wait <= MAX_WAIT_S ? (uint64_t)(wait * 1000) + 1 : 0;
  }
  return 0;
}

static uint64_t retry_after(const sbx_http *reply) {
  sbx_slice text;
  sbx_buf details;
  if (!field_of(reply, "grpc-status-details-bin", &text))
    return 0;
  sbx_buf_init(&details, MAX_HEADERS);
  uint64_t ms =
      sbx_base64_decode(&details, text) == SBX_OK ? asked_wait(sbx_buf_slice(&details)) : 0;
  sbx_buf_deinit(&details);
  return ms;
}

/* ---- refusals ------------------------------------------------------------------------------- */

typedef struct meaning {
  const char *name;
  int control, router; /* codes */
  int status;          /* of HTTP that says the same */
  bool no_effect;
} meaning;

/* By the number of the status. In the router what is not there, or not in the right state, leads to
 * a look at the sandbox. */
static const meaning meanings[] = {
    {"OK", SBX_OK, SBX_OK, 200, false},
    {"CANCELLED", SBX_EPROVIDER, SBX_EPROVIDER, 499, false},
    {"UNKNOWN", SBX_EPROVIDER, SBX_EPROVIDER, 500, false},
    {"INVALID_ARGUMENT", SBX_EINVAL, SBX_EINVAL, 400, true},
    {"DEADLINE_EXCEEDED", SBX_ETIMEOUT, SBX_ETIMEOUT, 504, false},
    {"NOT_FOUND", SBX_ENOTFOUND, SBX_ECONFLICT, 404, true},
    {"ALREADY_EXISTS", SBX_EINVAL, SBX_ECONFLICT, 409, true},
    {"PERMISSION_DENIED", SBX_EFORBIDDEN, SBX_EFORBIDDEN, 403, true},
    {"RESOURCE_EXHAUSTED", SBX_EQUOTA, SBX_EQUOTA, 429, true},
    {"FAILED_PRECONDITION", SBX_EINVAL, SBX_ECONFLICT, 400, true},
    {"ABORTED", SBX_ECONFLICT, SBX_ECONFLICT, 409, true},
    {"OUT_OF_RANGE", SBX_EINVAL, SBX_EINVAL, 400, true},
    {"UNIMPLEMENTED", SBX_EUNSUPPORTED, SBX_EUNSUPPORTED, 501, true},
    {"INTERNAL", SBX_EPROVIDER, SBX_EPROVIDER, 500, false},
    {"UNAVAILABLE", SBX_EPROVIDER, SBX_EPROVIDER, 503, false},
    {"DATA_LOSS", SBX_EPROVIDER, SBX_EPROVIDER, 500, false},
    {"UNAUTHENTICATED", SBX_EAUTH, SBX_EAUTH, 401, true},
};

enum { RESOURCE_EXHAUSTED = 8, UNAUTHENTICATED = 16 };

int sbx__modal_strange(sbx_err *err, const char *verb, const char *what) {
  sbx_err_set(err, SBX_EPROTO, "modal: %s: %s", verb, what);
  err->provider = "modal";
  return SBX_EPROTO;
}

static int refuse(sbx_err *err, sbx__modal_plane plane, const sbx_http *reply, int number,
                  const char *verb) {
  const meaning *m = &meanings[number];
  sbx_slice text;
  sbx_buf words;
  sbx_buf_init(&words, MAX_TEXT);
  bool said = field_of(reply, "grpc-message", &text);
  if (said && sbx_percent_decode(&words, text) != SBX_OK) {
    sbx_buf_deinit(&words);
    sbx_buf_append_slice(&words, text);
  }
  sbx_err_set(err, plane == SBX__MODAL_CONTROL ? m->control : m->router, "modal: %s: %s", verb,
              m->name);
  if (said) {
    sbx_err_append(err, ": ");
    sbx_err_append_remote(err, sbx_buf_slice(&words));
  }
  if (number == UNAUTHENTICATED && plane == SBX__MODAL_CONTROL)
    sbx_err_append(err, "; is the token right and still valid? It is `tokenId` and `tokenSecret`, "
                        "or MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, or in ~/.modal.toml");
  sbx_buf_deinit(&words);
  err->retry_after_ms = retry_after(reply);
  if (number == RESOURCE_EXHAUSTED && err->retry_after_ms > 0)
    err->code = SBX_ERATE;
  err->no_effect = m->no_effect;
  err->status = m->status;
  err->provider = "modal";
  return err->code;
}

/* Somebody has answered who does not speak gRPC, or stands before it. */
static int refuse_http(sbx_err *err, const sbx_http *reply, const char *verb) {
  sbx_http_status_error(err, "modal", verb, reply->status, sbx_buf_slice(&reply->body));
  if (reply->status == 404) {
    err->code = SBX_EPROTO;
    sbx_err_append(err, "; is this the address of Modal's API?");
  }
  err->no_effect = reply->status >= 400 && reply->status < 500 && reply->status != 408;
  return err->code;
}

int sbx__modal_check(sbx_err *err, sbx__modal_plane plane, const sbx_http *reply,
                     const char *verb) {
  int number = status_of(reply);
  /* A status that has come counts, also when the connection broke behind it. */
  if (number > 0 && (size_t)number < sizeof meanings / sizeof *meanings)
    return refuse(err, plane, reply, number, verb);
  if (reply->op.err.code != SBX_OK) {
    sbx_err_set(err, reply->op.err.code, "modal: %s: %s", verb, reply->op.err.message);
    err->provider = "modal";
    err->no_effect = !reply->sent_maybe;
    return err->code;
  }
  if (reply->status != 200)
    return refuse_http(err, reply, verb);
  if (number == 0)
    return SBX_OK;
  if (number > 0)
    return sbx__modal_strange(err, verb, "the answer has a status that is not known");
  sbx_err_set(err, SBX_ENET, "modal: %s: the answer was cut off: it ended without a status", verb);
  err->provider = "modal";
  return SBX_ENET;
}

/* ---- one message ---------------------------------------------------------------------------- */

static int on_message(void *arg, bool is_end, sbx_slice payload, sbx_err *err) {
  sbx_slice *message = arg;
  (void)is_end;
  if (message->ptr != NULL)
    return sbx_err_set(err, SBX_EPROTO, "the answer has more than one message");
  *message = payload.ptr != NULL ? payload : sbx_slice_of("", 0);
  return SBX_OK;
}

int sbx__modal_message(sbx_slice *message, sbx__modal_plane plane, const sbx_http *reply,
                       const char *verb, sbx_err *err) {
  sbx_envelope decoder;
  sbx_err why;
  *message = sbx_slice_of(NULL, 0);
  int rc = sbx__modal_check(err, plane, reply, verb);
  if (rc != SBX_OK)
    return rc;
  sbx_envelope_init_plain(&decoder, SBX__MODAL_MESSAGE_MAX, on_message, message);
  /* Fed as a whole, so that the message is a part of the body. */
  rc = sbx_envelope_feed(&decoder, sbx_buf_slice(&reply->body), &why);
  if (rc == SBX_OK)
    rc = sbx_envelope_finish(&decoder, &why);
  sbx_envelope_deinit(&decoder);
  if (rc != SBX_OK)
    return sbx__modal_strange(err, verb, why.message);
  return message->ptr != NULL ? SBX_OK : sbx__modal_strange(err, verb, "the answer has no message");
}

/* ---- tokens --------------------------------------------------------------------------------- */

static int64_t expiry_of(sbx_slice jwt) {
  sbx_json_doc *doc = NULL;
  sbx_buf text, json;
  int64_t expiry = 0;
  sbx_slice rest = sbx_slice_skip(jwt, sbx_slice_find(jwt, '.') + 1);
  rest.len = sbx_slice_find(rest, '.');
  sbx_buf_init(&text, MAX_HEADERS);
  sbx_buf_init(&json, MAX_HEADERS);
  for (size_t i = 0; i < rest.len; i++) {
    char c = rest.ptr[i];
    sbx_buf_append_char(&text, (char)(c == '-' ? '+' : (c == '_' ? '/' : c)));
  }
  if (text.error == SBX_OK && sbx_base64_decode(&json, sbx_buf_slice(&text)) == SBX_OK &&
      sbx_json_parse(&doc, sbx_buf_slice(&json), NULL) == SBX_OK)
    sbx_json_int(sbx_json_get(sbx_json_root(doc), "exp"), 0, INT64_MAX / 1000, &expiry);
  sbx_json_free(doc, true);
  sbx_buf_deinit(&text);
  sbx_buf_deinit(&json);
  return expiry;
}

uint64_t sbx__modal_jwt_until(sbx_slice jwt, uint64_t fallback_ms) {
  int64_t left_s = expiry_of(jwt);
  if (left_s > 0)
    left_s -= (int64_t)time(NULL);
  else
    return sbx_now_ms() + fallback_ms;
  return left_s > 0 ? sbx_now_ms() + (uint64_t)left_s * 1000 : 0;
}
