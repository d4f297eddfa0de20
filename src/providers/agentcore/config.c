/* config.c - the options of the AgentCore provider.
 *
 *   accessKeyId, secretAccessKey, sessionToken    credentials, the last of temporary ones
 *   containerUrl, containerPass   or the address that gives them, and its password
 *   instanceUrl  or the base of an instance's metadata service
 *                Without any of these it is the first use that fails.
 *   region       such as "us-west-2"; required
 *   baseURL      of the service (that of the region)
 *   codeInterpreter    its identifier, or ARN ("aws.codeinterpreter.v1")
 *   proxy, ca    see options.h
 *   sandboxId    id of an existing session to attach to; it is not stopped unless `owned`
 *   owned        close() stops it (true without sandboxId)
 *   name         what the name of a session begins with
 *   lifetimeSeconds    after which the service ends it (900)
 *   env          object of strings */
#include "core/alloc.h"
#include "core/err.h"
#include "core/url.h"
#include "providers/agentcore/agentcore.h"
#include "providers/remote/options.h"

#include <string.h>

enum { MAX_HEADERS = 64 * 1024, MAX_LIFETIME_S = 8 * 60 * 60, MAX_NAME = 60 };

// clang-format off
const char *const sbx__ac_options[] = {
    "accessKeyId", "secretAccessKey", "sessionToken", "containerUrl", "containerPass",
    "instanceUrl", "region", "baseURL", "codeInterpreter", "proxy", "ca", "sandboxId", "owned",
    "name", "lifetimeSeconds", "env", NULL};
// clang-format on

/* ---- credentials ---------------------------------------------------------------------------- */

static void read_keys(sbx_config *config, const sbx_json *options, sbx_err *err) {
  sbx__ac_keys *keys = &config->keys;
  char *container = NULL, *instance = NULL;
  sbx_remote_text(&keys->id, options, "accessKeyId", err);
  sbx_remote_text(&keys->secret, options, "secretAccessKey", err);
  sbx_remote_text(&keys->token, options, "sessionToken", err);
  sbx_remote_url(&container, options, "containerUrl", err);
  sbx_remote_text(&keys->pass, options, "containerPass", err);
  sbx_remote_url(&instance, options, "instanceUrl", err);
  if (err->code == SBX_OK && (keys->id == NULL) != (keys->secret == NULL))
    sbx_err_set(err, SBX_EINVAL, "accessKeyId and secretAccessKey must be given together");
  keys->source = keys->secret != NULL ? SBX__AC_GIVEN
                 : container != NULL  ? SBX__AC_CONTAINER
                 : instance != NULL   ? SBX__AC_INSTANCE
                                      : SBX__AC_NONE;
  keys->url = container != NULL ? container : instance;
  if (container != NULL)
    sbx_free(instance);
}

/* What gives credentials is asked directly, whatever the environment says of proxies. */
static void make_keys_client(sbx_config *config, const sbx_json *options, sbx_err *err) {
  sbx_http_options http = {.version = SBX_HTTP_1_1, .no_proxy = true};
  if (config->keys.url == NULL || sbx_remote_http_options(&http, options, err) != SBX_OK)
    return;
  if (config->loop != NULL)
    sbx_http_client_get(&config->keys.http, config->loop, &http, err);
  else
    sbx_http_client_new(&config->keys.http, &http, err);
}

/* ---- the place ------------------------------------------------------------------------------ */

/* It becomes a part of a host's name. */
static bool is_region(const char *region) {
  size_t len = strlen(region), hyphens = 0;
  for (size_t i = 0; i < len; i++) {
    char c = region[i];
    if (!(c >= 'a' && c <= 'z') && !sbx_is_digit(c) && c != '-')
      return false;
    hyphens += c == '-';
  }
  return len <= 40 && hyphens >= 2 && region[0] != '-' && sbx_is_digit(region[len - 1]);
}

static void read_url(sbx_config *config, const sbx_json *options, sbx_err *err) {
  char *base = NULL, *identifier = NULL;
  sbx_buf url;
  size_t len;
  sbx_remote_url(&base, options, "baseURL", err);
  sbx_remote_text(&identifier, options, "codeInterpreter", err);
  sbx_buf_init(&url, SBX__AC_URL_MAX / 2);
  if (base != NULL)
    sbx_buf_append_str(&url, base);
  else if (config->region != NULL)
    sbx_buf_appendf(&url, "https://bedrock-agentcore.%s.amazonaws.com%s", config->region,
                    strncmp(config->region, "cn-", 3) == 0 ? ".cn" : "");
  sbx_buf_append_str(&url, "/code-interpreters");
  sbx_url_append_segment(&url,
                         sbx_slice_str(identifier != NULL ? identifier : "aws.codeinterpreter.v1"));
  if (err->code == SBX_OK && url.error != SBX_OK)
    sbx_err_set(err, url.error, url.error == SBX_ENOMEM ? NULL : "codeInterpreter is none");
  config->url = sbx_buf_take(&url, &len);
  sbx_buf_deinit(&url);
  sbx_free(base);
  sbx_free(identifier);
}

static void read_place(sbx_config *config, const sbx_json *options, sbx_err *err) {
  sbx_remote_text(&config->region, options, "region", err);
  if (err->code == SBX_OK && (config->region == NULL || !is_region(config->region)))
    sbx_err_set(err, SBX_EINVAL, "region must be one of AWS's, such as us-west-2");
  read_url(config, options, err);
  sbx_remote_text(&config->attach, options, "sandboxId", err);
  config->owned = config->attach == NULL;
  sbx_remote_bool(&config->owned, options, "owned", err);
  if (err->code == SBX_OK && config->attach == NULL && !config->owned)
    sbx_err_set(err, SBX_EINVAL, "owned: false is for an existing session (sandboxId)");
}

/* ---- what a create says, and a command ------------------------------------------------------ */

static void read_create(sbx_config *config, const sbx_json *options, sbx_err *err) {
  int64_t lifetime = 900;
  sbx_buf text;
  size_t len;
  sbx_remote_int(&lifetime, options, "lifetimeSeconds", 1, MAX_LIFETIME_S, err);
  sbx_remote_text(&config->name, options, "name", err);
  if (err->code == SBX_OK && config->name != NULL && strlen(config->name) > MAX_NAME)
    sbx_err_set(err, SBX_EINVAL, "name: at most %d characters, since ours come behind it",
                MAX_NAME);
  sbx_buf_init(&text, SBX__AC_URL_MAX);
  sbx_buf_appendf(&text, "{\"sessionTimeoutSeconds\":%lld", (long long)lifetime);
  config->create_body = sbx_buf_take(&text, &len);
  if (err->code == SBX_OK && config->create_body == NULL)
    sbx_err_set(err, SBX_ENOMEM, NULL);
  sbx_buf_deinit(&text);
}

static int copy_env(sbx_config *config, const sbx_json *env, sbx_err *err) {
  sbx_buf text;
  sbx_json_out json;
  sbx_buf_init(&text, (size_t)8 << 20);
  sbx_json_out_init(&json, &text);
  sbx_remote_begin_map(&json, env);
  sbx_json_end_object(&json);
  int rc = text.error != SBX_OK ? sbx_err_set(err, text.error, NULL)
                                : sbx_json_parse(&config->env_doc, sbx_buf_slice(&text), err);
  if (text.len > 0)
    sbx_wipe(text.ptr, text.len);
  sbx_buf_deinit(&text);
  return rc;
}

static void read_env(sbx_config *config, const sbx_json *options, sbx_err *err) {
  const sbx_json *env = NULL;
  if (sbx_remote_map(&env, options, "env", err) != SBX_OK || sbx_json_count(env) == 0 ||
      copy_env(config, env, err) != SBX_OK)
    return;
  const sbx_json *copy = sbx_json_root(config->env_doc);
  config->env = sbx_calloc(sbx_json_count(copy), sizeof *config->env);
  if (config->env == NULL) {
    sbx_err_set(err, SBX_ENOMEM, NULL);
    return;
  }
  sbx_slice name;
  for (const sbx_json *v = sbx_json_next(copy, NULL, &name); v != NULL;
       v = sbx_json_next(copy, v, &name)) {
    sbx_env_var *var = &config->env[config->env_count++];
    var->name = name;
    sbx_json_string(v, &var->value);
  }
}

/* ---- the whole ------------------------------------------------------------------------------ */

void sbx__ac_config_free(sbx_config *config) {
  sbx_http_client_free(config->http);
  sbx_headers_deinit(&config->headers);
  sbx__ac_keys_free(&config->keys);
  sbx_json_free(config->env_doc, true);
  sbx_free(config->env);
  sbx_free(config->region);
  sbx_free(config->url);
  sbx_free(config->attach);
  sbx_free(config->name);
  sbx_free(config->create_body);
  sbx_free(config);
}

int sbx__ac_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options, sbx_err *err) {
  config->loop = loop;
  sbx_headers_init(&config->headers, MAX_HEADERS);
  sbx_headers_add(&config->headers, sbx_slice_str("User-Agent"), sbx_slice_str("cloudsandbox"),
                  err);
  read_keys(config, options, err);
  read_place(config, options, err);
  read_create(config, options, err);
  read_env(config, options, err);
  make_keys_client(config, options, err);
  return sbx_remote_client(&config->http, loop, options, SBX_HTTP_2, err);
}
