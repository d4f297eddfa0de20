/* agentcore.h - what the files of the AgentCore provider do for each other.
 *
 *   provider.c  the provider's table
 *   config.c    options
 *   life.c      start or attach; alive or gone; stop
 *   files.c     put and get
 *   exec.c      executeCommand as the runner's wire: commands, kill and list
 *   result.c    what a tool's answer says
 *   wire.c      requests to the service, and what their refusals mean
 *   call.c      one signed request
 *   keys.c      what it is signed with, and where that comes from
 *   session.h   what is known of a session
 *   sigv4.c     the signature
 *
 * Each includes what stands below it only. */
#ifndef SBX_AGENTCORE_H
#define SBX_AGENTCORE_H

#include "providers/agentcore/wire.h"

/* ---- options -------------------------------------------------------------------------------- */

extern const char *const sbx__ac_options[];
int sbx__ac_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options, sbx_err *err);
void sbx__ac_config_free(sbx_config *config);

/* ---- life ----------------------------------------------------------------------------------- */

sbx_session *sbx__ac_session_new(sbx_config *config);
void sbx__ac_session_free(sbx_session *session);
sbx_op *sbx__ac_open(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__ac_close(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__ac_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg);

/* ---- commands ------------------------------------------------------------------------------- */

sbx_op *sbx__ac_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                     sbx_exec_status *status, sbx_op_done done, void *arg);
sbx_op *sbx__ac_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg);
sbx_op *sbx__ac_at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                        sbx_op_done done, void *arg);
sbx_op *sbx__ac_list(sbx_session *session, size_t max_entries, sbx_listing *out, sbx_op_done done,
                     void *arg);
/* Files by commands of ours; the path is absolute, or begins with "~". */
sbx_op *sbx__ac_read(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                     void *arg);
sbx_op *sbx__ac_write(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                      void *arg);

/* ---- files ---------------------------------------------------------------------------------- */

/* The path as commands see it. */
int sbx__ac_absolute(sbx_buf *out, const sbx_session *session, sbx_slice path);
sbx_op *sbx__ac_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                    void *arg);
sbx_op *sbx__ac_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                    void *arg);

#endif
