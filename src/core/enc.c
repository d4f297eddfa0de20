/* enc.c - base64, UTF-8 and percent-encoding.
 *
 * Invariant: a function that refuses its input leaves the length of `out` as it was, so nothing
 * half-decoded can be taken for a result. */
#include "core/enc.h"

#include "core/alloc.h"

#include <stdint.h>
#include <string.h>

/* ---- UTF-8 ---- */

/* How many bytes a sequence with this first byte has (0: none begins so), and the range of its
 * second byte, which excludes overlong forms, surrogates and what lies above U+10FFFF. */
static size_t utf8_lead(unsigned char c, unsigned char *low, unsigned char *high) {
  *low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
  *high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
  if (c < 0x80)
    return 1;
  if (c < 0xC2 || c > 0xF4)
    return 0;
  return c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

sbx_utf8 sbx_utf8_step(sbx_slice s, size_t *len) {
  unsigned char low, high;
  size_t need = utf8_lead((unsigned char)s.ptr[0], &low, &high);
  *len = 1;
  if (need == 0)
    return SBX_UTF8_INVALID;
  for (; *len < need; (*len)++) {
    if (*len == s.len)
      return SBX_UTF8_CUT;
    unsigned char c = (unsigned char)s.ptr[*len];
    if (c < low || c > high)
      return SBX_UTF8_INVALID;
    low = 0x80;
    high = 0xBF;
  }
  return SBX_UTF8_VALID;
}

/* How many bytes at the start of `s` are ASCII, rounded down to whole words. */
static size_t ascii_words(sbx_slice s) {
  size_t at = 0;
  uint64_t word;
  for (; s.len - at >= sizeof word; at += sizeof word) {
    memcpy(&word, s.ptr + at, sizeof word);
    if ((word & 0x8080808080808080) != 0)
      break;
  }
  return at;
}

/* Length of the valid text at the start of `s`; `bad` is what the next step is then about. */
static size_t utf8_valid_prefix(sbx_slice s, size_t *bad) {
  size_t at = ascii_words(s); /* most text is ASCII to its end */
  *bad = 0;
  while (at < s.len) {
    size_t len = 1;
    if ((unsigned char)s.ptr[at] >= 0x80 &&
        sbx_utf8_step(sbx_slice_skip(s, at), &len) != SBX_UTF8_VALID) {
      *bad = len;
      break;
    }
    at += len;
  }
  return at;
}

bool sbx_utf8_valid(sbx_slice s) {
  size_t bad;
  return utf8_valid_prefix(s, &bad) == s.len;
}

int sbx_utf8_append_lossy(sbx_buf *out, sbx_slice s) {
  size_t bad = 0;
  do {
    size_t valid = utf8_valid_prefix(s, &bad);
    sbx_buf_append(out, s.ptr, valid);
    if (bad)
      sbx_buf_append_str(out, "\xEF\xBF\xBD");
    s = sbx_slice_skip(s, valid + bad);
  } while (s.len && !out->error);
  return out->error;
}

static bool is_continuation(char c) {
  return ((unsigned char)c & 0xC0) == 0x80;
}

size_t sbx_utf8_floor(sbx_slice s) {
  size_t at = s.len;
  while (at > 0 && s.len - at < 3) {
    at--;
    if (is_continuation(s.ptr[at]))
      continue;
    size_t len;
    return sbx_utf8_step(sbx_slice_skip(s, at), &len) == SBX_UTF8_CUT ? at : s.len;
  }
  return s.len;
}

size_t sbx_utf8_skip_continuation(sbx_slice s) {
  size_t n = 0;
  while (n < s.len && is_continuation(s.ptr[n])) {
    if (++n > 3)
      return 0;
  }
  return n;
}

/* ---- base64 ---- */

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
enum { PAD = 64 };

int sbx_base64_encode(sbx_buf *out, sbx_slice bytes) {
  size_t groups = bytes.len / 3 + (bytes.len % 3 != 0);
  size_t len;
  if (!sbx_size_mul(&len, groups, 4))
    return out->error ? out->error : (out->error = SBX_ETOOBIG);
  if (len == 0 || sbx_buf_reserve(out, len) != SBX_OK)
    return out->error;
  char *to = out->ptr + out->len;
  for (size_t at = 0; at < bytes.len; at += 3) {
    size_t have = bytes.len - at < 3 ? bytes.len - at : 3;
    uint32_t group = 0;
    for (size_t i = 0; i < 3; i++)
      group = group << 8 | (i < have ? (unsigned char)bytes.ptr[at + i] : 0);
    for (size_t i = 0; i < 4; i++)
      *to++ = base64_digits[i <= have ? group >> (18 - 6 * i) & 63 : PAD];
  }
  *to = '\0';
  out->len += len;
  return SBX_OK;
}

/* 0 to 63, or -1. */
static int base64_value(char c) {
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (sbx_is_digit(c))
    return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Counts digits and padding; false when another character, or a digit behind padding, is found. */
static bool base64_count(sbx_slice text, size_t *digits, size_t *pads) {
  *digits = *pads = 0;
  for (size_t i = 0; i < text.len; i++) {
    char c = text.ptr[i];
    if (c == '\r' || c == '\n')
      continue;
    if (c == '=')
      ++*pads;
    else if (base64_value(c) < 0 || *pads)
      return false;
    else
      ++*digits;
  }
  return true;
}

int sbx_base64_decode(sbx_buf *out, sbx_slice text) {
  size_t digits, pads;
  if (out->error)
    return out->error;
  if (!base64_count(text, &digits, &pads) || digits % 4 == 1 ||
      (pads && (pads > 2 || (digits + pads) % 4 != 0)))
    return SBX_EINVAL;
  size_t len = digits / 4 * 3 + (digits % 4 ? digits % 4 - 1 : 0);
  if (len == 0 || sbx_buf_reserve(out, len) != SBX_OK)
    return out->error;
  char *to = out->ptr + out->len;
  uint32_t bits = 0; /* the last `have` bits are not yet written */
  unsigned have = 0;
  for (size_t i = 0; i < text.len; i++) {
    int value = base64_value(text.ptr[i]);
    if (value < 0)
      continue;
    bits = bits << 6 | (uint32_t)value;
    have += 6;
    if (have >= 8) {
      have -= 8;
      *to++ = (char)(bits >> have & 0xFF);
    }
  }
  /* Bits left over must be zero: else two texts would stand for the same bytes. */
  bool canonical = (bits & ((1u << have) - 1)) == 0;
  if (canonical)
    out->len += len;
  out->ptr[out->len] = '\0';
  return canonical ? SBX_OK : SBX_EINVAL;
}

/* ---- percent-encoding ---- */

static bool is_unreserved(char c) {
  return sbx_is_letter(c) || sbx_is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static int percent_encode(sbx_buf *out, sbx_slice s, char also_plain) {
  static const char hex[] = "0123456789ABCDEF";
  for (size_t i = 0; i < s.len; i++) {
    unsigned char c = (unsigned char)s.ptr[i];
    if (is_unreserved(s.ptr[i]) || s.ptr[i] == also_plain) {
      sbx_buf_append_char(out, s.ptr[i]);
    } else {
      char escape[3] = {'%', hex[c >> 4], hex[c & 15]};
      sbx_buf_append(out, escape, sizeof escape);
    }
  }
  return out->error;
}

int sbx_percent_encode(sbx_buf *out, sbx_slice s) {
  return percent_encode(out, s, '-');
}

int sbx_percent_encode_path(sbx_buf *out, sbx_slice s) {
  return percent_encode(out, s, '/');
}

int sbx_hex_value(char c) {
  if (sbx_is_digit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int sbx_percent_decode(sbx_buf *out, sbx_slice s) {
  size_t before = out->len;
  for (size_t i = 0; i < s.len; i++) {
    char c = s.ptr[i];
    if (c == '%') {
      int high = s.len - i > 2 ? sbx_hex_value(s.ptr[i + 1]) : -1;
      int low = high < 0 ? -1 : sbx_hex_value(s.ptr[i + 2]);
      if (low < 0) {
        sbx_buf_truncate(out, before);
        return SBX_EINVAL;
      }
      c = (char)(high << 4 | low);
      i += 2;
    }
    sbx_buf_append_char(out, c);
  }
  return out->error;
}
