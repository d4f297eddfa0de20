/* helper.c - the helper program, seen from the library.
 *
 * Invariant: this process is never forked (posix_spawn shares its memory until the exec), never
 * waits for a child that is not the helper, and leaves SIGCHLD alone: the host may do with it what
 * it likes. What the library must know comes over sockets. */
#include "providers/local/local.h"

#include "core/err.h"
#include "core/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#endif

enum {
  END_BUDGET_MS = 1000, /* of sbx__helper_end_now() */
  POLL_MS = 5,          /* between two looks at a process that has no pidfd */
  MAX_SETUP = 1 << 20,
  FIRST_FREE_FD = 10 /* beyond the numbers that the helper is given */
};

void sbx__close_fd(int *fd) {
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
}

int sbx__local_sys_fail(sbx_err *err, const char *what, int error) {
  int code = error == ENOMEM                      ? SBX_ENOMEM
             : error == ENOSPC || error == EDQUOT ? SBX_EQUOTA
                                                  : SBX_EPROVIDER;
  return sbx_err_set(err, code, "cannot %s: %s", what, sbx_err_system(error));
}

void sbx__helper_init(sbx__helper *helper) {
  *helper = (sbx__helper){.fd = -1, .pidfd = -1, .first = -1, .listener = -1};
}

/* ---- start ---------------------------------------------------------------------------------- */

/* -1 where the kernel has none; that is asked once. */
static int open_pidfd(pid_t pid) {
  int fd = -1;
#ifdef SYS_pidfd_open
  static atomic_bool missing;
  if (!atomic_load(&missing)) {
    fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0 && errno == ENOSYS)
      atomic_store(&missing, true);
  }
#else
  (void)pid;
#endif
  return fd;
}

/* What the helper is given: its socket, and the directory that it may have to remove. */
typedef struct gift {
  const char *name; /* NULL: no directory */
  int socket;
  int root;
  int parent;
  int setup; /* of an isolated sandbox; -1 */
} gift;

static int add_fds(posix_spawn_file_actions_t *actions, const gift *g) {
  int rc = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDWR, 0);
  if (rc == 0)
    rc = posix_spawn_file_actions_adddup2(actions, 0, 1);
  if (rc == 0)
    rc = posix_spawn_file_actions_adddup2(actions, 0, 2);
  if (rc == 0)
    rc = posix_spawn_file_actions_adddup2(actions, g->socket, SBX_GUARD_SOCKET_FD);
  if (rc == 0 && g->root >= 0)
    rc = posix_spawn_file_actions_adddup2(actions, g->root, SBX_GUARD_ROOT_FD);
  if (rc == 0 && g->parent >= 0)
    rc = posix_spawn_file_actions_adddup2(actions, g->parent, SBX_GUARD_PARENT_FD);
  if (rc == 0 && g->setup >= 0)
    rc = posix_spawn_file_actions_adddup2(actions, g->setup, SBX_GUARD_SETUP_FD);
  return rc;
}

/* Default signals, an own session, and nothing open but what it is given: no key of this process is
 * in its memory, its environment or its descriptors. */
static int spawn(pid_t *pid, const char *program, const gift *g) {
  char name[] = "sbx_guard";
  char isolated[] = SBX_GUARD_ISOLATED;
  char *argv[] = {name, g->setup >= 0 ? isolated : (char *)(uintptr_t)g->name, NULL};
  char *env[] = {NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  int rc = posix_spawn_file_actions_init(&actions);
  if (rc != 0)
    return rc;
  rc = posix_spawnattr_init(&attr);
  if (rc != 0)
    goto done;
  posix_spawnattr_setsigdefault(&attr, &all);
  posix_spawnattr_setsigmask(&attr, &none);
  posix_spawnattr_setflags(
      &attr, (short)(POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
  rc = add_fds(&actions, g);
  if (rc == 0)
    rc = posix_spawn(pid, program, &actions, &attr, argv, env);
  posix_spawnattr_destroy(&attr);
done:
  posix_spawn_file_actions_destroy(&actions);
  return rc;
}

/* A copy of `fd` that stands in the way of none of the numbers above. False and errno. */
static bool copy_fd(int *out, int fd) {
  *out = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
  return *out >= 0;
}

/* What the sandbox shall be, and whose its processes are when we are root. */
static int make_setup(gift *g, const sbx_session *session, sbx_err *err) {
  const sbx_local_root *root = &session->workspace->root;
  sbx_buf buf;
  int fd = -1;
  sbx_buf_init(&buf, MAX_SETUP);
  int rc = sbx__isolated_setup(&buf, &session->config->isolation, root->gives ? root->uid : 0,
                               root->gives ? root->gid : 0, session->proxy_port,
                               g->name != NULL ? g->name : "");
  rc = rc == SBX_OK ? sbx__local_memory_file(&fd, session->config, sbx_buf_slice(&buf),
                                             sbx_slice_of(NULL, 0), err)
                    : sbx_err_set(err, rc, NULL);
  sbx_buf_deinit(&buf);
  if (rc == SBX_OK && !copy_fd(&g->setup, fd))
    rc = sbx__local_sys_fail(err, "start the helper program", errno);
  sbx__close_fd(&fd);
  return rc;
}

/* What makes the walls must not be anybody's to change. */
static int check_program(const char *program, sbx_err *err) {
  struct stat st;
  if (stat(program, &st) != 0 || (st.st_mode & S_IWOTH) == 0)
    return SBX_OK; /* or the start tells */
  return sbx_err_set(err, SBX_EBINARY,
                     "every user of this machine may write to the helper program %s, which makes "
                     "the walls of the sandbox; nothing was run. See who has changed it, reinstall "
                     "it, and take that right away (chmod o-w)",
                     program);
}

int sbx__helper_start(sbx__helper *helper, const sbx_session *session, sbx_err *err) {
  const sbx__workspace *workspace = session->workspace;
  const char *program = session->config->guard_path;
  bool ours = workspace->parent >= 0, isolated = session->config->isolation.wanted;
  gift g = {ours ? workspace->name : NULL, -1, -1, -1, -1};
  int pair[2];
  int rc = isolated ? check_program(program, err) : SBX_OK;
  if (rc == SBX_OK && isolated)
    rc = make_setup(&g, session, err);
  if (rc != SBX_OK)
    return rc;
  if (sbx_os_socketpair(pair) != 0)
    return sbx__local_sys_fail(err, "make a socket", errno);
  bool copied = copy_fd(&g.socket, pair[1]) &&
                (!(ours || isolated) || copy_fd(&g.root, workspace->root.fd)) &&
                (!ours || copy_fd(&g.parent, workspace->parent));
  int error = copied ? spawn(&helper->pid, program, &g) : errno;
  close(pair[1]);
  sbx__close_fd(&g.socket);
  sbx__close_fd(&g.root);
  sbx__close_fd(&g.parent);
  sbx__close_fd(&g.setup);
  if (error != 0) {
    close(pair[0]);
    helper->pid = 0;
    if (error == ENOENT || error == EACCES || error == ENOEXEC || error == ENOTDIR)
      return sbx_err_set(err, SBX_EBINARY, "cannot run the helper program %s: %s", program,
                         sbx_err_system(error));
    return sbx__local_sys_fail(err, "start the helper program", error);
  }
  helper->fd = pair[0];
  helper->isolated = isolated;
  helper->pidfd = open_pidfd(helper->pid);
  return SBX_OK;
}

/* ---- send ----------------------------------------------------------------------------------- */

int sbx__helper_send(sbx__helper *helper, const int slots[SBX_GUARD_FD_MAX]) {
  int fds[SBX_GUARD_FD_MAX];
  size_t count = 0;
  for (int i = 0; i < SBX_GUARD_FD_MAX; i++) {
    if (slots[i] >= 0)
      fds[count++] = slots[i];
  }
  sbx_guard_request request = {SBX_GUARD_MAGIC, (uint32_t)count, slots[SBX_GUARD_FD_CWD] < 0};
  union {
    struct cmsghdr align;
    char space[CMSG_SPACE(sizeof(int) * SBX_GUARD_FD_MAX)];
  } control;
  struct iovec part = {&request, sizeof request};
  struct msghdr msg = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
  memset(&control, 0, sizeof control);
  struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int) * count);
  memcpy(CMSG_DATA(head), fds, sizeof(int) * count);
  if (helper->fd < 0)
    return EPIPE;
  sbx__helper_continue(helper);
  /* So small a message is taken as a whole or not at all. */
  if (sendmsg(helper->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof request)
    return 0;
  switch (errno) {
  case EAGAIN:
  case EINTR:
  case ENOBUFS:
  case ETOOMANYREFS: /* too many descriptors of this user are under way */
    return EAGAIN;
  case ECONNRESET:
  case ENOTCONN:
    return EPIPE;
  default:
    return errno;
  }
}

/* ---- end ------------------------------------------------------------------------------------ */

/* By number a signal could hit a stranger, should somebody else have collected the helper. */
static void send_signal(sbx__helper *helper, int number) {
#ifdef SYS_pidfd_send_signal
  if (helper->pidfd >= 0) {
    syscall(SYS_pidfd_send_signal, helper->pidfd, number, NULL, 0);
    return;
  }
#endif
  if (!sbx__helper_collect(helper))
    kill(helper->pid, number);
}

void sbx__helper_continue(sbx__helper *helper) {
  if (helper->pid != 0)
    send_signal(helper, SIGCONT);
}

void sbx__helper_hang_up(sbx__helper *helper) {
  char order = SBX_GUARD_ORDER_CLOSE;
  if (helper->fd < 0)
    return;
  /* Should this fail, the helper sees that we live, after a while. */
  send(helper->fd, &order, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  shutdown(helper->fd, SHUT_WR);
  sbx__helper_continue(helper);
}

int sbx__helper_hear(sbx__helper *helper, sbx_guard_hello *hello) {
  int fds[2] = {-1, -1};
  union {
    struct cmsghdr align;
    char space[CMSG_SPACE(sizeof fds)];
  } control;
  struct iovec part = {hello, helper->isolated ? sizeof *hello : sizeof hello->frame};
  struct msghdr msg = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = sizeof control.space};
  ssize_t n = sbx_os_recvmsg(helper->fd, &msg, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return EAGAIN;
  const struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
  if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
    memcpy(fds, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
  helper->first = fds[0];
  helper->listener = fds[1];
  bool good = n == (ssize_t)part.iov_len &&
              (hello->frame.kind == SBX_GUARD_HELLO || hello->frame.kind == SBX_GUARD_FAILED);
  return good ? 0 : EPROTO;
}

/* The number of the first process is its namespace's: that it was collected, or can be, says that
 * the kernel has ended all others. */
static bool is_empty(sbx__helper *helper) {
  static sbx_guard_hello hello; /* of one that nobody has waited for; nobody reads it */
  if (helper->first < 0 && sbx__helper_hear(helper, &hello) != 0)
    return false;
  struct pollfd p = {helper->first, POLLIN, 0};
  return helper->first >= 0 && poll(&p, 1, 0) == 1;
}

bool sbx__helper_saw_the_end(sbx__helper *helper) {
  sbx_guard_frame frame;
  if (helper->isolated)
    return is_empty(helper);
  while (recv(helper->fd, &frame, sizeof frame, MSG_DONTWAIT) == (ssize_t)sizeof frame) {
    if (frame.kind == SBX_GUARD_GONE)
      return frame.value == 0;
  }
  return false;
}

void sbx__helper_kill(sbx__helper *helper) {
#ifdef SYS_pidfd_send_signal
  if (helper->first >= 0)
    syscall(SYS_pidfd_send_signal, helper->first, SIGKILL, NULL, 0);
#endif
  if (!sbx__helper_collect(helper))
    send_signal(helper, SIGKILL);
}

bool sbx__helper_collect(sbx__helper *helper) {
  pid_t pid = helper->pid;
  if (pid == 0)
    return true;
  int rc = -1;
#ifdef P_PIDFD
  siginfo_t info;
  info.si_pid = 0;
  errno = EINVAL;
  if (helper->pidfd >= 0)
    rc = waitid(P_PIDFD, (id_t)helper->pidfd, &info, WEXITED | WNOHANG);
  if (rc == 0)
    rc = info.si_pid;
  else if (errno == EINVAL)
#endif
    rc = waitpid(pid, NULL, WNOHANG);
  if (rc == 0 || (rc < 0 && errno == EINTR))
    return false;
  helper->pid = 0;
  return true;
}

void sbx__helper_drop(sbx__helper *helper) {
  sbx__close_fd(&helper->fd);
  sbx__close_fd(&helper->pidfd);
  sbx__close_fd(&helper->first);
  sbx__close_fd(&helper->listener);
  helper->pid = 0;
}

void sbx__helper_end_now(sbx__helper *helper) {
  sbx__helper_hang_up(helper);
  for (int waited = 0; !sbx__helper_collect(helper); waited += POLL_MS) {
    struct pollfd p = {helper->pidfd, POLLIN, 0};
    if (waited >= 2 * END_BUDGET_MS)
      break;
    if (waited >= END_BUDGET_MS)
      sbx__helper_kill(helper);
    poll(&p, helper->pidfd >= 0, POLL_MS);
  }
  sbx__helper_drop(helper);
}
