/* header.c - header fields.
 *
 * Invariant: no name or value in a list has a CR, LF or NUL, so a list written out is as many lines
 * as it has fields. Each field is one block, "name NUL value NUL". */
#include "core/header.h"

#include "core/alloc.h"
#include "core/err.h"

#include <string.h>
#include <time.h>

void sbx_headers_init(sbx_headers *headers, size_t max_bytes) {
  *headers = (sbx_headers){.max = max_bytes};
}

void sbx_headers_deinit(sbx_headers *headers) {
  for (size_t i = 0; i < headers->count; i++) {
    char *block = (char *)headers->items[i].name.ptr;
    sbx_wipe(block, headers->items[i].name.len + headers->items[i].value.len + 2);
    sbx_free(block);
  }
  sbx_free(headers->items);
  sbx_headers_init(headers, headers->max);
}

static bool is_token(sbx_slice s) {
  for (size_t i = 0; i < s.len; i++) {
    char c = s.ptr[i];
    if (c == '\0' || (!sbx_is_letter(c) && !sbx_is_digit(c) && !strchr("!#$%&'*+-.^_`|~", c)))
      return false;
  }
  return s.len > 0;
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

static sbx_slice trim(sbx_slice s) {
  while (s.len && is_blank(s.ptr[s.len - 1]))
    s.len--;
  while (s.len && is_blank(s.ptr[0]))
    s = sbx_slice_skip(s, 1);
  return s;
}

static bool has_line_end_or_nul(sbx_slice s) {
  return sbx_slice_has_nul(s) || sbx_slice_find(s, '\r') < s.len || sbx_slice_find(s, '\n') < s.len;
}

static bool has_control(sbx_slice s) {
  for (size_t i = 0; i < s.len; i++) {
    unsigned char c = (unsigned char)s.ptr[i];
    if ((c < 0x20 && c != '\t') || c == 0x7F)
      return true;
  }
  return false;
}

static int reserve_item(sbx_headers *headers) {
  if (headers->count == SBX_HEADERS_MAX_COUNT)
    return SBX_ETOOBIG;
  if (headers->count < headers->cap)
    return SBX_OK;
  size_t cap = headers->cap ? headers->cap * 2 : 8;
  sbx_header *items = sbx_realloc(headers->items, cap * sizeof *items);
  if (!items)
    return SBX_ENOMEM;
  headers->items = items;
  headers->cap = cap;
  return SBX_OK;
}

/* Both are checked. */
static int append(sbx_headers *headers, sbx_slice name, sbx_slice value) {
  size_t bytes;
  if (!sbx_size_add(&bytes, name.len, value.len) || bytes > headers->max - headers->bytes)
    return SBX_ETOOBIG;
  int rc = reserve_item(headers);
  if (rc != SBX_OK)
    return rc;
  char *block = sbx_malloc(bytes + 2);
  if (!block)
    return SBX_ENOMEM;
  memcpy(block, name.ptr, name.len);
  block[name.len] = '\0';
  char *at = block + name.len + 1;
  if (value.len)
    memcpy(at, value.ptr, value.len);
  at[value.len] = '\0';
  headers->items[headers->count++] =
      (sbx_header){sbx_slice_of(block, name.len), sbx_slice_of(at, value.len)};
  headers->bytes += bytes;
  return SBX_OK;
}

static int report(int rc, sbx_err *err) {
  if (rc == SBX_ETOOBIG)
    return sbx_err_set(err, rc, "too many or too large HTTP headers");
  return rc == SBX_OK ? rc : sbx_err_set(err, rc, NULL);
}

int sbx_headers_add(sbx_headers *headers, sbx_slice name, sbx_slice value, sbx_err *err) {
  if (!is_token(name))
    return sbx_err_set(err, SBX_EINVAL, "malformed HTTP header name");
  if (has_control(value))
    return sbx_err_set(err, SBX_EINVAL, "the value of the HTTP header %.*s has control characters",
                       (int)(name.len < 64 ? name.len : 64), name.ptr);
  return report(append(headers, name, trim(value)), err);
}

int sbx_headers_add_line(sbx_headers *headers, sbx_slice line, sbx_err *err) {
  if (line.len && line.ptr[line.len - 1] == '\n') {
    line.len--;
    if (line.len && line.ptr[line.len - 1] == '\r')
      line.len--;
  }
  size_t colon = sbx_slice_find(line, ':');
  sbx_slice name = sbx_slice_of(line.ptr, colon);
  if (colon == line.len || !is_token(name) || has_line_end_or_nul(line))
    return sbx_err_set(err, SBX_EPROTO, "malformed HTTP header in the answer");
  return report(append(headers, name, trim(sbx_slice_skip(line, colon + 1))), err);
}

bool sbx_headers_get(const sbx_headers *headers, const char *name, sbx_slice *value) {
  for (size_t i = 0; i < headers->count; i++) {
    if (sbx_slice_eq_nocase(headers->items[i].name, sbx_slice_str(name))) {
      *value = headers->items[i].value;
      return true;
    }
  }
  return false;
}

/* ---- Retry-After ---- */

/* A longer delay is cut to this. */
#define MAX_DELAY_S UINT32_MAX

/* The fields of a date, by the digit that stands for them in a shape. */
enum { DAY = 1, MONTH, YEAR, HOUR, MINUTE, SECOND, FIELDS };

/* In a shape, a digit is a digit of that field ('2': a letter of the month), '_' a digit of the day
 * or a blank, 'a' a letter, and everything else stands for itself. */
static bool match_date(sbx_slice s, const char *shape, int fields[FIELDS], const char **month) {
  memset(fields, 0, FIELDS * sizeof fields[0]);
  *month = NULL;
  if (s.len != strlen(shape))
    return false;
  for (size_t i = 0; i < s.len; i++) {
    char c = s.ptr[i];
    int field = shape[i] == '_' ? DAY : sbx_is_digit(shape[i]) ? shape[i] - '0' : 0;
    if (field == MONTH && !*month)
      *month = s.ptr + i;
    if (shape[i] == '_' && c == ' ')
      continue;
    if (shape[i] == 'a' || field == MONTH) {
      if (!sbx_is_letter(c))
        return false;
    } else if (field) {
      if (!sbx_is_digit(c))
        return false;
      fields[field] = fields[field] * 10 + (c - '0');
    } else if (c != shape[i]) {
      return false;
    }
  }
  return true;
}

static int month_number(const char *name) {
  static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
  for (size_t at = 0; at < sizeof names - 1; at += 3) {
    if (memcmp(names + at, name, 3) == 0)
      return (int)at / 3;
  }
  return -1;
}

static bool parse_date(sbx_slice s, int64_t now, int64_t *out) {
  int f[FIELDS];
  const char *month;
  /* The weekday of the second form has no fixed length. */
  sbx_slice behind_weekday = sbx_slice_skip(s, sbx_slice_find(s, ','));
  bool short_year = false;
  if (!match_date(s, "aaa, 11 222 3333 44:55:66 GMT", f, &month) &&
      !match_date(s, "aaa 222 _1 44:55:66 3333", f, &month)) {
    if (!match_date(behind_weekday, ", 11-222-33 44:55:66 GMT", f, &month))
      return false;
    short_year = true;
    f[YEAR] += 2000;
  }
  if (month_number(month) < 0 || f[DAY] < 1 || f[HOUR] > 23 || f[MINUTE] > 59 || f[SECOND] > 60)
    return false;
  struct tm tm = {.tm_year = f[YEAR] - 1900,
                  .tm_mon = month_number(month),
                  .tm_mday = f[DAY],
                  .tm_hour = f[HOUR],
                  .tm_min = f[MINUTE],
                  .tm_sec = f[SECOND] < 60 ? f[SECOND] : 59};
  struct tm given = tm;
  *out = (int64_t)timegm(&tm);
  if (tm.tm_mday != given.tm_mday || tm.tm_mon != given.tm_mon)
    return false;
  /* RFC 9110: more than 50 years ahead means the century before. */
  if (short_year && *out > now && *out - now > (int64_t)50 * 365 * 86400) {
    given.tm_year -= 100;
    *out = (int64_t)timegm(&given);
  }
  return true;
}

bool sbx_retry_after(sbx_slice value, int64_t now, uint64_t *delay_ms) {
  uint64_t seconds = 0;
  size_t digits = 0;
  value = trim(value);
  for (; digits < value.len && sbx_is_digit(value.ptr[digits]); digits++) {
    if (seconds <= MAX_DELAY_S)
      seconds = seconds * 10 + (uint64_t)(value.ptr[digits] - '0');
  }
  if (digits == 0 || digits < value.len) {
    int64_t date;
    if (!parse_date(value, now, &date))
      return false;
    seconds = date > now ? (uint64_t)date - (uint64_t)now : 0;
  }
  *delay_ms = (seconds < MAX_DELAY_S ? seconds : MAX_DELAY_S) * 1000;
  return true;
}
