/* call.h - one signed request: its keys, its signature, and the service's clock. */
#ifndef SBX_AGENTCORE_CALL_H
#define SBX_AGENTCORE_CALL_H

#include "providers/agentcore/session.h"

/* As sbx_remote_exchange_send(), signed. `on_reply` also gets what kept it from being sent: then
 * nothing of it has left. */
void sbx__ac_call(sbx_steps *steps, sbx_buf *url, const sbx_http_request *request,
                  sbx_steps_reply on_reply);

#endif
