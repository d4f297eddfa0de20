/* report.h - what is known of each layer of an isolated sandbox while it is made. */
#ifndef SBX_GUARD_REPORT_H
#define SBX_GUARD_REPORT_H

#include "guard/isolation.h"

#include <stdbool.h>

/* `error` 0: it is enforced. Returns whether it is. */
bool sbx__layer_note(sbx_guard_hello *hello, sbx_layer_id layer, sbx_layer_step step, int error);
void sbx__layer_set(sbx_guard_hello *hello, sbx_layer_id layer, sbx_layer_state state,
                    sbx_layer_step step, int error, int detail);
/* The first layer of `required` that is neither enforced nor partial; -1: there is none. */
int sbx__layer_missing(const sbx_guard_hello *hello, uint32_t required);

#endif
