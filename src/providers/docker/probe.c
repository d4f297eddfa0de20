/* probe.c - alive or gone. */
#include "providers/docker/docker.h"

typedef struct probe_op {
  sbx_steps steps;
  sbx_liveness *out;
} probe_op;

/* A container removes itself when it stops; one that is not ours may be started by others, but all
 * that ran in it is gone. */
static sbx_liveness liveness_of(sbx_slice status) {
  static const struct {
    const char *status;
    sbx_liveness liveness;
  } table[] = {{"running", SBX_ALIVE}, {"paused", SBX_ALIVE},  {"exited", SBX_GONE},
               {"dead", SBX_GONE},     {"removing", SBX_GONE}, {"stopped", SBX_GONE},
               {"stopping", SBX_GONE}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (sbx_slice_eq_str(status, table[i].status))
      return table[i].liveness;
  }
  return SBX_LIVENESS_UNKNOWN;
}

static void on_probed(sbx_steps *steps, sbx_http *reply) {
  probe_op *probe = (probe_op *)(void *)steps;
  sbx_json_doc *doc = NULL;
  sbx_slice id, status;
  sbx_err err;
  int rc = sbx__docker_json(&doc, steps->session->config, &sbx__docker_container, reply,
                            "look at the container", &err);
  const sbx_json *root = rc == SBX_OK ? sbx_json_root(doc) : NULL;
  if (rc == SBX_ELOST)
    *probe->out = SBX_GONE;
  else if (sbx_json_string(sbx_json_get(root, "Id"), &id) &&
           sbx_slice_eq_str(id, steps->session->id) &&
           sbx_json_string(sbx_json_get(sbx_json_get(root, "State"), "Status"), &status))
    *probe->out = liveness_of(status);
  sbx_json_free(doc, true);
  sbx_steps_finish(steps, NULL);
}

sbx_op *sbx__docker_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg) {
  sbx_buf url;
  probe_op *probe = sbx_steps_new(sizeof *probe, session, session->config->loop, done, arg);
  if (probe == NULL)
    return NULL;
  probe->out = out;
  *out = SBX_LIVENESS_UNKNOWN;
  sbx__docker_container_url(&url, session->config, session->id, "/json");
  sbx__docker_send(&probe->steps, "GET", &url, NULL, true, on_probed);
  return &probe->steps.op;
}
