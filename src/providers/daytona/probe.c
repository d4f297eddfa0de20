/* probe.c - alive, halted or gone. */
#include "providers/daytona/daytona.h"

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
  int rc = sbx_remote_exchange_json(&doc, &sbx__daytona_api, reply, "look at the sandbox", &err);
  if (rc == SBX_ENOTFOUND) {
    *probe->out = SBX_GONE;
  } else if (rc == SBX_OK && sbx__daytona_is_named(sbx_json_root(doc), session->id)) {
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

sbx_op *sbx__daytona_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg) {
  probe_op *probe = sbx_steps_new(sizeof *probe, session, session->config->loop, done, arg);
  if (probe == NULL)
    return NULL;
  probe->out = out;
  *out = SBX_LIVENESS_UNKNOWN;
  sbx__daytona_to_api(&probe->steps, "GET", session->id, "", on_probed);
  return &probe->steps.op;
}
