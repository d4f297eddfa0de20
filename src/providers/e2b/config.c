/* config.c - the options of the E2B provider.
 *
 *   apiKey            required, unless `debug`
 *   lateAuth          without a key it is the first use that fails
 *   domain            "e2b.app"; where the two hosts are, unless given by
 *   baseURL           the control plane
 *   sandboxUrl        what serves all sandboxes
 *   template          "base"; name or id
 *   lifetimeSeconds   300; the provider ends the sandbox after that long
 *   metadata, env     objects of strings
 *   network           object, passed on as it is; allowInternetAccess, secure  booleans
 *   autoPause, autoResume  booleans: pause at the end of the lifetime; requests wake it up
 *   sandboxId         an existing sandbox to use in place of a new one; owned: close deletes it
 *   interpreter       boolean; default: the template's name begins with "code-interpreter"
 *   headers           object of strings, sent to both hosts
 *   proxy, ca         URL; certificates in PEM
 *   debug             everything is on this machine
 *
 * Invariant: what comes out of here can be sent as it is; nothing of it is ever in a message. */
#include "providers/e2b/config.h"

#include "core/alloc.h"
#include "core/err.h"
#include "providers/remote/options.h"

#include <string.h>

enum {
  DEFAULT_LIFETIME_S = 300,
  MAX_LIFETIME_S = 24 * 60 * 60,
  MAX_DOMAIN = 253,
  MAX_CREATE = 1024 * 1024,
  MAX_DEPTH = 16,
  MAX_NAMES = 64 * 1024,
  MAX_HEADERS = 32 * 1024,
};

/* ---- single members ------------------------------------------------------------------------- */

int sbx__e2b_missing_key(sbx_err *err) {
  return sbx_err_set(err, SBX_EKEY,
                     "missing API key; set E2B_API_KEY or pass apiKey. Keys are made at "
                     "https://e2b.dev/dashboard?tab=keys");
}

static int read_key(sbx_config *config, const sbx_json *options, sbx_err *err) {
  bool late = false;
  int rc = sbx_remote_text(&config->api_key, options, "apiKey", err);
  if (rc == SBX_OK)
    rc = sbx_remote_bool(&late, options, "lateAuth", err);
  if (rc != SBX_OK)
    return rc;
  if (config->api_key == NULL && !late && !config->debug)
    return sbx__e2b_missing_key(err);
  for (const char *c = config->api_key; c != NULL && *c != '\0'; c++) {
    if (*c <= ' ' || *c > '~')
      return sbx_err_set(err, SBX_EINVAL,
                         "the API key has a blank, a line end or another character that no key "
                         "has; copy it again");
  }
  return SBX_OK;
}

bool sbx__e2b_is_domain(sbx_slice text) {
  bool ok = text.len > 0 && text.len <= MAX_DOMAIN;
  for (size_t i = 0; ok && i < text.len; i++)
    ok = sbx_is_letter(text.ptr[i]) || sbx_is_digit(text.ptr[i]) || text.ptr[i] == '-' ||
         text.ptr[i] == '.';
  return ok;
}

/* Ids stand in paths and host names. */
bool sbx__e2b_cut_id(sbx_slice *id) {
  id->len = sbx_slice_find(*id, '-');
  bool ok = id->len > 0;
  for (size_t i = 0; ok && i < id->len; i++)
    ok = (id->ptr[i] >= 'a' && id->ptr[i] <= 'z') || sbx_is_digit(id->ptr[i]);
  return ok;
}

static int read_attach_id(sbx_config *config, const sbx_json *options, sbx_err *err) {
  int rc = sbx_remote_text(&config->attach_id, options, "sandboxId", err);
  if (rc != SBX_OK || config->attach_id == NULL)
    return rc;
  sbx_slice id = sbx_slice_str(config->attach_id);
  if (!sbx__e2b_cut_id(&id))
    return sbx_err_set(err, SBX_EINVAL,
                       "sandboxId must be an id such as \"i3kq0z7v1x9a8b2c4d5e6\"");
  config->attach_id[id.len] = '\0';
  return SBX_OK;
}

/* ---- headers -------------------------------------------------------------------------------- */

static bool is_ours(sbx_slice name) {
  static const char *const names[] = {
      "x-api-key",      "x-access-token",   "e2b-traffic-access-token", "e2b-sandbox-id",
      "content-type",   "e2b-sandbox-port", "connect-protocol-version", "connect-timeout-ms",
      "content-length", "authorization",    "keepalive-ping-interval",  "transfer-encoding",
      "host",           "expect",           "accept-encoding",          "connection"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (sbx_slice_eq_nocase(name, sbx_slice_str(names[i])))
      return true;
  }
  return false;
}

static int read_headers(sbx_config *config, const sbx_json *options, sbx_err *err) {
  const sbx_json *map;
  sbx_slice name, value = {NULL, 0};
  sbx_err why;
  int rc = sbx_remote_map(&map, options, "headers", err);
  for (const sbx_json *v = rc == SBX_OK ? sbx_json_next(map, NULL, &name) : NULL; v != NULL;
       v = sbx_json_next(map, v, &name)) {
    sbx_json_string(v, &value);
    rc = is_ours(name) ? sbx_err_set(&why, SBX_EINVAL, "this package sets it itself")
                       : sbx_headers_add(&config->headers, name, value, &why);
    if (rc == SBX_OK)
      continue;
    sbx_err_set(err, rc, "headers: ");
    sbx_err_append_remote(err, name);
    sbx_err_append(err, ": %s", why.message);
    return rc;
  }
  return rc;
}

/* ---- the create request --------------------------------------------------------------------- */

/* Copies a value; what is no JSON of a request (a fraction, too deep) makes `ok` false. */
static void copy_json(sbx_json_out *out, const sbx_json *v, int depth, bool *ok) {
  sbx_slice text;
  bool flag;
  int64_t number;
  if (sbx_json_string(v, &text)) {
    sbx_json_put_string(out, text);
  } else if (sbx_json_bool(v, &flag)) {
    sbx_json_put_bool(out, flag);
  } else if (sbx_json_int(v, INT64_MIN / 1024, INT64_MAX / 1024, &number)) {
    sbx_json_put_int(out, number);
  } else if (sbx_json_is_null(v)) {
    sbx_json_put_null(out);
  } else if (depth > 0 && sbx_json_is_array(v)) {
    sbx_json_begin_array(out);
    for (const sbx_json *item = sbx_json_next(v, NULL, NULL); item != NULL;
         item = sbx_json_next(v, item, NULL))
      copy_json(out, item, depth - 1, ok);
    sbx_json_end_array(out);
  } else if (depth > 0 && sbx_json_is_object(v)) {
    sbx_json_begin_object(out);
    for (const sbx_json *item = sbx_json_next(v, NULL, &text); item != NULL;
         item = sbx_json_next(v, item, &text)) {
      sbx_json_put_name(out, text);
      copy_json(out, item, depth - 1, ok);
    }
    sbx_json_end_object(out);
  } else {
    *ok = false;
    sbx_json_put_null(out);
  }
}

/* A profile must not change what the options say, so commands are told of these. */
static int take_names(sbx_config *config, const sbx_json *env, sbx_err *err) {
  sbx_buf names;
  sbx_slice name;
  size_t len;
  sbx_buf_init(&names, MAX_NAMES);
  for (const sbx_json *v = sbx_json_next(env, NULL, &name); v != NULL;
       v = sbx_json_next(env, v, &name)) {
    if (!sbx_provider_is_env_name(name))
      continue;
    sbx_buf_append_str(&names, names.len > 0 ? " " : "");
    sbx_buf_append_slice(&names, name);
  }
  int rc = names.error;
  if (rc == SBX_OK && names.len > 0)
    config->env_names = sbx_buf_take(&names, &len);
  sbx_buf_deinit(&names);
  return rc == SBX_OK ? SBX_OK
                      : sbx_err_set(err, rc, rc == SBX_ETOOBIG ? "env has too many names" : NULL);
}

/* `env` and `network`; each is left out when it is not given. */
static int copy_objects(sbx_json_out *out, sbx_config *config, const sbx_json *options,
                        sbx_err *err) {
  const sbx_json *env;
  const sbx_json *network = sbx_json_get(options, "network");
  bool ok = network == NULL || sbx_json_is_object(network);
  int rc = sbx_remote_map(&env, options, "env", err);
  if (rc == SBX_OK)
    rc = take_names(config, env, err);
  if (rc != SBX_OK)
    return rc;
  if (env != NULL) {
    sbx_json_put_name(out, sbx_slice_str("envVars"));
    copy_json(out, env, 1, &ok);
  }
  if (network != NULL) {
    sbx_json_put_name(out, sbx_slice_str("network"));
    copy_json(out, network, MAX_DEPTH, &ok);
  }
  return ok ? SBX_OK
            : sbx_err_set(err, SBX_EINVAL,
                          "network must be an object of strings, whole numbers, booleans, arrays "
                          "and objects");
}

/* Booleans, each left out when it is not given. */
static int copy_flags(sbx_json_out *out, const sbx_json *options, sbx_err *err) {
  static const char *const names[][2] = {{"allowInternetAccess", "allow_internet_access"},
                                         {"autoPause", "autoPause"},
                                         {"autoResume", "autoResume"}};
  int rc = SBX_OK;
  for (size_t i = 0; rc == SBX_OK && i < sizeof names / sizeof *names; i++) {
    bool value = false;
    bool nested = strcmp(names[i][0], "autoResume") == 0; /* {"enabled": ...} */
    rc = sbx_remote_bool(&value, options, names[i][0], err);
    if (rc != SBX_OK || sbx_json_get(options, names[i][0]) == NULL)
      continue;
    sbx_json_put_name(out, sbx_slice_str(names[i][1]));
    if (nested)
      sbx_json_begin_object(out);
    if (nested)
      sbx_json_put_name(out, sbx_slice_str("enabled"));
    sbx_json_put_bool(out, value);
    if (nested)
      sbx_json_end_object(out);
  }
  return rc;
}

/* Takes the text out of the buffer, without its braces. */
static int take_members(char **out, sbx_buf *buf, const char *what, sbx_err *err) {
  if (buf->error != SBX_OK)
    return sbx_err_set(err, buf->error == SBX_ETOOBIG ? SBX_EINVAL : buf->error,
                       buf->error == SBX_ETOOBIG ? "the options %s are too large" : NULL, what);
  *out = sbx_strndup(buf->ptr + 1, buf->len - 2);
  return *out != NULL ? SBX_OK : sbx_err_set(err, SBX_ENOMEM, NULL);
}

static int make_create(sbx_config *config, const sbx_json *options, sbx_err *err) {
  sbx_buf buf;
  sbx_json_out out;
  sbx_slice name = sbx_slice_str("base");
  sbx_buf_init(&buf, MAX_CREATE);
  sbx_json_out_init(&out, &buf);
  sbx_json_string(sbx_json_get(options, "template"), &name);
  sbx_json_begin_object(&out);
  sbx_json_put_name(&out, sbx_slice_str("templateID"));
  sbx_json_put_string(&out, name);
  sbx_json_put_name(&out, sbx_slice_str("timeout"));
  sbx_json_put_int(&out, config->lifetime_s);
  int rc = copy_objects(&out, config, options, err);
  if (rc == SBX_OK)
    rc = copy_flags(&out, options, err);
  sbx_json_end_object(&out);
  if (rc == SBX_OK)
    rc = take_members(&config->create_json, &buf, "of the sandbox", err);
  if (buf.ptr != NULL)
    sbx_wipe(buf.ptr, buf.len); /* `env` may hold secrets */
  sbx_buf_deinit(&buf);
  return rc;
}

static int make_metadata(sbx_config *config, const sbx_json *options, sbx_err *err) {
  const sbx_json *metadata;
  sbx_buf buf;
  sbx_json_out out;
  bool ok = true;
  int rc = sbx_remote_map(&metadata, options, "metadata", err);
  if (rc != SBX_OK || metadata == NULL)
    return rc;
  if (sbx_json_get(metadata, SBX__E2B_TAG_NAME) != NULL)
    return sbx_err_set(err, SBX_EINVAL, "metadata: the name " SBX__E2B_TAG_NAME " is taken");
  sbx_buf_init(&buf, MAX_CREATE);
  sbx_json_out_init(&out, &buf);
  copy_json(&out, metadata, 1, &ok);
  rc = take_members(&config->metadata_json, &buf, "metadata", err);
  sbx_buf_deinit(&buf);
  return rc;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int make_api_url(sbx_config *config, sbx_err *err) {
  sbx_buf url;
  size_t len;
  sbx_buf_init(&url, MAX_DOMAIN + 32);
  if (config->debug)
    sbx_buf_append_str(&url, "http://localhost:3000");
  else
    sbx_buf_appendf(&url, "https://api.%s", config->domain);
  if (url.error == SBX_OK)
    config->api_url = sbx_buf_take(&url, &len);
  sbx_buf_deinit(&url);
  return config->api_url != NULL ? SBX_OK : sbx_err_set(err, SBX_ENOMEM, NULL);
}

static int read_addresses(sbx_config *config, const sbx_json *options, sbx_err *err) {
  static const char domain[] = "e2b.app";
  config->domain = sbx_strndup(domain, sizeof domain - 1);
  if (config->domain == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  int rc = sbx_remote_text(&config->domain, options, "domain", err);
  if (rc == SBX_OK && !sbx__e2b_is_domain(sbx_slice_str(config->domain)))
    rc = sbx_err_set(err, SBX_EINVAL, "domain must be a host name such as \"e2b.app\"");
  if (rc == SBX_OK)
    rc = sbx_remote_url(&config->api_url, options, "baseURL", err);
  if (rc == SBX_OK)
    rc = sbx_remote_url(&config->sandbox_url, options, "sandboxUrl", err);
  if (rc == SBX_OK && config->api_url == NULL)
    rc = make_api_url(config, err);
  return rc == SBX_OK
             ? sbx_remote_check_safe(config->sandbox_url, config->api_url, "sandboxUrl", err)
             : rc;
}

static int read_template(sbx_config *config, const sbx_json *options, sbx_err *err) {
  char *name = NULL;
  int rc = sbx_remote_text(&name, options, "template", err);
  if (rc == SBX_OK && name != NULL)
    config->interpreter =
        sbx_slice_starts_with(sbx_slice_str(name), sbx_slice_str("code-interpreter"));
  sbx_free(name);
  return rc == SBX_OK ? sbx_remote_bool(&config->interpreter, options, "interpreter", err) : rc;
}

/* How it lives and ends. */
static int read_life(sbx_config *config, const sbx_json *options, sbx_err *err) {
  bool secure = true;
  int64_t lifetime = DEFAULT_LIFETIME_S;
  int rc = sbx_remote_int(&lifetime, options, "lifetimeSeconds", 1, MAX_LIFETIME_S, err);
  if (rc == SBX_OK)
    rc = read_attach_id(config, options, err);
  if (rc == SBX_OK)
    rc = sbx_remote_bool(&config->owned, options, "owned", err);
  if (rc == SBX_OK)
    rc = sbx_remote_bool(&config->can_pause, options, "autoPause", err);
  if (rc == SBX_OK)
    rc = sbx_remote_bool(&secure, options, "secure", err);
  config->lifetime_s = (uint32_t)lifetime;
  config->first_api = !secure; /* the second generation knows no other way than secure */
  config->can_pause = config->can_pause || config->attach_id != NULL;
  config->owned = config->owned || config->attach_id == NULL;
  return rc;
}

const char *const sbx__e2b_options[] = {
    "apiKey",     "domain",    "baseURL",  "sandboxUrl", "template",  "lifetimeSeconds",
    "metadata",   "env",       "network",  "secure",     "autoPause", "allowInternetAccess",
    "autoResume", "sandboxId", "owned",    "headers",    "proxy",     "interpreter",
    "ca",         "debug",     "lateAuth", NULL};

int sbx__e2b_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options, sbx_err *err) {
  config->loop = loop;
  sbx_headers_init(&config->headers, MAX_HEADERS);
  int rc = sbx_remote_bool(&config->debug, options, "debug", err);
  if (rc == SBX_OK)
    rc = read_key(config, options, err);
  if (rc == SBX_OK)
    rc = read_addresses(config, options, err);
  if (rc == SBX_OK)
    rc = read_template(config, options, err);
  if (rc == SBX_OK)
    rc = read_life(config, options, err);
  if (rc == SBX_OK)
    rc = read_headers(config, options, err);
  if (rc == SBX_OK)
    rc = make_create(config, options, err);
  if (rc == SBX_OK)
    rc = make_metadata(config, options, err);
  return rc == SBX_OK ? sbx_remote_client(&config->http, loop, options, SBX_HTTP_2, err) : rc;
}

void sbx__e2b_config_free(sbx_config *config) {
  sbx_http_client_free(config->http);
  sbx_free_secret(config->api_key);
  sbx_free_secret(config->create_json);
  sbx_free(config->env_names);
  sbx_free(config->metadata_json);
  sbx_free(config->api_url);
  sbx_free(config->domain);
  sbx_free(config->sandbox_url);
  sbx_free(config->attach_id);
  sbx_headers_deinit(&config->headers);
  sbx_free(config);
}
