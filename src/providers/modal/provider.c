/* provider.c - the Modal provider: sandboxes made and used through Modal's gRPC services. */
#include "core/secrets.h"
#include "providers/modal/modal.h"
#include "providers/modal/process.h"

/* ---- commands and files --------------------------------------------------------------------- */

static sbx_op *run(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                   sbx_exec_status *status, sbx_op_done done, void *arg) {
  return sbx_process_exec(&sbx__modal_processes, session, session->config->loop, spec, out, status,
                          done, arg);
}

static sbx_op *put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                   void *arg) {
  return sbx_process_put(&sbx__modal_processes, session, session->config->loop, path, bytes, done,
                         arg);
}

static sbx_op *get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                   void *arg) {
  return sbx_process_get(&sbx__modal_processes, session, session->config->loop, path, out, NULL,
                         done, arg);
}

static void send_line(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how) {
  sbx_process_line(&sbx__modal_processes, op, body, how);
}

static const sbx_runner_wire wire = {.provider = "modal", .send = send_line};

static sbx_runner *runner_of(sbx_session *session) {
  sbx_runner *runner = &session->runner;
  runner->wire = &wire;
  runner->loop = session->config->loop;
  return runner;
}

static sbx_op *list(sbx_session *session, size_t max_entries, sbx_listing *out, sbx_op_done done,
                    void *arg) {
  return sbx_runner_list(runner_of(session), session, sbx_slice_of(NULL, 0), max_entries, out, done,
                         arg);
}

static sbx_op *at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                       sbx_op_done done, void *arg) {
  return sbx_runner_at_path(runner_of(session), session, request, NULL, out, done, arg);
}

/* ---- the table ------------------------------------------------------------------------------ */

static const char *session_id(const sbx_session *session) {
  return session->open ? session->id : NULL;
}

static const char *service(const sbx_config *config) {
  return config->server_url;
}

static bool session_owned(const sbx_session *session) {
  return session->config->owned;
}

static void hide_text(sbx_err *err, const char *secret) {
  if (secret != NULL)
    sbx_secret_hide(err, sbx_slice_str(secret));
}

static void hide(const sbx_config *config, const sbx_session *session, sbx_err *err) {
  sbx_secret_hide_fields(err, &config->headers);
  sbx_http_client_hide(config->http, err);
  if (session == NULL)
    return;
  hide_text(err, session->auth);
  hide_text(err, session->jwt);
}

const sbx_provider sbx_modal_provider = {
    .id = "modal",
    .caps = SBX_CAP_SEPARATE_STREAMS | SBX_CAP_TRUE_ORDER | SBX_CAP_STDIN | SBX_CAP_CWD |
            SBX_CAP_KILL | SBX_CAP_LIST | SBX_CAP_PATHS | SBX_CAP_PARTS,
    .limit_margin_ms = 2500,
    .kill_budget_ms = 5000,
    .kill_confirms = true,
    .options = sbx__modal_options,
    .config_size = sizeof(sbx_config),
    .configure = sbx__modal_configure,
    .config_free = sbx__modal_config_free,
    .service = service,
    .hide = hide,
    .session_new = sbx__modal_session_new,
    .session_free = sbx__modal_session_free,
    .session_id = session_id,
    .session_owned = session_owned,
    .open = sbx__modal_open,
    .close = sbx__modal_close,
    .probe = sbx__modal_probe,
    .exec = run,
    .kill = sbx_process_kill,
    .put = put,
    .get = get,
    .list = list,
    .at_path = at_path,
};
