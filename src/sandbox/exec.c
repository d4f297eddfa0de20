/* exec.c - runs one command: two clocks, kill, outcome.
 *
 * The limit goes to the provider with the command, and our own deadline runs beside it, a little
 * longer. When that passes, or the user cancels, the process tree is killed, and one budget covers
 * the answer to the kill and the end of the command. Then the call settles, whatever is missing.
 *
 * Invariant: the provider's exec is called at most once per call, but for a sandbox that did not
 * run and was started again; an outcome is what the provider has seen or what we did, never a
 * guess. */
#include "sandbox/call.h"

#include "core/alloc.h"
#include "sandbox/input.h"
#include "sandbox/relay.h"
#include "sandbox/spec.h"

typedef enum kill_state { KILL_NOT_ASKED, KILL_ASKED, KILL_ACCEPTED, KILL_FAILED } kill_state;

typedef struct exec_call {
  sbx_call call; /* its child is the provider's exec */
  sbx_exec_cb cb;
  sbx_output_cb on_output;
  sbx_exec_spec spec; /* borrowed from the user for the run, or pointing into spec_block */
  char *spec_block;
  sbx_output *output;
  sbx_exec_status status;
  uint64_t started_at_ms;
  uint64_t duration_ms;
  bool ended; /* the provider saw the command end */

  bool timed_out;
  bool cancelled;
  sbx_op *kill;
  kill_state kill_state;
  sbx_timer budget; /* of the kill */
  sbx_termination termination;

  sbx__inputs inputs; /* of a command with `open_stdin` */

  sbx__relay relay; /* to the user's on_output */
  sbx_task relay_task;
  bool relay_lost; /* there was no memory for a part of it */
} exec_call;

static exec_call *exec_of(sbx_call *call) {
  return (exec_call *)(void *)call;
}

/* ---- the end ---- */

/* The command was ended by us, and both the exec and the kill are over. */
static void settle(exec_call *exec) {
  sbx_call *call = &exec->call;
  bool accepted = exec->kill_state == KILL_ACCEPTED;
  bool seen = accepted && call->sb->provider->kill_confirms && !exec->status.kill_is_partial;
  bool gone = exec->status.tree_gone && (exec->ended || !exec->status.started);
  if (gone || (exec->ended && seen))
    exec->termination = SBX_TERM_CONFIRMED;
  else
    exec->termination = accepted ? SBX_TERM_REQUESTED : SBX_TERM_UNKNOWN;
  /* Neither the command nor the kill was answered: slow, or lost? */
  bool silent = exec->timed_out && !exec->ended && !accepted;
  sbx_err_clear(&call->cause);
  if (silent) {
    sbx__call_probe(call);
  } else if (call->shut && !exec->timed_out) {
    sbx_err_set(&call->cause, SBX_ECANCELED, NULL);
    sbx__call_finish(call, &call->cause);
  } else {
    sbx__call_finish(call, NULL);
  }
}

/* Called when the exec or the kill is over. */
static void step(exec_call *exec) {
  sbx_call *call = &exec->call;
  if (call->child != NULL)
    return;
  if (exec->kill != NULL) {
    if (exec->ended && exec->status.tree_gone)
      sbx_op_abort(exec->kill, SBX_ECANCELED); /* it has nothing to add */
    return;
  }
  sbx_timer_stop(&exec->budget);
  sbx_op_set_deadline(&call->op, SBX_NO_TIMEOUT);
  call->may_have_run = exec->status.started;
  if (exec->kill_state != KILL_NOT_ASKED) {
    settle(exec);
  } else if (exec->ended) {
    exec->timed_out = exec->status.limit_kept;
    if (exec->timed_out)
      exec->termination = exec->status.tree_gone ? SBX_TERM_CONFIRMED : SBX_TERM_REQUESTED;
    sbx__call_finish(call, NULL);
  } else {
    sbx__call_fail(call);
  }
}

static void on_exec_done(sbx_op *op, void *arg) {
  exec_call *exec = arg;
  exec->call.child = NULL;
  sbx__inputs_end(&exec->inputs);
  exec->duration_ms = sbx_now_ms() - exec->started_at_ms;
  exec->ended = op->err.code == SBX_OK;
  sbx_err_copy(&exec->call.cause, &op->err);
  step(exec);
}

/* ---- kill ---- */

static void on_kill_done(sbx_op *op, void *arg) {
  exec_call *exec = arg;
  exec->kill = NULL;
  exec->kill_state = op->err.code == SBX_OK ? KILL_ACCEPTED : KILL_FAILED;
  step(exec);
}

static void drop_both(exec_call *exec) {
  if (exec->kill != NULL)
    sbx_op_abort(exec->kill, SBX_ECANCELED);
  if (exec->call.child != NULL)
    sbx_op_abort(exec->call.child, SBX_ECANCELED);
}

static void on_budget(sbx_timer *timer) {
  drop_both((exec_call *)(void *)((char *)timer - offsetof(exec_call, budget)));
}

static void start_kill(exec_call *exec) {
  sbx_call *call = &exec->call;
  const sbx_provider *provider = call->sb->provider;
  if (exec->kill_state != KILL_NOT_ASKED)
    return;
  exec->kill_state = KILL_ASKED;
  if (sbx_provider_caps(provider, call->sb->places.config) & SBX_CAP_KILL)
    exec->kill = provider->kill(call->place->session, call->child, on_kill_done, exec);
  if (exec->kill == NULL) {
    exec->kill_state = KILL_FAILED;
    drop_both(exec);
    return;
  }
  sbx_timer_start(&exec->budget, provider->kill_budget_ms);
}

/* ---- stop ---- */

static void stop_exec(sbx_call *call, int reason) {
  exec_call *exec = exec_of(call);
  if (reason == SBX_ECLOSED) {
    if (exec->kill != NULL)
      sbx_op_abort(exec->kill, reason);
    if (call->child != NULL)
      sbx_op_abort(call->child, reason);
    return;
  }
  /* A command that has ended by itself is reported as it ended. */
  if (call->child == NULL || call->child->finished)
    return;
  exec->timed_out = exec->timed_out || reason == SBX_ETIMEOUT;
  exec->cancelled = exec->cancelled || reason == SBX_ECANCELED;
  start_kill(exec);
}

/* ---- run ---- */

static void on_bytes(void *arg, sbx_stream stream, sbx_slice bytes) {
  exec_call *exec = arg;
  if (!exec->relay_lost)
    exec->relay_lost = !sbx__relay_add(&exec->relay, stream, bytes);
  sbx_loop_defer(exec->call.sb->loop, &exec->relay_task);
}

static void on_relay_task(sbx_task *task) {
  exec_call *exec = (exec_call *)(void *)((char *)task - offsetof(exec_call, relay_task));
  if (sbx__relay_flush(&exec->relay) && exec->relay_lost)
    stop_exec(&exec->call, SBX_ECANCELED);
}

static void run_exec(sbx_call *call) {
  exec_call *exec = exec_of(call);
  const sbx_provider *provider = call->sb->provider;
  uint64_t limit_ms = exec->spec.timeout_ms;
  exec->started_at_ms = sbx_now_ms();
  exec->status = (sbx_exec_status){0};
  call->child = provider->exec(call->place->session, &exec->spec, exec->output, &exec->status,
                               on_exec_done, exec);
  if (!call->keeps_arguments) {
    sbx_free(exec->spec_block);
    exec->spec_block = NULL;
  }
  if (call->child != NULL && exec->spec.open_stdin)
    sbx__inputs_begin(&exec->inputs, call->place->session, call->child);
  if (call->child == NULL)
    sbx__call_finish_nomem(call);
  else if (limit_ms != SBX_NO_TIMEOUT)
    sbx_op_set_deadline(&call->op, limit_ms + provider->limit_margin_ms);
}

/* ---- report ---- */

static int fill_result(exec_call *exec, sbx_exec_result *result) {
  const sbx_exec_status *status = &exec->status;
  result->termination = exec->termination;
  result->background_killed = exec->ended && status->background_killed;
  result->background_running = exec->ended && status->background_running;
  result->output_lost = status->output_lost;
  bool by_itself = exec->ended && !exec->timed_out && !exec->cancelled;
  result->oom_killed = by_itself && status->oom_killed;
  result->output_exceeded = by_itself && status->output_exceeded;
  result->cpu_us = exec->ended ? status->cpu_us : 0;
  result->peak_bytes = exec->ended ? status->peak_bytes : 0;
  result->duration_ms = exec->duration_ms;
  if (exec->timed_out) {
    result->outcome = SBX_TIMED_OUT;
    result->exit_code = 124;
  } else if (exec->cancelled) {
    result->outcome = SBX_CANCELLED;
    result->exit_code = 130;
  } else if (status->outcome == SBX_SIGNALLED) {
    result->outcome = SBX_SIGNALLED;
    result->exit_code = 128 + (status->signal_number > 0 ? status->signal_number : 9);
    result->signal_name = status->signal_name;
  } else {
    result->outcome = SBX_EXITED;
    result->exit_code = status->exit_code;
  }
  result->details = sbx_buf_slice(sbx_output_details(exec->output));
  return sbx_output_view(exec->output, &result->output, &result->out, &result->err);
}

static void report_exec(sbx_call *call, const sbx_err *err) {
  exec_call *exec = exec_of(call);
  sbx_exec_result result = {0};
  sbx_err nomem;
  sbx__inputs_end(&exec->inputs);
  if (err == NULL && (exec->relay_lost || fill_result(exec, &result) != SBX_OK)) {
    sbx_err_set(&nomem, SBX_ENOMEM,
                "out of memory; the command has run, but a part of its output is lost");
    nomem.provider = call->sb->provider->id;
    nomem.may_have_run = true;
    err = &nomem;
  }
  exec->cb(call->arg, err, err == NULL ? &result : NULL);
}

static void release_exec(sbx_call *call) {
  exec_call *exec = exec_of(call);
  sbx_timer_stop(&exec->budget);
  sbx_task_cancel(&exec->relay_task);
  sbx__relay_deinit(&exec->relay);
  sbx_output_free(exec->output);
  sbx_free(exec->spec_block);
}

static const char *exec_effects(const sbx_call *call) {
  if (!call->may_have_run)
    return "the command did not run";
  return call->shut ? "the command was ended before it was done"
                    : "the command may have run and was not sent again: look at its effects before "
                      "a repeat";
}

static const sbx__call_kind exec_kind = {run_exec, stop_exec, report_exec, release_exec,
                                         exec_effects};

/* ---- sbx_sandbox_exec ---- */

/* Fills in the defaults, and leaves only what belongs to the kind. */
static sbx_exec_spec complete(const sbx_sandbox *sb, const sbx_exec_spec *spec) {
  sbx_exec_spec full = *spec;
  if (spec->kind == SBX_EXEC_ARGV) {
    full.text = sbx_slice_of(NULL, 0);
  } else {
    full.argv = NULL;
    full.argc = 0;
  }
  if (spec->kind != SBX_EXEC_SHELL)
    full.shell = sbx_slice_of(NULL, 0);
  else if (spec->shell.len == 0 && sb->shell != NULL)
    full.shell = sbx_slice_str(sb->shell);
  if (full.timeout_ms == 0)
    full.timeout_ms = sb->exec_timeout_ms;
  if (full.max_output_bytes == 0)
    full.max_output_bytes = SBX_MAX_OUTPUT_BYTES_DEFAULT;
  return full;
}

int sbx_sandbox_exec(sbx_sandbox *sb, const sbx_exec_spec *spec, sbx_output_cb on_output,
                     sbx_exec_cb cb, void *arg, sbx_call **out, sbx_err *err) {
  int rc = sbx__sandbox_check(sb, err);
  if (rc == SBX_OK)
    rc = sbx__check_spec(spec, sbx_provider_caps(sb->provider, sb->places.config), err);
  if (rc != SBX_OK)
    return rc;
  sbx_exec_spec full = complete(sb, spec);
  exec_call *exec = sbx_calloc(1, sizeof *exec);
  if (exec == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  exec->cb = cb;
  exec->on_output = on_output;
  exec->spec = full;
  exec->output = sbx_output_new(full.max_output_bytes, spec->truncate, spec->merge_streams,
                                on_output != NULL ? on_bytes : NULL, exec);
  if (exec->output == NULL)
    goto nomem;
  exec->call.keeps_arguments = sb->provider->restarts;
  exec->call.endless = full.timeout_ms == SBX_NO_TIMEOUT;
  bool copies = !sbx__places_are_open(&sb->places) || exec->call.keeps_arguments;
  if (copies && sbx__copy_spec(&exec->spec, &exec->spec_block, &full) != SBX_OK)
    goto nomem;
  sbx_timer_init(&exec->budget, sb->loop, on_budget);
  sbx__relay_init(&exec->relay, sb->loop, on_output, arg);
  sbx_task_init(&exec->relay_task, on_relay_task);
  sbx__inputs_init(&exec->inputs, sb);
  sbx__call_init(&exec->call, sb, &exec_kind, arg);
  sbx__call_begin(&exec->call);
  if (out != NULL)
    *out = &exec->call;
  return SBX_OK;

nomem:
  sbx_output_free(exec->output);
  sbx_free(exec);
  return sbx_err_set(err, SBX_ENOMEM, "out of memory; the command did not run");
}

/* ---- what a command is given while it runs ---- */

static int give(sbx_call *call, const sbx_input *input, sbx_done_cb cb, void *arg, sbx_err *err) {
  exec_call *exec = exec_of(call);
  if (call->kind != &exec_kind || !exec->spec.open_stdin)
    return sbx_err_set(err, SBX_EINVAL,
                       "the call is no command whose standard input was left open");
  return sbx__inputs_add(&exec->inputs, input, cb, arg, err);
}

int sbx_call_write(sbx_call *call, sbx_slice bytes, sbx_done_cb cb, void *arg, sbx_err *err) {
  const sbx_input input = {.kind = SBX_INPUT_WRITE, .bytes = bytes};
  return give(call, &input, cb, arg, err);
}

int sbx_call_end_input(sbx_call *call, sbx_done_cb cb, void *arg, sbx_err *err) {
  const sbx_input input = {.kind = SBX_INPUT_END};
  return give(call, &input, cb, arg, err);
}

int sbx_call_resize(sbx_call *call, sbx_tty_size size, sbx_done_cb cb, void *arg, sbx_err *err) {
  const sbx_input input = {.kind = SBX_INPUT_RESIZE, .size = size};
  if (size.columns == 0 || size.rows == 0)
    return sbx_err_set(err, SBX_EINVAL, "a terminal has at least one column and one row");
  if (call->kind == &exec_kind && exec_of(call)->spec.tty.columns == 0)
    return sbx_err_set(err, SBX_EINVAL, "the command has no terminal; start it with one");
  return give(call, &input, cb, arg, err);
}

int sbx_call_signal(sbx_call *call, const char *name, sbx_done_cb cb, void *arg, sbx_err *err) {
  const sbx_input input = {.kind = SBX_INPUT_SIGNAL, .signal = sbx__signal_name(name)};
  if (input.signal == NULL)
    return sbx_err_set(err, SBX_EINVAL,
                       "no such signal for a command; use one of " SBX__SIGNAL_NAMES);
  return give(call, &input, cb, arg, err);
}
