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
#include <sys/stat.h>
#include <unistd.h>

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
  sbx__session_stop(session);
  sbx__env_free(&session->proxies);
  sbx_loop *loop = session->config->loop;
  bool anything = session->helper.fd >= 0 || sbx__workspace_is_ours(session->workspace);
  if (anything &&
      (sbx_loop_is_closing(loop) ||
       sbx__release_start(loop, &session->helper, session->workspace, false, NULL, NULL) == NULL))
    sbx__release_now(&session->helper, session->workspace);
  sbx__workspace_unref(session->workspace);
  sbx__close_fd(&session->null_fd);
  sbx_free(session->chunk);
  sbx_free(session->bash);
  sbx_free(session);
}

static const char *session_id(const sbx_session *session) {
  return session->open ? session->workspace->path : NULL;
}

static void session_isolation(const sbx_session *session, sbx_buf *out) {
  if (session->open && session->config->isolation.wanted)
    sbx__isolated_describe(&session->hello, out);
}

static bool session_owned(const sbx_session *session) {
  return session->config->workspace == NULL;
}

/* ---- operations that end at once ------------------------------------------------------------ */

static void destroy_plain(sbx_op *op) {
  sbx_free(op);
}

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
  bool doubtful = session->unseen_before > 0;
  session->unseen_before = 0;
  sbx__session_stop(session);
  return sbx__release_start(session->config->loop, &session->helper, session->workspace, doubtful,
                            done, arg);
}

/* ---- open ----------------------------------------------------------------------------------- */

typedef struct open_op {
  sbx_op op;
  sbx_session *session;
  sbx__waiter waiter; /* for the helper */
} open_op;

static void finish_open(open_op *o, const sbx_err *err) {
  sbx__session_leave(o->session, &o->waiter);
  sbx_op_finish(&o->op, err);
}

static void abort_open(sbx_op *op, int reason) {
  sbx_err err;
  sbx_err_set(&err, reason, NULL);
  finish_open((open_op *)(void *)op, &err);
}

static const sbx_op_class open_class = {"local open", abort_open, destroy_plain};

static void on_ready(sbx__waiter *waiter, const sbx_err *err) {
  finish_open((open_op *)(void *)((char *)waiter - offsetof(open_op, waiter)), err);
}

static int prepare(sbx_session *session, sbx_err *err) {
  const sbx_config *config = session->config;
#ifndef __linux__
  if (config->isolation.wanted) {
    session->hello.frame.value = SBX_LAYER_USERNS;
    session->hello.layers[SBX_LAYER_USERNS].step = SBX_STEP_SYSTEM;
    return sbx__isolated_fail(&session->hello, err);
  }
#endif
  int rc = sbx__isolated_check_paths(&config->isolation, err);
  if (rc == SBX_OK && session->workspace == NULL)
    rc = config->workspace != NULL ? sbx__workspace_use(&session->workspace, config, err)
                                   : sbx__workspace_make(&session->workspace, config, err);
  if (rc == SBX_OK && session->chunk == NULL &&
      (session->chunk = sbx_malloc(SBX__LOCAL_CHUNK)) == NULL)
    rc = sbx_err_set(err, SBX_ENOMEM, NULL);
  if (rc == SBX_OK && session->null_fd < 0 &&
      (session->null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC)) < 0)
    rc = sbx__local_sys_fail(err, "open /dev/null", errno);
  if (!session->looked_for_bash)
    session->bash = sbx__local_find_bash(config);
  session->looked_for_bash = true;
  return rc == SBX_OK ? sbx__session_start(session, err) : rc;
}

static sbx_op *open_session(sbx_session *session, sbx_op_done done, void *arg) {
  sbx_err err;
  open_op *o = sbx_calloc(1, sizeof *o);
  if (o == NULL)
    return NULL;
  o->session = session;
  o->waiter.fn = on_ready;
  sbx_op_init(&o->op, &open_class, session->config->loop, done, arg);
  if (sbx_loop_is_closing(session->config->loop))
    return &o->op; /* aborted from the ready list */
  if (prepare(session, &err) == SBX_OK)
    sbx__session_wait(session, &o->waiter);
  else
    finish_open(o, &err);
  return &o->op;
}

/* ---- table ---------------------------------------------------------------------------------- */

const sbx_provider sbx_local_provider = {
    .id = "local",
    .caps = SBX_CAP_SEPARATE_STREAMS | SBX_CAP_TRUE_ORDER | SBX_CAP_STDIN | SBX_CAP_CWD |
            SBX_CAP_KILL | SBX_CAP_LIST | SBX_CAP_LOCAL | SBX_CAP_PATHS | SBX_CAP_PARTS |
            SBX_CAP_SPAWN | SBX_CAP_TTY,
    .limit_margin_ms = 0,
    .closes_attached = true,
    .kill_budget_ms = 6000, /* the longest grace, and the kill itself */
    .options = sbx__local_options,
    .config_size = sizeof(sbx_config),
    .configure = sbx__local_configure,
    .config_free = sbx__local_config_free,
    .session_new = session_new,
    .session_free = session_free,
    .session_id = session_id,
    .session_isolation = session_isolation,
    .session_owned = session_owned,
    .open = open_session,
    .close = close_session,
    .probe = probe,
    .exec = sbx__local_exec,
    .kill = kill_exec,
    .give = sbx__local_give,
    .put = sbx__local_put,
    .get = sbx__local_get,
    .list = sbx__local_list,
    .at_path = sbx__local_at_path,
};
