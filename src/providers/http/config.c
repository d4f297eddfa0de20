/* config.c - the options of the http provider, and the manifest that they make.
 *
 *   baseURL      address of the service; required
 *   token        sent as "Authorization: Bearer ..."
 *   headers      object of strings, sent with every request
 *   proxy, ca    see options.h
 *   sandboxId    id of an existing session to attach to; it is not deleted unless `owned`
 *   owned        close() deletes it (true without sandboxId)
 *   workingDir   absolute path in the sandbox ("/workspace"; with sandboxId: the service's own)
 *   image        what the service makes a session from
 *   env          object of strings
 *   network      "deny" (the default) or "allow"
 *   allowedHosts, deniedHosts    arrays of host names
 *   cpu, memory  text, such as "1.5" and "512m"
 *   gpu          boolean */
#include "providers/http/service.h"

#include "core/alloc.h"
#include "core/err.h"
#include "providers/remote/options.h"

#include <string.h>

enum { MAX_HEADERS = 64 * 1024 };

// clang-format off
const char *const sbx__hs_options[] = {
    "baseURL", "token", "headers", "proxy", "ca", "sandboxId", "owned", "workingDir", "image",
    "env", "network", "allowedHosts", "deniedHosts", "cpu", "memory", "gpu", NULL};

/* What this package says by itself; without a token the first is one's own. */
static const char *const our_headers[] = {
    "authorization", "content-type", "content-length", "transfer-encoding", "connection", "expect",
    "accept-encoding", NULL};
// clang-format on

static void read_headers(sbx_config *config, const sbx_json *options, sbx_err *err) {
  char *token = NULL;
  sbx_headers_init(&config->headers, MAX_HEADERS);
  sbx_remote_text(&token, options, "token", err);
  if (token != NULL)
    sbx_remote_bearer(&config->headers, token, err);
  sbx_remote_headers(&config->headers, options, "headers", our_headers + (token == NULL), err);
  sbx_free_secret(token);
}

/* ---- manifest ------------------------------------------------------------------------------- */

static const sbx_remote_member image[] = {{"image", "image", SBX_REMOTE_TEXT, 0, 0, "null"}};
static const sbx_remote_member network[] = {
    {"network", "default", SBX_REMOTE_TEXT, 0, 0, "\"deny\""},
    {"allowedHosts", "allowed_hosts", SBX_REMOTE_TEXTS, 0, 0, "[]"},
    {"deniedHosts", "denied_hosts", SBX_REMOTE_TEXTS, 0, 0, "[]"},
};
static const sbx_remote_member resources[] = {
    {"cpu", "cpu", SBX_REMOTE_TEXT, 0, 0, "null"},
    {"memory", "memory", SBX_REMOTE_TEXT, 0, 0, "null"},
    {"gpu", "gpu", SBX_REMOTE_FLAG, 0, 0, "false"},
};

/* All members are always there. */
static void put_manifest(sbx_json_out *json, const char *dir, const sbx_json *options,
                         sbx_err *err) {
  const sbx_json *env = NULL;
  sbx_slice word = sbx_slice_str("deny");
  sbx_json_string(sbx_json_get(options, "network"), &word);
  if (err->code == SBX_OK && !sbx_slice_eq_str(word, "deny") && !sbx_slice_eq_str(word, "allow"))
    sbx_err_set(err, SBX_EINVAL, "network must be \"deny\" or \"allow\"");
  sbx_remote_put_members(json, image, 1, options, err);
  sbx_json_put_text(json, "working_dir", sbx_slice_str(dir));
  sbx_remote_map(&env, options, "env", err);
  sbx_json_put_name(json, sbx_slice_str("environment"));
  sbx_remote_begin_map(json, err->code == SBX_OK ? env : NULL);
  sbx_json_end_object(json);
  sbx_json_put_name(json, sbx_slice_str("network"));
  sbx_json_begin_object(json);
  sbx_remote_put_members(json, network, sizeof network / sizeof *network, options, err);
  sbx_json_end_object(json);
  sbx_json_put_name(json, sbx_slice_str("resources"));
  sbx_json_begin_object(json);
  sbx_remote_put_members(json, resources, sizeof resources / sizeof *resources, options, err);
  sbx_json_end_object(json);
}

static void make_create(sbx_config *config, const sbx_json *options, sbx_err *err) {
  sbx_buf text;
  sbx_json_out json;
  size_t len;
  sbx_buf_init(&text, (size_t)4 << 20);
  sbx_json_out_init(&json, &text);
  sbx_json_begin_object(&json);
  sbx_json_put_name(&json, sbx_slice_str("manifest"));
  sbx_json_begin_object(&json);
  put_manifest(&json, config->dir != NULL ? config->dir : "/", options, err);
  sbx_json_end_object(&json);
  sbx_json_end_object(&json);
  if (err->code == SBX_OK && text.error != SBX_OK)
    sbx_err_set(err, text.error, text.error == SBX_ETOOBIG ? "the options are too large" : NULL);
  config->create_body = sbx_buf_take(&text, &len);
  sbx_buf_deinit(&text);
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void read_dir(sbx_config *config, const sbx_json *options, sbx_err *err) {
  sbx_remote_text(&config->dir, options, "workingDir", err);
  if (err->code == SBX_OK && config->dir == NULL && config->attach == NULL &&
      (config->dir = sbx_strndup("/workspace", sizeof "/workspace" - 1)) == NULL)
    sbx_err_set(err, SBX_ENOMEM, NULL);
  if (config->dir == NULL || err->code != SBX_OK)
    return;
  size_t len = strlen(config->dir);
  while (len > 1 && config->dir[len - 1] == '/')
    config->dir[--len] = '\0';
  if (config->dir[0] != '/' || !sbx__hs_is_plain(sbx_slice_str(config->dir + 1)))
    sbx_err_set(err, SBX_EINVAL,
                "workingDir must be an absolute path without \".\" or \"..\", such as /workspace");
}

int sbx__hs_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options, sbx_err *err) {
  config->loop = loop;
  read_headers(config, options, err);
  sbx_remote_url(&config->url, options, "baseURL", err);
  if (err->code == SBX_OK && config->url == NULL)
    sbx_err_set(err, SBX_EINVAL, "baseURL must be given: the address of your sandbox service");
  sbx_remote_text(&config->attach, options, "sandboxId", err);
  sbx_remote_bool(&config->owned, options, "owned", err);
  config->owned = config->owned || config->attach == NULL;
  read_dir(config, options, err);
  make_create(config, options, err);
  return sbx_remote_client(&config->http, loop, options, SBX_HTTP_2, err);
}

void sbx__hs_config_free(sbx_config *config) {
  sbx_http_client_free(config->http);
  sbx_headers_deinit(&config->headers);
  sbx_free(config->url);
  sbx_free(config->attach);
  sbx_free(config->dir);
  sbx_free_secret(config->create_body);
  sbx_free(config);
}
