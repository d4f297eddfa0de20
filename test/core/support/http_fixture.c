/* http_fixture.c - what the tests of core/http share. The loop's end is checked after each test:
 * nothing is left open, and nothing allocated. */
#include "http_fixture.h"

#include "core/json.h"

http_server server;

void clean_environment(void) {
  static const char *const names[] = {
      "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY",   "all_proxy",
      "ALL_PROXY",  "no_proxy",   "NO_PROXY",    "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    unsetenv(names[i]);
}

int http_group_setup(void **state) {
  (void)state;
  return http_server_start(&server);
}

int http_group_teardown(void **state) {
  (void)state;
  http_server_stop(&server);
  return 0;
}

int http_setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  sbx_http_options options = {0};
  loop_open(&f->uv, &f->loop);
  f->plain = new_client(&options);
  *state = f;
  return 0;
}

int http_teardown(void **state) {
  fixture *f = *state;
  /* Kept connections and their timers do not keep an idle loop alive. */
  if (f->loop != NULL) {
    assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
    sbx_loop_close(f->loop, on_loop_closed, NULL);
  }
  sbx_http_client_free(f->plain);
  loop_end(&f->uv, NULL);
  free(f);
  return 0;
}

/* ---- requests ---- */

static sbx_http_request to_url(fixture *f, const char *method, const char *scheme, uint16_t port,
                               const char *path) {
  snprintf(f->url, sizeof f->url, "%s://127.0.0.1:%u%s", scheme, (unsigned)port, path);
  return (sbx_http_request){
      .method = method, .url = sbx_slice_str(f->url), .repeatable = strcmp(method, "GET") == 0};
}

sbx_http_request to(fixture *f, const char *method, uint16_t port, const char *path) {
  return to_url(f, method, "http", port, path);
}

sbx_http_request to_tls(fixture *f, const char *method, uint16_t port, const char *path) {
  return to_url(f, method, "https", port, path);
}

static int on_head(void *arg, int status, const sbx_headers *headers, sbx_err *err) {
  stream *s = arg;
  assert_true(headers->count > 0);
  s->heads++;
  s->status = status;
  return s->fail_head ? sbx_err_set(err, SBX_EPROTO, "unwanted head") : SBX_OK;
}

static int on_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  stream *s = arg;
  s->calls++;
  s->bytes += bytes.len;
  if (s->fail_at != 0 && s->bytes >= s->fail_at)
    return sbx_err_set(err, SBX_EPROTO, "bad frame");
  return SBX_OK;
}

sbx_http_request to_stream(fixture *f, const char *path, stream *s) {
  sbx_http_request request = to(f, "GET", server.http, path);
  request.on_head = on_head;
  request.on_bytes = on_bytes;
  request.consumer = s;
  return request;
}

void note_reply(sbx_op *op, void *arg) {
  reply *r = arg;
  sbx_http *http = sbx_http_of(op);
  sbx_slice value;
  r->done++;
  r->err = op->err;
  r->status = http->status;
  r->sent_maybe = http->sent_maybe;
  r->len = http->body.len;
  r->body = calloc(1, r->len + 1);
  if (r->len > 0)
    memcpy(r->body, http->body.ptr, r->len);
  if (r->want != NULL && (sbx_headers_get(&http->headers, r->want, &value) ||
                          sbx_headers_get(&http->trailers, r->want, &value)))
    snprintf(r->header, sizeof r->header, "%.*s", (int)value.len, value.ptr);
  if (r->countdown != NULL)
    --*r->countdown;
}

sbx_op *start(fixture *f, sbx_http_client *client, const sbx_http_request *request, reply *r) {
  const sbx_http_options options = {0};
  sbx_http_client *plain = client == NULL ? new_client(&options) : NULL;
  sbx_op *op = sbx_http_start(plain != NULL ? plain : client, f->loop, request, note_reply, r);
  sbx_http_client_free(plain); /* the exchange keeps it */
  return op;
}

void wait_for(fixture *f, const reply *r) {
  while (r->done == 0)
    uv_run(&f->uv, UV_RUN_ONCE);
  assert_int_equal(r->done, 1);
}

void run(fixture *f, sbx_http_client *client, const sbx_http_request *request, reply *r) {
  assert_non_null(start(f, client, request, r));
  assert_int_equal(r->done, 0);
  wait_for(f, r);
}

void get(fixture *f, uint16_t port, const char *path, reply *r) {
  sbx_http_request request = to(f, "GET", port, path);
  run(f, NULL, &request, r);
}

void drop(reply *r) {
  free(r->body);
  *r = (reply){0};
}

int64_t count(fixture *f, const char *group, const char *key) {
  reply r = {0};
  sbx_json_doc *doc = NULL;
  int64_t value = 0;
  get(f, server.http, "/counts", &r);
  assert_ok(&r, 200);
  assert_int_equal(sbx_json_parse(&doc, sbx_slice_of(r.body, r.len), NULL), SBX_OK);
  const sbx_json *at = sbx_json_get(sbx_json_root(doc), group);
  sbx_json_int(key != NULL ? sbx_json_get(at, key) : at, 0, INT64_MAX, &value);
  sbx_json_free(doc, false);
  drop(&r);
  return value;
}

/* As lib/ would read it. */
static sbx_slice variable(const char *a, const char *b, const char *c, const char *d) {
  const char *names[] = {a, b, c, d};
  for (size_t i = 0; i < 4; i++) {
    const char *value = names[i] != NULL ? getenv(names[i]) : NULL;
    if (value != NULL && *value != '\0')
      return sbx_slice_str(value);
  }
  return sbx_slice_of(NULL, 0);
}

sbx_http_client *new_client(const sbx_http_options *options) {
  sbx_http_client *client = NULL;
  sbx_http_options with = *options;
  with.environment = (sbx_http_environment){
      .https_proxy = variable("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
      .http_proxy = variable("http_proxy", "all_proxy", "ALL_PROXY", NULL),
      .no_proxy = variable("no_proxy", "NO_PROXY", NULL, NULL),
      .cert_file = variable("SSL_CERT_FILE", NULL, NULL, NULL),
      .extra_certs = variable("NODE_EXTRA_CA_CERTS", NULL, NULL, NULL),
      .library = variable("SBX_LIBCURL", NULL, NULL, NULL),
  };
  assert_int_equal(sbx_http_client_new(&client, &with, NULL), SBX_OK);
  return client;
}

sbx_http_client *client_with_ca(const char *path, sbx_http_version version) {
  char pem[8192];
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  size_t len = fread(pem, 1, sizeof pem, file);
  fclose(file);
  sbx_http_options options = {.ca_pem = sbx_slice_of(pem, len), .version = version};
  return new_client(&options);
}

/* ---- assertions ---- */

void assert_has(const reply *r, const char *text) {
  if (r->body == NULL || strstr(r->body, text) == NULL)
    fail_msg("no %s in: %s", text, r->body != NULL ? r->body : "(nothing)");
}

void assert_has_not(const reply *r, const char *text) {
  if (r->body != NULL && strstr(r->body, text) != NULL)
    fail_msg("%s in: %s", text, r->body);
}

void assert_ok(const reply *r, int status) {
  if (r->err.code != SBX_OK || r->status != status)
    fail_msg("got status %d, %s: %s", r->status, sbx_err_name(r->err.code), r->err.message);
}

void assert_error(const reply *r, int code, bool sent_maybe, const char *text) {
  if (r->err.code != code || r->sent_maybe != sent_maybe || !strstr(r->err.message, text))
    fail_msg("got %s sent_maybe=%d: %s", sbx_err_name(r->err.code), r->sent_maybe, r->err.message);
}
