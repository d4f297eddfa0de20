/* archive_model.h - reads back what core/gzip and core/ustar write, in the simplest way. Each
 * returns false for what is not as it should be. */
#ifndef ARCHIVE_MODEL_H
#define ARCHIVE_MODEL_H

#include "core/buf.h"

#include <stdlib.h>
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

typedef struct model_entry {
  char type;
  unsigned long mode;
  sbx_slice name; /* of the header, or of the PAX record before it */
  sbx_slice bytes;
} model_entry;

static inline bool model_header(sbx_slice *in, model_entry *entry) {
  const char *h = in->ptr;
  unsigned long sum = 0;
  if (in->len < 512 || memcmp(h + 257,
                              "ustar\0"
                              "00",
                              8) != 0)
    return false;
  for (size_t i = 0; i < 512; i++)
    sum += i >= 148 && i < 156 ? ' ' : (unsigned char)h[i];
  size_t size = strtoul(h + 124, NULL, 8), padded = (size + 511) / 512 * 512;
  if (strtoul(h + 148, NULL, 8) != sum || in->len - 512 < padded)
    return false;
  *entry = (model_entry){h[156], strtoul(h + 100, NULL, 8), sbx_slice_of(h, strnlen(h, 100)),
                         sbx_slice_of(h + 512, size)};
  *in = sbx_slice_skip(*in, 512 + padded);
  return true;
}

/* Takes the next file off the archive, with the header before it. */
static inline bool model_untar(sbx_slice *in, model_entry *entry) {
  if (!model_header(in, entry) || entry->type != 'x')
    return entry->type == '0';
  sbx_slice record = entry->bytes;
  size_t digits = sbx_slice_find(record, ' ');
  static const char key[] = " path=";
  if (digits == 0 || strtoul(record.ptr, NULL, 10) != record.len ||
      record.len < digits + sizeof key || memcmp(record.ptr + digits, key, sizeof key - 1) != 0 ||
      record.ptr[record.len - 1] != '\n')
    return false;
  sbx_slice name = sbx_slice_skip(record, digits + sizeof key - 1);
  name.len--;
  if (!model_header(in, entry) || entry->type != '0')
    return false;
  entry->name = name;
  return true;
}

/* Whether nothing but the end is left. */
static inline bool model_is_end(sbx_slice in) {
  size_t zeros = 0;
  while (zeros < in.len && in.ptr[zeros] == '\0')
    zeros++;
  return in.len == 1024 && zeros == in.len;
}

#endif
