/* local_tree.c - listing and removing whole trees.
 *
 * Invariant: neither recursion nor the number of open descriptors grows with the depth of a tree:
 * a command may have made directories nested far deeper than any path can say. */
#include "providers/local_fs.h"

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
  MAX_DIRS = 200000, /* directories that a list goes through */
  MAX_PASSES = 1 << 20,
  MAX_IDLE_PASSES = 3, /* without anything removed */
  NAME_TRIES = 1000
};

static bool is_dot(const char *name) {
  return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Opens a stream over `fd` and takes it over. NULL and errno. */
static DIR *stream_of(int fd) {
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

/* ---- list ----------------------------------------------------------------------------------- */

typedef struct lister {
  const sbx_local_root *root;
  sbx_listing *out;
  size_t max_entries;
  size_t entry_room;
  char **dirs; /* still to read */
  size_t dir_count;
  size_t dir_room;
  size_t dirs_seen;
  sbx_err *err;
} lister;

static const char *const list_verb = "list";

static int out_of_memory(lister *l) {
  return sbx_err_set(l->err, SBX_ENOMEM, NULL);
}

/* Makes room for one more item. */
static bool grow(void **items, size_t *room, size_t count, size_t item_size) {
  size_t bytes;
  if (count < *room)
    return true;
  size_t want = *room > 0 ? *room * 2 : 16;
  void *grown = sbx_size_mul(&bytes, want, item_size) ? sbx_realloc(*items, bytes) : NULL;
  if (grown == NULL)
    return false;
  *items = grown;
  *room = want;
  return true;
}

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
  if (path == NULL)
    return out_of_memory(l);
  void *dirs = l->dirs;
  bool fits = grow(&dirs, &l->dir_room, l->dir_count, sizeof *l->dirs);
  l->dirs = dirs;
  if (!fits) {
    sbx_free(path);
    return out_of_memory(l);
  }
  l->dirs[l->dir_count++] = path;
  if (l->dirs_seen++ < MAX_DIRS)
    return SBX_OK;
  return sbx_err_set(l->err, SBX_ETOOBIG, "the workspace has more than %d directories", MAX_DIRS);
}

static int add_file(lister *l, char *path, uint64_t size) {
  if (path == NULL)
    return out_of_memory(l);
  void *entries = l->out->entries;
  bool fits = grow(&entries, &l->entry_room, l->out->count, sizeof *l->out->entries);
  l->out->entries = entries;
  if (!fits) {
    sbx_free(path);
    return out_of_memory(l);
  }
  l->out->entries[l->out->count++] = (sbx_entry){path, size};
  if (l->out->count <= l->max_entries)
    return SBX_OK;
  return sbx_err_set(l->err, SBX_ETOOBIG, "the workspace has more than %zu files", l->max_entries);
}

static int read_entries(lister *l, const char *path, DIR *dir) {
  const struct dirent *entry;
  struct stat st;
  int rc = SBX_OK;
  for (errno = 0; rc == SBX_OK && (entry = readdir(dir)) != NULL; errno = 0) {
    /* What has gone meanwhile is not there. */
    if (is_dot(entry->d_name) || fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
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
  DIR *dir = stream_of(fd);
  bool changed = errno == ENOENT || errno == ELOOP || errno == ENOTDIR || errno == EXDEV;
  if (dir == NULL && changed && strcmp(path, ".") != 0)
    return SBX_OK;
  if (dir == NULL && errno == ENAMETOOLONG)
    return sbx_err_set(l->err, SBX_ETOOBIG, "the workspace has directories nested too deep");
  if (dir == NULL)
    return sbx__local_fail(l->err, list_verb, path, errno);
  int rc = read_entries(l, path, dir);
  closedir(dir);
  return rc;
}

static int by_path(const void *a, const void *b) {
  return strcmp(((const sbx_entry *)a)->path, ((const sbx_entry *)b)->path);
}

void sbx_local_listing_free(sbx_listing *listing) {
  for (size_t i = 0; i < listing->count; i++)
    sbx_free((void *)(uintptr_t)listing->entries[i].path);
  sbx_free(listing->entries);
  *listing = (sbx_listing){NULL, 0};
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
    sbx_local_listing_free(out);
  else if (out->count > 0)
    qsort(out->entries, out->count, sizeof *out->entries, by_path);
  return rc;
}

/* ---- remove --------------------------------------------------------------------------------- */

/* Every directory found below one of the root's own is moved up into the root before its parent is
 * removed. So two open directories suffice, whatever the depth. */
typedef struct remover {
  const sbx_local_root *root;
  dev_t device;
  unsigned long long next_name;
  int error; /* of the last thing that could not be removed */
  char failed[256];
} remover;

static void note_failure(remover *r, const char *name, int error) {
  r->error = error;
  snprintf(r->failed, sizeof r->failed, "%s", name);
}

static bool is_dir_entry(int dir, const struct dirent *entry) {
  struct stat st;
#ifdef DT_DIR
  if (entry->d_type != DT_UNKNOWN)
    return entry->d_type == DT_DIR;
#endif
  return fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Gives `name` in `dir` the rights that are needed to change it, where that is allowed; the change
 * itself will tell. A link is left alone. */
static void permit(int dir, const char *name) {
  int ignored = fchmodat(dir, name, S_IRWXU, AT_SYMLINK_NOFOLLOW);
  (void)ignored;
}

static bool move_up(remover *r, int dir, const char *name) {
  char free_name[64];
  bool permitted = false;
  for (int i = 0; i < NAME_TRIES; i++) {
    snprintf(free_name, sizeof free_name, ".removed-%llu", r->next_name++);
    if (renameat(dir, name, r->root->fd, free_name) == 0 || errno == ENOENT)
      return true;
    /* A directory that changes its parent must be writable itself. */
    if (errno == EACCES && !permitted) {
      permit(dir, name);
      permitted = true;
    } else if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) {
      break;
    }
  }
  note_failure(r, name, errno);
  return false;
}

/* Empties a directory of the root and removes it. */
static bool remove_dir(remover *r, const char *name) {
  static const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  struct stat st;
  const struct dirent *entry;
  int fd = sbx__local_open(r->root, name, flags, SBX__LOCAL_STAY);
  if (fd < 0 && errno == EACCES) {
    permit(r->root->fd, name);
    fd = sbx__local_open(r->root, name, flags, SBX__LOCAL_STAY);
  }
  DIR *dir = stream_of(fd);
  if (dir == NULL || fstat(fd, &st) != 0) {
    note_failure(r, name, errno);
    if (dir != NULL)
      closedir(dir);
    return false;
  }
  if (st.st_dev != r->device) {
    note_failure(r, name, EXDEV);
    closedir(dir);
    return false;
  }
  if ((st.st_mode & S_IRWXU) != S_IRWXU)
    fchmod(fd, S_IRWXU);
  bool changed = false;
  while ((entry = readdir(dir)) != NULL) {
    if (is_dot(entry->d_name))
      continue;
    if (is_dir_entry(fd, entry))
      changed |= move_up(r, fd, entry->d_name);
    else if (unlinkat(fd, entry->d_name, 0) == 0)
      changed = true;
    else
      note_failure(r, entry->d_name, errno);
  }
  closedir(dir);
  if (unlinkat(r->root->fd, name, AT_REMOVEDIR) == 0)
    return true;
  if (r->error == 0)
    note_failure(r, name, errno);
  return changed;
}

/* Removes what it can of the root's entries. Counts the entries it found and those it changed. */
static bool remove_entries(remover *r, size_t *found, size_t *changed) {
  const struct dirent *entry;
  DIR *dir = stream_of(openat(r->root->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  *found = *changed = 0;
  if (dir == NULL) {
    note_failure(r, ".", errno);
    return false;
  }
  while ((entry = readdir(dir)) != NULL) {
    if (is_dot(entry->d_name))
      continue;
    (*found)++;
    if (is_dir_entry(r->root->fd, entry)) {
      *changed += remove_dir(r, entry->d_name);
    } else if (unlinkat(r->root->fd, entry->d_name, 0) == 0) {
      (*changed)++;
    } else {
      note_failure(r, entry->d_name, errno);
    }
  }
  closedir(dir);
  return true;
}

int sbx_local_fs_remove(const sbx_local_root *root, int parent, const char *name, sbx_err *err) {
  remover r = {.root = root};
  struct stat mine, there;
  size_t found = 1, changed = 0;
  if (fstat(root->fd, &mine) != 0 || fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) != 0 ||
      mine.st_dev != there.st_dev || mine.st_ino != there.st_ino)
    return SBX_OK;
  r.device = mine.st_dev;
  if ((mine.st_mode & S_IRWXU) != S_IRWXU)
    fchmod(root->fd, S_IRWXU);
  for (int pass = 0, idle = 0; pass < MAX_PASSES && idle < MAX_IDLE_PASSES; pass++) {
    r.error = 0;
    if (!remove_entries(&r, &found, &changed) || found == 0)
      break;
    idle = changed > 0 ? 0 : idle + 1;
  }
  if (found == 0 && (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT))
    return SBX_OK;
  if (r.error == 0)
    note_failure(&r, name, errno);
  sbx_err_set(err, SBX_EPROVIDER, "cannot remove the workspace %s: ", root->path);
  sbx_err_append_remote(err, sbx_slice_str(r.failed));
  sbx_err_append(err, ": %s", strerror(r.error));
  return SBX_EPROVIDER;
}
