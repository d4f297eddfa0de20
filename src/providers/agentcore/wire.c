/* wire.c - requests to AgentCore, and what its refusals mean. */
#include "providers/agentcore/wire.h"

#include "core/err.h"
#include "core/url.h"
#include "providers/agentcore/call.h"
#include "providers/remote/identity.h"

#include <string.h>

/* ---- requests ------------------------------------------------------------------------------- */

static void send_to(sbx_steps *steps, sbx_buf *url, const sbx_headers *headers,
                    const sbx_http_request *request, sbx_steps_reply on_reply) {
  sbx_http_request http = *request;
  http.headers = headers;
  if (http.take_body != NULL)
    http.content_type = "application/json";
  if (http.timeout_ms == 0)
    http.timeout_ms = SBX_NO_TIMEOUT;
  sbx__ac_call(steps, url, &http, on_reply);
}

void sbx__ac_to_sessions(sbx_steps *steps, const char *verb, bool named,
                         const sbx_http_request *request, sbx_steps_reply on_reply) {
  const sbx_session *session = steps->session;
  sbx_buf url;
  sbx_buf_init(&url, SBX__AC_URL_MAX);
  sbx_buf_append_str(&url, session->config->url);
  sbx_buf_append_str(&url, "/sessions/");
  sbx_buf_append_str(&url, verb);
  if (named)
    sbx_url_append_query(&url, sbx_slice_str("sessionId"), sbx_slice_str(session->id));
  send_to(steps, &url, &session->config->headers, request, on_reply);
}

void sbx__ac_invoke(sbx_steps *steps, const sbx_http_request *request, sbx_steps_reply on_reply) {
  const sbx_session *session = steps->session;
  sbx_http_request http = *request;
  sbx_buf url;
  http.method = "POST";
  sbx_buf_init(&url, SBX__AC_URL_MAX);
  sbx_buf_append_str(&url, session->config->url);
  sbx_buf_append_str(&url, "/tools/invoke");
  send_to(steps, &url, &session->headers, &http, on_reply);
}

void sbx__ac_begin_line(sbx_buf *body) {
  sbx_buf_append_str(body, "{\"name\":\"executeCommand\",\"arguments\":{\"command\":\"");
}

int sbx__ac_take_id(sbx_session *session, sbx_slice id, sbx_err *err) {
  static const char field[] = "x-amzn-code-interpreter-session-id";
  const sbx_headers *common = &session->config->headers;
  int rc = sbx_remote_identity_take(&session->id, id, "agentcore", err);
  if (rc != SBX_OK || session->headers.count > 0)
    return rc;
  sbx_headers_init(&session->headers, common->max);
  for (size_t i = 0; rc == SBX_OK && i < common->count; i++)
    rc = sbx_headers_add(&session->headers, common->items[i].name, common->items[i].value, err);
  return rc == SBX_OK ? sbx_headers_add(&session->headers, sbx_slice_str(field),
                                        sbx_slice_str(session->id), err)
                      : rc;
}

/* ---- refusals ------------------------------------------------------------------------------- */

#define WRONG_KEY                                                                                  \
  "; are the credentials right and still valid? They are `accessKeyId` and `secretAccessKey`, or " \
  "the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile's"
#define NO_RIGHT                                                                                   \
  "; these credentials need bedrock-agentcore:StartCodeInterpreterSession, "                       \
  "InvokeCodeInterpreter, GetCodeInterpreterSession, ListCodeInterpreterSessions and "             \
  "StopCodeInterpreterSession"
#define FOREIGN "; is this the address of AgentCore in the right region?"

const sbx__ac_meaning *sbx__ac_meaning_of(sbx_slice type) {
  static const sbx__ac_meaning meanings[] = {
      {"ThrottlingException", NULL, SBX_ERATE, true},
      {"ValidationException", NULL, SBX_EINVAL, true},
      {"AccessDeniedException", NO_RIGHT, SBX_EFORBIDDEN, true},
      {"UnrecognizedClientException", WRONG_KEY, SBX_EAUTH, true},
      {"InvalidClientTokenId", WRONG_KEY, SBX_EAUTH, true},
      {"InvalidSignatureException", WRONG_KEY, SBX_EAUTH, true},
      {"SignatureDoesNotMatch", WRONG_KEY, SBX_EAUTH, true},
      {"IncompleteSignatureException", WRONG_KEY, SBX_EAUTH, true},
      {"MissingAuthenticationTokenException", WRONG_KEY, SBX_EAUTH, true},
      {"ExpiredTokenException", WRONG_KEY, SBX_EAUTH, true},
      {"ExpiredToken", WRONG_KEY, SBX_EAUTH, true},
      {"RequestExpired", "; the clock of this machine is wrong", SBX_EAUTH, true},
      {"ServiceQuotaExceededException", NULL, SBX_EQUOTA, true},
      {"ResourceNotFoundException", NULL, SBX_ENOTFOUND, true},
      {"ConflictException", NULL, SBX_ECONFLICT, true},
      {"RetryableConflictException", NULL, SBX_ECONFLICT, true},
      {"InternalServerException", NULL, SBX_EPROVIDER, false},
  };
  for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
    if (sbx_slice_eq_nocase(type, sbx_slice_str(meanings[i].type)))
      return &meanings[i];
  }
  return NULL;
}

bool sbx__ac_says_over(sbx_slice text) {
  static const char *const words[] = {"not active", "terminated", "not in ready", "session expired",
                                      "session has expired"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (sbx_remote_exchange_says(text, words[i]))
      return true;
  }
  return false;
}

/* In a header, or in the body before or behind other words. */
static sbx_slice type_of(const sbx_http *reply, const sbx_json *body) {
  sbx_slice type = {NULL, 0};
  if (!sbx_headers_get(&reply->headers, "x-amzn-errortype", &type) &&
      !sbx_json_string(sbx_json_get(body, "__type"), &type))
    sbx_json_string(sbx_json_get(body, "code"), &type);
  type.len = sbx_slice_find(type, ':');
  size_t space = sbx_slice_find(type, '#');
  return space < type.len ? sbx_slice_skip(type, space + 1) : type;
}

static const sbx_remote_service service = {.provider = "agentcore", .foreign = FOREIGN};

/* What has no type of its own comes from something on the way, and says by its status alone what
 * it means; but not that anything is gone. */
static void explain(sbx_err *err, const sbx_http *reply) {
  sbx_json_doc *doc = NULL;
  sbx_json_parse(&doc, sbx_buf_slice(&reply->body), NULL);
  sbx_slice type = type_of(reply, doc != NULL ? sbx_json_root(doc) : NULL);
  const sbx__ac_meaning *meaning = sbx__ac_meaning_of(type);
  if (type.len > 0) {
    sbx_err_append(err, " (");
    sbx_err_append_remote(err, type);
    sbx_err_append(err, ")");
  }
  if (meaning != NULL) {
    err->code = meaning->code;
    err->no_effect = meaning->refused;
    sbx_err_append(err, "%s", meaning->advice != NULL ? meaning->advice : "");
  } else if (reply->status == 404 || reply->status == 410) {
    err->code = SBX_EPROTO;
    sbx_err_append(err, "%s", sbx_remote_exchange_is_page(reply) ? "" : FOREIGN);
  }
  sbx_json_free(doc, true);
}

int sbx__ac_check(sbx_err *err, const sbx_http *reply, const char *verb) {
  int rc = sbx_remote_exchange_check(err, &service, reply, verb);
  if (rc == SBX_OK || reply->op.err.code != SBX_OK || reply->status < 400)
    return rc;
  explain(err, reply);
  return err->code;
}

int sbx__ac_check_inside(sbx_err *err, const sbx_http *reply, const char *verb) {
  int rc = sbx__ac_check(err, reply, verb);
  bool over = rc == SBX_ENOTFOUND || (rc == SBX_EINVAL && reply->op.err.code == SBX_OK &&
                                      sbx__ac_says_over(sbx_buf_slice(&reply->body)));
  return over ? (err->code = SBX_ECONFLICT) : rc;
}

int sbx__ac_json(sbx_json_doc **doc, const sbx_http *reply, const char *verb, sbx_err *err) {
  int rc = sbx__ac_check(err, reply, verb);
  return rc == SBX_OK ? sbx_remote_exchange_json(doc, &service, reply, verb, err) : rc;
}
