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

/* Length of the valid text at the start of `s`; `bad` is what the next step is then about. */
static size_t utf8_valid_prefix(sbx_slice s, size_t *bad) {
  size_t at = 0;
  *bad = 0;
  while (at < s.len) {
    size_t len;
    if (sbx_utf8_step(sbx_slice_skip(s, at), &len) != SBX_UTF8_VALID) {
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
