/* relay.h - a command's output on its way to the user's callback. */
#ifndef SBX_SANDBOX_RELAY_H
#define SBX_SANDBOX_RELAY_H

#include "core/loop.h"

typedef struct sbx__chunk sbx__chunk;

/* Output that waits for the ready list: it may arrive deep inside the core, even inside libcurl,
 * where no user code may run. What one turn of the loop brings is all that is ever held. */
typedef struct sbx__relay {
  sbx_loop *loop;
  sbx_output_cb fn;
  void *arg;
  sbx__chunk *first;
  sbx__chunk **last;
  bool *freed; /* set while `fn` runs: it may end the call that the relay belongs to */
} sbx__relay;

void sbx__relay_init(sbx__relay *relay, sbx_loop *loop, sbx_output_cb fn, void *arg);
/* False when there is no memory: what came is then lost. */
bool sbx__relay_add(sbx__relay *relay, sbx_stream stream, sbx_slice bytes);
/* Calls `fn` with all that waits; only from the ready list. False when the relay is no more. */
bool sbx__relay_flush(sbx__relay *relay);
void sbx__relay_deinit(sbx__relay *relay);

#endif
