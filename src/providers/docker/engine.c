/* engine.c - which engine this is, and whether it does what it is asked for.
 *
 * Invariant: nothing is made here, so every failure has had no effect. */
#include "providers/docker/engine.h"

#include "core/err.h"

static void fail(sbx_steps *steps, sbx_err *err) {
  err->no_effect = true;
  if (err->provider == NULL)
    err->provider = "docker";
  sbx_steps_finish(steps, err);
}

/* ---- which version -------------------------------------------------------------------------- */

static int take_version(sbx_config *config, const sbx_http *reply, sbx_err *err) {
  sbx_slice text = {NULL, 0};
  int minor = 0;
  sbx_headers_get(&reply->headers, "api-version", &text);
  if (!sbx_slice_starts_with(text, sbx_slice_str("1.")))
    return sbx_err_set(err, SBX_EPROTO,
                       "docker: what answers at %s is no container engine (it names no version of "
                       "its API); `host` says where one is",
                       config->service);
  for (size_t i = 2; i < text.len && sbx_is_digit(text.ptr[i]) && minor < 1000; i++)
    minor = minor * 10 + (text.ptr[i] - '0');
  if (minor < SBX__DOCKER_MINOR_MIN)
    return sbx_err_set(err, SBX_EUNSUPPORTED,
                       "docker: the engine speaks version 1.%d of its API, and 1.%d is needed: "
                       "Docker 20.10, Podman 4 or newer",
                       minor, SBX__DOCKER_MINOR_MIN);
  if (!config->given_version)
    config->minor = minor < SBX__DOCKER_MINOR_MAX ? minor : SBX__DOCKER_MINOR_MAX;
  return SBX_OK;
}

static void on_ping(sbx_steps *steps, sbx_http *reply) {
  sbx_session *session = steps->session;
  sbx_slice podman;
  sbx_err err;
  int rc =
      sbx__docker_check(&err, session->config, &sbx__docker_engine, reply, "look for the engine");
  if (rc == SBX_OK)
    rc = take_version(session->config, reply, &err);
  session->is_podman = sbx_headers_get(&reply->headers, "libpod-api-version", &podman);
  if (rc == SBX_OK)
    steps->on_time(steps);
  else
    fail(steps, &err);
}

void sbx__docker_agree(sbx_steps *steps, sbx_steps_time then) {
  sbx_buf url;
  steps->on_time = then;
  sbx_buf_init(&url, SBX__DOCKER_URL_MAX);
  sbx_buf_append_str(&url, steps->session->config->base);
  sbx_buf_append_str(&url, "/_ping");
  sbx__docker_send(steps, "GET", &url, NULL, true, on_ping);
}

/* ---- its limits ----------------------------------------------------------------------------- */

/* Podman without root accepts them all, and keeps none where control groups are of version 1. */
static bool only_pretends(const sbx_json *info) {
  const sbx_json *options = sbx_json_get(info, "SecurityOptions");
  sbx_slice text, version = {NULL, 0};
  bool rootless = false;
  sbx_json_bool(sbx_json_get(info, "Rootless"), &rootless); /* Podman */
  for (const sbx_json *v = sbx_json_next(options, NULL, NULL); v != NULL;
       v = sbx_json_next(options, v, NULL))
    rootless = rootless || (sbx_json_string(v, &text) && sbx_slice_eq_str(text, "name=rootless"));
  sbx_json_string(sbx_json_get(info, "CgroupVersion"), &version);
  return rootless && !sbx_slice_eq_str(version, "2");
}

static const char *missing_limit(const sbx_config *config, const sbx_json *info) {
  const struct {
    bool asked;
    const char *option;
    const char *member;
  } limits[] = {{config->asks_memory, "memoryMb", "MemoryLimit"},
                {config->asks_cpus, "cpus", "CpuCfsQuota"},
                {config->asks_pids, "pids", "PidsLimit"}};
  bool pretends = only_pretends(info);
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    bool kept = true;
    sbx_json_bool(sbx_json_get(info, limits[i].member), &kept);
    if (limits[i].asked && (!kept || pretends))
      return limits[i].option;
  }
  return NULL;
}

static void on_info(sbx_steps *steps, sbx_http *reply) {
  sbx_json_doc *doc = NULL;
  sbx_err err;
  int rc = sbx__docker_json(&doc, steps->session->config, &sbx__docker_engine, reply,
                            "ask the engine what it can do", &err);
  const char *missing =
      rc == SBX_OK ? missing_limit(steps->session->config, sbx_json_root(doc)) : NULL;
  sbx_json_free(doc, false);
  if (missing != NULL)
    rc = sbx_err_set(&err, SBX_EUNSUPPORTED,
                     "docker: this engine cannot keep the limit `%s` (a rootless engine needs "
                     "control groups of version 2, and a kernel that has the limit); leave it out, "
                     "or use another engine",
                     missing);
  if (rc == SBX_OK)
    steps->on_time(steps);
  else
    fail(steps, &err);
}

void sbx__docker_check_limits(sbx_steps *steps, sbx_steps_time then) {
  const sbx_config *config = steps->session->config;
  sbx_buf url;
  if (!config->asks_memory && !config->asks_cpus && !config->asks_pids) {
    then(steps);
    return;
  }
  steps->on_time = then;
  sbx__docker_url(&url, config, "/info");
  sbx__docker_send(steps, "GET", &url, NULL, true, on_info);
}
