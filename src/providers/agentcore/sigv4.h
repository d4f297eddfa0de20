/* sigv4.h - AWS's Signature Version 4 of a request. Sans-I/O. */
#ifndef SBX_AGENTCORE_SIGV4_H
#define SBX_AGENTCORE_SIGV4_H

#include "core/http.h"
#include "core/sha256.h"

enum { SBX__SIGV4_ALIKE = 8 * 1024 };

/* What bodies begin with alike, as lines do that run a program: it is hashed once. Zero it before
 * its first use. */
typedef struct sbx__sigv4_alike {
  bool known;
  char bytes[SBX__SIGV4_ALIKE];
  sbx_sha256 hash; /* of these bytes */
} sbx__sigv4_alike;

typedef struct sbx__sigv4 {
  sbx_slice id, secret;
  sbx_slice token; /* of temporary credentials; empty: none */
  sbx_slice region, service;
  int64_t now;             /* seconds since 1970 */
  sbx__sigv4_alike *alike; /* NULL: every body is hashed as a whole */
} sbx__sigv4;

/* Adds the date, the token and the signature to `headers`, which has all others that are sent, but
 * for the host and the content type of `request`. They are signed, but for the user agent, which
 * may be changed on the way. The query is taken as it is: its names and values are encoded already.
 * SBX_EINVAL, SBX_ETOOBIG, SBX_ENOMEM. */
int sbx__sigv4_sign(const sbx__sigv4 *how, const sbx_http_request *request, sbx_headers *headers,
                    sbx_err *err);

#endif
