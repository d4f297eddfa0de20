/* wire.c - one request to the engine, and what its refusals mean.
 *
 * Docker and Podman answer the same questions with different statuses, so the words count, too. */
#include "providers/docker/wire.h"

#include "core/err.h"
#include "core/url.h"

#include <errno.h>

/* ---- requests ------------------------------------------------------------------------------- */

int sbx__docker_url(sbx_buf *out, const sbx_config *config, const char *path) {
  sbx_buf_init(out, SBX__DOCKER_URL_MAX);
  return sbx_buf_appendf(out, "%s/v1.%d%s", config->base, config->minor, path);
}

int sbx__docker_container_url(sbx_buf *out, const sbx_config *config, const char *id,
                              const char *rest) {
  sbx__docker_url(out, config, "/containers");
  sbx_url_append_segment(out, sbx_slice_str(id));
  return sbx_buf_append_str(out, rest);
}

/* What describes a container may repeat all that its create has said. */
enum { MAX_REPLY = 1024 * 1024 };

void sbx__docker_send(sbx_steps *steps, const char *method, sbx_buf *url, sbx_buf *json,
                      bool repeatable, sbx_steps_reply on_reply) {
  const sbx_config *config = steps->session->config;
  sbx_http_request request = {
      .method = method,
      .headers = json != NULL ? &config->headers : NULL,
      .take_body = json,
      .repeatable = repeatable,
      .timeout_ms = SBX_NO_TIMEOUT,
      .max_bytes = MAX_REPLY,
  };
  sbx_remote_exchange_send(steps, config->http, url, &request, NULL, on_reply);
}

/* ---- refusals ------------------------------------------------------------------------------- */

#define PAUSED "; unpause it first (docker unpause, podman unpause)"
#define NO_RUNTIME                                                                                 \
  "; install that runtime and tell the engine of it, or leave `runtime` out for its own one"

// clang-format off
#define COMMON_MEANINGS                                                                            \
  {409, "is paused", SBX_ECONFLICT, PAUSED, SBX_REMOTE_EFFECT_NONE},                               \
  {500, "is paused", SBX_ECONFLICT, PAUSED, SBX_REMOTE_EFFECT_NONE},                               \
  {500, "container state improper", SBX_ECONFLICT, "; it does not run, or is paused",              \
   SBX_REMOTE_EFFECT_NONE},                                                                        \
  {500, "is not running", SBX_ECONFLICT, NULL, SBX_REMOTE_EFFECT_NONE},                            \
  {400, "runtime name", SBX_EINVAL, NO_RUNTIME, SBX_REMOTE_EFFECT_NONE},                           \
  {500, "runtime name", SBX_EINVAL, NO_RUNTIME, SBX_REMOTE_EFFECT_NONE},                           \
  {500, "no space left", SBX_EQUOTA, "; the engine's disk is full", SBX_REMOTE_EFFECT_POSSIBLE}
// clang-format on

static const sbx_remote_meaning engine_meanings[] = {COMMON_MEANINGS, {0}};

static const sbx_remote_meaning container_meanings[] = {
    COMMON_MEANINGS,
    {404, "no such container", SBX_ELOST, NULL, SBX_REMOTE_EFFECT_NONE},
    {404, "no container with name or id", SBX_ELOST, NULL, SBX_REMOTE_EFFECT_NONE},
    {404, "no such exec instance", SBX_ECONFLICT, NULL, SBX_REMOTE_EFFECT_NONE},
    {0},
};

#define FOREIGN "; is a container engine at this address? `host` says where it is"

const sbx_remote_service sbx__docker_engine = {
    .provider = "docker",
    .meanings = engine_meanings,
    .foreign = FOREIGN,
};

const sbx_remote_service sbx__docker_container = {
    .provider = "docker",
    .meanings = container_meanings,
    .foreign = FOREIGN,
};

/* ---- no engine ------------------------------------------------------------------------------ */

typedef struct unreachable {
  int os_error;
  bool over_tcp;
  int code;
  const char *before; /* the address stands between */
  const char *after;
} unreachable;

static const unreachable reasons[] = {
    {ENOENT, false, SBX_ENOTREADY, "there is no container engine: there is no socket at ",
     ". Install Docker or Podman and start it (systemctl start docker; systemctl --user start "
     "podman.socket), or name the socket of another one by `host` or DOCKER_HOST"},
    {ENOTDIR, false, SBX_ENOTREADY, "there is no container engine: there is no socket at ",
     ", since the path leads through a file. Correct `host` or DOCKER_HOST"},
    {EACCES, false, SBX_EFORBIDDEN, "this user has no right to use the container engine at ",
     ". Add it to the group of the socket (usermod -aG docker USER, and log in anew; whoever may "
     "use it is as good as root), or use a rootless engine"},
    {ECONNREFUSED, false, SBX_ENET,
     "the container engine does not run: nobody listens at the socket ",
     ". Start it (systemctl start docker), or remove the socket if it is of one that is gone"},
    {ECONNREFUSED, true, SBX_ENET, "the container engine cannot be reached: nothing listens at ",
     ". Is the port right, and was the engine started with an address for it (dockerd -H "
     "tcp://...)?"},
};

/* The three of them that anybody meets differ in what is to be done. */
static int tell_unreachable(sbx_err *err, const sbx_config *config, const sbx_http *reply) {
  bool over_tcp = config->service[0] != '/';
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
    const unreachable *why = &reasons[i];
    if (why->os_error != reply->os_error || why->over_tcp != over_tcp)
      continue;
    sbx_err_set(err, why->code, "docker: %s%s%s", why->before, config->service, why->after);
    err->provider = "docker";
    err->no_effect = true;
    break;
  }
  return err->code;
}

int sbx__docker_check(sbx_err *err, const sbx_config *config, const sbx_remote_service *service,
                      const sbx_http *reply, const char *verb) {
  int rc = sbx_remote_exchange_check(err, service, reply, verb);
  return rc != SBX_OK && reply->os_error != 0 ? tell_unreachable(err, config, reply) : rc;
}

int sbx__docker_json(sbx_json_doc **doc, const sbx_config *config,
                     const sbx_remote_service *service, const sbx_http *reply, const char *verb,
                     sbx_err *err) {
  int rc = sbx_remote_exchange_json(doc, service, reply, verb, err);
  return rc != SBX_OK && reply->os_error != 0 ? tell_unreachable(err, config, reply) : rc;
}
