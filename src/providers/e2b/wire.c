/* wire.c - one request to the control plane or into a sandbox, and what a failed one means.
 *
 * Invariant: the API key is added in sbx__e2b_to_api() only, a sandbox's tokens in
 * sbx__e2b_to_sandbox() only. */
#include "providers/e2b/wire.h"

#include "core/err.h"

#include <stdio.h>

enum { MAX_HEADERS = 64 * 1024, MAX_URL = 64 * 1024 };

/* Between the frames that a silent command's stream is filled with. */
#define KEEP_ALIVE_PING_S "50"

/* ---- requests ------------------------------------------------------------------------------- */

/* Left out without a value. */
typedef struct field {
  const char *name;
  const char *value;
} field;

/* Everything that is added was checked when it came in, so that only memory can be missing. */
static void send_with(sbx_steps *steps, sbx_buf *url, const field *fields,
                      const sbx_http_request *request, sbx_steps_reply on_reply) {
  const sbx_config *config = steps->session->config;
  sbx_http_request http = *request;
  sbx_headers headers;
  int rc = SBX_OK;
  sbx_headers_init(&headers, MAX_HEADERS);
  http.headers = &headers;
  for (size_t i = 0; rc == SBX_OK && i < config->headers.count; i++)
    rc = sbx_headers_add(&headers, config->headers.items[i].name, config->headers.items[i].value,
                         NULL);
  for (; rc == SBX_OK && fields->name != NULL; fields++) {
    if (fields->value != NULL)
      rc = sbx_headers_add(&headers, sbx_slice_str(fields->name), sbx_slice_str(fields->value),
                           NULL);
  }
  if (rc != SBX_OK)
    url->error = rc;
  sbx_remote_exchange_send(steps, config->http, url, &http, NULL, on_reply);
  sbx_headers_deinit(&headers);
}

void sbx__e2b_api_url(sbx_buf *url, const sbx_session *session) {
  sbx_buf_init(url, MAX_URL);
  sbx_buf_append_str(url, session->config->api_url);
}

void sbx__e2b_to_api(sbx_steps *steps, sbx_buf *url, const sbx_http_request *request,
                     sbx_steps_reply on_reply) {
  const field fields[] = {
      {"content-type", request->take_body != NULL ? "application/json" : NULL},
      {"x-api-key", steps->session->config->api_key},
      {NULL, NULL},
  };
  send_with(steps, url, fields, request, on_reply);
}

/* Daemons before 0.4.0 have no default user. "root:" and "user:" in base64; the password does not
 * count. */
static const char *user(const sbx_session *session, bool as_root) {
  if (as_root)
    return "Basic cm9vdDo=";
  return session->box.envd_version < SBX__E2B_VERSION(0, 4, 0) ? "Basic dXNlcjo=" : NULL;
}

void sbx__e2b_to_sandbox(sbx_steps *steps, const sbx__e2b_request *request,
                         sbx_steps_reply on_reply) {
  const sbx__e2b_box *box = &steps->session->box;
  bool code = request->code, stream = request->stream;
  const char *type = request->http.take_body != NULL ? "application/json" : NULL;
  char port[8], limit[24];
  snprintf(port, sizeof port, "%d", code ? SBX__E2B_CODE_PORT : SBX__E2B_ENVD_PORT);
  snprintf(limit, sizeof limit, "%llu", (unsigned long long)request->limit_ms);
  const field fields[] = {
      {"content-type", stream ? "application/connect+json" : type},
      {"e2b-sandbox-id", box->id},
      {"e2b-sandbox-port", port},
      {"x-access-token", box->access_token},
      {"e2b-traffic-access-token", code ? box->traffic_token : NULL},
      {"authorization", code ? NULL : user(steps->session, request->as_root)},
      {"connect-protocol-version", stream || request->rpc ? "1" : NULL},
      {"keepalive-ping-interval", stream ? KEEP_ALIVE_PING_S : NULL},
      {"connect-timeout-ms", stream && request->limit_ms > 0 ? limit : NULL},
      {NULL, NULL},
  };
  sbx_buf url;
  sbx_buf_init(&url, MAX_URL);
  sbx_buf_append_str(&url, code ? box->code_url : box->envd_url);
  sbx_buf_append_slice(&url, request->path);
  send_with(steps, &url, fields, &request->http, on_reply);
}

void sbx__e2b_call(sbx_steps *steps, const char *method, sbx_buf *body, sbx_steps_reply on_reply) {
  const sbx__e2b_request request = {
      .http = {.method = "POST", .take_body = body, .repeatable = true},
      .path = sbx_slice_str(method),
      .rpc = true,
  };
  sbx__e2b_to_sandbox(steps, &request, on_reply);
}

void sbx__e2b_call_path(sbx_steps *steps, const char *method, sbx_slice path,
                        sbx_steps_reply on_reply) {
  sbx_buf body, name;
  sbx_json_out out = {.buf = &body};
  sbx_buf_init(&body, MAX_URL);
  sbx_buf_init(&name, MAX_URL);
  sbx__e2b_append_path(&name, path);
  sbx_json_begin_object(&out);
  sbx_json_put_text(&out, "path", sbx_buf_slice(&name));
  sbx_json_end_object(&out);
  if (name.error != SBX_OK)
    body.error = name.error;
  sbx_buf_deinit(&name);
  sbx__e2b_call(steps, method, &body, on_reply);
}

void sbx__e2b_about(sbx_steps *steps, const char *method, const char *id, const char *action,
                    sbx_buf *body, sbx_steps_reply on_reply) {
  const sbx_http_request http = {.method = method, .take_body = body, .repeatable = true};
  sbx_buf url;
  sbx__e2b_api_url(&url, steps->session);
  sbx_buf_appendf(&url, "/sandboxes/%s%s", id, action);
  sbx__e2b_to_api(steps, &url, &http, on_reply);
}

void sbx__e2b_about_number(sbx_steps *steps, const char *action, const char *name, uint64_t number,
                           sbx_steps_reply on_reply) {
  sbx_buf body;
  sbx_buf_init(&body, 256);
  sbx_buf_appendf(&body, "{\"%s\":%llu}", name, (unsigned long long)number);
  sbx__e2b_about(steps, "POST", steps->session->box.id, action, &body, on_reply);
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
           sbx_remote_exchange_says(message, "not found"))
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
    {401, NULL, SBX_EAUTH, "; is `apiKey`, or the variable E2B_API_KEY, right and still valid?",
     SBX_REMOTE_EFFECT_NONE},
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

int sbx__e2b_api_check(sbx_err *err, const sbx_http *http, const char *verb) {
  sbx_slice trace;
  int rc = sbx_remote_exchange_check(err, &api, http, verb);
  if (rc != SBX_OK && sbx_headers_get(&http->headers, "x-e2b-trace-id", &trace)) {
    sbx_err_append(err, " (trace ");
    sbx_err_append_remote(err, trace);
    sbx_err_append(err, ")");
  }
  return rc;
}

/* Without the sandbox's own meanings: what a 502 says depends on whether it may be paused. */
static const sbx_remote_meaning sandbox_meanings[] = {
    {507, NULL, SBX_EQUOTA, NULL, SBX_REMOTE_EFFECT_POSSIBLE},
    {0},
};

int sbx__e2b_check(sbx_err *err, const sbx_session *session, const sbx_remote_meaning *meanings,
                   const sbx_http *http, const char *verb) {
  const sbx_remote_service service = {
      .provider = "e2b",
      .meanings = meanings != NULL ? meanings : sandbox_meanings,
  };
  int rc = sbx_remote_exchange_check(err, &service, http, verb);
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

bool sbx__e2b_answered(sbx_steps *steps, const sbx_http *reply, const char *verb) {
  sbx_err err;
  int rc = sbx__e2b_check(&err, steps->session, NULL, reply, verb);
  if (rc != SBX_OK)
    sbx_steps_finish(steps, &err);
  return rc == SBX_OK;
}
