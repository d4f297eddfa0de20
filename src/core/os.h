/* os.h - what Linux does in one call and macOS in two. Nothing but this header, so that the local
 * provider's helper program, which links no other part of the library, uses it too.
 *
 * Invariant: no descriptor made here survives an exec. On macOS another thread may start a program
 * between the two calls; the helper program has one thread and is the only one that starts
 * commands. */
#ifndef SBX_CORE_OS_H
#define SBX_CORE_OS_H

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifdef __APPLE__
#include <sys/random.h> /* getentropy, which Linux has in unistd.h */
#include <xlocale.h>    /* strtod_l, which Linux has in stdlib.h */
#endif

/* Nanoseconds that no change of the clock moves. */
static inline uint64_t sbx_os_now_ns(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

#ifdef MSG_CMSG_CLOEXEC

static inline int sbx_os_pipe(int fd[2]) {
  return pipe2(fd, O_CLOEXEC);
}

static inline int sbx_os_socketpair(int fd[2]) {
  return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd);
}

/* A stream socket of that family, and the next connection of a listener; neither blocks. */
static inline int sbx_os_stream(int family) {
  return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static inline int sbx_os_accept(int listener) {
  return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* recvmsg(); descriptors that come with the message are closed on exec. */
static inline ssize_t sbx_os_recvmsg(int fd, struct msghdr *msg, int flags) {
  return recvmsg(fd, msg, flags | MSG_CMSG_CLOEXEC);
}

#else

static inline void sbx_os_close_on_exec(const int *fd, size_t count) {
  for (size_t i = 0; i < count; i++)
    (void)fcntl(fd[i], F_SETFD, FD_CLOEXEC);
}

static inline int sbx_os_pipe(int fd[2]) {
  int rc = pipe(fd);
  if (rc == 0)
    sbx_os_close_on_exec(fd, 2);
  return rc;
}

static inline int sbx_os_socketpair(int fd[2]) {
  int rc = socketpair(AF_UNIX, SOCK_STREAM, 0, fd);
  if (rc == 0)
    sbx_os_close_on_exec(fd, 2);
  return rc;
}

static inline int sbx_os_unblocked(int fd) {
  if (fd >= 0) {
    sbx_os_close_on_exec(&fd, 1);
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  return fd;
}

static inline int sbx_os_stream(int family) {
  return sbx_os_unblocked(socket(family, SOCK_STREAM, 0));
}

static inline int sbx_os_accept(int listener) {
  return sbx_os_unblocked(accept(listener, NULL, NULL));
}

static inline ssize_t sbx_os_recvmsg(int fd, struct msghdr *msg, int flags) {
  ssize_t n = recvmsg(fd, msg, flags);
  for (struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(msg) : NULL; c != NULL; c = CMSG_NXTHDR(msg, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
      continue;
    const unsigned char *at = CMSG_DATA(c);
    for (size_t left = c->cmsg_len - CMSG_LEN(0); left >= sizeof(int); left -= sizeof(int)) {
      int got;
      memcpy(&got, at, sizeof got);
      sbx_os_close_on_exec(&got, 1);
      at += sizeof got;
    }
  }
  return n;
}

#endif

#endif
