/* exchange.h - one request to a service and its reply, and what a reply means that is no success.
 *
 * Services answer alike: by the status first, whatever the body says; in JSON, unless somebody else
 * answers who stands before them. What is special to one of them are the rows of its table. */
#ifndef SBX_REMOTE_EXCHANGE_H
#define SBX_REMOTE_EXCHANGE_H

#include "core/json.h"
#include "providers/remote/steps.h"

/* ---- request -------------------------------------------------------------------------------- */

/* What stands between a request that is complete and its sending: `sign` adds the headers that
 * depend on all of it. It is called once more when the request is repeated. */
typedef struct sbx_remote_signer {
  int (*sign)(void *arg, const sbx_http_request *request, sbx_headers *headers, sbx_err *err);
  void *arg;
} sbx_remote_signer;

/* Sends `request`, which is without its URL. `url` and request->take_body are used up; an error
 * that one of them has, and one of `signer` (may be NULL), finishes. */
void sbx_remote_exchange_send(sbx_steps *steps, sbx_http_client *client, sbx_buf *url,
                              const sbx_http_request *request, const sbx_remote_signer *signer,
                              sbx_steps_reply on_reply);

/* ---- reply ---------------------------------------------------------------------------------- */

typedef enum sbx_remote_effect {
  SBX_REMOTE_EFFECT_BY_STATUS, /* refusals (4xx, but for 408) had none */
  SBX_REMOTE_EFFECT_NONE,
  SBX_REMOTE_EFFECT_POSSIBLE,
} sbx_remote_effect;

/* Where a service means something else than its status says. In the order in which one reads a row
 * of a table; the padding costs nothing. */
typedef struct sbx_remote_meaning { /* NOLINT(clang-analyzer-optin.performance.Padding) */
  int status;
  const char *says; /* in the body, in any case of letters; "": nothing; NULL: whatever */
  int code;
  const char *advice; /* what is added to the message; may be NULL */
  sbx_remote_effect effect;
} sbx_remote_meaning;

typedef struct sbx_remote_service {
  const char *provider;
  const sbx_remote_meaning *meanings; /* the first that fits counts; the last has no status */
  /* Whether the body of a 404 is the service's own word about what was named; others that stand
   * before it answer 404, too, which says nothing. NULL: every 404 is. */
  bool (*owns_404)(const sbx_json *body);
  int foreign_404;     /* the code of such another one */
  const char *foreign; /* what is added when somebody else has answered */
} sbx_remote_service;

/* What went wrong: the exchange's own error, or the refusal in words; `verb` says what was tried.
 * A web page in place of an answer is SBX_EPROTO. With Retry-After, of any of the names that begin
 * like this. Returns SBX_OK for a success. */
int sbx_remote_exchange_check(sbx_err *err, const sbx_remote_service *service,
                              const sbx_http *reply, const char *verb);
/* The same, and the JSON of a success; sbx_json_free() it. */
int sbx_remote_exchange_json(sbx_json_doc **doc, const sbx_remote_service *service,
                             const sbx_http *reply, const char *verb, sbx_err *err);
/* Whether the service itself says that what was named is not there. */
bool sbx_remote_exchange_is_gone(const sbx_remote_service *service, const sbx_http *reply);
/* Whether the connection broke when the answer had begun, with a success: the service had taken the
 * request. */
bool sbx_remote_exchange_broke_off(const sbx_http *reply);
/* Whether a web page came. */
bool sbx_remote_exchange_is_page(const sbx_http *reply);
/* Whether `text` is in what came, in any case of letters. */
bool sbx_remote_exchange_says(sbx_slice body, const char *text);

#endif
