/* store.h - what is too large for a line is stored in the sandbox before it. */
#ifndef SBX_RUNNER_STORE_H
#define SBX_RUNNER_STORE_H

#include "providers/remote/runner/wire.h"

/* Longer parts than this do not go into a line. */
size_t sbx__runner_most_in_line(const sbx_runner *runner);
/* A copy of `bytes`, to be stored as `name` ("text", "input", "env"); three at most. SBX_ENOMEM. */
int sbx__runner_keep(sbx_runner_op *op, const char *name, sbx_slice bytes);
/* Stores what was kept, frees it, and calls `then`; `err` has no code when all is there. */
void sbx__runner_store(sbx_runner_op *op, void (*then)(sbx_runner_op *op, sbx_err *err));
void sbx__runner_store_free(sbx_runner_op *op);
/* In words: there was no room for something of ours. */
int sbx__runner_unstored(const sbx_runner *runner, sbx_err *err);

#endif
