/* exec.c - one command: what has to be there first, its process, the end of its tree.
 *
 *   long text, and input whose end cannot be told, into files --> process --> finish
 *                                                    \--> kill of the tree --> finish
 *
 * The program that runs a command keeps its limit, and says in both outputs when it has ended and
 * how: then the service need not be asked, and what was left in the background, which keeps the
 * streams open, is waited for no longer than a moment. It goes on, and what it prints is dropped.
 *
 * Such services have no way to end a process with all that it has started. So a tree is ended by a
 * second one, which finds it by its mark and by parentage. It runs as the same user.
 *
 * Invariants: the process is started at most once. A kill succeeds only when nothing marked was
 * left when it was looked for. */
#include "core/alloc.h"
#include "core/err.h"
#include "providers/remote/process/process.h"
#include "providers/remote/runner/streamed.h"

#include <stdio.h>
#include <string.h>

enum {
  DRAIN_MS = 300, /* for what a stream still holds when the command has ended */
  KILLER_MS = 4500,
  KILL_AGAIN_MS = 200,
  MOST_INPUT = 1 << 30,
};

typedef struct exec_op exec_op;
typedef struct kill_op kill_op;

struct exec_op {
  sbx_steps steps; /* it waits for the process, or for the kill */
  const sbx_processes *wire;
  sbx_runner_streamed streamed;
  sbx_exec_status *status;
  sbx_process_request request;
  sbx_buf input; /* its standard input; where its end cannot be told it becomes a file first */
  sbx_buf text;  /* what is too long for an argument; the same */
  sbx_op *saves[2];
  char paths[2][64]; /* of the two files; "": none */
  bool end_background;
  bool has_background; /* something was seen to hold the streams after the command's end */
  bool running;        /* it waits for the process */
  bool heard;          /* something came of the process */
  bool killed;         /* somebody kills the tree already */
  kill_op *killer;     /* it kills this op's tree, and is told when this has ended */
};

/* The kill of an exec. */
struct kill_op {
  sbx_steps steps;
  exec_op *exec; /* NULL when it has ended */
};

/* ---- the end of a tree ---------------------------------------------------------------------- */

typedef struct tree_op {
  sbx_steps steps;
  const sbx_processes *wire;
} tree_op;

static void on_killer(sbx_op *op, void *arg) {
  tree_op *t = arg;
  const sbx_process_end *end = t->wire->ended(op);
  sbx_err err = op->err;
  t->steps.request = NULL;
  if (err.code == SBX_OK && end->exit_code != 0 &&
      !t->wire->has_no_shell(t->steps.session, end, &err))
    sbx_err_set(&err, SBX_EPROVIDER, "%s: kill: some processes of the command could not be ended",
                t->wire->provider);
  sbx_steps_finish(&t->steps, err.code != SBX_OK ? &err : NULL);
}

/* Success: no process of the command is left, nor a file of ours. */
static sbx_op *kill_tree(const exec_op *x, sbx_op_done done, void *arg) {
  const sbx_processes *wire = x->wire;
  sbx_session *session = x->steps.session;
  const sbx_slice files[] = {sbx_slice_str(x->paths[0]), sbx_slice_str(x->paths[1]),
                             sbx_buf_slice(&x->streamed.main)};
  sbx_process_request request;
  tree_op *t = sbx_steps_new(sizeof *t, session, x->steps.op.loop, done, arg);
  if (t == NULL)
    return NULL;
  t->wire = wire;
  wire->begin(&request, session, sbx__process_text(wire, SBX_RUNNER_KILL), false);
  wire->word(&request, sbx_slice_str(x->streamed.mark));
  wire->word(&request, sbx_slice_str(""));
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    if (files[i].len > 0)
      wire->word(&request, files[i]);
  }
  wire->end(&request, NULL, NULL);
  const sbx_process_spec spec = {.request = &request};
  sbx_op *process = wire->start(session, &spec, on_killer, t);
  if (process != NULL)
    sbx_op_set_deadline(process, KILLER_MS);
  sbx_steps_wait_for(&t->steps, process);
  sbx_buf_deinit(&request.buf);
  return &t->steps.op;
}

/* ---- the end -------------------------------------------------------------------------------- */

static void let_go(sbx_steps *steps) {
  exec_op *x = (exec_op *)(void *)steps;
  sbx_runner_streamed_stop(&x->streamed);
  if (x->killer != NULL)
    x->killer->exec = NULL;
  x->killer = NULL;
  for (size_t i = 0; i < 2; i++)
    sbx_op_drop(&x->saves[i], SBX_ECANCELED);
}

static void on_ending(sbx_steps *steps, int reason) {
  exec_op *x = (exec_op *)(void *)steps;
  if (!x->running)
    return;
  sbx_op *running = steps->request;
  sbx_op_drop(&steps->request, reason);
  x->status->started = x->wire->ended(running)->may_have_run;
}

static void release(sbx_steps *steps) {
  exec_op *x = (exec_op *)(void *)steps;
  if (x->request.buf.ptr != NULL)
    sbx_wipe(x->request.buf.ptr, x->request.buf.len); /* variables may be secrets */
  sbx_buf_deinit(&x->request.buf);
  sbx_buf_deinit(&x->input);
  sbx_buf_deinit(&x->text);
  sbx_runner_streamed_deinit(&x->streamed);
}

/* ---- how it ended --------------------------------------------------------------------------- */

static void on_tree_killed(sbx_op *op, void *arg) {
  exec_op *x = arg;
  x->steps.request = NULL;
  sbx_steps_finish(&x->steps, sbx_runner_streamed_tree(&x->streamed, op->err.code == SBX_OK));
}

static void end_tree(exec_op *x) {
  x->killed = true;
  sbx_steps_wait_for(&x->steps, kill_tree(x, on_tree_killed, x));
}

/* What was left was ended by the program, where that was asked for; `ended`: there was something. A
 * stream that is held open all the same shows what it did not find. */
static void finish_ended(exec_op *x, bool ended) {
  x->status->background_killed = x->end_background && (ended || x->has_background);
  x->status->background_running = !x->end_background && x->has_background && !x->killed;
  if (x->end_background && x->has_background && !x->killed)
    end_tree(x);
  else
    sbx_steps_finish(&x->steps, NULL);
}

/* By the lines. */
static void take_lines(exec_op *x) {
  const sbx_runner_trailer *said = sbx_runner_streamed_line(&x->streamed);
  sbx_exec_status *status = x->status;
  sbx_err err;
  if (sbx_runner_streamed_unstarted(&x->streamed, x->wire->provider, &err)) {
    sbx_steps_finish(&x->steps, &err);
    return;
  }
  status->limit_kept =
      said->exit_code == SBX_RUNNER_LIMIT_GONE || said->exit_code == SBX_RUNNER_LIMIT;
  if (status->limit_kept) {
    status->tree_gone = said->exit_code == SBX_RUNNER_LIMIT_GONE;
    sbx_runner_streamed_killed(&x->streamed);
    x->has_background = false;
  } else {
    status->exit_code = said->exit_code;
    status->oom_killed = said->exit_code == 137 && said->number > 0;
  }
  finish_ended(x, said->exit_code != 137 && said->number > 0);
}

/* Killed before it was started, or with all that could have told. */
static void take_kill(exec_op *x) {
  sbx_runner_streamed_killed(&x->streamed);
  sbx_steps_finish(&x->steps, NULL);
}

/* Without the lines: the program itself was ended, or could not run. */
static void take_exit(exec_op *x, const sbx_process_end *end) {
  sbx_err err;
  if (x->wire->has_no_shell(x->steps.session, end, &err)) {
    x->status->started = false;
    sbx_steps_finish(&x->steps, &err);
    return;
  }
  if (end->exit_code == 128 + 9) {
    sbx_runner_streamed_killed(&x->streamed);
  } else if (end->exit_code > 128 && end->exit_code < 160) {
    x->status->outcome = SBX_SIGNALLED;
    x->status->signal_number = end->exit_code - 128;
  }
  x->status->exit_code = end->exit_code;
  /* What came is not all, as far as can be known; but a stream that ends by our kill has brought
   * it. */
  x->status->output_lost = !x->killed;
  finish_ended(x, false);
}

/* Whether something runs that nobody would end. In a sandbox that is gone or paused nothing does.
 */
static bool is_left_alone(const exec_op *x, const sbx_err *err) {
  return x->status->started && !x->killed && err->code != SBX_ELOST && err->code != SBX_ECONFLICT;
}

static void on_process_done(sbx_op *op, void *arg) {
  exec_op *x = arg;
  const sbx_process_end *end = x->wire->ended(op);
  x->steps.request = NULL;
  x->running = false;
  x->status->started = end->may_have_run;
  sbx_runner_streamed_flush(&x->streamed);
  if (sbx_runner_streamed_told(&x->streamed)) {
    take_lines(x);
  } else if (x->status->tree_gone) {
    take_kill(x);
  } else if (op->err.code == SBX_OK && end->exited) {
    take_exit(x, end);
  } else if (is_left_alone(x, &op->err)) {
    sbx_err_copy(&x->streamed.failure, &op->err);
    end_tree(x);
  } else {
    sbx_steps_finish(&x->steps, &op->err);
  }
}

/* ---- output --------------------------------------------------------------------------------- */

static void on_output(void *arg, sbx_stream stream, sbx_slice bytes) {
  exec_op *x = arg;
  x->heard = true;
  sbx_runner_streamed_feed(&x->streamed, stream, bytes);
}

static bool is_told(void *arg) {
  const exec_op *x = arg;
  return sbx_runner_streamed_told(&x->streamed) || x->status->tree_gone;
}

/* The streams stay open: something holds them. */
static void on_drain(sbx_timer *timer) {
  exec_op *x = (exec_op *)(void *)((char *)timer - offsetof(exec_op, streamed.drain));
  if (x->running) {
    x->has_background = sbx_runner_streamed_told(&x->streamed);
    x->wire->leave(x->steps.request);
  } else if (x->steps.request == NULL) {
    take_kill(x);
  }
}

/* ---- start ---------------------------------------------------------------------------------- */

static void run(exec_op *x) {
  sbx_session *session = x->steps.session;
  bool direct = x->input.len > 0 && x->paths[0][0] == '\0';
  const sbx_process_spec spec = {.request = &x->request,
                                 .input = direct ? sbx_buf_slice(&x->input) : sbx_slice_of(NULL, 0),
                                 .end_input = true,
                                 .on_output = on_output,
                                 .is_told = is_told};
  x->running = true;
  sbx_steps_wait_for(&x->steps, x->wire->start(session, &spec, on_process_done, x));
}

static void on_saved(sbx_op *op, void *arg) {
  exec_op *x = arg;
  for (size_t i = 0; i < 2; i++) {
    if (x->saves[i] == op)
      x->saves[i] = NULL;
  }
  if (x->steps.op.finished)
    return;
  if (op->err.code != SBX_OK)
    sbx_steps_finish(&x->steps, &op->err);
  else if (x->killed)
    take_kill(x);
  else if (x->saves[0] == NULL && x->saves[1] == NULL)
    run(x);
}

static void save_and_run(exec_op *x) {
  const sbx_buf *bytes[2] = {&x->input, &x->text};
  for (size_t i = 0; i < 2; i++) {
    if (x->paths[i][0] == '\0')
      continue;
    x->saves[i] =
        sbx_process_save(x->wire, x->steps.session, x->steps.op.loop, sbx_slice_str(x->paths[i]),
                         sbx_buf_slice(bytes[i]), on_saved, x);
    if (x->saves[i] == NULL) {
      sbx_steps_finish_code(&x->steps, SBX_ENOMEM);
      return;
    }
  }
  if (x->saves[0] == NULL && x->saves[1] == NULL)
    run(x);
}

static void put_word(void *request, sbx_slice word) {
  const exec_op *x = (exec_op *)(void *)((char *)request - offsetof(exec_op, request));
  x->wire->word(request, word);
}

static void put_str(exec_op *x, const char *text) {
  x->wire->word(&x->request, sbx_slice_str(text));
}

/* The arguments of bound.sh and of wrap.sh. */
static void write_request(exec_op *x, const sbx_exec_spec *spec) {
  const sbx_processes *wire = x->wire;
  const sbx_session *session = x->steps.session;
  char limit[32] = "";
  bool direct = x->input.len > 0 && x->paths[0][0] == '\0';
  bool closes = wire->closes_outputs != NULL && wire->closes_outputs(session);
  unsigned long long ms = (unsigned long long)spec->timeout_ms;
  sbx_runner_program program =
      spec->kind == SBX_EXEC_CODE ? SBX_RUNNER_BOUND_CODE : SBX_RUNNER_BOUND_SHELL;
  if (spec->timeout_ms != SBX_NO_TIMEOUT)
    snprintf(limit, sizeof limit, "%llu.%03llu", ms / 1000, ms % 1000);
  wire->begin(&x->request, session, sbx__process_text(wire, program), direct);
  put_str(x, limit);
  wire->word(&x->request, spec->cwd);
  put_str(x, spec->end_background ? "e" : (closes ? "k" : ""));
  put_str(x, spec->merge_streams ? "j" : "");
  put_str(x, direct ? "-" : x->paths[0]);
  put_str(x, x->paths[1]);
  put_str(x, "");
  sbx_runner_args_each(spec, x->paths[1][0] != '\0', put_word, &x->request);
  wire->end(&x->request, spec, x->streamed.token);
}

static bool tells_end(const exec_op *x) {
  return x->wire->tells_end == NULL || x->wire->tells_end(x->steps.session);
}

static bool is_long(const exec_op *x, const sbx_exec_spec *spec) {
  size_t max = x->wire->max_text != 0 ? x->wire->max_text : SBX_RUNNER_ARG_MAX;
  return spec->kind != SBX_EXEC_ARGV && spec->text.len > max;
}

static int prepare(exec_op *x, const sbx_exec_spec *spec, sbx_err *err) {
  static const char *const names[2] = {"in", "text"};
  int rc = sbx_runner_args_check(spec, err);
  if (rc == SBX_OK && spec->context.len > 0)
    rc = sbx_err_set(err, SBX_EUNSUPPORTED, "%s: there are no contexts of an interpreter",
                     x->wire->provider);
  if (rc != SBX_OK)
    return rc;
  const bool needed[2] = {spec->stdin_bytes.len > 0 && !tells_end(x), is_long(x, spec)};
  for (size_t i = 0; i < 2; i++) {
    if (needed[i])
      snprintf(x->paths[i], sizeof x->paths[i], "/tmp/.cloudsandbox-%s-%s", x->streamed.token,
               names[i]);
  }
  sbx_buf_append_slice(&x->input, spec->stdin_bytes);
  if (needed[1]) {
    /* The script closes the descriptor that it comes on, in its first line: line numbers hold. */
    sbx_buf_append_str(&x->text, spec->kind == SBX_EXEC_SHELL ? "exec 9<&-; " : "");
    sbx_buf_append_slice(&x->text, spec->text);
  }
  write_request(x, spec);
  rc = x->request.buf.error != SBX_OK ? x->request.buf.error
                                      : (x->input.error != SBX_OK ? x->input.error : x->text.error);
  if (rc == SBX_ETOOBIG)
    return sbx_err_set(err, rc,
                       "%s: the command, its variables or its input are too large; pass long text "
                       "through a file",
                       x->wire->provider);
  return rc == SBX_OK ? SBX_OK : sbx_err_set(err, rc, NULL);
}

sbx_op *sbx_process_exec(const sbx_processes *wire, sbx_session *session, sbx_loop *loop,
                         const sbx_exec_spec *spec, sbx_output *out, sbx_exec_status *status,
                         sbx_op_done done, void *arg) {
  sbx_err err;
  exec_op *x = sbx_steps_new(sizeof *x, session, loop, done, arg);
  *status = (sbx_exec_status){.outcome = SBX_EXITED};
  if (x == NULL)
    return NULL;
  x->steps.ending = on_ending;
  x->steps.let_go = let_go;
  x->steps.release = release;
  x->wire = wire;
  x->status = status;
  x->end_background = spec->end_background;
  sbx_buf_init(&x->input, MOST_INPUT);
  sbx_buf_init(&x->text, SIZE_MAX / 2);
  x->streamed.drain_ms = DRAIN_MS;
  sbx_timer_init(&x->streamed.drain, loop, on_drain);
  if (sbx_runner_streamed_init(&x->streamed, spec, out, status, &err) == SBX_OK &&
      prepare(x, spec, &err) == SBX_OK)
    save_and_run(x);
  else
    sbx_steps_finish(&x->steps, &err);
  return &x->steps.op;
}

/* ---- kill ----------------------------------------------------------------------------------- */

static void release_kill(sbx_steps *steps) {
  kill_op *k = (kill_op *)(void *)steps;
  if (k->exec != NULL)
    k->exec->killer = NULL;
}

/* Nothing is left of the tree: the exec ends soon, also when its stream does not. */
static void exec_tree_gone(exec_op *x) {
  x->status->tree_gone = true;
  sbx_runner_streamed_drain(&x->streamed);
}

static void kill_now(sbx_steps *steps);

static void on_all_killed(sbx_op *op, void *arg) {
  kill_op *k = arg;
  exec_op *x = k->exec;
  k->steps.request = NULL;
  if (op->err.code != SBX_OK) {
    sbx_steps_finish(&k->steps, &op->err);
  } else if (x == NULL) {
    sbx_steps_finish(&k->steps, NULL);
  } else if (x->running && !x->heard && !k->steps.op.finished && !x->status->tree_gone) {
    /* It was asked to start, and may do so only now. */
    x->status->tree_gone = true;
    sbx_steps_wait(&k->steps, KILL_AGAIN_MS, kill_now);
  } else {
    exec_tree_gone(x);
    sbx_steps_finish(&k->steps, NULL);
  }
}

static void kill_now(sbx_steps *steps) {
  kill_op *k = (kill_op *)(void *)steps;
  exec_op *x = k->exec;
  if (x == NULL) {
    sbx_steps_finish(steps, NULL);
    return;
  }
  x->killed = true;
  x->killer = k;
  sbx_steps_wait_for(steps, kill_tree(x, on_all_killed, k));
}

sbx_op *sbx_process_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg) {
  kill_op *k = sbx_steps_new(sizeof *k, session, exec->loop, done, arg);
  if (k == NULL)
    return NULL;
  k->exec = (exec_op *)(void *)exec;
  k->steps.release = release_kill;
  kill_now(&k->steps);
  return &k->steps.op;
}
