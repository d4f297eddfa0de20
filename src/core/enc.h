/* enc.h - encodings: strict base64, UTF-8, percent-encoding. Sans-I/O. */
#ifndef SBX_ENC_H
#define SBX_ENC_H

#include "core/buf.h"

/* Standard alphabet with padding. */
int sbx_base64_encode(sbx_buf *out, sbx_slice bytes);
/* Accepts missing padding and line breaks (CR, LF); everything else that is not canonical base64 is
 * SBX_EINVAL, and `out` is then unchanged in length. */
int sbx_base64_decode(sbx_buf *out, sbx_slice text);

/* What stands at the start of a text. */
typedef enum sbx_utf8 {
  SBX_UTF8_VALID,   /* a whole sequence */
  SBX_UTF8_INVALID, /* bytes that no continuation can make valid */
  SBX_UTF8_CUT,     /* the text ends inside a sequence that is valid so far */
} sbx_utf8;

/* Looks at the start of `s`, which must not be empty; `len` is the length of the sequence or of the
 * maximal invalid part (1 to 4). */
sbx_utf8 sbx_utf8_step(sbx_slice s, size_t *len);
bool sbx_utf8_valid(sbx_slice s);
/* Appends `s` with each maximal invalid part replaced by U+FFFD, as the WHATWG decoder does. */
int sbx_utf8_append_lossy(sbx_buf *out, sbx_slice s);
/* Length of the longest prefix of `s` that does not end inside a UTF-8 sequence: at most 3 bytes
 * shorter than s.len, and s.len where the bytes at the end are not UTF-8 at all. */
size_t sbx_utf8_floor(sbx_slice s);
/* How many bytes at the start of `s` are the rest of a sequence that began before it (0 to 3). */
size_t sbx_utf8_skip_continuation(sbx_slice s);

/* 0 to 15, or -1 for what is no hexadecimal digit. */
int sbx_hex_value(char c);

/* RFC 3986 unreserved characters stand for themselves, all other bytes become %XX. */
int sbx_percent_encode(sbx_buf *out, sbx_slice s);
/* The same, but '/' stands for itself. */
int sbx_percent_encode_path(sbx_buf *out, sbx_slice s);
/* SBX_EINVAL on a malformed escape. */
int sbx_percent_decode(sbx_buf *out, sbx_slice s);

#endif
