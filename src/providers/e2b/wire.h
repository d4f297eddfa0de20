/* wire.h - one request to the control plane or into a sandbox.
 *
 * Two hosts: the control plane gets the API key, a sandbox's own services get the token that came
 * with the sandbox. Neither ever gets the other. */
#ifndef SBX_E2B_WIRE_H
#define SBX_E2B_WIRE_H

#include "core/http.h"
#include "providers/e2b/session.h"
#include "providers/remote/exchange.h"

typedef struct sbx__e2b_request {
  sbx_http_request http;    /* without `url` and `headers` */
  sbx_slice path;           /* encoded, with its query */
  const char *content_type; /* of the body */
  /* Into a sandbox only: */
  int port;          /* 0: SBX__E2B_ENVD_PORT */
  bool as_root;      /* else as the template's default user */
  bool rpc;          /* a call of one of the daemon's Connect services */
  bool stream;       /* whose reply is a stream */
  uint64_t limit_ms; /* of that; 0: none */
} sbx__e2b_request;

/* Each finishes with the error that `take_body` may have. */
void sbx__e2b_to_api(sbx_steps *steps, const sbx__e2b_request *request, sbx_steps_reply on_reply);
void sbx__e2b_to_sandbox(sbx_steps *steps, const sbx__e2b_request *request,
                         sbx_steps_reply on_reply);

/* What an answer 502 from a sandbox's host says. */
typedef enum sbx__e2b_bad_gateway {
  SBX__E2B_NO_SANDBOX, /* there is no such sandbox, or it is paused */
  SBX__E2B_NO_PORT,    /* the sandbox runs, the service does not */
  SBX__E2B_UNCLEAR
} sbx__e2b_bad_gateway;

sbx__e2b_bad_gateway sbx__e2b_read_502(sbx_slice body);
/* Whether the control plane itself says that what was named is not there; also an ingress before it
 * that has lost its way to it answers 404. */
bool sbx__e2b_is_404(const sbx_http *http);
/* Fill `err` for an exchange that failed, or a reply that is no success, and return its code.
 * `verb` says what was tried. */
int sbx__e2b_api_error(const sbx_http *http, const char *verb, sbx_err *err);
int sbx__e2b_sandbox_error(const sbx_session *session, const sbx_http *http, const char *verb,
                           sbx_err *err);
/* The same for a call whose answers have meanings of their own, as sbx_remote_files has it: SBX_OK
 * for a success. */
int sbx__e2b_sandbox_check(sbx_err *err, const sbx_session *session,
                           const sbx_remote_service *service, const sbx_http *http,
                           const char *verb);
/* First in an `on_reply` of a call into a sandbox that has no use for anything but a 200: finishes
 * with the error of all else. False: finished. */
bool sbx__e2b_answered(sbx_steps *steps, const sbx_http *reply, const char *verb);

/* One request about the session's own sandbox to the control plane, which may be repeated. `action`
 * is what follows the sandbox in the path; `body` NULL: none. */
void sbx__e2b_about(sbx_steps *steps, const char *method, const char *action, sbx_buf *body,
                    sbx_steps_reply on_reply);
/* The same with {"name": number}. */
void sbx__e2b_about_number(sbx_steps *steps, const char *action, const char *name, uint64_t number,
                           sbx_steps_reply on_reply);
static inline bool sbx__e2b_is_success(const sbx_http *reply) {
  return reply->op.err.code == SBX_OK && reply->status >= 200 && reply->status < 300;
}

#endif
