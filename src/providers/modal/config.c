/* config.c - the options of the Modal provider.
 *
 *   tokenId, tokenSecret        credentials; both are required
 *   lateAuth     without credentials it is the first use that fails, not the constructor
 *   baseURL      of the control plane ("https://api.modal.com")
 *   proxy, ca    see options.h
 *   environmentName             of Modal
 *   app          under which the sandbox is made ("cloudsandbox"); it is made when it is missing
 *   sandboxId    of an existing sandbox to attach to; it is not terminated unless `owned`
 *   owned        close() terminates it (true without sandboxId)
 *   name         of the sandbox to create
 *   image        of a registry ("python:3.12-slim"), or
 *   imageId      of one that Modal has built
 *   imageBuilderVersion
 *   workdir      absolute
 *   milliCpus, memoryMb
 *   lifetimeSeconds             after which the service ends it (300)
 *   idleTimeoutSeconds
 *   blockNetwork, cidrAllowlist, domainAllowlist
 *   env, tags    objects of strings
 *
 * Invariant: what a create says is settled here, once; so a sandbox that replaces a lost one is
 * made like the first. */
#include "core/alloc.h"
#include "core/err.h"
#include "providers/modal/modal.h"
#include "providers/remote/identity.h"
#include "providers/remote/options.h"

#include <string.h>

#define API_URL "https://api.modal.com"
#define IMAGE "python:3.12-slim"
#define APP "cloudsandbox"

enum {
  MAX_LIFETIME_S = 24 * 60 * 60,
  DEFAULT_LIFETIME_S = 300,
  MAX_MEMORY_MB = 1024 * 1024,
  MAX_MILLI_CPUS = 1024 * 1000,
  MAX_HEADERS = 64 * 1024,
  MAX_FIELDS = 4 * 1024 * 1024,
  MAX_IMAGE = 256,
  NETWORK_BLOCKED = 2,
  NETWORK_ALLOWLIST = 3,
};

// clang-format off
const char *const sbx__modal_options[] = {
    "tokenId", "tokenSecret", "lateAuth", "baseURL", "proxy", "ca", "environmentName", "app",
    "sandboxId", "owned", "name", "image", "imageId", "imageBuilderVersion", "workdir", "milliCpus",
    "memoryMb", "lifetimeSeconds", "idleTimeoutSeconds", "blockNetwork", "cidrAllowlist",
    "domainAllowlist", "env", "tags", NULL};
// clang-format on

/* ---- credentials ---------------------------------------------------------------------------- */

static void put_field(sbx_headers *headers, const char *name, const char *value, sbx_err *err) {
  if (err->code == SBX_OK)
    sbx_headers_add(headers, sbx_slice_str(name), sbx_slice_str(value), err);
}

/* As the vendor's client for JavaScript says it: the service has rules by type and version. */
static void read_credentials(sbx_config *config, const sbx_json *options, sbx_err *err) {
  sbx_headers *headers = &config->headers;
  char *id = NULL, *secret = NULL;
  bool late = false;
  sbx_remote_text(&id, options, "tokenId", err);
  sbx_remote_text(&secret, options, "tokenSecret", err);
  sbx_remote_bool(&late, options, "lateAuth", err);
  config->keyless = id == NULL || secret == NULL;
  if (err->code == SBX_OK && config->keyless && !late)
    sbx_err_set(err, SBX_EKEY, SBX__MODAL_NO_KEY);
  sbx_headers_init(headers, MAX_HEADERS);
  put_field(headers, "x-modal-client-type", "8", err);
  put_field(headers, "x-modal-client-version", "1.0.0", err);
  put_field(headers, "x-modal-libmodal-version", "modal-js/0.11.1", err);
  if (!config->keyless) {
    put_field(headers, "x-modal-token-id", id, err);
    put_field(headers, "x-modal-token-secret", secret, err);
  }
  sbx_free_secret(id);
  sbx_free_secret(secret);
}

/* ---- what a create says --------------------------------------------------------------------- */

static void put_number(sbx_buf *out, uint32_t field, int64_t number) {
  if (number > 0)
    sbx_pb_put_varint(out, field, (uint64_t)number);
}

/* The service expects some empty messages. */
static void read_resources(sbx_buf *out, const sbx_json *options, sbx_err *err) {
  int64_t memory = 0, cpus = 0;
  sbx_remote_int(&memory, options, "memoryMb", 1, MAX_MEMORY_MB, err);
  sbx_remote_int(&cpus, options, "milliCpus", 1, MAX_MILLI_CPUS, err);
  size_t at = out->len;
  put_number(out, 2, memory);
  put_number(out, 3, cpus);
  sbx_pb_put_bytes(out, 4, sbx_slice_of("", 0));
  sbx_pb_wrap(out, 5, at);
}

/* The texts of an array, each as a field. False: there is none. */
static bool put_list(sbx_buf *out, uint32_t field, const sbx_json *options, const char *name,
                     sbx_err *err) {
  const sbx_json *list = sbx_json_get(options, name);
  sbx_slice text;
  if (list == NULL || err->code != SBX_OK)
    return false;
  if (!sbx_json_is_array(list))
    sbx_err_set(err, SBX_EINVAL, "%s must be an array of strings", name);
  for (const sbx_json *item = NULL;
       err->code == SBX_OK && (item = sbx_json_next(list, item, NULL)) != NULL;) {
    if (!sbx_json_string(item, &text) || text.len == 0)
      sbx_err_set(err, SBX_EINVAL, "%s must be an array of strings", name);
    else
      sbx_pb_put_bytes(out, field, text);
  }
  return true;
}

static void read_network(sbx_buf *out, const sbx_json *options, sbx_err *err) {
  bool blocked = false;
  sbx_buf lists;
  sbx_buf_init(&lists, MAX_FIELDS);
  sbx_remote_bool(&blocked, options, "blockNetwork", err);
  bool listed = put_list(&lists, 2, options, "cidrAllowlist", err);
  listed = put_list(&lists, 3, options, "domainAllowlist", err) || listed;
  if (err->code == SBX_OK && blocked && listed)
    sbx_err_set(err, SBX_EINVAL, "give blockNetwork, or a list of what is allowed, not both");
  if (blocked || listed) {
    size_t at = out->len;
    sbx_pb_put_varint(out, 1, blocked ? NETWORK_BLOCKED : NETWORK_ALLOWLIST);
    sbx_buf_append_slice(out, sbx_buf_slice(&lists));
    sbx_pb_wrap(out, 22, at);
    if (lists.error != SBX_OK)
      out->error = lists.error;
  }
  sbx_buf_deinit(&lists);
}

static void put_option(sbx_buf *out, uint32_t field, const sbx_json *options, const char *name,
                       sbx_err *err) {
  char *text = NULL;
  if (sbx_remote_text(&text, options, name, err) == SBX_OK && text != NULL)
    sbx_pb_put_str(out, field, text);
  sbx_free(text);
}

static void read_definition(sbx_config *config, const sbx_json *options, sbx_err *err) {
  sbx_buf *out = &config->definition;
  int64_t lifetime = DEFAULT_LIFETIME_S, idle = 0;
  sbx_remote_int(&lifetime, options, "lifetimeSeconds", 1, MAX_LIFETIME_S, err);
  sbx_remote_int(&idle, options, "idleTimeoutSeconds", 1, MAX_LIFETIME_S, err);
  sbx_buf_init(out, MAX_FIELDS);
  read_resources(out, options, err);
  put_number(out, 7, lifetime);
  put_option(out, 8, options, "workdir", err);
  sbx_pb_put_bytes(out, 20, sbx_slice_of("", 0));
  read_network(out, options, err);
  put_option(out, 30, options, "name", err);
  put_number(out, 33, idle);
}

static void put_map(sbx_buf *out, uint32_t field, const sbx_json *map) {
  sbx_slice name, value;
  for (const sbx_json *item = NULL; (item = sbx_json_next(map, item, &name)) != NULL;) {
    if (sbx_json_string(item, &value))
      sbx_pb_put_pair(out, field, name, value);
  }
}

/* The tags of the user, and the variables, which every process in the sandbox has. */
static void read_maps(sbx_config *config, const sbx_json *options, sbx_err *err) {
  const sbx_json *env = NULL, *tags = NULL;
  sbx_buf *out = &config->tags;
  sbx_buf_init(out, MAX_FIELDS);
  if (sbx_remote_map(&tags, options, "tags", err) == SBX_OK && tags != NULL)
    put_map(out, 4, tags);
  if (sbx_remote_map(&env, options, "env", err) != SBX_OK || sbx_json_count(env) == 0)
    return;
  size_t at = out->len;
  put_map(out, 1, env);
  sbx_pb_wrap(out, 2, at); /* SecretSource.env */
  sbx_pb_wrap(out, 6, at);
}

/* ---- where and what ------------------------------------------------------------------------- */

static void read_default(char **out, const sbx_json *options, const char *name,
                         const char *fallback, sbx_err *err) {
  sbx_remote_text(out, options, name, err);
  if (err->code == SBX_OK && *out == NULL &&
      (*out = sbx_strndup(fallback, strlen(fallback))) == NULL)
    sbx_err_set(err, SBX_ENOMEM, NULL);
}

static void check_id(const char *id, const char *name, sbx_err *err) {
  if (id != NULL && err->code == SBX_OK && !sbx_remote_identity_is_id(sbx_slice_str(id)))
    sbx_err_set(err, SBX_EINVAL, "%s is not an id of Modal's", name);
}

static void read_place(sbx_config *config, const sbx_json *options, sbx_err *err) {
  sbx_remote_url(&config->server_url, options, "baseURL", err);
  if (err->code == SBX_OK && config->server_url == NULL &&
      (config->server_url = sbx_strndup(API_URL, sizeof API_URL - 1)) == NULL)
    sbx_err_set(err, SBX_ENOMEM, NULL);
  read_default(&config->app, options, "app", APP, err);
  read_default(&config->image, options, "image", IMAGE, err);
  sbx_remote_text(&config->environment, options, "environmentName", err);
  sbx_remote_text(&config->image_id, options, "imageId", err);
  sbx_remote_text(&config->builder, options, "imageBuilderVersion", err);
  sbx_remote_text(&config->attach, options, "sandboxId", err);
  check_id(config->image_id, "imageId", err);
  check_id(config->attach, "sandboxId", err);
  if (err->code == SBX_OK && strlen(config->image) > MAX_IMAGE)
    sbx_err_set(err, SBX_EINVAL, "image is longer than %d characters", MAX_IMAGE);
  if (err->code == SBX_OK && config->image_id != NULL && sbx_json_get(options, "image") != NULL)
    sbx_err_set(err, SBX_EINVAL, "give image or imageId, not both");
  config->owned = config->attach == NULL;
  sbx_remote_bool(&config->owned, options, "owned", err);
  if (err->code == SBX_OK && config->attach == NULL && !config->owned)
    sbx_err_set(err, SBX_EINVAL, "owned: false is for an existing sandbox (sandboxId)");
}

/* ---- the whole ------------------------------------------------------------------------------ */

void sbx__modal_config_free(sbx_config *config) {
  sbx_http_client_free(config->http);
  sbx_headers_deinit(&config->headers);
  sbx_free(config->server_url);
  sbx_free(config->app);
  sbx_free(config->environment);
  sbx_free(config->image);
  sbx_free(config->image_id);
  sbx_free(config->builder);
  sbx_free(config->attach);
  sbx_buf_deinit(&config->definition);
  if (config->tags.ptr != NULL)
    sbx_wipe(config->tags.ptr, config->tags.len); /* variables may be secrets */
  sbx_buf_deinit(&config->tags);
  sbx_free(config);
}

int sbx__modal_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options,
                         sbx_err *err) {
  config->loop = loop;
  read_credentials(config, options, err);
  read_place(config, options, err);
  read_definition(config, options, err);
  read_maps(config, options, err);
  int rc = config->definition.error != SBX_OK ? config->definition.error : config->tags.error;
  if (err->code == SBX_OK && rc != SBX_OK)
    sbx_err_set(err, rc, rc == SBX_ETOOBIG ? "the options are too large" : NULL);
  return sbx_remote_client(&config->http, loop, options, SBX_HTTP_2_NEEDED, err);
}
