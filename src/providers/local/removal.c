/* removal.c - removing a workspace of our own on libuv's pool threads.
 *
 * The pool is the host's, too, and has four threads. So a job removes for a short time, and what is
 * left is another job's; of those there is one at a time in the whole process.
 *
 * Invariant: of one workspace there is one removal. It is joined by whoever wants the same, and
 * while a job runs, only its thread touches the workspace's remover. */
#include "providers/local/local.h"

#include "core/alloc.h"
#include "core/err.h"

#include <stdatomic.h>

enum {
  SLICE_MS = 50,    /* of one job */
  PAUSE_MS = 1,     /* between two jobs of one removal: others get their turn */
  RETRY_MS = 4,     /* while the removal of another workspace has the turn */
  AT_ONCE_MS = 3000 /* of a removal that cannot wait for the loop */
};

struct sbx__removal {
  sbx__workspace *workspace;
  sbx_loop *loop;
  sbx__removal_done done; /* NULL: nobody waits, and it stops */
  void *arg;
  sbx_timer timer;
  bool working;
  bool has_turn;
  bool paused; /* by the last job */
  int rc;
  sbx_err err;
  atomic_bool stop;
  uint64_t limit_ms;       /* of the job */
  uint64_t hurry_limit_ms; /* valid with `hurry` */
  atomic_bool hurry;       /* the loop ends: no more jobs, so this one goes on for longer */
};

/* Taken by the second and all further jobs of a removal. */
static atomic_flag turn = ATOMIC_FLAG_INIT;

static void leave_turn(sbx__removal *r) {
  if (r->has_turn)
    atomic_flag_clear(&turn);
  r->has_turn = false;
}

static void end(sbx__removal *r, const sbx_err *err) {
  sbx__workspace *workspace = r->workspace;
  sbx__removal_done done = r->done;
  leave_turn(r);
  sbx_timer_stop(&r->timer);
  workspace->removal = NULL;
  if (done != NULL)
    done(r->arg, err);
  sbx__workspace_unref(workspace);
  sbx_free(r);
}

static bool is_over(void *arg) {
  const sbx__removal *r = arg;
  if (atomic_load(&r->hurry))
    return sbx_now_ms() >= r->hurry_limit_ms;
  return atomic_load(&r->stop) || sbx_now_ms() >= r->limit_ms;
}

static void work(void *arg) {
  sbx__removal *r = arg;
  sbx__remover *remover = &r->workspace->remover;
  if (r->workspace->has_escaped)
    sbx__escaped_kill(r->workspace->path);
  r->workspace->has_escaped = false;
  r->limit_ms = sbx_now_ms() + SLICE_MS;
  remover->pause = is_over;
  remover->arg = r;
  r->rc = sbx_local_fs_remove(remover, &r->paused, &r->err);
}

static void on_worked(void *arg) {
  sbx__removal *r = arg;
  r->working = false;
  leave_turn(r);
  if (r->rc == SBX_OK && !r->paused)
    r->workspace->removed = true;
  if (r->rc != SBX_OK || r->workspace->removed)
    end(r, r->rc != SBX_OK ? &r->err : NULL);
  else if (r->done == NULL)
    end(r, NULL);
  else
    sbx_timer_start(&r->timer, PAUSE_MS);
}

static void start_job(sbx__removal *r) {
  sbx_err err;
  r->working = true;
  if (sbx_work_start(r->loop, work, on_worked, r, &err) == SBX_OK)
    return;
  r->working = false;
  end(r, &err);
}

static void on_timer(sbx_timer *timer) {
  sbx__removal *r = (sbx__removal *)(void *)((char *)timer - offsetof(sbx__removal, timer));
  r->has_turn = !atomic_flag_test_and_set(&turn);
  if (r->has_turn)
    start_job(r);
  else
    sbx_timer_start(&r->timer, RETRY_MS);
}

void sbx__removal_start(sbx_loop *loop, sbx__workspace *workspace, sbx__removal_done done,
                        void *arg) {
  sbx_err err;
  sbx__removal *r = workspace->removal;
  if (r == NULL) {
    r = sbx_calloc(1, sizeof *r);
    if (r == NULL) {
      sbx_err_set(&err, SBX_ENOMEM, NULL);
      done(arg, &err);
      return;
    }
    r->workspace = sbx__workspace_ref(workspace);
    r->loop = loop;
    sbx_timer_init(&r->timer, loop, on_timer);
    workspace->removal = r;
    r->done = done;
    r->arg = arg;
    start_job(r);
    return;
  }
  r->done = done;
  r->arg = arg;
  atomic_store(&r->stop, false);
}

void sbx__removal_leave(sbx__workspace *workspace) {
  sbx__removal *r = workspace->removal;
  if (r == NULL)
    return;
  r->done = NULL;
  r->arg = NULL;
  atomic_store(&r->stop, true);
  if (!r->working)
    end(r, NULL);
}

void sbx__removal_finish_now(sbx__workspace *workspace) {
  sbx__removal *r = workspace->removal;
  sbx__remover *remover = &workspace->remover;
  sbx__removal now = {.hurry_limit_ms = sbx_now_ms() + AT_ONCE_MS};
  if (r != NULL && r->working) {
    r->done = NULL;
    r->hurry_limit_ms = now.hurry_limit_ms;
    atomic_store(&r->hurry, true);
    return;
  }
  sbx__removal_leave(workspace);
  atomic_init(&now.hurry, true);
  remover->pause = is_over;
  remover->arg = &now;
  if (sbx_local_fs_remove(remover, &now.paused, &now.err) == SBX_OK && !now.paused)
    workspace->removed = true;
  remover->pause = NULL;
}
