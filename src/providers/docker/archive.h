/* archive.h - a file of a container by the engine's archive calls. */
#ifndef SBX_DOCKER_ARCHIVE_H
#define SBX_DOCKER_ARCHIVE_H

#include "core/op.h"
#include "providers/docker/session.h"

/* Reads the file at `path` into `out`, where that gives what a program of any user would read.
 * Errors: SBX_ETOOBIG, when it has more bytes than `out` may have; all others: this is no way to
 * read it, whatever there is, and what `out` has then is nothing. */
sbx_op *sbx__docker_fetch(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                          void *arg);

#endif
