/* curl_dl.h - libcurl, loaded when it is first needed.
 *
 * The core is not linked against libcurl: a program that only uses local sandboxes needs none, and
 * the library's own TLS and HTTP/2 libraries are kept apart from the copies of them that a host
 * (the node binary) exports. Either flavour of the library, OpenSSL or GnuTLS, will do. */
#ifndef SBX_CURL_DL_H
#define SBX_CURL_DL_H

#include "sbx.h"

#include <stdbool.h>

/* Options that are deprecated in new headers are still needed for old libraries. */
#ifndef CURL_DISABLE_DEPRECATION
#define CURL_DISABLE_DEPRECATION
#endif
/* The type checks of the real functions' macros do not apply to a table of pointers. */
#ifndef CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_TYPECHECK
#endif
#include <curl/curl.h>

#if LIBCURL_VERSION_NUM < 0x074d00
#error "libcurl's headers must be those of 7.77 or newer"
#endif

/* Options that are younger than the oldest headers; an older library refuses them by number. */
#if LIBCURL_VERSION_NUM < 0x075000
#define CURLOPT_PREREQFUNCTION ((CURLoption)(CURLOPTTYPE_FUNCTIONPOINT + 312))
#define CURLOPT_PREREQDATA ((CURLoption)(CURLOPTTYPE_OBJECTPOINT + 313))
#define CURL_PREREQFUNC_OK 0
#define CURL_PREREQFUNC_ABORT 1
#endif
#if LIBCURL_VERSION_NUM < 0x075500
#define CURLOPT_PROTOCOLS_STR ((CURLoption)(CURLOPTTYPE_STRINGPOINT + 318))
#endif
#if LIBCURL_VERSION_NUM < 0x075700
#define CURLOPT_CA_CACHE_TIMEOUT ((CURLoption)(CURLOPTTYPE_LONG + 321))
#define CURLOPT_QUICK_EXIT ((CURLoption)(CURLOPTTYPE_LONG + 322))
#endif

#define SBX_CURL_FUNCTIONS(X)                                                                      \
  X(global_init)                                                                                   \
  X(version_info)                                                                                  \
  X(easy_init)                                                                                     \
  X(easy_cleanup)                                                                                  \
  X(easy_setopt)                                                                                   \
  X(easy_getinfo)                                                                                  \
  X(easy_pause)                                                                                    \
  X(easy_send)                                                                                     \
  X(easy_recv)                                                                                     \
  X(easy_strerror)                                                                                 \
  X(multi_init)                                                                                    \
  X(multi_cleanup)                                                                                 \
  X(multi_setopt)                                                                                  \
  X(multi_add_handle)                                                                              \
  X(multi_remove_handle)                                                                           \
  X(multi_socket_action)                                                                           \
  X(multi_info_read)                                                                               \
  X(multi_strerror)                                                                                \
  X(slist_append)                                                                                  \
  X(slist_free_all)                                                                                \
  X(mime_init)                                                                                     \
  X(mime_free)                                                                                     \
  X(mime_addpart)                                                                                  \
  X(mime_name)                                                                                     \
  X(mime_filename)                                                                                 \
  X(mime_type)                                                                                     \
  X(mime_data_cb)

/* The functions in use, each with the type that the header gives it. */
typedef struct sbx_curl {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): `name` is the member's name */
#define X(name) __typeof__(&curl_##name) name;
  SBX_CURL_FUNCTIONS(X)
#undef X
  const curl_version_info_data *info;
  bool has_http2;
  /* Whether requests can share an HTTP/2 connection. Before 8.1 a stream that ends while another
   * one has more than its buffer holds loses what came behind its body, and also that it was broken
   * off: its answer passes for a complete one. And each stream is reset after its end, unless the
   * answer says its length, which servers take for an attack: see transfer.c. */
  bool shares_http2;
} sbx_curl;

/* The loaded library; loads it at the first call in the process (any thread), and keeps it until
 * the process ends. `file` (NULL: none; SBX_LIBCURL) is loaded in place of the usual names. Errors:
 * SBX_ELIBRARY with a message that says what to install; SBX_ENET when descriptors have run out.
 * After an error the next call tries again. */
int sbx_curl_load(const sbx_curl **out, const char *file, sbx_err *err);
static inline int sbx_curl_get(const sbx_curl **out, sbx_err *err) {
  return sbx_curl_load(out, NULL, err);
}

#endif
