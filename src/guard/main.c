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
#include "guard/protocol.h"

#include "guard/open.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

enum {
  KILL_BUDGET_MS = 2000,  /* for a process tree to end after SIGKILL */
  CLOSE_BUDGET_MS = 3000, /* for the guards to end after the host has gone */
  HOST_BUDGET_MS = 2000,  /* for a host to end after its sockets have */
  POLL_MS = 10,           /* between two looks for processes that SIGKILL has not ended yet */
  MAX_CHILDREN = 1024     /* looked at in one pass; the next pass sees the others */
};

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

typedef struct child_list {
  pid_t pid[MAX_CHILDREN];
  size_t count;
} child_list;

typedef struct guard {
  int control;
  pid_t leader; /* the command; also the number of its session and process group */
  bool ended;   /* the leader has ended; `code` and `signalled` say how */
  bool reaped;  /* ... and its number may belong to somebody else by now */
  bool no_list; /* the system does not tell a process its children */
  bool reported;
  bool killing;
  bool signalled;
  int code;
  int killed; /* processes left behind by the leader that ended through our SIGKILL */
} guard;

typedef struct command {
  char **argv;
  char **env;
  int fd[SBX_GUARD_FD_MAX]; /* -1 where there is none */
} command;

/* What a child that could not become the command writes to the guard. */
typedef struct start_error {
  int step;
  int error;
} start_error;

/* ---- small things --------------------------------------------------------------------------- */

static int64_t now_ms(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void on_child(int number) {
  (void)number;
}

static void become_subreaper(void) {
#ifdef PR_SET_CHILD_SUBREAPER
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
#endif
}

static void close_fd(int *fd) {
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
}

static void close_from(int first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, (unsigned)first, ~0U, 0U) == 0)
    return;
#endif
  long limit = sysconf(_SC_OPEN_MAX);
  for (int fd = first; fd < (limit > 0 && limit < 65536 ? (int)limit : 65536); fd++)
    close(fd);
}

/* Waits until `fd` (-1: none) is readable, a child ends, or `timeout_ms` (-1: none) has passed.
 * SIGCHLD is blocked everywhere else, so an end is never missed. True when `fd` is readable. */
static bool wait_event(int fd, int timeout_ms) {
  struct timespec ts = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};
  fd_set set;
  sigset_t none;
  FD_ZERO(&set);
  if (fd >= 0)
    FD_SET(fd, &set);
  sigemptyset(&none);
  return pselect(fd + 1, &set, NULL, NULL, timeout_ms < 0 ? NULL : &ts, &none) > 0;
}

static void send_frame(int fd, sbx_guard_kind kind, int value, int detail, bool left) {
  sbx_guard_frame frame = {kind, value, detail, left};
  ssize_t n;
  do
    n = write(fd, &frame, sizeof frame);
  while (n < 0 && errno == EINTR);
}

/* ---- finding children ----------------------------------------------------------------------- */

static void add_child(child_list *list, long pid) {
  if (pid > 0 && list->count < MAX_CHILDREN)
    list->pid[list->count++] = (pid_t)pid;
}

#if defined(__linux__) && !defined(SBX_TEST_PROC_SCAN)
static bool list_from_children_file(child_list *list) {
  char name[64], text[8192];
  snprintf(name, sizeof name, "/proc/self/task/%ld/children", (long)getpid());
  int fd = open(name, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  size_t len = 0;
  ssize_t n;
  while (len < sizeof text - 1 && (n = read(fd, text + len, sizeof text - 1 - len)) > 0)
    len += (size_t)n;
  close(fd);
  text[len] = '\0';
  /* A number at the end without a blank behind it may be cut. */
  for (char *p = text, *end; (end = strchr(p, ' ')) != NULL; p = end + 1)
    add_child(list, strtol(p, NULL, 10));
  return true;
}
#endif

/* The parent's number out of /proc/PID/stat, 0 when the process is gone. */
static long parent_of(const char *pid) {
  char name[300], text[512];
  snprintf(name, sizeof name, "/proc/%s/stat", pid);
  int fd = open(name, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return 0;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n > 0 ? n : 0] = '\0';
  /* The program's name stands in parentheses and may hold anything, ')' included. */
  char *end = strrchr(text, ')');
  return end != NULL && strlen(end) > 4 ? strtol(end + 4, NULL, 10) : 0;
}

static bool list_from_proc(child_list *list) {
  DIR *dir = opendir("/proc");
  if (dir == NULL)
    return false;
  const struct dirent *entry;
  bool found_any = false;
  while ((entry = readdir(dir)) != NULL) {
    long pid = strtol(entry->d_name, NULL, 10);
    if (pid <= 0)
      continue;
    found_any = true;
    if (parent_of(entry->d_name) == (long)getpid())
      add_child(list, pid);
  }
  closedir(dir);
  return found_any;
}

static bool list_children(child_list *list) {
  list->count = 0;
#if defined(__linux__) && !defined(SBX_TEST_PROC_SCAN)
  if (list_from_children_file(list))
    return true;
#endif
  return list_from_proc(list);
}

/* ---- guard: what is left of the command ----------------------------------------------------- */

static void note_end(guard *g, const siginfo_t *info) {
  g->ended = true;
  g->signalled = info->si_code != CLD_EXITED;
  g->code = info->si_status;
}

static void count_killed(guard *g, int status) {
  if (g->killing && g->reported && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    g->killed++;
}

/* Collects children that have ended. The leader is only looked at: as long as it is a zombie, its
 * number names its process group and nothing else. */
static void reap_until_leader(guard *g) {
  for (;;) {
    siginfo_t info;
    info.si_pid = 0;
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
      return;
    if (info.si_pid == g->leader) {
      note_end(g, &info);
      return;
    }
    waitpid(info.si_pid, NULL, WNOHANG);
  }
}

/* Collects or, while killing, kills the children besides the leader. Their number is returned.
 * A child of ours that was not collected keeps its number, so no stranger can be hit. */
static size_t sweep(guard *g) {
  static child_list list;
  size_t alive = 0;
  g->no_list = !list_children(&list);
  for (size_t i = 0; i < list.count; i++) {
    int status = 0;
    pid_t pid = list.pid[i];
    if (pid == g->leader && !g->reaped)
      continue;
    if (waitpid(pid, &status, WNOHANG) == pid) {
      count_killed(g, status);
      continue;
    }
    alive++;
    if (g->killing)
      kill(pid, SIGKILL);
  }
  return alive;
}

/* Whether nothing is left of a command whose leader has ended. */
static bool tree_is_gone(guard *g) {
  if (sweep(g) > 0)
    return false;
  if (!g->reaped)
    waitpid(g->leader, NULL, 0);
  g->reaped = true;
  for (;;) {
    int status = 0;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == 0)
      return false;
    if (pid < 0)
      break;
    count_killed(g, status);
  }
  /* Without a list and without a subreaper the group is all that can be seen. */
  return !g->no_list || kill(-g->leader, 0) != 0;
}

static void kill_group(const guard *g, int number) {
  if (!g->reaped || g->no_list)
    kill(-g->leader, number);
}

/* Ends the whole tree and reports it. Killing a process hands its children to us, so a few passes
 * reach everything. */
static int kill_all(guard *g) {
  int64_t limit = now_ms() + KILL_BUDGET_MS;
  bool gone = false;
  g->killing = true;
  for (;;) {
    kill_group(g, SIGKILL);
    if (!g->ended)
      reap_until_leader(g);
    if (g->ended)
      gone = tree_is_gone(g);
    else
      sweep(g);
    if (gone || now_ms() >= limit)
      break;
    wait_event(-1, POLL_MS);
  }
  if (g->ended && !g->reported)
    send_frame(g->control, SBX_GUARD_EXITED, g->code, g->signalled, !gone);
  else if (gone)
    send_frame(g->control, SBX_GUARD_GONE, g->killed, 0, false);
  return gone ? 0 : 1;
}

/* Whether the host wants no command any more that waited here: a helper may have been slow. */
static bool is_called_off(int control) {
  char order;
  ssize_t n = recv(control, &order, 1, MSG_PEEK | MSG_DONTWAIT);
  return n >= 0 || (errno != EAGAIN && errno != EINTR);
}

/* One order of the host, 0 when there is none yet. */
static int next_order(const guard *g) {
  char order = 0;
  if (!wait_event(g->control, -1))
    return 0;
  ssize_t n = recv(g->control, &order, 1, MSG_DONTWAIT);
  if (n == 1)
    return order;
  return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : SBX_GUARD_ORDER_KILL;
}

static int watch(guard *g) {
  for (;;) {
    if (!g->ended)
      reap_until_leader(g);
    if (g->ended) {
      bool gone = tree_is_gone(g);
      if (!g->reported)
        send_frame(g->control, SBX_GUARD_EXITED, g->code, g->signalled, !gone);
      else if (gone)
        send_frame(g->control, SBX_GUARD_GONE, 0, 0, false);
      g->reported = true;
      if (gone)
        return 0;
    }
    switch (next_order(g)) {
    case SBX_GUARD_ORDER_TERM:
      kill_group(g, SIGTERM);
      kill_group(g, SIGCONT);
      break;
    case SBX_GUARD_ORDER_KILL:
      return kill_all(g);
    default:
      break;
    }
  }
}

/* ---- guard: starting the command ------------------------------------------------------------ */

/* Fills argv and env with pointers into the mapped spec file. */
static bool load_spec(command *cmd) {
  struct stat st;
  int fd = cmd->fd[SBX_GUARD_FD_SPEC];
  if (fstat(fd, &st) != 0 || st.st_size < (off_t)sizeof(sbx_guard_spec))
    return false;
  size_t size = (size_t)st.st_size;
  char *base = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (base == MAP_FAILED)
    return false;
  sbx_guard_spec head;
  memcpy(&head, base, sizeof head);
  size_t count = (size_t)head.argc + head.envc;
  if (head.magic != SBX_GUARD_MAGIC || head.argc == 0 || count > size)
    return false;
  char **list = calloc(count + 2, sizeof *list);
  if (list == NULL)
    return false;
  cmd->argv = list;
  cmd->env = list + head.argc + 1;
  size_t at = sizeof head;
  for (size_t i = 0; i < count; i++) {
    const char *end = memchr(base + at, '\0', size - at);
    if (end == NULL)
      return false;
    list[i < head.argc ? i : i + 1] = base + at;
    at = (size_t)(end - base) + 1;
  }
  return list[0] != NULL;
}

static const char *search_path(char **env) {
  for (; *env != NULL; env++) {
    if (strncmp(*env, "PATH=", 5) == 0)
      return *env + 5;
  }
  return DEFAULT_PATH;
}

/* execvpe() with the command's own PATH and without its habit of feeding unknown files to a shell.
 * Returns the error to report. */
static int exec_command(const command *cmd) {
  const char *name = cmd->argv[0];
  char file[4096];
  int error = ENOENT;
  if (strchr(name, '/') != NULL || *name == '\0') {
    execve(name, cmd->argv, cmd->env);
    return errno;
  }
  for (const char *dir = search_path(cmd->env), *end; dir != NULL; dir = *end ? end + 1 : NULL) {
    end = dir + strcspn(dir, ":");
    int n =
        snprintf(file, sizeof file, "%.*s%s%s", (int)(end - dir), dir, end > dir ? "/" : "", name);
    if (n < 0 || (size_t)n >= sizeof file)
      continue;
    execve(file, cmd->argv, cmd->env);
    /* A directory that may not be searched does not hold the program, as a shell sees it. */
    if (errno == EACCES && access(file, F_OK) == 0)
      error = EACCES;
    else if (errno != EACCES && errno != ENOENT && errno != ENOTDIR)
      return errno;
  }
  return error;
}

static bool place_fds(const command *cmd) {
  for (int i = 0; i < 3; i++) {
    if (dup2(cmd->fd[SBX_GUARD_FD_STDIN + i], i) < 0)
      return false;
  }
  int script = cmd->fd[SBX_GUARD_FD_SCRIPT];
  if (script == SBX_GUARD_SCRIPT_FD)
    return fcntl(script, F_SETFD, 0) == 0;
  return script < 0 || dup2(script, SBX_GUARD_SCRIPT_FD) >= 0;
}

/* In the child. Every descriptor but the ones placed here closes on exec. */
static _Noreturn void run_command(const command *cmd, pid_t guard_pid, int error_fd) {
  start_error failure = {SBX_GUARD_STEP_EXEC, 0};
  sigset_t none;
#ifdef PR_SET_PDEATHSIG
  /* Should guard and helper both be killed, at least the command itself goes with them. */
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
#endif
  if (getppid() != guard_pid)
    _exit(1);
  setsid();
  signal(SIGPIPE, SIG_DFL);
  signal(SIGCHLD, SIG_DFL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (fchdir(cmd->fd[SBX_GUARD_FD_CWD]) != 0) {
    failure.step = SBX_GUARD_STEP_CWD;
    failure.error = errno;
  } else if (!place_fds(cmd)) {
    failure.error = errno;
  } else {
    failure.error = exec_command(cmd);
  }
  ssize_t ignored = write(error_fd, &failure, sizeof failure);
  (void)ignored;
  _exit(127);
}

/* The pipe closes when the child has become the command: then nothing can be read from it. The
 * write end is kept away from the numbers that the child fills.
 *
 * vfork() saves a seventh of a short command's time. The child never returns from run_command(),
 * which writes to its own frame only and allocates nothing. */
static pid_t fork_command(const command *cmd, start_error *failure) {
  int pipe_fd[2], error_fd = -1;
  pid_t pid = -1;
  ssize_t n;
  if (pipe(pipe_fd) == 0) {
    fcntl(pipe_fd[0], F_SETFD, FD_CLOEXEC);
    error_fd = fcntl(pipe_fd[1], F_DUPFD_CLOEXEC, SBX_GUARD_SCRIPT_FD + 1);
    close(pipe_fd[1]);
    pid_t self = getpid();
    pid = error_fd < 0 ? -1 : vfork(); /* NOLINT: see above */
    if (pid == 0)
      run_command(cmd, self, error_fd);
  }
  if (pid < 0) {
    *failure = (start_error){SBX_GUARD_STEP_FORK, errno};
    return -1;
  }
  close(error_fd);
  do
    n = read(pipe_fd[0], failure, sizeof *failure);
  while (n < 0 && errno == EINTR);
  close(pipe_fd[0]);
  if (n == 0)
    return pid;
  waitpid(pid, NULL, 0);
  return -1;
}

/* Says on the command's stderr what a shell would say. False when no shell would go on with it. */
static bool report_as_shell(const command *cmd, const start_error *failure, int *code) {
  const char *text;
  if (failure->step != SBX_GUARD_STEP_EXEC)
    return false;
  switch (failure->error) {
  case ENOENT:
  case ENOTDIR:
    *code = 127;
    text = "not found";
    break;
  case EACCES:
  case EPERM:
    *code = 126;
    text = "permission denied";
    break;
  case ENOEXEC:
  case EISDIR:
    *code = 126;
    text = "cannot execute";
    break;
  default:
    return false;
  }
  dprintf(cmd->fd[SBX_GUARD_FD_STDERR], "%.2000s: %s\n", cmd->argv[0], text);
  return true;
}

static int guard_main(command *cmd) {
  guard g = {.control = cmd->fd[SBX_GUARD_FD_CONTROL]};
  start_error failure = {SBX_GUARD_STEP_REQUEST, EINVAL};
  int code = 0;
  become_subreaper();
  if (!load_spec(cmd)) {
    send_frame(g.control, SBX_GUARD_FAILED, failure.error, failure.step, false);
    return 0;
  }
  close_fd(&cmd->fd[SBX_GUARD_FD_SPEC]);
  if (is_called_off(g.control)) {
    send_frame(g.control, SBX_GUARD_FAILED, ECANCELED, SBX_GUARD_STEP_REQUEST, false);
    return 0;
  }
  send_frame(g.control, SBX_GUARD_STARTED, 0, 0, false);
  g.leader = fork_command(cmd, &failure);
  if (g.leader < 0) {
    if (report_as_shell(cmd, &failure, &code))
      send_frame(g.control, SBX_GUARD_EXITED, code, false, false);
    else
      send_frame(g.control, SBX_GUARD_FAILED, failure.error, failure.step, false);
    return 0;
  }
  for (int i = 0; i < SBX_GUARD_FD_MAX; i++) {
    if (i != SBX_GUARD_FD_CONTROL)
      close_fd(&cmd->fd[i]);
  }
  return watch(&g);
}

/* ---- helper --------------------------------------------------------------------------------- */

/* Kills what a killed guard left to us and, if asked to, the guards. These are in our session; a
 * command never is. True when there was something to kill, which may need a further look. */
static bool kill_children(bool guards_too) {
  static child_list list;
  bool found = false;
  list_children(&list);
  for (size_t i = 0; i < list.count; i++) {
    if (!guards_too && getsid(list.pid[i]) == getpid())
      continue;
    found = true;
    kill(list.pid[i], SIGKILL);
    waitpid(list.pid[i], NULL, WNOHANG);
  }
  return found;
}

/* Collects guards that have ended, and goes on with killing what such a one has left: for as long
 * as `*sweep_limit` says, without waiting. A guard that its command has stopped, to escape the
 * limit, is sent on. False when there are no children at all. */
static bool collect_guards(int64_t *sweep_limit) {
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
    if (WIFSTOPPED(status))
      kill(pid, SIGCONT);
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      *sweep_limit = now_ms() + KILL_BUDGET_MS;
  }
  if (*sweep_limit != 0 && (!kill_children(false) || now_ms() >= *sweep_limit))
    *sweep_limit = 0;
  return pid == 0;
}

/* The guards see the host's end on their own sockets. One that has not gone by then is stopped, or
 * worse: it is killed, and its command with it. Whoever waits for us, waits for them. */
static void end_children(int64_t sweep_limit) {
  for (int64_t limit = now_ms() + CLOSE_BUDGET_MS;
       collect_guards(&sweep_limit) && now_ms() < limit;)
    wait_event(-1, POLL_MS);
  for (int64_t limit = now_ms() + KILL_BUDGET_MS; kill_children(true) && now_ms() < limit;)
    wait_event(-1, POLL_MS);
}

typedef enum request_kind {
  REQUEST_COMMAND,
  REQUEST_END,     /* ordered, or the host does not speak our language */
  REQUEST_HUNG_UP, /* without a word */
} request_kind;

static request_kind receive_request(command *cmd) {
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
    n = recvmsg(SBX_GUARD_SOCKET_FD, &msg, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  /* A reset: the host ended before it had read everything. */
  if (n == 0 || (n < 0 && errno == ECONNRESET))
    return REQUEST_HUNG_UP;
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
  char failed[SBX__NAME_SHOWN];
  sbx_local_root root;
  if (name == NULL)
    return;
  for (int64_t limit = now_ms() + HOST_BUDGET_MS; getppid() == host && now_ms() < limit;)
    wait_event(-1, POLL_MS);
  if (getppid() == host)
    return;
  sbx_local_root_init(&root, SBX_GUARD_ROOT_FD, NULL);
  sbx__local_remove(&root, SBX_GUARD_PARENT_FD, name, failed);
}

/* `directory` is NULL when there is none to remove. */
static int helper_main(const char *directory) {
  static command cmd;
  pid_t host = getppid();
  request_kind kind = REQUEST_COMMAND;
  int64_t sweep_limit = 0;
  send_frame(SBX_GUARD_SOCKET_FD, SBX_GUARD_HELLO, 0, 0, false);
  for (;;) {
    collect_guards(&sweep_limit);
    if (!wait_event(SBX_GUARD_SOCKET_FD, sweep_limit != 0 ? POLL_MS : -1))
      continue;
    kind = receive_request(&cmd);
    if (kind != REQUEST_COMMAND)
      break;
    pid_t pid = fork();
    if (pid == 0) {
      close(SBX_GUARD_SOCKET_FD);
      return guard_main(&cmd);
    }
    if (pid < 0)
      send_frame(cmd.fd[SBX_GUARD_FD_CONTROL], SBX_GUARD_FAILED, errno, SBX_GUARD_STEP_FORK, false);
    for (int i = 0; i < SBX_GUARD_FD_MAX; i++)
      close_fd(&cmd.fd[i]);
  }
  end_children(sweep_limit);
  if (kind == REQUEST_HUNG_UP)
    remove_directory(directory, host);
  return 0;
}

int main(int argc, char **argv) {
  struct sigaction child = {.sa_handler = on_child};
  const char *directory = argc > 1 ? argv[1] : NULL;
  sigset_t blocked;
  close_from(directory != NULL ? SBX_GUARD_PARENT_FD + 1 : SBX_GUARD_SOCKET_FD + 1);
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
  become_subreaper();
  return helper_main(directory);
}
