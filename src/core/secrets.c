/* secrets.c - takes credentials out of messages. */
#include "core/secrets.h"

#include <string.h>

enum {
  SHORTEST = 6,   /* a shorter word says little, and may be part of any text */
  BEGINNING = 12, /* so much of a secret at the end of a text is no chance */
};

static bool contains_nocase(sbx_slice text, const char *word) {
  size_t len = strlen(word);
  for (; text.len >= len; text = sbx_slice_skip(text, 1)) {
    if (sbx_slice_eq_nocase(sbx_slice_of(text.ptr, len), sbx_slice_of(word, len)))
      return true;
  }
  return false;
}

bool sbx_secret_is_field(sbx_slice name) {
  static const char *const words[] = {"auth", "key", "token", "secret", "cookie", "password"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (contains_nocase(name, words[i]))
      return true;
  }
  return false;
}

static size_t common_length(const char *text, sbx_slice secret) {
  size_t n = 0;
  while (n < secret.len && text[n] == secret.ptr[n] && text[n] != '\0')
    n++;
  return n;
}

void sbx_secret_hide(sbx_err *err, sbx_slice secret) {
  static const char instead[] = "***";
  size_t least = secret.len < BEGINNING ? secret.len : BEGINNING;
  if (err == NULL || secret.len < SHORTEST)
    return;
  for (char *at = err->message; (at = strchr(at, secret.ptr[0])) != NULL;) {
    size_t found = common_length(at, secret);
    if (found < least) {
      at++;
      continue;
    }
    memcpy(at, instead, sizeof instead - 1);
    memmove(at + sizeof instead - 1, at + found, strlen(at + found) + 1);
    at += sizeof instead - 1;
  }
}

void sbx_secret_hide_words(sbx_err *err, sbx_slice value) {
  while (value.len > 0) {
    sbx_slice word = sbx_slice_of(value.ptr, sbx_slice_find(value, ' '));
    sbx_secret_hide(err, word);
    value = sbx_slice_skip(value, word.len + 1);
  }
}

void sbx_secret_hide_fields(sbx_err *err, const sbx_headers *headers) {
  for (size_t i = 0; i < headers->count; i++) {
    if (sbx_secret_is_field(headers->items[i].name))
      sbx_secret_hide_words(err, headers->items[i].value);
  }
}
