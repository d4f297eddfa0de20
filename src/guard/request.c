/* request.c - one message on the helper's socket. */
#include "guard/request.h"

#include "core/os.h"
#include "guard/system.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The slots in the order of the descriptors. False when there are more or fewer than make sense. */
static bool place(sbx__guard_command *cmd, const sbx_guard_request *request, const int *fds,
                  size_t count) {
  size_t slot = 0;
  for (size_t i = 0; i < count; i++, slot++) {
    slot += slot == SBX_GUARD_FD_CWD && request->no_cwd != 0;
    if (slot >= SBX_GUARD_FD_MAX)
      return false;
    cmd->fd[slot] = fds[i];
  }
  return cmd->fd[SBX_GUARD_FD_STDERR] >= 0 &&
         (cmd->fd[SBX_GUARD_FD_CWD] >= 0) == (request->no_cwd == 0);
}

sbx__request_kind sbx__request_receive(sbx__guard_command *cmd) {
  sbx_guard_request request = {0, 0, 0};
  int fds[SBX_GUARD_FD_MAX];
  union {
    struct cmsghdr align;
    char space[CMSG_SPACE(sizeof fds)];
  } control;
  struct iovec part = {&request, sizeof request};
  struct msghdr msg = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = sizeof control.space};
  ssize_t n;
  for (int i = 0; i < SBX_GUARD_FD_MAX; i++)
    cmd->fd[i] = -1;
  do
    n = sbx_os_recvmsg(SBX_GUARD_SOCKET_FD, &msg, 0);
  while (n < 0 && errno == EINTR);
  /* A reset: the host ended before it had read everything. */
  if (n == 0 || (n < 0 && errno == ECONNRESET))
    return SBX__REQUEST_HUNG_UP;
  if (n == 1 && ((const char *)&request)[0] == SBX_GUARD_ORDER_CLOSE)
    return SBX__REQUEST_CLOSE;
  const struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
  if (head == NULL || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
    return SBX__REQUEST_END;
  size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  if (count > SBX_GUARD_FD_MAX)
    return SBX__REQUEST_END;
  memcpy(fds, CMSG_DATA(head), count * sizeof(int));
  bool good = n == (ssize_t)sizeof request && request.magic == SBX_GUARD_MAGIC &&
              request.fd_count == count && (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  return good && place(cmd, &request, fds, count) ? SBX__REQUEST_COMMAND : SBX__REQUEST_END;
}

void sbx__request_close(sbx__guard_command *cmd) {
  for (int i = 0; i < SBX_GUARD_FD_MAX; i++)
    sbx__guard_close(&cmd->fd[i]);
}
