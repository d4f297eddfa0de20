/* probe.c - looks whether a sandbox lives. */
#include "providers/remote/probe.h"

typedef struct probe_op {
  sbx_steps steps;
  sbx_liveness *out;
} probe_op;

sbx_steps *sbx_remote_probe_new(sbx_session *session, sbx_loop *loop, sbx_liveness *out,
                                sbx_op_done done, void *arg) {
  probe_op *probe = sbx_steps_new(sizeof *probe, session, loop, done, arg);
  if (probe == NULL)
    return NULL;
  probe->out = out;
  *out = SBX_LIVENESS_UNKNOWN;
  return &probe->steps;
}

void sbx_remote_probe_tell(sbx_steps *probe, sbx_liveness liveness) {
  *((probe_op *)(void *)probe)->out = liveness;
}
