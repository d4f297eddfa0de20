/* items.h - takes a long array out of a JSON text, item by item, as the text comes. Sans-I/O.
 *
 * The array is the text itself, or a member of the object that the text is. Of the whole never more
 * is held than one item or one other member. */
#ifndef SBX_ITEMS_H
#define SBX_ITEMS_H

#include "core/json.h"

/* Gets each item, which lives until it returns. Returns 0, or a code with `err` filled to stop. */
typedef int (*sbx_items_fn)(void *arg, const sbx_json *item, sbx_err *err);

typedef struct sbx_items {
  sbx_items_fn fn;
  void *arg;
  const char *member; /* NULL: the text is the array */
  int state;
  bool in_array;  /* the values that come are items */
  bool is_wanted; /* the value that comes is that of `member` */
  bool seen;      /* the member has come */
  bool in_string; /* of the value, or the name, that is being taken */
  bool escaped;
  bool scalar; /* it has neither brackets nor quotes around it */
  unsigned depth;
  sbx_buf part; /* what is there of it; its max is the longest allowed */
} sbx_items;

/* `member` is static text. `max` is the length of the longest item. */
void sbx_items_init(sbx_items *decoder, const char *member, size_t max, sbx_items_fn fn, void *arg);
void sbx_items_deinit(sbx_items *decoder);
/* Takes bytes at any split. Errors: SBX_EPROTO, SBX_ETOOBIG, SBX_ENOMEM, or the callback's own.
 * After an error it must not be fed again. */
int sbx_items_feed(sbx_items *decoder, sbx_slice bytes, sbx_err *err);
/* Whether the text may end here; SBX_EPROTO when it is not whole. A member that is absent, or null,
 * is an array without items. */
int sbx_items_finish(const sbx_items *decoder, sbx_err *err);

#endif
