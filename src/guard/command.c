/* command.c - starting one command: its spec, its descriptors, its program.
 *
 * Invariant: the command gets the descriptors that are placed here and no others, default signals,
 * and a session of its own. */
#include "guard/command.h"

#include "guard/confine.h"
#include "guard/system.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

bool sbx__guard_load_spec(sbx__guard_command *cmd) {
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
  size_t named = (size_t)head.argc + head.envc, count = named + head.extra + head.cwd;
  if (head.magic != SBX_GUARD_MAGIC || head.argc == 0 || head.extra > 1 || head.cwd > 1 ||
      count > size)
    return false;
  /* Each of the two lists ends with a NULL. */
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
    if (i >= named + head.extra)
      cmd->cwd = base + at;
    else if (i >= named)
      cmd->file = base + at;
    else
      list[i < head.argc ? i : i + 1] = base + at;
    at = (size_t)(end - base) + 1;
  }
  return list[0] != NULL;
}

void sbx__guard_remove_file(sbx__guard_command *cmd) {
  if (cmd->file != NULL && strchr(cmd->file, '/') == NULL)
    unlinkat(cmd->fd[SBX_GUARD_FD_CWD], cmd->file, 0);
  cmd->file = NULL;
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
static int exec_command(const sbx__guard_command *cmd) {
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

static bool place_fds(const sbx__guard_command *cmd) {
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
static _Noreturn void run_command(const sbx__guard_command *cmd, pid_t guard_pid, int error_fd) {
  sbx__start_error failure = {SBX_GUARD_STEP_EXEC, 0};
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
  signal(SBX__NO_MEMORY, SIG_DFL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (fchdir(cmd->fd[SBX_GUARD_FD_CWD]) != 0) {
    failure.step = SBX_GUARD_STEP_CWD;
    failure.error = errno;
  } else if (!place_fds(cmd) || (isatty(STDIN_FILENO) && ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0)) {
    failure.error = errno;
  } else if (cmd->confine != NULL && (failure.error = sbx__confine_enter(cmd->confine)) != 0) {
    failure.step = SBX_GUARD_STEP_CONFINE;
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
pid_t sbx__guard_start(const sbx__guard_command *cmd, sbx__start_error *failure) {
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
    *failure = (sbx__start_error){SBX_GUARD_STEP_FORK, errno};
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

bool sbx__guard_report_as_shell(const sbx__guard_command *cmd, const sbx__start_error *failure,
                                int *code) {
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
