/* view.h - the file system that an isolated sandbox sees. */
#ifndef SBX_GUARD_VIEW_H
#define SBX_GUARD_VIEW_H

#include "guard/report.h"

#include <stddef.h>

typedef struct sbx__view_mount {
  const char *from; /* on the host */
  const char *to;   /* inside, absolute, without "." and ".." */
  int fd;           /* a detached copy of the mount; -1: not taken yet */
} sbx__view_mount;

typedef struct sbx__view {
  sbx__view_mount *mounts; /* read-only */
  size_t count;
} sbx__view;

/* Takes the mounts before root becomes somebody else, who might not find the way to them. What
 * cannot be taken here is tried once more inside. */
void sbx__view_take(const sbx__view *view);

/* In the first process, whose directory is the workspace: makes the view and enters it. Notes
 * mounts and procfs; false when there is no view. */
bool sbx__view_enter(const sbx__view *view, const sbx_guard_setup *setup, sbx_guard_hello *hello);

#endif
