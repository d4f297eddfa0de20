/* verify.h - looking at an isolated sandbox from inside. */
#ifndef SBX_GUARD_VERIFY_H
#define SBX_GUARD_VERIFY_H

#include "guard/confine.h"
#include "guard/report.h"

/* What commands will meet is tried by a process behind the same walls. What it finds open is noted
 * as unavailable; without `setup->verify` only what setting up has said is noted. */
void sbx__verify(const sbx__confine *confine, const sbx_guard_setup *setup, sbx_guard_hello *hello);

#endif
