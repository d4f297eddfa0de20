/* provider.c - the Daytona provider: sandboxes made through its API, used through their toolboxes.
 */
#include "core/secrets.h"
#include "providers/daytona/daytona.h"

static const char *session_id(const sbx_session *session) {
  return session->open ? session->id : NULL;
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

const sbx_provider sbx_daytona_provider = {
    .id = "daytona",
    .caps = SBX_CAP_SEPARATE_STREAMS | SBX_CAP_TRUE_ORDER | SBX_CAP_STDIN | SBX_CAP_CWD |
            SBX_CAP_KILL | SBX_CAP_LIST | SBX_CAP_PATHS | SBX_CAP_PARTS,
    .limit_margin_ms = 2500,
    .kill_budget_ms = 5000,
    .restarts = true,
    .options = sbx__daytona_options,
    .config_size = sizeof(sbx_config),
    .configure = sbx__daytona_configure,
    .config_free = sbx__daytona_config_free,
    .service = service,
    .hide = hide,
    .session_new = sbx__daytona_session_new,
    .session_free = sbx__daytona_session_free,
    .session_id = session_id,
    .session_owned = session_owned,
    .open = sbx__daytona_open,
    .close = sbx__daytona_close,
    .probe = sbx__daytona_probe,
    .exec = sbx__daytona_exec,
    .kill = sbx__daytona_kill,
    .put = sbx__daytona_put,
    .get = sbx__daytona_get,
    .list = sbx__daytona_list,
    .at_path = sbx__daytona_at_path,
};
