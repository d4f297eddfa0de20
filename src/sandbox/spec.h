/* spec.h - checks and copies of what a call is given. */
#ifndef SBX_SANDBOX_SPEC_H
#define SBX_SANDBOX_SPEC_H

#include "sbx.h"

/* In whole seconds what a signed 32-bit number of milliseconds holds: the longest limit that a
 * SandboxAgent's contract allows. */
enum { SBX__MAX_TIMEOUT_MS = 2147483000 };
#define SBX__MAX_OUTPUT_BYTES ((size_t)1 << 30)

int sbx__check_path(sbx_slice path, sbx_err *err);
int sbx__check_shell(sbx_slice shell, sbx_err *err);
int sbx__check_spec(const sbx_exec_spec *spec, uint32_t caps, sbx_err *err);
/* Copies all that `from` points to into one block; sbx_free() it. Errors: SBX_ENOMEM. */
int sbx__copy_spec(sbx_exec_spec *to, char **block, const sbx_exec_spec *from);

#endif
