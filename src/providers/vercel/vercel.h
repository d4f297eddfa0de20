/* vercel.h - what the files of the Vercel provider do for each other.
 *
 *   provider.c  the provider's table
 *   config.c    options
 *   life.c      create or attach, wait until it runs; alive or gone; prolong; delete
 *   files.c     put and get
 *   exec.c      the cmd route as the runner's wire: commands, kill and list
 *   wire.c      requests to the API and what their refusals mean; archives
 *   logs.c      reads the lines that a command's answer is made of
 *
 * Each includes what stands below it only. */
#ifndef SBX_VERCEL_H
#define SBX_VERCEL_H

#include "providers/vercel/wire.h"

/* ---- options -------------------------------------------------------------------------------- */

extern const char *const sbx__vercel_options[];
int sbx__vercel_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options,
                          sbx_err *err);
void sbx__vercel_config_free(sbx_config *config);

/* ---- life ----------------------------------------------------------------------------------- */

sbx_session *sbx__vercel_session_new(sbx_config *config);
void sbx__vercel_session_free(sbx_session *session);
sbx_op *sbx__vercel_open(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__vercel_close(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__vercel_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg);
sbx_op *sbx__vercel_control(sbx_session *session, sbx_control control, uint64_t seconds,
                            sbx_op_done done, void *arg);

/* ---- commands ------------------------------------------------------------------------------- */

sbx_op *sbx__vercel_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                         sbx_exec_status *status, sbx_op_done done, void *arg);
sbx_op *sbx__vercel_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg);
sbx_op *sbx__vercel_at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                            sbx_op_done done, void *arg);
sbx_op *sbx__vercel_list(sbx_session *session, size_t max_entries, sbx_listing *out,
                         sbx_op_done done, void *arg);

/* Reads and writes a file by a command of ours; the path is absolute, or begins with "~". */
sbx_op *sbx__vercel_read(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                         void *arg);
sbx_op *sbx__vercel_write(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                          void *arg);

/* ---- files ---------------------------------------------------------------------------------- */

sbx_op *sbx__vercel_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                        void *arg);
sbx_op *sbx__vercel_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                        void *arg);

#endif
