/* daytona.h - what the files of the Daytona provider do for each other.
 *
 *   provider.c  the provider's table
 *   config.c    options
 *   life.c      create or attach, wait until started; alive, halted or gone; delete
 *   exec.c      the toolbox as the runner's wire: commands, kill and list
 *   files.c     put and get
 *   wire.c      requests to the API and to the toolbox, and what their refusals mean
 *   session.c   a sandbox as it is known here, and what a Sandbox object says of it
 *
 * Each includes what stands below it only. */
#ifndef SBX_DAYTONA_H
#define SBX_DAYTONA_H

#include "providers/daytona/wire.h"

/* ---- options -------------------------------------------------------------------------------- */

extern const char *const sbx__daytona_options[];
int sbx__daytona_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options,
                           sbx_err *err);
void sbx__daytona_config_free(sbx_config *config);

/* ---- life ----------------------------------------------------------------------------------- */

sbx_op *sbx__daytona_open(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__daytona_close(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__daytona_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg);

/* ---- commands ------------------------------------------------------------------------------- */

sbx_op *sbx__daytona_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                          sbx_exec_status *status, sbx_op_done done, void *arg);
sbx_op *sbx__daytona_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg);
sbx_op *sbx__daytona_at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                             sbx_op_done done, void *arg);
sbx_op *sbx__daytona_list(sbx_session *session, size_t max_entries, sbx_listing *out,
                          sbx_op_done done, void *arg);

/* Reads a file, whose path is absolute, by a command of ours. */
sbx_op *sbx__daytona_read(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                          void *arg);

/* ---- files ---------------------------------------------------------------------------------- */

sbx_op *sbx__daytona_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                         void *arg);
sbx_op *sbx__daytona_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                         void *arg);

#endif
