/* monitor.c - what stays outside of an isolated sandbox.
 *
 * Invariant: it holds nothing of the host's but the workspace, so that the end of the host's socket
 * reaches the first process; and it ends only after that has ended, when the kernel has emptied the
 * namespace. */
#include "guard/monitor.h"

#ifdef __linux__

#include "guard/directory.h"
#include "guard/init.h"
#include "guard/ns.h"
#include "guard/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct sandbox {
  sbx_guard_setup setup;
  const char *directory; /* NULL: there is none to remove */
  sbx__view_mount mounts[SBX_GUARD_MOUNTS_MAX];
  sbx_guard_hello hello;
} sandbox;

/* The next string of the file; NULL: it is cut off. */
static const char *next_string(const char **at, const char *end) {
  const char *text = *at;
  const char *nul = memchr(text, '\0', (size_t)(end - text));
  if (nul != NULL)
    *at = nul + 1;
  return nul != NULL ? text : NULL;
}

/* Of the host's: it is believed. But a mount that climbs out of the view is nobody's wish. */
static bool load_setup(sandbox *s) {
  struct stat st;
  if (fstat(SBX_GUARD_SETUP_FD, &st) != 0 || st.st_size <= (off_t)sizeof s->setup)
    return false;
  const char *base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, SBX_GUARD_SETUP_FD, 0);
  if (base == MAP_FAILED)
    return false;
  const char *at = base + sizeof s->setup, *end = base + st.st_size;
  memcpy(&s->setup, base, sizeof s->setup);
  close(SBX_GUARD_SETUP_FD);
  if (s->setup.magic != SBX_GUARD_MAGIC || s->setup.mounts > SBX_GUARD_MOUNTS_MAX)
    return false;
  const char *name = next_string(&at, end);
  for (size_t i = 0; name != NULL && i < s->setup.mounts; i++) {
    sbx__view_mount *m = &s->mounts[i];
    m->fd = -1;
    m->from = next_string(&at, end);
    m->to = m->from != NULL ? next_string(&at, end) : NULL;
    if (m->to == NULL || m->to[0] != '/' || strstr(m->to, "/..") != NULL)
      return false;
  }
  s->directory = name != NULL && *name != '\0' ? name : NULL;
  return name != NULL;
}

/* The first layer that has an error. */
static int blamed(const sbx_guard_hello *hello) {
  for (int i = 0; i < SBX_LAYER_COUNT; i++) {
    if (hello->layers[i].error != 0)
      return i;
  }
  return SBX_LAYER_USERNS;
}

static void fail(sandbox *s, int layer) {
  s->hello.frame = (sbx_guard_frame){SBX_GUARD_FAILED, layer, 0, 0, 0, 0, 0};
  sbx__init_say(&s->hello, NULL, 0);
}

/* The first process gets the workspace as its directory: a path to it may lead through what only
 * root may enter. */
static pid_t start(sandbox *s) {
  sbx__view view = {s->mounts, s->setup.mounts};
  sbx__ns_ids before;
  if (geteuid() == 0)
    sbx__view_take(&view);
  sbx__ns_look(&before);
  if (!sbx__ns_drop(&s->setup, &s->hello)) {
    fail(s, SBX_LAYER_USERNS);
    return -1;
  }
  if (fchdir(SBX_GUARD_ROOT_FD) != 0) {
    sbx__layer_note(&s->hello, SBX_LAYER_MOUNTS, SBX_STEP_WORKSPACE, errno);
    fail(s, SBX_LAYER_MOUNTS);
    return -1;
  }
  sbx__ns_owner owner = {geteuid(), getegid()};
  pid_t pid = sbx__ns_fork(&s->setup, &s->hello);
  if (pid == 0)
    _exit(sbx__init_main(&s->setup, &view, &before, &owner, &s->hello));
  if (pid < 0) {
    fail(s, blamed(&s->hello));
    return -1;
  }
  for (size_t i = 0; i < s->setup.mounts; i++)
    sbx__guard_close(&s->mounts[i].fd);
  return pid;
}

int sbx__monitor_main(void) {
  static sandbox s;
  pid_t host = getppid();
  int status = 0;
  umask(077);
  /* Of a workspace that was given there is no parent. Its number stays taken: it is closed later,
   * and would else be that of something that is opened here. */
  if (fcntl(SBX_GUARD_PARENT_FD, F_GETFD) < 0)
    dup2(STDIN_FILENO, SBX_GUARD_PARENT_FD);
  for (int fd = SBX_GUARD_SOCKET_FD; fd <= SBX_GUARD_SETUP_FD; fd++)
    fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (!load_setup(&s))
    return 1;
  pid_t pid = start(&s);
  close(SBX_GUARD_SOCKET_FD);
  if (chdir("/") != 0 || pid < 0)
    return 1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  /* A host that lives has said so, or is told by us that there is no sandbox. */
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : SBX__INIT_HUNG_UP;
  if (code == SBX__INIT_HUNG_UP || (code == SBX__INIT_FAILED && getppid() != host)) {
    sbx__ns_return();
    sbx__guard_remove_directory(s.directory, host);
  }
  return 0;
}

#else

int sbx__monitor_main(void) {
  return 1;
}

#endif
