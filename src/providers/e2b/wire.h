/* wire.h - one request to the control plane or into a sandbox.
 *
 * Two hosts: the control plane gets the API key, a sandbox's own services get the token that came
 * with the sandbox. Neither ever gets the other. */
#ifndef SBX_E2B_WIRE_H
#define SBX_E2B_WIRE_H

#include "providers/e2b/session.h"
#include "providers/remote/exchange.h"

/* ---- the control plane ---------------------------------------------------------------------- */

/* Initializes `url` with the address of the control plane. */
void sbx__e2b_api_url(sbx_buf *url, const sbx_session *session);
/* As sbx_remote_exchange_send() has it. */
void sbx__e2b_to_api(sbx_steps *steps, sbx_buf *url, const sbx_http_request *request,
                     sbx_steps_reply on_reply);
/* One request about a sandbox, which may be repeated. `action` is what follows the sandbox in the
 * path; `body` NULL: none, else it is used up. */
void sbx__e2b_about(sbx_steps *steps, const char *method, const char *id, const char *action,
                    sbx_buf *body, sbx_steps_reply on_reply);
/* The same about the session's own, with {"name": number}. */
void sbx__e2b_about_number(sbx_steps *steps, const char *action, const char *name, uint64_t number,
                           sbx_steps_reply on_reply);

/* Fills `err` for an exchange that failed, or a reply that is no success, and returns its code.
 * `verb` says what was tried. */
int sbx__e2b_api_check(sbx_err *err, const sbx_http *http, const char *verb);
/* Whether the control plane itself says that what was named is not there; also an ingress before it
 * that has lost its way to it answers 404. */
bool sbx__e2b_is_404(const sbx_http *http);

/* ---- a sandbox ------------------------------------------------------------------------------ */

typedef struct sbx__e2b_request {
  sbx_http_request http; /* without `url` and `headers` */
  sbx_slice path;        /* encoded, with its query */
  bool code;             /* to the interpreter, else to the daemon */
  bool as_root;          /* else as the template's default user */
  bool rpc;              /* a call of one of the daemon's Connect services */
  bool stream;           /* whose reply is a stream */
  uint64_t limit_ms;     /* of that; 0: none */
} sbx__e2b_request;

/* Finishes with the error that `take_body`, which is used up, may have. */
void sbx__e2b_to_sandbox(sbx_steps *steps, const sbx__e2b_request *request,
                         sbx_steps_reply on_reply);
/* One call of the daemon's, which may be repeated; `body` is used up. */
void sbx__e2b_call(sbx_steps *steps, const char *method, sbx_buf *body, sbx_steps_reply on_reply);
/* The same about a path. */
void sbx__e2b_call_path(sbx_steps *steps, const char *method, sbx_slice path,
                        sbx_steps_reply on_reply);

/* What an answer 502 from a sandbox's host says. */
typedef enum sbx__e2b_bad_gateway {
  SBX__E2B_NO_SANDBOX, /* there is no such sandbox, or it is paused */
  SBX__E2B_NO_PORT,    /* the sandbox runs, the service does not */
  SBX__E2B_UNCLEAR
} sbx__e2b_bad_gateway;

sbx__e2b_bad_gateway sbx__e2b_read_502(sbx_slice body);
/* As sbx__e2b_api_check(). `meanings` are those of the call, NULL: it has none of its own. */
int sbx__e2b_check(sbx_err *err, const sbx_session *session, const sbx_remote_meaning *meanings,
                   const sbx_http *http, const char *verb);
/* First in an `on_reply` of a call into a sandbox that has no use for a failure: finishes with its
 * error. False: finished. */
bool sbx__e2b_answered(sbx_steps *steps, const sbx_http *reply, const char *verb);

#endif
