/* Protocol buffers: every field lies inside of the message, and what was read and is written again
 * is read alike. */
#include "core/protobuf.h"

#include "fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  /* of its own size, so that a byte too many is seen */
  char *copy = malloc(size > 0 ? size : 1);
  if (size > 0)
    memcpy(copy, data, size);
  sbx_slice rest = sbx_slice_of(copy, size), again;
  sbx_pb_field field, other;
  sbx_buf out;
  sbx_buf_init(&out, 4 * size + 64);
  while (sbx_pb_next(&rest, &field)) {
    MUST(field.number > 0 && field.number < 1U << 29);
    MUST(rest.len < size);
    sbx_buf_truncate(&out, 0);
    if (field.type == SBX_PB_BYTES) {
      MUST(field.bytes.ptr >= copy && field.bytes.ptr + field.bytes.len <= copy + size);
      sbx_pb_put_bytes(&out, field.number, field.bytes);
    } else {
      sbx_pb_put_varint(&out, field.number, field.value);
    }
    again = sbx_buf_slice(&out);
    MUST(out.error == SBX_OK && sbx_pb_next(&again, &other) && again.len == 0);
    MUST(other.number == field.number);
    MUST(field.type == SBX_PB_BYTES ? sbx_slice_eq(other.bytes, field.bytes)
                                    : other.value == field.value);
  }
  sbx_buf_deinit(&out);
  free(copy);
  return 0;
}
