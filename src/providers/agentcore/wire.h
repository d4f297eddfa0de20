/* wire.h - requests to AgentCore, and what its refusals mean. */
#ifndef SBX_AGENTCORE_WIRE_H
#define SBX_AGENTCORE_WIRE_H

#include "providers/agentcore/session.h"
#include "providers/remote/exchange.h"

/* ---- requests ------------------------------------------------------------------------------- */

/* Each sends one request, signed, which is given without URL and headers; what take_body has is
 * used up. The whole operation has a deadline, so the request has none unless it says so.
 * {code interpreter}/sessions/{verb}; with the session's id in the query when `named`. */
void sbx__ac_to_sessions(sbx_steps *steps, const char *verb, bool named,
                         const sbx_http_request *request, sbx_steps_reply on_reply);
/* {code interpreter}/tools/invoke, of the session. */
void sbx__ac_invoke(sbx_steps *steps, const sbx_http_request *request, sbx_steps_reply on_reply);
/* Begins the body of an executeCommand, up to the line inside its string. */
void sbx__ac_begin_line(sbx_buf *body);
#define SBX__AC_END_LINE "\"}}"
/* Takes the id for the session's; SBX_EPROTO, SBX_ENOMEM. */
int sbx__ac_take_id(sbx_session *session, sbx_slice id, sbx_err *err);

/* ---- refusals ------------------------------------------------------------------------------- */

/* What the service calls an error, in its answer or in a stream. */
typedef struct sbx__ac_meaning {
  const char *type;   /* in any case of letters */
  const char *advice; /* may be NULL */
  int code;
  bool refused; /* nothing was done */
} sbx__ac_meaning;

/* NULL for a type that is not known. */
const sbx__ac_meaning *sbx__ac_meaning_of(sbx_slice type);
/* Whether the words of a refusal are about a session that is over. */
bool sbx__ac_says_over(sbx_slice text);

/* As sbx_remote_exchange_check(), the type of the refusal first. SBX_ENOTFOUND is the service's own
 * word. */
int sbx__ac_check(sbx_err *err, const sbx_http *reply, const char *verb);
/* The same of what is done in a session, where a refusal may mean that it is over: such ones are
 * SBX_ECONFLICT, which leads to a look at it. */
int sbx__ac_check_inside(sbx_err *err, const sbx_http *reply, const char *verb);
/* The first, and the JSON of a success. */
int sbx__ac_json(sbx_json_doc **doc, const sbx_http *reply, const char *verb, sbx_err *err);

#endif
