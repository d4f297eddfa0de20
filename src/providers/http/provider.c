/* provider.c - the http provider: sandboxes of any service that has the five requests. */
#include "core/alloc.h"
#include "core/secrets.h"
#include "providers/http/service.h"

static const char *service(const sbx_config *config) {
  return config->url;
}

static void hide(const sbx_config *config, const sbx_session *session, sbx_err *err) {
  (void)session;
  sbx_secret_hide_fields(err, &config->headers);
  sbx_http_client_hide(config->http, err);
}

static sbx_session *session_new(sbx_config *config) {
  sbx_session *session = sbx_calloc(1, sizeof *session);
  if (session != NULL)
    session->config = config;
  return session;
}

static void session_free(sbx_session *session) {
  sbx_free(session->id);
  sbx_free(session->dir);
  sbx_free(session);
}

static const char *session_id(const sbx_session *session) {
  return session->dir != NULL ? session->id : NULL;
}

static bool session_owned(const sbx_session *session) {
  return session->config->owned;
}

const sbx_provider sbx_http_provider = {
    .id = "http",
    .caps = SBX_CAP_SEPARATE_STREAMS | SBX_CAP_TRUE_ORDER | SBX_CAP_STDIN | SBX_CAP_CWD |
            SBX_CAP_KILL | SBX_CAP_LIST | SBX_CAP_PATHS | SBX_CAP_PARTS,
    .limit_margin_ms = 2500,
    .kill_budget_ms = 5000,
    .options = sbx__hs_options,
    .config_size = sizeof(sbx_config),
    .configure = sbx__hs_configure,
    .config_free = sbx__hs_config_free,
    .service = service,
    .hide = hide,
    .session_new = session_new,
    .session_free = session_free,
    .session_id = session_id,
    .session_owned = session_owned,
    .open = sbx__hs_open,
    .close = sbx__hs_close,
    .probe = sbx__hs_probe,
    .exec = sbx__hs_exec,
    .kill = sbx__hs_kill,
    .put = sbx__hs_put,
    .get = sbx__hs_get,
    .list = sbx__hs_list,
    .at_path = sbx__hs_at_path,
};
