/* fs.h - files beneath one directory, and never outside it.
 *
 * Synchronous: made for libuv's thread pool. Where the kernel has openat2() it resolves each path
 * itself and refuses to leave the directory, so no swap of a directory for a link can be a race.
 * Elsewhere each part is opened on its own. Links that stay inside are followed, relative and
 * absolute ones: see open.c.
 *
 * A path is relative to the root, or absolute and below it, or "~" and "~/x" for the root's home;
 * '/' between parts. "." and ".." are
 * resolved as text. All functions fill `err`, which must not be NULL. Errors that all have:
 * SBX_EPATH (leaves the root, or has a control character), SBX_EINVAL (no usable name, or a file
 * where a directory is needed), SBX_EFORBIDDEN, SBX_ELOST (the root has gone),
 * SBX_EPROVIDER, SBX_ENOMEM. */
#ifndef SBX_LOCAL_FS_H
#define SBX_LOCAL_FS_H

#include "guard/open.h"
#include "providers/provider.h"

#include <limits.h>
#include <stdatomic.h>
#include <sys/stat.h>

/* Appends the file's bytes. SBX_ENOTFOUND, SBX_ETOOBIG when it has more than out->max bytes. Only
 * regular files: whatever could block is refused. */
int sbx_local_fs_read(const sbx_local_root *root, sbx_slice path, sbx_buf *out, sbx_err *err);
/* Creates or replaces a regular file as a whole, with its parents; readers see the old or the new
 * bytes. A link to an existing file inside stays a link. SBX_EQUOTA when the disk is full. Once
 * `stop` (NULL: never) is set, nothing is replaced any more: SBX_ECANCELED. */
int sbx_local_fs_write(const sbx_local_root *root, sbx_slice path, sbx_slice bytes,
                       const atomic_bool *stop, sbx_err *err);
/* All regular files, sorted by path; not those that are being written under a temporary name.
 * SBX_ETOOBIG when there are more. */
int sbx_local_fs_list(const sbx_local_root *root, size_t max_entries, sbx_listing *out,
                      sbx_err *err);
/* Opens a directory to run a command in; an empty path is the root. SBX_ENOTFOUND. */
int sbx_local_fs_open_dir(const sbx_local_root *root, sbx_slice path, int *out, sbx_err *err);
/* Goes on with a removal until it is done or pauses; success when the root is gone already. */
int sbx_local_fs_remove(sbx__remover *remover, bool *paused, sbx_err *err);

enum { SBX__TEMP_NAME = 48 };

/* Makes a new file in `dir` under a name that no list shows, which is `end` (".tmp", ".py", ".js")
 * behind a random part. Its descriptor, or -1 and errno. */
int sbx__temp_create(int dir, const char *end, mode_t mode, char name[SBX__TEMP_NAME]);

/* What is at a path, or in a directory: adds it. See sbx_sandbox_stat(), sbx_sandbox_list_dir(). */
int sbx_local_fs_stat(const sbx_local_root *root, sbx_slice path, sbx_stats *out, sbx_err *err);
int sbx_local_fs_list_dir(const sbx_local_root *root, sbx_slice path, size_t max_entries,
                          sbx_stats *out, sbx_err *err);
/* See sbx_sandbox_remove() and its like. Once `stop` is set, no more is removed: SBX_ECANCELED. */
int sbx_local_fs_remove_path(const sbx_local_root *root, sbx_slice path, bool recursive,
                             atomic_bool *stop, sbx_err *err);
int sbx_local_fs_move(const sbx_local_root *root, sbx_slice from, sbx_slice to, sbx_err *err);
int sbx_local_fs_make_dir(const sbx_local_root *root, sbx_slice path, sbx_err *err);

/* See SBX_PATH_PART and its like. Once `stop` is set, nothing is replaced: SBX_ECANCELED. */
int sbx_local_fs_part(const sbx_local_root *root, const sbx_path_request *request, sbx_stats *out,
                      sbx_err *err);
int sbx_local_fs_join(const sbx_local_root *root, const sbx_path_request *request,
                      const atomic_bool *stop, sbx_err *err);
int sbx_local_fs_take(const sbx_local_root *root, const sbx_path_request *request,
                      const atomic_bool *stop, sbx_err *err);

/* ---- shared by fs.c, tree.c, path.c and part.c ---- */

/* A path below the root without ".", ".." and empty parts; "." for the root itself. */
typedef struct sbx__clean_path {
  char text[SBX__LOCAL_PATH_LIMIT];
  bool is_dir; /* written with a '/' at its end, or the root */
} sbx__clean_path;

int sbx__local_clean(const sbx_local_root *root, const char *verb, sbx_slice path,
                     sbx__clean_path *out, sbx_err *err);
/* The same for the path of a file. */
int sbx__local_clean_file(const sbx_local_root *root, const char *verb, sbx_slice path,
                          sbx__clean_path *out, sbx_err *err);

/* Where a file is to be written: one name in an open directory. */
typedef struct sbx__local_target {
  int dir;
  char name[NAME_MAX + 1];
  bool exists;
  mode_t mode; /* when it exists: what a write leaves it */
} sbx__local_target;

/* Finds it, makes the directories above it, and follows links that stay inside. `dir`, which must
 * be -1 before, is to be closed in any case. Errno value or 0. */
int sbx__local_find_target(const sbx_local_root *root, const char *path, sbx__local_target *out);
/* Opens a regular file to be read, and tells about it. A descriptor, or -1 and `err`. */
int sbx__local_open_file(const sbx_local_root *root, const char *verb, const char *path,
                         struct stat *st, sbx_err *err);

/* Splits "a/b/c" into "a/b" (or ".") and "c", for which there is room for PATH_LIMIT and NAME_MAX
 * bytes. False when there is no usable name at the end. */
bool sbx__local_split(const char *path, char *dir, char *name);
/* Opens the directory `path` and makes what is missing of it. -1 and errno. */
int sbx__local_open_parents(const sbx_local_root *root, const char *path);
/* As sbx__local_fail(), and knows when the reason is that the root itself has gone. */
int sbx__local_fail_beneath(const sbx_local_root *root, const char *verb, const char *path,
                            int error, sbx_err *err);

/* Fills `err` for `error` (an errno value), met while doing `verb` to `path`. */
int sbx__local_fail(sbx_err *err, const char *verb, const char *path, int error);
/* Whether sbx__temp_create() makes such names, or parts of files lie under them. */
bool sbx__is_temp_name(const char *name);

#endif
