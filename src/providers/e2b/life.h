/* life.h - alive or gone, and for how long. */
#ifndef SBX_E2B_LIFE_H
#define SBX_E2B_LIFE_H

#include "providers/e2b/session.h"

sbx_op *sbx__e2b_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg);

/* The lifetime begins anew now. */
void sbx__e2b_life_set(sbx_session *session, uint64_t seconds);
/* A command that may run for `limit_ms` begins: while it runs, the lifetime does not end. */
void sbx__e2b_life_enter(sbx_session *session, uint64_t limit_ms);
/* It has ended. */
void sbx__e2b_life_leave(sbx_session *session);
void sbx__e2b_life_init(sbx_session *session);
void sbx__e2b_life_deinit(sbx_session *session);

#endif
