/* line.h - the runner's programs in a sandbox, for what the daemon's file services cannot do. */
#ifndef SBX_E2B_LINE_H
#define SBX_E2B_LINE_H

#include "core/op.h"
#include "providers/provider.h"

/* As `read` of sbx_remote_files has it. */
sbx_op *sbx__e2b_line_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                          void *arg);
/* The files of the home directory. */
sbx_op *sbx__e2b_line_list(sbx_session *session, size_t max_entries, sbx_listing *out,
                           sbx_op_done done, void *arg);

#endif
