/* init.c - the first process of an isolated sandbox.
 *
 * It does what the helper does without isolation: for each request it forks a guard. A guard that
 * was killed leaves processes of which nobody knows whose they are; then all commands end.
 *
 * Invariant: a command is served only when every required layer was there, and only with
 * descriptors that lead nowhere: pipes, sockets, memory, /dev/null, and a terminal that the host
 * has made for the command. A directory of the host would be a way out. */
#include "guard/init.h"

#ifdef __linux__

#include "guard/confine.h"
#include "guard/guard.h"
#include "guard/landlock.h"
#include "guard/memory.h"
#include "guard/request.h"
#include "guard/seccomp.h"
#include "guard/system.h"
#include "guard/verify.h"
#include "guard/window.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NR_PIDFD_OPEN = 434 };

typedef struct first {
  sbx__confine confine;
  int lifeline[2];
  bool window;
  pid_t guards[SBX__LAST_GUARD +
               1]; /* those that are not collected; with a window each at its number */
  bool doomed[SBX__LAST_GUARD + 1]; /* of them, those that were killed with all others */
  int next;
  bool idle;       /* nothing runs */
  int64_t look_at; /* the next look at the memory of all */
} first;

/* After a guard was told to end its command: for the kernel to take the memory back. */
enum { SPARE_MS = 1000 };

/* For what was killed to be gone. */
enum { ENDING_MS = 2000 };

void sbx__init_say(const sbx_guard_hello *hello, const int *fds, unsigned count) {
  union {
    struct cmsghdr align;
    char space[CMSG_SPACE(sizeof(int) * 2)];
  } control = {.space = {0}};
  struct iovec part = {(void *)(uintptr_t)hello, sizeof *hello};
  struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
  if (count > 0) {
    msg.msg_control = control.space;
    msg.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(head), fds, sizeof(int) * count);
  }
  sendmsg(SBX_GUARD_SOCKET_FD, &msg, MSG_NOSIGNAL);
}

/* ---- walls ---------------------------------------------------------------------------------- */

static void make_landlock(first *f, sbx_guard_hello *hello) {
  int abi = 0;
  f->confine.landlock = sbx__landlock_make(&abi);
  if (f->confine.landlock < 0)
    sbx__layer_set(hello, SBX_LAYER_LANDLOCK, SBX_LAYER_UNAVAILABLE, SBX_STEP_SET, errno, 0);
  else
    sbx__layer_set(hello, SBX_LAYER_LANDLOCK,
                   abi >= SBX__LANDLOCK_WANTED ? SBX_LAYER_ENFORCED : SBX_LAYER_PARTIAL,
                   abi >= SBX__LANDLOCK_WANTED ? SBX_STEP_SET : SBX_STEP_OLD, 0, abi);
}

/* The main filter is loaded here, once, and every command inherits it: what costs time is the
 * loading. Nothing of it is needed from here on by this process or a guard. */
static void make_filters(first *f, sbx_guard_hello *hello) {
  int error = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno;
  sbx__layer_note(hello, SBX_LAYER_NO_NEW_PRIVS, SBX_STEP_SET, error);
  error = sbx__seccomp_build_command(f->window);
  if (error == 0)
    error = sbx__seccomp_load_main();
  f->confine.filter = error == 0;
  sbx__layer_note(hello, SBX_LAYER_SECCOMP, SBX_STEP_SET, error);
}

static void note_limits(const sbx_guard_setup *setup, sbx_guard_hello *hello) {
  static const sbx_layer_id groups[] = {SBX_LAYER_CGROUP_MEMORY, SBX_LAYER_CGROUP_PIDS,
                                        SBX_LAYER_CGROUP_CPU, SBX_LAYER_CGROUP_KILL};
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
    sbx__layer_set(hello, groups[i], SBX_LAYER_UNAVAILABLE, SBX_STEP_UNTRIED, ENOTSUP, 0);
  /* Without a cgroup we look ourselves, now and then, where there is a /proc to look at. */
  if (setup->memory_bytes > 0 && hello->layers[SBX_LAYER_PROCFS].state == SBX_LAYER_ENFORCED)
    sbx__layer_set(hello, SBX_LAYER_CGROUP_MEMORY, SBX_LAYER_PARTIAL, SBX_STEP_WATCHED, 0, 0);
  /* What is temporary has a limit, the workspace has the disk's. */
  sbx__layer_set(hello, SBX_LAYER_DISK_QUOTA, SBX_LAYER_PARTIAL, SBX_STEP_SET, 0, 0);
  sbx__layer_set(hello, SBX_LAYER_RLIMITS, SBX_LAYER_ENFORCED, SBX_STEP_SET, 0, 0);
}

/* ---- start ---------------------------------------------------------------------------------- */

/* Whether a process with a chosen number can be made at all. Our own is taken: that is said only to
 * who may choose, and saves making a process for nothing. */
static bool has_window(const sbx_guard_hello *hello) {
  if (hello->layers[SBX_LAYER_PIDNS].state != SBX_LAYER_ENFORCED)
    return false;
  pid_t pid = sbx__ns_fork_as(getpid());
  if (pid == 0)
    _exit(0);
  return pid < 0 && errno == EEXIST;
}

static int listen_inside(uint32_t port) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 &&
      (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, SOMAXCONN) != 0)) {
    int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

static bool build(first *f, const sbx_guard_setup *setup, const sbx__view *view,
                  const sbx__ns_ids *before, const sbx__ns_owner *owner, sbx_guard_hello *hello) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (!sbx__ns_map(owner, hello))
    return false;
  sbx__ns_check(setup, before, hello);
  if (!sbx__view_enter(view, setup, hello))
    return false;
  sbx__ns_furnish(setup, hello);
  f->window = has_window(hello);
  if (!f->window && hello->layers[SBX_LAYER_PIDNS].state == SBX_LAYER_ENFORCED)
    sbx__layer_set(hello, SBX_LAYER_PIDNS, SBX_LAYER_PARTIAL, SBX_STEP_WINDOW, errno, 0);
  make_landlock(f, hello);
  note_limits(setup, hello);
  return true;
}

/* Says HELLO when nothing that is required is missing. */
static bool greet(const sbx_guard_setup *setup, bool built, int listener, sbx_guard_hello *hello) {
  int missing = sbx__layer_missing(hello, setup->required);
  if (missing < 0 && !built)
    missing = hello->layers[SBX_LAYER_USERNS].error != 0 ? SBX_LAYER_USERNS : SBX_LAYER_MOUNTS;
  if (missing >= 0) {
    hello->frame = (sbx_guard_frame){SBX_GUARD_FAILED, missing, 0, 0, 0, 0, 0};
    sbx__init_say(hello, NULL, 0);
    return false;
  }
  int fds[2] = {(int)syscall(NR_PIDFD_OPEN, 1, 0), listener};
  unsigned count = fds[0] < 0 ? 0 : listener < 0 ? 1 : 2;
  hello->frame = (sbx_guard_frame){SBX_GUARD_HELLO, 0, 0, 0, 0, 0, 0};
  sbx__init_say(hello, fds, count);
  for (int i = 0; i < 2; i++)
    sbx__guard_close(&fds[i]);
  return true;
}

/* ---- commands ------------------------------------------------------------------------------- */

/* -1: it is no guard. */
static int slot_of(const first *f, pid_t pid) {
  for (int i = SBX__FIRST_GUARD; i <= SBX__LAST_GUARD; i++) {
    if (f->guards[i] == pid)
      return i;
  }
  return -1;
}

/* Those whose end does not come in time are not to end the next command. */
static void kill_all(first *f) {
  sbx__ns_kill_all();
  for (int i = SBX__FIRST_GUARD; i <= SBX__LAST_GUARD; i++)
    f->doomed[i] = f->guards[i] != 0;
}

/* Collects what has ended. Returns whether all were killed: one of our guards that did not end well
 * leaves a tree that nobody can tell from others'. */
static bool collect_ended(first *f) {
  bool killed_all = false;
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
    if (WIFSTOPPED(status)) {
      kill(pid, SIGCONT);
      continue;
    }
    int slot = slot_of(f, pid);
    if (slot < 0)
      continue;
    f->guards[slot] = 0;
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!well && !f->doomed[slot]) {
      kill_all(f);
      killed_all = true;
    }
  }
  f->idle = pid < 0; /* there are no children */
  return killed_all;
}

/* The next command meets nothing of those that were killed, its port or its files least of all:
 * their ends are waited for, as long as the kernel may need when it is busy. */
static void collect(first *f) {
  int64_t until = 0;
  for (;;) {
    int64_t now = sbx__guard_now_ms();
    if (collect_ended(f))
      until = now + ENDING_MS;
    if (f->idle || now >= until)
      return;
    sbx__guard_wait(NULL, 0, (int)(until - now));
  }
}

/* The command's end of a pseudo terminal. */
static bool is_terminal(dev_t device) {
  return major(device) >= 136 && major(device) <= 143;
}

static bool is_harmless(int fd) {
  struct stat st;
  if (fstat(fd, &st) != 0)
    return false;
  if (S_ISREG(st.st_mode))
    return st.st_nlink == 0;
  if (S_ISCHR(st.st_mode))
    return st.st_rdev == makedev(1, 3) || is_terminal(st.st_rdev);
  return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
}

static bool are_harmless(const sbx__guard_command *cmd) {
  for (int i = 0; i < SBX_GUARD_FD_MAX; i++) {
    if (cmd->fd[i] >= 0 && !is_harmless(cmd->fd[i]))
      return false;
  }
  return cmd->fd[SBX_GUARD_FD_CWD] < 0;
}

/* -1 and errno; EAGAIN: all numbers are taken. */
static pid_t fork_guard(first *f) {
  const int count = SBX__LAST_GUARD - SBX__FIRST_GUARD + 1;
  for (int i = 0; i < count; i++) {
    int slot = SBX__FIRST_GUARD + (f->next + i) % count;
    if (f->guards[slot] != 0)
      continue;
    pid_t pid = sbx__ns_fork_as(f->window ? slot : 0);
    if (pid < 0 && errno == EEXIST)
      continue;
    if (pid > 0) {
      f->guards[slot] = pid;
      f->doomed[slot] = false;
      f->next = slot - SBX__FIRST_GUARD + 1;
      f->idle = false;
    }
    return pid;
  }
  errno = EAGAIN;
  return -1;
}

static void serve(first *f, sbx__guard_command *cmd) {
  int control = cmd->fd[SBX_GUARD_FD_CONTROL];
  if (!are_harmless(cmd)) {
    sbx__guard_send(control, SBX_GUARD_FAILED, EBADF, SBX_GUARD_STEP_REQUEST, false);
  } else {
    pid_t pid = fork_guard(f);
    if (pid == 0) {
      close(SBX_GUARD_SOCKET_FD);
      sbx__guard_close(&f->lifeline[1]);
      cmd->confine = &f->confine;
      _exit(sbx__guard_main(cmd, f->lifeline[0]));
    }
    if (pid < 0)
      sbx__guard_send(control, SBX_GUARD_FAILED, errno, SBX_GUARD_STEP_FORK, false);
  }
  sbx__request_close(cmd);
}

/* How long to wait for what comes, at most. */
static int watch_memory(first *f, const sbx_guard_hello *hello) {
  int64_t now = sbx__guard_now_ms();
  if (hello->layers[SBX_LAYER_CGROUP_MEMORY].step != SBX_STEP_WATCHED || f->idle)
    return -1;
  if (now >= f->look_at) {
    pid_t guard = sbx__memory_look(f->confine.limits->memory_bytes);
    if (guard != 0)
      kill(guard, SBX__NO_MEMORY);
    f->look_at = now + (guard != 0 ? SPARE_MS : SBX__MEMORY_LOOK_MS);
  }
  return (int)(f->look_at - now);
}

static int serve_all(first *f, const sbx_guard_hello *hello) {
  static sbx__guard_command cmd;
  static const int socket_fd = SBX_GUARD_SOCKET_FD;
  for (;;) {
    collect(f);
    if (sbx__guard_wait(&socket_fd, 1, watch_memory(f, hello)) == 0)
      continue;
    sbx__request_kind kind = sbx__request_receive(&cmd);
    if (kind == SBX__REQUEST_COMMAND)
      serve(f, &cmd);
    else
      return kind == SBX__REQUEST_CLOSE ? SBX__INIT_CLOSED : SBX__INIT_HUNG_UP;
  }
}

int sbx__init_main(const sbx_guard_setup *setup, const sbx__view *view, const sbx__ns_ids *before,
                   const sbx__ns_owner *owner, sbx_guard_hello *hello) {
  static first f = {.lifeline = {-1, -1}, .confine = {.landlock = -1}};
  int listener = -1;
  f.confine.limits = setup;
  close(SBX_GUARD_ROOT_FD);
  close(SBX_GUARD_PARENT_FD);
  bool built = build(&f, setup, view, before, owner, hello);
  if (built && setup->network == SBX_GUARD_NET_LISTEN &&
      (listener = listen_inside(setup->port)) < 0)
    sbx__layer_note(hello, SBX_LAYER_NETNS, SBX_STEP_SET, errno);
  if (built) {
    make_filters(&f, hello);
    sbx__verify(&f.confine, setup, hello);
  }
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (pipe2(f.lifeline, O_CLOEXEC) != 0 || !greet(setup, built, listener, hello))
    return SBX__INIT_FAILED;
  return serve_all(&f, hello);
}

#endif
