/* call.c - one signed request: its keys, its signature, and the service's clock.
 *
 *   keys that are too old: ask for others -> sign and send -> refused, and the clocks differ:
 *   sign and send once more, by the service's clock
 *
 * It is an operation of its own beneath the one that sends, so that a request can wait for its keys
 * whoever it belongs to. A refusal of a signature says that nothing was done, so also what runs a
 * command is sent again then. */
#include "providers/agentcore/call.h"

#include "core/err.h"
#include "providers/agentcore/sigv4.h"
#include "providers/remote/exchange.h"

#include <stdlib.h>
#include <time.h>

#define SERVICE "bedrock-agentcore"

/* The service takes five minutes; what is less is not the reason. */
enum { MOST_SKEW_S = 240, MAX_BODY = 1 << 30 };

typedef struct call_op {
  sbx_steps steps;
  sbx_steps *parent;
  sbx_steps_reply on_reply; /* the parent's */
  sbx_buf url, body;
  sbx_http_request request;
  bool corrected; /* it was sent once more, by the service's clock */
} call_op;

static call_op *call_of(sbx_steps *steps) {
  return (call_op *)(void *)steps;
}

static void release(sbx_steps *steps) {
  sbx_buf_deinit(&call_of(steps)->url);
  sbx_buf_deinit(&call_of(steps)->body);
}

/* It ended without a reply. */
static void on_done(sbx_op *op, void *arg) {
  sbx_steps *parent = arg;
  sbx_http none = {.op = {.err = op->err}};
  parent->request = NULL;
  call_of((sbx_steps *)(void *)op)->on_reply(parent, &none);
}

static void hand_over(call_op *call, sbx_http *reply) {
  sbx_steps *parent = call->parent;
  parent->request = NULL;
  sbx_op_disown(&call->steps.op);
  sbx_steps_finish(&call->steps, NULL);
  call->on_reply(parent, reply);
}

/* ---- the request ---------------------------------------------------------------------------- */

static sbx_slice text_of(const char *text) {
  return text != NULL ? sbx_slice_str(text) : sbx_slice_of(NULL, 0);
}

static int sign(void *arg, const sbx_http_request *request, sbx_headers *headers, sbx_err *err) {
  sbx_config *config = arg;
  const sbx__sigv4 how = {
      .id = text_of(config->keys.id),
      .secret = text_of(config->keys.secret),
      .token = text_of(config->keys.token),
      .region = sbx_slice_str(config->region),
      .service = sbx_slice_str(SERVICE),
      .now = (int64_t)time(NULL) + config->skew,
      .alike = &config->alike,
  };
  return sbx__sigv4_sign(&how, request, headers, err);
}

static void on_replied(sbx_steps *steps, sbx_http *reply);

static void send_it(call_op *call) {
  sbx_config *config = call->steps.session->config;
  const sbx_remote_signer signer = {sign, config};
  sbx_buf url;
  sbx_buf_init(&url, SBX__AC_URL_MAX);
  sbx_buf_append_slice(&url, sbx_buf_slice(&call->url));
  call->request.body = sbx_buf_slice(&call->body);
  sbx_remote_exchange_send(&call->steps, config->http, &url, &call->request, &signer, on_replied);
}

/* Whether the service's clock is another than the one that was signed with. */
static bool is_out_of_time(const sbx_config *config, const sbx_http *reply, int64_t *skew) {
  sbx_slice date;
  uint64_t ms;
  bool refused = reply->op.err.code == SBX_OK &&
                 (reply->status == 400 || reply->status == 401 || reply->status == 403);
  if (!refused || !sbx_headers_get(&reply->headers, "date", &date) ||
      !sbx_retry_after(date, 0, &ms))
    return false;
  *skew = (int64_t)(ms / 1000) - (int64_t)time(NULL);
  return llabs(*skew - config->skew) > MOST_SKEW_S;
}

static void on_replied(sbx_steps *steps, sbx_http *reply) {
  call_op *call = call_of(steps);
  sbx_config *config = steps->session->config;
  int64_t skew;
  if (!call->corrected && is_out_of_time(config, reply, &skew)) {
    call->corrected = true;
    config->skew = skew;
    send_it(call);
  } else {
    hand_over(call, reply);
  }
}

/* ---- the keys ------------------------------------------------------------------------------- */

static int64_t now_of(const sbx_config *config) {
  return (int64_t)time(NULL) + config->skew;
}

static void on_keys(sbx_op *op, void *arg) {
  call_op *call = arg;
  const sbx_config *config = call->steps.session->config;
  call->steps.request = NULL;
  if (op->err.code != SBX_OK && !sbx__ac_keys_are_valid(&config->keys, now_of(config)))
    sbx_steps_finish(&call->steps, &op->err);
  else
    send_it(call);
}

static void begin(call_op *call) {
  sbx_config *config = call->steps.session->config;
  int error = call->url.error != SBX_OK ? call->url.error : call->body.error;
  sbx_err err;
  if (error != SBX_OK) {
    sbx_steps_finish_code(&call->steps, error);
  } else if (config->keys.source == SBX__AC_NONE) {
    sbx_err_set(&err, SBX_EKEY, SBX__AC_NO_KEY);
    sbx_steps_finish(&call->steps, &err);
  } else if (sbx__ac_keys_are_fresh(&config->keys, now_of(config))) {
    send_it(call);
  } else {
    sbx_steps_wait_for(&call->steps,
                       sbx__ac_keys_fetch(&config->keys, config->loop, on_keys, call));
  }
}

void sbx__ac_call(sbx_steps *steps, sbx_buf *url, const sbx_http_request *request,
                  sbx_steps_reply on_reply) {
  call_op *call = steps->op.finished
                      ? NULL
                      : sbx_steps_new(sizeof *call, steps->session, steps->op.loop, on_done, steps);
  if (call == NULL) {
    sbx_buf_deinit(url);
    if (request->take_body != NULL)
      sbx_buf_deinit(request->take_body);
    sbx_steps_finish_code(steps, SBX_ENOMEM);
    return;
  }
  call->steps.release = release;
  call->parent = steps;
  call->on_reply = on_reply;
  call->request = *request;
  call->request.take_body = NULL;
  call->url = *url;
  sbx_buf_init(url, SBX__AC_URL_MAX);
  sbx_buf_init(&call->body, MAX_BODY);
  if (request->take_body != NULL) {
    call->body = *request->take_body;
    sbx_buf_init(request->take_body, MAX_BODY);
  }
  steps->request = &call->steps.op;
  begin(call);
}
