/* engine.h - which engine this is. */
#ifndef SBX_DOCKER_ENGINE_H
#define SBX_DOCKER_ENGINE_H

#include "providers/docker/wire.h"

/* Agrees on a version of the API, and then calls `then`; finishes when there is no engine, or one
 * that is too old. */
void sbx__docker_agree(sbx_steps *steps, sbx_steps_time then);
/* Whether the engine keeps the limits that the options ask for; finishes when it would only pretend
 * to. */
void sbx__docker_check_limits(sbx_steps *steps, sbx_steps_time then);

#endif
