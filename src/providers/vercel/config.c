/* config.c - the options of the Vercel provider.
 *
 *   token, teamId, projectId    credentials; all three are required
 *   lateAuth     without credentials it is the first use that fails, not the constructor
 *   baseURL      base URL of the API ("https://vercel.com/api")
 *   proxy, ca    see options.h
 *   sandboxId    name of an existing sandbox to attach to; it is not deleted unless `owned`
 *   owned        close() deletes it (true without sandboxId)
 *   name         of the sandbox to create
 *   image, or runtime           what it is made from
 *   vcpus        each with 2 GiB of memory
 *   lifetimeMs   after which the service ends it (300000)
 *   region
 *   env, tags    objects of strings
 *   networkPolicy               an object, sent as it is
 *
 * Invariant: what a create says is settled here, once; so a sandbox that replaces a lost one is
 * made like the first. It keeps no state: nothing is paid for when it is over. */
#include "core/alloc.h"
#include "core/err.h"
#include "providers/remote/options.h"
#include "providers/vercel/vercel.h"

#define API_URL "https://vercel.com/api"

enum {
  MAX_LIFETIME_MS = 24 * 60 * 60 * 1000,
  MAX_VCPUS = 1024,
  MAX_TAGS = 4, /* the service takes 5, and one is ours */
  MAX_HEADERS = 64 * 1024,
};

// clang-format off
const char *const sbx__vercel_options[] = {
    "token", "teamId", "projectId", "lateAuth", "baseURL", "proxy", "ca", "sandboxId", "owned",
    "name", "image", "runtime", "vcpus", "lifetimeMs", "region", "env", "tags", "networkPolicy",
    NULL};
// clang-format on

/* ---- credentials ---------------------------------------------------------------------------- */

static void fill_headers(sbx_headers *headers, const char *token, const char *directory,
                         sbx_err *err) {
  sbx_headers_init(headers, MAX_HEADERS);
  if (sbx_remote_bearer(headers, token, err) == SBX_OK)
    sbx_headers_add(headers, sbx_slice_str("User-Agent"), sbx_slice_str("cloudsandbox"), err);
  if (err->code == SBX_OK && directory != NULL)
    sbx_headers_add(headers, sbx_slice_str("x-cwd"), sbx_slice_str(directory), err);
}

static void read_credentials(sbx_config *config, const sbx_json *options, sbx_err *err) {
  char *token = NULL;
  bool late = false;
  sbx_remote_text(&token, options, "token", err);
  sbx_remote_text(&config->team, options, "teamId", err);
  sbx_remote_text(&config->project, options, "projectId", err);
  sbx_remote_bool(&late, options, "lateAuth", err);
  config->keyless = token == NULL || config->team == NULL || config->project == NULL;
  if (err->code == SBX_OK && config->keyless && !late)
    sbx_err_set(err, SBX_EKEY, SBX__VERCEL_NO_KEY);
  if (err->code == SBX_OK && token != NULL) {
    fill_headers(&config->headers, token, NULL, err);
    fill_headers(&config->archive_headers, token, "/", err);
  }
  sbx_free_secret(token);
}

/* ---- what a create says --------------------------------------------------------------------- */

static const sbx_remote_member members[] = {
    {"lifetimeMs", "timeout", SBX_REMOTE_NUMBER, 1000, MAX_LIFETIME_MS, "300000"},
    {"image", "image", SBX_REMOTE_TEXT, 0, 0, NULL},
    {"runtime", "runtime", SBX_REMOTE_TEXT, 0, 0, NULL},
    {"region", "region", SBX_REMOTE_TEXT, 0, 0, NULL},
};

static void put_policy(sbx_json_out *json, const sbx_json *options, sbx_err *err) {
  const sbx_json *policy = sbx_json_get(options, "networkPolicy");
  if (policy == NULL || err->code != SBX_OK)
    return;
  if (!sbx_json_is_object(policy)) {
    sbx_err_set(err, SBX_EINVAL, "networkPolicy must be an object");
    return;
  }
  sbx_json_put_name(json, sbx_slice_str("networkPolicy"));
  sbx_json_put_value(json, policy);
}

/* The tags stay open: each sandbox adds its own. */
static void put_maps(sbx_json_out *json, const sbx_json *options, sbx_err *err) {
  const sbx_json *env = NULL, *tags = NULL;
  if (sbx_remote_map(&env, options, "env", err) == SBX_OK && env != NULL) {
    sbx_json_put_name(json, sbx_slice_str("env"));
    sbx_remote_begin_map(json, env);
    sbx_json_end_object(json);
  }
  if (sbx_remote_map(&tags, options, "tags", err) == SBX_OK && sbx_json_count(tags) > MAX_TAGS)
    sbx_err_set(err, SBX_EINVAL, "tags: at most %d, since one more is ours", MAX_TAGS);
  sbx_json_put_name(json, sbx_slice_str("tags"));
  sbx_remote_begin_map(json, tags);
}

static void read_create(sbx_config *config, const sbx_json *options, sbx_err *err) {
  int64_t vcpus = 0;
  sbx_buf text;
  sbx_json_out json;
  size_t len;
  config->old_route = sbx_json_get(options, "runtime") != NULL;
  if (err->code == SBX_OK && config->old_route && sbx_json_get(options, "image") != NULL)
    sbx_err_set(err, SBX_EINVAL, "give image or runtime, not both");
  sbx_remote_int(&vcpus, options, "vcpus", 1, MAX_VCPUS, err);
  sbx_buf_init(&text, (size_t)4 << 20);
  sbx_json_out_init(&json, &text);
  sbx_json_begin_object(&json);
  if (config->project != NULL)
    sbx_json_put_text(&json, "projectId", sbx_slice_str(config->project));
  sbx_remote_put_members(&json, members, sizeof members / sizeof *members, options, err);
  sbx_buf_append_str(&text, ",\"ports\":[],\"persistent\":false");
  if (vcpus > 0)
    sbx_buf_appendf(&text, ",\"resources\":{\"vcpus\":%lld}", (long long)vcpus);
  put_policy(&json, options, err);
  put_maps(&json, options, err);
  if (err->code == SBX_OK && text.error != SBX_OK)
    sbx_err_set(err, text.error, text.error == SBX_ETOOBIG ? "the options are too large" : NULL);
  config->create_body = sbx_buf_take(&text, &len);
  sbx_buf_deinit(&text);
}

static void read_place(sbx_config *config, const sbx_json *options, sbx_err *err) {
  sbx_remote_url(&config->api_url, options, "baseURL", err);
  if (err->code == SBX_OK && config->api_url == NULL &&
      (config->api_url = sbx_strndup(API_URL, sizeof API_URL - 1)) == NULL)
    sbx_err_set(err, SBX_ENOMEM, NULL);
  sbx_remote_text(&config->attach, options, "sandboxId", err);
  sbx_remote_text(&config->name, options, "name", err);
  config->owned = config->attach == NULL;
  sbx_remote_bool(&config->owned, options, "owned", err);
  if (err->code == SBX_OK && config->attach == NULL && !config->owned)
    sbx_err_set(err, SBX_EINVAL, "owned: false is for an existing sandbox (sandboxId)");
}

/* ---- the whole ------------------------------------------------------------------------------ */

void sbx__vercel_config_free(sbx_config *config) {
  sbx_http_client_free(config->http);
  sbx_headers_deinit(&config->headers);
  sbx_headers_deinit(&config->archive_headers);
  sbx_free(config->api_url);
  sbx_free(config->team);
  sbx_free(config->project);
  sbx_free(config->attach);
  sbx_free(config->name);
  sbx_free_secret(config->create_body); /* it has variables in it */
  sbx_free(config);
}

int sbx__vercel_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options,
                          sbx_err *err) {
  config->loop = loop;
  read_credentials(config, options, err);
  read_place(config, options, err);
  read_create(config, options, err);
  return sbx_remote_client(&config->http, loop, options, SBX_HTTP_2, err);
}
