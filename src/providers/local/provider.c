/* provider.c - the local provider: commands as processes of this machine, in one directory.
 *
 * It isolates nothing: commands have the rights of this process. It bounds time, output and
 * processes of programs that are trusted.
 *
 * A session is a directory and a helper process. Commands are children of the helper's, never of
 * this process.
 *
 * Invariant: a directory that was made here is removed exactly when the session ends, after the
 * helper has said, by its end, that no process is left which could write to it. Should this process
 * vanish before, the helper removes it. */
#include "providers/local/local.h"

#include "core/alloc.h"
#include "core/err.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  COLLECT_MS = 5,           /* between two looks at a helper that has no pidfd */
  COLLECT_BUDGET_MS = 7000, /* more than the helper takes: for its guards, then for orphans */
  KILLED_BUDGET_MS = 1000   /* for a helper to end after SIGKILL */
};

/* ---- workspace ------------------------------------------------------------------------------ */

sbx__workspace *sbx__workspace_ref(sbx__workspace *workspace) {
  workspace->refs++;
  return workspace;
}

void sbx__workspace_unref(sbx__workspace *workspace) {
  if (workspace == NULL || --workspace->refs > 0)
    return;
  sbx__close_fd(&workspace->root.fd);
  sbx__close_fd(&workspace->parent);
  sbx_free(workspace->path);
  sbx_free(workspace->given);
  sbx_free(workspace);
}

int sbx__workspace_fail_gone(const sbx__workspace *workspace, sbx_err *err) {
  return sbx_err_set(err, SBX_ELOST, "the workspace folder %s no longer exists", workspace->path);
}

static bool is_ours(const sbx__workspace *workspace) {
  return workspace != NULL && workspace->parent >= 0 && !workspace->removed;
}

/* Opens the directory at `path`, which has no links in it; the string is the workspace's then. */
static int open_workspace(sbx__workspace **out, char *path, bool ours, sbx_err *err) {
  sbx__workspace *w = sbx_calloc(1, sizeof *w);
  if (w == NULL) {
    sbx_free(path);
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  w->refs = 1;
  w->path = path;
  w->parent = -1;
  w->root.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int error = errno;
  char *slash = strrchr(path, '/');
  if (w->root.fd >= 0 && ours && slash != NULL) {
    *slash = '\0';
    w->parent = open(slash == path ? "/" : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    error = errno;
    *slash = '/';
    w->name = slash + 1;
  }
  if (w->root.fd < 0 || (ours && w->parent < 0)) {
    /* What was given is wrong; what is ours has met with something. */
    int code = !ours && error == ENOTDIR ? SBX_EINVAL : SBX_EPROVIDER;
    sbx_err_set(err, code, "cannot open the workspace %s: %s", path, sbx_err_system(error));
    sbx__workspace_unref(w);
    return code;
  }
  sbx_local_root_init(&w->root, w->root.fd, w->path);
  *out = w;
  return SBX_OK;
}

/* The path without links, as a string of ours. NULL with `err` filled. */
static char *resolve(const char *path, sbx_err *err) {
  char *real = realpath(path, NULL);
  int error = errno;
  char *copy = real != NULL ? sbx_strndup(real, strlen(real)) : NULL;
  if (real == NULL && error != ENOMEM)
    sbx_err_set(err, SBX_EINVAL, "cannot use the directory %s: %s", path, sbx_err_system(error));
  else if (copy == NULL)
    sbx_err_set(err, SBX_ENOMEM, NULL);
  free(real);
  return copy;
}

static int make_workspace(sbx__workspace **out, const sbx_config *config, sbx_err *err) {
  char made[PATH_MAX];
  int n = snprintf(made, sizeof made, "%s/cloudsandbox-XXXXXX", config->temp_dir);
  if (n < 0 || (size_t)n >= sizeof made)
    return sbx_err_set(err, SBX_EINVAL, "the path of the temporary directory is too long");
  if (mkdtemp(made) == NULL) {
    int code = errno == ENOSPC || errno == EDQUOT ? SBX_EQUOTA : SBX_EINVAL;
    return sbx_err_set(err, code, "cannot make a workspace in %s: %s", config->temp_dir,
                       sbx_err_system(errno));
  }
  /* The host's umask may have left nothing. */
  int ignored = chmod(made, S_IRWXU);
  (void)ignored;
  char *path = resolve(made, err);
  int rc = path != NULL ? open_workspace(out, path, true, err) : err->code;
  if (rc != SBX_OK)
    rmdir(made);
  return rc;
}

static int use_workspace(sbx__workspace **out, const sbx_config *config, sbx_err *err) {
  char *path = resolve(config->workspace, err);
  if (path == NULL)
    return err->code;
  char *given = sbx_strndup(config->workspace, strlen(config->workspace));
  if (given == NULL) {
    sbx_free(path);
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  sbx__workspace *w = NULL;
  int rc = open_workspace(&w, path, false, err);
  if (w == NULL) {
    sbx_free(given);
    return rc;
  }
  w->given = given;
  w->root.given = given;
  *out = w;
  return SBX_OK;
}

/* ---- release: the helper ends, then the workspace is removed -------------------------------- */

typedef struct release {
  sbx_op op;
  sbx__helper helper;
  sbx_watch *watch; /* of its pidfd */
  sbx_timer timer;
  uint64_t limit_ms;
  bool killed;
  sbx__workspace *workspace; /* to remove; NULL: none */
  struct removal *removal;   /* the pool's work */
} release;

/* Outlives the op when that is aborted. */
typedef struct removal {
  release *release; /* NULL: nobody waits */
  sbx__workspace *workspace;
  int rc;
  sbx_err err;
} removal;

static release *release_of(sbx_op *op) {
  return (release *)(void *)op;
}

/* Before the pidfd is closed: a number that is still watched would be the host's next socket. */
static void stop_waiting(release *r) {
  sbx_timer_stop(&r->timer);
  sbx_watch_stop(r->watch);
  r->watch = NULL;
}

static void finish_release(release *r, const sbx_err *err) {
  if (r->removal != NULL)
    r->removal->release = NULL;
  r->removal = NULL;
  sbx__workspace_unref(r->workspace);
  r->workspace = NULL;
  sbx_op_finish(&r->op, err);
}

static void remove_workspace(void *arg) {
  removal *job = arg;
  job->rc = sbx_local_fs_remove(&job->workspace->root, job->workspace->parent, job->workspace->name,
                                &job->err);
}

static void on_removed(void *arg) {
  removal *job = arg;
  release *r = job->release;
  if (job->rc == SBX_OK)
    job->workspace->removed = true;
  if (r != NULL)
    finish_release(r, job->rc == SBX_OK ? NULL : &job->err);
  sbx__workspace_unref(job->workspace);
  sbx_free(job);
}

static void start_removal(release *r) {
  sbx_err err;
  if (!is_ours(r->workspace)) {
    finish_release(r, NULL);
    return;
  }
  removal *job = sbx_calloc(1, sizeof *job);
  if (job == NULL) {
    sbx_err_set(&err, SBX_ENOMEM, NULL);
    finish_release(r, &err);
    return;
  }
  job->release = r;
  job->workspace = sbx__workspace_ref(r->workspace);
  if (sbx_work_start(r->op.loop, remove_workspace, on_removed, job, &err) != SBX_OK) {
    sbx__workspace_unref(job->workspace);
    sbx_free(job);
    finish_release(r, &err);
    return;
  }
  r->removal = job;
}

/* At once, on this thread: the loop is ending, or there is no memory for more. */
static void release_now(sbx__helper *helper, sbx__workspace *workspace) {
  sbx_err err;
  sbx__helper_end_now(helper);
  if (is_ours(workspace) &&
      sbx_local_fs_remove(&workspace->root, workspace->parent, workspace->name, &err) == SBX_OK)
    workspace->removed = true;
}

static void abort_release(sbx_op *op, int reason) {
  release *r = release_of(op);
  sbx_err err;
  sbx_err_set(&err, reason, NULL);
  stop_waiting(r);
  if (reason == SBX_ECLOSED && r->removal == NULL)
    release_now(&r->helper, r->workspace);
  else
    sbx__helper_end_now(&r->helper);
  finish_release(r, &err);
}

static void destroy_plain(sbx_op *op) {
  sbx_free(op);
}

static const sbx_op_class release_class = {"local release", abort_release, destroy_plain};

/* A helper that is stuck is killed; the loop never waits for it. */
static void collect_helper(release *r) {
  bool ended = sbx__helper_collect(&r->helper);
  uint64_t now = sbx_now_ms();
  if (!ended && now >= r->limit_ms && !r->killed) {
    sbx__helper_kill(&r->helper);
    r->killed = true;
    r->limit_ms = now + KILLED_BUDGET_MS;
  }
  if (!ended && now < r->limit_ms) {
    sbx_timer_start(&r->timer, r->watch != NULL ? r->limit_ms - now : COLLECT_MS);
    return;
  }
  stop_waiting(r);
  sbx__helper_drop(&r->helper);
  start_removal(r);
}

static void on_helper_ended(void *arg, int events) {
  (void)events;
  collect_helper(arg);
}

static void on_collect_timer(sbx_timer *timer) {
  collect_helper((release *)(void *)((char *)timer - offsetof(release, timer)));
}

/* Takes the helper over. NULL when there is no memory; then nothing has changed. */
static sbx_op *start_release(sbx_loop *loop, sbx__helper *helper, sbx__workspace *workspace,
                             sbx_op_done done, void *arg) {
  release *r = sbx_calloc(1, sizeof *r);
  if (r == NULL)
    return NULL;
  r->helper = *helper;
  sbx__helper_init(helper);
  if (workspace != NULL)
    r->workspace = sbx__workspace_ref(workspace);
  r->limit_ms = sbx_now_ms() + COLLECT_BUDGET_MS;
  sbx_timer_init(&r->timer, loop, on_collect_timer);
  sbx_op_init(&r->op, &release_class, loop, done, arg);
  sbx__helper_hang_up(&r->helper);
  if (sbx_loop_is_closing(loop))
    return &r->op; /* aborted from the ready list */
  if (r->helper.pidfd >= 0 && sbx_watch_start(&r->watch, loop, r->helper.pidfd, SBX_READABLE,
                                              on_helper_ended, r, NULL) != SBX_OK)
    r->watch = NULL;
  collect_helper(r);
  return &r->op;
}

void sbx__local_release_helper(sbx_loop *loop, sbx__helper *helper) {
  if (helper->pid != 0 && start_release(loop, helper, NULL, NULL, NULL) == NULL)
    sbx__helper_end_now(helper);
}

/* ---- session -------------------------------------------------------------------------------- */

static sbx_session *session_new(sbx_config *config) {
  sbx_session *session = sbx_calloc(1, sizeof *session);
  if (session == NULL)
    return NULL;
  session->config = config;
  session->null_fd = -1;
  sbx__helper_init(&session->helper);
  return session;
}

static void session_free(sbx_session *session) {
  if (session == NULL)
    return;
  sbx_loop *loop = session->config->loop;
  bool anything = session->helper.pid != 0 || is_ours(session->workspace);
  if (anything && (sbx_loop_is_closing(loop) ||
                   start_release(loop, &session->helper, session->workspace, NULL, NULL) == NULL))
    release_now(&session->helper, session->workspace);
  sbx__workspace_unref(session->workspace);
  sbx__close_fd(&session->null_fd);
  sbx_free(session->chunk);
  sbx_free(session);
}

static const char *session_id(const sbx_session *session) {
  return session->open ? session->workspace->path : NULL;
}

static bool session_owned(const sbx_session *session) {
  return session->config->workspace == NULL;
}

/* ---- operations that end at once ------------------------------------------------------------ */

static const sbx_op_class plain_class = {"local", sbx_op_finish_code, destroy_plain};

static sbx_op *finished_op(sbx_session *session, sbx_op_done done, void *arg) {
  sbx_op *op = sbx_calloc(1, sizeof *op);
  if (op == NULL)
    return NULL;
  sbx_op_init(op, &plain_class, session->config->loop, done, arg);
  sbx_op_finish(op, NULL);
  return op;
}

static sbx_op *probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg) {
  sbx_op *op = finished_op(session, done, arg);
  if (op != NULL)
    *out = sbx_local_root_is_there(&session->workspace->root) ? SBX_ALIVE : SBX_GONE;
  return op;
}

static sbx_op *kill_exec(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg) {
  sbx_op *op = finished_op(session, done, arg);
  if (op != NULL)
    sbx__local_terminate(exec);
  return op;
}

static sbx_op *close_session(sbx_session *session, sbx_op_done done, void *arg) {
  session->open = false;
  return start_release(session->config->loop, &session->helper, session->workspace, done, arg);
}

/* ---- open ----------------------------------------------------------------------------------- */

typedef struct open_op {
  sbx_op op;
  sbx_session *session;
  sbx_watch *watch; /* of the helper's socket */
} open_op;

static void finish_open(open_op *o, const sbx_err *err) {
  sbx_watch_stop(o->watch);
  o->watch = NULL;
  sbx_op_finish(&o->op, err);
}

static void abort_open(sbx_op *op, int reason) {
  sbx_err err;
  sbx_err_set(&err, reason, NULL);
  finish_open((open_op *)(void *)op, &err);
}

static const sbx_op_class open_class = {"local open", abort_open, destroy_plain};

static void on_hello(void *arg, int events) {
  open_op *o = arg;
  sbx_session *session = o->session;
  sbx_guard_frame frame = {0, 0, 0, 0};
  sbx_err err;
  (void)events;
  ssize_t n = recv(session->helper.fd, &frame, sizeof frame, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n == (ssize_t)sizeof frame && frame.kind == SBX_GUARD_HELLO) {
    session->open = true;
    finish_open(o, NULL);
    return;
  }
  sbx_err_set(&err, SBX_EBINARY, "%s does not answer as the helper program should; reinstall it",
              session->config->guard_path);
  finish_open(o, &err);
}

static int prepare(sbx_session *session, sbx_err *err) {
  const sbx_config *config = session->config;
  int rc = SBX_OK;
  if (session->workspace == NULL)
    rc = config->workspace != NULL ? use_workspace(&session->workspace, config, err)
                                   : make_workspace(&session->workspace, config, err);
  if (rc == SBX_OK && session->chunk == NULL &&
      (session->chunk = sbx_malloc(SBX__LOCAL_CHUNK)) == NULL)
    rc = sbx_err_set(err, SBX_ENOMEM, NULL);
  if (rc == SBX_OK && session->null_fd < 0 &&
      (session->null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC)) < 0)
    rc = sbx__local_sys_fail(err, "open /dev/null", errno);
  sbx__local_release_helper(config->loop, &session->helper);
  return rc == SBX_OK ? sbx__helper_start(&session->helper, session, err) : rc;
}

static sbx_op *open_session(sbx_session *session, sbx_op_done done, void *arg) {
  sbx_err err;
  open_op *o = sbx_calloc(1, sizeof *o);
  if (o == NULL)
    return NULL;
  o->session = session;
  sbx_op_init(&o->op, &open_class, session->config->loop, done, arg);
  if (sbx_loop_is_closing(session->config->loop))
    return &o->op; /* aborted from the ready list */
  int rc = prepare(session, &err);
  if (rc == SBX_OK)
    rc = sbx_watch_start(&o->watch, session->config->loop, session->helper.fd, SBX_READABLE,
                         on_hello, o, &err);
  if (rc != SBX_OK)
    finish_open(o, &err);
  return &o->op;
}

/* ---- table ---------------------------------------------------------------------------------- */

const sbx_provider sbx_local_provider = {
    .id = "local",
    .caps = SBX_CAP_SEPARATE_STREAMS | SBX_CAP_TRUE_ORDER | SBX_CAP_STDIN | SBX_CAP_CWD |
            SBX_CAP_KILL | SBX_CAP_LIST | SBX_CAP_LOCAL,
    .limit_margin_ms = 0,
    .kill_budget_ms = 6000, /* the longest grace, and the kill itself */
    .options = sbx__local_options,
    .config_size = sizeof(sbx_config),
    .configure = sbx__local_configure,
    .config_free = sbx__local_config_free,
    .session_new = session_new,
    .session_free = session_free,
    .session_id = session_id,
    .session_owned = session_owned,
    .open = open_session,
    .close = close_session,
    .probe = probe,
    .exec = sbx__local_exec,
    .kill = kill_exec,
    .put = sbx__local_put,
    .get = sbx__local_get,
    .list = sbx__local_list,
};
