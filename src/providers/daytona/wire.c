/* wire.c - requests to Daytona's API and to a sandbox's toolbox, and what their refusals mean. */
#include "providers/daytona/wire.h"

#include "core/url.h"

/* ---- addresses ------------------------------------------------------------------------------ */

static bool is_at_home(sbx_slice path) {
  return path.len > 0 && path.ptr[0] == '~' && (path.len == 1 || path.ptr[1] == '/');
}

int sbx__daytona_absolute(sbx_buf *out, const sbx_session *session, sbx_slice path) {
  bool relative = path.len == 0 || path.ptr[0] != '/';
  const char *base = relative ? session->dir : NULL;
  if (is_at_home(path)) {
    base = session->home;
    path = base != NULL ? sbx_slice_skip(path, 2) : path;
  }
  if (base != NULL) {
    sbx_buf_append_str(out, base);
    if (path.len > 0 && out->len > 0 && out->ptr[out->len - 1] != '/')
      sbx_buf_append_char(out, '/');
  }
  return sbx_buf_append_slice(out, path);
}

/* ---- requests ------------------------------------------------------------------------------- */

const sbx_http_request sbx__daytona_question = {.method = "GET", .repeatable = true};

static void send_to(sbx_steps *steps, sbx_buf *url, const sbx_http_request *request,
                    sbx_steps_reply on_reply) {
  const sbx_config *config = steps->session->config;
  sbx_http_request http = *request;
  http.headers = &config->headers;
  http.content_type = http.take_body != NULL ? "application/json" : NULL;
  if (http.timeout_ms == 0)
    http.timeout_ms = SBX_NO_TIMEOUT;
  if (http.max_bytes == 0 && http.on_bytes == NULL)
    http.max_bytes = config->most_of_reply;
  sbx_remote_exchange_send(steps, config->http, url, &http, NULL, on_reply);
}

void sbx__daytona_to_api(sbx_steps *steps, const char *path, const sbx_http_request *request,
                         sbx_steps_reply on_reply) {
  sbx_buf url;
  sbx_buf_init(&url, SBX__DAYTONA_URL_MAX);
  sbx_buf_append_str(&url, steps->session->config->api_url);
  sbx_buf_append_str(&url, path);
  send_to(steps, &url, request, on_reply);
}

void sbx__daytona_about(sbx_steps *steps, const char *method, const char *id, const char *rest,
                        sbx_steps_reply on_reply) {
  sbx_buf url;
  sbx_buf_init(&url, SBX__DAYTONA_URL_MAX);
  sbx_buf_append_str(&url, steps->session->config->api_url);
  sbx_buf_append_str(&url, "/sandbox");
  sbx_url_append_segment(&url, sbx_slice_str(id));
  sbx_buf_append_str(&url, rest);
  send_to(steps, &url, &(sbx_http_request){.method = method, .repeatable = true}, on_reply);
}

void sbx__daytona_to_tool(sbx_steps *steps, const char *path, sbx_slice file,
                          const sbx_http_request *request, sbx_steps_reply on_reply) {
  sbx_buf url, absolute;
  sbx_buf_init(&url, SBX__DAYTONA_URL_MAX);
  sbx_buf_init(&absolute, SBX__DAYTONA_URL_MAX);
  sbx_buf_append_str(&url, steps->session->toolbox);
  sbx_buf_append_str(&url, path);
  if (file.len > 0 && sbx__daytona_absolute(&absolute, steps->session, file) == SBX_OK)
    sbx_url_append_query(&url, sbx_slice_str("path"), sbx_buf_slice(&absolute));
  if (absolute.error != SBX_OK)
    url.error = absolute.error;
  sbx_buf_deinit(&absolute);
  send_to(steps, &url, request, on_reply);
}

void sbx__daytona_upload(sbx_steps *steps, const char *path, sbx_slice file,
                         const sbx_http_part *parts, size_t count, sbx_steps_reply on_reply) {
  const sbx_http_request request = {
      .method = "POST", .parts = parts, .part_count = count, .repeatable = true};
  sbx__daytona_to_tool(steps, path, file, &request, on_reply);
}

/* ---- refusals ------------------------------------------------------------------------------- */

#define HINT_AT_URL "; is this the address of a Daytona API? It usually ends in \"/api\""

/* Of all that answers on the way only the API writes its refusals like this; toolboxes have no
 * "error". It says so of unknown routes, too, which tells nothing about a sandbox. */
static bool owns_404(const sbx_json *body) {
  sbx_slice message, path, error;
  int64_t status;
  return sbx_json_int(sbx_json_get(body, "statusCode"), 404, 404, &status) &&
         sbx_json_string(sbx_json_get(body, "path"), &path) &&
         sbx_json_string(sbx_json_get(body, "error"), &error) &&
         sbx_json_string(sbx_json_get(body, "message"), &message) &&
         !sbx_slice_starts_with(message, sbx_slice_str("Cannot "));
}

#define KEY_ADVICE                                                                                 \
  "; is the key right and still valid? It is `apiKey` or the variable DAYTONA_API_KEY, or else "   \
  "`jwtToken` or DAYTONA_JWT_TOKEN"

/* Whatever goes beyond a quota is a 400. */
static const sbx_remote_meaning api_meanings[] = {
    {401, NULL, SBX_EAUTH, KEY_ADVICE, SBX_REMOTE_EFFECT_NONE},
    {400, "limit exceeded", SBX_EQUOTA, NULL, SBX_REMOTE_EFFECT_NONE},
    {400, "exceeds maximum allowed", SBX_EQUOTA, NULL, SBX_REMOTE_EFFECT_NONE},
    /* A create says that a sandbox was made. */
    {400, "sandbox failed to start", SBX_EPROVIDER, NULL, SBX_REMOTE_EFFECT_POSSIBLE},
    {0},
};

const sbx_remote_service sbx__daytona_api = {
    .provider = "daytona",
    .meanings = api_meanings,
    .owns_404 = owns_404,
    .foreign_404 = SBX_EPROTO,
    .foreign = HINT_AT_URL,
};

#define HALTED "; the sandbox is not running"

// clang-format off
#define TOOL_MEANINGS                                                                              \
  {401, NULL, SBX_EAUTH, KEY_ADVICE, SBX_REMOTE_EFFECT_NONE},                                      \
  {400, "is the sandbox started", SBX_ECONFLICT, HALTED, SBX_REMOTE_EFFECT_NONE},                  \
  {400, "failed to get runner info", SBX_ECONFLICT, HALTED, SBX_REMOTE_EFFECT_NONE},               \
  {400, "failed to resolve container", SBX_ECONFLICT, HALTED, SBX_REMOTE_EFFECT_NONE},             \
  {404, "sandbox container not found", SBX_ECONFLICT, NULL, SBX_REMOTE_EFFECT_NONE}
// clang-format on

static const sbx_remote_meaning tool_meanings[] = {TOOL_MEANINGS, {0}};

const sbx_remote_service sbx__daytona_toolbox = {
    .provider = "daytona",
    .meanings = tool_meanings,
    .foreign = HINT_AT_URL,
};

static const sbx_remote_meaning file_meanings[] = {
    TOOL_MEANINGS,
    {404, "", SBX_ENOTFOUND, NULL, SBX_REMOTE_EFFECT_NONE},
    {404, "FILE_NOT_FOUND", SBX_ENOTFOUND, NULL, SBX_REMOTE_EFFECT_NONE},
    {404, "file not found", SBX_ENOTFOUND, NULL, SBX_REMOTE_EFFECT_NONE},
    {404, "no such file", SBX_ENOTFOUND, NULL, SBX_REMOTE_EFFECT_NONE},
    {404, NULL, SBX_EPROTO, NULL, SBX_REMOTE_EFFECT_NONE}, /* something else is missing */
    {0},
};

const sbx_remote_service sbx__daytona_files = {
    .provider = "daytona",
    .meanings = file_meanings,
    .foreign = HINT_AT_URL,
};

int sbx__daytona_check_tool(sbx_err *err, const sbx_http *reply, const char *verb) {
  return sbx_remote_exchange_check(err, &sbx__daytona_toolbox, reply, verb);
}

bool sbx__daytona_no_route(const sbx_http *reply) {
  return reply->op.err.code == SBX_OK && reply->status == 404 &&
         sbx_remote_exchange_says(sbx_buf_slice(&reply->body), "page not found");
}

/* ---- directories ---------------------------------------------------------------------------- */

int sbx__daytona_take_dir(char **out, const sbx_http *reply, const char *verb, sbx_err *err) {
  sbx_json_doc *doc = NULL;
  sbx_slice dir;
  int rc = sbx_remote_exchange_json(&doc, &sbx__daytona_toolbox, reply, verb, err);
  if (rc == SBX_OK && (!sbx_json_string(sbx_json_get(sbx_json_root(doc), "dir"), &dir) ||
                       dir.len == 0 || dir.ptr[0] != '/' || sbx_slice_has_nul(dir)))
    rc = sbx_err_set(err, SBX_EPROTO, "daytona: %s: the answer is no path", verb);
  if (rc == SBX_OK && sbx__daytona_set_text(out, dir) != SBX_OK)
    rc = sbx_err_set(err, SBX_ENOMEM, NULL);
  sbx_json_free(doc, false);
  return rc;
}

static void on_home(sbx_steps *steps, sbx_http *reply) {
  sbx_err err;
  if (sbx__daytona_take_dir(&steps->session->home, reply, "ask for the home of the sandbox's user",
                            &err) == SBX_OK) {
    steps->on_time(steps);
    return;
  }
  err.no_effect = true;
  sbx_steps_finish(steps, &err);
}

void sbx__daytona_need_home(sbx_steps *steps, sbx_slice path, sbx_steps_time then) {
  if (!is_at_home(path) || steps->session->home != NULL) {
    then(steps);
    return;
  }
  steps->on_time = then;
  sbx__daytona_to_tool(steps, "/user-home-dir", sbx_slice_of(NULL, 0), &sbx__daytona_question,
                       on_home);
}
