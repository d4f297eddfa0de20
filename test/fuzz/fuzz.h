/* fuzz.h - what the fuzz targets share. */
#ifndef SBX_FUZZ_H
#define SBX_FUZZ_H

#include "core/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                            \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                      \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

/* Takes up to `len` bytes off the input. */
static inline sbx_slice fuzz_take(sbx_slice *input, size_t len) {
  if (len > input->len)
    len = input->len;
  sbx_slice taken = sbx_slice_of(input->ptr, len);
  if (len)
    *input = sbx_slice_of(input->ptr + len, input->len - len);
  return taken;
}

/* 0 at the end of the input. */
static inline unsigned fuzz_take_byte(sbx_slice *input) {
  sbx_slice byte = fuzz_take(input, 1);
  return byte.len ? (unsigned char)byte.ptr[0] : 0;
}

/* What a stream decoder has made of the input in pieces of `piece` bytes, and its code. */
typedef int (*fuzz_decode)(sbx_slice in, size_t piece, sbx_buf *seen);

/* Fed in pieces it gives what it gives when fed at once, and fails alike. */
static inline void fuzz_check_split(fuzz_decode decode, sbx_slice in, size_t piece) {
  sbx_buf whole, pieces;
  sbx_buf_init(&whole, SIZE_MAX);
  sbx_buf_init(&pieces, SIZE_MAX);
  MUST(decode(in, SIZE_MAX / 2, &whole) == decode(in, piece, &pieces));
  MUST(sbx_slice_eq(sbx_buf_slice(&whole), sbx_buf_slice(&pieces)));
  sbx_buf_deinit(&whole);
  sbx_buf_deinit(&pieces);
}

#endif
