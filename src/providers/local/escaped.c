/* escaped.c - processes that have escaped: their guard and the helper were both killed.
 *
 * Nobody is their parent any more, but the environment that they were started with names the
 * sandbox's own directory as their home, and that has a random name.
 *
 * Invariant: a process is killed only after its environment was looked at through the same
 * descriptor's life: its number cannot have been given to somebody else in between. */
#include "providers/local/local.h"

#include "core/alloc.h"

#ifdef __linux__

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_ENVIRONMENT = 256 * 1024, MAX_PASSES = 100 };

typedef struct search {
  const char *home;
  char *bytes; /* MAX_ENVIRONMENT of them */
} search;

static bool has_home(const search *s, long pid) {
  char name[64];
  size_t len = 0;
  ssize_t n;
  snprintf(name, sizeof name, "/proc/%ld/environ", pid);
  int fd = open(name, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  while (len < MAX_ENVIRONMENT && (n = read(fd, s->bytes + len, MAX_ENVIRONMENT - len)) > 0)
    len += (size_t)n;
  close(fd);
  sbx_slice rest = sbx_slice_of(s->bytes, len);
  while (rest.len > 0) {
    sbx_slice item = sbx_slice_of(rest.ptr, sbx_slice_find(rest, '\0'));
    rest = sbx_slice_skip(rest, item.len + 1);
    if (sbx_slice_starts_with(item, sbx_slice_str("HOME=")) &&
        sbx_slice_eq_str(sbx_slice_skip(item, 5), s->home))
      return true;
  }
  return false;
}

static bool kill_one(const search *s, long pid) {
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
  if (!has_home(s, pid))
    return false;
  int fd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0)
    return false;
  bool sent = has_home(s, pid) && syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
  close(fd);
  return sent;
#else
  (void)s;
  (void)pid;
  return false;
#endif
}

/* The number of those that were found. */
static size_t kill_pass(const search *s) {
  size_t found = 0;
  DIR *dir = opendir("/proc");
  const struct dirent *entry;
  while (dir != NULL && (entry = readdir(dir)) != NULL) {
    long pid = strtol(entry->d_name, NULL, 10);
    if (pid > 0 && pid != (long)getpid())
      found += kill_one(s, pid);
  }
  if (dir != NULL)
    closedir(dir);
  return found;
}

void sbx__escaped_kill(const char *home) {
  search s = {home, sbx_malloc(MAX_ENVIRONMENT)};
  for (int pass = 0; s.bytes != NULL && pass < MAX_PASSES && kill_pass(&s) > 0; pass++)
    usleep(1000);
  sbx_free(s.bytes);
}

#else

void sbx__escaped_kill(const char *home) {
  (void)home;
}

#endif
