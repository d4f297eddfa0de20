/* open.h - from the create of a sandbox to its delete. */
#ifndef SBX_E2B_OPEN_H
#define SBX_E2B_OPEN_H

#include "providers/e2b/session.h"

sbx_op *sbx__e2b_open(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__e2b_close(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__e2b_control(sbx_session *session, sbx_control control, uint64_t seconds,
                         sbx_op_done done, void *arg);

#endif
