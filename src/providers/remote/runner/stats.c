/* stats.c - reads what at.sh prints of files; its top says how that looks.
 *
 * Invariant: what is not whole is an error. */
#include "providers/remote/runner/stats.h"

#include "core/err.h"

static sbx_slice next_word(sbx_slice *rest) {
  size_t end = sbx_slice_find(*rest, ' ');
  sbx_slice word = sbx_slice_of(rest->ptr, end);
  *rest = sbx_slice_skip(*rest, end + 1);
  return word;
}

static bool read_number(sbx_slice word, unsigned base, uint64_t *out) {
  uint64_t value = 0;
  for (size_t i = 0; i < word.len; i++) {
    char c = word.ptr[i];
    unsigned digit = c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : (unsigned)(c - '0');
    if (!sbx_is_digit(c) && !(c >= 'a' && c <= 'f'))
      return false;
    if (digit >= base || value > (UINT64_MAX - digit) / base)
      return false;
    value = value * base + digit;
  }
  *out = value;
  return word.len > 0;
}

/* Seconds, perhaps with a sign and a fraction. */
static bool read_time(sbx_slice word, int64_t *out) {
  enum { MAX_SECONDS = 1 << 30 };
  bool negative = word.len > 0 && word.ptr[0] == '-';
  uint64_t seconds, ms = 0;
  if (negative)
    word = sbx_slice_skip(word, 1);
  if (negative && word.len == 0) {
    *out = SBX_TIME_UNKNOWN;
    return true;
  }
  size_t dot = sbx_slice_find(word, '.');
  if (!read_number(sbx_slice_of(word.ptr, dot), 10, &seconds) ||
      seconds > (uint64_t)MAX_SECONDS * 1000)
    return false;
  word = sbx_slice_skip(word, dot + 1);
  if (word.len > 0 && !read_number(sbx_slice_of(word.ptr, word.len < 3 ? word.len : 3), 10, &ms))
    return false;
  for (size_t i = word.len; i > 0 && i < 3; i++)
    ms *= 10;
  int64_t all = (int64_t)(seconds * 1000 + ms);
  *out = negative ? -all : all;
  return true;
}

static sbx_file_kind kind_of_letter(char letter) {
  switch (letter) {
  case 'f':
    return SBX_KIND_FILE;
  case 'd':
    return SBX_KIND_DIRECTORY;
  case 'l':
    return SBX_KIND_LINK;
  default:
    return SBX_KIND_OTHER;
  }
}

/* As Linux has it; at.sh asks no other system this way. */
static sbx_file_kind kind_of_mode(uint64_t mode) {
  switch (mode & 0170000) {
  case 0100000:
    return SBX_KIND_FILE;
  case 0040000:
    return SBX_KIND_DIRECTORY;
  case 0120000:
    return SBX_KIND_LINK;
  default:
    return SBX_KIND_OTHER;
  }
}

/* `rest`: kind, size, time, mode, and the name, which stays. */
static bool read_stat(sbx_slice *rest, sbx_stat *stat) {
  sbx_slice kind = next_word(rest), size = next_word(rest), time = next_word(rest);
  sbx_slice mode = next_word(rest);
  uint64_t bits;
  bool raw = kind.len > 1 && kind.ptr[0] == '=';
  *stat = (sbx_stat){.mode = -1};
  if (!read_number(size, 10, &stat->size) || !read_time(time, &stat->modified_ms))
    return false;
  if (raw && read_number(sbx_slice_skip(kind, 1), 16, &bits)) {
    stat->kind = kind_of_mode(bits);
    stat->mode = (int)(bits & 07777);
  } else if (kind.len == 1 && kind.ptr[0] != '=') {
    stat->kind = kind_of_letter(kind.ptr[0]);
    if (!sbx_slice_eq_str(mode, "-")) {
      if (!read_number(mode, 8, &bits))
        return false;
      stat->mode = (int)(bits & 07777);
    }
  } else {
    return false;
  }
  if (stat->kind != SBX_KIND_FILE)
    stat->size = 0;
  return true;
}

int sbx_runner_stats_read(sbx_stats *out, sbx_slice text, size_t most) {
  int rc = SBX_OK;
  while (rc == SBX_OK && text.len > 0) {
    sbx_stat stat;
    sbx_err err;
    size_t end = sbx_slice_find(text, '\0');
    sbx_slice item = sbx_slice_of(text.ptr, end);
    if (end == text.len || out->count == most)
      return SBX_ETOOBIG;
    if (!read_stat(&item, &stat))
      return SBX_EPROTO;
    rc = sbx_stats_add(out, &stat, item, &err);
    text = sbx_slice_skip(text, end + 1);
  }
  return rc;
}
