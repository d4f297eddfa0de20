/* lines.h - splits a stream into lines, as NDJSON needs it. Sans-I/O. */
#ifndef SBX_LINES_H
#define SBX_LINES_H

#include "core/buf.h"

/* Gets each line without its line feed (and without a carriage return before it); blank lines are
 * left out. Returns 0, or a code with `err` filled to stop. */
typedef int (*sbx_lines_fn)(void *arg, sbx_slice line, sbx_err *err);

typedef struct sbx_lines {
  sbx_lines_fn fn;
  void *arg;
  sbx_buf partial; /* the line that has not ended; its max is the longest allowed */
} sbx_lines;

void sbx_lines_init(sbx_lines *decoder, size_t max, sbx_lines_fn fn, void *arg);
void sbx_lines_deinit(sbx_lines *decoder);
/* Takes bytes at any split. Errors: SBX_ETOOBIG, SBX_ENOMEM, or the callback's own. After an error
 * it must not be fed again. */
int sbx_lines_feed(sbx_lines *decoder, sbx_slice bytes, sbx_err *err);
/* The stream has ended: what stands after the last line feed is a line too. */
int sbx_lines_finish(sbx_lines *decoder, sbx_err *err);

#endif
