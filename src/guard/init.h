/* init.h - the first process of an isolated sandbox. */
#ifndef SBX_GUARD_INIT_H
#define SBX_GUARD_INIT_H

#include "guard/ns.h"
#include "guard/view.h"

/* Its exit codes. */
enum { SBX__INIT_CLOSED = 0, SBX__INIT_FAILED = 1, SBX__INIT_HUNG_UP = 2 };

/* Makes the sandbox, says how that went, and serves commands until the host hangs up. With its end
 * the kernel ends everything in the sandbox. Returns the exit code. */
int sbx__init_main(const sbx_guard_setup *setup, const sbx__view *view, const sbx__ns_ids *before,
                   const sbx__ns_owner *owner, sbx_guard_hello *hello);

/* Sends the first words, with `count` descriptors. */
void sbx__init_say(const sbx_guard_hello *hello, const int *fds, unsigned count);

#endif
