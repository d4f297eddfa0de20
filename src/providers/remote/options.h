/* options.h - readers of options, as all providers have them that are reached over HTTP.
 *
 * Each reads one member of `options`, leaves `out` alone when it is absent, and fills `err` with
 * SBX_EINVAL, naming the member and never its value, when it is not what it should be. When `err`
 * has an error already, it does nothing; it returns the error's code in any case. So several are
 * called one after the other, and `err` is looked at once. */
#ifndef SBX_REMOTE_OPTIONS_H
#define SBX_REMOTE_OPTIONS_H

#include "core/http.h"
#include "core/json.h"

/* A string that is neither empty nor has control characters, as a copy: sbx_free() it. */
int sbx_remote_text(char **out, const sbx_json *options, const char *name, sbx_err *err);
int sbx_remote_bool(bool *out, const sbx_json *options, const char *name, sbx_err *err);
int sbx_remote_int(int64_t *out, const sbx_json *options, const char *name, int64_t min,
                   int64_t max, sbx_err *err);
/* An http or https URL without a query, '/' at its end left out, as a copy. */
int sbx_remote_url(char **out, const sbx_json *options, const char *name, sbx_err *err);
/* SBX_EINVAL when `url` is one of http: while `base` is https:, loopback apart: the credentials
 * would go there in the clear. `name` is what the message calls it; a NULL `url` is fine. */
int sbx_remote_check_safe(const char *url, const char *base, const char *name, sbx_err *err);
/* An object of strings without NUL bytes; NULL when it is absent. Borrowed from `options`. */
int sbx_remote_map(const sbx_json **out, const sbx_json *options, const char *name, sbx_err *err);
/* Begins an object with the members of such a map (NULL: none). */
void sbx_remote_begin_map(sbx_json_out *out, const sbx_json *map);

/* The member "ca", and what the environment says, into `http`, borrowed from `options`. */
int sbx_remote_http_options(sbx_http_options *http, const sbx_json *options, sbx_err *err);
/* Options that become members of a create as they are. */
typedef struct sbx_remote_member {
  const char *option;
  const char *name;
  enum { SBX_REMOTE_TEXT, SBX_REMOTE_TEXTS, SBX_REMOTE_FLAG, SBX_REMOTE_NUMBER } kind;
  int64_t min, max;     /* of a number */
  const char *fallback; /* JSON in place of one that is not given; NULL: it is left out */
} sbx_remote_member;

/* Checks them and writes them; SBX_REMOTE_TEXTS is an array of strings. */
void sbx_remote_put_members(sbx_json_out *out, const sbx_remote_member *members, size_t count,
                            const sbx_json *options, sbx_err *err);

/* "Authorization: Bearer SECRET". */
int sbx_remote_bearer(sbx_headers *headers, const char *secret, sbx_err *err);
/* The fields of a map; those of `ours`, names in small letters and then NULL, are refused. */
int sbx_remote_headers(sbx_headers *headers, const sbx_json *options, const char *name,
                       const char *const *ours, sbx_err *err);

/* The members "proxy" (URL; "" for none, whatever the environment says) and "ca" (certificates in
 * PEM, trusted in place of the system's), and the client that they make, which is shared with
 * others of the loop. A NULL loop shares nothing. */
int sbx_remote_client(sbx_http_client **out, sbx_loop *loop, const sbx_json *options,
                      sbx_http_version version, sbx_err *err);

#endif
