/* main.c - the helper program of the local provider.
 *
 * It has two roles. The *helper*, one per sandbox, waits for requests and forks a guard for each:
 * forking this small process is cheap, forking a large host would not be. A *guard* starts one
 * command in a session of its own, reports how it ended, and ends what it left behind. It is a
 * child subreaper, so that processes which leave the session still become its children.
 *
 * Invariant: no process of a command outlives both its guard and the helper, and neither of them
 * outlives the host: the end of their socket, however it comes, makes them end everything. A
 * directory is removed only when the process that started the helper is no more. */
#include "core/os.h"
#include "guard/guard.h"
#include "guard/open.h"
#include "guard/system.h"
#include "guard/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  KILL_BUDGET_MS = 2000,  /* for a process tree to end after SIGKILL */
  CLOSE_BUDGET_MS = 3000, /* for the guards to end after the host has gone */
  HOST_BUDGET_MS = 2000,  /* for a host to end after its sockets have */
  POLL_MS = 10            /* between two looks for processes that SIGKILL has not ended yet */
};

typedef struct helper {
  int lifeline[2];    /* every guard has the read end, the helper alone the other one */
  int64_t hold_until; /* 0: no guard has left anything; else see collect() */
  int quiet;          /* passes since then that have found nothing */
} helper;

/* ---- what guards leave ---------------------------------------------------------------------- */

/* Collects guards that have ended. One that its command has stopped, to escape its limit, is sent
 * on; what one has left that was killed is ours to end. False when there are no children. */
static bool collect(helper *h) {
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
    if (WIFSTOPPED(status)) {
      kill(pid, SIGCONT);
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      h->quiet = 0;
      if (h->hold_until == 0)
        h->hold_until = sbx__guard_now_ms() + KILL_BUDGET_MS;
    }
  }
  return pid == 0 || errno != ECHILD;
}

/* One step of both: ends what killed guards have left, and collects. While that lives nobody is
 * collected (see sbx__tree_kill()), but not for ever, since something may not end at all. True when
 * there is more to do soon. */
static bool tend(helper *h) {
  if (h->hold_until == 0)
    collect(h);
  if (h->hold_until == 0)
    return false;
  long alive = sbx__tree_kill(SBX__SPARE_SESSION);
  h->quiet = alive > 0 ? 0 : h->quiet + 1;
  if (alive <= 0 || sbx__guard_now_ms() >= h->hold_until)
    collect(h);
  /* Twice nothing: a pass may miss what is born during it. */
  if (h->quiet >= 2)
    h->hold_until = 0;
  return h->hold_until != 0;
}

/* The guards see the host's end on their own sockets, or ours on the lifeline. One that has not
 * gone by then is stopped, or worse: it is killed, and its command with it. Whoever waits for us,
 * waits for them. The number of those that live on. */
static int end_everything(helper *h) {
  int64_t limit = sbx__guard_now_ms() + CLOSE_BUDGET_MS;
  sbx__guard_close(&h->lifeline[1]);
  for (; (tend(h) || collect(h)) && sbx__guard_now_ms() < limit;)
    sbx__guard_wait(NULL, 0, POLL_MS);
  for (limit = sbx__guard_now_ms() + KILL_BUDGET_MS;;) {
    long alive = sbx__tree_kill(SBX__SPARE_NONE);
    bool late = sbx__guard_now_ms() >= limit;
    if ((alive <= 0 || late) && !collect(h))
      return 0;
    if (late)
      return alive > 0 ? (int)alive : 1;
    sbx__guard_wait(NULL, 0, POLL_MS);
  }
}

/* ---- requests ------------------------------------------------------------------------------- */

typedef enum request_kind {
  REQUEST_COMMAND,
  REQUEST_CLOSE,   /* the order to end */
  REQUEST_END,     /* the host does not speak our language */
  REQUEST_HUNG_UP, /* without a word */
} request_kind;

static request_kind receive_request(sbx__guard_command *cmd) {
  sbx_guard_request request = {0, 0};
  union {
    struct cmsghdr align;
    char space[CMSG_SPACE(sizeof(int) * SBX_GUARD_FD_MAX)];
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
    return REQUEST_HUNG_UP;
  if (n == 1 && ((const char *)&request)[0] == SBX_GUARD_ORDER_CLOSE)
    return REQUEST_CLOSE;
  const struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
  if (head == NULL || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
    return REQUEST_END;
  size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  if (count > SBX_GUARD_FD_MAX)
    return REQUEST_END;
  memcpy(cmd->fd, CMSG_DATA(head), count * sizeof(int));
  bool good = n == (ssize_t)sizeof request && request.magic == SBX_GUARD_MAGIC &&
              request.fd_count == count && count > SBX_GUARD_FD_CWD &&
              (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  return good ? REQUEST_COMMAND : REQUEST_END;
}

/* Removes the sandbox's own directory, if there is one and the host is no more. The sockets of a
 * process end a little before it has another parent take its children. */
static void remove_directory(const char *name, pid_t host) {
  sbx_local_root root;
  sbx__remover remover;
  if (name == NULL)
    return;
  for (int64_t limit = sbx__guard_now_ms() + HOST_BUDGET_MS;
       getppid() == host && sbx__guard_now_ms() < limit;)
    sbx__guard_wait(NULL, 0, POLL_MS);
  if (getppid() == host)
    return;
  sbx_local_root_init(&root, SBX_GUARD_ROOT_FD, NULL);
  sbx__remover_init(&remover, &root, SBX_GUARD_PARENT_FD, name);
  sbx__local_remove(&remover);
}

static void fork_guard(helper *h, sbx__guard_command *cmd) {
  pid_t pid = fork();
  if (pid == 0) {
    close(SBX_GUARD_SOCKET_FD);
    sbx__guard_close(&h->lifeline[1]);
    _exit(sbx__guard_main(cmd, h->lifeline[0]));
  }
  if (pid < 0)
    sbx__guard_send(cmd->fd[SBX_GUARD_FD_CONTROL], SBX_GUARD_FAILED, errno, SBX_GUARD_STEP_FORK,
                    false);
  for (int i = 0; i < SBX_GUARD_FD_MAX; i++)
    sbx__guard_close(&cmd->fd[i]);
}

/* `directory` is NULL when there is none to remove. */
static int helper_main(const char *directory) {
  static sbx__guard_command cmd;
  static const int socket_fd = SBX_GUARD_SOCKET_FD;
  helper h = {.lifeline = {-1, -1}};
  pid_t host = getppid();
  request_kind kind = REQUEST_COMMAND;
  if (pipe(h.lifeline) != 0)
    return 1;
  fcntl(h.lifeline[0], F_SETFD, FD_CLOEXEC);
  fcntl(h.lifeline[1], F_SETFD, FD_CLOEXEC);
  sbx__guard_send(socket_fd, SBX_GUARD_HELLO, 0, 0, false);
  while (kind == REQUEST_COMMAND) {
    bool more = tend(&h);
    if (sbx__guard_wait(&socket_fd, 1, more ? POLL_MS : -1) == 0)
      continue;
    kind = receive_request(&cmd);
    if (kind == REQUEST_COMMAND)
      fork_guard(&h, &cmd);
  }
  int left = end_everything(&h);
  if (kind == REQUEST_CLOSE)
    sbx__guard_send(socket_fd, SBX_GUARD_GONE, left, 0, false);
  if (kind == REQUEST_HUNG_UP)
    remove_directory(directory, host);
  return 0;
}

static void on_child(int number) {
  (void)number;
}

int main(int argc, char **argv) {
  struct sigaction child = {.sa_handler = on_child};
  const char *directory = argc > 1 ? argv[1] : NULL;
  sigset_t blocked;
  sbx__guard_close_from(directory != NULL ? SBX_GUARD_PARENT_FD + 1 : SBX_GUARD_SOCKET_FD + 1);
  if (directory != NULL) {
    fcntl(SBX_GUARD_ROOT_FD, F_SETFD, FD_CLOEXEC);
    fcntl(SBX_GUARD_PARENT_FD, F_SETFD, FD_CLOEXEC);
  }
  /* The host's directory may be removed or unmounted while we run. */
  if (chdir("/") != 0)
    return 1;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_SETMASK, &blocked, NULL);
  sigaction(SIGCHLD, &child, NULL);
  signal(SIGPIPE, SIG_IGN);
  sbx__guard_become_subreaper();
  return helper_main(directory);
}
