/* mounts.h - which of the host's files a container may be given. */
#ifndef SBX_DOCKER_MOUNTS_H
#define SBX_DOCKER_MOUNTS_H

#include "core/json.h"

/* Reads the option "mounts", an array of {source, target, readOnly}; writes the engine's array of
 * them. `dir` is the working directory; *has_dir says whether one is mounted there. `socket` is the
 * engine's own, or NULL. SBX_EINVAL names the source, and what is wrong with it. */
int sbx__docker_put_mounts(sbx_json_out *out, const sbx_json *mounts, const char *dir,
                           const char *socket, bool *has_dir, sbx_err *err);
/* Whether it is absolute and says plainly where it leads: no "." or "..", no empty parts, no colon,
 * no control characters. */
bool sbx__docker_is_plain_path(sbx_slice path);

#endif
