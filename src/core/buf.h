/* buf.h - slices and a growable byte buffer with a hard cap.
 *
 * A buffer has a sticky error: after one append failed, further appends do nothing, so a chain of
 * appends is checked once, at the end. */
#ifndef SBX_BUF_H
#define SBX_BUF_H

#include "sbx.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* A slice of a string literal or of trusted, NUL-terminated text (never of network data). */
sbx_slice sbx_slice_str(const char *text);
bool sbx_slice_eq(sbx_slice a, sbx_slice b);
bool sbx_slice_eq_str(sbx_slice a, const char *text);
/* ASCII case folded. */
bool sbx_slice_eq_nocase(sbx_slice a, sbx_slice b);
bool sbx_slice_starts_with(sbx_slice s, sbx_slice prefix);
/* Index of the first `byte`, or s.len. */
size_t sbx_slice_find(sbx_slice s, char byte);
bool sbx_slice_has_nul(sbx_slice s);
/* From `at` (clamped) on. */
sbx_slice sbx_slice_skip(sbx_slice s, size_t at);
/* Copies both into one block, which the caller frees with sbx_free(), and lets them point there.
 * SBX_ENOMEM changes nothing. */
int sbx_slices_copy(char **block, sbx_slice *a, sbx_slice *b);

/* ASCII only, whatever the locale. */
static inline bool sbx_is_digit(char c) {
  return c >= '0' && c <= '9';
}
static inline bool sbx_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

typedef struct sbx_buf {
  char *ptr; /* NUL-terminated once something was appended; NULL before */
  size_t len;
  size_t cap;
  size_t max; /* len never passes this */
  int error;  /* SBX_OK, SBX_ENOMEM or SBX_ETOOBIG, or what a builder refused; sticky */
} sbx_buf;

/* `max` is the most bytes the buffer may ever hold. Allocates nothing. */
void sbx_buf_init(sbx_buf *buf, size_t max);
/* Frees the bytes and leaves the buffer as after init with the same max. */
void sbx_buf_deinit(sbx_buf *buf);
/* Makes room for `more` further bytes; who writes them to ptr + len itself sets `len` and the NUL
 * behind it. All functions that append return buf->error. */
int sbx_buf_reserve(sbx_buf *buf, size_t more);
int sbx_buf_append(sbx_buf *buf, const char *ptr, size_t len);
int sbx_buf_append_slice(sbx_buf *buf, sbx_slice s);
int sbx_buf_append_str(sbx_buf *buf, const char *text);
int sbx_buf_append_char(sbx_buf *buf, char c);
/* For our own format strings; never with text from outside as the format. */
int sbx_buf_appendf(sbx_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Drops the first `n` bytes. */
void sbx_buf_consume(sbx_buf *buf, size_t n);
/* Keeps the first `len` bytes. */
void sbx_buf_truncate(sbx_buf *buf, size_t len);
sbx_slice sbx_buf_slice(const sbx_buf *buf);
/* Moves the bytes out; the caller frees them with sbx_free(). NULL when nothing was appended. */
char *sbx_buf_take(sbx_buf *buf, size_t *len);

#endif
