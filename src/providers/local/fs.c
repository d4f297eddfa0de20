/* fs.c - paths, reading and writing beneath one directory.
 *
 * Invariant: nothing is opened but through sbx__local_open(), or by one plain name in a directory
 * that was opened so, with links not followed. Text checks on the path only make better errors. */
#include "providers/local/fs.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

enum {
  PATH_LIMIT = SBX__LOCAL_PATH_LIMIT,
  HOME_LIMIT = 2 * SBX__LOCAL_PATH_LIMIT, /* of a path with its home in front */
  MAX_LINKS = 16,                         /* followed from the name of a file that is written */
  TEMP_TRIES = 8,                         /* random names that turn out to exist */
  WRITE_CHUNK = 1 << 20                   /* after each, a look whether the write was called off */
};

typedef sbx__local_target target;

#define INSIDE_ADVICE "; give a path inside it, such as \"dir/file\""

/* ---- errors --------------------------------------------------------------------------------- */

static int refuse(sbx_err *err, int code, const char *verb, sbx_slice path, const char *why) {
  sbx_err_set(err, code, "cannot %s \"", verb);
  sbx_err_append_remote(err, path);
  sbx_err_append(err, "\": %s", why);
  return code;
}

int sbx__local_fail(sbx_err *err, const char *verb, const char *path, int error) {
  sbx_slice shown = sbx_slice_str(path);
  switch (error) {
  case ENOENT:
    return refuse(err, SBX_ENOTFOUND, verb, shown, "it does not exist");
  case EXDEV:
  case ELOOP:
    return refuse(
        err, SBX_EPATH, verb, shown,
        "a symbolic link in it leads out of the workspace or nowhere; give a path without "
        "that link");
  case ENOTDIR:
    return refuse(err, SBX_EINVAL, verb, shown, "a file stands where a directory is needed");
  case EISDIR:
    return refuse(err, SBX_EINVAL, verb, shown, "it is a directory");
  case ENXIO:
    return refuse(err, SBX_EINVAL, verb, shown, "it is not a regular file");
  case ENAMETOOLONG:
    return refuse(err, SBX_EINVAL, verb, shown, "the name is too long");
  case EACCES:
  case EPERM:
  case EROFS:
    return refuse(err, SBX_EFORBIDDEN, verb, shown, sbx_err_system(error));
  case ENOSPC:
  case EDQUOT:
    return refuse(err, SBX_EQUOTA, verb, shown, sbx_err_system(error));
  case ENOMEM:
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  case ECANCELED:
    return sbx_err_set(err, SBX_ECANCELED, NULL);
  default:
    return refuse(err, SBX_EPROVIDER, verb, shown, sbx_err_system(error));
  }
}

/* ---- paths ---------------------------------------------------------------------------------- */

static bool has_control(sbx_slice path) {
  for (size_t i = 0; i < path.len; i++) {
    unsigned char c = (unsigned char)path.ptr[i];
    if (c < 0x20 || c == 0x7F)
      return true;
  }
  return false;
}

/* Takes `prefix`, an absolute path, off another one. False when that is not below it. */
static bool strip(const char *prefix, sbx_slice *path) {
  sbx_slice root = sbx_slice_str(prefix);
  while (root.len > 0 && root.ptr[root.len - 1] == '/')
    root.len--;
  if (!sbx_slice_starts_with(*path, root) || (path->len > root.len && path->ptr[root.len] != '/'))
    return false;
  *path = sbx_slice_skip(*path, root.len);
  return true;
}

/* Takes the root's own path off an absolute one. False when it is not below the root. */
static bool strip_root(const sbx_local_root *root, sbx_slice *path) {
  if (path->len == 0 || path->ptr[0] != '/')
    return true;
  return strip(root->path, path) || (root->given != NULL && strip(root->given, path));
}

/* What a path says below the root, its own or its home's path taken off. False when it is not
 * below. `text` is room for it. */
static bool place(const sbx_local_root *root, sbx_slice path, char text[HOME_LIMIT],
                  sbx_slice *rest) {
  bool home = path.len > 0 && path.ptr[0] == '~' && (path.len == 1 || path.ptr[1] == '/');
  *rest = path;
  if (!home)
    return strip_root(root, rest);
  *rest = sbx_slice_skip(path, 1);
  if (root->home == NULL)
    return true;
  int len = snprintf(text, HOME_LIMIT, "%.*s%.*s", PATH_LIMIT, root->home,
                     rest->len < PATH_LIMIT ? (int)rest->len : PATH_LIMIT, rest->ptr);
  *rest = sbx_slice_of(text, (size_t)(len < HOME_LIMIT ? len : HOME_LIMIT - 1));
  return strip_root(root, rest);
}

/* Removes the last part of text[0, len) and returns the new length. */
static size_t without_last(const char *text, size_t len) {
  while (len > 0 && text[len - 1] != '/')
    len--;
  return len > 0 ? len - 1 : 0;
}

int sbx__local_clean(const sbx_local_root *root, const char *verb, sbx_slice path,
                     sbx__clean_path *out, sbx_err *err) {
  char text[HOME_LIMIT];
  sbx_slice rest;
  size_t len = 0;
  if (has_control(path))
    return refuse(err, SBX_EPATH, verb, path, "it has a control character; give it another name");
  if (!place(root, path, text, &rest))
    return refuse(err, SBX_EPATH, verb, path,
                  "it is outside of the workspace (path traversal)" INSIDE_ADVICE);
  if (rest.len >= PATH_LIMIT)
    return refuse(err, SBX_EINVAL, verb, path, "the path is too long");
  out->is_dir = rest.len > 0 && rest.ptr[rest.len - 1] == '/';
  while (rest.len > 0) {
    sbx_slice part = sbx_slice_of(rest.ptr, sbx_slice_find(rest, '/'));
    rest = sbx_slice_skip(rest, part.len + 1);
    if (part.len == 0 || sbx_slice_eq_str(part, "."))
      continue;
    if (sbx_slice_eq_str(part, "..")) {
      if (len == 0)
        return refuse(err, SBX_EPATH, verb, path,
                      "it leaves the workspace (path traversal)" INSIDE_ADVICE);
      len = without_last(out->text, len);
      continue;
    }
    if (part.len > NAME_MAX)
      return refuse(err, SBX_EINVAL, verb, path, "a name in it is too long");
    if (len > 0)
      out->text[len++] = '/';
    memcpy(out->text + len, part.ptr, part.len);
    len += part.len;
  }
  if (len == 0) {
    out->is_dir = true;
    out->text[len++] = '.';
  }
  out->text[len] = '\0';
  return SBX_OK;
}

int sbx__local_clean_file(const sbx_local_root *root, const char *verb, sbx_slice path,
                          sbx__clean_path *out, sbx_err *err) {
  int rc = sbx__local_clean(root, verb, path, out, err);
  if (rc == SBX_OK && out->is_dir)
    return refuse(err, SBX_EINVAL, verb, path, "it names a directory; give the name of a file");
  return rc;
}

/* ---- why it failed --------------------------------------------------------------------------- */

/* The end of a part of `path` about halfway between two others; the first one when there is none.
 */
static size_t end_between(const char *path, size_t from, size_t to) {
  size_t middle = from + (to - from) / 2, end = middle;
  while (end < to && path[end] != '/' && path[end] != '\0')
    end++;
  for (end = end < to ? end : middle; end > from && path[end] != '/' && path[end] != '\0';)
    end--;
  return end;
}

/* Opens the longest start of `path` that is there, if need be the root, and tells its length. All
 * that a path begins with is there when it is, so halves are tried. -1 and errno when anything but
 * absence is in the way. */
static int open_start(const sbx_local_root *root, const char *path, int flags, size_t *length) {
  char part[PATH_LIMIT];
  size_t there = 0, missing = strlen(path) + 1;
  int found = sbx__local_open(root, ".", O_PATH | O_DIRECTORY, SBX__LOCAL_FOLLOW);
  while (found >= 0) {
    size_t end = end_between(path, there, missing);
    if (end == there)
      break;
    memcpy(part, path, end);
    part[end] = '\0';
    int fd = sbx__local_open(root, part, flags, SBX__LOCAL_FOLLOW);
    int error = errno;
    if (fd < 0 && error == ENOENT) {
      missing = end;
      continue;
    }
    close(found);
    errno = error;
    found = fd;
    there = end;
  }
  *length = there;
  return found;
}

/* The length of `path` with one part more than its first `len` bytes. */
static size_t with_next(const char *path, size_t len) {
  len += len > 0;
  return len + strcspn(path + len, "/");
}

/* Whether `path`, which could not be found, goes through a link that leads nowhere. */
static bool is_dangling(const sbx_local_root *root, const char *path) {
  char part[PATH_LIMIT];
  size_t len;
  int fd = open_start(root, path, O_PATH, &len);
  if (fd < 0)
    return false;
  close(fd);
  if (path[len] == '\0')
    return false;
  len = with_next(path, len);
  memcpy(part, path, len);
  part[len] = '\0';
  fd = sbx__local_open(root, part, O_PATH | O_NOFOLLOW, SBX__LOCAL_FOLLOW);
  if (fd >= 0)
    close(fd);
  return fd >= 0;
}

int sbx__local_fail_beneath(const sbx_local_root *root, const char *verb, const char *path,
                            int error, sbx_err *err) {
  if ((error == ENOENT || error == ELOOP) && !sbx_local_root_is_there(root))
    return sbx_err_set(err, SBX_ELOST, "the workspace folder %s no longer exists", root->path);
  if (error == ENOENT && is_dangling(root, path))
    error = ELOOP;
  return sbx__local_fail(err, verb, path, error);
}

int sbx_local_fs_open_dir(const sbx_local_root *root, sbx_slice path, int *out, sbx_err *err) {
  static const char *const verb = "run in";
  sbx__clean_path at;
  int rc = sbx__local_clean(root, verb, path, &at, err);
  if (rc != SBX_OK)
    return rc;
  *out = sbx__local_open(root, at.text, O_RDONLY | O_DIRECTORY, SBX__LOCAL_FOLLOW);
  if (*out >= 0)
    return SBX_OK;
  rc = sbx__local_fail_beneath(root, verb, at.text, errno, err);
  if (rc == SBX_ENOTFOUND || rc == SBX_EINVAL) {
    err->code = SBX_EINVAL;
    sbx_err_append(err, SBX__CWD_ADVICE);
  }
  return err->code;
}

/* ---- read ----------------------------------------------------------------------------------- */

static int too_big(const sbx_buf *out, const char *verb, const char *path, sbx_err *err) {
  refuse(err, SBX_ETOOBIG, verb, sbx_slice_str(path), "it is larger than ");
  sbx_err_append(err, "the limit of %zu bytes", out->max);
  return SBX_ETOOBIG;
}

/* The size may be wrong by the time the bytes come: reads to the end, whatever it said. */
static int read_bytes(int fd, size_t size, sbx_buf *out, const char *verb, const char *path,
                      sbx_err *err) {
  char extra[4096];
  size_t end = out->len + size;
  if (sbx_buf_reserve(out, size) != SBX_OK)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  for (;;) {
    bool expected = out->len < end;
    ssize_t n =
        expected ? read(fd, out->ptr + out->len, end - out->len) : read(fd, extra, sizeof extra);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return sbx__local_fail(err, verb, path, errno);
    if (n == 0)
      return SBX_OK;
    if (expected) {
      out->len += (size_t)n;
      out->ptr[out->len] = '\0';
      continue;
    }
    int rc = sbx_buf_append(out, extra, (size_t)n);
    if (rc == SBX_ETOOBIG)
      return too_big(out, verb, path, err);
    if (rc != SBX_OK)
      return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
}

int sbx__local_open_file(const sbx_local_root *root, const char *verb, const char *path,
                         struct stat *st, sbx_err *err) {
  /* Without O_NONBLOCK the open of a named pipe would wait for a writer. */
  int fd = sbx__local_open(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, SBX__LOCAL_FOLLOW);
  if (fd < 0) {
    sbx__local_fail_beneath(root, verb, path, errno, err);
    return -1;
  }
  bool looked = fstat(fd, st) == 0;
  if (looked && S_ISREG(st->st_mode))
    return fd;
  sbx__local_fail(err, verb, path, !looked ? errno : S_ISDIR(st->st_mode) ? EISDIR : ENXIO);
  close(fd);
  return -1;
}

int sbx_local_fs_read(const sbx_local_root *root, sbx_slice path, sbx_buf *out, sbx_err *err) {
  static const char *const verb = "read";
  sbx__clean_path at;
  struct stat st;
  int rc = sbx__local_clean_file(root, verb, path, &at, err);
  if (rc != SBX_OK)
    return rc;
  int fd = sbx__local_open_file(root, verb, at.text, &st, err);
  if (fd < 0)
    return err->code;
  if ((uintmax_t)st.st_size > out->max - out->len)
    rc = too_big(out, verb, at.text, err);
  else
    rc = read_bytes(fd, (size_t)st.st_size, out, verb, at.text, err);
  close(fd);
  return rc;
}

/* ---- write ---------------------------------------------------------------------------------- */

bool sbx__local_split(const char *path, char *dir, char *name) {
  const char *slash = strrchr(path, '/');
  const char *last = slash != NULL ? slash + 1 : path;
  size_t dir_len = slash != NULL ? (size_t)(slash - path) : 0;
  size_t name_len = strlen(last);
  if (name_len == 0 || name_len > NAME_MAX || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
    return false;
  memcpy(dir, dir_len > 0 ? path : ".", dir_len > 0 ? dir_len : 1);
  dir[dir_len > 0 ? dir_len : 1] = '\0';
  memcpy(name, last, name_len + 1);
  return true;
}

static bool is_empty(int dir) {
  const struct dirent *entry;
  int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
  bool empty = list != NULL;
  if (list == NULL && copy >= 0)
    close(copy);
  while (empty && (entry = readdir(list)) != NULL)
    empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
  if (list != NULL)
    closedir(list);
  return empty;
}

/* Makes the directory `path`, whose last part is `name` in `dir`, and opens it. -1 and errno.
 *
 * A command may have put another directory under the name in between, one that only root may enter,
 * to be given what is in it. */
static int make_dir(const sbx_local_root *root, int dir, const char *name, const char *path) {
  if (mkdirat(dir, name, 0777) == 0) {
    int made = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (made >= 0 && root->gives && is_empty(made))
      sbx_local_root_give(root, made);
    return made;
  }
  if (errno != EEXIST) /* others made it, or a link that leads nowhere */
    return -1;
  return sbx__local_open(root, path, O_PATH | O_DIRECTORY, SBX__LOCAL_FOLLOW);
}

int sbx__local_open_parents(const sbx_local_root *root, const char *path) {
  char part[PATH_LIMIT];
  size_t len;
  int dir = sbx__local_open(root, path, O_PATH | O_DIRECTORY, SBX__LOCAL_FOLLOW);
  if (dir >= 0 || errno != ENOENT)
    return dir;
  dir = open_start(root, path, O_PATH | O_DIRECTORY, &len);
  while (dir >= 0 && path[len] != '\0') {
    size_t at = len + (len > 0);
    len = with_next(path, len);
    memcpy(part, path, len);
    part[len] = '\0';
    int next = make_dir(root, dir, part + at, part);
    int error = errno;
    close(dir);
    errno = error;
    dir = next;
  }
  return dir;
}

/* The path of what a link in the directory `dir` points to. Errno value or 0. */
static int follow(const sbx_local_root *root, const target *t, const char *dir, char *path) {
  char link[PATH_LIMIT];
  ssize_t n = readlinkat(t->dir, t->name, link, sizeof link - 1);
  if (n < 0)
    return errno;
  link[n] = '\0';
  const char *inside = link[0] == '/' ? sbx__local_below(root, link) : link;
  if (inside == NULL)
    return EXDEV;
  int len = snprintf(path, PATH_LIMIT, "%s/%s", inside == link ? dir : ".", inside);
  return len >= 0 && len < PATH_LIMIT ? 0 : ENAMETOOLONG;
}

/* A link to a file inside is followed by hand, since a file is replaced by its name and never
 * written through. */
int sbx__local_find_target(const sbx_local_root *root, const char *path, target *t) {
  char at[PATH_LIMIT], dir[PATH_LIMIT];
  struct stat st;
  snprintf(at, sizeof at, "%s", path);
  for (int hops = 0; hops <= MAX_LINKS; hops++) {
    if (t->dir >= 0)
      close(t->dir);
    t->dir = -1;
    if (!sbx__local_split(at, dir, t->name))
      return EISDIR;
    t->dir = hops == 0 ? sbx__local_open_parents(root, dir)
                       : sbx__local_open(root, dir, O_PATH | O_DIRECTORY, SBX__LOCAL_FOLLOW);
    if (t->dir < 0)
      return errno == ENOENT ? ELOOP : errno;
    t->exists = fstatat(t->dir, t->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!t->exists)
      return errno != ENOENT ? errno : hops > 0 ? ELOOP : 0;
    if (S_ISREG(st.st_mode)) {
      t->mode = st.st_mode & (root->unmarked ? 01777 : 07777);
      return 0;
    }
    if (!S_ISLNK(st.st_mode))
      return S_ISDIR(st.st_mode) ? EISDIR : ENXIO;
    int error = follow(root, t, dir, at);
    if (error != 0)
      return error;
  }
  return ELOOP;
}

static bool is_set(const atomic_bool *stop) {
  return stop != NULL && atomic_load(stop);
}

static int write_bytes(int fd, sbx_slice bytes, const atomic_bool *stop) {
  while (bytes.len > 0) {
    if (is_set(stop))
      return ECANCELED;
    size_t part = bytes.len < WRITE_CHUNK ? bytes.len : WRITE_CHUNK;
    ssize_t n = write(fd, bytes.ptr, part);
    if (n < 0 && errno != EINTR)
      return errno;
    bytes = sbx_slice_skip(bytes, n > 0 ? (size_t)n : 0);
  }
  return 0;
}

#define TEMP_START ".cloudsandbox-"
enum { TEMP_DIGITS = 16 };

bool sbx__is_temp_name(const char *name) {
  static const size_t start = sizeof TEMP_START - 1;
  if (strncmp(name, TEMP_START, start) != 0)
    return false;
  size_t digits = strspn(name + start, "0123456789abcdef");
  const char *end = name + start + digits;
  if (digits == SBX_TOKEN_LENGTH) /* parts of files, and the state of a shell */
    return *end == '.';
  return digits == TEMP_DIGITS &&
         (strcmp(end, ".tmp") == 0 || strcmp(end, ".py") == 0 || strcmp(end, ".js") == 0);
}

int sbx__temp_create(int dir, const char *end, mode_t mode, char name[SBX__TEMP_NAME]) {
  uint64_t random = 0;
  int fd = -1;
  for (int i = 0; i < TEMP_TRIES && fd < 0; i++) {
    if (getentropy(&random, sizeof random) != 0)
      return -1;
    snprintf(name, SBX__TEMP_NAME, TEMP_START "%016llx%s", (unsigned long long)random, end);
    fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0 && errno != EEXIST && errno != EINTR)
      break;
  }
  return fd;
}

/* Writes a new file beside the target and gives it the target's name. Errno value or 0. */
static int replace(const sbx_local_root *root, const target *t, sbx_slice bytes,
                   const atomic_bool *stop) {
  char temp[SBX__TEMP_NAME];
  int error = 0;
  int fd = sbx__temp_create(t->dir, ".tmp", 0644, temp);
  if (fd < 0)
    return errno;
  error = sbx_local_root_give(root, fd) == 0 ? write_bytes(fd, bytes, stop) : errno;
  if (error == 0 && t->exists && fchmod(fd, t->mode) != 0)
    error = errno;
  if (close(fd) != 0 && error == 0 && errno != EINTR)
    error = errno;
  if (error == 0 && is_set(stop))
    error = ECANCELED;
  if (error == 0 && renameat(t->dir, temp, t->dir, t->name) != 0)
    error = errno;
  if (error != 0)
    unlinkat(t->dir, temp, 0);
  return error;
}

int sbx_local_fs_write(const sbx_local_root *root, sbx_slice path, sbx_slice bytes,
                       const atomic_bool *stop, sbx_err *err) {
  static const char *const verb = "write";
  sbx__clean_path at;
  target t = {.dir = -1};
  int rc = sbx__local_clean_file(root, verb, path, &at, err);
  if (rc != SBX_OK)
    return rc;
  int error = sbx__local_find_target(root, at.text, &t);
  if (error == 0)
    error = replace(root, &t, bytes, stop);
  if (t.dir >= 0)
    close(t.dir);
  if (error == 0)
    return SBX_OK;
  return sbx__local_fail_beneath(root, verb, at.text, error, err);
}
