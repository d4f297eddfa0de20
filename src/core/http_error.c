/* http_error.c - says in words what went wrong with an exchange.
 *
 * Invariant: a message holds the method, the host, the port, what happened, and bounded text of the
 * other side or of libcurl; never a header's value, a query or a user. */
#include "core/http_int.h"

#include "core/err.h"
#include "core/json.h"
#include "core/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* ---- transfers ---- */

typedef struct result_text {
  CURLcode result;
  int code;
  const char *text;
} result_text;

static const result_text result_texts[] = {
    {CURLE_UNSUPPORTED_PROTOCOL, SBX_EPROTO, "the answer is not HTTP"},
    {CURLE_URL_MALFORMAT, SBX_EINVAL, "the URL cannot be used"},
    {CURLE_COULDNT_RESOLVE_PROXY, SBX_ENET, "the proxy's name cannot be resolved"},
    {CURLE_COULDNT_RESOLVE_HOST, SBX_ENET, "the host's name cannot be resolved"},
    {CURLE_COULDNT_CONNECT, SBX_ENET, "cannot connect"},
    {CURLE_WEIRD_SERVER_REPLY, SBX_EPROTO, "the answer is not proper HTTP"},
    {CURLE_HTTP2, SBX_ENET, "the HTTP/2 connection failed"},
    {CURLE_HTTP2_STREAM, SBX_ENET, "the HTTP/2 stream was ended"},
    {CURLE_PARTIAL_FILE, SBX_ENET, "the answer ended early"},
    {CURLE_GOT_NOTHING, SBX_ENET, "the connection was closed without an answer"},
    {CURLE_SEND_ERROR, SBX_ENET, "sending failed"},
    {CURLE_RECV_ERROR, SBX_ENET, "receiving failed"},
    {CURLE_SEND_FAIL_REWIND, SBX_ENET, "the connection was closed and the request not repeated"},
    {CURLE_OUT_OF_MEMORY, SBX_ENOMEM, "out of memory"},
    {CURLE_FILESIZE_EXCEEDED, SBX_ETOOBIG, "the answer is too large"},
    {CURLE_PEER_FAILED_VERIFICATION, SBX_ETLS,
     "the server's certificate is not trusted. For a private CA give its certificate by the CA "
     "option or NODE_EXTRA_CA_CERTS"},
    {CURLE_SSL_CONNECT_ERROR, SBX_ETLS, "the TLS handshake failed"},
    {CURLE_SSL_CACERT_BADFILE, SBX_ETLS, "the CA certificates cannot be read"},
    {CURLE_SSL_CERTPROBLEM, SBX_ETLS, "TLS failed"},
    {CURLE_SSL_CIPHER, SBX_ETLS, "TLS failed"},
    {CURLE_SSL_ENGINE_NOTFOUND, SBX_ETLS, "TLS failed"},
    {CURLE_SSL_ENGINE_SETFAILED, SBX_ETLS, "TLS failed"},
    {CURLE_SSL_ENGINE_INITFAILED, SBX_ETLS, "TLS failed"},
    {CURLE_SSL_SHUTDOWN_FAILED, SBX_ETLS, "TLS failed"},
    {CURLE_SSL_CRL_BADFILE, SBX_ETLS, "TLS failed"},
    {CURLE_SSL_ISSUER_ERROR, SBX_ETLS, "TLS failed"},
    {CURLE_SSL_PINNEDPUBKEYNOTMATCH, SBX_ETLS, "TLS failed"},
    {CURLE_SSL_INVALIDCERTSTATUS, SBX_ETLS, "TLS failed"},
    {CURLE_USE_SSL_FAILED, SBX_ETLS, "TLS failed"},
};

static result_text describe(CURLcode result) {
  for (size_t i = 0; i < sizeof result_texts / sizeof result_texts[0]; i++) {
    if (result_texts[i].result == result)
      return result_texts[i];
  }
  return (result_text){result, SBX_ENET, "the transfer failed"};
}

enum { FEW = 4 };

/* Whether `count` more descriptors (at most FEW) can be opened. */
static bool has_descriptors(int count) {
  int fd[FEW], opened = 0, error = 0;
  while (opened < count && error == 0) {
    int next = open("/", O_RDONLY | O_CLOEXEC);
    error = next < 0 ? errno : 0;
    if (next >= 0)
      fd[opened++] = next;
  }
  while (opened > 0)
    close(fd[--opened]);
  return !sbx_err_is_fd_limit(error);
}

/* Whether it was the lack of a descriptor that broke a transfer: libcurl does not tell why one of
 * its calls has failed. A socket that was not made is missing still; what else was opened on the
 * way is closed by now, so that a few that are free tell nothing. */
static bool lacked_descriptors(CURLcode result) {
  if (result == CURLE_COULDNT_CONNECT)
    return !has_descriptors(1);
  bool opens_files = result == CURLE_COULDNT_RESOLVE_PROXY ||
                     result == CURLE_COULDNT_RESOLVE_HOST || result == CURLE_OUT_OF_MEMORY ||
                     result == CURLE_SSL_CACERT_BADFILE;
  return opens_files && !has_descriptors(FEW);
}

int sbx__http_transfer_error(const sbx__exchange *x, CURLcode result, sbx_err *err) {
  if (x->failure.code != SBX_OK) {
    sbx_err_copy(err, &x->failure);
    return err->code;
  }
  if (result == CURLE_OPERATION_TIMEDOUT)
    return sbx_err_set(err, SBX_ETIMEOUT, "%s %s: no connection within %llu ms", x->method,
                       x->target, (unsigned long long)x->connect_ms);
  /* Words that repeat the proxy's URL, with the password in it. */
  static const char unusable[] = "Unsupported proxy";
  if (strncmp(x->curl_text, unusable, sizeof unusable - 1) == 0)
    return sbx_err_set(err, SBX_EINVAL, "%s %s: this libcurl cannot use the proxy's URL", x->method,
                       x->target);
  result_text what = describe(result);
  /* A connection that breaks during the handshake says nothing about certificates. */
  long os_error = 0;
  x->curl->easy_getinfo(x->easy, CURLINFO_OS_ERRNO, &os_error);
  if (result == CURLE_SSL_CONNECT_ERROR && (os_error == ECONNRESET || os_error == EPIPE))
    what = (result_text){result, SBX_ENET, "the connection broke during the TLS handshake"};
  if (lacked_descriptors(result))
    what = (result_text){result, SBX_ENET, sbx_err_system(EMFILE)};
  sbx_err_set(err, what.code, "%s %s: %s", x->method, x->target, what.text);
  if (what.code == SBX_ETLS && x->client->trust.extra_unreadable)
    sbx_err_append(err, "; NODE_EXTRA_CA_CERTS names a file that cannot be read");
  sbx_err_append(err, " (");
  sbx_err_append_remote(
      err, sbx_slice_str(x->curl_text[0] != '\0' ? x->curl_text : x->curl->easy_strerror(result)));
  sbx_err_append(err, ")");
  return what.code;
}

/* ---- statuses ---- */

static int code_of_status(int status) {
  switch (status) {
  case 400:
  case 422:
    return SBX_EINVAL;
  case 401:
    return SBX_EAUTH;
  case 402:
    return SBX_EQUOTA;
  case 403:
    return SBX_EFORBIDDEN;
  case 404:
  case 410:
    return SBX_ENOTFOUND;
  case 408:
    return SBX_ETIMEOUT;
  case 409:
    return SBX_ECONFLICT;
  case 413:
    return SBX_ETOOBIG;
  case 429:
    return SBX_ERATE;
  default:
    return status >= 500 && status < 600 ? SBX_EPROVIDER : SBX_EPROTO;
  }
}

static sbx_slice first_line(sbx_slice text) {
  while (text.len > 0 && strchr(" \t\r\n", text.ptr[0]) != NULL)
    text = sbx_slice_skip(text, 1);
  text.len = sbx_slice_find(text, '\n');
  return text;
}

/* The content of <title>, or nothing: the rest of a page is for browsers. */
static sbx_slice html_title(sbx_slice page) {
  static const char open[] = "<title>";
  for (; page.len >= sizeof open - 1; page = sbx_slice_skip(page, 1)) {
    if (!sbx_slice_eq_nocase(sbx_slice_of(page.ptr, sizeof open - 1), sbx_slice_str(open)))
      continue;
    page = sbx_slice_skip(page, sizeof open - 1);
    page.len = sbx_slice_find(page, '<');
    return page;
  }
  return sbx_slice_of(NULL, 0);
}

static bool json_text(const sbx_json *root, sbx_slice *out) {
  const sbx_json *error = sbx_json_get(root, "error"), *errors = sbx_json_get(root, "errors");
  return sbx_json_string(sbx_json_get(root, "message"), out) ||
         sbx_json_string(sbx_json_get(error, "message"), out) || sbx_json_string(error, out) ||
         sbx_json_string(sbx_json_get(root, "detail"), out) ||
         (sbx_json_is_array(errors) && sbx_json_string(sbx_json_next(errors, NULL, NULL), out));
}

int sbx_http_status_error(sbx_err *err, const char *provider, const char *verb, int status,
                          sbx_slice body) {
  sbx_json_doc *doc = NULL;
  sbx_slice text = first_line(body);
  int code = sbx_err_set(err, code_of_status(status), "%s: %s: HTTP %d", provider, verb, status);
  if (text.len > 0 && text.ptr[0] == '<') {
    text = html_title(body);
  } else if (sbx_json_parse(&doc, body, NULL) == SBX_OK) {
    json_text(sbx_json_root(doc), &text);
  }
  if (text.len > 0) {
    sbx_err_append(err, ": ");
    sbx_err_append_remote(err, text);
  }
  sbx_json_free(doc, false);
  if (err != NULL) {
    err->status = status;
    err->provider = provider;
  }
  return code;
}

/* ---- credentials in a reply ---- */

enum { MIN_CREDENTIAL = 8 }; /* a shorter word says little, and may be part of any text */

static void hide_word(sbx_buf *body, sbx_slice word) {
  static const char instead[] = "***";
  char *at = body->ptr;
  while ((at = memmem(at, (size_t)(body->ptr + body->len - at), word.ptr, word.len)) != NULL) {
    char *after = at + word.len;
    memcpy(at, instead, sizeof instead - 1);
    at += sizeof instead - 1;
    memmove(at, after, (size_t)(body->ptr + body->len - after) + 1);
    body->len -= (size_t)(after - at);
  }
}

void sbx__http_hide_credentials(sbx__exchange *x) {
  for (const struct curl_slist *field = x->fields; field != NULL; field = field->next) {
    sbx_slice line = sbx_slice_str(field->data);
    size_t colon = sbx_slice_find(line, ':');
    sbx_slice rest = sbx_slice_skip(line, colon + 1);
    if (!sbx_secret_is_field(sbx_slice_of(line.ptr, colon)))
      continue;
    /* "Bearer" and what follows it are words of their own. */
    while (rest.len > 0 && x->http.body.len > 0) {
      sbx_slice word = sbx_slice_of(rest.ptr, sbx_slice_find(rest, ' '));
      if (word.len >= MIN_CREDENTIAL)
        hide_word(&x->http.body, word);
      rest = sbx_slice_skip(rest, word.len + 1);
    }
  }
}
