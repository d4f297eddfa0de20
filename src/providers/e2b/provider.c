/* provider.c - the E2B provider: sandboxes made by its control plane, used through the daemon and
 * the interpreter that run in each of them. */
#include "providers/e2b/e2b.h"

#include "core/alloc.h"
#include "core/secrets.h"

/* ---- sessions ------------------------------------------------------------------------------- */

static sbx_session *session_new(sbx_config *config) {
  sbx_session *session = sbx_calloc(1, sizeof *session);
  if (session == NULL)
    return NULL;
  session->config = config;
  session->can_pause = config->can_pause;
  sbx__e2b_life_init(session);
  return session;
}

static void session_free(sbx_session *session) {
  sbx__e2b_life_deinit(session);
  sbx__e2b_contexts_free(session);
  sbx__e2b_box_free(&session->box);
  sbx_free(session->runner);
  sbx_free(session);
}

static const char *session_id(const sbx_session *session) {
  return session->open ? session->box.id : NULL;
}

static const char *service(const sbx_config *config) {
  return config->api_url;
}

static void hide_text(const char *secret, sbx_err *err) {
  if (secret != NULL)
    sbx_secret_hide(err, sbx_slice_str(secret));
}

static void hide(const sbx_config *config, const sbx_session *session, sbx_err *err) {
  hide_text(config->api_key, err);
  sbx_secret_hide_fields(err, &config->headers);
  sbx_http_client_hide(config->http, err);
  if (session == NULL)
    return;
  hide_text(session->box.access_token, err);
  hide_text(session->box.traffic_token, err);
}

static uint32_t lacks(const sbx_config *config) {
  return config->interpreter ? 0 : SBX_CAP_CONTEXTS;
}

static bool session_owned(const sbx_session *session) {
  return session->config->owned;
}

/* ---- table ---------------------------------------------------------------------------------- */

static sbx_op *exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                    sbx_exec_status *status, sbx_op_done done, void *arg) {
  bool is_code = spec->kind == SBX_EXEC_CODE && session->config->interpreter;
  *status = (sbx_exec_status){.outcome = SBX_EXITED};
  return is_code ? sbx__e2b_code(session, spec, out, status, done, arg)
                 : sbx__e2b_exec(session, spec, out, status, done, arg);
}

static sbx_op *kill_exec(sbx_session *session, sbx_op *op, sbx_op_done done, void *arg) {
  return sbx__e2b_is_code(op) ? sbx__e2b_code_kill(session, op, done, arg)
                              : sbx__e2b_kill(session, op, done, arg);
}

const sbx_provider sbx_e2b_provider = {
    .id = "e2b",
    .caps = SBX_CAP_SEPARATE_STREAMS | SBX_CAP_TRUE_ORDER | SBX_CAP_STDIN | SBX_CAP_CWD |
            SBX_CAP_KILL | SBX_CAP_LIST | SBX_CAP_PATHS | SBX_CAP_PARTS | SBX_CAP_CONTEXTS |
            SBX_CAP_LIFETIME | SBX_CAP_PAUSE,
    .lacks = lacks,
    .limit_margin_ms = 1000,
    .kill_budget_ms = 5000,
    .kill_confirms = true,
    .options = sbx__e2b_options,
    .config_size = sizeof(sbx_config),
    .configure = sbx__e2b_configure,
    .config_free = sbx__e2b_config_free,
    .service = service,
    .hide = hide,
    .session_new = session_new,
    .session_free = session_free,
    .session_id = session_id,
    .session_owned = session_owned,
    .open = sbx__e2b_open,
    .close = sbx__e2b_close,
    .probe = sbx__e2b_probe,
    .exec = exec,
    .kill = kill_exec,
    .put = sbx__e2b_put,
    .get = sbx__e2b_get,
    .list = sbx__e2b_list,
    .at_path = sbx__e2b_at_path,
    .control = sbx__e2b_control,
};
