/* output_model.h - what core/output must keep, computed from the whole stream at once. Shared by
 * its test and its fuzzer. */
#ifndef SBX_OUTPUT_MODEL_H
#define SBX_OUTPUT_MODEL_H

#include "core/enc.h"

#include <stdint.h>
#include <string.h>

/* Whether `kept` is what must be left of `stream`, without a look at the collector. */
static inline bool output_model_matches(sbx_slice stream, size_t max, sbx_truncate truncate,
                                        const sbx_kept *kept) {
  if (stream.len <= max)
    return sbx_slice_eq(kept->bytes, stream) && kept->dropped == 0 && kept->tail_at == stream.len;
  size_t head_max = truncate == SBX_KEEP_HEAD_AND_TAIL ? max / 2 : max;
  sbx_slice head = sbx_slice_of(stream.ptr, head_max);
  head.len = sbx_utf8_floor(head);
  sbx_slice tail = sbx_slice_skip(stream, stream.len - (max - head_max));
  tail = sbx_slice_skip(tail, sbx_utf8_skip_continuation(tail));
  return kept->bytes.len == head.len + tail.len && kept->tail_at == head.len &&
         kept->dropped == stream.len - head.len - tail.len &&
         sbx_slice_eq(sbx_slice_of(kept->bytes.ptr, head.len), head) &&
         sbx_slice_eq(sbx_slice_skip(kept->bytes, head.len), tail);
}

/* What holds at any time, also after a view between two pieces or a failed allocation: a beginning
 * and an end of the stream, and every byte accounted for. */
static inline bool output_model_allows(sbx_slice stream, const sbx_kept *kept) {
  if (kept->tail_at > kept->bytes.len || kept->bytes.len + kept->dropped != stream.len)
    return false;
  sbx_slice head = sbx_slice_of(kept->bytes.ptr, kept->tail_at);
  sbx_slice tail = sbx_slice_skip(kept->bytes, kept->tail_at);
  return sbx_slice_starts_with(stream, head) &&
         sbx_slice_eq(sbx_slice_skip(stream, stream.len - tail.len), tail);
}

#endif
