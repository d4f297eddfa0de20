/* provider.c - the Vercel provider: sandboxes made and used through Vercel's API. */
#include "core/secrets.h"
#include "providers/vercel/vercel.h"

static const char *session_id(const sbx_session *session) {
  return session->open ? session->name : NULL;
}

static const char *service(const sbx_config *config) {
  return config->api_url;
}

/* A session has no credentials of its own. */
static void hide(const sbx_config *config, const sbx_session *session, sbx_err *err) {
  (void)session;
  sbx_secret_hide_fields(err, &config->headers);
  sbx_http_client_hide(config->http, err);
}

static bool session_owned(const sbx_session *session) {
  return session->config->owned;
}

const sbx_provider sbx_vercel_provider = {
    .id = "vercel",
    .caps = SBX_CAP_SEPARATE_STREAMS | SBX_CAP_TRUE_ORDER | SBX_CAP_STDIN | SBX_CAP_CWD |
            SBX_CAP_KILL | SBX_CAP_LIST | SBX_CAP_PATHS | SBX_CAP_PARTS | SBX_CAP_EXTEND,
    .limit_margin_ms = 2500,
    .kill_budget_ms = 5000,
    .options = sbx__vercel_options,
    .config_size = sizeof(sbx_config),
    .configure = sbx__vercel_configure,
    .config_free = sbx__vercel_config_free,
    .service = service,
    .hide = hide,
    .session_new = sbx__vercel_session_new,
    .session_free = sbx__vercel_session_free,
    .session_id = session_id,
    .session_owned = session_owned,
    .open = sbx__vercel_open,
    .close = sbx__vercel_close,
    .probe = sbx__vercel_probe,
    .exec = sbx__vercel_exec,
    .kill = sbx__vercel_kill,
    .put = sbx__vercel_put,
    .get = sbx__vercel_get,
    .list = sbx__vercel_list,
    .at_path = sbx__vercel_at_path,
    .control = sbx__vercel_control,
};
