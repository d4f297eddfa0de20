/* probe.c - alive or gone. */
#include "providers/docker/docker.h"

#include "providers/remote/probe.h"

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
  sbx_json_doc *doc = NULL;
  sbx_slice id, status;
  sbx_err err;
  int rc = sbx__docker_json(&doc, steps->session->config, &sbx__docker_container, reply,
                            "look at the container", &err);
  const sbx_json *root = rc == SBX_OK ? sbx_json_root(doc) : NULL;
  if (rc == SBX_ELOST)
    sbx_remote_probe_tell(steps, SBX_GONE);
  else if (sbx_json_string(sbx_json_get(root, "Id"), &id) &&
           sbx_slice_eq_str(id, steps->session->id) &&
           sbx_json_string(sbx_json_get(sbx_json_get(root, "State"), "Status"), &status))
    sbx_remote_probe_tell(steps, liveness_of(status));
  sbx_json_free(doc, true);
  sbx_steps_finish(steps, NULL);
}

sbx_op *sbx__docker_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg) {
  sbx_buf url;
  sbx_steps *probe = sbx_remote_probe_new(session, session->config->loop, out, done, arg);
  if (probe == NULL)
    return NULL;
  sbx__docker_container_url(&url, session->config, session->id, "/json");
  sbx__docker_send(probe, "GET", &url, NULL, true, on_probed);
  return &probe->op;
}
