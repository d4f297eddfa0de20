/* gzip.c - bytes as a gzip file that is not compressed: RFC 1952, with the stored blocks of RFC
 * 1951. */
#include "core/gzip.h"

#include "core/crc32.h"

enum { MOST_IN_BLOCK = 65535, HEAD_AND_TAIL = 18, BLOCK_HEAD = 5 };

static void put_number(sbx_buf *out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; i++)
    sbx_buf_append_char(out, (char)(value >> (8 * i) & 0xff));
}

int sbx_gzip_store(sbx_buf *out, sbx_slice bytes) {
  static const char head[10] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, (char)0xff};
  uint32_t crc = sbx_crc32(0, bytes);
  uint32_t size = (uint32_t)bytes.len;
  sbx_buf_reserve(out, HEAD_AND_TAIL + bytes.len + BLOCK_HEAD * (bytes.len / MOST_IN_BLOCK + 1));
  sbx_buf_append(out, head, sizeof head);
  do {
    uint32_t len = bytes.len < MOST_IN_BLOCK ? (uint32_t)bytes.len : MOST_IN_BLOCK;
    sbx_buf_append_char(out, len == bytes.len ? 1 : 0); /* whether it is the last one */
    put_number(out, len, 2);
    put_number(out, ~len, 2);
    sbx_buf_append_slice(out, sbx_slice_of(bytes.ptr, len));
    bytes = sbx_slice_skip(bytes, len);
  } while (bytes.len > 0);
  put_number(out, crc, 4);
  put_number(out, size, 4);
  return out->error;
}
