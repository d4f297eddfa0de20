/* http_fixture.h - one loop, one client and the misbehaving server, for the tests of core/http. */
#ifndef TEST_HTTP_FIXTURE_H
#define TEST_HTTP_FIXTURE_H

#include "core/http.h"

#include "core/err.h"
#include "http_server.h"
#include "loop_fixture.h"

extern http_server server;

typedef struct fixture {
  uv_loop_t uv;
  sbx_loop *loop; /* a test that closes it sets NULL */
  sbx_http_client *plain;
  char url[512];
} fixture;

/* What an exchange came to; filled in `done`. */
typedef struct reply {
  int done;
  sbx_err err;
  int status;
  bool sent_maybe;
  char *body; /* NUL-terminated; drop() frees it */
  size_t len;
  const char *want; /* the name of a field or a trailer, whose value comes into `header` */
  char header[64];
  int *countdown;
} reply;

/* What a consumer of a streamed reply saw; `fail_at` and `fail_head` end the exchange. */
typedef struct stream {
  int heads;
  int status;
  size_t bytes;
  size_t calls;
  size_t fail_at;
  bool fail_head;
} stream;

int http_group_setup(void **state);
int http_group_teardown(void **state);
int http_setup(void **state);
int http_teardown(void **state);
#define HTTP_TEST(name) cmocka_unit_test_setup_teardown(name, http_setup, http_teardown)
/* The machine's proxies and certificates must not decide these tests. */
void clean_environment(void);

/* A request to the server's listener; its URL stays in the fixture until the next one. */
sbx_http_request to(fixture *f, const char *method, uint16_t port, const char *path);
sbx_http_request to_tls(fixture *f, const char *method, uint16_t port, const char *path);
/* A streamed GET over plain HTTP. */
sbx_http_request to_stream(fixture *f, const char *path, stream *s);

/* A NULL client is a plain one, with the environment as it is now. */
sbx_op *start(fixture *f, sbx_http_client *client, const sbx_http_request *request, reply *r);
void wait_for(fixture *f, const reply *r);
void run(fixture *f, sbx_http_client *client, const sbx_http_request *request, reply *r);
void get(fixture *f, uint16_t port, const char *path, reply *r);
/* Frees the body and forgets the rest. */
void drop(reply *r);
void note_reply(sbx_op *op, void *reply);

/* The integer at group.key of the server's counts, 0 when there is none. */
int64_t count(fixture *f, const char *group, const char *key);
sbx_http_client *new_client(const sbx_http_options *options);
sbx_http_client *client_with_ca(const char *path, sbx_http_version version);

void assert_has(const reply *r, const char *text);
void assert_has_not(const reply *r, const char *text);
void assert_ok(const reply *r, int status);
void assert_error(const reply *r, int code, bool sent_maybe, const char *text);

#endif
