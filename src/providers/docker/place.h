/* place.h - where the engine is: a socket, or an address with or without TLS. */
#ifndef SBX_DOCKER_PLACE_H
#define SBX_DOCKER_PLACE_H

#include "providers/docker/session.h"

#define SBX__DOCKER_HOST "unix:///var/run/docker.sock"

/* Reads the options that say so, and makes the client; `host` is their member of that name, or its
 * default. *socket is the path of the socket, within `host` or static, or empty. */
int sbx__docker_read_place(sbx_config *config, const sbx_json *options, const char *host,
                           sbx_slice *socket, sbx_err *err);

#endif
