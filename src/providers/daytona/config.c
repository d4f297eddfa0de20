/* config.c - the options of the Daytona provider.
 *
 *   apiKey, or jwtToken with organizationId   credentials; one of the two is required
 *   lateAuth     without credentials it is the first use that fails, not the constructor
 *   baseURL      base URL of the API ("https://app.daytona.io/api")
 *   toolboxUrl   base URL of the toolboxes, in place of the one that the API names
 *   proxy, ca    see options.h
 *   sandboxId    id or name of an existing sandbox to attach to; it is not deleted unless `owned`
 *   owned        close() deletes it (true without sandboxId)
 *   workspace    name of the sandbox to create
 *   snapshot, or image    what it is made from
 *   language     goes into the label that other clients read ("python")
 *   target       region
 *   env, labels  objects of strings
 *   cpu, memory, disk     cores, GiB, GiB; with `image` only
 *   autoStopMinutes (5), autoArchiveMinutes, autoDeleteMinutes (0: as soon as it stops)
 *   networkBlockAll, networkAllowList, domainAllowList, public, user
 *
 * Invariant: what a create says is settled here, once; so a sandbox that replaces a lost one is
 * made like the first. */
#include "providers/daytona/daytona.h"

#include "core/alloc.h"
#include "core/err.h"
#include "providers/remote/options.h"

#include <string.h>

#define API_URL "https://app.daytona.io/api"
/* The daemon looks at it: from 0.167 on, replies have their present form. */
#define PROTOCOL_VERSION "0.218.0"

enum {
  MAX_MINUTES = 60 * 24 * 365,
  MAX_RESOURCE = 1024,
  MAX_HEADERS = 64 * 1024,
  MAX_OTHER_BYTES = 256 * 1024, /* of a Sandbox object, without what our create has said */
};

const char *const sbx__daytona_options[] = {"apiKey",
                                            "jwtToken",
                                            "organizationId",
                                            "lateAuth",
                                            "baseURL",
                                            "toolboxUrl",
                                            "proxy",
                                            "ca",
                                            "sandboxId",
                                            "owned",
                                            "workspace",
                                            "snapshot",
                                            "image",
                                            "language",
                                            "target",
                                            "user",
                                            "env",
                                            "labels",
                                            "cpu",
                                            "memory",
                                            "disk",
                                            "autoStopMinutes",
                                            "autoArchiveMinutes",
                                            "autoDeleteMinutes",
                                            "networkBlockAll",
                                            "networkAllowList",
                                            "domainAllowList",
                                            "public",
                                            NULL};

static bool is_given(const sbx_json *options, const char *name) {
  return sbx_json_get(options, name) != NULL;
}

/* ---- credentials ---------------------------------------------------------------------------- */

static int add_header(sbx_headers *headers, const char *name, const char *value, sbx_err *err) {
  return sbx_headers_add(headers, sbx_slice_str(name), sbx_slice_str(value), err);
}

static int add_bearer(sbx_headers *headers, const char *secret, sbx_err *err) {
  sbx_buf value;
  sbx_buf_init(&value, MAX_HEADERS);
  sbx_buf_append_str(&value, "Bearer ");
  int rc = sbx_buf_append_str(&value, secret);
  if (rc != SBX_OK)
    rc = sbx_err_set(err, rc, NULL);
  else
    rc = sbx_headers_add(headers, sbx_slice_str("Authorization"), sbx_buf_slice(&value), err);
  if (value.ptr != NULL)
    sbx_wipe(value.ptr, value.len);
  sbx_buf_deinit(&value);
  return rc;
}

static int fill_headers(sbx_headers *headers, const char *secret, const char *organization,
                        bool json, sbx_err *err) {
  int rc = add_bearer(headers, secret, err);
  if (rc == SBX_OK && organization != NULL)
    rc = add_header(headers, "X-Daytona-Organization-ID", organization, err);
  if (rc == SBX_OK)
    rc = add_header(headers, "X-Daytona-Source", "cloudsandbox", err);
  if (rc == SBX_OK)
    rc = add_header(headers, "X-Daytona-SDK-Version", PROTOCOL_VERSION, err);
  if (rc == SBX_OK)
    rc = add_header(headers, "User-Agent", "cloudsandbox", err);
  if (rc == SBX_OK && json)
    rc = add_header(headers, "Content-Type", "application/json", err);
  return rc;
}

static int read_credentials(sbx_config *config, const sbx_json *options, sbx_err *err) {
  char *key = NULL, *jwt = NULL, *organization = NULL;
  bool late = false;
  int rc = sbx_remote_text(&key, options, "apiKey", err);
  if (rc == SBX_OK)
    rc = sbx_remote_text(&jwt, options, "jwtToken", err);
  if (rc == SBX_OK)
    rc = sbx_remote_text(&organization, options, "organizationId", err);
  if (rc == SBX_OK)
    rc = sbx_remote_bool(&late, options, "lateAuth", err);
  config->keyless = key == NULL && jwt == NULL;
  if (rc == SBX_OK && config->keyless && late)
    goto done;
  if (rc == SBX_OK && config->keyless)
    rc = sbx_err_set(err, SBX_EKEY, SBX__DAYTONA_NO_KEY);
  if (rc == SBX_OK && key == NULL && organization == NULL)
    rc = sbx_err_set(err, SBX_EKEY, "a jwtToken needs the organizationId, too");
  const char *secret = key != NULL ? key : jwt;
  /* A key belongs to one organization already. */
  const char *sent = key != NULL ? NULL : organization;
  if (rc == SBX_OK)
    rc = fill_headers(&config->headers, secret, sent, false, err);
  if (rc == SBX_OK)
    rc = fill_headers(&config->json_headers, secret, sent, true, err);
done:
  sbx_free_secret(key);
  sbx_free_secret(jwt);
  sbx_free(organization);
  return rc;
}

/* ---- what a create says --------------------------------------------------------------------- */

typedef struct body {
  sbx_json_out json;
  const sbx_json *options;
  sbx_err *err;
  int rc;
} body;

static void put_text(body *b, const char *option, const char *member) {
  char *text = NULL;
  if (b->rc == SBX_OK)
    b->rc = sbx_remote_text(&text, b->options, option, b->err);
  if (b->rc == SBX_OK && text != NULL) {
    sbx_json_put_name(&b->json, sbx_slice_str(member));
    sbx_json_put_string(&b->json, sbx_slice_str(text));
  }
  sbx_free(text);
}

static void put_int(body *b, const char *option, const char *member, int64_t min, int64_t max,
                    int64_t fallback) {
  int64_t value = fallback;
  if (b->rc == SBX_OK)
    b->rc = sbx_remote_int(&value, b->options, option, min, max, b->err);
  if (b->rc != SBX_OK || value < min)
    return;
  sbx_json_put_name(&b->json, sbx_slice_str(member));
  sbx_json_put_int(&b->json, value);
}

static void put_bool(body *b, const char *option, const char *member) {
  bool value = false;
  if (b->rc == SBX_OK)
    b->rc = sbx_remote_bool(&value, b->options, option, b->err);
  if (b->rc != SBX_OK || !is_given(b->options, option))
    return;
  sbx_json_put_name(&b->json, sbx_slice_str(member));
  sbx_json_put_bool(&b->json, value);
}

static void put_env(body *b) {
  const sbx_json *env = NULL;
  if (b->rc == SBX_OK)
    b->rc = sbx_remote_map(&env, b->options, "env", b->err);
  if (b->rc != SBX_OK)
    return;
  sbx_json_put_name(&b->json, sbx_slice_str("env"));
  sbx_remote_begin_map(&b->json, env);
  sbx_json_end_object(&b->json);
}

/* A plain image is sent as the shortest recipe for building one. */
static void put_image(body *b) {
  char *image = NULL;
  if (b->rc == SBX_OK)
    b->rc = sbx_remote_text(&image, b->options, "image", b->err);
  if (b->rc == SBX_OK && image != NULL) {
    sbx_buf text;
    sbx_buf_init(&text, 4096);
    sbx_buf_append_str(&text, "FROM ");
    sbx_buf_append_str(&text, image);
    sbx_buf_append_str(&text, "\n");
    if (text.error == SBX_ETOOBIG)
      b->rc = sbx_err_set(b->err, SBX_EINVAL, "the name of the image is too long");
    else if (text.error != SBX_OK)
      b->rc = sbx_err_set(b->err, text.error, NULL);
    sbx_json_put_name(&b->json, sbx_slice_str("buildInfo"));
    sbx_json_begin_object(&b->json);
    sbx_json_put_name(&b->json, sbx_slice_str("dockerfileContent"));
    sbx_json_put_string(&b->json, sbx_buf_slice(&text));
    sbx_json_end_object(&b->json);
    sbx_buf_deinit(&text);
  }
  sbx_free(image);
}

static void put_all(body *b) {
  put_text(b, "snapshot", "snapshot");
  put_image(b);
  put_text(b, "target", "target");
  put_text(b, "user", "user");
  put_text(b, "networkAllowList", "networkAllowList");
  put_text(b, "domainAllowList", "domainAllowList");
  put_bool(b, "networkBlockAll", "networkBlockAll");
  put_bool(b, "public", "public");
  put_int(b, "cpu", "cpu", 1, MAX_RESOURCE, 0);
  put_int(b, "memory", "memory", 1, MAX_RESOURCE, 0);
  put_int(b, "disk", "disk", 1, MAX_RESOURCE, 0);
  put_int(b, "autoStopMinutes", "autoStopInterval", 0, MAX_MINUTES, 5);
  put_int(b, "autoArchiveMinutes", "autoArchiveInterval", 0, MAX_MINUTES, -1);
  put_int(b, "autoDeleteMinutes", "autoDeleteInterval", -1, MAX_MINUTES, 0);
  put_env(b);
}

/* The labels stay open: each sandbox adds its own tag. */
static void put_labels(body *b) {
  const sbx_json *labels = NULL;
  char *language = NULL;
  if (b->rc == SBX_OK)
    b->rc = sbx_remote_map(&labels, b->options, "labels", b->err);
  if (b->rc == SBX_OK)
    b->rc = sbx_remote_text(&language, b->options, "language", b->err);
  sbx_json_put_name(&b->json, sbx_slice_str("labels"));
  sbx_remote_begin_map(&b->json, labels);
  if (labels == NULL || sbx_json_get(labels, "code-toolbox-language") == NULL) {
    sbx_json_put_name(&b->json, sbx_slice_str("code-toolbox-language"));
    sbx_json_put_string(&b->json, sbx_slice_str(language != NULL ? language : "python"));
  }
  sbx_free(language);
}

static int read_create(sbx_config *config, const sbx_json *options, sbx_err *err) {
  sbx_buf text;
  size_t len;
  if (is_given(options, "snapshot") && is_given(options, "image"))
    return sbx_err_set(err, SBX_EINVAL, "give snapshot or image, not both");
  if (!is_given(options, "image") &&
      (is_given(options, "cpu") || is_given(options, "memory") || is_given(options, "disk")))
    return sbx_err_set(err, SBX_EINVAL,
                       "cpu, memory and disk are for an image; a snapshot has its own");
  sbx_buf_init(&text, (size_t)4 << 20);
  body b = {.options = options, .err = err, .rc = SBX_OK};
  sbx_json_out_init(&b.json, &text);
  sbx_json_begin_object(&b.json);
  put_all(&b);
  put_labels(&b);
  if (b.rc == SBX_OK && text.error != SBX_OK)
    b.rc = sbx_err_set(err, text.error,
                       text.error == SBX_ETOOBIG ? "the options are too large" : NULL);
  if (b.rc == SBX_OK)
    config->create_body = sbx_buf_take(&text, &len);
  sbx_buf_deinit(&text);
  return b.rc;
}

static int read_place(sbx_config *config, const sbx_json *options, sbx_err *err) {
  int64_t delete_minutes = 0;
  int rc = sbx_remote_url(&config->api_url, options, "baseURL", err);
  if (rc == SBX_OK && config->api_url == NULL &&
      (config->api_url = sbx_strndup(API_URL, sizeof API_URL - 1)) == NULL)
    rc = sbx_err_set(err, SBX_ENOMEM, NULL);
  if (rc == SBX_OK)
    rc = sbx_remote_url(&config->toolbox_url, options, "toolboxUrl", err);
  if (rc == SBX_OK)
    rc = sbx_remote_check_safe(config->toolbox_url, config->api_url, "toolboxUrl", err);
  if (rc == SBX_OK)
    rc = sbx_remote_text(&config->attach, options, "sandboxId", err);
  if (rc == SBX_OK)
    rc = sbx_remote_text(&config->workspace, options, "workspace", err);
  config->owned = config->attach == NULL;
  if (rc == SBX_OK)
    rc = sbx_remote_bool(&config->owned, options, "owned", err);
  if (rc == SBX_OK && config->attach == NULL && !config->owned)
    rc = sbx_err_set(err, SBX_EINVAL, "owned: false is for an existing sandbox (sandboxId)");
  if (rc == SBX_OK)
    rc = sbx_remote_int(&delete_minutes, options, "autoDeleteMinutes", -1, MAX_MINUTES, err);
  config->ephemeral = config->attach == NULL && delete_minutes == 0;
  return rc;
}

/* ---- the whole ------------------------------------------------------------------------------ */

void sbx__daytona_config_free(sbx_config *config) {
  sbx_http_client_free(config->http);
  sbx_headers_deinit(&config->headers);
  sbx_headers_deinit(&config->json_headers);
  sbx_free(config->api_url);
  sbx_free(config->toolbox_url);
  sbx_free(config->attach);
  sbx_free(config->workspace);
  sbx_free_secret(config->create_body); /* it has variables in it */
  sbx_free(config);
}

int sbx__daytona_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options,
                           sbx_err *err) {
  config->loop = loop;
  sbx_headers_init(&config->headers, MAX_HEADERS);
  sbx_headers_init(&config->json_headers, MAX_HEADERS);
  int rc = read_credentials(config, options, err);
  if (rc == SBX_OK)
    rc = read_place(config, options, err);
  if (rc == SBX_OK)
    rc = read_create(config, options, err);
  if (rc == SBX_OK)
    config->most_of_reply = MAX_OTHER_BYTES + 2 * strlen(config->create_body);
  return rc == SBX_OK ? sbx_remote_client(&config->http, loop, options, SBX_HTTP_2, err) : rc;
}
