/* part.c - files in parts beneath one directory: reads one, joins two, puts one in its place.
 *
 * Invariant: as in fs.c, nothing is opened or changed but through sbx__local_open(), or by one
 * plain name in a directory that was opened so, with links not followed. What is joined was put
 * there by us, under a name that nobody can guess, and is still taken for anybody's. */
#include "providers/local/fs.h"

#include "core/err.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

enum { COPY_BYTES = 1 << 16, STAMP = 96 };

static bool is_set(const atomic_bool *stop) {
  return stop != NULL && atomic_load(stop);
}

/* ---- read ----------------------------------------------------------------------------------- */

/* Files that the kernel makes have no size, and may have another time at each look. */
static void write_stamp(const struct stat *st, char stamp[STAMP]) {
#ifdef __APPLE__
  const struct timespec *changed = &st->st_mtimespec;
#else
  const struct timespec *changed = &st->st_mtim;
#endif
  if (st->st_size == 0)
    snprintf(stamp, STAMP, "0");
  else
    snprintf(stamp, STAMP, "%jd %ju %jd.%09ld", (intmax_t)st->st_size, (uintmax_t)st->st_ino,
             (intmax_t)changed->tv_sec, changed->tv_nsec);
}

/* Errno value or 0. */
static int read_at(int fd, uint64_t offset, size_t most, sbx_buf *out) {
  if (sbx_buf_reserve(out, most) != SBX_OK)
    return ENOMEM;
  while (out->len < most) {
    ssize_t n = pread(fd, out->ptr + out->len, most - out->len, (off_t)(offset + out->len));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno;
    if (n == 0)
      break;
    out->len += (size_t)n;
  }
  out->ptr[out->len] = '\0';
  return 0;
}

static size_t most_there(const struct stat *st, const sbx_path_request *request) {
  uint64_t size = (uint64_t)st->st_size;
  if (size == 0)
    return request->length;
  uint64_t rest = request->offset < size ? size - request->offset : 0;
  return rest < request->length ? (size_t)rest : request->length;
}

int sbx_local_fs_part(const sbx_local_root *root, const sbx_path_request *request, sbx_stats *out,
                      sbx_err *err) {
  const char *verb = sbx_path_verb_text(SBX_PATH_PART);
  char before[STAMP], after[STAMP];
  sbx__clean_path at;
  struct stat st;
  int rc = sbx__local_clean_file(root, verb, request->path, &at, err);
  if (rc != SBX_OK)
    return rc;
  int fd = sbx__local_open_file(root, verb, at.text, &st, err);
  if (fd < 0)
    return err->code;
  write_stamp(&st, before);
  sbx_buf_init(&out->part, request->length);
  int error = request->offset <= INT64_MAX - request->length
                  ? read_at(fd, request->offset, most_there(&st, request), &out->part)
                  : EOVERFLOW;
  sbx_stat stat = {.kind = SBX_KIND_FILE, .size = (uint64_t)st.st_size};
  if (error == 0 && fstat(fd, &st) != 0)
    error = errno;
  close(fd);
  if (error != 0)
    return sbx__local_fail(err, verb, at.text, error);
  write_stamp(&st, after);
  if (strcmp(before, after) != 0)
    return sbx_err_set(err, SBX_ECONFLICT, SBX__PART_CHANGED);
  return sbx_stats_add(out, &stat, sbx_slice_str(before), err);
}

/* ---- write ---------------------------------------------------------------------------------- */

typedef struct named {
  int dir;
  char name[NAME_MAX + 1];
} named;

/* Opens the directory of a file of ours. Errno value or 0; -1 when `err` was filled. */
static int find(const sbx_local_root *root, sbx_slice path, named *out, sbx_err *err) {
  char dir[SBX__LOCAL_PATH_LIMIT];
  sbx__clean_path at;
  if (sbx__local_clean_file(root, "write", path, &at, err) != SBX_OK)
    return -1;
  if (!sbx__local_split(at.text, dir, out->name))
    return EISDIR;
  out->dir = sbx__local_open(root, dir, O_PATH | O_DIRECTORY, SBX__LOCAL_FOLLOW);
  return out->dir >= 0 ? 0 : errno;
}

static int open_ours(const named *at, int flags, struct stat *st) {
  int fd = openat(at->dir, at->name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 || (fstat(fd, st) == 0 && S_ISREG(st->st_mode)))
    return fd;
  close(fd);
  errno = ENOENT;
  return -1;
}

static int write_all(int fd, const char *bytes, size_t len) {
  while (len > 0) {
    ssize_t n = write(fd, bytes, len);
    if (n < 0 && errno != EINTR)
      return errno;
    bytes += n > 0 ? n : 0;
    len -= n > 0 ? (size_t)n : 0;
  }
  return 0;
}

static int copy(int from, int to, const atomic_bool *stop) {
  char bytes[COPY_BYTES];
  for (;;) {
    if (is_set(stop))
      return ECANCELED;
    ssize_t n = read(from, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return n < 0 ? errno : 0;
    int error = write_all(to, bytes, (size_t)n);
    if (error != 0)
      return error;
  }
}

/* Errno value or 0; ENOENT: they are not as they must be. */
static int join(const named *piece, const named *all, const sbx_path_request *request,
                const atomic_bool *stop) {
  struct stat piece_st = {0}, all_st;
  off_t offset = (off_t)request->offset;
  int to = open_ours(all, O_WRONLY, &all_st);
  if (to < 0)
    return errno;
  int from = open_ours(piece, O_RDONLY, &piece_st);
  int error = from < 0 ? errno : 0;
  if (error == ENOENT && all_st.st_size == offset + (off_t)request->length)
    error = 0; /* it came before */
  else if (error == 0 && (all_st.st_size < offset || piece_st.st_size != (off_t)request->length))
    error = ENOENT;
  else if (error == 0 && (ftruncate(to, offset) != 0 || lseek(to, offset, SEEK_SET) < 0))
    error = errno;
  else if (error == 0)
    error = copy(from, to, stop);
  if (from >= 0)
    close(from);
  if (close(to) != 0 && error == 0 && errno != EINTR)
    error = errno;
  if (error == 0 && from >= 0 && unlinkat(piece->dir, piece->name, 0) != 0)
    error = errno;
  return error;
}

static int fail(const sbx_local_root *root, int error, sbx_slice path, sbx_err *err) {
  char text[SBX__LOCAL_PATH_LIMIT];
  if (error == 0)
    return SBX_OK;
  if (error < 0)
    return err->code;
  if (error == ENOENT && sbx_local_root_is_there(root))
    return sbx_err_set(err, SBX_ECONFLICT, SBX__PART_GONE);
  snprintf(text, sizeof text, "%.*s", path.len < sizeof text ? (int)path.len : 0, path.ptr);
  return sbx__local_fail_beneath(root, "write", text, error, err);
}

int sbx_local_fs_join(const sbx_local_root *root, const sbx_path_request *request,
                      const atomic_bool *stop, sbx_err *err) {
  named piece = {.dir = -1}, all = {.dir = -1};
  int error = find(root, request->path, &piece, err);
  if (error == 0)
    error = find(root, request->to, &all, err);
  if (error == 0)
    error = join(&piece, &all, request, stop);
  if (piece.dir >= 0)
    close(piece.dir);
  if (all.dir >= 0)
    close(all.dir);
  return fail(root, error, request->to, err);
}

int sbx_local_fs_take(const sbx_local_root *root, const sbx_path_request *request,
                      const atomic_bool *stop, sbx_err *err) {
  named all = {.dir = -1};
  sbx__local_target to = {.dir = -1};
  sbx__clean_path at;
  struct stat st;
  int rc = sbx__local_clean_file(root, "write", request->to, &at, err);
  if (rc != SBX_OK)
    return rc;
  int error = find(root, request->path, &all, err);
  int fd = error == 0 ? open_ours(&all, O_RDONLY, &st) : -1;
  if (error == 0 && fd < 0)
    error = errno;
  rc = fail(root, error, request->path, err);
  if (rc == SBX_OK)
    error = sbx__local_find_target(root, at.text, &to);
  if (error == 0 && to.exists && fchmod(fd, to.mode) != 0)
    error = errno;
  if (error == 0 && is_set(stop))
    error = ECANCELED;
  if (error == 0 && renameat(all.dir, all.name, to.dir, to.name) != 0)
    error = errno;
  if (fd >= 0)
    close(fd);
  if (all.dir >= 0)
    close(all.dir);
  if (to.dir >= 0)
    close(to.dir);
  if (rc != SBX_OK || error == 0)
    return rc;
  return sbx__local_fail_beneath(root, "write", at.text, error, err);
}
