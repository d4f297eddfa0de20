/* err.c - error values and their texts.
 *
 * Invariant: `message` is always NUL-terminated valid UTF-8, whatever went into it; nothing here
 * allocates. */
#include "core/err.h"

#include "core/enc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct code_info {
  int code;
  bool retryable;
  const char *name;
  const char *public_code;
  const char *text;
} code_info;

static const code_info *find_code(int code) {
  static const code_info codes[] = {
#define X(name, number, public_code, retryable, text)                                              \
  {SBX_##name, retryable, #name, public_code, text},
      SBX_ERROR_MAP(X)
#undef X
  };
  static const code_info unknown = {SBX_OK, false, "", "", ""};
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    if (codes[i].code == code)
      return &codes[i];
  }
  return &unknown;
}

const char *sbx_err_name(int code) {
  return find_code(code)->name;
}

const char *sbx_err_public_code(int code) {
  return find_code(code)->public_code;
}

bool sbx_err_retryable(int code) {
  return find_code(code)->retryable;
}

/* Makes what stands from `from` on valid UTF-8; `cut` says that the text was longer. */
static void tidy(sbx_err *err, size_t from, bool cut) {
  sbx_slice rest = sbx_slice_of(err->message + from, strlen(err->message + from));
  if (cut)
    rest.len = sbx_utf8_floor(rest);
  err->message[from + rest.len] = '\0';
  while (rest.len) {
    size_t len;
    /* In place there is no room for U+FFFD. */
    if (sbx_utf8_step(rest, &len) != SBX_UTF8_VALID)
      memset(err->message + (rest.ptr - err->message), '?', len);
    rest = sbx_slice_skip(rest, len);
  }
}

__attribute__((format(printf, 2, 0))) static void append_formatted(sbx_err *err, const char *format,
                                                                   va_list args) {
  size_t len = strlen(err->message);
  int wanted = vsnprintf(err->message + len, sizeof err->message - len, format, args);
  if (wanted < 0)
    err->message[len] = '\0';
  tidy(err, len, wanted >= 0 && (size_t)wanted >= sizeof err->message - len);
}

int sbx_err_set(sbx_err *err, int code, const char *format, ...) {
  if (!err)
    return code;
  sbx_err_clear(err);
  err->code = code;
  va_list args;
  va_start(args, format);
  if (format)
    append_formatted(err, format, args);
  else
    snprintf(err->message, sizeof err->message, "%s", find_code(code)->text);
  va_end(args);
  return code;
}

void sbx_err_clear(sbx_err *err) {
  if (err)
    *err = (sbx_err){0};
}

void sbx_err_copy(sbx_err *to, const sbx_err *from) {
  if (to && to != from)
    *to = *from;
}

void sbx_err_append(sbx_err *err, const char *format, ...) {
  if (!err)
    return;
  va_list args;
  va_start(args, format);
  append_formatted(err, format, args);
  va_end(args);
}

/* ---- the system ---- */

bool sbx_err_is_fd_limit(int error) {
  return error == EMFILE || error == ENFILE;
}

const char *sbx_err_system(int error) {
  switch (error) {
  case EMFILE:
    return "too many open files in this process (close sandboxes and files, or raise its limit: "
           "ulimit -n)";
  case ENFILE:
    return "too many open files on this machine";
  default:
    return strerror(error);
  }
}

/* ---- remote text ---- */

/* Length of the HTML tag at the start of `s`, 0 when there is none. */
static size_t tag_length(sbx_slice s) {
  if (s.len < 3 || s.ptr[0] != '<')
    return 0;
  char c = s.ptr[1];
  bool is_tag = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/' || c == '!';
  size_t end = is_tag ? sbx_slice_find(s, '>') : s.len;
  return end < s.len ? end + 1 : 0;
}

/* Blanks, and the control characters of ASCII and of U+0080 to U+009F. */
static bool is_blank_or_control(sbx_slice s, size_t len) {
  unsigned char c = (unsigned char)s.ptr[0];
  if (len == 1)
    return c <= 0x20 || c == 0x7F;
  return len == 2 && c == 0xC2 && (unsigned char)s.ptr[1] < 0xA0;
}

/* Reads one piece of `text`: 0 at the end of what is shown, else its length; `piece` is what stands
 * for it. */
static size_t next_piece(sbx_slice text, bool *tags, sbx_slice *piece) {
  size_t len = *tags ? tag_length(text) : 0;
  *piece = sbx_slice_str(" ");
  if (len)
    return len;
  /* Without a '>' for this '<' there is none for the ones behind it: search only once. */
  if (*tags && text.ptr[0] == '<' && sbx_slice_find(text, '>') == text.len)
    *tags = false;
  if (sbx_utf8_step(text, &len) != SBX_UTF8_VALID)
    *piece = sbx_slice_str("\xEF\xBF\xBD");
  else if (!is_blank_or_control(text, len))
    *piece = sbx_slice_of(text.ptr, len);
  return len;
}

void sbx_err_append_remote(sbx_err *err, sbx_slice text) {
  if (!err)
    return;
  size_t at = strlen(err->message);
  size_t room = sizeof err->message - 1 - at;
  if (room > SBX_ERR_REMOTE_MAX)
    room = SBX_ERR_REMOTE_MAX;
  size_t end = at + room;
  bool tags = true;
  bool blank_due = false; /* blanks count only between two words */
  size_t start = at;
  while (text.len) {
    sbx_slice piece;
    text = sbx_slice_skip(text, next_piece(text, &tags, &piece));
    if (sbx_slice_eq_str(piece, " ")) {
      blank_due = at > start;
      continue;
    }
    if (piece.len + blank_due > end - at)
      break;
    if (blank_due)
      err->message[at++] = ' ';
    blank_due = false;
    memcpy(err->message + at, piece.ptr, piece.len);
    at += piece.len;
  }
  err->message[at] = '\0';
}
