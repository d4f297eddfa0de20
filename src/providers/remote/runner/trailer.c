/* trailer.c - the line by which a command's wrapper says that it has ended.
 *
 * Invariant: every byte of the stream is handed on once and in order, but for the first line. */
#include "providers/remote/runner/trailer.h"

enum { RS = 0x1e, NUMBERS_AT = SBX_RUNNER_TOKEN + 2, CODE_DIGITS = 3, NUMBER_DIGITS = 9 };

static void hand_on(sbx_runner_trailer *t, sbx_slice bytes) {
  if (bytes.len > 0)
    t->fn(t->arg, bytes);
}

static void let_go(sbx_runner_trailer *t) {
  size_t len = t->held_len;
  t->held_len = t->digits = 0;
  t->second = false;
  t->exit_code = 0;
  t->number = 0;
  hand_on(t, sbx_slice_of(t->held, len));
}

/* Whether `c` can stand next in the line. */
static bool fits(const sbx_runner_trailer *t, char c) {
  size_t at = t->held_len;
  if (at == 0)
    return c == RS;
  if (at <= SBX_RUNNER_TOKEN)
    return c == t->token[at - 1];
  if (at < NUMBERS_AT)
    return c == ' ';
  if (sbx_is_digit(c))
    return t->digits < (size_t)(t->second ? NUMBER_DIGITS : CODE_DIGITS);
  return t->digits > 0 && (c == '\n' || (c == ' ' && !t->second));
}

static void take(sbx_runner_trailer *t, char c) {
  size_t at = t->held_len;
  if (c == '\n') {
    t->held_len = 0;
    t->found = true;
    return;
  }
  t->held[t->held_len++] = c;
  if (at < NUMBERS_AT)
    return;
  if (c == ' ') {
    t->second = true;
    t->digits = 0;
    return;
  }
  t->digits++;
  if (t->second)
    t->number = t->number * 10 + (c - '0');
  else
    t->exit_code = t->exit_code * 10 + (c - '0');
}

void sbx_runner_trailer_feed(sbx_runner_trailer *t, sbx_slice bytes) {
  while (bytes.len > 0 && !t->found) {
    if (t->held_len == 0) {
      size_t plain = sbx_slice_find(bytes, RS);
      hand_on(t, sbx_slice_of(bytes.ptr, plain));
      bytes = sbx_slice_skip(bytes, plain);
      if (bytes.len == 0)
        return;
    }
    if (!fits(t, bytes.ptr[0])) {
      let_go(t);
      continue;
    }
    take(t, bytes.ptr[0]);
    bytes = sbx_slice_skip(bytes, 1);
  }
  hand_on(t, bytes);
}

void sbx_runner_trailer_end(sbx_runner_trailer *t) {
  if (!t->found)
    let_go(t);
}
