/* modal.h - what the files of the Modal provider do for each other.
 *
 *   provider.c  the provider's table; commands and files, which are processes
 *   config.c    options
 *   life.c      create or attach; alive or gone; delete
 *   process.c   one process by the command router
 *   access.c    tokens
 *   wire.c      one gRPC call, and what its refusals mean
 *
 * Each includes what stands below it only. */
#ifndef SBX_MODAL_H
#define SBX_MODAL_H

#include "providers/modal/session.h"

extern const char *const sbx__modal_options[];
int sbx__modal_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options, sbx_err *err);
void sbx__modal_config_free(sbx_config *config);

sbx_session *sbx__modal_session_new(sbx_config *config);
void sbx__modal_session_free(sbx_session *session);
sbx_op *sbx__modal_open(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__modal_close(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__modal_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg);

#endif
