/* owner.h - whose containers these are: the labels of all that this library makes. */
#ifndef SBX_DOCKER_OWNER_H
#define SBX_DOCKER_OWNER_H

#include "core/json.h"
#include "providers/docker/session.h"

#define SBX__DOCKER_TAG "cloudsandbox.tag"

/* Writes the labels of a new container of the session, which has its tag: that, who has made it,
 * and until when it lives. */
void sbx__docker_put_owner(sbx_json_out *out, const sbx_session *session);
/* Whether a container with these labels is ours, and nobody can need it any more: its time is over,
 * or its process on this machine has ended. */
bool sbx__docker_is_stale(const sbx_json *labels);

#endif
