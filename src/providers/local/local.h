/* local.h - what the files of the local provider share.
 *
 *   provider.c  sessions: open, close, probe; the provider's table
 *   config.c    options and the environment made of them
 *   command.c   one command as the helper program wants it: argv, env, descriptors
 *   exec.c      one command from its start to the end of its last process
 *   helper.c    the helper program: start, send, end
 *   files.c     put, get and list as pool work
 *   fs.c, tree.c files beneath the workspace; these know nothing of the others */
#ifndef SBX_LOCAL_H
#define SBX_LOCAL_H

#include "guard/protocol.h"
#include "providers/local/fs.h"
#include "providers/provider.h"

#include <sys/types.h>

/* ---- options -------------------------------------------------------------------------------- */

/* "NAME=value" strings; of two with one name the later one counts. */
typedef struct sbx__env {
  char **items;
  size_t count;
} sbx__env;

struct sbx_config {
  sbx_loop *loop;
  char *workspace; /* an existing directory to work in; NULL: make one */
  char *temp_dir;  /* where to make it */
  char *guard_path;
  char *node_path;
  char **node_args;
  size_t node_arg_count;
  sbx__env env;
  uint32_t kill_grace_ms;
};

extern const char *const sbx__local_options[];
int sbx__local_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options, sbx_err *err);
void sbx__local_config_free(sbx_config *config);

/* ---- helper program ------------------------------------------------------------------------- */

typedef struct sbx__helper {
  int fd;    /* our end of its socket, -1: there is no helper */
  int pidfd; /* -1 where the kernel has none */
  pid_t pid;
} sbx__helper;

void sbx__helper_init(sbx__helper *helper);
/* SBX_EBINARY when the program cannot be run, SBX_EPROVIDER. Should this process vanish, the helper
 * removes the session's directory, if that is ours. */
int sbx__helper_start(sbx__helper *helper, const sbx_session *session, sbx_err *err);
/* Hands over one command. 0 or an errno value; EAGAIN: try again later; EPIPE: the helper has
 * ended, and the command was not taken. */
int sbx__helper_send(const sbx__helper *helper, const int *fds, size_t count);
/* Lets go of the socket: the helper ends everything and then itself. It removes nothing. */
void sbx__helper_hang_up(sbx__helper *helper);
/* True when the process has ended and was collected, by us or by somebody else. Its pidfd stays
 * open, because it may be watched. */
bool sbx__helper_collect(sbx__helper *helper);
void sbx__helper_kill(sbx__helper *helper);
/* Closes what is open of it. */
void sbx__helper_drop(sbx__helper *helper);
/* Hangs up and waits, for a second at most; then kills it. Its pidfd must not be watched. */
void sbx__helper_end_now(sbx__helper *helper);

/* ---- session -------------------------------------------------------------------------------- */

/* Shared by the session and by the work on pool threads; counted on the loop's thread only. */
typedef struct sbx__workspace {
  size_t refs;
  sbx_local_root root;
  char *path;
  char *given;      /* the same as the user wrote it; NULL when it is ours */
  const char *name; /* in `parent`; points into `path` */
  int parent;       /* -1: not ours to remove */
  bool removed;
} sbx__workspace;

struct sbx_session {
  sbx_config *config;
  sbx__workspace *workspace;
  sbx__helper helper;
  bool open;
  int null_fd;
  char *chunk; /* SBX__LOCAL_CHUNK bytes that output passes through */
};

enum { SBX__LOCAL_CHUNK = 64 * 1024 };

sbx__workspace *sbx__workspace_ref(sbx__workspace *workspace);
void sbx__workspace_unref(sbx__workspace *workspace);
/* SBX_ELOST, naming the folder. */
int sbx__workspace_fail_gone(const sbx__workspace *workspace, sbx_err *err);
/* Lets a helper end in the background, after it has stopped answering. */
void sbx__local_release_helper(sbx_loop *loop, sbx__helper *helper);

/* ---- operations ----------------------------------------------------------------------------- */

sbx_op *sbx__local_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                        sbx_exec_status *status, sbx_op_done done, void *arg);
/* Asks a running exec to end its processes. */
void sbx__local_terminate(sbx_op *exec);

sbx_op *sbx__local_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                       void *arg);
sbx_op *sbx__local_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                       void *arg);
sbx_op *sbx__local_list(sbx_session *session, size_t max_entries, sbx_listing *out,
                        sbx_op_done done, void *arg);

/* ---- command -------------------------------------------------------------------------------- */

/* The descriptors of a request, each -1 when there is none. Control and output are not among what
 * sbx__command_make() fills in. */
typedef struct sbx__command {
  int fd[SBX_GUARD_FD_MAX];
} sbx__command;

void sbx__command_init(sbx__command *command);
/* SBX_ETOOBIG, the errors of the working directory, SBX_EPROVIDER, SBX_ENOMEM. */
int sbx__command_make(sbx__command *command, const sbx_session *session, const sbx_exec_spec *spec,
                      sbx_err *err);
void sbx__command_close(sbx__command *command);

/* ---- system --------------------------------------------------------------------------------- */

/* Fills `err` for `error`, an errno value: "cannot <what>: <text>". */
int sbx__local_sys_fail(sbx_err *err, const char *what, int error);
void sbx__close_fd(int *fd);

#endif
