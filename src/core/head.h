/* head.h - the head of an HTTP/1.1 answer, for connections that are no longer HTTP behind it.
 * Sans-I/O. */
#ifndef SBX_HEAD_H
#define SBX_HEAD_H

#include "core/header.h"

typedef struct sbx_head {
  int status; /* 0 until its line has come */
  sbx_headers headers;
  sbx_buf line; /* the one that has not ended */
  size_t left;  /* bytes that all of it may still have */
  bool done;
} sbx_head;

/* `max` is the longest head in bytes, those before the final one (status 1xx, but for 101)
 * included. */
void sbx_head_init(sbx_head *head, size_t max);
void sbx_head_deinit(sbx_head *head);
/* Takes bytes at any split, until `done`; *used says how many belong to the head. Errors:
 * SBX_EPROTO, SBX_ENOMEM. After an error it must not be fed again. */
int sbx_head_feed(sbx_head *head, sbx_slice bytes, size_t *used, sbx_err *err);

#endif
