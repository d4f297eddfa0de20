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
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- session -------------------------------------------------------------------------------- */

static void close_egress(sbx_session *session) {
  sbx__egress_stop(session->egress);
  session->egress = NULL;
  sbx__env_free(&session->proxies);
}

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
  close_egress(session);
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
  close_egress(session);
  return sbx__release_start(session->config->loop, &session->helper, session->workspace, doubtful,
                            done, arg);
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

static int add_proxy(void *arg, const char *name, const char *value) {
  return sbx__env_add(arg, name, value);
}

/* The way to the allowed hosts: over the socket that listens inside. */
static int open_egress(sbx_session *session, sbx_err *err) {
  const sbx_config *config = session->config;
  struct sockaddr_in at = {.sin_family = AF_UNSPEC};
  socklen_t len = sizeof at;
  sbx__egress_rules rules;
  int *listener = &session->helper.listener;
  if (config->isolation.setup.network != SBX_GUARD_NET_LISTEN)
    return SBX_OK;
  if (getsockname(*listener, (struct sockaddr *)&at, &len) != 0 || at.sin_family != AF_INET)
    return sbx_err_set(err, SBX_EBINARY, "%s has opened no way to the allowed hosts; reinstall it",
                       config->guard_path);
  sbx__egress_rules_init(&rules);
  int rc = sbx__egress_rules_copy(&rules, &config->isolation.hosts);
  if (rc == SBX_OK)
    rc = sbx__egress_env(ntohs(at.sin_port), add_proxy, &session->proxies);
  if (rc != SBX_OK)
    sbx_err_set(err, rc, NULL);
  else
    rc = sbx__egress_start(&session->egress, config->loop, *listener, &rules, NULL, err);
  if (rc == SBX_OK)
    *listener = -1;
  sbx__egress_rules_deinit(&rules);
  return rc;
}

static void on_hello(void *arg, int events) {
  open_op *o = arg;
  sbx_session *session = o->session;
  sbx_err err;
  (void)events;
  int error = sbx__helper_hear(&session->helper, &session->hello);
  if (error == EAGAIN)
    return;
  if (error == 0 && session->hello.frame.kind == SBX_GUARD_HELLO) {
    if (session->helper.isolated)
      sbx__isolated_verified(&session->config->isolation);
    session->open = open_egress(session, &err) == SBX_OK;
    finish_open(o, session->open ? NULL : &err);
    return;
  }
  if (error == 0 && session->helper.isolated)
    sbx__isolated_fail(&session->hello, &err);
  else
    sbx_err_set(&err, SBX_EBINARY, "%s does not answer as the helper program should; reinstall it",
                session->config->guard_path);
  finish_open(o, &err);
}

static int prepare(sbx_session *session, sbx_err *err) {
  const sbx_config *config = session->config;
  int rc = SBX_OK;
#ifndef __linux__
  if (config->isolation.wanted) {
    session->hello.frame.value = SBX_LAYER_USERNS;
    session->hello.layers[SBX_LAYER_USERNS].step = SBX_STEP_SYSTEM;
    return sbx__isolated_fail(&session->hello, err);
  }
#endif
  if (session->workspace == NULL)
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
  close_egress(session);
  sbx__release_helper(config->loop, &session->helper);
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
            SBX_CAP_KILL | SBX_CAP_LIST | SBX_CAP_LOCAL | SBX_CAP_PATHS | SBX_CAP_PARTS,
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
    .put = sbx__local_put,
    .get = sbx__local_get,
    .list = sbx__local_list,
    .at_path = sbx__local_at_path,
};
