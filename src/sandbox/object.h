/* object.h - a sandbox object over any provider; the way in for tests. */
#ifndef SBX_SANDBOX_OBJECT_H
#define SBX_SANDBOX_OBJECT_H

#include "sandbox/sandbox.h"

/* As sbx_sandbox_new() with a provider that is not in the table. */
int sbx__sandbox_new_with(sbx_sandbox **out, sbx_loop *loop, const sbx_provider *provider,
                          sbx_slice options_json, sbx_err *err);

#endif
