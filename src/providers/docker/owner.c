/* owner.c - whose containers these are.
 *
 * A process is told by the machine's start, the space of process numbers it is in, its number, and
 * when it began: numbers are used again, and containers have numbers of their own.
 *
 * Invariant: what is not certainly over is not stale. */
#include "providers/docker/owner.h"

#include "core/err.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HOST "cloudsandbox.host"
#define PROCESS "cloudsandbox.process"
#define LEASE "cloudsandbox.lease"

enum { MAX_HOST = 128, MAX_PROCESS = 64, SPARE_S = 60 };

/* A small file of the kernel's, up to its first line end; "" when it cannot be read. */
static void read_line(const char *path, char *out, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, out, size - 1) : -1;
  if (fd >= 0)
    close(fd);
  out[n > 0 ? n : 0] = '\0';
  out[strcspn(out, "\n")] = '\0';
}

/* "" when the system does not tell, as others than Linux. */
static void this_host(char out[MAX_HOST]) {
  char boot[64], space[64];
  read_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
  ssize_t n = readlink("/proc/self/ns/pid", space, sizeof space - 1);
  space[n > 0 ? n : 0] = '\0';
  snprintf(out, MAX_HOST, "%s%s%s", boot, boot[0] != '\0' ? " " : "", boot[0] != '\0' ? space : "");
}

/* "PID START"; without a start when the system does not tell. False: there is no such process. */
static bool process(long pid, char out[MAX_PROCESS]) {
  char path[32], stat[512];
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  read_line(path, stat, sizeof stat);
  /* The 22nd field; the name may hold blanks and parentheses. */
  const char *at = strrchr(stat, ')');
  for (int field = 2; at != NULL && field < 22; field++)
    at = strchr(at + 1, ' ');
  int length = at != NULL ? (int)strcspn(at + 1, " ") : 0;
  snprintf(out, MAX_PROCESS, "%ld%s%.*s", pid, at != NULL ? " " : "", length < 24 ? length : 0,
           at != NULL ? at + 1 : "");
  return kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

static void put(sbx_json_out *out, const char *name, const char *value) {
  sbx_json_put_name(out, sbx_slice_str(name));
  sbx_json_put_string(out, sbx_slice_str(value));
}

void sbx__docker_put_owner(sbx_json_out *out, const sbx_session *session) {
  char host[MAX_HOST], self[MAX_PROCESS], lease[32];
  this_host(host);
  process((long)getpid(), self);
  snprintf(lease, sizeof lease, "%lld", (long long)time(NULL) + session->config->lifetime_s);
  put(out, SBX__DOCKER_TAG, session->tag);
  put(out, HOST, host);
  put(out, PROCESS, self);
  put(out, LEASE, lease);
}

bool sbx__docker_is_stale(const sbx_json *labels) {
  char host[MAX_HOST], now[MAX_PROCESS];
  sbx_slice tag, said;
  int64_t lease = 0;
  if (!sbx_json_string(sbx_json_get(labels, SBX__DOCKER_TAG), &tag) || tag.len == 0)
    return false;
  if (sbx_json_int_or_text(sbx_json_get(labels, LEASE), 1, INT64_MAX / 2, &lease) &&
      (int64_t)time(NULL) > lease + SPARE_S)
    return true;
  this_host(host);
  if (host[0] == '\0' || !sbx_json_string(sbx_json_get(labels, HOST), &said) ||
      !sbx_slice_eq_str(said, host) || !sbx_json_string(sbx_json_get(labels, PROCESS), &said) ||
      said.len == 0 || said.len >= MAX_PROCESS)
    return false;
  long pid = strtol(said.ptr, NULL, 10);
  return pid > 0 && (!process(pid, now) || !sbx_slice_eq_str(said, now));
}
