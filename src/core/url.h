/* url.h - reading and building http and https URLs. Sans-I/O.
 *
 * Stricter than a browser: what is not plainly a URL is refused instead of repaired, so that a base
 * URL from a user cannot make a request go elsewhere than it says. */
#ifndef SBX_URL_H
#define SBX_URL_H

#include "core/buf.h"

/* The parts are borrowed from the text that was parsed. */
typedef struct sbx_url {
  bool https;
  bool ipv6;       /* `host` is an IPv6 address, here without its brackets */
  sbx_slice host;  /* a name in ASCII or an address */
  uint16_t port;   /* the scheme's own when the text has none */
  sbx_slice path;  /* as written, percent-encoded: "" or "/..." */
  sbx_slice query; /* as written, without the '?' */
} sbx_url;

/* SBX_EINVAL for a scheme other than http and https, a user name or password, a fragment, "." or
 * ".." in the path, a host or port that is none, and any byte that must not stand in a URL (blanks,
 * control characters, non-ASCII). The message does not repeat the text: it may hold a secret. */
int sbx_url_parse(sbx_url *out, sbx_slice text, sbx_err *err);

/* Whether what goes to `other` could be read on its way, while what goes to `base` cannot: https
 * there, http here, and not to this machine itself. */
bool sbx_url_is_weaker(const sbx_url *other, const sbx_url *base);

/* Whether a proxy can be at this URL: [scheme://][user:password@]host[:port], with a scheme of
 * libcurl's. SBX_EINVAL says what is wrong, never repeating the text: libcurl would, with the
 * password in it. */
int sbx_url_check_proxy(sbx_slice text, sbx_err *err);

/* Appends scheme, host, port (unless it is the scheme's own) and the base's path without '/' at its
 * end, then `path`, which is "" or begins with '/', is encoded already and may have a query.
 * SBX_EINVAL for a base with a query or a malformed path; SBX_ENOMEM, SBX_ETOOBIG. */
int sbx_url_join(sbx_buf *out, const sbx_url *base, sbx_slice path, sbx_err *err);

/* Appends '/' and the encoded segment. A segment that is empty, "." or ".." would name another
 * resource: SBX_EINVAL, which then stays in out->error. */
int sbx_url_append_segment(sbx_buf *out, sbx_slice segment);
/* Appends "?name=value", or "&name=value" when there is a '?' in `out` already, both encoded. */
int sbx_url_append_query(sbx_buf *out, sbx_slice name, sbx_slice value);

#endif
