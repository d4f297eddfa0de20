/* ustar.c - writes tar archives.
 *
 * A name that is not ASCII, or too long for its field, stands in a PAX header before the file; its
 * field then has a part of it, for whoever does not read PAX. */
#include "core/ustar.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 512, NAME = 100 };

/* POSIX.1-1988, in the order of its fields. */
typedef struct ustar_header {
  char name[NAME];
  char mode[8], uid[8], gid[8];
  char size[12], mtime[12];
  char checksum[8];
  char type;
  char linkname[NAME];
  char magic[6], version[2];
  char uname[32], gname[32];
  char devmajor[8], devminor[8];
  char prefix[155];
  char rest[12];
} ustar_header;

_Static_assert(sizeof(ustar_header) == BLOCK, "a header is a block");

static void put_octal(char *field, size_t size, uint64_t value) {
  field[--size] = '\0';
  while (size > 0) {
    field[--size] = (char)('0' + (value & 7));
    value >>= 3;
  }
}

static void put_header(sbx_buf *out, char type, sbx_slice name, unsigned mode, size_t size) {
  ustar_header h;
  unsigned sum = 0;
  memset(&h, 0, sizeof h);
  if (name.len > 0)
    memcpy(h.name, name.ptr, name.len < NAME ? name.len : NAME);
  put_octal(h.mode, sizeof h.mode, mode);
  put_octal(h.uid, sizeof h.uid, 0);
  put_octal(h.gid, sizeof h.gid, 0);
  put_octal(h.size, sizeof h.size, size);
  put_octal(h.mtime, sizeof h.mtime, 0);
  h.type = type;
  memcpy(h.magic, "ustar", sizeof h.magic);
  memcpy(h.version, "00", sizeof h.version);
  memset(h.checksum, ' ', sizeof h.checksum);
  for (size_t i = 0; i < sizeof h; i++)
    sum += ((const unsigned char *)&h)[i];
  put_octal(h.checksum, 7, sum);
  sbx_buf_append(out, (const char *)&h, sizeof h);
}

static void put_padded(sbx_buf *out, sbx_slice bytes) {
  static const char zeros[BLOCK];
  sbx_buf_append_slice(out, bytes);
  sbx_buf_append(out, zeros, (BLOCK - bytes.len % BLOCK) % BLOCK);
}

static bool fits(sbx_slice name) {
  bool ascii = true;
  for (size_t i = 0; i < name.len; i++)
    ascii = ascii && (unsigned char)name.ptr[i] < 0x80;
  return ascii && name.len < NAME;
}

/* "LENGTH path=NAME\n", where the length counts itself. */
static void put_pax(sbx_buf *out, sbx_slice name) {
  size_t rest = strlen(" path=\n") + name.len;
  size_t len = rest;
  char digits[24];
  int count;
  do {
    count = snprintf(digits, sizeof digits, "%zu", len);
    len = rest + (size_t)count;
  } while (snprintf(NULL, 0, "%zu", len) != count);
  sbx_buf record;
  sbx_buf_init(&record, out->max);
  sbx_buf_appendf(&record, "%zu path=", len);
  sbx_buf_append_slice(&record, name);
  sbx_buf_append_char(&record, '\n');
  put_header(out, 'x', sbx_slice_str("PaxHeader"), 0644, record.len);
  put_padded(out, sbx_buf_slice(&record));
  if (record.error != SBX_OK && out->error == SBX_OK)
    out->error = record.error;
  sbx_buf_deinit(&record);
}

int sbx_ustar_file(sbx_buf *out, sbx_slice name, unsigned mode, sbx_slice bytes) {
  if (bytes.len >= (uint64_t)1 << 33)
    out->error = SBX_ETOOBIG;
  sbx_buf_reserve(out, bytes.len + name.len + (size_t)8 * BLOCK);
  if (!fits(name))
    put_pax(out, name);
  put_header(out, '0', name, mode, bytes.len);
  put_padded(out, bytes);
  return out->error;
}

int sbx_ustar_end(sbx_buf *out) {
  static const char zeros[2 * BLOCK];
  return sbx_buf_append(out, zeros, sizeof zeros);
}
