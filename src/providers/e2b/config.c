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

static void check_key(sbx_config *config, sbx_err *err) {
  const char *c = config->api_key;
  if (c == NULL && !config->late && !config->debug)
    sbx__e2b_missing_key(err);
  while (c != NULL && *c > ' ' && *c <= '~')
    c++;
  if (c != NULL && *c != '\0')
    sbx_err_set(err, SBX_EINVAL,
                "the API key has a blank, a line end or another character that no key has; copy it "
                "again");
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

static void check_attach_id(sbx_config *config, sbx_err *err) {
  sbx_slice id = sbx_slice_str(config->attach_id != NULL ? config->attach_id : "i");
  if (!sbx__e2b_cut_id(&id))
    sbx_err_set(err, SBX_EINVAL, "sandboxId must be an id such as \"i3kq0z7v1x9a8b2c4d5e6\"");
  else if (config->attach_id != NULL)
    config->attach_id[id.len] = '\0';
}

static const char *const our_headers[] = {"x-api-key",
                                          "x-access-token",
                                          "e2b-traffic-access-token",
                                          "e2b-sandbox-id",
                                          "content-type",
                                          "e2b-sandbox-port",
                                          "connect-protocol-version",
                                          "connect-timeout-ms",
                                          "content-length",
                                          "authorization",
                                          "keepalive-ping-interval",
                                          "transfer-encoding",
                                          "host",
                                          "expect",
                                          "accept-encoding",
                                          "connection",
                                          NULL};

/* ---- the create request --------------------------------------------------------------------- */

/* A profile must not change what the options say, so commands are told of these. */
static void take_names(sbx_config *config, const sbx_json *env, sbx_err *err) {
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
  if (names.error != SBX_OK)
    sbx_err_set(err, names.error, names.error == SBX_ETOOBIG ? "env has too many names" : NULL);
  config->env_names = sbx_buf_take(&names, &len);
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

/* Up to the members of the metadata: each sandbox adds its own tag. */
static void put_create(sbx_json_out *out, const sbx_config *config, const sbx_json *options,
                       sbx_err *err) {
  const sbx_json *network = sbx_json_get(options, "network");
  const sbx_json *env = sbx_json_get(options, "env");
  sbx_json_begin_object(out);
  sbx_json_put_text(out, "templateID",
                    sbx_slice_str(config->template != NULL ? config->template : "base"));
  sbx_json_put_name(out, sbx_slice_str("timeout"));
  sbx_json_put_int(out, config->lifetime_s);
  if (env != NULL) {
    sbx_json_put_name(out, sbx_slice_str("envVars"));
    sbx_remote_begin_map(out, env);
    sbx_json_end_object(out);
  }
  if (network != NULL) {
    sbx_json_put_name(out, sbx_slice_str("network"));
    if (!sbx_json_put_value(out, network) || !sbx_json_is_object(network))
      sbx_err_set(err, SBX_EINVAL,
                  "network must be an object of strings, whole numbers, booleans, arrays and "
                  "objects");
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
}

static void make_create(sbx_config *config, const sbx_json *options, sbx_err *err) {
  const sbx_json *env = NULL, *metadata = NULL;
  sbx_buf buf;
  sbx_json_out out;
  size_t len;
  sbx_remote_map(&env, options, "env", err);
  sbx_remote_map(&metadata, options, "metadata", err);
  if (err->code == SBX_OK && sbx_json_get(metadata, SBX__E2B_TAG_NAME) != NULL)
    sbx_err_set(err, SBX_EINVAL, "metadata: the name " SBX__E2B_TAG_NAME " is taken");
  if (err->code != SBX_OK)
    return;
  take_names(config, env, err);
  sbx_buf_init(&buf, MAX_CREATE);
  sbx_json_out_init(&out, &buf);
  put_create(&out, config, options, err);
  if (buf.error == SBX_ETOOBIG)
    sbx_err_set(err, SBX_EINVAL, "the options of the sandbox are too large");
  else if (buf.error != SBX_OK)
    sbx_err_set(err, buf.error, NULL);
  config->create_json = sbx_buf_take(&buf, &len); /* wiped with the rest: `env` may hold secrets */
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void check_addresses(sbx_config *config, sbx_err *err) {
  const char *domain = config->domain != NULL ? config->domain : SBX__E2B_DOMAIN;
  sbx_buf url;
  size_t len;
  if (!sbx__e2b_is_domain(sbx_slice_str(domain))) {
    sbx_err_set(err, SBX_EINVAL, "domain must be a host name such as \"e2b.app\"");
    return;
  }
  sbx_buf_init(&url, MAX_DOMAIN + 32);
  if (config->api_url == NULL && config->debug)
    sbx_buf_append_str(&url, "http://localhost:3000");
  else if (config->api_url == NULL)
    sbx_buf_appendf(&url, "https://api.%s", domain);
  if (url.error != SBX_OK)
    sbx_err_set(err, url.error, NULL);
  else if (config->api_url == NULL)
    config->api_url = sbx_buf_take(&url, &len);
  sbx_remote_check_safe(config->sandbox_url, config->api_url, "sandboxUrl", err);
}

static void read_options(sbx_config *config, const sbx_json *options, sbx_err *err) {
  int64_t lifetime = DEFAULT_LIFETIME_S;
  bool passed_on;
  sbx_remote_text(&config->api_key, options, "apiKey", err);
  sbx_remote_text(&config->domain, options, "domain", err);
  sbx_remote_url(&config->api_url, options, "baseURL", err);
  sbx_remote_url(&config->sandbox_url, options, "sandboxUrl", err);
  sbx_remote_text(&config->attach_id, options, "sandboxId", err);
  sbx_remote_text(&config->template, options, "template", err);
  sbx_remote_int(&lifetime, options, "lifetimeSeconds", 1, MAX_LIFETIME_S, err);
  config->lifetime_s = (uint32_t)lifetime;
  config->secure = true;
  config->interpreter =
      config->template != NULL &&
      sbx_slice_starts_with(sbx_slice_str(config->template), sbx_slice_str("code-interpreter"));
  sbx_remote_bool(&config->debug, options, "debug", err);
  sbx_remote_bool(&config->late, options, "lateAuth", err);
  sbx_remote_bool(&config->secure, options, "secure", err);
  sbx_remote_bool(&config->owned, options, "owned", err);
  sbx_remote_bool(&config->can_pause, options, "autoPause", err);
  sbx_remote_bool(&config->interpreter, options, "interpreter", err);
  sbx_remote_bool(&passed_on, options, "allowInternetAccess", err);
  sbx_remote_bool(&passed_on, options, "autoResume", err);
  config->can_pause = config->can_pause || config->attach_id != NULL;
  config->owned = config->owned || config->attach_id == NULL;
}

int sbx__e2b_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options, sbx_err *err) {
  void (*const checks[])(sbx_config *, sbx_err *) = {check_key, check_addresses, check_attach_id};
  config->loop = loop;
  sbx_headers_init(&config->headers, MAX_HEADERS);
  read_options(config, options, err);
  for (size_t i = 0; err->code == SBX_OK && i < sizeof checks / sizeof *checks; i++)
    checks[i](config, err);
  sbx_remote_headers(&config->headers, options, "headers", our_headers, err);
  make_create(config, options, err);
  return sbx_remote_client(&config->http, loop, options, SBX_HTTP_2, err);
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
