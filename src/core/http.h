/* http.h - one HTTP exchange as an operation: a request from memory, a reply in memory or to a
 * consumer piece by piece.
 *
 * What holds for every exchange: http and https only, redirects are not followed (a 3xx is a
 * reply), certificates are always checked, nothing is read from .netrc, no cookies, no
 * "Expect: 100-continue", nothing is decoded: a compressed answer is an error. Connections are kept
 * and shared per loop.
 *
 * Proxies: the `proxy` option, for all requests; without it what the environment says. */
#ifndef SBX_HTTP_H
#define SBX_HTTP_H

#include "core/buf.h"
#include "core/header.h"
#include "core/op.h"

/* ---- client: how to reach a service ---- */

typedef enum sbx_http_version {
  SBX_HTTP_1_1,
  SBX_HTTP_2,       /* over TLS where the server offers it, else 1.1 */
  SBX_HTTP_2_PRIOR, /* without TLS too, and never 1.1 */
  /* What needs HTTP/2: as SBX_HTTP_2 over TLS, so that connections are shared also by the libraries
   * that cannot share those of prior knowledge; by prior knowledge without TLS. */
  SBX_HTTP_2_NEEDED
} sbx_http_version;

/* What the host's environment says; each is empty when it says nothing. Nothing here reads it: a
 * variable may change while another thread looks. */
typedef struct sbx_http_environment {
  sbx_slice https_proxy; /* for https URLs */
  sbx_slice http_proxy;  /* for http URLs */
  sbx_slice no_proxy;    /* hosts that are reached without them */
  sbx_slice cert_file;   /* see trust.h */
  sbx_slice extra_certs;
  sbx_slice library; /* see curl_dl.h */
} sbx_http_environment;
enum { SBX_HTTP_VARIABLES = 6 };

/* Zero-initialize, then set what is needed. Everything is copied. */
typedef struct sbx_http_options {
  sbx_http_version version;
  sbx_slice proxy;       /* URL; may hold a user and password */
  bool no_proxy;         /* direct, whatever the environment says */
  sbx_slice unix_socket; /* path of a socket to connect to in place of the URL's host; no proxy */
  sbx_slice ca_pem;      /* trust these certificates and no others; see trust.h */
  sbx_slice cert_path;   /* PEM file of the certificate that is shown to servers */
  sbx_slice key_path;    /* PEM file of its key */
  sbx_http_environment environment;
} sbx_http_options;

typedef struct sbx_http_client sbx_http_client;

/* No I/O, and libcurl is not loaded. Errors: SBX_EINVAL, SBX_ENOMEM. */
int sbx_http_client_new(sbx_http_client **out, const sbx_http_options *options, sbx_err *err);
/* The loop's client with these options: shared by all who ask for the same, so that its
 * certificates are in memory once. To be freed like any other, before the loop ends. */
int sbx_http_client_get(sbx_http_client **out, sbx_loop *loop, const sbx_http_options *options,
                        sbx_err *err);
/* Exchanges in flight go on. NULL is fine. */
void sbx_http_client_free(sbx_http_client *client);

/* Takes the proxy's password out of a message, also as it is sent. */
void sbx_http_client_hide(const sbx_http_client *client, sbx_err *err);

/* ---- request ---- */

#define SBX_HTTP_TIMEOUT_MS_DEFAULT 60000
#define SBX_HTTP_CONNECT_MS_DEFAULT 10000
/* Enough for an answer that says how something is; what brings more has a budget of its own. */
#define SBX_HTTP_REPLY_MAX ((size_t)64 << 10)
/* Of the body of a reply that is not 2xx this much is kept; the rest is not an error. */
#define SBX_HTTP_ERROR_BODY_MAX ((size_t)64 << 10)
#define SBX_HTTP_HEAD_MAX ((size_t)64 << 10)

/* One part of a multipart/form-data body. */
typedef struct sbx_http_part {
  sbx_slice name;
  sbx_slice filename;     /* empty: a plain field */
  sbx_slice content_type; /* empty: libcurl's choice */
  sbx_slice content;
  bool borrowed; /* `content` is not copied: it stays until the exchange is over or aborted */
} sbx_http_part;

/* Zero-initialize, then set what is needed. Everything is copied, but for `take_body` and what is
 * marked as borrowed. */
typedef struct sbx_http_request {
  const char *method; /* "GET", "POST", ...; static text */
  sbx_slice url;
  const sbx_headers *headers; /* may be NULL; the body's length and framing are set here */
  const char *content_type; /* of the body, when the headers do not say it; NULL: it is not said */
  sbx_slice body;
  sbx_buf *take_body; /* in place of `body`: its bytes are moved out when the exchange starts */
  const sbx_http_part *parts; /* in place of a body */
  size_t part_count;
  /* The request may be sent again by itself when a kept connection turns out to be closed. Leave it
   * false where a second execution would harm: the exchange then fails with `sent_maybe`. */
  bool repeatable;
  uint64_t timeout_ms; /* from start to end; 0: the default above; SBX_NO_TIMEOUT: none */
  uint64_t connect_ms; /* name lookup, connect and TLS; 0: the default above */
  /* Most bytes of the reply's body; more is SBX_ETOOBIG. 0: SBX_HTTP_REPLY_MAX and twice the bytes
   * of `body`, which it may repeat, more makes no sense and is SBX_EPROTO; with `on_bytes` no
   * limit. */
  size_t max_bytes;
  /* Called when the reply's head is complete. May be NULL. */
  int (*on_head)(void *consumer, int status, const sbx_headers *headers, sbx_err *err);
  /* Gets the body of a 2xx reply as it comes, which is then not kept. May be NULL.
   * Both are called from inside libcurl: they may only feed a decoder. They return 0, or a code
   * with `err` filled to end the exchange with that error. */
  int (*on_bytes)(void *consumer, sbx_slice bytes, sbx_err *err);
  void *consumer;
  /* The protocol that the connection is to be given over to, static text; NULL: none. It is then
   * HTTP/1.1, of its own, and sent once. After a 101, or a 2xx, what comes goes to `on_bytes` until
   * the other side closes, from the loop and not from inside libcurl. Meanwhile `input` is sent,
   * and our side is closed behind it when `end_input` says so and there is no TLS, which has no way
   * to.
   */
  const char *upgrade;
  sbx_slice input; /* borrowed until the exchange is over or aborted */
  bool end_input;
  bool keep_trailers; /* into `trailers` of the exchange; else they are skipped */
} sbx_http_request;

/* ---- exchange ---- */

/* Read it in `done`. op.err.code is SBX_OK when a complete reply came, whatever its status. */
typedef struct sbx_http {
  sbx_op op;
  int status; /* 0 until a head has come */
  sbx_headers headers;
  sbx_headers trailers; /* what came behind the body */
  sbx_buf body;         /* take it with sbx_buf_take() where it is wanted for longer */
  bool sent_maybe;      /* bytes of the request may have left: it may have been executed */
  int os_error;         /* why it could not connect, as errno; 0: not known */
} sbx_http;

/* Starts an exchange; everything that fails comes with `done`: SBX_EINVAL (the request),
 * SBX_ELIBRARY, SBX_ENET, SBX_ETLS, SBX_ETIMEOUT, SBX_ETOOBIG, SBX_EPROTO, SBX_ENOMEM,
 * SBX_ECANCELED, SBX_ECLOSED, or a consumer's code. Messages name the method, the host and the
 * port; never a header's value, a query or a user. NULL is out of memory. The consumer must live
 * until `done`, or until sbx_op_abort() of this op has returned. */
sbx_op *sbx_http_start(sbx_http_client *client, sbx_loop *loop, const sbx_http_request *request,
                       sbx_op_done done, void *arg);
static inline sbx_http *sbx_http_of(sbx_op *op) {
  return (sbx_http *)(void *)op;
}

/* ---- replies that are no success ---- */

/* Fills `err` for a status that was not asked for: 400 and 422 SBX_EINVAL, 401 SBX_EAUTH, 402
 * SBX_EQUOTA, 403 SBX_EFORBIDDEN, 404 and 410 SBX_ENOTFOUND, 408 SBX_ETIMEOUT, 409 SBX_ECONFLICT,
 * 413 SBX_ETOOBIG, 429 SBX_ERATE, 5xx SBX_EPROVIDER, others SBX_EPROTO. The message is "provider:
 * verb: HTTP status: text", the text being what the body says in JSON (`message`, `error.message`,
 * `error`, `detail`), or an HTML title, or the first line. Returns the code. */
int sbx_http_status_error(sbx_err *err, const char *provider, const char *verb, int status,
                          sbx_slice body);

#endif
