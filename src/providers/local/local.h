/* local.h - what the files of the local provider share.
 *
 * From the top to the bottom; a file calls only what stands below it:
 *
 *   provider.c   sessions: open, close, probe; the provider's table
 *   exec.c       one command from its start to the end of its last process
 *   session.c    a session's helper program, from its start to its first words
 *   files.c      put, get and list as pool work
 *   input.c      what a running command is given: standard input, signals
 *   command.c    one command as the helper program wants it: argv, env, descriptors
 *   release.c    the end of the helper program, then of the workspace
 *   removal.c    the workspace's removal as pool work
 *   escaped.c    processes whose guard and helper were killed
 *   helper.c     the helper program: start, send, end
 *   workspace.c  the directory of a sandbox
 *   memory.c     files without a name
 *   isolated.c   options and layers of an isolated sandbox; of the others it knows egress_rules
 *   config.c     options and the environment made of them
 *   fs.c, tree.c files beneath the workspace; these know nothing of the others
 *   egress*.c    the proxy of a sandbox without a network, see egress.h; knows nothing of these;
 *                session.c starts and stops it */
#ifndef SBX_LOCAL_H
#define SBX_LOCAL_H

#include "guard/protocol.h"
#include "providers/local/egress.h"
#include "providers/local/fs.h"
#include "providers/local/isolated.h"
#include "providers/provider.h"

#include <sys/types.h>

/* ---- options -------------------------------------------------------------------------------- */

/* "NAME=value" strings; of two with one name the later one counts. */
typedef struct sbx__env {
  char **items;
  size_t count;
} sbx__env;

/* SBX_ENOMEM. */
int sbx__env_add(sbx__env *env, const char *name, const char *value);
void sbx__env_free(sbx__env *env);

struct sbx_config {
  sbx_loop *loop;
  char *workspace; /* an existing directory to work in; NULL: make one */
  char *temp_dir;  /* where to make it */
  char *guard_path;
  char *node_path;
  char **node_args;
  size_t node_arg_count;
  sbx__env env;
  size_t env_given; /* of them, those before this one are not the user's `env` */
  uint32_t kill_grace_ms;
  sbx__isolation isolation;
};

extern const char *const sbx__local_options[];
int sbx__local_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options, sbx_err *err);
void sbx__local_config_free(sbx_config *config);

/* ---- helper program ------------------------------------------------------------------------- */

typedef struct sbx__helper {
  int fd;    /* our end of its socket, -1: there is no helper */
  int pidfd; /* -1 where the kernel has none */
  pid_t pid;
  /* Of an isolated sandbox `pid` is the monitor, and this its first process: readable when nothing
   * in the sandbox is left. -1 before it has said HELLO. */
  int first;
  int listener; /* a socket that listens inside; -1: there is none */
  bool isolated;
  unsigned serial; /* a helper that takes the place of another one has the next number */
  size_t unseen;   /* commands handed over whose last process nobody has seen end */
} sbx__helper;

void sbx__helper_init(sbx__helper *helper);
/* SBX_EBINARY when the program cannot be run, SBX_EPROVIDER. Should this process vanish, the helper
 * removes the session's directory, if that is ours. */
int sbx__helper_start(sbx__helper *helper, const sbx_session *session, sbx_err *err);
/* Hands over one command. 0 or an errno value; EAGAIN: try again later; EPIPE: the helper has
 * ended, and the command was not taken. */
int sbx__helper_send(sbx__helper *helper, const int fds[SBX_GUARD_FD_MAX]);
/* A command may have stopped it. */
void sbx__helper_continue(sbx__helper *helper);
/* Reads the first words. 0; EAGAIN: they are not there yet; EPROTO: they make no sense. */
int sbx__helper_hear(sbx__helper *helper, sbx_guard_hello *hello);
/* Orders the end: the helper ends everything and then itself. It removes nothing. */
void sbx__helper_hang_up(sbx__helper *helper);
/* After its end: whether it has said that nothing was left. */
bool sbx__helper_saw_the_end(sbx__helper *helper);
/* True when the process has ended and was collected, by us or by somebody else. Its pidfd stays
 * open, because it may be watched. */
bool sbx__helper_collect(sbx__helper *helper);
void sbx__helper_kill(sbx__helper *helper);
/* Closes what is open of it. */
void sbx__helper_drop(sbx__helper *helper);
/* Hangs up and waits, for a second at most; then kills it. Its pidfd must not be watched. */
void sbx__helper_end_now(sbx__helper *helper);

/* ---- session -------------------------------------------------------------------------------- */

typedef struct sbx__removal sbx__removal;

/* Who waits for the session's helper. */
typedef struct sbx__waiter {
  struct sbx__waiter *next;
  void (*fn)(struct sbx__waiter *waiter, const sbx_err *err);
} sbx__waiter;

/* Shared by the session and by the work on pool threads; counted on the loop's thread only. */
typedef struct sbx__workspace {
  size_t refs;
  sbx_local_root root;
  char *path;
  char *given;      /* the same as the user wrote it; NULL when it is ours */
  const char *name; /* in `parent`; points into `path` */
  int parent;       /* -1: not ours to remove */
  bool removed;
  bool has_escaped;      /* something, maybe: it is looked for before the removal */
  sbx__removal *removal; /* under way */
  sbx__remover remover;  /* the removal's */
} sbx__workspace;

struct sbx_session {
  sbx_config *config;
  sbx__workspace *workspace;
  sbx__helper helper;
  sbx_guard_hello hello;  /* of an isolated sandbox: its layers */
  sbx__egress *egress;    /* NULL: the sandbox reaches nobody, or everybody */
  sbx__env proxies;       /* variables that lead programs to it */
  uint16_t proxy_port;    /* where it is reached inside; 0: not known yet */
  sbx_watch *hello_watch; /* of the helper's socket, until its first words */
  sbx__waiter *waiters;
  size_t unseen_before; /* `unseen` of the helpers that had to be replaced */
  bool open;
  bool looked_for_bash;
  char *bash; /* NULL: there is none */
  int null_fd;
  char *chunk; /* SBX__LOCAL_CHUNK bytes that output passes through */
};

enum { SBX__LOCAL_CHUNK = 64 * 1024 };

/* A new directory of our own, or the one that the user gave. */
int sbx__workspace_make(sbx__workspace **out, const sbx_config *config, sbx_err *err);
int sbx__workspace_use(sbx__workspace **out, const sbx_config *config, sbx_err *err);
sbx__workspace *sbx__workspace_ref(sbx__workspace *workspace);
void sbx__workspace_unref(sbx__workspace *workspace);
/* Whether there is one that is ours to remove. */
bool sbx__workspace_is_ours(const sbx__workspace *workspace);
/* SBX_ELOST, naming the folder. */
int sbx__workspace_fail_gone(const sbx__workspace *workspace, sbx_err *err);

/* ---- the session's helper ------------------------------------------------------------------- */

/* Starts the helper, or another one in its place. Who waits is told when it is ready. The errors
 * of sbx__helper_start(); then nobody is told. */
int sbx__session_start(sbx_session *session, sbx_err *err);
bool sbx__session_is_starting(const sbx_session *session);
/* `waiter` is told once: NULL when commands may be sent, or why there is no helper. Not at once. */
void sbx__session_wait(sbx_session *session, sbx__waiter *waiter);
/* One who does not wait is fine. */
void sbx__session_leave(sbx_session *session, sbx__waiter *waiter);
/* Ends the way out, and tells those who wait that there will be no helper. */
void sbx__session_stop(sbx_session *session);

/* ---- the end -------------------------------------------------------------------------------- */

/* Ends the processes that were started with this HOME, which must be an own workspace: for those
 * that nobody guards any more. For a pool thread. */
void sbx__escaped_kill(const char *home);

typedef void (*sbx__removal_done)(void *arg, const sbx_err *err);

/* Removes the workspace; joins a removal that is under way. `done` is called once, maybe at once.
 */
void sbx__removal_start(sbx_loop *loop, sbx__workspace *workspace, sbx__removal_done done,
                        void *arg);
/* Nobody waits any more: the removal, if there is one, stops soon. `done` is not called. */
void sbx__removal_leave(sbx__workspace *workspace);
/* Removes it on this thread, or lets the job that is doing so finish: the loop is ending. */
void sbx__removal_finish_now(sbx__workspace *workspace);

/* The helper ends, then the workspace (NULL: none) is removed. Takes the helper over. SBX_EPROVIDER
 * when `doubtful`, or when nobody has seen the last process end. NULL when there is no memory; then
 * nothing has changed. */
sbx_op *sbx__release_start(sbx_loop *loop, sbx__helper *helper, sbx__workspace *workspace,
                           bool doubtful, sbx_op_done done, void *arg);
/* The same at once, on this thread: the loop is ending, or there is no memory for more. */
void sbx__release_now(sbx__helper *helper, sbx__workspace *workspace);
/* Lets a helper end in the background, after it has stopped answering. */
void sbx__release_helper(sbx_loop *loop, sbx__helper *helper);

/* ---- operations ----------------------------------------------------------------------------- */

sbx_op *sbx__local_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                        sbx_exec_status *status, sbx_op_done done, void *arg);
/* Gives a running exec input or a signal. */
sbx_op *sbx__local_give(sbx_session *session, sbx_op *exec, const sbx_input *input,
                        sbx_op_done done, void *arg);
/* Asks a running exec to end its processes. */
void sbx__local_terminate(sbx_op *exec);

sbx_op *sbx__local_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                       void *arg);
sbx_op *sbx__local_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                       void *arg);
sbx_op *sbx__local_at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                           sbx_op_done done, void *arg);
sbx_op *sbx__local_list(sbx_session *session, size_t max_entries, sbx_listing *out,
                        sbx_op_done done, void *arg);

/* ---- command -------------------------------------------------------------------------------- */

/* The descriptors of a request, each -1 when there is none. Control and output are not among what
 * sbx__command_make() fills in. */
typedef struct sbx__command {
  int fd[SBX_GUARD_FD_MAX];
  int main_dir; /* where the code's main file is; -1: there is none */
  char main_name[SBX__TEMP_NAME];
} sbx__command;

void sbx__command_init(sbx__command *command);
/* SBX_ETOOBIG, SBX_EINVAL (the shell), the errors of the working directory, SBX_EPROVIDER,
 * SBX_ENOMEM. */
int sbx__command_make(sbx__command *command, const sbx_session *session, const sbx_exec_spec *spec,
                      sbx_err *err);
/* Closes what the helper has got, or will not get. */
void sbx__command_close(sbx__command *command);
/* Closes the rest; `removed`: the guard has removed the main file. */
void sbx__command_end(sbx__command *command, bool removed);

/* ---- system --------------------------------------------------------------------------------- */

/* HOME of the commands; NULL: the workspace. */
const char *sbx__local_home(const sbx_config *config);
/* The bash of this machine: in its usual places, else in the PATH of the commands. NULL: none. */
char *sbx__local_find_bash(const sbx_config *config);

/* A file with `first` and `second` in it, to be read from its start. SBX_EQUOTA, SBX_EPROVIDER,
 * SBX_ENOMEM. */
int sbx__local_memory_file(int *out, const sbx_config *config, sbx_slice first, sbx_slice second,
                           sbx_err *err);
/* 0 or an errno value. */
int sbx__local_write_all(int fd, sbx_slice bytes);

/* Fills `err` for `error`, an errno value: "cannot <what>: <text>". */
int sbx__local_sys_fail(sbx_err *err, const char *what, int error);
void sbx__close_fd(int *fd);

#endif
