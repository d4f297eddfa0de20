/* open.h - one directory: opening beneath it, and removing it.
 *
 * What the library and its helper program share, so it needs nothing of the core. Errors are errno
 * values. */
#ifndef SBX_LOCAL_OPEN_H
#define SBX_LOCAL_OPEN_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct sbx_local_root {
  int fd;            /* the directory, open for reading */
  const char *path;  /* its absolute path, without links in it */
  bool walk;         /* there is no openat2() */
  const char *given; /* another path of it, as the user wrote it; or NULL */
  bool gives;        /* what is made in it belongs to `uid` and `gid` */
  uid_t uid;
  gid_t gid;
  bool unmarked;    /* a write takes set-user-id and set-group-id bits away */
  const char *home; /* what "~" stands for; NULL: the root */
} sbx_local_root;

enum { SBX__LOCAL_PATH_LIMIT = 4096 /* bytes of a path, its end included */ };

/* Finds out whether the kernel has openat2(). Owns nothing. */
void sbx_local_root_init(sbx_local_root *root, int fd, const char *path);
/* Gives what was made, if it is to be given. 0, or -1 and errno. */
int sbx_local_root_give(const sbx_local_root *root, int fd);
/* Whether the directory is still at its path. */
bool sbx_local_root_is_there(const sbx_local_root *root);

/* What stands in an absolute path behind the root's own; NULL when it is not below the root. */
const char *sbx__local_below(const sbx_local_root *root, const char *path);

typedef enum sbx__local_way {
  SBX__LOCAL_FOLLOW, /* links that stay inside may be used, absolute ones too */
  SBX__LOCAL_STAY    /* neither links nor, as far as the kernel can tell, mount points */
} sbx__local_way;

/* open() beneath the root. -1 and errno: EXDEV and ELOOP when a link or mount point forbids it. */
int sbx__local_open(const sbx_local_root *root, const char *path, int flags, sbx__local_way way);

enum { SBX__NAME_SHOWN = 256 };

/* The removal of all that is in a root, and of the root itself, which is called `name` in `parent`.
 * Links are removed, not followed; other file systems are not entered. */
typedef struct sbx__remover {
  const sbx_local_root *root;
  int parent;
  const char *name;
  /* Asked after each entry: whether to pause. NULL: never. */
  bool (*pause)(void *arg);
  void *arg;
  bool paused;
  int error; /* of the last thing that could not be removed */
  char failed[SBX__NAME_SHOWN];
  dev_t device;
  unsigned long long next_name;
} sbx__remover;

void sbx__remover_init(sbx__remover *r, const sbx_local_root *root, int parent, const char *name);
/* 0 when it is gone; EINPROGRESS: paused, call again to go on; else the error of what is named in
 * `failed`. */
int sbx__local_remove(sbx__remover *r);

/* "." and "..". */
bool sbx__is_dot(const char *name);
/* Opens a stream over `fd` and takes it over. NULL and errno. */
DIR *sbx__stream_of(int fd);

#endif
