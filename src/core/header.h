/* header.h - a list of HTTP header fields, for requests and responses. Sans-I/O.
 *
 * Values may be secrets: they never come into a message and are wiped when the list ends. */
#ifndef SBX_HEADER_H
#define SBX_HEADER_H

#include "core/buf.h"

/* Name and value are NUL-terminated too and live until the list's deinit. */
typedef struct sbx_header {
  sbx_slice name;
  sbx_slice value;
} sbx_header;

typedef struct sbx_headers {
  sbx_header *items; /* in the order in which they came */
  size_t count;
  size_t cap;
  size_t bytes; /* of all names and values */
  size_t max;   /* `bytes` never passes this */
} sbx_headers;

/* More fields than this are SBX_ETOOBIG. */
#define SBX_HEADERS_MAX_COUNT 256

/* Allocates nothing. */
void sbx_headers_init(sbx_headers *headers, size_t max_bytes);
/* Wipes and frees all; the list is then as after init with the same max. */
void sbx_headers_deinit(sbx_headers *headers);

/* Appends a field to be sent; blanks around the value are left out. SBX_EINVAL when the name is no
 * RFC 9110 token or the value has a control character other than a tab; SBX_ETOOBIG, SBX_ENOMEM. */
int sbx_headers_add(sbx_headers *headers, sbx_slice name, sbx_slice value, sbx_err *err);
/* Appends a field as received: "name: value" with or without line end. SBX_EPROTO when it is not
 * that, is the continuation of a line or has a CR, LF or NUL inside; SBX_ETOOBIG, SBX_ENOMEM. */
int sbx_headers_add_line(sbx_headers *headers, sbx_slice line, sbx_err *err);

/* The first field of this name, in any case of letters; false leaves `value` alone. */
bool sbx_headers_get(const sbx_headers *headers, const char *name, sbx_slice *value);

/* Reads the value of Retry-After, which is a number of seconds or a date in one of the three forms
 * of RFC 9110; `now` is the time of day in seconds since 1970. A date that has passed gives 0.
 * False when it is neither. */
bool sbx_retry_after(sbx_slice value, int64_t now, uint64_t *delay_ms);

#endif
