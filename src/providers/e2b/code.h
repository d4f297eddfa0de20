/* code.h - code in the interpreter of templates that have one. */
#ifndef SBX_E2B_CODE_H
#define SBX_E2B_CODE_H

#include "core/op.h"
#include "core/output.h"
#include "providers/provider.h"

sbx_op *sbx__e2b_code(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                      sbx_exec_status *status, sbx_op_done done, void *arg);
/* Restarts the context of `code`, an op of sbx__e2b_code(); NULL when it is none or no memory. */
sbx_op *sbx__e2b_code_kill(sbx_session *session, sbx_op *code, sbx_op_done done, void *arg);
bool sbx__e2b_is_code(const sbx_op *op);

#endif
