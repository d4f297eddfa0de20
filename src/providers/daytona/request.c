/* request.c - requests to the API and to the toolbox, and what their refusals mean.
 *
 * Bodies of refusals differ between versions, hops and routes, and may be empty; statuses do not.
 * Invariant: what a refusal means is decided here, by its status first. */
#include "providers/daytona/daytona.h"

#include "core/err.h"
#include "core/url.h"

#include <string.h>
#include <time.h>

/* ---- addresses ------------------------------------------------------------------------------ */

int sbx__daytona_api_url(sbx_buf *out, const sbx_config *config, const char *id, const char *rest) {
  sbx_buf_init(out, SBX__DAYTONA_URL_MAX);
  sbx_buf_append_str(out, config->api_url);
  sbx_buf_append_str(out, "/sandbox");
  if (id != NULL)
    sbx_url_append_segment(out, sbx_slice_str(id));
  return sbx_buf_append_str(out, rest);
}

int sbx__daytona_absolute(sbx_buf *out, const sbx_session *session, sbx_slice path) {
  bool relative = path.len == 0 || path.ptr[0] != '/';
  if (relative && session->dir != NULL) {
    sbx_buf_append_str(out, session->dir);
    if (path.len > 0 && out->len > 0 && out->ptr[out->len - 1] != '/')
      sbx_buf_append_char(out, '/');
  }
  return sbx_buf_append_slice(out, path);
}

int sbx__daytona_tool_url(sbx_buf *out, const sbx_session *session, const char *path,
                          sbx_slice file) {
  sbx_buf_init(out, SBX__DAYTONA_URL_MAX);
  sbx_buf_append_str(out, session->toolbox);
  sbx_buf_append_str(out, path);
  if (file.len > 0) {
    sbx_buf absolute;
    sbx_buf_init(&absolute, SBX__DAYTONA_URL_MAX);
    if (sbx__daytona_absolute(&absolute, session, file) == SBX_OK)
      sbx_url_append_query(out, sbx_slice_str("path"), sbx_buf_slice(&absolute));
    else if (out->error == SBX_OK)
      out->error = absolute.error;
    sbx_buf_deinit(&absolute);
  }
  return out->error;
}

void sbx__daytona_send(sbx_steps *steps, const char *method, sbx_buf *url, sbx_buf *json,
                       bool repeatable, sbx_steps_reply on_reply) {
  const sbx_config *config = steps->session->config;
  int code = url->error;
  if (code == SBX_OK && json != NULL)
    code = json->error;
  if (code == SBX_OK) {
    sbx_http_request request = {
        .method = method,
        .url = sbx_buf_slice(url),
        .headers = json != NULL ? &config->json_headers : &config->headers,
        .take_body = json,
        .repeatable = repeatable,
        .timeout_ms = SBX_NO_TIMEOUT,
    };
    sbx_steps_send(steps, config->http, &request, on_reply);
  } else {
    sbx_steps_finish_code(steps, code);
  }
  sbx_buf_deinit(url);
  if (json != NULL)
    sbx_buf_deinit(json);
}

void sbx__daytona_to_api(sbx_steps *steps, const char *method, const char *id, const char *rest,
                         sbx_steps_reply on_reply) {
  sbx_buf url;
  sbx__daytona_api_url(&url, steps->session->config, id, rest);
  sbx__daytona_send(steps, method, &url, NULL, true, on_reply);
}

/* ---- refusals ------------------------------------------------------------------------------- */

bool sbx__daytona_says(sbx_slice body, const char *text) {
  sbx_slice wanted = sbx_slice_str(text);
  for (; body.len >= wanted.len; body = sbx_slice_skip(body, 1)) {
    if (sbx_slice_eq_nocase(sbx_slice_of(body.ptr, wanted.len), wanted))
      return true;
  }
  return false;
}

bool sbx__daytona_is_page(const sbx_http *reply) {
  sbx_slice type;
  return sbx_headers_get(&reply->headers, "content-type", &type) &&
         sbx__daytona_says(sbx_slice_of(type.ptr, type.len < 40 ? type.len : 40), "text/html");
}

static void hint_at_url(sbx_err *err) {
  sbx_err_append(err, "; is this the address of a Daytona API? It usually ends in \"/api\"");
}

/* The API has a Retry-After of its own for each of its limits. */
static uint64_t retry_after(const sbx_headers *headers) {
  static const char prefix[] = "retry-after";
  uint64_t longest = 0, ms;
  for (size_t i = 0; i < headers->count; i++) {
    sbx_slice name = headers->items[i].name;
    if (name.len >= sizeof prefix - 1 &&
        sbx_slice_eq_nocase(sbx_slice_of(name.ptr, sizeof prefix - 1), sbx_slice_str(prefix)) &&
        sbx_retry_after(headers->items[i].value, (int64_t)time(NULL), &ms) && ms > longest)
      longest = ms;
  }
  return longest;
}

static int refuse(sbx_err *err, const sbx_http *reply, const char *verb) {
  sbx_slice body = sbx_buf_slice(&reply->body);
  int status = reply->status;
  int code = sbx_http_status_error(err, "daytona", verb, status, body);
  if (sbx__daytona_is_page(reply) && status < 500)
    hint_at_url(err);
  /* Whatever goes beyond a quota is a 400. */
  if (status == 400 && (sbx__daytona_says(body, "limit exceeded") ||
                        sbx__daytona_says(body, "exceeds maximum allowed")))
    code = err->code = SBX_EQUOTA;
  if (status == 429)
    err->retry_after_ms = retry_after(&reply->headers);
  err->no_effect = status >= 400 && status < 500 && status != 408;
  return code;
}

static int check(sbx_err *err, const sbx_http *reply, const char *verb) {
  if (reply->op.err.code != SBX_OK) {
    sbx_err_set(err, reply->op.err.code, "daytona: %s: %s", verb, reply->op.err.message);
    err->provider = "daytona";
    err->no_effect = !reply->sent_maybe;
    return err->code;
  }
  if (reply->status < 200 || reply->status >= 300)
    return refuse(err, reply, verb);
  if (!sbx__daytona_is_page(reply))
    return SBX_OK;
  sbx_err_set(err, SBX_EPROTO, "daytona: %s: a web page came in place of an answer", verb);
  hint_at_url(err);
  err->status = reply->status;
  err->provider = "daytona";
  return SBX_EPROTO;
}

/* Of all that answers on the way only the API writes its refusals like this; toolboxes have no
 * "error". It says so of unknown routes, too, which tells nothing about a sandbox. */
bool sbx__daytona_is_gone(const sbx_http *reply) {
  sbx_json_doc *doc = NULL;
  sbx_slice message, path, error;
  int64_t status;
  if (reply->op.err.code != SBX_OK || reply->status != 404 ||
      sbx_json_parse(&doc, sbx_buf_slice(&reply->body), NULL) != SBX_OK)
    return false;
  const sbx_json *root = sbx_json_root(doc);
  bool gone = sbx_json_int(sbx_json_get(root, "statusCode"), 404, 404, &status) &&
              sbx_json_string(sbx_json_get(root, "path"), &path) &&
              sbx_json_string(sbx_json_get(root, "error"), &error) &&
              sbx_json_string(sbx_json_get(root, "message"), &message) &&
              !sbx_slice_starts_with(message, sbx_slice_str("Cannot "));
  sbx_json_free(doc, true);
  return gone;
}

int sbx__daytona_check(sbx_err *err, const sbx_http *reply, const char *verb) {
  int code = check(err, reply, verb);
  if (code != SBX_ENOTFOUND || sbx__daytona_is_gone(reply))
    return code;
  if (!sbx__daytona_is_page(reply))
    hint_at_url(err);
  return err->code = SBX_EPROTO;
}

bool sbx__daytona_no_route(const sbx_http *reply) {
  return reply->op.err.code == SBX_OK && reply->status == 404 &&
         sbx__daytona_says(sbx_buf_slice(&reply->body), "page not found");
}

int sbx__daytona_check_tool(sbx_err *err, const sbx_http *reply, const char *verb) {
  int code = check(err, reply, verb);
  if (code == SBX_OK || reply->op.err.code != SBX_OK)
    return code;
  sbx_slice body = sbx_buf_slice(&reply->body);
  bool halted = reply->status == 400 && (sbx__daytona_says(body, "is the sandbox started") ||
                                         sbx__daytona_says(body, "failed to get runner info") ||
                                         sbx__daytona_says(body, "failed to resolve container"));
  bool gone = reply->status == 404 && sbx__daytona_says(body, "sandbox container not found");
  if (halted)
    sbx_err_append(err, "; the sandbox is not running");
  if (halted || gone)
    code = err->code = SBX_ECONFLICT;
  return code;
}
