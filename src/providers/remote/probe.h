/* probe.h - looks whether a sandbox lives: an operation of requests with one word as its result. */
#ifndef SBX_REMOTE_PROBE_H
#define SBX_REMOTE_PROBE_H

#include "providers/remote/steps.h"

/* *out is SBX_LIVENESS_UNKNOWN until it is told; a probe that ends early, or whose question is not
 * answered, leaves it so. NULL on out of memory. */
sbx_steps *sbx_remote_probe_new(sbx_session *session, sbx_loop *loop, sbx_liveness *out,
                                sbx_op_done done, void *arg);
/* Sets *out; the operation goes on. */
void sbx_remote_probe_tell(sbx_steps *probe, sbx_liveness liveness);

#endif
