/* http_server.h - runs test/support/http_server.js as a child process of a test. */
#ifndef TEST_HTTP_SERVER_H
#define TEST_HTTP_SERVER_H

#include <stdint.h>
#include <sys/types.h>

typedef struct http_server {
  pid_t pid;
  int keep; /* the server ends when this is closed */
  uint16_t http, https, misnamed, h2c, raw, proxy;
  char unix_path[256];
  char ca[256];
  char other_ca[256];
} http_server;

/* The working folder must be the package's. 0 on success. */
int http_server_start(http_server *server);
void http_server_stop(http_server *server);

#endif
