/* ustar_write.c - writes tar archives.
 *
 * Invariant: what a field has no room for stands before its header, in one of pax; the field is cut
 * off then. Only times after 2242 are just cut off. */
#include "core/ustar.h"

#include <stdio.h>
#include <string.h>

enum { NAME_LEN = 100, PREFIX_LEN = 155, MAX_ID = 07777777 };

#define MAX_LONG ((uint64_t)077777777777)

typedef struct fields {
  const char *type;
  sbx_slice prefix;
  sbx_slice name;
  sbx_slice link;
} fields;

/* ---- a header ------------------------------------------------------------------------------- */

static void put_text(sbx_buf *out, sbx_slice text, size_t width) {
  static const char zeros[PREFIX_LEN] = {0};
  size_t len = text.len < width ? text.len : width;
  sbx_buf_append(out, text.ptr, len);
  sbx_buf_append(out, zeros, width - len);
}

/* Octal, and a NUL behind it. */
static void put_number(sbx_buf *out, uint64_t value, uint64_t max, int width) {
  sbx_buf_appendf(out, "%0*llo", width - 1, (unsigned long long)(value <= max ? value : max));
  sbx_buf_append_char(out, '\0');
}

static void put_header(sbx_buf *out, const sbx_ustar_entry *entry, const fields *f) {
  size_t begin = out->len;
  unsigned sum = 0;
  char text[9];
  put_text(out, f->name, NAME_LEN);
  put_number(out, entry->mode & 07777, MAX_ID, 8);
  put_number(out, entry->uid, MAX_ID, 8);
  put_number(out, entry->gid, MAX_ID, 8);
  put_number(out, entry->size, MAX_LONG, 12);
  put_number(out, entry->mtime_s, MAX_LONG, 12);
  put_text(out, sbx_slice_str("        "), 8);
  sbx_buf_append_str(out, f->type);
  put_text(out, f->link, NAME_LEN);
  put_text(out, sbx_slice_of("ustar\00000", 8), 8);
  put_text(out, sbx_slice_of(NULL, 0), 32 + 32 + 8 + 8); /* names of the owners; a device */
  put_text(out, f->prefix, PREFIX_LEN);
  put_text(out, sbx_slice_of(NULL, 0), 12);
  if (out->error != SBX_OK)
    return;
  for (size_t i = begin; i < out->len; i++)
    sum += (unsigned char)out->ptr[i];
  snprintf(text, sizeof text, "%06o", sum);
  memcpy(out->ptr + begin + 148, text, 7);
}

/* ---- pax ------------------------------------------------------------------------------------ */

/* The number counts itself. */
static void put_record(sbx_buf *out, const char *key, sbx_slice value) {
  size_t rest = strlen(key) + value.len + 3; /* a blank, "=" and a line feed */
  size_t len = rest + 1;
  for (size_t digits = 1, most = 9; len > most; digits++, most = most * 10 + 9)
    len = rest + digits + 1;
  sbx_buf_appendf(out, "%zu %s=", len, key);
  sbx_buf_append_slice(out, value);
  sbx_buf_append_char(out, '\n');
}

static void put_large(sbx_buf *out, const char *key, uint64_t value, uint64_t max) {
  char text[24];
  if (value <= max)
    return;
  snprintf(text, sizeof text, "%llu", (unsigned long long)value);
  put_record(out, key, sbx_slice_str(text));
}

static void put_pax(sbx_buf *out, const sbx_ustar_entry *entry, bool name, bool link) {
  sbx_buf records;
  sbx_buf_init(&records, SBX_USTAR_EXTRA_MAX);
  if (name)
    put_record(&records, "path", entry->name);
  if (link)
    put_record(&records, "linkpath", entry->link);
  put_large(&records, "size", entry->size, MAX_LONG);
  put_large(&records, "uid", entry->uid, MAX_ID);
  put_large(&records, "gid", entry->gid, MAX_ID);
  if (records.error != SBX_OK)
    out->error = records.error;
  if (records.len > 0) {
    sbx_ustar_entry header = {.size = records.len, .mode = 0644};
    put_header(out, &header, &(fields){.type = "x", .name = sbx_slice_str("pax")});
    sbx_buf_append_slice(out, sbx_buf_slice(&records));
    sbx_ustar_pad(out, records.len);
  }
  sbx_buf_deinit(&records);
}

/* What reads archives takes other letters as it likes, but in pax as UTF-8. */
static bool is_ascii(sbx_slice text) {
  size_t i = 0;
  while (i < text.len && (unsigned char)text.ptr[i] < 0x80)
    i++;
  return i == text.len;
}

/* ---- an entry ------------------------------------------------------------------------------- */

/* Cuts a long name at a slash; neither part may be empty. */
static bool split(fields *f) {
  for (size_t i = f->name.len - 1; i > 0; i--) {
    if (f->name.ptr[i] != '/' || i > PREFIX_LEN)
      continue;
    if (f->name.len - i - 1 > NAME_LEN)
      return false;
    if (f->name.len - i - 1 == 0)
      continue;
    f->prefix = sbx_slice_of(f->name.ptr, i);
    f->name = sbx_slice_skip(f->name, i + 1);
    return true;
  }
  return false;
}

static bool is_text(sbx_slice text) {
  return text.len > 0 && text.len <= SBX_USTAR_NAME_MAX && !sbx_slice_has_nul(text);
}

int sbx_ustar_put_entry(sbx_buf *out, const sbx_ustar_entry *entry) {
  static const char *const types[] = {"0", "5", "2", "1"};
  bool is_link = entry->kind == SBX_USTAR_SYMLINK || entry->kind == SBX_USTAR_HARDLINK;
  if (out->error != SBX_OK)
    return out->error;
  if (entry->kind == SBX_USTAR_SPECIAL || !is_text(entry->name) ||
      (is_link ? !is_text(entry->link) : entry->link.len > 0) ||
      (entry->kind != SBX_USTAR_FILE && entry->size > 0) || entry->size > INT64_MAX ||
      (entry->kind == SBX_USTAR_FILE && entry->name.ptr[entry->name.len - 1] == '/'))
    return out->error = SBX_EINVAL;
  fields f = {.type = types[entry->kind], .name = entry->name, .link = entry->link};
  bool long_name = f.name.len > NAME_LEN && !split(&f);
  put_pax(out, entry, long_name || !is_ascii(entry->name),
          f.link.len > NAME_LEN || !is_ascii(entry->link));
  put_header(out, entry, &f);
  return out->error;
}

int sbx_ustar_pad(sbx_buf *out, uint64_t size) {
  static const char zeros[SBX_USTAR_BLOCK] = {0};
  return sbx_buf_append(out, zeros,
                        (size_t)(SBX_USTAR_BLOCK - size % SBX_USTAR_BLOCK) % SBX_USTAR_BLOCK);
}

int sbx_ustar_end(sbx_buf *out) {
  static const char zeros[2 * SBX_USTAR_BLOCK] = {0};
  return sbx_buf_append(out, zeros, sizeof zeros);
}
