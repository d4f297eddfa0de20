/* verify.c - looking at an isolated sandbox from inside.
 *
 * That a call to set something up has succeeded is not believed: a process goes behind the walls as
 * a command does, and tries what must not work. */
#include "guard/verify.h"

#ifdef __linux__

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS_ROOM = 8192 };

/* The value of a line of /proc/self/status, read as hexadecimal; -1: there is none. */
static long long status_value(const char *text, const char *name) {
  const char *at = strstr(text, name);
  return at != NULL ? strtoll(at + strlen(name), NULL, 16) : -1;
}

static uint32_t read_status(void) {
  char text[STATUS_ROOM];
  uint32_t bad = 0;
  int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
  if (n <= 0)
    return 0; /* no /proc: the layer says so itself */
  text[n] = '\0';
  close(fd);
  if (status_value(text, "\nNoNewPrivs:\t") != 1)
    bad |= 1U << SBX_LAYER_NO_NEW_PRIVS;
  if (status_value(text, "\nSeccomp:\t") != 2)
    bad |= 1U << SBX_LAYER_SECCOMP;
  if (status_value(text, "\nCapEff:\t") != 0 || status_value(text, "\nCapPrm:\t") != 0 ||
      status_value(text, "\nCapBnd:\t") != 0 || status_value(text, "\nCapAmb:\t") != 0)
    bad |= 1U << SBX_LAYER_CAPABILITIES;
  return bad;
}

/* An address that is for examples only: nobody answers there, and a network would be tried. */
static bool has_network(void) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(80), .sin_addr.s_addr = htonl(0xC0000201)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return false;
  bool unreachable =
      connect(fd, (struct sockaddr *)&address, sizeof address) != 0 && errno == ENETUNREACH;
  close(fd);
  return !unreachable;
}

/* The layers that were found open. */
static uint32_t look(const sbx_guard_setup *setup) {
  uint32_t bad = read_status();
  int fd = open("/probe", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0 || errno != EROFS || access("/sys/kernel", F_OK) == 0)
    bad |= 1U << SBX_LAYER_MOUNTS;
  if (mount("none", "/tmp", "tmpfs", 0, NULL) == 0 || errno != EPERM ||
      socket(AF_VSOCK, SOCK_STREAM, 0) >= 0 || errno != EAFNOSUPPORT)
    bad |= 1U << SBX_LAYER_SECCOMP;
  if (setup->network != SBX_GUARD_NET_ON && has_network())
    bad |= 1U << SBX_LAYER_NETNS;
  return bad;
}

/* 0 or an errno value. */
static int ask(const sbx__confine *confine, const sbx_guard_setup *setup, uint32_t *bad) {
  int fd[2], error = 0;
  struct answer {
    int error;
    uint32_t bad;
  } answer = {EPIPE, 0};
  if (pipe2(fd, O_CLOEXEC) != 0)
    return errno;
  pid_t pid = fork();
  if (pid == 0) {
    answer.error = sbx__confine_enter(confine);
    if (answer.error == 0)
      answer.bad = look(setup);
    _exit(write(fd[1], &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : 1);
  }
  if (pid < 0)
    error = errno;
  close(fd[1]);
  if (error == 0 && read(fd[0], &answer, sizeof answer) != (ssize_t)sizeof answer)
    answer.error = EPIPE;
  close(fd[0]);
  if (pid > 0)
    waitpid(pid, NULL, 0);
  *bad = answer.bad;
  return error != 0 ? error : answer.error;
}

void sbx__verify(const sbx__confine *confine, const sbx_guard_setup *setup,
                 sbx_guard_hello *hello) {
  uint32_t bad = 0;
  int error = setup->verify != 0 ? ask(confine, setup, &bad) : 0;
  sbx__layer_note(hello, SBX_LAYER_CAPABILITIES, SBX_STEP_SET, error);
  for (int i = 0; i < SBX_LAYER_COUNT; i++) {
    if ((bad & 1U << i) != 0)
      sbx__layer_set(hello, (sbx_layer_id)i, SBX_LAYER_UNAVAILABLE, SBX_STEP_VERIFIED, 0, 0);
  }
}

#endif
