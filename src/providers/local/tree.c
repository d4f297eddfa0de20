/* tree.c - listing whole trees, and removing them with an error that says what is left.
 *
 * Invariant: neither recursion nor the number of open descriptors grows with the depth of a tree:
 * a command may have made directories nested far deeper than any path can say. */
#include "providers/local/fs.h"

#include "core/alloc.h"
#include "core/err.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  MAX_DIRS = 200000 /* directories that a list goes through */
};

/* ---- list ----------------------------------------------------------------------------------- */

typedef struct lister {
  const sbx_local_root *root;
  sbx_listing *out;
  size_t max_entries;
  char **dirs; /* still to read */
  size_t dir_count;
  size_t dirs_seen;
  sbx_err *err;
} lister;

static const char *const list_verb = "list";

static char *join(const char *dir, const char *name) {
  size_t dir_len = strcmp(dir, ".") == 0 ? 0 : strlen(dir) + 1;
  size_t name_len = strlen(name);
  char *path = sbx_malloc(dir_len + name_len + 1);
  if (path == NULL)
    return NULL;
  memcpy(path, dir, dir_len);
  if (dir_len > 0)
    path[dir_len - 1] = '/';
  memcpy(path + dir_len, name, name_len + 1);
  return path;
}

static int add_dir(lister *l, char *path) {
  char **dirs = path != NULL ? sbx_grow(l->dirs, l->dir_count, sizeof *dirs) : NULL;
  if (dirs == NULL) {
    sbx_free(path);
    return sbx_err_set(l->err, SBX_ENOMEM, NULL);
  }
  l->dirs = dirs;
  l->dirs[l->dir_count++] = path;
  if (l->dirs_seen++ < MAX_DIRS)
    return SBX_OK;
  return sbx_err_set(
      l->err, SBX_ETOOBIG,
      "the workspace has more than %d directories; list a part with a command such as find",
      MAX_DIRS);
}

static int add_file(lister *l, char *path, uint64_t size) {
  int rc = sbx_listing_add(l->out, path, size, l->err);
  if (rc != SBX_OK || l->out->count <= l->max_entries)
    return rc;
  return sbx_err_set(l->err, SBX_ETOOBIG, "the workspace has more than %zu files" SBX__LIST_ADVICE,
                     l->max_entries);
}

static int read_entries(lister *l, const char *path, DIR *dir) {
  const struct dirent *entry;
  struct stat st;
  int rc = SBX_OK;
  for (errno = 0; rc == SBX_OK && (entry = readdir(dir)) != NULL; errno = 0) {
    /* What has gone meanwhile is not there; what is half written is not there yet. */
    if (sbx__is_dot(entry->d_name) || sbx__is_temp_name(entry->d_name) ||
        fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (S_ISDIR(st.st_mode))
      rc = add_dir(l, join(path, entry->d_name));
    else if (S_ISREG(st.st_mode))
      rc = add_file(l, join(path, entry->d_name), (uint64_t)st.st_size);
  }
  if (rc == SBX_OK && errno != 0)
    rc = sbx__local_fail(l->err, list_verb, path, errno);
  return rc;
}

static int read_dir(lister *l, const char *path) {
  int fd = sbx__local_open(l->root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, SBX__LOCAL_STAY);
  DIR *dir = sbx__stream_of(fd);
  bool changed = errno == ENOENT || errno == ELOOP || errno == ENOTDIR || errno == EXDEV;
  if (dir == NULL && changed && strcmp(path, ".") != 0)
    return SBX_OK;
  if (dir == NULL && errno == ENAMETOOLONG)
    return sbx_err_set(l->err, SBX_ETOOBIG,
                       "the workspace has directories nested too deep; list a part with a command "
                       "such as find");
  if (dir == NULL)
    return sbx__local_fail(l->err, list_verb, path, errno);
  int rc = read_entries(l, path, dir);
  closedir(dir);
  return rc;
}

static int by_path(const void *a, const void *b) {
  return strcmp(((const sbx_entry *)a)->path, ((const sbx_entry *)b)->path);
}

int sbx_local_fs_list(const sbx_local_root *root, size_t max_entries, sbx_listing *out,
                      sbx_err *err) {
  lister l = {.root = root, .out = out, .max_entries = max_entries, .err = err};
  *out = (sbx_listing){NULL, 0};
  int rc = add_dir(&l, join(".", "."));
  while (rc == SBX_OK && l.dir_count > 0) {
    char *path = l.dirs[--l.dir_count];
    rc = read_dir(&l, path);
    sbx_free(path);
  }
  while (l.dir_count > 0)
    sbx_free(l.dirs[--l.dir_count]);
  sbx_free(l.dirs);
  if (rc != SBX_OK)
    sbx_listing_free(out);
  else if (out->count > 0)
    qsort(out->entries, out->count, sizeof *out->entries, by_path);
  return rc;
}

/* ---- remove --------------------------------------------------------------------------------- */

int sbx_local_fs_remove(sbx__remover *remover, bool *paused, sbx_err *err) {
  int error = sbx__local_remove(remover);
  *paused = error == EINPROGRESS;
  if (error == 0 || *paused)
    return SBX_OK;
  sbx_err_set(err, SBX_EPROVIDER, "cannot remove the workspace %s: ", remover->root->path);
  sbx_err_append_remote(err, sbx_slice_str(remover->failed));
  sbx_err_append(err, ": %s", sbx_err_system(error));
  return SBX_EPROVIDER;
}
