/* spool.h - bytes that come inside libcurl wait here for the ready list.
 *
 * A consumer of an exchange may only feed a decoder while libcurl calls it. Where the decoder's
 * output goes on to a user, or may end the exchange, the bytes are put down here first. All of them
 * are handed on in the same turn of the loop, so what waits is bounded by what one turn reads. */
#ifndef SBX_SPOOL_H
#define SBX_SPOOL_H

#include "core/buf.h"
#include "core/loop.h"

typedef void (*sbx_spool_fn)(void *arg, sbx_slice bytes);

typedef struct sbx_spool {
  sbx_buf bytes;
  sbx_task task;
  sbx_loop *loop;
  sbx_spool_fn fn;
  void *arg;
} sbx_spool;

/* `fn` runs from the ready list; it may deinit the spool. */
void sbx_spool_init(sbx_spool *spool, sbx_loop *loop, sbx_spool_fn fn, void *arg);
/* Drops what waits. */
void sbx_spool_deinit(sbx_spool *spool);
/* Errors: SBX_ENOMEM. */
int sbx_spool_add(sbx_spool *spool, sbx_slice bytes);
/* Hands on what waits, now; not from inside libcurl. */
void sbx_spool_flush(sbx_spool *spool);

#endif
