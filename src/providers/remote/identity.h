/* identity.h - whose answers these are.
 *
 * A session is one sandbox. Once its id is known, an answer about another one is a mistake of the
 * service, or worse: nothing is run in that one, and nothing of it is deleted. */
#ifndef SBX_REMOTE_IDENTITY_H
#define SBX_REMOTE_IDENTITY_H

#include "core/buf.h"

/* An id becomes part of addresses and headers: letters, digits, '-', '_', '~' and, but for the
 * first, '.'; at most 128. */
bool sbx_remote_identity_is_id(sbx_slice id);
/* Takes the id that an answer names: into *id when none is known (sbx_free() it), else it must be
 * the same. SBX_EPROTO, in words; SBX_ENOMEM. */
int sbx_remote_identity_take(char **id, sbx_slice said, const char *provider, sbx_err *err);

#endif
