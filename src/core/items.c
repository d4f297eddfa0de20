/* items.c - finds where the values of an array begin and end, and has each parsed by itself.
 *
 * Only brackets and quotes are looked at here; whether a value is JSON says the parser, and what
 * stands between values is one of the few bytes that may.
 *
 * Invariant: `part` holds the beginning of the one value or name that has not ended. */
#include "core/items.h"

#include "core/err.h"

#include <string.h>

enum { MAX_VALUES = 256 }; /* of one item */

enum {
  BEGIN,        /* of the text */
  FIRST_OR_END, /* behind the opening bracket */
  NAME,         /* behind a comma of the object */
  TAKES_NAME,   /* inside a name */
  COLON,        /* behind a name */
  VALUE,        /* where one has to begin */
  TAKES_VALUE,  /* inside of one */
  COMMA_OR_END, /* behind one */
  ENDED,        /* behind the text */
};

void sbx_items_init(sbx_items *decoder, const char *member, size_t max, sbx_items_fn fn,
                    void *arg) {
  *decoder = (sbx_items){.fn = fn, .arg = arg, .member = member, .state = BEGIN};
  sbx_buf_init(&decoder->part, max);
}

void sbx_items_deinit(sbx_items *decoder) {
  sbx_buf_deinit(&decoder->part);
}

static int broken(sbx_err *err, const char *what) {
  return sbx_err_set(err, SBX_EPROTO, "invalid JSON: %s", what);
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* ---- one value ---- */

static void begin_value(sbx_items *d, int state, char first) {
  d->state = state;
  d->depth = 0;
  d->in_string = d->escaped = false;
  d->scalar = first != '"' && first != '{' && first != '[';
}

/* How many of `bytes` belong to the value; `*ends` says whether it is complete with them. */
static size_t value_length(sbx_items *d, sbx_slice bytes, bool *ends) {
  *ends = true;
  for (size_t i = 0; i < bytes.len; i++) {
    char c = bytes.ptr[i];
    if (d->in_string) {
      bool ends_string = c == '"' && !d->escaped;
      d->escaped = c == '\\' && !d->escaped;
      d->in_string = !ends_string;
      if (ends_string && d->depth == 0)
        return i + 1;
    } else if (d->scalar) {
      if (c == ',' || c == ']' || c == '}' || is_blank(c))
        return i;
    } else if (c == '"') {
      d->in_string = true;
    } else if (c == '{' || c == '[') {
      d->depth++;
    } else if ((c == '}' || c == ']') && --d->depth == 0) {
      return i + 1;
    }
  }
  *ends = false;
  return bytes.len;
}

/* An empty `text` was a scalar that has not begun. */
static int take_value(sbx_items *d, sbx_slice text, sbx_err *err) {
  sbx_json_doc *doc = NULL;
  int rc = sbx_json_parse_max(&doc, text, MAX_VALUES, err);
  if (rc != SBX_OK)
    return rc;
  const sbx_json *value = sbx_json_root(doc);
  if (d->state == TAKES_NAME) {
    sbx_slice name = {NULL, 0};
    sbx_json_string(value, &name);
    d->is_wanted = sbx_slice_eq_str(name, d->member);
    if (d->is_wanted && d->seen)
      rc = broken(err, "two members of one name");
    d->seen = d->seen || d->is_wanted;
    d->state = COLON;
  } else {
    if (d->in_array)
      rc = d->fn(d->arg, value, err);
    else if (d->is_wanted && !sbx_json_is_null(value))
      rc = broken(err, "no array where one is expected");
    d->state = COMMA_OR_END;
  }
  sbx_json_free(doc, true);
  return rc;
}

static int keep(sbx_items *d, sbx_slice bytes, sbx_err *err) {
  int rc = sbx_buf_append_slice(&d->part, bytes);
  if (rc == SBX_ETOOBIG)
    return sbx_err_set(err, rc, "a part of the list is longer than %zu bytes", d->part.max);
  return rc == SBX_OK ? SBX_OK : sbx_err_set(err, rc, NULL);
}

/* A value that came in one piece is not copied. */
static int take_bytes(sbx_items *d, sbx_slice bytes, size_t *used, sbx_err *err) {
  bool ends;
  *used = value_length(d, bytes, &ends);
  sbx_slice part = sbx_slice_of(bytes.ptr, *used);
  if (ends && d->part.len == 0 && part.len <= d->part.max)
    return take_value(d, part, err);
  int rc = keep(d, part, err);
  if (rc != SBX_OK || !ends)
    return rc;
  rc = take_value(d, sbx_buf_slice(&d->part), err);
  sbx_buf_truncate(&d->part, 0);
  return rc;
}

/* ---- between values ---- */

/* The wanted member's array, or a value. True: `c` is used up. */
static bool begins_array(sbx_items *d, char c) {
  if (c != '[' || d->in_array || !d->is_wanted)
    return false;
  d->in_array = true;
  d->state = FIRST_OR_END;
  return true;
}

/* Takes a closing bracket where one may be. */
static bool ends_here(sbx_items *d, char c) {
  if (d->in_array && c == ']') {
    d->in_array = false;
    d->is_wanted = false;
    d->state = d->member != NULL ? COMMA_OR_END : ENDED;
    return true;
  }
  if (!d->in_array && d->member != NULL && c == '}') {
    d->state = ENDED;
    return true;
  }
  return false;
}

/* Takes one byte, or begins a value with it: `*used` is then 0. */
static int take_mark(sbx_items *d, char c, size_t *used, sbx_err *err) {
  bool names = d->member != NULL && !d->in_array;
  *used = 1;
  switch (d->state) {
  case BEGIN:
    if (c != (d->member != NULL ? '{' : '['))
      return broken(err, d->member != NULL ? "it is no object" : "it is no array");
    d->in_array = d->member == NULL;
    d->state = FIRST_OR_END;
    return SBX_OK;
  case COMMA_OR_END:
    if (ends_here(d, c))
      return SBX_OK;
    d->state = names ? NAME : VALUE;
    return c == ',' ? SBX_OK : broken(err, "no ',' behind a value");
  case COLON:
    d->state = VALUE;
    return c == ':' ? SBX_OK : broken(err, "no ':' behind a member name");
  case FIRST_OR_END:
    if (ends_here(d, c))
      return SBX_OK;
    break;
  case VALUE:
    if (begins_array(d, c))
      return SBX_OK;
    names = false;
    break;
  case ENDED:
    return broken(err, "text behind its end");
  default:
    break;
  }
  if (names && c != '"')
    return broken(err, "no member name");
  *used = 0;
  begin_value(d, names ? TAKES_NAME : TAKES_VALUE, c);
  return SBX_OK;
}

int sbx_items_feed(sbx_items *d, sbx_slice bytes, sbx_err *err) {
  while (bytes.len > 0) {
    size_t used = 1;
    int rc = SBX_OK;
    if (d->state == TAKES_NAME || d->state == TAKES_VALUE)
      rc = take_bytes(d, bytes, &used, err);
    else if (!is_blank(bytes.ptr[0]))
      rc = take_mark(d, bytes.ptr[0], &used, err);
    if (rc != SBX_OK)
      return rc;
    bytes = sbx_slice_skip(bytes, used);
  }
  return SBX_OK;
}

int sbx_items_finish(const sbx_items *d, sbx_err *err) {
  return d->state == ENDED ? SBX_OK : broken(err, "it ends too early");
}
