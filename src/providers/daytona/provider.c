/* provider.c - the Daytona provider: sandboxes made through its API, used through their toolboxes.
 *
 * Invariant: a session's fields change only in open, which may come again beside other operations;
 * these read them whenever they send, and keep none, so that any number may run at once. The
 * exception is the list of folders that commands have left, which each of them takes from. */
#include "providers/daytona/daytona.h"

#include "core/alloc.h"
#include "core/err.h"

/* ---- session -------------------------------------------------------------------------------- */

static void session_free(sbx_session *session) {
  if (session == NULL)
    return;
  sbx_free(session->name);
  sbx_free(session->id);
  sbx_free(session->toolbox);
  sbx_free(session->dir);
  sbx_free(session);
}

static sbx_session *session_new(sbx_config *config) {
  sbx_session *session = sbx_calloc(1, sizeof *session);
  if (session == NULL)
    return NULL;
  session->config = config;
  return session;
}

static const char *session_id(const sbx_session *session) {
  return session->open ? session->id : NULL;
}

static const char *service(const sbx_config *config) {
  return config->api_url;
}

static bool session_owned(const sbx_session *session) {
  return session->config->owned;
}

/* ---- what a Sandbox object says ------------------------------------------------------------- */

sbx__daytona_state sbx__daytona_state_of(const sbx_json *sandbox) {
  static const struct {
    const char *name;
    sbx__daytona_state state;
  } states[] = {
      {"started", SBX__DAYTONA_STARTED},  {"stopped", SBX__DAYTONA_HALTED},
      {"archived", SBX__DAYTONA_HALTED},  {"paused", SBX__DAYTONA_HALTED},
      {"error", SBX__DAYTONA_FAILED},     {"build_failed", SBX__DAYTONA_FAILED},
      {"destroyed", SBX__DAYTONA_GONE},   {"destroying", SBX__DAYTONA_GONE},
      {"stopping", SBX__DAYTONA_HALTING}, {"archiving", SBX__DAYTONA_HALTING},
      {"pausing", SBX__DAYTONA_HALTING},
  };
  sbx_slice name;
  if (!sbx_json_string(sbx_json_get(sandbox, "state"), &name))
    return SBX__DAYTONA_CHANGING;
  for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
    if (sbx_slice_eq_str(name, states[i].name))
      return states[i].state;
  }
  return SBX__DAYTONA_CHANGING;
}

/* ---- probe ---------------------------------------------------------------------------------- */

typedef struct probe_op {
  sbx_steps steps;
  sbx_liveness *out;
} probe_op;

/* A sandbox that is deleted as soon as it stops is gone when it stops; another one keeps its files.
 */
static sbx_liveness liveness_of(const sbx_session *session, sbx__daytona_state state) {
  switch (state) {
  case SBX__DAYTONA_STARTED:
    return SBX_ALIVE;
  case SBX__DAYTONA_GONE:
  case SBX__DAYTONA_FAILED:
    return SBX_GONE;
  case SBX__DAYTONA_HALTED:
  case SBX__DAYTONA_HALTING:
    return session->config->ephemeral ? SBX_GONE : SBX_HALTED;
  case SBX__DAYTONA_CHANGING:
    break;
  }
  return SBX_LIVENESS_UNKNOWN;
}

static void on_removed(sbx_steps *steps, sbx_http *reply) {
  (void)reply;
  sbx_steps_finish(steps, NULL);
}

static void on_probed(sbx_steps *steps, sbx_http *reply) {
  probe_op *probe = (probe_op *)(void *)steps;
  const sbx_session *session = steps->session;
  sbx_json_doc *doc = NULL;
  sbx_err err;
  sbx__daytona_state state = SBX__DAYTONA_GONE;
  int rc = sbx__daytona_check(&err, reply, "look at the sandbox");
  if (sbx__daytona_is_gone(reply)) {
    *probe->out = SBX_GONE;
  } else if (rc == SBX_OK && sbx_json_parse(&doc, sbx_buf_slice(&reply->body), NULL) == SBX_OK) {
    state = sbx__daytona_state_of(sbx_json_root(doc));
    *probe->out = liveness_of(session, state);
  }
  sbx_json_free(doc, true);
  /* It is of no use any more, but still there. */
  bool remains = *probe->out == SBX_GONE && state != SBX__DAYTONA_GONE;
  if (remains && session->config->owned)
    sbx__daytona_to_api(steps, "DELETE", session->id, "", on_removed);
  else
    sbx_steps_finish(steps, NULL);
}

static sbx_op *probe_session(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg) {
  probe_op *probe = sbx_steps_new(sizeof *probe, session, session->config->loop, done, arg);
  if (probe == NULL)
    return NULL;
  probe->out = out;
  *out = SBX_LIVENESS_UNKNOWN;
  sbx__daytona_to_api(&probe->steps, "GET", session->id, "", on_probed);
  return &probe->steps.op;
}

/* ---- table ---------------------------------------------------------------------------------- */

const sbx_provider sbx_daytona_provider = {
    .id = "daytona",
    .caps = SBX_CAP_SEPARATE_STREAMS | SBX_CAP_TRUE_ORDER | SBX_CAP_STDIN | SBX_CAP_CWD |
            SBX_CAP_KILL | SBX_CAP_LIST,
    .limit_margin_ms = 2500,
    .kill_budget_ms = 5000,
    .restarts = true,
    .options = sbx__daytona_options,
    .config_size = sizeof(sbx_config),
    .configure = sbx__daytona_configure,
    .config_free = sbx__daytona_config_free,
    .service = service,
    .session_new = session_new,
    .session_free = session_free,
    .session_id = session_id,
    .session_owned = session_owned,
    .open = sbx__daytona_open,
    .close = sbx__daytona_close,
    .probe = probe_session,
    .exec = sbx__daytona_exec,
    .kill = sbx__daytona_kill,
    .put = sbx__daytona_put,
    .get = sbx__daytona_get,
    .list = sbx__daytona_list,
};
