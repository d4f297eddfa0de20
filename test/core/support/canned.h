/* canned.h - a server on a unix socket, on the test's own loop, that answers as it was told. */
#ifndef TEST_CANNED_H
#define TEST_CANNED_H

#include "core/buf.h"
#include "loop_fixture.h"

/* One answer, used once: of those that fit, the first that is left. */
typedef struct canned_answer {
  const char *request; /* how the request begins: "GET /_ping" */
  const char *reply; /* whole, head and body; "Content-Length: auto"; NULL: hangs up without one */
  size_t len;        /* of it; 0: up to its NUL */
  bool hang_up;      /* behind the reply */
  bool stays;        /* may be used again */
  bool used;
} canned_answer;

typedef struct canned {
  uv_pipe_t listener;
  char path[108];
  canned_answer answers[32];
  size_t count;
  size_t piece;   /* bytes that are sent at a time; 0: all */
  sbx_buf log;    /* the lines of all requests */
  sbx_buf bodies; /* the bodies of all requests */
  /* Changes a reply before it is sent; may be NULL. */
  void (*fill)(struct canned *server, sbx_buf *reply);
  size_t connections;
} canned;

void canned_open(canned *server, uv_loop_t *uv);
void canned_close(canned *server);
void canned_add(canned *server, const char *request, const char *reply);
canned_answer *canned_last(canned *server);

#endif
