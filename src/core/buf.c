/* buf.c - slices and the growable buffer.
 *
 * Invariant: while `ptr` is not NULL, cap + 1 bytes are allocated, len <= cap <= max, and ptr[len]
 * is NUL. After a failure nothing changes but `error`. */
#include "core/buf.h"

#include "core/alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_CAP 64
#define HUGE_FROM ((size_t)8 << 20)

sbx_slice sbx_slice_str(const char *text) {
  return sbx_slice_of(text, strlen(text));
}

bool sbx_slice_eq(sbx_slice a, sbx_slice b) {
  return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool sbx_slice_eq_str(sbx_slice a, const char *text) {
  return sbx_slice_eq(a, sbx_slice_str(text));
}

static int ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

bool sbx_slice_eq_nocase(sbx_slice a, sbx_slice b) {
  if (a.len != b.len)
    return false;
  for (size_t i = 0; i < a.len; i++) {
    if (ascii_lower(a.ptr[i]) != ascii_lower(b.ptr[i]))
      return false;
  }
  return true;
}

bool sbx_slice_starts_with(sbx_slice s, sbx_slice prefix) {
  return s.len >= prefix.len && sbx_slice_eq(sbx_slice_of(s.ptr, prefix.len), prefix);
}

size_t sbx_slice_find(sbx_slice s, char byte) {
  const char *hit = s.len ? memchr(s.ptr, byte, s.len) : NULL;
  return hit ? (size_t)(hit - s.ptr) : s.len;
}

bool sbx_slice_has_nul(sbx_slice s) {
  return sbx_slice_find(s, '\0') < s.len;
}

sbx_slice sbx_slice_skip(sbx_slice s, size_t at) {
  if (at > s.len)
    at = s.len;
  return at ? sbx_slice_of(s.ptr + at, s.len - at) : s;
}

int sbx_slices_copy(char **block, sbx_slice *a, sbx_slice *b) {
  size_t size;
  char *copy = sbx_size_add(&size, a->len, b->len) ? sbx_malloc(size) : NULL;
  if (copy == NULL)
    return SBX_ENOMEM;
  if (a->len > 0)
    memcpy(copy, a->ptr, a->len);
  if (b->len > 0)
    memcpy(copy + a->len, b->ptr, b->len);
  a->ptr = copy;
  b->ptr = copy + a->len;
  *block = copy;
  return SBX_OK;
}

void sbx_buf_init(sbx_buf *buf, size_t max) {
  *buf = (sbx_buf){.max = max};
}

void sbx_buf_deinit(sbx_buf *buf) {
  sbx_free(buf->ptr);
  sbx_buf_init(buf, buf->max);
}

static int fail(sbx_buf *buf, int code) {
  buf->error = code;
  return code;
}

/* Most of the time that filling a large block takes goes into faults of its many small pages. */
static void use_huge_pages(char *ptr, size_t size) {
#ifdef MADV_HUGEPAGE
  if (size < HUGE_FROM)
    return;
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  size_t skip = (size_t)(-(uintptr_t)ptr & (page - 1));
  madvise(ptr + skip, size - skip, MADV_HUGEPAGE);
#else
  (void)ptr;
  (void)size;
#endif
}

int sbx_buf_reserve(sbx_buf *buf, size_t more) {
  if (buf->error)
    return buf->error;
  size_t need;
  if (!sbx_size_add(&need, buf->len, more) || need > buf->max)
    return fail(buf, SBX_ETOOBIG);
  if (need <= buf->cap && buf->ptr)
    return SBX_OK;
  size_t cap = buf->cap > SIZE_MAX / 2 ? SIZE_MAX : buf->cap * 2;
  if (cap < FIRST_CAP)
    cap = FIRST_CAP;
  if (cap < need)
    cap = need;
  if (cap > buf->max)
    cap = buf->max;
  size_t size;
  char *ptr = sbx_size_add(&size, cap, 1) ? sbx_realloc(buf->ptr, size) : NULL;
  if (!ptr)
    return fail(buf, SBX_ENOMEM);
  use_huge_pages(ptr + buf->len, size - buf->len);
  ptr[buf->len] = '\0';
  buf->ptr = ptr;
  buf->cap = cap;
  return SBX_OK;
}

int sbx_buf_append(sbx_buf *buf, const char *ptr, size_t len) {
  if (len == 0 || sbx_buf_reserve(buf, len) != SBX_OK)
    return buf->error;
  memcpy(buf->ptr + buf->len, ptr, len);
  buf->len += len;
  buf->ptr[buf->len] = '\0';
  return SBX_OK;
}

int sbx_buf_append_slice(sbx_buf *buf, sbx_slice s) {
  return sbx_buf_append(buf, s.ptr, s.len);
}

int sbx_buf_append_str(sbx_buf *buf, const char *text) {
  return sbx_buf_append_slice(buf, sbx_slice_str(text));
}

int sbx_buf_append_char(sbx_buf *buf, char c) {
  return sbx_buf_append(buf, &c, 1);
}

__attribute__((format(printf, 2, 0))) static int append_formatted(sbx_buf *buf, const char *format,
                                                                  va_list args) {
  va_list again;
  va_copy(again, args);
  /* What fits into the room that is left needs to be formatted once only. */
  size_t room = buf->ptr != NULL ? buf->cap - buf->len : 0;
  int len = vsnprintf(room > 0 ? buf->ptr + buf->len : NULL, room > 0 ? room + 1 : 0, format, args);
  if (len < 0)
    fail(buf, SBX_ENOMEM);
  else if ((size_t)len > room && sbx_buf_reserve(buf, (size_t)len) == SBX_OK)
    vsnprintf(buf->ptr + buf->len, (size_t)len + 1, format, again);
  if (buf->error == SBX_OK)
    buf->len += (size_t)len;
  if (buf->ptr != NULL)
    buf->ptr[buf->len] = '\0';
  va_end(again);
  return buf->error;
}

int sbx_buf_appendf(sbx_buf *buf, const char *format, ...) {
  if (buf->error)
    return buf->error;
  va_list args;
  va_start(args, format);
  int rc = append_formatted(buf, format, args);
  va_end(args);
  return rc;
}

void sbx_buf_consume(sbx_buf *buf, size_t n) {
  if (n == 0 || !buf->ptr)
    return;
  if (n > buf->len)
    n = buf->len;
  buf->len -= n;
  memmove(buf->ptr, buf->ptr + n, buf->len + 1);
}

void sbx_buf_truncate(sbx_buf *buf, size_t len) {
  if (len >= buf->len)
    return;
  buf->len = len;
  buf->ptr[len] = '\0';
}

sbx_slice sbx_buf_slice(const sbx_buf *buf) {
  return sbx_slice_of(buf->ptr, buf->len);
}

char *sbx_buf_take(sbx_buf *buf, size_t *len) {
  char *ptr = buf->ptr;
  *len = buf->len;
  sbx_buf_init(buf, buf->max);
  return ptr;
}
