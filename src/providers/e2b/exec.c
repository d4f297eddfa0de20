/* exec.c - one command: uploads, the process, the end of its tree.
 *
 *   uploads of stdin and of long text, if any --> process --> finish
 *                                                    \--> kill of the tree --> finish
 *
 * Two things tell how a command has ended: the process service's end event, and the line that our
 * wrapper writes into both streams. The line comes also when something in the background keeps the
 * streams open; then what follows it is waited for no longer than a moment.
 *
 * A tree is ended by a second command that kills everything that is marked, and all that descends
 * from it. It runs as root: what a command has started by sudo is root's. Where that fails, the
 * process service's own signal at least reaches the one process that it knows; not before, since a
 * process that has cleared its environment is found by its parent only.
 *
 * Invariants: the start request is sent at most once. A kill succeeds only when nothing marked was
 * left when it was looked for. */
#include "providers/e2b/command.h"

#include "core/err.h"
#include "providers/remote/runner/streamed.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
  DRAIN_MS = 500, /* for what a stream still holds when the command has ended */
  SIGNAL_MS = 4000,
  KILL_AGAIN_MS = 300, /* while it was asked to start, and has not told that it did */
  CLOCK_MARGIN_S = 10, /* by which the sandbox's clock may differ from ours since a start */
};

/* ---- a command ------------------------------------------------------------------------------ */

typedef struct exec_op exec_op;
typedef struct kill_op kill_op;

/* The end of a tree. It is told of the command's end, if that comes before its own. */
struct kill_op {
  sbx_steps steps;
  exec_op *exec; /* NULL when it has ended */
  char mark[sizeof SBX_RUNNER_MARK + 1 + SBX_RUNNER_TOKEN];
  sbx_buf main;
  int64_t pid;            /* of its first process; 0: unknown, -1: not started */
  uint64_t started_at_ms; /* and by the date: */
  int64_t started_at_s;
  sbx_err failure;
};

struct exec_op {
  sbx_steps steps; /* it waits for the process, or for the kill */
  sbx_op *uploads[2];
  sbx__e2b_command command;
  sbx_runner_streamed streamed;
  sbx_exec_status *status;
  uint64_t limit_ms;
  uint64_t started_at_ms;
  int64_t started_at_s; /* the same by the date */
  bool began;           /* the sandbox's life knows of it */
  bool end_background;
  bool has_background; /* something was seen to hold the streams after the command's end */
  bool running;        /* it waits for the process */
  bool killed;         /* somebody kills the tree already */
  kill_op *killer;     /* that the port has asked for */
};

/* ---- the end -------------------------------------------------------------------------------- */

/* The wrapper would have removed them. As far as it goes: what is still on its way to the sandbox
 * stays there. */
static void remove_uploads(exec_op *x) {
  if (x->status->started || sbx_loop_is_closing(x->steps.op.loop))
    return;
  for (size_t i = 0; i < 2; i++) {
    if (x->command.uploads[i].path[0] != '\0')
      sbx__e2b_remove_file(x->steps.session, sbx_slice_str(x->command.uploads[i].path), NULL, NULL);
  }
}

static void let_go(sbx_steps *steps) {
  exec_op *x = (exec_op *)(void *)steps;
  sbx_runner_streamed_stop(&x->streamed);
  if (x->killer != NULL)
    x->killer->exec = NULL;
  x->killer = NULL;
  if (x->began)
    sbx__e2b_life_leave(x->steps.session);
  x->began = false;
  for (size_t i = 0; i < 2; i++)
    sbx_op_drop(&x->uploads[i], SBX_ECANCELED);
  remove_uploads(x);
}

static void on_ending(sbx_steps *steps, int reason) {
  exec_op *x = (exec_op *)(void *)steps;
  if (!x->running)
    return;
  sbx_op *running = steps->request;
  sbx_op_drop(&steps->request, reason);
  x->status->started = sbx__e2b_process_end(running)->may_have_run;
}

static void release(sbx_steps *steps) {
  exec_op *x = (exec_op *)(void *)steps;
  sbx__e2b_command_free(&x->command);
  sbx_runner_streamed_deinit(&x->streamed);
}

/* ---- the end of a tree ---------------------------------------------------------------------- */

static void on_signal_reply(sbx_steps *steps, sbx_http *reply) {
  (void)reply; /* the process may have ended meanwhile */
  sbx_steps_finish(steps, NULL);
}

/* Nobody waits for the answer. */
static void send_signal(sbx_session *session, int64_t pid) {
  sbx_buf body;
  sbx_steps *steps = sbx_steps_new(sizeof *steps, session, session->config->loop, NULL, NULL);
  if (steps == NULL)
    return;
  sbx_buf_init(&body, 256);
  sbx_buf_appendf(&body, "{\"process\":{\"pid\":%lld},\"signal\":\"SIGNAL_SIGKILL\"}",
                  (long long)pid);
  sbx_op_set_deadline(&steps->op, SIGNAL_MS);
  sbx__e2b_call(steps, "/process.Process/SendSignal", &body, on_signal_reply);
}

static void release_kill(sbx_steps *steps) {
  kill_op *k = (kill_op *)(void *)steps;
  if (k->exec != NULL)
    k->exec->killer = NULL;
  sbx_buf_deinit(&k->main);
}

/* The exec ends soon, also when its stream does not. */
static void finish_kill(kill_op *k) {
  exec_op *x = k->exec;
  bool gone = k->failure.code == SBX_OK;
  if (gone && x != NULL) {
    x->status->tree_gone = true;
    sbx_runner_streamed_drain(&x->streamed);
  }
  sbx_steps_finish(&k->steps, gone ? NULL : &k->failure);
}

static void on_main_removed(sbx_op *op, void *arg) {
  kill_op *k = arg;
  (void)op;
  k->steps.request = NULL;
  finish_kill(k);
}

static void kill_now(sbx_steps *steps);

static void on_killed(sbx_op *op, void *arg) {
  kill_op *k = arg;
  int code = op->err.code;
  k->steps.request = NULL;
  k->failure = op->err;
  if (code != SBX_OK && k->pid > 0)
    send_signal(k->steps.session, k->pid);
  if (code == SBX_OK && k->exec != NULL && k->pid == 0)
    sbx_steps_wait(&k->steps, KILL_AGAIN_MS, kill_now); /* it may start only now */
  else if (k->main.len > 0 && (code == SBX_OK || code == SBX_EPROVIDER))
    sbx_steps_wait_for(&k->steps, sbx__e2b_remove_file(k->steps.session, sbx_buf_slice(&k->main),
                                                       on_main_removed, k));
  else
    finish_kill(k);
}

static void kill_now(sbx_steps *steps) {
  kill_op *k = (kill_op *)(void *)steps;
  const exec_op *x = k->exec;
  int64_t age_s = (int64_t)((sbx_now_ms() - k->started_at_ms) / 1000);
  int64_t by_date_s = (int64_t)time(NULL) - k->started_at_s; /* this machine may have slept */
  char first[64] = "";
  if (x != NULL && x->running)
    k->pid = sbx__e2b_process_end(x->steps.request)->pid;
  if (k->pid > 0)
    snprintf(first, sizeof first, "%lld:~%lld", (long long)k->pid,
             (long long)(age_s > by_date_s ? age_s : by_date_s) + CLOCK_MARGIN_S);
  const char *const words[] = {k->mark, first, NULL};
  sbx_steps_wait_for(steps, sbx__e2b_killer(steps->session, SBX_RUNNER_KILL, words, on_killed, k));
}

static kill_op *kill_new(exec_op *x, sbx_op_done done, void *arg) {
  sbx_session *session = x->steps.session;
  kill_op *k = sbx_steps_new(sizeof *k, session, session->config->loop, done, arg);
  if (k == NULL)
    return NULL;
  k->steps.release = release_kill;
  memcpy(k->mark, x->streamed.mark, sizeof k->mark);
  k->started_at_ms = x->started_at_ms;
  k->started_at_s = x->started_at_s;
  sbx_buf_init(&k->main, x->streamed.main.max);
  sbx_buf_append_slice(&k->main, sbx_buf_slice(&x->streamed.main));
  x->killed = true;
  return k;
}

sbx_op *sbx__e2b_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg) {
  exec_op *x = (exec_op *)(void *)exec;
  kill_op *k = kill_new(x, done, arg);
  (void)session;
  if (k == NULL)
    return NULL;
  k->exec = x;
  k->pid = x->started_at_ms == 0 ? -1 : 0;
  x->killer = k;
  kill_now(&k->steps);
  return &k->steps.op;
}

/* ---- how it ended --------------------------------------------------------------------------- */

static void on_tree_killed(sbx_op *op, void *arg) {
  exec_op *x = arg;
  x->steps.request = NULL;
  sbx_steps_finish(&x->steps, sbx_runner_streamed_tree(&x->streamed, op->err.code == SBX_OK));
}

/* The service has ended the process that it knows, or only its stream; not what that had started.
 */
static void end_tree(exec_op *x, const sbx__e2b_end *end) {
  kill_op *k = kill_new(x, on_tree_killed, x);
  if (k != NULL) {
    k->pid = end->pid;
    kill_now(&k->steps);
  }
  sbx_steps_wait_for(&x->steps, k != NULL ? &k->steps.op : NULL);
}

static void take_end(exec_op *x, const sbx__e2b_end *end) {
  sbx_exec_status *status = x->status;
  if (end->ended && !end->exited) {
    status->outcome = SBX_SIGNALLED;
    status->signal_number = end->signal_number;
    status->signal_name = end->signal_name;
  } else if (end->ended || sbx_runner_streamed_told(&x->streamed)) {
    status->exit_code =
        end->ended ? end->exit_code : sbx_runner_streamed_line(&x->streamed)->exit_code;
  } else { /* its tree was killed */
    sbx_runner_streamed_killed(&x->streamed);
  }
  status->background_killed = x->end_background && x->has_background;
  status->background_running = !x->end_background && x->has_background && !x->killed;
  if (x->end_background && status->started && !x->killed)
    end_tree(x, end);
  else
    sbx_steps_finish(&x->steps, NULL);
}

/* Killed before it was started. */
static void end_unstarted(exec_op *x) {
  static const sbx__e2b_end nothing;
  take_end(x, &nothing);
}

static bool ended_by_limit(const exec_op *x, const sbx__e2b_end *end) {
  bool passed = x->limit_ms != SBX_NO_TIMEOUT && sbx_now_ms() - x->started_at_ms >= x->limit_ms;
  return end->limit_passed ||
         (passed && !x->killed && end->ended && !end->exited && end->signal_number == 9);
}

/* Whether something runs that nobody would end at its limit. In a sandbox that is gone or paused
 * nothing does. */
static bool is_left_alone(const exec_op *x, const sbx__e2b_end *end, const sbx_err *err) {
  bool may_run = end->pid > 0 || (end->may_have_run && err->code == SBX_ENET);
  return may_run && !x->killed && err->code != SBX_ELOST && err->code != SBX_ECONFLICT;
}

static void on_process_done(sbx_op *op, void *arg) {
  exec_op *x = arg;
  const sbx__e2b_end *end = sbx__e2b_process_end(op);
  sbx_err err;
  x->steps.request = NULL;
  x->running = false;
  x->status->started = end->may_have_run;
  sbx_runner_streamed_flush(&x->streamed);
  x->status->limit_kept = ended_by_limit(x, end) && !x->status->tree_gone;
  if (x->status->limit_kept) {
    end_tree(x, end);
  } else if (sbx_runner_streamed_unstarted(&x->streamed, "e2b", &err)) {
    sbx_steps_finish(&x->steps, &err);
  } else if (end->ended || sbx_runner_streamed_told(&x->streamed) || x->status->tree_gone) {
    take_end(x, end);
  } else if (is_left_alone(x, end, &op->err)) {
    sbx_err_copy(&x->streamed.failure, &op->err);
    end_tree(x, end);
  } else {
    sbx_steps_finish(&x->steps, &op->err);
  }
}

/* ---- output --------------------------------------------------------------------------------- */

static void on_output(void *arg, sbx_stream stream, sbx_slice bytes) {
  sbx_runner_streamed_feed(&((exec_op *)arg)->streamed, stream, bytes);
}

static void on_gap(void *arg) {
  exec_op *x = arg;
  x->status->output_lost = x->status->output_lost || !sbx_runner_streamed_told(&x->streamed);
  sbx_runner_streamed_flush(&x->streamed);
}

static void on_drain(sbx_timer *timer) {
  exec_op *x = (exec_op *)(void *)((char *)timer - offsetof(exec_op, streamed.drain));
  if (x->running) {
    x->has_background = sbx_runner_streamed_told(&x->streamed);
    sbx__e2b_process_leave(x->steps.request);
  } else if (x->started_at_ms == 0) {
    end_unstarted(x);
  }
}

/* ---- start ---------------------------------------------------------------------------------- */

static void run(exec_op *x) {
  sbx_session *session = x->steps.session;
  sbx__e2b_process_spec spec = {.request = sbx_buf_slice(&x->command.request),
                                .cwd = x->streamed.dir,
                                .limit_ms = x->limit_ms,
                                .on_output = on_output,
                                .on_gap = on_gap};
  x->started_at_ms = sbx_now_ms();
  x->started_at_s = (int64_t)time(NULL);
  sbx__e2b_life_enter(session, x->limit_ms);
  x->began = true;
  x->running = true;
  sbx_steps_wait_for(&x->steps, sbx__e2b_process(session, &spec, on_process_done, x));
}

static void on_uploaded(sbx_op *op, void *arg) {
  exec_op *x = arg;
  for (size_t i = 0; i < 2; i++) {
    if (x->uploads[i] == op)
      x->uploads[i] = NULL;
  }
  if (x->steps.op.finished)
    return;
  if (op->err.code != SBX_OK)
    sbx_steps_finish(&x->steps, &op->err);
  else if (x->killed)
    end_unstarted(x);
  else if (x->uploads[0] == NULL && x->uploads[1] == NULL)
    run(x);
}

/* The bytes to upload are the caller's, so all uploads begin now. */
static int upload(exec_op *x, sbx_err *err) {
  bool any = false;
  for (size_t i = 0; i < 2; i++) {
    const sbx__e2b_upload *file = &x->command.uploads[i];
    if (file->path[0] == '\0')
      continue;
    x->uploads[i] = sbx__e2b_upload_file(x->steps.session, file, on_uploaded, x);
    if (x->uploads[i] == NULL)
      return sbx_err_set(err, SBX_ENOMEM, NULL);
    any = true;
  }
  if (!any)
    run(x);
  return SBX_OK;
}

sbx_op *sbx__e2b_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                      sbx_exec_status *status, sbx_op_done done, void *arg) {
  sbx_err err;
  exec_op *x = sbx_steps_new(sizeof *x, session, session->config->loop, done, arg);
  if (x == NULL)
    return NULL;
  x->steps.ending = on_ending;
  x->steps.let_go = let_go;
  x->steps.release = release;
  x->status = status;
  x->limit_ms = spec->timeout_ms;
  x->end_background = spec->end_background;
  x->streamed.drain_ms = DRAIN_MS;
  sbx_timer_init(&x->streamed.drain, session->config->loop, on_drain);
  int rc = sbx_runner_streamed_init(&x->streamed, spec, out, status, &err);
  if (rc == SBX_OK)
    rc = sbx__e2b_command_make(&x->command, spec, session->config, x->streamed.token, &err);
  if (rc == SBX_OK)
    rc = upload(x, &err);
  if (rc != SBX_OK)
    sbx_steps_finish(&x->steps, &err);
  return &x->steps.op;
}
