/* release.c - the end of a helper program and of what it guards, then of the workspace.
 *
 * Invariant: success says that the helper has seen the last process of the sandbox end. A helper
 * that was killed cannot say so: then those commands count whose end nobody else has seen. */
#include "providers/local/local.h"

#include "core/alloc.h"
#include "core/err.h"

enum {
  COLLECT_MS = 5,           /* between two looks at a helper that has no pidfd */
  CONTINUE_MS = 100,        /* between two attempts to wake one that was stopped */
  COLLECT_BUDGET_MS = 7000, /* more than the helper takes: for its guards, then for orphans */
  KILLED_BUDGET_MS = 1000,  /* for a helper to end after SIGKILL */
  DETACHED_LIMIT_MS = 60000 /* of a release that nobody waits for */
};

typedef struct release {
  sbx_op op;
  sbx__helper helper;
  sbx_watch *watch; /* of its pidfd */
  sbx_timer timer;
  uint64_t limit_ms;
  bool killed;
  bool doubtful; /* something of the sandbox may live on */
  bool removing;
  sbx__workspace *workspace; /* to remove; NULL: none */
} release;

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
  sbx__workspace *workspace = r->workspace;
  r->workspace = NULL;
  if (r->removing && workspace->removal != NULL)
    sbx__removal_leave(workspace);
  sbx__workspace_unref(workspace);
  sbx_op_finish(&r->op, err);
}

static void on_removed(void *arg, const sbx_err *err) {
  release *r = arg;
  sbx_err doubt;
  r->removing = false;
  if (err == NULL && r->doubtful) {
    sbx_err_set(&doubt, SBX_EPROVIDER,
                "the helper process of the sandbox was killed, so processes that its commands "
                "have started may live on; close() may be called again");
    err = &doubt;
  }
  finish_release(r, err);
}

static void start_removal(release *r) {
  if (!sbx__workspace_is_ours(r->workspace)) {
    on_removed(r, NULL);
    return;
  }
  r->removing = true;
  if (r->doubtful && r->workspace->removal == NULL)
    r->workspace->has_escaped = true;
  sbx__removal_start(r->op.loop, r->workspace, on_removed, r);
}

void sbx__release_now(sbx__helper *helper, sbx__workspace *workspace) {
  sbx__helper_end_now(helper);
  if (sbx__workspace_is_ours(workspace))
    sbx__removal_finish_now(workspace);
}

static void abort_release(sbx_op *op, int reason) {
  release *r = release_of(op);
  sbx_err err;
  sbx_err_set(&err, reason, NULL);
  stop_waiting(r);
  if (reason == SBX_ECLOSED)
    sbx__release_now(&r->helper, r->workspace);
  else
    sbx__helper_end_now(&r->helper);
  finish_release(r, &err);
}

static void destroy_release(sbx_op *op) {
  sbx_free(op);
}

static const sbx_op_class release_class = {"local release", abort_release, destroy_release};

static bool may_live_on(release *r) {
  return r->helper.fd >= 0 && r->helper.unseen > 0 && !sbx__helper_saw_the_end(&r->helper);
}

/* A helper that was killed leaves the end of its first process, and by it of all others, to the
 * kernel, which takes its time. */
static bool is_ending(release *r) {
  return r->helper.isolated && may_live_on(r) && r->helper.first >= 0;
}

/* A helper that is stuck is killed; the loop never waits for it. */
static void collect_helper(release *r) {
  bool collected = sbx__helper_collect(&r->helper);
  bool ended = collected && !is_ending(r);
  uint64_t now = sbx_now_ms();
  if (collected)
    stop_waiting(r);
  if (!ended && !r->killed && (collected || now >= r->limit_ms)) {
    sbx__helper_kill(&r->helper);
    r->killed = true;
    if (r->limit_ms < now + KILLED_BUDGET_MS)
      r->limit_ms = now + KILLED_BUDGET_MS;
  }
  if (!ended && now < r->limit_ms) {
    uint64_t left = r->limit_ms - now;
    sbx__helper_continue(&r->helper);
    sbx_timer_start(&r->timer, r->watch == NULL     ? COLLECT_MS
                               : left < CONTINUE_MS ? left
                                                    : CONTINUE_MS);
    return;
  }
  stop_waiting(r);
  if (may_live_on(r))
    r->doubtful = true;
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

sbx_op *sbx__release_start(sbx_loop *loop, sbx__helper *helper, sbx__workspace *workspace,
                           bool doubtful, sbx_op_done done, void *arg) {
  release *r = sbx_calloc(1, sizeof *r);
  if (r == NULL)
    return NULL;
  r->helper = *helper;
  r->doubtful = doubtful;
  sbx__helper_init(helper);
  if (workspace != NULL)
    r->workspace = sbx__workspace_ref(workspace);
  r->limit_ms = sbx_now_ms() + COLLECT_BUDGET_MS;
  sbx_timer_init(&r->timer, loop, on_collect_timer);
  sbx_op_init(&r->op, &release_class, loop, done, arg);
  if (done == NULL)
    sbx_op_set_deadline(&r->op, DETACHED_LIMIT_MS);
  sbx__helper_hang_up(&r->helper);
  if (sbx_loop_is_closing(loop))
    return &r->op; /* aborted from the ready list */
  if (r->helper.pidfd >= 0 && sbx_watch_start(&r->watch, loop, r->helper.pidfd, SBX_READABLE,
                                              on_helper_ended, r, NULL) != SBX_OK)
    r->watch = NULL;
  collect_helper(r);
  return &r->op;
}

/* Its number stays: commands of it are told from the next one's by that. */
void sbx__release_helper(sbx_loop *loop, sbx__helper *helper) {
  unsigned serial = helper->serial;
  if (helper->fd >= 0 && sbx__release_start(loop, helper, NULL, false, NULL, NULL) == NULL)
    sbx__helper_end_now(helper);
  helper->serial = serial;
}
