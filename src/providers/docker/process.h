/* process.h - one process in a container: exec create, exec start, its streams, its end. */
#ifndef SBX_DOCKER_PROCESS_H
#define SBX_DOCKER_PROCESS_H

#include "providers/docker/session.h"
#include "providers/remote/process/process.h"

/* The processes of a container, as its commands and files use them. */
extern const sbx_processes sbx__docker_processes;

/* Begins a process of `program`, as it stands inside a JSON string, up to its arguments. `user`
 * NULL: the one of the options, or else the container's. */
void sbx__docker_process_begin(sbx_process_request *request, const sbx_session *session,
                               sbx_slice program, const char *user, bool input);

#endif
