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
#include "providers/e2b/session.h"

#include "core/alloc.h"
#include "core/err.h"
#include "providers/remote/options.h"

enum {
  DEFAULT_LIFETIME_S = 300,
  MAX_LIFETIME_S = 24 * 60 * 60,
  MAX_DOMAIN = 253,
  MAX_CREATE = 2 * 1024 * 1024,
  MAX_NAMES = 64 * 1024,
  MAX_HEADERS = 32 * 1024,
};

const char *const sbx__e2b_options[] = {
    "apiKey",     "domain",    "baseURL",  "sandboxUrl", "template",  "lifetimeSeconds",
    "metadata",   "env",       "network",  "secure",     "autoPause", "allowInternetAccess",
    "autoResume", "sandboxId", "owned",    "headers",    "proxy",     "interpreter",
    "ca",         "debug",     "lateAuth", NULL};

/* ---- single members ------------------------------------------------------------------------- */

int sbx__e2b_missing_key(sbx_err *err) {
  return sbx_err_set(err, SBX_EKEY,
                     "missing API key; set E2B_API_KEY or pass apiKey. Keys are made at "
                     "https://e2b.dev/dashboard?tab=keys");
}

static int check_key(const sbx_config *config, sbx_err *err) {
  if (config->api_key == NULL && !config->late && !config->debug)
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

static int check_attach_id(sbx_config *config, sbx_err *err) {
  sbx_slice id = sbx_slice_str(config->attach_id != NULL ? config->attach_id : "i");
  if (!sbx__e2b_cut_id(&id))
    return sbx_err_set(err, SBX_EINVAL,
                       "sandboxId must be an id such as \"i3kq0z7v1x9a8b2c4d5e6\"");
  if (config->attach_id != NULL)
    config->attach_id[id.len] = '\0';
  return SBX_OK;
}

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
  if (rc == SBX_OK)
    config->env_names = sbx_buf_take(&names, &len);
  sbx_buf_deinit(&names);
  return rc == SBX_OK ? SBX_OK
                      : sbx_err_set(err, rc, rc == SBX_ETOOBIG ? "env has too many names" : NULL);
}

/* A boolean, left out when it is not given. */
static void put_flag(sbx_json_out *out, const sbx_json *options, const char *name,
                     const char *member) {
  bool value;
  if (!sbx_json_bool(sbx_json_get(options, name), &value))
    return;
  sbx_json_put_name(out, sbx_slice_str(member));
  sbx_json_put_bool(out, value);
}

/* All members were checked. False: `network` has something that no request has. */
static bool put_create(sbx_json_out *out, const sbx_config *config, const sbx_json *options) {
  const sbx_json *env = sbx_json_get(options, "env");
  const sbx_json *network = sbx_json_get(options, "network");
  bool ok = network == NULL || sbx_json_is_object(network);
  sbx_json_begin_object(out);
  sbx_json_put_name(out, sbx_slice_str("templateID"));
  sbx_json_put_string(out, sbx_slice_str(config->template != NULL ? config->template : "base"));
  sbx_json_put_name(out, sbx_slice_str("timeout"));
  sbx_json_put_int(out, config->lifetime_s);
  if (env != NULL) {
    sbx_json_put_name(out, sbx_slice_str("envVars"));
    sbx_remote_begin_map(out, env);
    sbx_json_end_object(out);
  }
  if (network != NULL) {
    sbx_json_put_name(out, sbx_slice_str("network"));
    ok = sbx_json_put_value(out, network) && ok;
  }
  put_flag(out, options, "allowInternetAccess", "allow_internet_access");
  put_flag(out, options, "autoPause", "autoPause");
  if (sbx_json_get(options, "autoResume") != NULL) {
    sbx_json_put_name(out, sbx_slice_str("autoResume"));
    sbx_json_begin_object(out);
    put_flag(out, options, "autoResume", "enabled");
    sbx_json_end_object(out);
  }
  sbx_json_put_name(out, sbx_slice_str("metadata"));
  sbx_remote_begin_map(out, sbx_json_get(options, "metadata"));
  return ok;
}

static int make_create(sbx_config *config, const sbx_json *options, sbx_err *err) {
  const sbx_json *env, *metadata;
  sbx_buf buf;
  sbx_json_out out;
  size_t len;
  int rc = sbx_remote_map(&env, options, "env", err);
  if (rc == SBX_OK)
    rc = take_names(config, env, err);
  if (rc == SBX_OK)
    rc = sbx_remote_map(&metadata, options, "metadata", err);
  if (rc == SBX_OK && sbx_json_get(metadata, SBX__E2B_TAG_NAME) != NULL)
    rc = sbx_err_set(err, SBX_EINVAL, "metadata: the name " SBX__E2B_TAG_NAME " is taken");
  if (rc != SBX_OK)
    return rc;
  sbx_buf_init(&buf, MAX_CREATE);
  sbx_json_out_init(&out, &buf);
  if (!put_create(&out, config, options))
    rc = sbx_err_set(err, SBX_EINVAL,
                     "network must be an object of strings, whole numbers, booleans, arrays and "
                     "objects");
  else if (buf.error == SBX_ETOOBIG)
    rc = sbx_err_set(err, SBX_EINVAL, "the options of the sandbox are too large");
  else if (buf.error != SBX_OK)
    rc = sbx_err_set(err, buf.error, NULL);
  config->create_json = sbx_buf_take(&buf, &len); /* wiped with the rest: `env` may hold secrets */
  sbx_buf_deinit(&buf);
  return rc;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int check_addresses(sbx_config *config, sbx_err *err) {
  const char *domain = config->domain != NULL ? config->domain : SBX__E2B_DOMAIN;
  sbx_buf url;
  size_t len;
  if (!sbx__e2b_is_domain(sbx_slice_str(domain)))
    return sbx_err_set(err, SBX_EINVAL, "domain must be a host name such as \"e2b.app\"");
  sbx_buf_init(&url, MAX_DOMAIN + 32);
  if (config->debug)
    sbx_buf_append_str(&url, "http://localhost:3000");
  else
    sbx_buf_appendf(&url, "https://api.%s", domain);
  if (config->api_url == NULL)
    config->api_url = sbx_buf_take(&url, &len);
  sbx_buf_deinit(&url);
  return config->api_url != NULL
             ? sbx_remote_check_safe(config->sandbox_url, config->api_url, "sandboxUrl", err)
             : sbx_err_set(err, SBX_ENOMEM, NULL);
}

static int read_options(sbx_config *config, const sbx_json *options, sbx_err *err) {
  const struct {
    const char *name;
    int (*read)(char **out, const sbx_json *options, const char *name, sbx_err *err);
    char **out;
  } texts[] = {
      {"apiKey", sbx_remote_text, &config->api_key},
      {"domain", sbx_remote_text, &config->domain},
      {"baseURL", sbx_remote_url, &config->api_url},
      {"sandboxUrl", sbx_remote_url, &config->sandbox_url},
      {"sandboxId", sbx_remote_text, &config->attach_id},
      {"template", sbx_remote_text, &config->template},
  };
  bool passed_on;
  const struct {
    const char *name;
    bool *out;
  } flags[] = {
      {"debug", &config->debug},           {"lateAuth", &config->late},
      {"secure", &config->secure},         {"owned", &config->owned},
      {"autoPause", &config->can_pause},   {"interpreter", &config->interpreter},
      {"allowInternetAccess", &passed_on}, {"autoResume", &passed_on},
  };
  int rc = SBX_OK;
  for (size_t i = 0; rc == SBX_OK && i < sizeof texts / sizeof *texts; i++)
    rc = texts[i].read(texts[i].out, options, texts[i].name, err);
  config->interpreter =
      config->template != NULL &&
      sbx_slice_starts_with(sbx_slice_str(config->template), sbx_slice_str("code-interpreter"));
  for (size_t i = 0; rc == SBX_OK && i < sizeof flags / sizeof *flags; i++)
    rc = sbx_remote_bool(flags[i].out, options, flags[i].name, err);
  return rc;
}

int sbx__e2b_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options, sbx_err *err) {
  int64_t lifetime = DEFAULT_LIFETIME_S;
  config->loop = loop;
  config->secure = true;
  sbx_headers_init(&config->headers, MAX_HEADERS);
  int rc = read_options(config, options, err);
  if (rc == SBX_OK)
    rc = sbx_remote_int(&lifetime, options, "lifetimeSeconds", 1, MAX_LIFETIME_S, err);
  config->lifetime_s = (uint32_t)lifetime;
  config->can_pause = config->can_pause || config->attach_id != NULL;
  config->owned = config->owned || config->attach_id == NULL;
  if (rc == SBX_OK)
    rc = check_key(config, err);
  if (rc == SBX_OK)
    rc = check_addresses(config, err);
  if (rc == SBX_OK)
    rc = check_attach_id(config, err);
  if (rc == SBX_OK)
    rc = read_headers(config, options, err);
  if (rc == SBX_OK)
    rc = make_create(config, options, err);
  return rc == SBX_OK ? sbx_remote_client(&config->http, loop, options, SBX_HTTP_2, err) : rc;
}

void sbx__e2b_config_free(sbx_config *config) {
  sbx_http_client_free(config->http);
  sbx_free_secret(config->api_key);
  sbx_free_secret(config->create_json);
  sbx_free(config->env_names);
  sbx_free(config->api_url);
  sbx_free(config->domain);
  sbx_free(config->sandbox_url);
  sbx_free(config->attach_id);
  sbx_free(config->template);
  sbx_headers_deinit(&config->headers);
  sbx_free(config);
}
