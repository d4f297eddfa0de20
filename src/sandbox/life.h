/* life.h - what has become of a sandbox, as JSON for who keeps records. */
#ifndef SBX_SANDBOX_LIFE_H
#define SBX_SANDBOX_LIFE_H

#include "core/buf.h"
#include "sandbox/place.h"

/* An id is the longest part of it. */
#define SBX__LIFE_MAX ((size_t)64 * 1024)

/* One object, as sbx_life_cb says. */
void sbx__life_write(sbx_buf *out, const sbx__place *place, sbx__life what, const sbx_err *err);

#endif
