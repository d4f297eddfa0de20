/* remove.c - removing a whole tree.
 *
 * Invariant: neither recursion nor the number of open descriptors grows with the depth of a tree:
 * a command may have made directories nested far deeper than any path can say. Nothing of the core
 * is used here: the helper program has this file too. */
#include "guard/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  MAX_IDLE_PASSES = 3, /* without anything removed */
  NAME_TRIES = 1000,
  FREE_NAME = 64
};

/* Every directory found below one of the root's own is moved up into the root before its parent is
 * removed. So two open directories suffice, whatever the depth, and a removal that pauses has
 * nothing to remember. */
typedef sbx__remover remover;

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

static bool pauses(remover *r) {
  if (!r->paused && r->pause != NULL)
    r->paused = r->pause(r->arg);
  return r->paused;
}

/* Gives `name` in `dir` the rights that are needed to change it, where that is allowed; the change
 * itself will tell. A link is left alone. */
static void permit(int dir, const char *name) {
  int ignored = fchmodat(dir, name, S_IRWXU, AT_SYMLINK_NOFOLLOW);
  (void)ignored;
}

/* Moves it into the root, under a name that is free there. */
static bool move_up(remover *r, int dir, const char *name, char free_name[FREE_NAME]) {
  bool permitted = false;
  for (int i = 0; i < NAME_TRIES; i++) {
    snprintf(free_name, FREE_NAME, ".removed-%llu", r->next_name++);
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

/* Empties a directory of the root and removes it. `name` is what an error calls it. */
static bool remove_dir_at(remover *r, const char *at, const char *name) {
  static const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  char free_name[FREE_NAME];
  struct stat st;
  const struct dirent *entry;
  int fd = sbx__local_open(r->root, at, flags, SBX__LOCAL_STAY);
  if (fd < 0 && errno == EACCES) {
    permit(r->root->fd, at);
    fd = sbx__local_open(r->root, at, flags, SBX__LOCAL_STAY);
  }
  DIR *dir = sbx__stream_of(fd);
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
    if (sbx__is_dot(entry->d_name))
      continue;
    if (pauses(r))
      break;
    if (is_dir_entry(fd, entry))
      changed |= move_up(r, fd, entry->d_name, free_name);
    else if (unlinkat(fd, entry->d_name, 0) == 0)
      changed = true;
    else
      note_failure(r, entry->d_name, errno);
  }
  closedir(dir);
  if (r->paused)
    return changed;
  if (unlinkat(r->root->fd, at, AT_REMOVEDIR) == 0)
    return true;
  if (r->error == 0)
    note_failure(r, name, errno);
  return changed;
}

/* Without openat2() a mount point of the same file system shows only in that it cannot be moved.
 * What cannot be removed gets its name back. */
static bool remove_dir(remover *r, const char *name) {
  char moved[FREE_NAME];
  int root = r->root->fd;
  if (!r->root->walk)
    return remove_dir_at(r, name, name);
  if (!move_up(r, root, name, moved))
    return false;
  bool changed = remove_dir_at(r, moved, name);
  int ignored = renameat(root, moved, root, name);
  (void)ignored;
  return changed;
}

/* Removes what it can of the root's entries. Counts the entries it found and those it changed. */
static bool remove_entries(remover *r, size_t *found, size_t *changed) {
  const struct dirent *entry;
  DIR *dir = sbx__stream_of(openat(r->root->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  *found = *changed = 0;
  if (dir == NULL) {
    note_failure(r, ".", errno);
    return false;
  }
  while ((entry = readdir(dir)) != NULL) {
    if (sbx__is_dot(entry->d_name))
      continue;
    if (pauses(r))
      break;
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

void sbx__remover_init(sbx__remover *r, const sbx_local_root *root, int parent, const char *name) {
  *r = (remover){.root = root, .parent = parent, .name = name};
}

int sbx__local_remove(sbx__remover *r) {
  const sbx_local_root *root = r->root;
  struct stat mine, there;
  size_t found = 1, changed = 0;
  r->paused = false;
  if (fstat(root->fd, &mine) != 0 ||
      fstatat(r->parent, r->name, &there, AT_SYMLINK_NOFOLLOW) != 0 ||
      mine.st_dev != there.st_dev || mine.st_ino != there.st_ino)
    return 0;
  r->device = mine.st_dev;
  if ((mine.st_mode & S_IRWXU) != S_IRWXU)
    fchmod(root->fd, S_IRWXU);
  for (int idle = 0; idle < MAX_IDLE_PASSES;) {
    r->error = 0;
    bool read = remove_entries(r, &found, &changed);
    if (r->paused)
      return EINPROGRESS;
    if (!read || found == 0)
      break;
    idle = changed > 0 ? 0 : idle + 1;
  }
  if (found == 0 && (unlinkat(r->parent, r->name, AT_REMOVEDIR) == 0 || errno == ENOENT))
    return 0;
  if (r->error == 0)
    note_failure(r, r->name, errno);
  return r->error;
}
