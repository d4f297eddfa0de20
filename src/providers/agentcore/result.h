/* result.h - what a tool's answer says: the events of its stream, as one result. */
#ifndef SBX_AGENTCORE_RESULT_H
#define SBX_AGENTCORE_RESULT_H

#include "core/buf.h"

typedef struct sbx__ac_result {
  sbx_buf printed; /* standard output; where the answer has none, its texts */
  sbx_buf said;    /* standard error, or else the texts */
  bool any;        /* a result came */
  bool failed;     /* it says so itself */
  bool refused;    /* the service has refused it in the stream: nothing was done */
  bool broken_off; /* the stream says that the service has failed */
} sbx__ac_result;

void sbx__ac_result_init(sbx__ac_result *result);
void sbx__ac_result_deinit(sbx__ac_result *result);
/* Reads the body of a 200. SBX_ENET: it ended too early; SBX_EPROTO, SBX_ENOMEM, SBX_ETOOBIG; or
 * what an exception in it means. */
int sbx__ac_result_read(sbx__ac_result *result, sbx_slice body, sbx_err *err);

#endif
