/* access.c - the two tokens of a session.
 *
 * Invariants: the router's address is one of https, so its token is never sent in the clear. What
 * the control plane knows about us goes to the control plane alone. */
#include "providers/modal/access.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/url.h"

#include <string.h>

enum {
  AUTH_MS = 20 * 60 * 1000, /* of a token that does not say how long it is good */
  AUTH_CALL_MS = 5000,
  ROUTER_MS = 5 * 60 * 1000,
  ROUTER_LEFT_MS = 30 * 1000, /* of a token that is still used */
  MAX_TOKEN = 16 * 1024,
  MAX_URL = 2048,
};

int sbx__modal_set(char **to, sbx_slice text, sbx_err *err) {
  char *copy = sbx_strndup(text.ptr, text.len);
  if (copy == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  sbx_free_secret(*to);
  *to = copy;
  return SBX_OK;
}

static bool is_token(sbx_slice text) {
  for (size_t i = 0; i < text.len; i++) {
    if (text.ptr[i] <= ' ' || text.ptr[i] > '~')
      return false;
  }
  return text.len > 0 && text.len <= MAX_TOKEN;
}

bool sbx__modal_is_old(const char *id) {
  size_t len = strlen(id);
  if (len != 25 || strncmp(id, "sb-", 3) != 0)
    return false;
  for (size_t i = 3; i < len; i++) {
    if (!sbx_is_letter(id[i]) && !sbx_is_digit(id[i]))
      return false;
  }
  return true;
}

/* ---- the control plane's -------------------------------------------------------------------- */

bool sbx__modal_is_authorized(const sbx_session *session) {
  return session->auth != NULL && sbx_now_ms() < session->auth_until_ms;
}

static void on_authorized(sbx_steps *steps, sbx_http *reply) {
  sbx_session *session = steps->session;
  sbx_slice message, token = {NULL, 0};
  sbx_err err = {0};
  int rc = sbx__modal_message(&message, SBX__MODAL_CONTROL, reply, "get a token", &err);
  if (rc == SBX_OK && (sbx_pb_get_bytes(message, 1, &token) != SBX_OK || !is_token(token)))
    rc = sbx__modal_strange(&err, "get a token", "the answer has no token");
  if (rc == SBX_OK && sbx__modal_set(&session->auth, token, &err) == SBX_OK) {
    uint64_t now = sbx_now_ms(), until = sbx__modal_jwt_until(token, AUTH_MS);
    session->auth_until_ms = until > now ? now + (until - now) / 2 : now;
  }
  err.no_effect = true;
  sbx_steps_finish(steps, err.code != SBX_OK ? &err : NULL);
}

sbx_op *sbx__modal_authorize(sbx_session *session, sbx_op_done done, void *arg) {
  sbx_steps *steps = sbx_steps_new(sizeof *steps, session, session->config->loop, done, arg);
  sbx_buf none;
  if (steps == NULL)
    return NULL;
  sbx_buf_init(&none, 0);
  const sbx__modal_call call = {.method = "AuthTokenGet",
                                .message = &none,
                                .repeatable = true,
                                .bare = true,
                                .timeout_ms = AUTH_CALL_MS};
  sbx__modal_send(steps, &call, on_authorized);
  return &steps->op;
}

/* ---- the router's --------------------------------------------------------------------------- */

bool sbx__modal_has_access(const sbx_session *session) {
  return session->jwt != NULL && sbx_now_ms() + ROUTER_LEFT_MS < session->jwt_until_ms;
}

int sbx__modal_take_access(sbx_session *session, sbx_slice message, const char *verb,
                           sbx_err *err) {
  sbx_slice jwt, url;
  sbx_url parsed;
  sbx_buf secret;
  if (sbx_pb_get_bytes(message, 1, &jwt) != SBX_OK ||
      sbx_pb_get_bytes(message, 2, &url) != SBX_OK || !is_token(jwt) || url.len > MAX_URL)
    return sbx__modal_strange(err, verb, "the answer has no access to the command router");
  if (sbx_url_parse(&parsed, url, NULL) != SBX_OK || !parsed.https || parsed.query.len > 0 ||
      parsed.path.len > 1)
    return sbx__modal_strange(err, verb, "the command router's address is none of https");
  url.len -= parsed.path.len;
  sbx_buf_init(&secret, MAX_TOKEN + 16);
  sbx_buf_append_str(&secret, "Bearer ");
  sbx_buf_append_slice(&secret, jwt);
  int rc = secret.error != SBX_OK ? sbx_err_set(err, secret.error, NULL) : SBX_OK;
  if (rc == SBX_OK && (rc = sbx__modal_set(&session->jwt, jwt, err)) == SBX_OK &&
      (rc = sbx__modal_set(&session->router_secret, sbx_buf_slice(&secret), err)) == SBX_OK &&
      (rc = sbx__modal_set(&session->router_url, url, err)) == SBX_OK)
    session->jwt_until_ms = sbx__modal_jwt_until(jwt, ROUTER_MS);
  if (secret.ptr != NULL)
    sbx_wipe(secret.ptr, secret.len);
  sbx_buf_deinit(&secret);
  return rc;
}

#define VERB "get access to the sandbox"

static void on_access(sbx_steps *steps, sbx_http *reply) {
  sbx_slice message;
  sbx_err err = {0};
  if (sbx__modal_message(&message, SBX__MODAL_CONTROL, reply, VERB, &err) == SBX_OK)
    sbx__modal_take_access(steps->session, message, VERB, &err);
  /* A sandbox that has none may be over. */
  if (err.code == SBX_EINVAL && err.status == 400)
    err.code = SBX_ECONFLICT;
  err.no_effect = true;
  sbx_steps_finish(steps, err.code != SBX_OK ? &err : NULL);
}

static void ask_access(sbx_steps *steps) {
  const sbx_session *session = steps->session;
  bool old = sbx__modal_is_old(session->id);
  sbx_buf message;
  sbx_buf_init(&message, 1024);
  sbx_pb_put_str(&message, 1, old ? session->task : session->id);
  const sbx__modal_call call = {
      .method = old ? "TaskGetCommandRouterAccess" : "SandboxGetCommandRouterAccess",
      .message = &message,
      .repeatable = true,
      .timeout_ms = SBX__MODAL_CALL_MS,
  };
  sbx__modal_send(steps, &call, on_access);
  sbx_buf_deinit(&message);
}

static void on_authorized_access(sbx_op *op, void *arg) {
  sbx_steps *steps = arg;
  steps->request = NULL;
  if (op->err.code != SBX_OK)
    sbx_steps_finish(steps, &op->err);
  else
    ask_access(steps);
}

sbx_op *sbx__modal_get_access(sbx_session *session, sbx_op_done done, void *arg) {
  sbx_steps *steps = sbx_steps_new(sizeof *steps, session, session->config->loop, done, arg);
  if (steps == NULL)
    return NULL;
  if (sbx__modal_is_authorized(session))
    ask_access(steps);
  else
    sbx_steps_wait_for(steps, sbx__modal_authorize(session, on_authorized_access, steps));
  return &steps->op;
}
