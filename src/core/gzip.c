/* gzip.c - bytes as a gzip file that is not compressed: RFC 1952, with the stored blocks of RFC
 * 1951. */
#include "core/gzip.h"

enum { MOST_IN_BLOCK = 65535, HEAD_AND_TAIL = 18, BLOCK_HEAD = 5 };

/* The remainders of all half bytes: small enough to be read, quick enough for files. */
static const uint32_t remainders[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
    0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};

static uint32_t crc32_of(sbx_slice bytes) {
  uint32_t crc = UINT32_MAX;
  for (size_t i = 0; i < bytes.len; i++) {
    crc ^= (unsigned char)bytes.ptr[i];
    crc = (crc >> 4) ^ remainders[crc & 15];
    crc = (crc >> 4) ^ remainders[crc & 15];
  }
  return ~crc;
}

static void put_number(sbx_buf *out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; i++)
    sbx_buf_append_char(out, (char)(value >> (8 * i) & 0xff));
}

int sbx_gzip_store(sbx_buf *out, sbx_slice bytes) {
  static const char head[10] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, (char)0xff};
  uint32_t crc = crc32_of(bytes);
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
