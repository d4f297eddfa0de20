/* isolated.h - the options of an isolated sandbox, and what is said of its layers. */
#ifndef SBX_LOCAL_ISOLATED_H
#define SBX_LOCAL_ISOLATED_H

#include "core/buf.h"
#include "core/json.h"
#include "guard/isolation.h"
#include "providers/local/egress_rules.h"

#include <sys/stat.h>
#include <sys/types.h>

typedef struct sbx__isolation {
  bool wanted;
  sbx_guard_setup setup; /* but for ids */
  uint64_t output_bytes; /* of each command; 0: as much as is usual */
  char *paths[2 * SBX_GUARD_MOUNTS_MAX];
  size_t path_count;
  char *needed[SBX_GUARD_MOUNTS_MAX]; /* whether or not they are mounted */
  size_t needed_count;
  sbx__egress_rules hosts; /* none: there is no way out */
} sbx__isolation;

/* `options` NULL: not isolated. SBX_EINVAL, SBX_ENOMEM. */
int sbx__isolated_configure(sbx__isolation *iso, const sbx_json *options, sbx_err *err);
void sbx__isolated_deinit(sbx__isolation *iso);

/* Who runs the commands when this process is root: the owner of the directory, unless that is root,
 * too; NULL: a directory of our own. */
void sbx__isolated_owner(const struct stat *directory, uid_t *uid, gid_t *gid);

/* Before the start, when nothing is made: SBX_EINVAL naming the first of the needed paths that is
 * not there. */
int sbx__isolated_check_paths(const sbx__isolation *iso, sbx_err *err);

/* The setup file; `port` to listen on inside, 0: any; `name` of the directory to remove, or "". The
 * buffer's error. */
int sbx__isolated_setup(sbx_buf *out, const sbx__isolation *iso, uid_t uid, gid_t gid,
                        uint16_t port, const char *name);
/* How much a command may write of which `kept` bytes are kept. */
uint64_t sbx__isolated_output(const sbx__isolation *iso, uint64_t kept);
/* A sandbox with these options was looked at from inside. */
void sbx__isolated_verified(const sbx__isolation *iso);

/* SBX_EISOLATION: why there is no sandbox. */
int sbx__isolated_fail(const sbx_guard_hello *hello, sbx_err *err);
/* JSON: an object of layers, each with state, errno and hint. */
void sbx__isolated_describe(const sbx_guard_hello *hello, sbx_buf *out);

#endif
