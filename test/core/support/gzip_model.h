/* archive_model.h - reads back what core/gzip and core/ustar write, in the simplest way. Each
 * returns false for what is not as it should be. */
#ifndef GZIP_MODEL_H
#define GZIP_MODEL_H

#include "core/buf.h"

#include <string.h>

static inline uint32_t model_number(const char *at, int bytes) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; i++)
    value |= (uint32_t)(unsigned char)at[i] << (8 * i);
  return value;
}

static inline uint32_t model_crc(sbx_slice bytes) {
  uint32_t crc = UINT32_MAX;
  for (size_t i = 0; i < bytes.len; i++) {
    crc ^= (unsigned char)bytes.ptr[i];
    for (int bit = 0; bit < 8; bit++)
      crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
  }
  return ~crc;
}

/* One member of stored blocks, and nothing behind it. */
static inline bool model_gunzip(sbx_buf *out, sbx_slice in) {
  bool last = false;
  if (in.len < 10 || memcmp(in.ptr, "\x1f\x8b\x08\0\0\0\0\0\0\xff", 10) != 0)
    return false;
  in = sbx_slice_skip(in, 10);
  while (!last) {
    if (in.len < 5 || (in.ptr[0] & ~1) != 0)
      return false;
    uint32_t len = model_number(in.ptr + 1, 2);
    last = in.ptr[0] & 1;
    if ((len ^ model_number(in.ptr + 3, 2)) != 0xffff || in.len < 5 + (size_t)len)
      return false;
    sbx_buf_append(out, in.ptr + 5, len);
    in = sbx_slice_skip(in, 5 + (size_t)len);
  }
  return in.len == 8 && model_number(in.ptr, 4) == model_crc(sbx_buf_slice(out)) &&
         model_number(in.ptr + 4, 4) == (uint32_t)out->len;
}

#endif
