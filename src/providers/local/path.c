/* path.c - what is at a path beneath one directory, and changes of names there.
 *
 * Invariant: as in fs.c, nothing is opened or changed but through sbx__local_open(), or by one
 * plain name in a directory that was opened so, with links not followed. */
#include "providers/local/fs.h"

#include "core/err.h"

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

/* One name in an open directory. */
typedef struct place {
  sbx__clean_path path;
  int dir;
  char name[NAME_MAX + 1];
} place;

static const char *verb_of(sbx_path_verb verb) {
  return sbx_path_verb_text(verb);
}

static sbx_stat describe(const struct stat *st) {
  sbx_stat stat = {.mode = (int)(st->st_mode & 07777)};
#ifdef __APPLE__
  const struct timespec *changed = &st->st_mtimespec;
#else
  const struct timespec *changed = &st->st_mtim;
#endif
  stat.modified_ms = (int64_t)changed->tv_sec * 1000 + changed->tv_nsec / 1000000;
  if (S_ISREG(st->st_mode)) {
    stat.kind = SBX_KIND_FILE;
    stat.size = (uint64_t)st->st_size;
  } else if (S_ISDIR(st->st_mode)) {
    stat.kind = SBX_KIND_DIRECTORY;
  } else {
    stat.kind = S_ISLNK(st->st_mode) ? SBX_KIND_LINK : SBX_KIND_OTHER;
  }
  return stat;
}

/* Opens the directory that `path` has its last name in; with `make`, makes it first. -1 and errno
 * of the place's directory. */
static int find_place(const sbx_local_root *root, sbx_path_verb verb, sbx_slice path, bool make,
                      place *at, sbx_err *err) {
  char dir[SBX__LOCAL_PATH_LIMIT];
  at->dir = -1;
  int rc = sbx__local_clean(root, verb_of(verb), path, &at->path, err);
  if (rc != SBX_OK)
    return rc;
  if (!sbx__local_split(at->path.text, dir, at->name))
    return sbx_err_set(err, SBX_EINVAL, "cannot %s the workspace itself; name a file in it",
                       verb_of(verb));
  at->dir = make ? sbx__local_open_parents(root, dir)
                 : sbx__local_open(root, dir, O_PATH | O_DIRECTORY, SBX__LOCAL_FOLLOW);
  if (at->dir >= 0)
    return SBX_OK;
  return sbx__local_fail_beneath(root, verb_of(verb), at->path.text, errno, err);
}

static void leave(place *at) {
  if (at->dir >= 0)
    close(at->dir);
  at->dir = -1;
}

/* ---- look ----------------------------------------------------------------------------------- */

/* Whether there is a link that cannot be followed, inside. */
static bool is_link(const sbx_local_root *root, const char *path, struct stat *st) {
  char dir[SBX__LOCAL_PATH_LIMIT], name[NAME_MAX + 1];
  if (!sbx__local_split(path, dir, name))
    return false;
  int fd = sbx__local_open(root, dir, O_PATH | O_DIRECTORY, SBX__LOCAL_FOLLOW);
  if (fd < 0)
    return false;
  bool found = fstatat(fd, name, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st->st_mode);
  close(fd);
  return found;
}

int sbx_local_fs_stat(const sbx_local_root *root, sbx_slice path, sbx_stats *out, sbx_err *err) {
  sbx__clean_path at;
  struct stat st;
  int rc = sbx__local_clean(root, verb_of(SBX_PATH_STAT), path, &at, err);
  if (rc != SBX_OK)
    return rc;
  int fd = sbx__local_open(root, at.text, O_PATH, SBX__LOCAL_FOLLOW);
  bool found = fd >= 0 && fstat(fd, &st) == 0;
  int error = errno;
  if (fd >= 0)
    close(fd);
  if (!found && (error == ENOENT || error == ELOOP || error == EXDEV))
    found = is_link(root, at.text, &st);
  if (!found)
    return sbx__local_fail_beneath(root, verb_of(SBX_PATH_STAT), at.text, error, err);
  sbx_stat stat = describe(&st);
  return sbx_stats_add(out, &stat, sbx_slice_of(NULL, 0), err);
}

static int add_entries(DIR *dir, size_t max_entries, sbx_stats *out, sbx_err *err) {
  const struct dirent *entry;
  struct stat st;
  int rc = SBX_OK;
  for (errno = 0; rc == SBX_OK && (entry = readdir(dir)) != NULL; errno = 0) {
    /* What has gone meanwhile is not there; what is half written is not there yet. */
    if (sbx__is_dot(entry->d_name) || sbx__is_temp_name(entry->d_name) ||
        fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (out->count == max_entries)
      return sbx_err_set(err, SBX_ETOOBIG,
                         "the directory has more than %zu entries" SBX__LIST_ADVICE, max_entries);
    sbx_stat stat = describe(&st);
    rc = sbx_stats_add(out, &stat, sbx_slice_str(entry->d_name), err);
  }
  if (rc == SBX_OK && errno != 0)
    rc = sbx__local_fail(err, verb_of(SBX_PATH_LIST), ".", errno);
  return rc;
}

int sbx_local_fs_list_dir(const sbx_local_root *root, sbx_slice path, size_t max_entries,
                          sbx_stats *out, sbx_err *err) {
  sbx__clean_path at;
  int rc = sbx__local_clean(root, verb_of(SBX_PATH_LIST), path, &at, err);
  if (rc != SBX_OK)
    return rc;
  int fd = sbx__local_open(root, at.text, O_RDONLY | O_DIRECTORY, SBX__LOCAL_FOLLOW);
  DIR *dir = sbx__stream_of(fd);
  if (dir == NULL)
    return sbx__local_fail_beneath(root, verb_of(SBX_PATH_LIST), at.text, errno, err);
  rc = add_entries(dir, max_entries, out, err);
  closedir(dir);
  return rc;
}

/* ---- remove --------------------------------------------------------------------------------- */

static bool is_stopped(void *arg) {
  return atomic_load((atomic_bool *)arg);
}

/* All that is in the directory, and itself. Errno value or 0. */
static int remove_tree(const sbx_local_root *root, const place *at, atomic_bool *stop) {
  char path[2 * SBX__LOCAL_PATH_LIMIT];
  sbx_local_root tree;
  sbx__remover remover;
  int fd = openat(at->dir, at->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return errno;
  snprintf(path, sizeof path, "%s/%s", root->path, at->path.text);
  sbx_local_root_init(&tree, fd, path);
  tree.walk = root->walk;
  sbx__remover_init(&remover, &tree, at->dir, at->name);
  remover.pause = is_stopped;
  remover.arg = stop;
  int error = sbx__local_remove(&remover);
  close(fd);
  return error == EINPROGRESS ? ECANCELED : error;
}

int sbx_local_fs_remove_path(const sbx_local_root *root, sbx_slice path, bool recursive,
                             atomic_bool *stop, sbx_err *err) {
  const char *verb = verb_of(SBX_PATH_REMOVE);
  place at;
  struct stat st;
  int error = 0;
  int rc = find_place(root, SBX_PATH_REMOVE, path, false, &at, err);
  if (rc != SBX_OK)
    return rc;
  if (fstatat(at.dir, at.name, &st, AT_SYMLINK_NOFOLLOW) != 0)
    error = errno;
  else if (!S_ISDIR(st.st_mode))
    error = unlinkat(at.dir, at.name, 0) != 0 ? errno : 0;
  else
    error = recursive ? remove_tree(root, &at, stop) : EISDIR;
  leave(&at);
  if (error == ENOENT) /* a link that leads nowhere was looked at itself */
    return sbx_local_root_is_there(root)
               ? sbx__local_fail(err, verb, at.path.text, ENOENT)
               : sbx__local_fail_beneath(root, verb, at.path.text, ENOENT, err);
  if (error == 0)
    return SBX_OK;
  rc = sbx__local_fail_beneath(root, verb, at.path.text, error, err);
  if (error == EISDIR)
    sbx_err_append(err, SBX__REMOVE_ADVICE);
  return rc;
}

/* ---- move, make ------------------------------------------------------------------------------ */

static bool is_below(const char *dir, const char *path) {
  size_t len = strlen(dir);
  return strncmp(dir, path, len) == 0 && path[len] == '/';
}

static bool is_dir(const sbx_local_root *root, const char *path) {
  int fd = sbx__local_open(root, path, O_PATH | O_DIRECTORY, SBX__LOCAL_FOLLOW);
  if (fd >= 0)
    close(fd);
  return fd >= 0;
}

static int move_to(const sbx_local_root *root, const place *source, sbx_slice to, sbx_err *err) {
  place target;
  int rc = find_place(root, SBX_PATH_MOVE, to, true, &target, err);
  if (rc != SBX_OK)
    return rc;
  if (is_dir(root, target.path.text))
    rc = sbx__local_fail_beneath(root, "move something to", target.path.text, EISDIR, err);
  else if (renameat(source->dir, source->name, target.dir, target.name) != 0)
    rc = sbx__local_fail_beneath(root, verb_of(SBX_PATH_MOVE), source->path.text, errno, err);
  leave(&target);
  return rc;
}

int sbx_local_fs_move(const sbx_local_root *root, sbx_slice from, sbx_slice to, sbx_err *err) {
  const char *verb = verb_of(SBX_PATH_MOVE);
  sbx__clean_path end;
  place source;
  struct stat st;
  int rc = find_place(root, SBX_PATH_MOVE, from, false, &source, err);
  if (rc != SBX_OK)
    return rc;
  if (fstatat(source.dir, source.name, &st, AT_SYMLINK_NOFOLLOW) != 0)
    rc = sbx__local_fail(err, verb, source.path.text, errno);
  else if ((rc = sbx__local_clean(root, verb, to, &end, err)) == SBX_OK &&
           is_below(source.path.text, end.text))
    rc = sbx_err_set(err, SBX_EINVAL, "cannot move a directory into itself");
  if (rc == SBX_OK && strcmp(source.path.text, end.text) != 0)
    rc = move_to(root, &source, to, err);
  leave(&source);
  return rc;
}

int sbx_local_fs_make_dir(const sbx_local_root *root, sbx_slice path, sbx_err *err) {
  sbx__clean_path at;
  int rc = sbx__local_clean(root, verb_of(SBX_PATH_MAKE), path, &at, err);
  if (rc != SBX_OK)
    return rc;
  int dir = sbx__local_open_parents(root, at.text);
  if (dir < 0)
    return sbx__local_fail_beneath(root, verb_of(SBX_PATH_MAKE), at.text, errno, err);
  close(dir);
  return SBX_OK;
}
