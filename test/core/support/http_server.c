/* http_server.c - starts the server, reads the one line in which it says where it listens. */
#include "http_server.h"

#include "core/json.h"

#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int read_line(int fd, char *line, size_t size) {
  size_t len = 0;
  while (len + 1 < size) {
    ssize_t got = read(fd, line + len, 1);
    if (got != 1)
      return -1;
    if (line[len] == '\n') {
      line[len] = '\0';
      return 0;
    }
    len++;
  }
  return -1;
}

static int read_port(const sbx_json *root, const char *name, uint16_t *port) {
  int64_t value = 0;
  if (!sbx_json_int(sbx_json_get(root, name), 1, UINT16_MAX, &value))
    return -1;
  *port = (uint16_t)value;
  return 0;
}

static int read_text(const sbx_json *root, const char *name, char *out, size_t size) {
  sbx_slice value;
  if (!sbx_json_string(sbx_json_get(root, name), &value) || value.len >= size)
    return -1;
  memcpy(out, value.ptr, value.len);
  out[value.len] = '\0';
  return 0;
}

static int read_places(http_server *server, int fd) {
  char line[2048];
  sbx_json_doc *doc = NULL;
  if (read_line(fd, line, sizeof line) != 0 ||
      sbx_json_parse(&doc, sbx_slice_str(line), NULL) != SBX_OK)
    return -1;
  const sbx_json *root = sbx_json_root(doc);
  int rc = read_port(root, "http", &server->http) | read_port(root, "https", &server->https) |
           read_port(root, "misnamed", &server->misnamed) | read_port(root, "h2c", &server->h2c) |
           read_port(root, "raw", &server->raw) | read_port(root, "proxy", &server->proxy) |
           read_text(root, "unix", server->unix_path, sizeof server->unix_path) |
           read_text(root, "ca", server->ca, sizeof server->ca) |
           read_text(root, "otherCa", server->other_ca, sizeof server->other_ca);
  sbx_json_free(doc, false);
  return rc;
}

int http_server_start(http_server *server) {
  char *argv[] = {"node", "test/support/http_server.js", NULL};
  int in[2], out[2];
  if (pipe(in) != 0 || pipe(out) != 0)
    return -1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_addclose(&actions, in[1]);
  posix_spawn_file_actions_addclose(&actions, out[0]);
  int rc = posix_spawnp(&server->pid, "node", &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  server->keep = in[1];
  if (rc == 0 && read_places(server, out[0]) != 0) {
    http_server_stop(server);
    rc = -1;
  }
  close(out[0]);
  return rc == 0 ? 0 : -1;
}

void http_server_stop(http_server *server) {
  close(server->keep);
  waitpid(server->pid, NULL, 0);
}
