/* local_fs.h - files beneath one directory, and never outside it.
 *
 * Synchronous: made for libuv's thread pool. Where the kernel has openat2() it resolves each path
 * itself and refuses to leave the directory, so no swap of a directory for a link can be a race;
 * links that stay inside are followed. Elsewhere each part is opened on its own and links are not
 * followed at all.
 *
 * A path is relative to the root, or absolute and below it; '/' between parts. "." and ".." are
 * resolved as text. All functions fill `err`, which must not be NULL. Errors that all have:
 * SBX_EPATH (leaves the root, or has a control character), SBX_EINVAL (no usable name, or a file
 * where a directory is needed), SBX_EFORBIDDEN, SBX_ELOST (the root has gone),
 * SBX_EPROVIDER, SBX_ENOMEM. */
#ifndef SBX_LOCAL_FS_H
#define SBX_LOCAL_FS_H

#include "providers/provider.h"

#include <sys/types.h>

typedef struct sbx_local_root {
  int fd;           /* the directory, open for reading */
  const char *path; /* its absolute path, without links in it */
  bool walk;        /* there is no openat2() */
} sbx_local_root;

/* Finds out whether the kernel has openat2(). Owns nothing. */
void sbx_local_root_init(sbx_local_root *root, int fd, const char *path);
/* Whether the directory is still at its path. */
bool sbx_local_root_is_there(const sbx_local_root *root);

/* Appends the file's bytes. SBX_ENOTFOUND, SBX_ETOOBIG when it has more than out->max bytes. Only
 * regular files: whatever could block is refused. */
int sbx_local_fs_read(const sbx_local_root *root, sbx_slice path, sbx_buf *out, sbx_err *err);
/* Creates or replaces a regular file as a whole, with its parents; readers see the old or the new
 * bytes. A link to an existing file inside stays a link. SBX_EQUOTA when the disk is full. */
int sbx_local_fs_write(const sbx_local_root *root, sbx_slice path, sbx_slice bytes, sbx_err *err);
/* All regular files, sorted by path. SBX_ETOOBIG when there are more. */
int sbx_local_fs_list(const sbx_local_root *root, size_t max_entries, sbx_listing *out,
                      sbx_err *err);
void sbx_local_listing_free(sbx_listing *listing);
/* Opens a directory to run a command in; an empty path is the root. SBX_ENOTFOUND. */
int sbx_local_fs_open_dir(const sbx_local_root *root, sbx_slice path, int *out, sbx_err *err);
/* Removes all that is in the root, and the root itself, which is called `name` in `parent`. Links
 * are removed, not followed; other file systems are not entered. Success when it is gone already.
 */
int sbx_local_fs_remove(const sbx_local_root *root, int parent, const char *name, sbx_err *err);

/* ---- shared by local_fs.c and local_tree.c ---- */

typedef enum sbx__local_way {
  SBX__LOCAL_FOLLOW, /* links that stay inside may be used */
  SBX__LOCAL_STAY    /* neither links nor, as far as the kernel can tell, mount points */
} sbx__local_way;

/* open() beneath the root. -1 and errno: EXDEV and ELOOP when a link or mount point forbids it. */
int sbx__local_open(const sbx_local_root *root, const char *path, int flags, sbx__local_way way);
/* Fills `err` for `error` (an errno value), met while doing `verb` to `path`. */
int sbx__local_fail(sbx_err *err, const char *verb, const char *path, int error);

#endif
