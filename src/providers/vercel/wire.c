/* wire.c - requests to Vercel's API, and what their refusals mean. */
#include "providers/vercel/wire.h"

#include "core/gzip.h"
#include "core/url.h"
#include "core/ustar.h"

#define MAX_ARCHIVE ((size_t)1 << 31)

enum { ROOM = 8 * SBX_USTAR_BLOCK };

const sbx_http_request sbx__vercel_question = {.method = "GET", .repeatable = true};

/* ---- requests ------------------------------------------------------------------------------- */

static void begin_url(sbx_buf *url, const sbx_config *config, const char *path) {
  sbx_buf_init(url, SBX__VERCEL_URL_MAX);
  sbx_buf_append_str(url, config->api_url);
  sbx_buf_append_str(url, path);
}

static void put_query(sbx_buf *url, const char *name, const char *value) {
  if (value != NULL)
    sbx_url_append_query(url, sbx_slice_str(name), sbx_slice_str(value));
}

static void send_to(sbx_steps *steps, sbx_buf *url, const sbx_http_request *request,
                    sbx_steps_reply on_reply) {
  const sbx_config *config = steps->session->config;
  sbx_http_request http = *request;
  if (http.headers == NULL)
    http.headers = &config->headers;
  if (http.content_type == NULL)
    http.content_type = "application/json";
  if (http.timeout_ms == 0)
    http.timeout_ms = SBX_NO_TIMEOUT;
  sbx_remote_exchange_send(steps, config->http, url, &http, NULL, on_reply);
}

void sbx__vercel_create(sbx_steps *steps, sbx_buf *body, sbx_steps_reply on_reply) {
  const sbx_config *config = steps->session->config;
  sbx_buf url;
  begin_url(&url, config, config->old_route ? "/v2/sandboxes" : "/v3/sandboxes");
  put_query(&url, "teamId", config->team);
  send_to(steps, &url, &(sbx_http_request){.method = "POST", .take_body = body}, on_reply);
}

void sbx__vercel_to_sandbox(sbx_steps *steps, const char *method, const char *name,
                            const char *resume, sbx_steps_reply on_reply) {
  const sbx_config *config = steps->session->config;
  sbx_buf url;
  begin_url(&url, config, "/v2/sandboxes");
  sbx_url_append_segment(&url, sbx_slice_str(name));
  put_query(&url, "teamId", config->team);
  put_query(&url, "projectId", config->project);
  put_query(&url, "resume", resume);
  send_to(steps, &url, &(sbx_http_request){.method = method, .repeatable = true}, on_reply);
}

void sbx__vercel_to_session(sbx_steps *steps, const char *rest, const sbx_http_request *request,
                            sbx_steps_reply on_reply) {
  const sbx_session *session = steps->session;
  sbx_buf url;
  begin_url(&url, session->config, "/v2/sandboxes/sessions");
  sbx_url_append_segment(&url, sbx_slice_str(session->id));
  sbx_buf_append_str(&url, rest);
  put_query(&url, "teamId", session->config->team);
  send_to(steps, &url, request, on_reply);
}

void sbx__vercel_upload(sbx_steps *steps, sbx_slice path, unsigned mode, sbx_slice bytes,
                        sbx_steps_reply on_reply) {
  sbx_buf name, archive, body;
  sbx_buf_init(&name, SBX__VERCEL_URL_MAX);
  sbx_buf_init(&archive, MAX_ARCHIVE);
  sbx_buf_init(&body, MAX_ARCHIVE);
  sbx__vercel_archive_name(&name, path);
  sbx_buf_reserve(&archive, bytes.len + ROOM);
  sbx_ustar_put_entry(
      &archive, &(sbx_ustar_entry){.name = sbx_buf_slice(&name), .size = bytes.len, .mode = mode});
  sbx_buf_append_slice(&archive, bytes);
  sbx_ustar_pad(&archive, bytes.len);
  sbx_ustar_end(&archive);
  sbx_gzip_store(&body, sbx_buf_slice(&archive));
  if (body.error == SBX_OK)
    body.error = name.error != SBX_OK ? name.error : archive.error;
  sbx_buf_deinit(&name);
  sbx_buf_deinit(&archive);
  const sbx_http_request request = {.method = "POST",
                                    .headers = &steps->session->config->archive_headers,
                                    .content_type = "application/gzip",
                                    .take_body = &body,
                                    .repeatable = true};
  sbx__vercel_to_session(steps, "/fs/write", &request, on_reply);
}

/* ---- paths ---------------------------------------------------------------------------------- */

bool sbx__vercel_is_at_home(sbx_slice path) {
  return path.len > 0 && path.ptr[0] == '~' && (path.len == 1 || path.ptr[1] == '/');
}

int sbx__vercel_absolute(sbx_buf *out, const sbx_session *session, sbx_slice path) {
  bool relative = path.len == 0 || path.ptr[0] != '/';
  if (relative && !sbx__vercel_is_at_home(path)) {
    sbx_buf_append_str(out, session->dir);
    if (path.len > 0 && out->len > 0 && out->ptr[out->len - 1] != '/')
      sbx_buf_append_char(out, '/');
  }
  return sbx_buf_append_slice(out, path);
}

int sbx__vercel_archive_name(sbx_buf *out, sbx_slice path) {
  size_t begin = out->len;
  while (path.len > 0 && out->error == SBX_OK) {
    sbx_slice part = sbx_slice_of(path.ptr, sbx_slice_find(path, '/'));
    path = sbx_slice_skip(path, part.len + 1);
    if (part.len == 0 || sbx_slice_eq_str(part, "."))
      continue;
    if (!sbx_slice_eq_str(part, "..")) {
      sbx_buf_append_str(out, out->len > begin ? "/" : "");
      sbx_buf_append_slice(out, part);
      continue;
    }
    while (out->len > begin && out->ptr[out->len - 1] != '/')
      sbx_buf_truncate(out, out->len - 1);
    if (out->len > begin)
      sbx_buf_truncate(out, out->len - 1);
  }
  return out->error;
}

/* ---- refusals ------------------------------------------------------------------------------- */

/* Of all that answers on the way only the API writes its refusals like this. */
static bool owns_404(const sbx_json *body) {
  sbx_slice code;
  return sbx_json_string(sbx_json_get(sbx_json_get(body, "error"), "code"), &code);
}

#define FOREIGN "; is this the address of Vercel's API? It ends in \"/api\""
#define OVER "; the sandbox's session is over"

// clang-format off
#define MEANINGS                                                                                   \
  {401, NULL, SBX_EAUTH,                                                                           \
   "; is the token right and still valid? It is `token` or the variable VERCEL_TOKEN, or else "    \
   "VERCEL_OIDC_TOKEN, which lasts for some hours",                                                \
   SBX_REMOTE_EFFECT_NONE},                                                                        \
  {403, NULL, SBX_EFORBIDDEN, "; does the token belong to this team and this project?",            \
   SBX_REMOTE_EFFECT_NONE},                                                                        \
  {422, "sandbox_stopping", SBX_ECONFLICT, OVER, SBX_REMOTE_EFFECT_NONE},                          \
  {422, "sandbox_snapshotting", SBX_ECONFLICT, OVER, SBX_REMOTE_EFFECT_NONE}
// clang-format on

static const sbx_remote_meaning api_meanings[] = {MEANINGS, {0}};

const sbx_remote_service sbx__vercel_api = {
    .provider = "vercel",
    .meanings = api_meanings,
    .owns_404 = owns_404,
    .foreign_404 = SBX_EPROTO,
    .foreign = FOREIGN,
};

static const sbx_remote_meaning inside_meanings[] = {
    MEANINGS,
    {410, NULL, SBX_ECONFLICT, OVER, SBX_REMOTE_EFFECT_NONE},
    {404, "\"code\"", SBX_ECONFLICT, NULL, SBX_REMOTE_EFFECT_NONE},
    {0},
};

const sbx_remote_service sbx__vercel_inside = {
    .provider = "vercel",
    .meanings = inside_meanings,
    .owns_404 = owns_404,
    .foreign_404 = SBX_EPROTO,
    .foreign = FOREIGN,
};
