/* provider.c - the docker provider: containers on a machine with Docker or Podman, by the engine's
 * HTTP API. */
#include "core/alloc.h"
#include "providers/docker/config.h"
#include "providers/docker/docker.h"
#include "providers/docker/process.h"

static sbx_session *session_new(sbx_config *config) {
  sbx_session *session = sbx_calloc(1, sizeof *session);
  if (session != NULL)
    session->config = config;
  return session;
}

static void session_free(sbx_session *session) {
  if (session == NULL)
    return;
  sbx_free(session->id);
  sbx_free(session);
}

static const char *session_id(const sbx_session *session) {
  return session->open ? session->id : NULL;
}

static bool session_owned(const sbx_session *session) {
  return session->config->owned;
}

static const char *service(const sbx_config *config) {
  return config->service;
}

static void watch(sbx_session *session, void (*fn)(void *arg, sbx_slice json), void *arg) {
  session->on_progress = fn;
  session->progress_arg = arg;
}

static sbx_op *run(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                   sbx_exec_status *status, sbx_op_done done, void *arg) {
  return sbx_process_exec(&sbx__docker_processes, session, session->config->loop, spec, out, status,
                          done, arg);
}

const sbx_provider sbx_docker_provider = {
    .id = "docker",
    .caps = SBX_CAP_SEPARATE_STREAMS | SBX_CAP_TRUE_ORDER | SBX_CAP_STDIN | SBX_CAP_CWD |
            SBX_CAP_KILL | SBX_CAP_LIST | SBX_CAP_PATHS | SBX_CAP_PARTS,
    .limit_margin_ms = 2500,
    .kill_budget_ms = 5000,
    .kill_confirms = true,
    .options = sbx__docker_options,
    .config_size = sizeof(sbx_config),
    .configure = sbx__docker_configure,
    .config_free = sbx__docker_config_free,
    .service = service,
    .session_new = session_new,
    .session_free = session_free,
    .session_id = session_id,
    .session_owned = session_owned,
    .watch = watch,
    .open = sbx__docker_open,
    .close = sbx__docker_close,
    .probe = sbx__docker_probe,
    .exec = run,
    .kill = sbx_process_kill,
    .put = sbx__docker_put,
    .get = sbx__docker_get,
    .list = sbx__docker_list,
    .at_path = sbx__docker_at_path,
    .sweep = sbx__docker_sweep,
};
