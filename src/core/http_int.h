/* http_int.h - what the files of core/http share. */
#ifndef SBX_HTTP_INT_H
#define SBX_HTTP_INT_H

#include "core/http.h"
#include "core/transfer.h"
#include "core/trust.h"
#include "core/url.h"

enum { HTTPS_PROXY, HTTP_PROXY, NO_PROXY, CERT_FILE, EXTRA_CERTS, LIBRARY };

struct sbx_http_client {
  size_t users;               /* the owners and the exchanges in flight */
  sbx_http_client *next;      /* in the list of a loop's shared ones */
  sbx_http_client **previous; /* what points to it there; NULL: it is in none */
  sbx_http_version version;
  char *proxy;
  bool no_proxy;
  char *unix_socket;
  char *environment[SBX_HTTP_VARIABLES]; /* in the order of its struct; NULL: not set */
  bool has_ca;                           /* by the options */
  char *cert_path;                       /* what is shown to servers; NULL: nothing */
  char *key_path;
  sbx_trust trust;
};

void sbx__http_client_use(sbx_http_client *client);
void sbx__http_client_drop(sbx_http_client *client);
/* Sets the options of `easy` that follow from the client, for a request to `url` on `loop`. */
int sbx__http_client_apply(sbx_http_client *client, sbx_loop *loop, const sbx_curl *curl,
                           CURL *easy, const sbx_url *url, sbx_err *err);

/* Whether connections that speak HTTP/2 by prior knowledge can carry more than one request. */
bool sbx__http_can_share_prior(const sbx_curl *curl);

/* The content of a multipart part, while libcurl reads it. */
typedef struct sbx__http_content {
  char *copy; /* NULL: borrowed */
  const char *ptr;
  size_t len;
  size_t at;
} sbx__http_content;

typedef struct sbx__upgrade sbx__upgrade;

typedef struct sbx__exchange {
  sbx_http http; /* first: what the owner sees */
  sbx_http_client *client;
  const sbx_curl *curl;
  sbx_transfer transfer;
  CURL *easy;
  struct curl_slist *fields;
  curl_mime *mime;
  sbx__http_content *contents;
  size_t content_count;
  char *body;
  size_t body_len;
  sbx__upgrade *upgrade; /* libcurl only connects; NULL: it does all */

  const char *method;
  char *target; /* "host:port", for messages */
  bool repeatable;
  uint64_t timeout_ms;
  uint64_t connect_ms;
  size_t max_bytes;
  bool has_budget; /* of the request's own */
  int (*on_head)(void *consumer, int status, const sbx_headers *headers, sbx_err *err);
  int (*on_bytes)(void *consumer, sbx_slice bytes, sbx_err *err);
  void *consumer;

  bool watched; /* libcurl tells when it is about to send */
  bool sent;    /* it has told so */
  bool resent;  /* on a connection of its own, since a kept one was closed */
  bool keep_trailers;
  bool head_done;  /* the final reply's head is complete */
  bool enough;     /* ended on purpose; what came is the reply */
  bool unreadable; /* the body of an error is compressed */
  size_t received;
  size_t head_bytes;
  uint64_t round;  /* the last in which libcurl reported progress */
  unsigned empty;  /* how often, since it brought something */
  sbx_err failure; /* set inside a libcurl callback */
  char curl_text[CURL_ERROR_SIZE];
} sbx__exchange;

/* Turns the request into an easy handle; what it made is in the exchange also when it fails. */
int sbx__http_setup(sbx__exchange *x, const sbx_http_request *request, sbx_err *err);
/* SBX_EINVAL when they say how long the body is. */
int sbx__http_check_fields(const sbx_headers *headers, sbx_err *err);
/* Frees what setup made. */
void sbx__http_teardown(sbx__exchange *x);

/* libcurl's callbacks, set by setup; in http.c. */
int sbx__http_on_prereq(void *arg, char *remote_ip, char *local_ip, int remote_port,
                        int local_port);
size_t sbx__http_on_header(char *ptr, size_t size, size_t count, void *arg);
int sbx__http_on_progress(void *arg, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                          curl_off_t up);
size_t sbx__http_on_write(char *ptr, size_t size, size_t count, void *arg);

/* Whether the status is one of success. */
static inline bool sbx__http_is_success(int status) {
  return status >= 200 && status < 300;
}
/* Takes a piece of the reply's body. SBX_OK, or a code with x->failure filled. */
int sbx__http_take_body(sbx__exchange *x, sbx_slice bytes);
/* Ends the exchange, as libcurl has ended the transfer. */
void sbx__http_done(sbx__exchange *x, CURLcode result);

/* ---- connections that are given over; http_upgrade.c ---- */

/* Writes the request, whose body is the exchange's. SBX_EINVAL, SBX_ENOMEM. */
int sbx__http_upgrade_make(sbx__exchange *x, const sbx_http_request *request, const sbx_url *url,
                           sbx_err *err);
/* The connection is there: goes on by itself, to sbx__http_done(). */
void sbx__http_upgrade_begin(sbx__exchange *x);
/* Frees it, before the connection is closed; NULL is fine. */
void sbx__http_upgrade_free(sbx__upgrade *upgrade);

/* Services repeat what they were sent. Takes the values of request fields that are credentials, by
 * their names, out of the reply's body. */
void sbx__http_hide_credentials(sbx__exchange *x);
/* Says what went wrong with a transfer that did not succeed. */
int sbx__http_transfer_error(const sbx__exchange *x, CURLcode result, sbx_err *err);

#endif
