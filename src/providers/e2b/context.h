/* context.h - the interpreter's contexts. */
#ifndef SBX_E2B_CONTEXT_H
#define SBX_E2B_CONTEXT_H

#include "providers/e2b/session.h"

/* The name of a language at the interpreter. */
const char *sbx__e2b_language(sbx_language language);
/* Whether `spec` names a context, or a directory, and so wants another one than the default. */
bool sbx__e2b_needs_context(const sbx_exec_spec *spec);
/* Finds that context; makes it at its first use. sbx_free() *id; it must live as long as the op. */
sbx_op *sbx__e2b_context_wait(sbx_session *session, const sbx_exec_spec *spec, char **id,
                              sbx_op_done done, void *arg);
/* The service does not know it any more: the next use makes a new one. */
void sbx__e2b_context_forget(sbx_session *session, const char *id);
/* Restarts the context, `id` NULL: the default one of `language`; its state is lost. */
sbx_op *sbx__e2b_context_restart(sbx_session *session, const char *id, sbx_language language,
                                 sbx_op_done done, void *arg);
void sbx__e2b_contexts_free(sbx_session *session);

#endif
