/* open.c - opening beneath one directory, and never outside it.
 *
 * Links that the kernel does not follow for us, absolute ones and, without openat2(), all of them,
 * are followed as text: each is read and put into the path. What is opened in the end is a path
 * without links, in the same guarded way as any other.
 *
 * Invariant: what this opens is below the root at the time of the open, whatever others rename
 * meanwhile. Nothing of the core is used here: the helper program has this file too. */
#include "guard/open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
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

enum {
  OPEN_TRIES = 32, /* while others rename what the path goes through */
  MAX_LINKS = 40,  /* followed as text, as many as the kernel follows */
  MAX_STEPS = 4096 /* more than the longest path has parts: links must not keep a thread for long */
};

#ifdef HAVE_OPENAT2
static int open_resolved(int dir, const char *path, int flags, unsigned resolve) {
  struct open_how how = {.flags = (unsigned)flags,
                         .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve};
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
    char name[NAME_MAX + 2];
    size_t len = strcspn(path, "/");
    int fd = -1;
    bool last = path[len] == '\0';
    if (len > NAME_MAX) {
      errno = ENAMETOOLONG;
    } else {
      memcpy(name, path, len);
      memcpy(name + len, len > 0 ? "" : ".", len > 0 ? 1 : 2); /* "a//b" is "a/./b" */
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

/* ---- links as text ---- */

typedef struct text_path {
  char done[SBX__LOCAL_PATH_LIMIT]; /* below the root, without links; "" for the root itself */
  char rest[SBX__LOCAL_PATH_LIMIT]; /* still to resolve, from there on */
  int dir;                          /* `done`, open, so that no part costs a walk from the root */
  int links;
  int steps; /* parts that were looked at */
} text_path;

static int open_plain(const sbx_local_root *root, const char *path, int flags) {
  path = path[0] != '\0' ? path : ".";
#ifdef HAVE_OPENAT2
  if (!root->walk)
    return open_resolved(root->fd, path, flags, RESOLVE_NO_SYMLINKS);
#endif
  return open_by_parts(root->fd, path, flags);
}

static const char *below(const char *root, const char *path) {
  size_t len = root != NULL ? strlen(root) : 0;
  while (len > 0 && root[len - 1] == '/')
    len--;
  bool is_below = root != NULL && strncmp(root, path, len) == 0 && (path[len] == '/' || !path[len]);
  return is_below ? path + len : NULL;
}

const char *sbx__local_below(const sbx_local_root *root, const char *path) {
  const char *inside = below(root->path, path);
  return inside != NULL ? inside : below(root->given, path);
}

static void leave_dir(text_path *p) {
  if (p->dir >= 0)
    close(p->dir);
  p->dir = -1;
}

static int enter_dir(const sbx_local_root *root, text_path *p) {
  if (p->dir >= 0)
    return 0;
  for (const char *c = p->done; *c != '\0'; c++)
    p->steps += *c == '/';
  p->dir = open_plain(root, p->done, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return p->dir >= 0 ? 0 : errno;
}

/* Puts what the link says in the place of its name. Errno value or 0. */
static int follow_text(const sbx_local_root *root, text_path *p, const char *link) {
  char rest[SBX__LOCAL_PATH_LIMIT];
  bool absolute = link[0] == '/';
  const char *inside = absolute ? sbx__local_below(root, link) : link;
  if (inside == NULL)
    return EXDEV;
  if (++p->links > MAX_LINKS)
    return ELOOP;
  int len = snprintf(rest, sizeof rest, "%s/%s", inside, p->rest);
  if (len < 0 || (size_t)len >= sizeof rest)
    return ENAMETOOLONG;
  memcpy(p->rest, rest, (size_t)len + 1);
  if (absolute) {
    p->done[0] = '\0';
    leave_dir(p);
  }
  return 0;
}

static int append_part(text_path *p, const char *name) {
  size_t at = strlen(p->done);
  int len = snprintf(p->done + at, sizeof p->done - at, "%s%s", at > 0 ? "/" : "", name);
  return len >= 0 && (size_t)len < sizeof p->done - at ? 0 : ENAMETOOLONG;
}

/* The next part is no link. What is not there is for the open to say, if it is the last one. */
static int take_plain(text_path *p, const char *name) {
  int next = -1;
  if (p->rest[0] != '\0') {
    next = open_part(p->dir, name, O_PATH | O_DIRECTORY);
    if (next < 0)
      return errno;
  }
  leave_dir(p);
  p->dir = next;
  return append_part(p, name);
}

/* Takes the next part, called `name`, which is no dot. Errno value or 0. */
static int take_part(const sbx_local_root *root, text_path *p, const char *name) {
  char link[SBX__LOCAL_PATH_LIMIT];
  int error = enter_dir(root, p);
  if (error != 0)
    return error;
  ssize_t n = readlinkat(p->dir, name, link, sizeof link - 1);
  if (n >= 0) {
    link[n] = '\0';
    return follow_text(root, p, link);
  }
  return errno == EINVAL || errno == ENOENT ? take_plain(p, name) : errno;
}

static int take_parent(text_path *p) {
  char *slash = strrchr(p->done, '/');
  if (p->done[0] == '\0')
    return EXDEV;
  *(slash != NULL ? slash : p->done) = '\0';
  leave_dir(p);
  return 0;
}

/* Errno value or 0; then `done` is the whole path, whose last part may be a link if `keep_last`. */
static int resolve_text(const sbx_local_root *root, text_path *p, bool keep_last) {
  int error = 0;
  while (error == 0 && p->rest[0] != '\0') {
    char name[NAME_MAX + 1];
    size_t len = strcspn(p->rest, "/");
    size_t next = len + strspn(p->rest + len, "/");
    if (len > NAME_MAX)
      return ENAMETOOLONG;
    memcpy(name, p->rest, len);
    name[len] = '\0';
    memmove(p->rest, p->rest + next, strlen(p->rest + next) + 1);
    if (++p->steps > MAX_STEPS)
      return ELOOP;
    if (len == 0 || strcmp(name, ".") == 0)
      continue;
    if (strcmp(name, "..") == 0)
      error = take_parent(p);
    else if (keep_last && p->rest[0] == '\0')
      error = append_part(p, name);
    else
      error = take_part(root, p, name);
  }
  return error;
}

static int open_following(const sbx_local_root *root, const char *path, int flags) {
  text_path p = {.dir = -1};
  size_t len = strlen(path);
  int error = len < sizeof p.rest ? 0 : ENAMETOOLONG;
  if (error == 0) {
    memcpy(p.rest, path, len + 1);
    error = resolve_text(root, &p, (flags & O_NOFOLLOW) != 0);
    leave_dir(&p);
  }
  if (error == 0)
    return open_plain(root, p.done, flags);
  errno = error;
  return -1;
}

int sbx__local_open(const sbx_local_root *root, const char *path, int flags, sbx__local_way way) {
  int fd = -1;
  flags |= O_CLOEXEC;
#ifdef HAVE_OPENAT2
  unsigned stay = way == SBX__LOCAL_STAY ? RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV : 0;
  if (!root->walk)
    fd = open_resolved(root->fd, path, flags, stay);
#endif
  if (root->walk)
    fd = open_by_parts(root->fd, path, flags);
  bool refused = fd < 0 && (errno == EXDEV || (root->walk && errno == ELOOP));
  if (refused && way == SBX__LOCAL_FOLLOW)
    fd = open_following(root, path, flags);
  return fd;
}

/* Missing in old kernels, and forbidden by the filters of some containers. Asked once. */
static bool has_openat2(int dir) {
#ifdef HAVE_OPENAT2
  static atomic_int answer; /* 0: not asked yet, 1: yes, 2: no */
  if (atomic_load(&answer) == 0) {
    int fd = open_resolved(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
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
  *root = (sbx_local_root){.fd = fd, .path = path, .walk = !has_openat2(fd)};
}

int sbx_local_root_give(const sbx_local_root *root, int fd) {
#ifdef AT_EMPTY_PATH
  return root->gives ? fchownat(fd, "", root->uid, root->gid, AT_EMPTY_PATH) : 0;
#else
  return root->gives ? fchown(fd, root->uid, root->gid) : 0;
#endif
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
