/* egress_reply.h - what the proxy itself answers: why something is refused, and what to do.
 * Sans-I/O.
 *
 * The reason of the status line says it too: it is all that many programs show of a CONNECT that
 * has failed. A message has the host and port that were asked for; no path, field or body. */
#ifndef SBX_EGRESS_REPLY_H
#define SBX_EGRESS_REPLY_H

#include "providers/local/egress_head.h"

/* Each appends a whole answer. */

/* The request is no good. */
int sbx__egress_reply_fault(sbx_buf *out, const sbx__egress_request *request,
                            const sbx__egress_fault *fault);
/* The rules do not allow it; not for SBX__EGRESS_ALLOWED. */
int sbx__egress_reply_refused(sbx_buf *out, const sbx__egress_request *request,
                              sbx__egress_verdict verdict);
/* The host is listed, but all that its name leads to is refused; `addr` is the first. */
int sbx__egress_reply_addr(sbx_buf *out, const sbx__egress_request *request,
                           const sbx__egress_addr *addr);
/* The host cannot be reached; `status` is 502, 503 or 504, `why` our own text or the system's. */
int sbx__egress_reply_failed(sbx_buf *out, const sbx__egress_request *request, int status,
                             const char *why);

/* Calls `add` for each variable that makes the programs of a command use the proxy at `port` on
 * their own loopback, until one call does not return SBX_OK; returns what the last one did. */
int sbx__egress_env(uint16_t port, int (*add)(void *arg, const char *name, const char *value),
                    void *arg);

#endif
