/* report.c - what is known of each layer of an isolated sandbox while it is made. */
#include "guard/report.h"

void sbx__layer_set(sbx_guard_hello *hello, sbx_layer_id layer, sbx_layer_state state,
                    sbx_layer_step step, int error, int detail) {
  hello->layers[layer] = (sbx_guard_layer){state, step, error, detail};
}

bool sbx__layer_note(sbx_guard_hello *hello, sbx_layer_id layer, sbx_layer_step step, int error) {
  sbx__layer_set(hello, layer, error == 0 ? SBX_LAYER_ENFORCED : SBX_LAYER_UNAVAILABLE, step, error,
                 0);
  return error == 0;
}

int sbx__layer_missing(const sbx_guard_hello *hello, uint32_t required) {
  for (int i = 0; i < SBX_LAYER_COUNT; i++) {
    uint32_t state = hello->layers[i].state;
    if ((required & 1U << i) != 0 && state != SBX_LAYER_ENFORCED && state != SBX_LAYER_PARTIAL)
      return i;
  }
  return -1;
}
