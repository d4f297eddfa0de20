/* system.c - small things of the helper program: time, waiting, descriptors, frames. */
#include "guard/system.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

int64_t sbx__guard_now_ms(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static volatile sig_atomic_t told_of_memory;

static void on_signal(int number) {
  if (number == SBX__NO_MEMORY)
    told_of_memory = 1;
}

void sbx__guard_catch(void) {
  struct sigaction action = {.sa_handler = on_signal};
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  sigaddset(&blocked, SBX__NO_MEMORY);
  sigprocmask(SIG_SETMASK, &blocked, NULL);
  sigaction(SIGCHLD, &action, NULL);
  sigaction(SBX__NO_MEMORY, &action, NULL);
}

bool sbx__guard_is_out_of_memory(void) {
  return told_of_memory != 0;
}

unsigned sbx__guard_wait(const int *fds, int count, int timeout_ms) {
  struct timespec ts = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};
  fd_set set;
  sigset_t none;
  unsigned readable = 0;
  int last = -1;
  FD_ZERO(&set);
  for (int i = 0; i < count; i++) {
    if (fds[i] >= 0)
      FD_SET(fds[i], &set);
    last = fds[i] > last ? fds[i] : last;
  }
  sigemptyset(&none);
  if (pselect(last + 1, &set, NULL, NULL, timeout_ms < 0 ? NULL : &ts, &none) <= 0)
    return 0;
  for (int i = 0; i < count; i++) {
    if (fds[i] >= 0 && FD_ISSET(fds[i], &set))
      readable |= 1U << i;
  }
  return readable;
}

int sbx__guard_write_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return errno;
  ssize_t len = (ssize_t)strlen(text), n = write(fd, text, (size_t)len);
  int error = n == len ? 0 : n < 0 ? errno : EIO;
  close(fd);
  return error;
}

void sbx__guard_send(int fd, sbx_guard_kind kind, int value, int detail, bool left) {
  sbx_guard_frame frame = {kind, value, detail, left, 0, 0, 0};
  sbx__guard_send_frame(fd, &frame);
}

void sbx__guard_send_frame(int fd, const sbx_guard_frame *frame) {
  ssize_t n;
  do
    n = write(fd, frame, sizeof *frame);
  while (n < 0 && errno == EINTR);
}

void sbx__guard_become_subreaper(void) {
#ifdef PR_SET_CHILD_SUBREAPER
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
#endif
}

void sbx__guard_close(int *fd) {
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
}

void sbx__guard_close_from(int first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, (unsigned)first, ~0U, 0U) == 0)
    return;
#endif
  long limit = sysconf(_SC_OPEN_MAX);
  for (int fd = first; fd < (limit > 0 && limit < 65536 ? (int)limit : 65536); fd++)
    close(fd);
}
