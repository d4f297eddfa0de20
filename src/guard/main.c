/* main.c - the helper program of the local provider.
 *
 * It has two roles. The *helper*, one per sandbox, waits for requests and forks a guard for each:
 * forking this small process is cheap, forking a large host would not be. A *guard* starts one
 * command in a session of its own, reports how it ended, and ends what it left behind. It is a
 * child subreaper, so that processes which leave the session still become its children. An isolated
 * sandbox has a monitor and a first process in place of the helper: see monitor.h.
 *
 * Invariant: no process of a command outlives both its guard and the helper, and neither of them
 * outlives the host: the end of their socket, however it comes, makes them end everything. A
 * directory is removed only when the process that started the helper is no more. */
#include "core/os.h"
#include "guard/directory.h"
#include "guard/guard.h"
#include "guard/isolation.h"
#include "guard/monitor.h"
#include "guard/request.h"
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

/* ---- the loop ------------------------------------------------------------------------------- */

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
  sbx__request_close(cmd);
}

/* `directory` is NULL when there is none to remove. */
static int helper_main(const char *directory) {
  static sbx__guard_command cmd;
  static const int socket_fd = SBX_GUARD_SOCKET_FD;
  helper h = {.lifeline = {-1, -1}};
  pid_t host = getppid();
  sbx__request_kind kind = SBX__REQUEST_COMMAND;
  if (pipe(h.lifeline) != 0)
    return 1;
  fcntl(h.lifeline[0], F_SETFD, FD_CLOEXEC);
  fcntl(h.lifeline[1], F_SETFD, FD_CLOEXEC);
  sbx__guard_send(socket_fd, SBX_GUARD_HELLO, 0, 0, false);
  while (kind == SBX__REQUEST_COMMAND) {
    bool more = tend(&h);
    if (sbx__guard_wait(&socket_fd, 1, more ? POLL_MS : -1) == 0)
      continue;
    kind = sbx__request_receive(&cmd);
    if (kind == SBX__REQUEST_COMMAND)
      fork_guard(&h, &cmd);
  }
  int left = end_everything(&h);
  if (kind == SBX__REQUEST_CLOSE)
    sbx__guard_send(socket_fd, SBX_GUARD_GONE, left, 0, false);
  if (kind == SBX__REQUEST_HUNG_UP)
    sbx__guard_remove_directory(directory, host);
  return 0;
}

int main(int argc, char **argv) {
  bool isolated = argc > 1 && strcmp(argv[1], SBX_GUARD_ISOLATED) == 0;
  const char *directory = argc > 1 && !isolated ? argv[1] : NULL;
  sbx__guard_close_from(isolated            ? SBX_GUARD_SETUP_FD + 1
                        : directory != NULL ? SBX_GUARD_PARENT_FD + 1
                                            : SBX_GUARD_SOCKET_FD + 1);
  if (directory != NULL) {
    fcntl(SBX_GUARD_ROOT_FD, F_SETFD, FD_CLOEXEC);
    fcntl(SBX_GUARD_PARENT_FD, F_SETFD, FD_CLOEXEC);
  }
  sbx__guard_catch();
  signal(SIGPIPE, SIG_IGN);
  if (isolated)
    return sbx__monitor_main();
  /* The host's directory may be removed or unmounted while we run. */
  if (chdir("/") != 0)
    return 1;
  sbx__guard_become_subreaper();
  return helper_main(directory);
}
