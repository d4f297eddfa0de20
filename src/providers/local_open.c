/* local_open.c - opening beneath one directory, and never outside it.
 *
 * Invariant: what this opens is below the root at the time of the open, whatever others rename
 * meanwhile. Nothing of the core is used here: the helper program has this file too. */
#include "providers/local_open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#if defined(SYS_openat2) && __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#define HAVE_OPENAT2 1
#endif
#endif

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

enum { OPEN_TRIES = 32 /* while others rename what the path goes through */ };

#ifdef HAVE_OPENAT2
static int open_resolved(int dir, const char *path, int flags, sbx__local_way way) {
  struct open_how how = {.flags = (unsigned)flags,
                         .resolve =
                             RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS |
                             (way == SBX__LOCAL_STAY ? RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV : 0)};
  long fd = -1;
  for (int i = 0; i < OPEN_TRIES; i++) {
    fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
      break;
  }
  return (int)fd;
}
#endif

/* One part of a path, which must not be a link. */
static int open_part(int dir, const char *name, int flags) {
  struct stat st;
  int fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    int error = errno;
    bool is_link = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
    errno = is_link ? ELOOP : error;
    return -1;
  }
  /* O_PATH opens the link itself. */
  if ((flags & O_NOFOLLOW) == 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode)) {
    close(fd);
    errno = ELOOP;
    return -1;
  }
  return fd;
}

static int open_by_parts(int root, const char *path, int flags) {
  int dir = root;
  for (;;) {
    char name[NAME_MAX + 1];
    size_t len = strcspn(path, "/");
    int fd = -1;
    bool last = path[len] == '\0';
    if (len > NAME_MAX) {
      errno = ENAMETOOLONG;
    } else {
      memcpy(name, path, len);
      name[len] = '\0';
      if (strcmp(name, "..") == 0)
        errno = ELOOP; /* only ever out of a link */
      else
        fd = open_part(dir, name, last ? flags : O_PATH | O_DIRECTORY);
    }
    int error = errno;
    if (dir != root)
      close(dir);
    errno = error;
    if (fd < 0 || last)
      return fd;
    dir = fd;
    path += len + 1;
  }
}

int sbx__local_open(const sbx_local_root *root, const char *path, int flags, sbx__local_way way) {
  flags |= O_CLOEXEC;
#ifdef HAVE_OPENAT2
  if (!root->walk)
    return open_resolved(root->fd, path, flags, way);
#endif
  (void)way;
  return open_by_parts(root->fd, path, flags);
}

/* Missing in old kernels, and forbidden by the filters of some containers. Asked once. */
static bool has_openat2(int dir) {
#ifdef HAVE_OPENAT2
  static atomic_int answer; /* 0: not asked yet, 1: yes, 2: no */
  if (atomic_load(&answer) == 0) {
    int fd = open_resolved(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, SBX__LOCAL_FOLLOW);
    atomic_store(&answer, fd < 0 && (errno == ENOSYS || errno == EPERM) ? 2 : 1);
    if (fd >= 0)
      close(fd);
  }
  return atomic_load(&answer) == 1;
#else
  (void)dir;
  return false;
#endif
}

void sbx_local_root_init(sbx_local_root *root, int fd, const char *path) {
  *root = (sbx_local_root){fd, path, !has_openat2(fd), NULL};
}

bool sbx_local_root_is_there(const sbx_local_root *root) {
  struct stat mine, there;
  return fstat(root->fd, &mine) == 0 && lstat(root->path, &there) == 0 &&
         mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

bool sbx__is_dot(const char *name) {
  return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

DIR *sbx__stream_of(int fd) {
  if (fd < 0)
    return NULL;
  DIR *dir = fdopendir(fd);
  if (dir == NULL) {
    int error = errno;
    close(fd);
    errno = error;
  }
  return dir;
}
