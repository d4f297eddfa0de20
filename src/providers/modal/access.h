/* access.h - the two tokens of a session: of the control plane, and of its command router. */
#ifndef SBX_MODAL_ACCESS_H
#define SBX_MODAL_ACCESS_H

#include "providers/modal/wire.h"

bool sbx__modal_is_authorized(const sbx_session *session);
/* Gets a token of the control plane. */
sbx_op *sbx__modal_authorize(sbx_session *session, sbx_op_done done, void *arg);

/* Whether the router's token is good for a while. */
bool sbx__modal_has_access(const sbx_session *session);
/* Gets a new one, and the router's address. */
sbx_op *sbx__modal_get_access(sbx_session *session, sbx_op_done done, void *arg);
/* Takes the two of a message of this form: jwt = 1, url = 2. */
int sbx__modal_take_access(sbx_session *session, sbx_slice message, const char *verb, sbx_err *err);

/* Sandboxes of the old kind are asked for by other names. */
bool sbx__modal_is_old(const char *id);

/* Replaces a text. SBX_ENOMEM. */
int sbx__modal_set(char **to, sbx_slice text, sbx_err *err);

#endif
