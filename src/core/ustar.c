/* ustar.c - reads tar archives.
 *
 * Invariants: of the stream nothing is held but one block, one further header and two names, all
 * bounded. A size is believed only up to what comes; bytes are handed on for files alone, and never
 * more than their header has said. */
#include "core/ustar.h"

#include "core/err.h"

#include <string.h>

/* Fields of a header: where they begin, and how long they are. */
enum {
  NAME_AT = 0,
  NAME_LEN = 100,
  MODE_AT = 100,
  UID_AT = 108,
  GID_AT = 116,
  ID_LEN = 8,
  SIZE_AT = 124,
  MTIME_AT = 136,
  LONG_LEN = 12,
  SUM_AT = 148,
  TYPE_AT = 156,
  LINK_AT = 157,
  MAGIC_AT = 257,
  PREFIX_AT = 345,
  PREFIX_LEN = 155,
};

void sbx_ustar_init(sbx_ustar *r, const sbx_ustar_consumer *consumer) {
  *r = (sbx_ustar){.consumer = *consumer};
  sbx_buf_init(&r->extra, SBX_USTAR_EXTRA_MAX);
  sbx_buf_init(&r->name, SBX_USTAR_NAME_MAX);
  sbx_buf_init(&r->link, SBX_USTAR_NAME_MAX);
}

void sbx_ustar_deinit(sbx_ustar *r) {
  sbx_buf_deinit(&r->extra);
  sbx_buf_deinit(&r->name);
  sbx_buf_deinit(&r->link);
}

static int wrong(sbx_err *err, const char *why) {
  return sbx_err_set(err, SBX_EPROTO, "the archive makes no sense: %s", why);
}

/* ---- fields --------------------------------------------------------------------------------- */

static sbx_slice field(const sbx_ustar *r, size_t at, size_t len) {
  const char *text = (const char *)r->block + at;
  const char *nul = memchr(text, '\0', len);
  return sbx_slice_of(text, nul != NULL ? (size_t)(nul - text) : len);
}

/* Base 256: the first bit says so, the second one that it is negative. */
static bool read_binary(const unsigned char *at, size_t len, uint64_t *out) {
  uint64_t value = at[0] & 0x3f;
  if ((at[0] & 0x40) != 0)
    return false;
  for (size_t i = 1; i < len; i++) {
    if (value > (uint64_t)INT64_MAX >> 8)
      return false;
    value = value << 8 | at[i];
  }
  *out = value;
  return true;
}

/* Octal digits among blanks and NULs; none are 0. */
static bool read_number(const sbx_ustar *r, size_t offset, size_t len, uint64_t *out) {
  const unsigned char *at = r->block + offset;
  uint64_t value = 0;
  size_t i = 0;
  if ((at[0] & 0x80) != 0)
    return read_binary(at, len, out);
  while (i < len && (at[i] == ' ' || at[i] == '\0'))
    i++;
  for (; i < len && at[i] >= '0' && at[i] <= '7'; i++)
    value = value << 3 | (uint64_t)(at[i] - '0');
  for (; i < len; i++) {
    if (at[i] != ' ' && at[i] != '\0')
      return false;
  }
  *out = value;
  return true;
}

/* Some have summed up their bytes as signed ones. */
static bool has_right_sum(const sbx_ustar *r) {
  uint64_t said;
  int64_t sum = 0, with_signs = 0;
  for (size_t i = 0; i < SBX_USTAR_BLOCK; i++) {
    unsigned char byte = i >= SUM_AT && i < SUM_AT + ID_LEN ? ' ' : r->block[i];
    sum += byte;
    with_signs += (signed char)byte;
  }
  return read_number(r, SUM_AT, ID_LEN, &said) &&
         ((int64_t)said == sum || (int64_t)said == with_signs);
}

/* ---- what stands before a header ------------------------------------------------------------ */

static void forget(sbx_ustar *r) {
  sbx_buf_truncate(&r->name, 0);
  sbx_buf_truncate(&r->link, 0);
  r->has_name = r->has_link = r->has_size = r->has_uid = r->has_gid = false;
}

static bool is_pending(const sbx_ustar *r) {
  return r->has_name || r->has_link || r->has_size || r->has_uid || r->has_gid;
}

static int keep_text(sbx_buf *buf, bool *has, sbx_slice text, sbx_err *err) {
  sbx_buf_truncate(buf, 0);
  *has = true;
  if (text.len > SBX_USTAR_NAME_MAX)
    return wrong(err, "a name is too long");
  if (text.len == 0 || sbx_slice_has_nul(text))
    return wrong(err, "a name is empty, or has a NUL in it");
  return sbx_buf_append_slice(buf, text) == SBX_OK ? SBX_OK : sbx_err_set(err, buf->error, NULL);
}

static int keep_number(uint64_t *number, bool *has, sbx_slice text, sbx_err *err) {
  uint64_t value = 0;
  for (size_t i = 0; i < text.len; i++) {
    if (!sbx_is_digit(text.ptr[i]) || value > (uint64_t)INT64_MAX / 10 - 1)
      return wrong(err, "a number of a pax header is none, or too large");
    value = value * 10 + (uint64_t)(text.ptr[i] - '0');
  }
  if (text.len == 0)
    return wrong(err, "a number of a pax header is none, or too large");
  *number = value;
  *has = true;
  return SBX_OK;
}

static int take_record(sbx_ustar *r, sbx_slice key, sbx_slice value, sbx_err *err) {
  if (sbx_slice_starts_with(key, sbx_slice_str("GNU.sparse.")))
    return sbx_err_set(err, SBX_EUNSUPPORTED, "the archive has a file with holes left out");
  if (sbx_slice_eq_str(key, "path"))
    return keep_text(&r->name, &r->has_name, value, err);
  if (sbx_slice_eq_str(key, "linkpath"))
    return keep_text(&r->link, &r->has_link, value, err);
  if (sbx_slice_eq_str(key, "size"))
    return keep_number(&r->size, &r->has_size, value, err);
  if (sbx_slice_eq_str(key, "uid"))
    return keep_number(&r->uid, &r->has_uid, value, err);
  if (sbx_slice_eq_str(key, "gid"))
    return keep_number(&r->gid, &r->has_gid, value, err);
  return SBX_OK;
}

/* Records of the form "27 path=some/long/name\n"; the number counts all of its record. */
static int take_pax(sbx_ustar *r, sbx_err *err) {
  sbx_slice rest = sbx_buf_slice(&r->extra);
  while (rest.len > 0) {
    size_t at = 0, len = 0;
    for (; at < rest.len && sbx_is_digit(rest.ptr[at]) && len <= SBX_USTAR_EXTRA_MAX; at++)
      len = len * 10 + (size_t)(rest.ptr[at] - '0');
    if (at == 0 || at >= rest.len || rest.ptr[at] != ' ' || len > rest.len || len < at + 3 ||
        rest.ptr[len - 1] != '\n')
      return wrong(err, "a record of a pax header is malformed");
    sbx_slice record = sbx_slice_of(rest.ptr + at + 1, len - at - 2);
    size_t equals = sbx_slice_find(record, '=');
    if (equals == 0 || equals == record.len)
      return wrong(err, "a record of a pax header is malformed");
    int rc =
        take_record(r, sbx_slice_of(record.ptr, equals), sbx_slice_skip(record, equals + 1), err);
    if (rc != SBX_OK)
      return rc;
    rest = sbx_slice_skip(rest, len);
  }
  return SBX_OK;
}

static int take_extra(sbx_ustar *r, sbx_err *err) {
  sbx_slice text = sbx_buf_slice(&r->extra);
  int rc;
  if (r->what == 'x' || r->what == 'g') {
    rc = take_pax(r, err);
    /* Then it would hold for all that come. */
    if (rc == SBX_OK && r->what == 'g' && is_pending(r))
      rc = sbx_err_set(err, SBX_EUNSUPPORTED, "the archive has one name or size for all entries");
  } else {
    text.len = sbx_slice_find(text, '\0');
    rc = r->what == 'L' ? keep_text(&r->name, &r->has_name, text, err)
                        : keep_text(&r->link, &r->has_link, text, err);
  }
  sbx_buf_truncate(&r->extra, 0);
  return rc;
}

/* ---- headers -------------------------------------------------------------------------------- */

static void expect(sbx_ustar *r, char what, uint64_t size) {
  r->what = what;
  r->left = size;
  r->pad = (size_t)(SBX_USTAR_BLOCK - size % SBX_USTAR_BLOCK) % SBX_USTAR_BLOCK;
}

/* Those of an old archive say by their name that they are a directory. */
static bool read_kind(const sbx_ustar *r, sbx_slice name, sbx_ustar_kind *kind) {
  switch (r->block[TYPE_AT]) {
  case '\0':
  case '0':
  case '7':
    *kind = name.len > 0 && name.ptr[name.len - 1] == '/' ? SBX_USTAR_DIR : SBX_USTAR_FILE;
    return true;
  case '1':
    *kind = SBX_USTAR_HARDLINK;
    return true;
  case '2':
    *kind = SBX_USTAR_SYMLINK;
    return true;
  case '3':
  case '4':
  case '6':
    *kind = SBX_USTAR_SPECIAL;
    return true;
  case '5':
    *kind = SBX_USTAR_DIR;
    return true;
  default:
    return false;
  }
}

/* The name, unless it stood before the header: in two parts where the format has them. */
static int read_name(sbx_ustar *r, sbx_err *err) {
  sbx_slice name = field(r, NAME_AT, NAME_LEN);
  sbx_slice prefix = field(r, PREFIX_AT, PREFIX_LEN);
  if (r->has_name)
    return SBX_OK;
  if (memcmp(r->block + MAGIC_AT, "ustar", 6) == 0 && prefix.len > 0) {
    sbx_buf_append_slice(&r->name, prefix);
    sbx_buf_append_char(&r->name, '/');
  }
  if (sbx_buf_append_slice(&r->name, name) != SBX_OK)
    return sbx_err_set(err, r->name.error, NULL);
  return r->name.len > 0 ? SBX_OK : wrong(err, "an entry has no name");
}

static int take_entry(sbx_ustar *r, uint64_t size, sbx_err *err) {
  sbx_ustar_entry entry = {.link = field(r, LINK_AT, NAME_LEN)};
  uint64_t mode;
  int rc = read_name(r, err);
  if (rc != SBX_OK)
    return rc;
  entry.name = sbx_buf_slice(&r->name);
  if (!read_kind(r, entry.name, &entry.kind))
    return sbx_err_set(err, SBX_EUNSUPPORTED, "the archive has an entry of an unknown kind (%02x)",
                       r->block[TYPE_AT]);
  if (!read_number(r, MODE_AT, ID_LEN, &mode) || !read_number(r, UID_AT, ID_LEN, &entry.uid) ||
      !read_number(r, GID_AT, ID_LEN, &entry.gid))
    return wrong(err, "a number of a header is none");
  if (!read_number(r, MTIME_AT, LONG_LEN, &entry.mtime_s))
    entry.mtime_s = 0;
  entry.mode = (uint32_t)(mode & 07777);
  if (r->has_link)
    entry.link = sbx_buf_slice(&r->link);
  if (entry.kind != SBX_USTAR_HARDLINK && entry.kind != SBX_USTAR_SYMLINK)
    entry.link.len = 0;
  if (r->has_uid)
    entry.uid = r->uid;
  if (r->has_gid)
    entry.gid = r->gid;
  /* What only is there has no bytes, whatever it says. */
  entry.size = entry.kind == SBX_USTAR_FILE ? size : 0;
  expect(r, 0, entry.size);
  rc = r->consumer.on_entry(r->consumer.arg, &entry, err);
  forget(r);
  return rc;
}

static bool is_zero(const sbx_ustar *r) {
  for (size_t i = 0; i < SBX_USTAR_BLOCK; i++) {
    if (r->block[i] != 0)
      return false;
  }
  return true;
}

static int take_block(sbx_ustar *r, sbx_err *err) {
  uint64_t size;
  char type = (char)r->block[TYPE_AT];
  if (is_zero(r)) {
    r->ended = ++r->zeros == 2;
    return is_pending(r) ? wrong(err, "it ends where an entry should be") : SBX_OK;
  }
  if (r->zeros > 0)
    return wrong(err, "it goes on behind its end");
  if (!has_right_sum(r))
    return wrong(err, "a header's checksum is wrong");
  if (!read_number(r, SIZE_AT, LONG_LEN, &size))
    return wrong(err, "a size is none, negative or too large");
  if (type != 'x' && type != 'g' && type != 'L' && type != 'K')
    return take_entry(r, r->has_size ? r->size : size, err);
  if (size > SBX_USTAR_EXTRA_MAX)
    return wrong(err, "a header is too long");
  expect(r, type, size);
  return size > 0 ? SBX_OK : take_extra(r, err);
}

/* ---- the stream ----------------------------------------------------------------------------- */

static int take_data(sbx_ustar *r, sbx_slice bytes, sbx_err *err) {
  r->left -= bytes.len;
  if (r->what == 0)
    return r->consumer.on_bytes(r->consumer.arg, bytes, err);
  if (sbx_buf_append_slice(&r->extra, bytes) != SBX_OK)
    return sbx_err_set(err, r->extra.error, NULL);
  return r->left > 0 ? SBX_OK : take_extra(r, err);
}

int sbx_ustar_feed(sbx_ustar *r, sbx_slice bytes, sbx_err *err) {
  while (bytes.len > 0 && !r->ended) {
    uint64_t wanted = r->left > 0 ? r->left : r->pad > 0 ? r->pad : sizeof r->block - r->block_len;
    size_t n = wanted < bytes.len ? (size_t)wanted : bytes.len;
    int rc = SBX_OK;
    if (r->left > 0) {
      rc = take_data(r, sbx_slice_of(bytes.ptr, n), err);
    } else if (r->pad > 0) {
      r->pad -= n;
    } else {
      memcpy(r->block + r->block_len, bytes.ptr, n);
      r->block_len = (r->block_len + n) % sizeof r->block;
      if (r->block_len == 0)
        rc = take_block(r, err);
    }
    if (rc != SBX_OK)
      return rc;
    bytes = sbx_slice_skip(bytes, n);
  }
  return SBX_OK;
}

int sbx_ustar_finish(const sbx_ustar *r, sbx_err *err) {
  return r->ended ? SBX_OK : sbx_err_set(err, SBX_EPROTO, "the archive ended too early");
}
