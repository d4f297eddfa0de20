/* wire.h - one gRPC call over HTTP/2, and what its refusals mean.
 *
 * There are two services: the control plane, and the command router of each sandbox, with an
 * address and a token of its own. A call is a POST with one message in an envelope; the answer is
 * envelopes, and behind them, in trailers, a status of its own, which alone says how it went: that
 * of HTTP is 200 in any case. */
#ifndef SBX_MODAL_WIRE_H
#define SBX_MODAL_WIRE_H

#include "core/envelope.h"
#include "providers/modal/session.h"
#include "providers/remote/steps.h"

enum {
  SBX__MODAL_MESSAGE_MAX = 16 * 1024 * 1024, /* of what comes in a stream */
  SBX__MODAL_CALL_MS = 30000,
};

typedef enum sbx__modal_plane { SBX__MODAL_CONTROL, SBX__MODAL_ROUTER } sbx__modal_plane;

typedef struct sbx__modal_call {
  sbx__modal_plane plane;
  const char *method;
  sbx_buf *message;    /* its bytes stay; an error that it has is the call's */
  bool repeatable;     /* sent again by itself where a kept connection was closed */
  uint64_t timeout_ms; /* 0: the whole operation has a deadline */
  bool bare;           /* without the token of the control plane */
  const char *key;     /* x-idempotency-key; NULL: none */
  /* Of a stream: its answer comes here, in pieces, and is not kept. */
  int (*on_bytes)(void *consumer, sbx_slice bytes, sbx_err *err);
  void *consumer;
} sbx__modal_call;

/* Starts one. An error here says that nothing was sent; `done` is not called then. */
int sbx__modal_start(sbx_op **op, const sbx_session *session, const sbx__modal_call *call,
                     sbx_op_done done, void *arg, sbx_err *err);
/* The same as a step. */
void sbx__modal_send(sbx_steps *steps, const sbx__modal_call *call, sbx_steps_reply on_reply);

/* How a call went. Its HTTP, then the status behind the answer. SBX_OK, or what is wrong, in words;
 * err->no_effect where nothing was done for certain. */
int sbx__modal_check(sbx_err *err, sbx__modal_plane plane, const sbx_http *reply, const char *verb);
/* The same, and the one message of an answer that is no stream; a part of reply->body. */
int sbx__modal_message(sbx_slice *message, sbx__modal_plane plane, const sbx_http *reply,
                       const char *verb, sbx_err *err);
/* The answer has a form that it should not have. */
int sbx__modal_strange(sbx_err *err, const char *verb, const char *what);

/* Until when a JWT is good, by its `exp`, as sbx_now_ms() counts; `fallback_ms` from now where it
 * does not say. */
uint64_t sbx__modal_jwt_until(sbx_slice jwt, uint64_t fallback_ms);

#endif
