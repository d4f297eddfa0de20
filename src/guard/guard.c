/* guard.c - one command, from its start to the end of its last process.
 *
 *   the host holds the control socket:  its end, and the order to kill, end the whole tree
 *   the host has released the command:  the end of the helper does; what is printed is dropped
 *
 * Invariant: a guard that ends with 0 has seen its last descendant end. */
#include "guard/guard.h"

#include "core/os.h"
#include "guard/system.h"
#include "guard/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#endif

/* What may be entered need not be readable. */
#ifdef O_PATH
#define LOOK_ONLY O_PATH
#else
#define LOOK_ONLY O_RDONLY
#endif

enum {
  REPORT_MS = 2000,       /* after this an end is reported although processes may live */
  POLL_MS = 10,           /* between two passes, unless a child ends */
  MAX_POLL_MS = 200,      /* the same, once there is something that SIGKILL does not end */
  DROP_BYTES = 64 * 1024, /* read at once of what nobody wants */
  DROP_PAUSE_MS = 1,      /* after so much of it: it shall not cost a processor */
  MAX_DROPS = 2           /* pipes */
};

typedef struct guard {
  sbx__guard_command *cmd;
  int control;  /* -1 after the release */
  int lifeline; /* ends with the helper */
  int drops[MAX_DROPS];
  pid_t leader; /* the command; also the number of its session and process group */
  bool told;    /* the system tells who descends from us */
  bool ended;   /* the leader has ended; `code` and `signalled` say how */
  bool reaped;  /* ... and its number may belong to somebody else by now */
  bool reported;
  bool killing;
  bool signalled;
  int code;
  struct rusage usage; /* of the leader */
  int killed;          /* processes left behind by the leader that ended through our SIGKILL */
} guard;

/* ---- what has ended ------------------------------------------------------------------------- */

static void note_end(guard *g, bool signalled, int code) {
  g->ended = true;
  g->signalled = signalled;
  g->code = code;
}

/* waitid(), which tells the usage only to who asks the kernel itself. */
static int wait_for(idtype_t type, pid_t pid, siginfo_t *info, int options, struct rusage *usage) {
#ifdef __linux__
  return (int)syscall(SYS_waitid, type, pid, info, options, usage);
#else
  (void)usage;
  return waitid(type, (id_t)pid, info, options);
#endif
}

/* Whether the leader has ended, while others that have ended are not collected yet. */
static void look_at_leader(guard *g) {
  siginfo_t info;
  info.si_pid = 0;
  if (g->ended || wait_for(P_PID, g->leader, &info, WEXITED | WNOHANG | WNOWAIT, &g->usage) != 0 ||
      info.si_pid == 0)
    return;
  note_end(g, info.si_code != CLD_EXITED, info.si_status);
}

static void note_collected(guard *g, pid_t pid, int status) {
  if (pid == g->leader && !g->reaped) {
    g->reaped = true;
    note_end(g, WIFSIGNALED(status), WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  } else if (g->killing && g->reported && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    g->killed++;
  }
}

/* Collects the children that have ended. True when none is left, and so no descendant. */
static bool collect(guard *g) {
  for (;;) {
    int status = 0;
    struct rusage usage;
    pid_t pid = wait4(-1, &status, WNOHANG, &usage);
    if (pid == 0)
      return false;
    if (pid < 0)
      break;
    if (pid == g->leader && !g->ended)
      g->usage = usage;
    note_collected(g, pid, status);
  }
  /* Where orphans do not become ours, the group is all that can be seen. */
  return errno == ECHILD && (g->told || kill(-g->leader, 0) != 0);
}

/* ---- the end of everything ------------------------------------------------------------------ */

static void signal_group(const guard *g, int number) {
  if (!g->reaped || !g->told)
    kill(-g->leader, number);
}

static uint64_t microseconds(const struct timeval *t) {
  return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

static void send_exit(const guard *g, bool gone) {
  const struct rusage *u = &g->usage;
  uint64_t peak = u->ru_maxrss > 0 ? (uint64_t)u->ru_maxrss : 0;
#ifndef __APPLE__
  peak *= 1024;
#endif
  sbx_guard_frame frame = {SBX_GUARD_EXITED,
                           g->code,
                           g->signalled,
                           !gone,
                           g->signalled && g->code == SIGKILL && sbx__guard_is_out_of_memory(),
                           microseconds(&u->ru_utime) + microseconds(&u->ru_stime),
                           peak};
  sbx__guard_send_frame(g->control, &frame);
}

static void report(guard *g, bool gone) {
  if (g->ended)
    sbx__guard_remove_file(g->cmd);
  if (g->ended && !g->reported)
    send_exit(g, gone);
  else if (gone)
    sbx__guard_send(g->control, SBX_GUARD_GONE, g->killed, 0, false);
  g->reported = g->reported || g->ended;
}

/* Ends the whole tree, however long that takes, and reports it. Nobody is collected before all are
 * dead: see sbx__tree_kill(). But not for ever, since something may not end at all. */
static int end_tree(guard *g) {
  int64_t limit = sbx__guard_now_ms() + REPORT_MS;
  bool gone = false;
  g->killing = true;
  for (int pause = POLL_MS;;) {
    signal_group(g, SIGKILL);
    bool late = sbx__guard_now_ms() >= limit;
    if (sbx__tree_kill(SBX__SPARE_NONE) <= 0 || late)
      gone = collect(g);
    if (gone)
      break;
    look_at_leader(g);
    if (late && !g->reported)
      report(g, false);
    pause = late && pause < MAX_POLL_MS ? pause * 2 : pause;
    sbx__guard_wait(NULL, 0, pause);
  }
  report(g, true);
  return 0;
}

/* ---- what is printed after the release ------------------------------------------------------ */

/* Without a reader the pipe would fill up, or its writer be killed. */
static void drop_output(guard *g, unsigned readable) {
  static char bytes[DROP_BYTES];
  bool much = false;
  for (int i = 0; i < MAX_DROPS; i++) {
    if ((readable & 1U << i) == 0)
      continue;
    ssize_t n = read(g->drops[i], bytes, sizeof bytes);
    much = much || n == (ssize_t)sizeof bytes;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
      sbx__guard_close(&g->drops[i]);
  }
  if (much)
    sbx__guard_wait(NULL, 0, DROP_PAUSE_MS);
}

/* The host has let go of the command, which has ended, and lives on without a descriptor for what
 * that has left behind. */
static int outlive(guard *g) {
  sbx__guard_close(&g->cmd->fd[SBX_GUARD_FD_CWD]);
  sbx__guard_close(&g->control);
  while (!collect(g)) {
    int fds[MAX_DROPS + 1] = {g->drops[0], g->drops[1], g->lifeline};
    unsigned readable = sbx__guard_wait(fds, MAX_DROPS + 1, -1);
    if ((readable & 1U << MAX_DROPS) || sbx__guard_is_out_of_memory())
      return end_tree(g);
    drop_output(g, readable);
  }
  return 0;
}

/* ---- orders --------------------------------------------------------------------------------- */

/* Whether the host wants no command any more that waited here: a helper may have been slow. */
static bool is_called_off(int control) {
  char order;
  ssize_t n = recv(control, &order, 1, MSG_PEEK | MSG_DONTWAIT);
  return n >= 0 || (errno != EAGAIN && errno != EINTR);
}

/* One order of the host, with the pipes that come with a release; 0 when there is none yet. */
static int receive_order(guard *g) {
  unsigned char order = 0;
  union {
    struct cmsghdr align;
    char space[CMSG_SPACE(sizeof g->drops)];
  } control;
  struct iovec part = {&order, 1};
  struct msghdr msg = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = sizeof control.space};
  ssize_t n = sbx_os_recvmsg(g->control, &msg, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return 0;
  const struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
  if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
    memcpy(g->drops, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
  return n == 1 ? order : SBX_GUARD_ORDER_KILL;
}

static int watch(guard *g) {
  for (;;) {
    bool gone = collect(g);
    if (g->ended && (gone || !g->reported))
      report(g, gone);
    if (gone)
      return 0;
    unsigned readable = sbx__guard_wait(&g->control, 1, -1);
    if (sbx__guard_is_out_of_memory())
      return end_tree(g);
    if (readable == 0)
      continue;
    int order = receive_order(g);
    switch (order) {
    case SBX_GUARD_ORDER_TERM:
      signal_group(g, SIGTERM);
      signal_group(g, SIGCONT);
      break;
    case SBX_GUARD_ORDER_RELEASE:
      return outlive(g);
    case SBX_GUARD_ORDER_KILL:
      return end_tree(g);
    default:
      if (order > SBX_GUARD_ORDER_SIGNAL && !g->ended)
        signal_group(g, order - SBX_GUARD_ORDER_SIGNAL);
      break;
    }
  }
}

int sbx__guard_main(sbx__guard_command *cmd, int lifeline) {
  guard g = {.cmd = cmd,
             .control = cmd->fd[SBX_GUARD_FD_CONTROL],
             .lifeline = lifeline,
             .drops = {-1, -1}};
  sbx__start_error failure = {SBX_GUARD_STEP_REQUEST, EINVAL};
  int code = 0;
  sbx__guard_become_subreaper();
  g.told = sbx__tree_is_told();
  if (!sbx__guard_load_spec(cmd)) {
    sbx__guard_send(g.control, SBX_GUARD_FAILED, failure.error, failure.step, false);
    return 0;
  }
  sbx__guard_close(&cmd->fd[SBX_GUARD_FD_SPEC]);
  if (cmd->cwd != NULL &&
      (cmd->fd[SBX_GUARD_FD_CWD] = open(cmd->cwd, LOOK_ONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
    sbx__guard_send(g.control, SBX_GUARD_FAILED, errno, SBX_GUARD_STEP_CWD, false);
    return 0;
  }
  if (is_called_off(g.control)) {
    sbx__guard_remove_file(cmd);
    sbx__guard_send(g.control, SBX_GUARD_FAILED, ECANCELED, SBX_GUARD_STEP_REQUEST, false);
    return 0;
  }
  sbx__guard_send(g.control, SBX_GUARD_STARTED, 0, 0, false);
  g.leader = sbx__guard_start(cmd, &failure);
  if (g.leader < 0) {
    sbx__guard_remove_file(cmd);
    if (sbx__guard_report_as_shell(cmd, &failure, &code))
      sbx__guard_send(g.control, SBX_GUARD_EXITED, code, false, false);
    else
      sbx__guard_send(g.control, SBX_GUARD_FAILED, failure.error, failure.step, false);
    return 0;
  }
  for (int i = 0; i < SBX_GUARD_FD_MAX; i++) {
    bool needed = i == SBX_GUARD_FD_CONTROL || (i == SBX_GUARD_FD_CWD && cmd->file != NULL);
    if (!needed)
      sbx__guard_close(&cmd->fd[i]);
  }
  return watch(&g);
}
