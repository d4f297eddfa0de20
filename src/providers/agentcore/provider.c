/* provider.c - the AgentCore provider: sessions of the Code Interpreter of AWS Bedrock AgentCore.
 */
#include "core/secrets.h"
#include "providers/agentcore/agentcore.h"

static const char *session_id(const sbx_session *session) {
  return session->dir != NULL ? session->id : NULL;
}

static const char *service(const sbx_config *config) {
  return config->url;
}

static void hide_text(sbx_err *err, const char *text) {
  if (text != NULL)
    sbx_secret_hide(err, sbx_slice_str(text));
}

static void hide(const sbx_config *config, const sbx_session *session, sbx_err *err) {
  (void)session; /* it has no credentials of its own */
  hide_text(err, config->keys.id);
  hide_text(err, config->keys.secret);
  hide_text(err, config->keys.token);
  hide_text(err, config->keys.pass);
  sbx_http_client_hide(config->http, err);
}

static bool session_owned(const sbx_session *session) {
  return session->config->owned;
}

const sbx_provider sbx_agentcore_provider = {
    .id = "agentcore",
    .caps = SBX_CAP_SEPARATE_STREAMS | SBX_CAP_TRUE_ORDER | SBX_CAP_STDIN | SBX_CAP_CWD |
            SBX_CAP_KILL | SBX_CAP_LIST | SBX_CAP_PATHS | SBX_CAP_PARTS,
    .limit_margin_ms = 2500,
    .kill_budget_ms = 5000,
    .options = sbx__ac_options,
    .config_size = sizeof(sbx_config),
    .configure = sbx__ac_configure,
    .config_free = sbx__ac_config_free,
    .service = service,
    .hide = hide,
    .session_new = sbx__ac_session_new,
    .session_free = sbx__ac_session_free,
    .session_id = session_id,
    .session_owned = session_owned,
    .open = sbx__ac_open,
    .close = sbx__ac_close,
    .probe = sbx__ac_probe,
    .exec = sbx__ac_exec,
    .kill = sbx__ac_kill,
    .put = sbx__ac_put,
    .get = sbx__ac_get,
    .list = sbx__ac_list,
    .at_path = sbx__ac_at_path,
};
