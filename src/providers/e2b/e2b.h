/* e2b.h - what the files of the E2B provider do for each other.
 *
 *   provider.c  the provider's table
 *   config.c    options
 *   code.c      code in the interpreter      cell.c  the reply to it, line by line
 *   exec.c      commands and the end of their trees; command.c  the request that starts one
 *   files.c     put, get, list
 *   process.c   one process from its start event to its end
 *   life.c      create to delete; alive or gone, and for how long
 *   wire.c      one request
 *   session.c   what is known of one sandbox
 *
 * Each includes what stands below it only. */
#ifndef SBX_E2B_H
#define SBX_E2B_H

#include "providers/e2b/wire.h"

/* ---- life ----------------------------------------------------------------------------------- */

sbx_op *sbx__e2b_open(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__e2b_close(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__e2b_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg);
sbx_op *sbx__e2b_control(sbx_session *session, sbx_control control, uint64_t seconds,
                         sbx_op_done done, void *arg);

/* The lifetime begins anew now. */
void sbx__e2b_life_set(sbx_session *session, uint64_t seconds);
/* A command that may run for `limit_ms` begins: while it runs, the lifetime does not end. */
void sbx__e2b_life_enter(sbx_session *session, uint64_t limit_ms);
/* It has ended. */
void sbx__e2b_life_leave(sbx_session *session);
void sbx__e2b_life_init(sbx_session *session);
void sbx__e2b_life_deinit(sbx_session *session);

/* ---- files ---------------------------------------------------------------------------------- */

/* How the names of our own files begin; they are not listed. */
#define SBX__E2B_OURS ".cloudsandbox-"

/* A file to be written: its bytes are `prefix` and then `bytes`, both borrowed. */
typedef struct sbx__e2b_upload {
  char path[64]; /* "": none */
  sbx_slice prefix;
  sbx_slice bytes;
} sbx__e2b_upload;

sbx_op *sbx__e2b_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                     void *arg);
sbx_op *sbx__e2b_upload_file(sbx_session *session, const sbx__e2b_upload *upload, sbx_op_done done,
                             void *arg);
/* Asks for the removal of a file; succeeds whatever comes of it. */
sbx_op *sbx__e2b_remove_file(sbx_session *session, sbx_slice path, sbx_op_done done, void *arg);
sbx_op *sbx__e2b_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                     void *arg);
sbx_op *sbx__e2b_at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                         sbx_op_done done, void *arg);
sbx_op *sbx__e2b_list(sbx_session *session, size_t max_entries, sbx_listing *out, sbx_op_done done,
                      void *arg);

/* ---- commands ------------------------------------------------------------------------------- */

/* One command, and the kill of its tree. */
sbx_op *sbx__e2b_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                      sbx_exec_status *status, sbx_op_done done, void *arg);
sbx_op *sbx__e2b_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg);

/* ---- code ----------------------------------------------------------------------------------- */

/* In the interpreter of templates that have one. */
sbx_op *sbx__e2b_code(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                      sbx_exec_status *status, sbx_op_done done, void *arg);
/* Restarts the context of `code`, an op of sbx__e2b_code(); NULL when it is none or no memory. */
sbx_op *sbx__e2b_code_kill(sbx_session *session, sbx_op *code, sbx_op_done done, void *arg);
bool sbx__e2b_is_code(const sbx_op *op);
void sbx__e2b_contexts_free(sbx_session *session);

#endif
