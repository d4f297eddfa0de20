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

#define API_URL "https://app.daytona.io/api"
/* The daemon looks at it: from 0.167 on, replies have their present form. */
#define PROTOCOL_VERSION "0.218.0"

enum {
  MAX_MINUTES = 60 * 24 * 365,
  MAX_RESOURCE = 1024,
  MAX_HEADERS = 64 * 1024,
  MAX_OTHER_BYTES = 256 * 1024, /* of a Sandbox object, without what our create has said */
};

// clang-format off
const char *const sbx__daytona_options[] = {
    "apiKey", "jwtToken", "organizationId", "lateAuth", "baseURL", "toolboxUrl", "proxy", "ca",
    "sandboxId", "owned", "workspace", "snapshot", "image", "language", "target", "user", "env",
    "labels", "cpu", "memory", "disk", "autoStopMinutes", "autoArchiveMinutes",
    "autoDeleteMinutes", "networkBlockAll", "networkAllowList", "domainAllowList", "public", NULL};
// clang-format on

static bool is_given(const sbx_json *options, const char *name) {
  return sbx_json_get(options, name) != NULL;
}

/* ---- credentials ---------------------------------------------------------------------------- */

static int fill_headers(sbx_headers *headers, const char *secret, const char *organization,
                        sbx_err *err) {
  const char *const others[][2] = {{"X-Daytona-Organization-ID", organization},
                                   {"X-Daytona-Source", "cloudsandbox"},
                                   {"X-Daytona-SDK-Version", PROTOCOL_VERSION},
                                   {"User-Agent", "cloudsandbox"}};
  int rc = sbx_remote_bearer(headers, secret, err);
  for (size_t i = 0; rc == SBX_OK && i < sizeof others / sizeof *others; i++) {
    if (others[i][1] != NULL)
      rc = sbx_headers_add(headers, sbx_slice_str(others[i][0]), sbx_slice_str(others[i][1]), err);
  }
  return rc;
}

static void read_credentials(sbx_config *config, const sbx_json *options, sbx_err *err) {
  char *key = NULL, *jwt = NULL, *organization = NULL;
  bool late = false;
  sbx_remote_text(&key, options, "apiKey", err);
  sbx_remote_text(&jwt, options, "jwtToken", err);
  sbx_remote_text(&organization, options, "organizationId", err);
  sbx_remote_bool(&late, options, "lateAuth", err);
  const char *secret = key != NULL ? key : jwt;
  /* A key belongs to one organization already. */
  const char *sent = key != NULL ? NULL : organization;
  config->keyless = secret == NULL;
  if (err->code == SBX_OK && secret == NULL && !late)
    sbx_err_set(err, SBX_EKEY, SBX__DAYTONA_NO_KEY);
  else if (err->code == SBX_OK && key == NULL && jwt != NULL && organization == NULL)
    sbx_err_set(err, SBX_EKEY, "a jwtToken needs the organizationId, too");
  else if (err->code == SBX_OK && secret != NULL)
    fill_headers(&config->headers, secret, sent, err);
  sbx_free_secret(key);
  sbx_free_secret(jwt);
  sbx_free(organization);
}

/* ---- what a create says --------------------------------------------------------------------- */

static const sbx_remote_member members[] = {
    {"snapshot", "snapshot", SBX_REMOTE_TEXT, 0, 0, NULL},
    {"target", "target", SBX_REMOTE_TEXT, 0, 0, NULL},
    {"user", "user", SBX_REMOTE_TEXT, 0, 0, NULL},
    {"networkAllowList", "networkAllowList", SBX_REMOTE_TEXT, 0, 0, NULL},
    {"domainAllowList", "domainAllowList", SBX_REMOTE_TEXT, 0, 0, NULL},
    {"networkBlockAll", "networkBlockAll", SBX_REMOTE_FLAG, 0, 0, NULL},
    {"public", "public", SBX_REMOTE_FLAG, 0, 0, NULL},
    {"cpu", "cpu", SBX_REMOTE_NUMBER, 1, MAX_RESOURCE, NULL},
    {"memory", "memory", SBX_REMOTE_NUMBER, 1, MAX_RESOURCE, NULL},
    {"disk", "disk", SBX_REMOTE_NUMBER, 1, MAX_RESOURCE, NULL},
    {"autoStopMinutes", "autoStopInterval", SBX_REMOTE_NUMBER, 0, MAX_MINUTES, "5"},
    {"autoArchiveMinutes", "autoArchiveInterval", SBX_REMOTE_NUMBER, 0, MAX_MINUTES, NULL},
    {"autoDeleteMinutes", "autoDeleteInterval", SBX_REMOTE_NUMBER, -1, MAX_MINUTES, "0"},
};

/* A plain image is sent as the shortest recipe for building one. */
static void put_image(sbx_json_out *json, const sbx_json *options, sbx_err *err) {
  char *image = NULL;
  if (sbx_remote_text(&image, options, "image", err) == SBX_OK && image != NULL) {
    sbx_json_put_name(json, sbx_slice_str("buildInfo"));
    sbx_buf_append_str(json->buf, "{\"dockerfileContent\":\"FROM ");
    sbx_json_escape(json->buf, sbx_slice_str(image));
    sbx_buf_append_str(json->buf, "\\n\"}");
    json->need_comma = true;
  }
  sbx_free(image);
}

/* The labels stay open: each sandbox adds its own tag. */
static void put_labels(sbx_json_out *json, const sbx_json *options, sbx_err *err) {
  const sbx_json *labels = NULL;
  char *language = NULL;
  sbx_remote_map(&labels, options, "labels", err);
  sbx_remote_text(&language, options, "language", err);
  sbx_json_put_name(json, sbx_slice_str("labels"));
  sbx_remote_begin_map(json, labels);
  if (!is_given(labels, "code-toolbox-language"))
    sbx_json_put_text(json, "code-toolbox-language",
                      sbx_slice_str(language != NULL ? language : "python"));
  sbx_free(language);
}

static void read_create(sbx_config *config, const sbx_json *options, sbx_err *err) {
  const sbx_json *env = NULL;
  sbx_buf text;
  sbx_json_out json;
  size_t len;
  if (err->code == SBX_OK && is_given(options, "snapshot") && is_given(options, "image"))
    sbx_err_set(err, SBX_EINVAL, "give snapshot or image, not both");
  if (err->code == SBX_OK && !is_given(options, "image") &&
      (is_given(options, "cpu") || is_given(options, "memory") || is_given(options, "disk")))
    sbx_err_set(err, SBX_EINVAL, "cpu, memory and disk are for an image; a snapshot has its own");
  sbx_buf_init(&text, (size_t)4 << 20);
  sbx_json_out_init(&json, &text);
  sbx_json_begin_object(&json);
  sbx_remote_put_members(&json, members, sizeof members / sizeof *members, options, err);
  put_image(&json, options, err);
  if (sbx_remote_map(&env, options, "env", err) == SBX_OK) {
    sbx_json_put_name(&json, sbx_slice_str("env"));
    sbx_remote_begin_map(&json, env);
    sbx_json_end_object(&json);
  }
  put_labels(&json, options, err);
  if (err->code == SBX_OK && text.error != SBX_OK)
    sbx_err_set(err, text.error, text.error == SBX_ETOOBIG ? "the options are too large" : NULL);
  config->most_of_reply = MAX_OTHER_BYTES + 2 * text.len;
  config->create_body = sbx_buf_take(&text, &len);
  sbx_buf_deinit(&text);
}

static void read_place(sbx_config *config, const sbx_json *options, sbx_err *err) {
  int64_t delete_minutes = 0;
  sbx_remote_url(&config->api_url, options, "baseURL", err);
  if (err->code == SBX_OK && config->api_url == NULL &&
      (config->api_url = sbx_strndup(API_URL, sizeof API_URL - 1)) == NULL)
    sbx_err_set(err, SBX_ENOMEM, NULL);
  sbx_remote_url(&config->toolbox_url, options, "toolboxUrl", err);
  sbx_remote_check_safe(config->toolbox_url, config->api_url, "toolboxUrl", err);
  sbx_remote_text(&config->attach, options, "sandboxId", err);
  sbx_remote_text(&config->workspace, options, "workspace", err);
  config->owned = config->attach == NULL;
  sbx_remote_bool(&config->owned, options, "owned", err);
  if (err->code == SBX_OK && config->attach == NULL && !config->owned)
    sbx_err_set(err, SBX_EINVAL, "owned: false is for an existing sandbox (sandboxId)");
  sbx_remote_int(&delete_minutes, options, "autoDeleteMinutes", -1, MAX_MINUTES, err);
  config->ephemeral = config->attach == NULL && delete_minutes == 0;
}

/* ---- the whole ------------------------------------------------------------------------------ */

void sbx__daytona_config_free(sbx_config *config) {
  sbx_http_client_free(config->http);
  sbx_headers_deinit(&config->headers);
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
  read_credentials(config, options, err);
  read_place(config, options, err);
  read_create(config, options, err);
  return sbx_remote_client(&config->http, loop, options, SBX_HTTP_2, err);
}
