/* files.h - a file of ours in a container. */
#ifndef SBX_DOCKER_FILES_H
#define SBX_DOCKER_FILES_H

#include "core/op.h"
#include "providers/provider.h"

/* Writes a file; `bytes` are borrowed until the op ends. */
sbx_op *sbx__docker_save(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                         void *arg);

#endif
