/* exec.h - commands. */
#ifndef SBX_E2B_EXEC_H
#define SBX_E2B_EXEC_H

#include "core/op.h"
#include "core/output.h"
#include "providers/provider.h"

/* One command, and the kill of its tree. */
sbx_op *sbx__e2b_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                      sbx_exec_status *status, sbx_op_done done, void *arg);
sbx_op *sbx__e2b_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg);

#endif
