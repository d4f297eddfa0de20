/* session.c - what is known of one sandbox: what a create or a connect has answered.
 *
 * Invariant: what a session holds of an answer was checked when it came in: ids and tokens can
 * stand in a header, addresses are URLs. */
#include "providers/e2b/session.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/err.h"
#include "core/url.h"
#include "providers/remote/identity.h"

#include <string.h>

enum { MAX_TOKEN = 4096, MAX_URL = 1024 };

/* What a client in debug mode uses. */
#define DEBUG_ID "debug_sandbox_id"

/* ---- the answer to a create ----------------------------------------------------------------- */

void sbx__e2b_box_free(sbx__e2b_box *box) {
  sbx_free(box->id);
  sbx_free_secret(box->access_token);
  sbx_free_secret(box->traffic_token);
  sbx_free(box->envd_url);
  sbx_free(box->code_url);
}

static int unexpected(sbx_err *err, const char *name) {
  return sbx_err_set(err, SBX_EPROTO, "e2b: unexpected answer: `%s` is missing or makes no sense",
                     name);
}

static bool is_printable(sbx_slice text) {
  for (size_t i = 0; i < text.len; i++) {
    if (text.ptr[i] <= ' ' || text.ptr[i] > '~')
      return false;
  }
  return true;
}

/* "1.2.3" as a number to compare; 0, the oldest, for what is no version. */
static uint32_t read_version(sbx_slice text) {
  uint32_t parts[3] = {0};
  for (size_t i = 0; i < 3; i++) {
    size_t n = 0;
    for (; n < text.len && sbx_is_digit(text.ptr[n]) && n < 3; n++)
      parts[i] = parts[i] * 10 + (uint32_t)(text.ptr[n] - '0');
    if (n == 0 || (i < 2 && (n == text.len || text.ptr[n] != '.')))
      return 0;
    text = sbx_slice_skip(text, n + 1);
  }
  return parts[0] < 256 ? SBX__E2B_VERSION(parts[0], parts[1], parts[2]) : 0;
}

static int read_id(char **out, const sbx_json *root, sbx_err *err) {
  sbx_slice id;
  if (!sbx_json_string(sbx_json_get(root, "sandboxID"), &id) || !sbx__e2b_cut_id(&id))
    return unexpected(err, "sandboxID");
  return sbx_remote_identity_take(out, id, "e2b", err);
}

/* An absent token and null are no token. */
static int read_token(char **out, const sbx_json *root, const char *name, sbx_err *err) {
  const sbx_json *v = sbx_json_get(root, name);
  sbx_slice token;
  if (v == NULL || sbx_json_is_null(v))
    return SBX_OK;
  if (!sbx_json_string(v, &token) || token.len > MAX_TOKEN || !is_printable(token))
    return unexpected(err, name);
  if (token.len == 0)
    return SBX_OK;
  *out = sbx_strndup(token.ptr, token.len);
  return *out != NULL ? SBX_OK : sbx_err_set(err, SBX_ENOMEM, NULL);
}

/* On these domains one host serves the daemons of all sandboxes. */
static bool has_shared_host(sbx_slice domain) {
  static const char *const known[] = {"e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (sbx_slice_eq_nocase(domain, sbx_slice_str(known[i])))
      return true;
  }
  return false;
}

static int make_url(char **out, const sbx_config *config, const char *id, sbx_slice domain,
                    int port, sbx_err *err) {
  sbx_buf text;
  sbx_url url;
  size_t len;
  int rc = SBX_OK;
  sbx_buf_init(&text, MAX_URL);
  if (config->sandbox_url != NULL)
    sbx_buf_append_str(&text, config->sandbox_url);
  else if (config->debug)
    sbx_buf_appendf(&text, "http://localhost:%d", port);
  else if (port == SBX__E2B_ENVD_PORT && has_shared_host(domain))
    sbx_buf_appendf(&text, "https://sandbox.%.*s", (int)domain.len, domain.ptr);
  else
    sbx_buf_appendf(&text, "https://%d-%s.%.*s", port, id, (int)domain.len, domain.ptr);
  if (text.error != SBX_OK)
    rc = sbx_err_set(err, SBX_ENOMEM, NULL);
  else if (sbx_url_parse(&url, sbx_buf_slice(&text), NULL) != SBX_OK)
    rc = unexpected(err, "domain");
  else
    *out = sbx_buf_take(&text, &len);
  sbx_buf_deinit(&text);
  return rc;
}

/* The domain of the answer replaces the configured one. */
static int read_urls(sbx__e2b_box *box, const sbx_config *config, const sbx_json *root,
                     sbx_err *err) {
  const sbx_json *v = sbx_json_get(root, "domain");
  sbx_slice domain = {NULL, 0};
  if (v != NULL && !sbx_json_is_null(v) && !sbx_json_string(v, &domain))
    return unexpected(err, "domain");
  if (domain.len == 0)
    domain = sbx_slice_str(config->domain != NULL ? config->domain : SBX__E2B_DOMAIN);
  if (!sbx__e2b_is_domain(domain))
    return unexpected(err, "domain");
  int rc = make_url(&box->envd_url, config, box->id, domain, SBX__E2B_ENVD_PORT, err);
  if (rc == SBX_OK)
    rc = make_url(&box->code_url, config, box->id, domain, SBX__E2B_CODE_PORT, err);
  return rc;
}

static int read_box(sbx__e2b_box *box, const sbx_config *config, const sbx_json *root,
                    sbx_err *err) {
  sbx_slice version;
  int rc = read_id(&box->id, root, err);
  if (rc == SBX_OK && !sbx_json_string(sbx_json_get(root, "envdVersion"), &version))
    rc = unexpected(err, "envdVersion");
  if (rc == SBX_OK)
    box->envd_version = read_version(version);
  if (rc == SBX_OK)
    rc = read_token(&box->access_token, root, "envdAccessToken", err);
  if (rc == SBX_OK)
    rc = read_token(&box->traffic_token, root, "trafficAccessToken", err);
  return rc == SBX_OK ? read_urls(box, config, root, err) : rc;
}

/* `rc` says whether the new one is complete. */
static int take_box(sbx_session *session, sbx__e2b_box *box, int rc) {
  sbx__e2b_box old = session->box;
  if (rc == SBX_OK)
    session->box = *box;
  sbx__e2b_box_free(rc == SBX_OK ? &old : box);
  return rc;
}

int sbx__e2b_take_sandbox(sbx_session *session, char *id, sbx_slice reply, sbx_err *err) {
  sbx__e2b_box box = {0};
  sbx_json_doc *doc = NULL;
  sbx_err why;
  int rc = sbx_json_parse(&doc, reply, &why);
  if (rc == SBX_EPROTO)
    return sbx_err_set(err, rc, "e2b: unexpected answer: %s", why.message);
  if (rc == SBX_OK)
    rc = read_box(&box, session->config, sbx_json_root(doc), err);
  else
    sbx_err_copy(err, &why);
  sbx_json_free(doc, true);
  if (rc == SBX_OK && id != NULL)
    rc = sbx_remote_identity_take(&id, sbx_slice_str(box.id), "e2b", err);
  return take_box(session, &box, rc);
}

int sbx__e2b_take_debug(sbx_session *session, sbx_err *err) {
  sbx__e2b_box box = {.id = sbx_strndup(DEBUG_ID, strlen(DEBUG_ID)),
                      .envd_version = SBX__E2B_VERSION(99, 99, 99)};
  int rc = box.id != NULL ? read_urls(&box, session->config, NULL, err)
                          : sbx_err_set(err, SBX_ENOMEM, NULL);
  return take_box(session, &box, rc);
}

/* ---- paths ---------------------------------------------------------------------------------- */

void sbx__e2b_append_path(sbx_buf *out, sbx_slice path) {
  bool is_home = path.len > 0 && path.ptr[0] == '~' && (path.len == 1 || path.ptr[1] == '/');
  bool is_absolute = path.len > 0 && path.ptr[0] == '/';
  if (!is_home && !is_absolute)
    sbx_buf_append_str(out, "./");
  sbx_buf_append_slice(out, path);
}
