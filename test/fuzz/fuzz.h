/* fuzz.h - what the fuzz targets share. */
#ifndef SBX_FUZZ_H
#define SBX_FUZZ_H

#include "sbx.h"

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

#endif
