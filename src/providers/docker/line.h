/* line.h - a process as the runner's wire. */
#ifndef SBX_DOCKER_LINE_H
#define SBX_DOCKER_LINE_H

#include "providers/docker/session.h"

sbx_runner *sbx__docker_runner(sbx_session *session);

#endif
