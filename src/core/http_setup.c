/* http_setup.c - turns a request into a libcurl easy handle.
 *
 * Invariant: everything that is made hangs off the exchange at once, so that teardown frees it
 * after a failure at any step too. */
#include "core/http_int.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/url.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define KEEPALIVE_IDLE_S 30L
#define KEEPALIVE_INTERVAL_S 15L
/* From this size on a body is worth fewer and larger reads and writes of the socket. */
#define LARGE_BODY ((size_t)256 * 1024)
#define LARGE_BUFFER (256L * 1024)

static long clamp_ms(uint64_t ms) {
  return ms > LONG_MAX ? LONG_MAX : (long)ms;
}

static int no_memory(sbx_err *err) {
  return sbx_err_set(err, SBX_ENOMEM, NULL);
}

/* ---- header fields ---- */

static int append_field(sbx__exchange *x, const char *line) {
  struct curl_slist *list = x->curl->slist_append(x->fields, line);
  if (list == NULL)
    return SBX_ENOMEM;
  x->fields = list;
  return SBX_OK;
}

static bool sets_framing(const sbx_headers *headers) {
  sbx_slice value;
  return sbx_headers_get(headers, "content-length", &value) ||
         sbx_headers_get(headers, "transfer-encoding", &value);
}

static int add_given_fields(sbx__exchange *x, const sbx_headers *headers) {
  sbx_buf line;
  sbx_buf_init(&line, SBX_HTTP_HEAD_MAX);
  int code = SBX_OK;
  for (size_t i = 0; code == SBX_OK && i < headers->count; i++) {
    const sbx_header *field = &headers->items[i];
    /* Without a value: a colon would remove the field instead. */
    sbx_buf_append_slice(&line, field->name);
    sbx_buf_append_str(&line, field->value.len > 0 ? ": " : ";");
    code = sbx_buf_append_slice(&line, field->value);
    if (code == SBX_OK)
      code = append_field(x, line.ptr);
    if (line.ptr != NULL)
      sbx_wipe(line.ptr, line.len);
    sbx_buf_truncate(&line, 0);
  }
  sbx_buf_deinit(&line);
  return code;
}

int sbx__http_check_fields(const sbx_headers *headers, sbx_err *err) {
  if (headers != NULL && sets_framing(headers))
    return sbx_err_set(err, SBX_EINVAL, "Content-Length and Transfer-Encoding cannot be given");
  return SBX_OK;
}

static int append_type(sbx__exchange *x, const char *type) {
  sbx_buf line;
  sbx_buf_init(&line, SBX_HTTP_HEAD_MAX);
  sbx_buf_appendf(&line, "Content-Type:%s%s", type != NULL ? " " : "", type != NULL ? type : "");
  int code = line.error != SBX_OK ? line.error : append_field(x, line.ptr);
  sbx_buf_deinit(&line);
  return code;
}

static int set_fields(sbx__exchange *x, const sbx_http_request *request, sbx_err *err) {
  sbx_slice value;
  const sbx_headers *headers = request->headers;
  int code = sbx__http_check_fields(headers, err);
  if (code != SBX_OK)
    return code;
  if (headers != NULL)
    code = add_given_fields(x, headers);
  if (code == SBX_OK)
    code = append_field(x, "Expect:");
  /* libcurl would call a body without a type a form. */
  if (code == SBX_OK && request->part_count == 0 &&
      (headers == NULL || !sbx_headers_get(headers, "content-type", &value)))
    code = append_type(x, request->content_type);
  if (code != SBX_OK)
    return sbx_err_set(err, code, NULL);
  x->curl->easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->fields);
  return SBX_OK;
}

/* ---- bodies ---- */

static size_t read_content(char *out, size_t size, size_t count, void *arg) {
  sbx__http_content *content = arg;
  size_t left = content->len - content->at;
  size_t n = size * count < left ? size * count : left;
  if (n > 0)
    memcpy(out, content->ptr + content->at, n);
  content->at += n;
  return n;
}

static int seek_content(void *arg, curl_off_t offset, int origin) {
  sbx__http_content *content = arg;
  if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > content->len)
    return CURL_SEEKFUNC_CANTSEEK;
  content->at = (size_t)offset;
  return CURL_SEEKFUNC_OK;
}

typedef CURLcode (*set_part_text)(curl_mimepart *part, const char *text);

static int set_text(curl_mimepart *part, set_part_text set, sbx_slice text) {
  if (text.len == 0)
    return SBX_OK;
  for (size_t i = 0; i < text.len; i++) {
    unsigned char c = (unsigned char)text.ptr[i];
    if (c < 0x20 || c == 0x7f)
      return SBX_EINVAL;
  }
  char *copy = sbx_strndup(text.ptr, text.len);
  if (copy == NULL)
    return SBX_ENOMEM;
  CURLcode rc = set(part, copy);
  sbx_free(copy);
  return rc == CURLE_OK ? SBX_OK : SBX_ENOMEM;
}

static int add_part(sbx__exchange *x, const sbx_http_part *part, sbx__http_content *content) {
  curl_mimepart *mime = x->curl->mime_addpart(x->mime);
  if (!part->borrowed)
    content->copy = sbx_strndup(part->content.ptr, part->content.len);
  content->ptr = part->borrowed ? part->content.ptr : content->copy;
  content->len = part->content.len;
  if (mime == NULL || (content->copy == NULL && !part->borrowed))
    return SBX_ENOMEM;
  int code = set_text(mime, x->curl->mime_name, part->name);
  if (code == SBX_OK)
    code = set_text(mime, x->curl->mime_filename, part->filename);
  if (code == SBX_OK)
    code = set_text(mime, x->curl->mime_type, part->content_type);
  if (code == SBX_OK && x->curl->mime_data_cb(mime, (curl_off_t)content->len, read_content,
                                              seek_content, NULL, content) != CURLE_OK)
    code = SBX_ENOMEM;
  return code;
}

static int set_multipart(sbx__exchange *x, const sbx_http_request *request, sbx_err *err) {
  x->mime = x->curl->mime_init(x->easy);
  x->contents = sbx_calloc(request->part_count, sizeof *x->contents);
  if (x->mime == NULL || x->contents == NULL)
    return no_memory(err);
  x->content_count = request->part_count;
  for (size_t i = 0; i < request->part_count; i++) {
    int code = add_part(x, &request->parts[i], &x->contents[i]);
    if (code == SBX_EINVAL)
      return sbx_err_set(err, code, "a form part's name or type has a control character");
    if (code != SBX_OK)
      return no_memory(err);
  }
  x->curl->easy_setopt(x->easy, CURLOPT_MIMEPOST, x->mime);
  return SBX_OK;
}

static bool is_method(const char *method, const char *name) {
  return strcmp(method, name) == 0;
}

/* Methods that have a body by their nature send an empty one as "Content-Length: 0". */
static bool has_body(const sbx__exchange *x) {
  return x->body_len > 0 || is_method(x->method, "POST") || is_method(x->method, "PUT") ||
         is_method(x->method, "PATCH");
}

static int set_body(sbx__exchange *x, const sbx_http_request *request, sbx_err *err) {
  if (request->part_count > 0) {
    int code = set_multipart(x, request, err);
    if (code != SBX_OK)
      return code;
  } else if (has_body(x)) {
    x->curl->easy_setopt(x->easy, CURLOPT_POST, 1L);
    x->curl->easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->body_len);
    x->curl->easy_setopt(x->easy, CURLOPT_POSTFIELDS, x->body != NULL ? x->body : "");
  } else if (is_method(x->method, "HEAD")) {
    x->curl->easy_setopt(x->easy, CURLOPT_NOBODY, 1L);
    return SBX_OK;
  } else {
    x->curl->easy_setopt(x->easy, CURLOPT_HTTPGET, 1L);
  }
  if (x->curl->easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, x->method) != CURLE_OK)
    return no_memory(err);
  return SBX_OK;
}

/* What comes by pieces to a GET is a file, unlike the output of a command. */
static void set_buffers(sbx__exchange *x) {
  size_t size = x->body_len;
  for (size_t i = 0; i < x->content_count; i++)
    size += x->contents[i].len;
  if (size >= LARGE_BODY)
    x->curl->easy_setopt(x->easy, CURLOPT_UPLOAD_BUFFERSIZE, LARGE_BUFFER);
  if (is_method(x->method, "GET") && x->on_bytes != NULL && x->max_bytes >= LARGE_BODY)
    x->curl->easy_setopt(x->easy, CURLOPT_BUFFERSIZE, LARGE_BUFFER);
}

/* ---- everything else ---- */

static void set_callbacks(sbx__exchange *x) {
  const sbx_curl *curl = x->curl;
  curl->easy_setopt(x->easy, CURLOPT_ERRORBUFFER, x->curl_text);
  curl->easy_setopt(x->easy, CURLOPT_HEADERFUNCTION, sbx__http_on_header);
  curl->easy_setopt(x->easy, CURLOPT_HEADERDATA, x);
  curl->easy_setopt(x->easy, CURLOPT_WRITEFUNCTION, sbx__http_on_write);
  curl->easy_setopt(x->easy, CURLOPT_WRITEDATA, x);
  curl->easy_setopt(x->easy, CURLOPT_XFERINFOFUNCTION, sbx__http_on_progress);
  curl->easy_setopt(x->easy, CURLOPT_XFERINFODATA, x);
  curl->easy_setopt(x->easy, CURLOPT_NOPROGRESS, 0L);
  if (x->upgrade != NULL) { /* then it is we who send */
    x->watched = true;
    return;
  }
  x->watched =
      curl->easy_setopt(x->easy, CURLOPT_PREREQFUNCTION, sbx__http_on_prereq) == CURLE_OK &&
      curl->easy_setopt(x->easy, CURLOPT_PREREQDATA, x) == CURLE_OK;
  /* An old library resends by itself on a kept connection that was closed, and cannot be asked not
   * to: it must not use one. */
  if (!x->watched && !x->repeatable)
    curl->easy_setopt(x->easy, CURLOPT_FRESH_CONNECT, 1L);
}

/* Options that an old library does not know are either its behaviour anyway or a comfort. */
static int set_policy(sbx__exchange *x, sbx_err *err) {
  const sbx_curl *curl = x->curl;
  CURL *easy = x->easy;
  if (curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK &&
      curl->easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS)) !=
          CURLE_OK)
    return no_memory(err);
  curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl->easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
  curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl->easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl->easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
  curl->easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  /* A name lookup that is given up must not stop the loop until it has ended. */
  curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
  curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, clamp_ms(x->connect_ms));
  curl->easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl->easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
  curl->easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
  curl->easy_setopt(easy, CURLOPT_USERAGENT, "cloudsandbox");
  return SBX_OK;
}

static int set_url(sbx__exchange *x, const sbx_http_request *request, sbx_url *url, sbx_err *err) {
  int code = sbx_url_parse(url, request->url, err);
  if (code != SBX_OK)
    return code;
  sbx_buf target;
  sbx_buf_init(&target, request->url.len + 16);
  if (x->client->unix_socket != NULL)
    sbx_buf_append_str(&target, "the unix socket");
  else
    sbx_buf_appendf(&target, url->ipv6 ? "[%.*s]:%u" : "%.*s:%u", (int)url->host.len, url->host.ptr,
                    (unsigned)url->port);
  size_t target_len = 0;
  if (target.error == SBX_OK)
    x->target = sbx_buf_take(&target, &target_len);
  sbx_buf_deinit(&target);
  char *text = sbx_strndup(request->url.ptr, request->url.len);
  if (x->target == NULL || text == NULL) {
    sbx_free(text);
    return no_memory(err);
  }
  CURLcode rc = x->curl->easy_setopt(x->easy, CURLOPT_URL, text);
  sbx_wipe(text, request->url.len);
  sbx_free(text);
  return rc == CURLE_OK ? SBX_OK : no_memory(err);
}

/* What is sent: by libcurl, or by us when it only connects. */
static int set_content(sbx__exchange *x, const sbx_http_request *request, const sbx_url *url,
                       sbx_err *err) {
  if (request->upgrade != NULL) {
    x->curl->easy_setopt(x->easy, CURLOPT_CONNECT_ONLY, 1L);
    x->curl->easy_setopt(x->easy, CURLOPT_FRESH_CONNECT, 1L);
    return sbx__http_upgrade_make(x, request, url, err);
  }
  int code = set_body(x, request, err);
  if (code == SBX_OK)
    code = set_fields(x, request, err);
  set_buffers(x);
  return code;
}

int sbx__http_setup(sbx__exchange *x, const sbx_http_request *request, sbx_err *err) {
  sbx_url url;
  int code = sbx_curl_load(&x->curl, x->client->environment[LIBRARY], err);
  if (code != SBX_OK)
    return code;
  x->easy = x->curl->easy_init();
  if (x->easy == NULL)
    return no_memory(err);
  if ((code = set_url(x, request, &url, err)) != SBX_OK || (code = set_policy(x, err)) != SBX_OK ||
      (code = sbx__http_client_apply(x->client, x->http.op.loop, x->curl, x->easy, &url, err)) !=
          SBX_OK ||
      (code = set_content(x, request, &url, err)) != SBX_OK)
    return code;
  set_callbacks(x);
  return SBX_OK;
}

void sbx__http_teardown(sbx__exchange *x) {
  if (x->easy != NULL)
    x->curl->easy_cleanup(x->easy);
  x->easy = NULL;
  if (x->mime != NULL)
    x->curl->mime_free(x->mime);
  x->mime = NULL;
  for (struct curl_slist *field = x->fields; field != NULL; field = field->next)
    sbx_wipe(field->data, strlen(field->data));
  if (x->fields != NULL)
    x->curl->slist_free_all(x->fields);
  x->fields = NULL;
  for (size_t i = 0; i < x->content_count; i++)
    sbx_free(x->contents[i].copy);
  sbx_free(x->contents);
  x->contents = NULL;
  x->content_count = 0;
  sbx_free(x->body);
  x->body = NULL;
}
