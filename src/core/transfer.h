/* transfer.h - libcurl's transfers on an sbx_loop: one multi handle per loop, made at first use,
 * and with an old libcurl renewed.
 *
 * A transfer's owner is never called from inside a libcurl function: `done` comes after the library
 * has returned. What libcurl itself calls (write, header and pre-request functions of the easy
 * handle) must not start, stop or free anything; it may only take bytes and return. */
#ifndef SBX_TRANSFER_H
#define SBX_TRANSFER_H

#include "core/curl_dl.h"
#include "core/loop.h"

/* Waits for a turn of the loop that has time left. */
typedef struct sbx__waiter {
  struct sbx__waiter *next, *prev;
  void (*serve)(struct sbx__waiter *waiter);
  bool waits;
} sbx__waiter;

/* Embedded in its owner. */
typedef struct sbx_transfer {
  sbx__waiter waiter; /* first; while it is paused */
  struct sbx__pool *pool;
  struct sbx__hub *hub;
  CURL *easy;
  void (*done)(struct sbx_transfer *transfer, CURLcode result);
  struct sbx_transfer *next, *prev; /* the active ones of the loop */
  bool active;
  bool stays;  /* set before the start: it is not ended with `done`, since only then the connection
                  that it has made is used */
  bool failed; /* there was no memory for a descriptor of it */
} sbx_transfer;

/* Starts `easy`, which is set up but for CURLOPT_PRIVATE and the functions that open and close its
 * socket, and stays the caller's. `done` is called once (with `stays`, a second time when all
 * transfers have to be given up), unless sbx_transfer_stop() comes first; the easy handle may be
 * freed in it. Errors: SBX_ELIBRARY, SBX_ENOMEM. */
int sbx_transfer_start(sbx_transfer *transfer, sbx_loop *loop, CURL *easy,
                       void (*done)(sbx_transfer *transfer, CURLcode result), sbx_err *err);
/* Ends it without `done`; its connection is closed unless the transfer shares it. A transfer that
 * is not active is left alone. */
void sbx_transfer_stop(sbx_transfer *transfer, sbx_loop *loop);

/* For the write function, which libcurl calls as long as something comes: whether it is to return
 * CURL_WRITEFUNC_PAUSE, since the core has had its share of this turn. The transfer goes on in a
 * later one by itself. */
bool sbx_transfer_pause(sbx_transfer *transfer);

/* Differs between two calls of libcurl's into this transfer when it has returned in between. */
uint64_t sbx_transfer_round(const sbx_transfer *transfer);

/* How many connections are watched, in use or kept for the next request. */
size_t sbx_transfer_connections(const sbx_loop *loop);

#endif
