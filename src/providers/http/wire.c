/* wire.c - requests to a service of the five requests, and what their refusals mean. */
#include "core/url.h"
#include "providers/http/service.h"

#include <string.h>

/* ---- paths ---------------------------------------------------------------------------------- */

/* A service may take any other path for one that leaves the working directory. */
bool sbx__hs_is_plain(sbx_slice path) {
  bool plain = path.len > 0 && path.ptr[path.len - 1] != '/';
  while (plain && path.len > 0) {
    sbx_slice part = sbx_slice_of(path.ptr, sbx_slice_find(path, '/'));
    plain = part.len > 0 && !sbx_slice_eq_str(part, ".") && !sbx_slice_eq_str(part, "..");
    path = sbx_slice_skip(path, part.len + 1);
  }
  return plain;
}

static bool take_prefix(sbx_slice *path, const char *dir) {
  sbx_slice prefix = sbx_slice_of(dir, dir != NULL ? strlen(dir) : 0);
  if (prefix.len == 0 || !sbx_slice_starts_with(*path, prefix) ||
      (path->len > prefix.len && path->ptr[prefix.len] != '/'))
    return false;
  *path = sbx_slice_skip(*path, prefix.len + 1);
  return true;
}

bool sbx__hs_below(const sbx_session *session, sbx_slice *path) {
  bool relative = path->len == 0 || (path->ptr[0] != '/' && path->ptr[0] != '~');
  return relative || take_prefix(path, session->config->dir) || take_prefix(path, session->dir);
}

int sbx__hs_absolute(sbx_buf *out, const sbx_session *session, sbx_slice path) {
  if (sbx__hs_below(session, &path)) {
    sbx_buf_append_str(out, session->dir);
    sbx_buf_append_str(out, path.len > 0 ? "/" : "");
  }
  return sbx_buf_append_slice(out, path);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void send_to(sbx_steps *steps, const char *id, const char *route, sbx_slice file,
                    const sbx_http_request *request, sbx_steps_reply on_reply) {
  const sbx_config *config = steps->session->config;
  sbx_http_request http = *request;
  sbx_buf url;
  sbx_buf_init(&url, SBX__HS_URL_MAX);
  sbx_buf_append_str(&url, config->url);
  sbx_buf_append_str(&url, "/sessions");
  if (id != NULL)
    sbx_url_append_segment(&url, sbx_slice_str(id));
  sbx_buf_append_str(&url, route);
  if (file.len > 0)
    sbx_url_append_query(&url, sbx_slice_str("path"), file);
  http.headers = &config->headers;
  if (http.take_body != NULL)
    http.content_type = "application/json";
  if (http.timeout_ms == 0)
    http.timeout_ms = SBX_NO_TIMEOUT;
  sbx_remote_exchange_send(steps, config->http, &url, &http, NULL, on_reply);
}

static const sbx_slice no_file = {NULL, 0};

void sbx__hs_create(sbx_steps *steps, sbx_steps_reply on_reply) {
  sbx_buf body;
  sbx_buf_init(&body, SIZE_MAX);
  sbx_buf_append_str(&body, steps->session->config->create_body);
  send_to(steps, NULL, "", no_file, &(sbx_http_request){.method = "POST", .take_body = &body},
          on_reply);
}

void sbx__hs_delete(sbx_steps *steps, const char *id, sbx_steps_reply on_reply) {
  send_to(steps, id, "", no_file, &(sbx_http_request){.method = "DELETE", .repeatable = true},
          on_reply);
}

void sbx__hs_send(sbx_steps *steps, sbx_buf *body, const sbx_http_request *request,
                  sbx_steps_reply on_reply) {
  sbx_http_request http = *request;
  http.method = "POST";
  http.take_body = body;
  send_to(steps, steps->session->id, "/exec", no_file, &http, on_reply);
}

void sbx__hs_to_file(sbx_steps *steps, sbx_slice rest, const sbx_http_request *request,
                     sbx_steps_reply on_reply) {
  const sbx_session *session = steps->session;
  sbx_buf path;
  sbx_buf_init(&path, SBX__HS_URL_MAX);
  sbx_buf_append_str(&path, session->config->dir != NULL ? session->config->dir : session->dir);
  sbx_buf_append_char(&path, '/');
  if (sbx_buf_append_slice(&path, rest) != SBX_OK) {
    sbx_steps_finish_code(steps, path.error);
  } else {
    send_to(steps, session->id, "/files", sbx_buf_slice(&path), request, on_reply);
  }
  sbx_buf_deinit(&path);
}

/* {"cwd": ..., "env": ..., "timeout_seconds": ..., "stdin": null, "command": ["/bin/sh","-c"," */
void sbx__hs_begin(const sbx_session *session, sbx_buf *body, const sbx_exec_spec *spec,
                   uint64_t limit_s) {
  const char *dir = session->config->dir;
  sbx_json_out json;
  sbx_json_out_init(&json, body);
  sbx_json_begin_object(&json);
  sbx_json_put_name(&json, sbx_slice_str("cwd"));
  if (dir != NULL)
    sbx_json_put_string(&json, sbx_slice_str(dir));
  else
    sbx_json_put_null(&json);
  sbx_json_put_name(&json, sbx_slice_str("env"));
  sbx_json_begin_object(&json);
  for (size_t i = 0; spec != NULL && i < spec->env_count; i++) {
    sbx_json_put_name(&json, spec->env[i].name);
    sbx_json_put_string(&json, spec->env[i].value);
  }
  sbx_json_end_object(&json);
  sbx_json_put_name(&json, sbx_slice_str("timeout_seconds"));
  if (limit_s > 0 && limit_s <= INT32_MAX)
    sbx_json_put_int(&json, (int64_t)limit_s);
  else
    sbx_json_put_null(&json);
  sbx_json_put_name(&json, sbx_slice_str("stdin"));
  sbx_json_put_null(&json);
  sbx_buf_append_str(body, ",\"command\":[\"/bin/sh\",\"-c\",\"");
}

void sbx__hs_ask(sbx_steps *steps, const char *script, sbx_steps_reply on_reply) {
  enum { LIMIT_S = 30 };
  sbx_buf body;
  sbx_buf_init(&body, SBX__HS_URL_MAX);
  sbx__hs_begin(steps->session, &body, NULL, LIMIT_S);
  sbx_buf_append_str(&body, script);
  sbx_buf_append_str(&body, "\"]}");
  sbx__hs_send(steps, &body, &(sbx_http_request){.repeatable = true}, on_reply);
}

/* ---- refusals ------------------------------------------------------------------------------- */

#define REDIRECTED                                                                                 \
  "; redirects are not followed, since they would take the token along: give the address that it " \
  "leads to as baseURL"

static const sbx_remote_meaning meanings[] = {
    {301, NULL, SBX_EPROTO, REDIRECTED, SBX_REMOTE_EFFECT_NONE},
    {302, NULL, SBX_EPROTO, REDIRECTED, SBX_REMOTE_EFFECT_BY_STATUS},
    {307, NULL, SBX_EPROTO, REDIRECTED, SBX_REMOTE_EFFECT_NONE},
    {308, NULL, SBX_EPROTO, REDIRECTED, SBX_REMOTE_EFFECT_NONE},
    {401, NULL, SBX_EAUTH,
     "; is the token right and still valid? It is `token` or the variable SANDBOX_HTTP_TOKEN",
     SBX_REMOTE_EFFECT_NONE},
    {422, "unsupported_manifest", SBX_EUNSUPPORTED,
     "; this service does not give what the options ask for", SBX_REMOTE_EFFECT_NONE},
    {0},
};

static const sbx_remote_service service = {
    .provider = "http",
    .meanings = meanings,
    .foreign = "; is baseURL the address of a sandbox service?",
};

/* Which of the protocol's codes the body of a refusal has. */
static int word_of(const sbx_http *reply) {
  static const char *const lost[] = {"session_not_found", "session_gone", "sandbox_lost"};
  sbx_json_doc *doc = NULL;
  sbx_slice code = {NULL, 0};
  int word = SBX_OK;
  if (sbx_json_parse(&doc, sbx_buf_slice(&reply->body), NULL) == SBX_OK)
    sbx_json_string(sbx_json_get(sbx_json_get(sbx_json_root(doc), "error"), "code"), &code);
  for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
    word = sbx_slice_eq_str(code, lost[i]) ? SBX_ELOST : word;
  word = sbx_slice_eq_str(code, "file_not_found") ? SBX_ENOTFOUND : word;
  sbx_json_free(doc, false);
  return word;
}

/* By its word; without one a 404 is about what the path names last, and a 410 about the session. A
 * page is not the service's: something on the way has answered. */
static int code_of(const sbx_http *reply, int code, sbx__hs_about about) {
  bool missing = reply->status == 404 || reply->status == 410;
  int word = word_of(reply);
  if (sbx_remote_exchange_is_page(reply))
    return missing ? SBX_EPROTO : code;
  if (about == SBX__HS_SERVICE)
    return code;
  if (word == SBX_ELOST || reply->status == 410 || (missing && about == SBX__HS_SESSION))
    return SBX_ELOST;
  return missing && word != SBX_ENOTFOUND ? SBX_EPROTO : code;
}

int sbx__hs_check(sbx_err *err, const sbx_http *reply, const char *verb, sbx__hs_about about) {
  int rc = sbx_remote_exchange_check(err, &service, reply, verb);
  if (rc != SBX_OK && reply->op.err.code == SBX_OK && reply->status >= 400)
    err->code = code_of(reply, rc, about);
  return rc == SBX_OK ? SBX_OK : err->code;
}

int sbx__hs_json(sbx_json_doc **doc, const sbx_http *reply, const char *verb, sbx__hs_about about,
                 sbx_err *err) {
  int rc = sbx__hs_check(err, reply, verb, about);
  return rc == SBX_OK ? sbx_remote_exchange_json(doc, &service, reply, verb, err) : rc;
}
