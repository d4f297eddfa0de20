/* wire.c - one request to the control plane or into a sandbox, and what a failed one means.
 *
 * Invariant: the API key is added in sbx__e2b_to_api() only, a sandbox's tokens in
 * sbx__e2b_to_sandbox() only. */
#include "providers/e2b/wire.h"

#include "core/err.h"
#include "core/url.h"

#include <string.h>

enum {
  MAX_HEADERS = 64 * 1024,
  MAX_URL = 64 * 1024,
  MAX_PATH = 1024,
  KEEP_ALIVE_PING_S = 50, /* between the frames that a silent command's stream is filled with */
};

/* ---- requests ------------------------------------------------------------------------------- */

/* Everything that is added was checked when it came in, so that only memory can be missing. */
static int add(sbx_headers *headers, const char *name, const char *value) {
  return sbx_headers_add(headers, sbx_slice_str(name), sbx_slice_str(value), NULL);
}

static int add_number(sbx_headers *headers, const char *name, uint64_t value) {
  sbx_buf text;
  sbx_buf_init(&text, 32);
  int rc = sbx_buf_appendf(&text, "%llu", (unsigned long long)value);
  if (rc == SBX_OK)
    rc = sbx_headers_add(headers, sbx_slice_str(name), sbx_buf_slice(&text), NULL);
  sbx_buf_deinit(&text);
  return rc;
}

static int add_common(sbx_headers *headers, const sbx_config *config,
                      const sbx__e2b_request *request) {
  int rc = request->http.take_body != NULL ? request->http.take_body->error : SBX_OK;
  for (size_t i = 0; rc == SBX_OK && i < config->headers.count; i++)
    rc = sbx_headers_add(headers, config->headers.items[i].name, config->headers.items[i].value,
                         NULL);
  if (rc == SBX_OK && request->content_type != NULL)
    rc = add(headers, "content-type", request->content_type);
  return rc;
}

static void send_request(sbx_steps *steps, const char *base, const sbx_headers *headers,
                         const sbx__e2b_request *request, sbx_steps_reply on_reply) {
  const sbx_config *config = steps->session->config;
  sbx_url url;
  sbx_buf text;
  sbx_err err;
  sbx_buf_init(&text, MAX_URL);
  int rc = sbx_url_parse(&url, sbx_slice_str(base), &err);
  if (rc == SBX_OK)
    rc = sbx_url_join(&text, &url, request->path, &err);
  if (rc == SBX_OK) {
    sbx_http_request http = request->http;
    http.url = sbx_buf_slice(&text);
    http.headers = headers;
    sbx_steps_send(steps, config->http, &http, on_reply);
  } else {
    sbx_steps_finish(steps, &err);
  }
  sbx_buf_deinit(&text);
}

void sbx__e2b_to_api(sbx_steps *steps, const sbx__e2b_request *request, sbx_steps_reply on_reply) {
  const sbx_config *config = steps->session->config;
  sbx_headers headers;
  sbx_headers_init(&headers, MAX_HEADERS);
  int rc = add_common(&headers, config, request);
  if (rc == SBX_OK && config->api_key != NULL)
    rc = add(&headers, "x-api-key", config->api_key);
  if (rc == SBX_OK)
    send_request(steps, config->api_url, &headers, request, on_reply);
  else
    sbx_steps_finish_code(steps, rc);
  sbx_headers_deinit(&headers);
}

/* Streaming calls: how long the command may take, and how often a silent one gives a sign. */
static int add_stream(sbx_headers *headers, const sbx__e2b_request *request) {
  int rc = add_number(headers, "keepalive-ping-interval", KEEP_ALIVE_PING_S);
  if (rc == SBX_OK && request->limit_ms > 0)
    rc = add_number(headers, "connect-timeout-ms", request->limit_ms);
  return rc;
}

/* The two headers that route a request on a host that all sandboxes share. */
static int add_route(sbx_headers *headers, const sbx_session *session, uint64_t port) {
  int rc = add(headers, "e2b-sandbox-id", session->id);
  return rc == SBX_OK ? add_number(headers, "e2b-sandbox-port", port) : rc;
}

/* Daemons before 0.4.0 have no default user. "root:" and "user:" in base64; the password does not
 * count. */
static int add_user(sbx_headers *headers, const sbx_session *session, bool as_root) {
  if (as_root)
    return add(headers, "authorization", "Basic cm9vdDo=");
  if (session->envd_version < SBX__E2B_VERSION(0, 4, 0))
    return add(headers, "authorization", "Basic dXNlcjo=");
  return SBX_OK;
}

static int add_sandbox(sbx_headers *headers, const sbx_session *session,
                       const sbx__e2b_request *request) {
  bool code = request->port == SBX__E2B_CODE_PORT;
  int rc = add_route(headers, session, code ? SBX__E2B_CODE_PORT : SBX__E2B_ENVD_PORT);
  if (rc == SBX_OK && session->access_token != NULL)
    rc = add(headers, "x-access-token", session->access_token);
  if (rc == SBX_OK && code && session->traffic_token != NULL)
    rc = add(headers, "e2b-traffic-access-token", session->traffic_token);
  if (rc == SBX_OK && !code)
    rc = add_user(headers, session, request->as_root);
  if (rc == SBX_OK && request->rpc)
    rc = add(headers, "connect-protocol-version", "1");
  if (rc == SBX_OK && request->stream)
    rc = add_stream(headers, request);
  return rc;
}

void sbx__e2b_to_sandbox(sbx_steps *steps, const sbx__e2b_request *request,
                         sbx_steps_reply on_reply) {
  const sbx_session *session = steps->session;
  bool code = request->port == SBX__E2B_CODE_PORT;
  sbx_headers headers;
  sbx_headers_init(&headers, MAX_HEADERS);
  int rc = add_common(&headers, session->config, request);
  if (rc == SBX_OK)
    rc = add_sandbox(&headers, session, request);
  if (rc == SBX_OK)
    send_request(steps, code ? session->code_url : session->envd_url, &headers, request, on_reply);
  else
    sbx_steps_finish_code(steps, rc);
  sbx_headers_deinit(&headers);
}

void sbx__e2b_about(sbx_steps *steps, const char *method, const char *action, sbx_buf *body,
                    sbx_steps_reply on_reply) {
  sbx_buf path;
  sbx_buf_init(&path, MAX_PATH);
  sbx_buf_appendf(&path, "/sandboxes/%s%s", steps->session->id, action);
  sbx__e2b_request request = {.http.method = method,
                              .path = sbx_buf_slice(&path),
                              .content_type = body != NULL ? "application/json" : NULL,
                              .http.take_body = body,
                              .http.repeatable = true};
  if (path.error == SBX_OK)
    sbx__e2b_to_api(steps, &request, on_reply);
  else
    sbx_steps_finish_code(steps, SBX_ENOMEM);
  sbx_buf_deinit(&path);
}

void sbx__e2b_about_number(sbx_steps *steps, const char *action, const char *name, uint64_t number,
                           sbx_steps_reply on_reply) {
  sbx_buf body;
  sbx_buf_init(&body, MAX_PATH);
  sbx_buf_appendf(&body, "{\"%s\":%llu}", name, (unsigned long long)number);
  sbx__e2b_about(steps, "POST", action, &body, on_reply);
  sbx_buf_deinit(&body);
}

/* ---- errors --------------------------------------------------------------------------------- */

sbx__e2b_bad_gateway sbx__e2b_read_502(sbx_slice body) {
  sbx__e2b_bad_gateway what = SBX__E2B_UNCLEAR;
  sbx_json_doc *doc = NULL;
  sbx_slice message;
  if (sbx_json_parse(&doc, body, NULL) != SBX_OK)
    return what;
  const sbx_json *root = sbx_json_root(doc);
  if (sbx_json_get(root, "port") != NULL)
    what = SBX__E2B_NO_PORT;
  else if (sbx_json_get(root, "sandboxId") != NULL &&
           sbx_json_string(sbx_json_get(root, "message"), &message) &&
           memmem(message.ptr, message.len, "not found", 9) != NULL)
    what = SBX__E2B_NO_SANDBOX;
  sbx_json_free(doc, false);
  return what;
}

static bool owns_404(const sbx_json *body) {
  sbx_slice message;
  int64_t code;
  return sbx_json_int(sbx_json_get(body, "code"), 404, 404, &code) &&
         sbx_json_string(sbx_json_get(body, "message"), &message) &&
         !sbx_slice_starts_with(message, sbx_slice_str("validation error")); /* of a route */
}

/* The limit of sandboxes at a time is a quota: no wait helps. */
static const sbx_remote_meaning api_meanings[] = {
    {429, "maximum number of concurrent", SBX_EQUOTA, NULL, SBX_REMOTE_EFFECT_NONE},
    {503, NULL, SBX_EPROVIDER, NULL, SBX_REMOTE_EFFECT_NONE},
    {0},
};

static const sbx_remote_service api = {
    .provider = "e2b",
    .meanings = api_meanings,
    .owns_404 = owns_404,
    .foreign_404 = SBX_EPROVIDER, /* like the other pages of what stands before it */
    .foreign = "; that is no answer of E2B's API: something else answers at its address",
};

bool sbx__e2b_is_404(const sbx_http *http) {
  return sbx_remote_exchange_is_gone(&api, http);
}

/* Also a success is an error where it is another one than the call has. */
static void not_expected(sbx_err *err, const sbx_http *http, const char *verb) {
  sbx_http_status_error(err, "e2b", verb, http->status, sbx_buf_slice(&http->body));
}

int sbx__e2b_api_error(const sbx_http *http, const char *verb, sbx_err *err) {
  sbx_slice trace;
  if (sbx_remote_exchange_check(err, &api, http, verb) == SBX_OK)
    not_expected(err, http, verb);
  if (sbx_headers_get(&http->headers, "x-e2b-trace-id", &trace)) {
    sbx_err_append(err, " (trace ");
    sbx_err_append_remote(err, trace);
    sbx_err_append(err, ")");
  }
  return err->code;
}

/* Without the sandbox's own meanings: what a 502 says depends on whether it may be paused. */
static const sbx_remote_meaning sandbox_meanings[] = {
    {507, NULL, SBX_EQUOTA, NULL, SBX_REMOTE_EFFECT_POSSIBLE},
    {0},
};

static const sbx_remote_service daemon_service = {.provider = "e2b", .meanings = sandbox_meanings};

int sbx__e2b_sandbox_check(sbx_err *err, const sbx_session *session,
                           const sbx_remote_service *service, const sbx_http *http,
                           const char *verb) {
  int rc = sbx_remote_exchange_check(err, service, http, verb);
  if (http->op.err.code != SBX_OK || http->status != 502 ||
      sbx__e2b_read_502(sbx_buf_slice(&http->body)) != SBX__E2B_NO_SANDBOX)
    return rc;
  err->code = SBX_ELOST;
  err->no_effect = true;
  if (session->can_pause) {
    /* Not lost for certain: a probe asks the control plane. */
    err->code = SBX_ECONFLICT;
    sbx_err_append(err, "; it may be paused, and goes on after a resume");
  }
  return err->code;
}

int sbx__e2b_sandbox_error(const sbx_session *session, const sbx_http *http, const char *verb,
                           sbx_err *err) {
  if (sbx__e2b_sandbox_check(err, session, &daemon_service, http, verb) == SBX_OK)
    not_expected(err, http, verb);
  return err->code;
}

bool sbx__e2b_answered(sbx_steps *steps, const sbx_http *reply, const char *verb) {
  sbx_err err;
  if (!sbx_steps_arrived(steps, reply))
    return false;
  if (reply->status == 200)
    return true;
  sbx__e2b_sandbox_error(steps->session, reply, verb, &err);
  sbx_steps_finish(steps, &err);
  return false;
}
