/* exec.c - one command from its line to its report, and the kill.
 *
 * One line runs the command and brings its whole report. Beside it, when somebody listens to the
 * output, further lines fetch what has been printed so far; the report then only adds the rest. The
 * same lines bring what was too much for a report.
 *
 * That one line is silent for as long as the command is, which not everything on its way bears:
 * load balancers cut it off after a minute or so. The command runs on then, and its report is asked
 * for by further lines. So what a command leaves in the sandbox stays until its report is here; the
 * next command's line takes it away.
 *
 * Invariant: the line that runs the command is sent once; what is fetched is counted, so that every
 * byte reaches the collector once, in order. */
#include "providers/remote/runner/wire.h"

#include "core/alloc.h"
#include "core/err.h"

#include <string.h>

/* In a report come at most so many bytes of each stream; the rest is fetched. */
#define REPORT_MAX ((size_t)16 << 20)
#define FETCH_MOST ((size_t)1 << 20)
#define MAX_TEXT ((size_t)768 << 20)

enum {
  FIRST_FETCH_MS = 200, /* a quick command needs none */
  FETCH_PAUSE_MS = 40,
  MANY_LEFT = SBX_RUNNER_LEFT / 2, /* folders, which then go without a next command */
  WIRE_GRACE_S = 15,               /* how much longer than the command's the wire's limit is */
  ROOM_FOR_REST = 24 * 1024,       /* of a line: the program, and what is short */
};

typedef struct exec_op exec_op;

/* Fetches while the command runs. */
typedef struct follow_op {
  sbx_runner_op op;
  exec_op *exec;
  sbx_repeat repeat;
} follow_op;

struct exec_op {
  sbx_runner_op op;
  sbx_output *out;
  sbx_exec_status *status;
  char tag[SBX_RUNNER_TAG + 1];
  char dir[200]; /* as much of its name as a message takes */
  size_t dir_len;
  char shell[200]; /* the same */
  size_t shell_len;
  sbx_runner_share share;
  bool keep;
  bool leaves;      /* its folder may be in the sandbox, and goes on the list of those */
  uint64_t carried; /* so far the list of the session went along with its line */
  sbx_op *follow;
  uint64_t added[2]; /* bytes of each stream that reached the collector */
  sbx_runner_report report;
  sbx_err broken;      /* why its own line brought no report */
  sbx_repeat repeat;   /* of lines after it, or before it */
  struct large *large; /* while it is stored; NULL: it fits into its line */
};

/* A command that does not fit into a line, while it is stored: a copy of all that its line needs.
 */
typedef struct large {
  sbx_exec_spec spec;
  sbx_slice dir;
  sbx_buf copies; /* the bytes that spec and dir point to */
  sbx_buf variables;
  sbx_env_var *env;
  struct part {
    const char *name;
    sbx_slice bytes;
    bool stored; /* it is, or will be */
  } parts[3];
  size_t part; /* which one is being stored */
  size_t at;   /* how much of it is there */
} large;

enum { TEXT, INPUT, VARIABLES };

static exec_op *exec_of(sbx_runner_op *op) {
  return (exec_op *)(void *)op;
}

static exec_op *exec_of_steps(sbx_steps *steps) {
  return (exec_op *)(void *)steps;
}

/* ---- folders that may go -------------------------------------------------------------------- */

static uint64_t last_left(const sbx_runner *runner) {
  return runner->left.gone + runner->left.count;
}

static void take_off(sbx_runner *runner, uint64_t until) {
  size_t off = until > runner->left.gone ? (size_t)(until - runner->left.gone) : 0;
  if (off > runner->left.count)
    off = runner->left.count;
  runner->left.count -= off;
  runner->left.gone += off;
  memmove(runner->left.tags, runner->left.tags + off,
          runner->left.count * sizeof *runner->left.tags);
}

/* A full list loses its oldest one, whose folder stays. */
static void put_on(sbx_runner *runner, const char *tag) {
  if (runner->left.count == SBX_RUNNER_LEFT)
    take_off(runner, runner->left.gone + 1);
  memcpy(runner->left.tags[runner->left.count++], tag, sizeof *runner->left.tags);
}

/* ---- output --------------------------------------------------------------------------------- */

static sbx_stream stream_of(int i) {
  return i == 0 ? SBX_STDOUT : SBX_STDERR;
}

/* Adds bytes that begin at `from`, less what is there already. */
static void add(exec_op *exec, int i, uint64_t from, const sbx_buf *bytes) {
  uint64_t known = exec->added[i] - from;
  sbx_slice fresh = sbx_buf_slice(bytes);
  if (from > exec->added[i] || known >= fresh.len)
    return;
  fresh = sbx_slice_skip(fresh, (size_t)known);
  exec->added[i] += fresh.len;
  sbx_output_add(exec->out, stream_of(i), fresh);
}

static void add_report(exec_op *exec) {
  const sbx_runner_report *report = &exec->report;
  for (int i = 0; i < 2; i++) {
    add(exec, i, 0, &report->head[i]);
    uint64_t came = report->head[i].len + report->tail[i].len;
    if (exec->keep || came >= report->size[i])
      continue;
    sbx_output_gap(exec->out, stream_of(i), report->size[i] - came);
    sbx_output_add(exec->out, stream_of(i), sbx_buf_slice(&report->tail[i]));
  }
}

/* Room for a report: base64 of two streams. */
static size_t reply_room(const exec_op *exec) {
  return (exec->share.head + exec->share.tail) * 3 + SBX__RUNNER_ROOM;
}

static sbx_runner_sending beside(const exec_op *exec, const char *verb) {
  return (sbx_runner_sending){.verb = verb,
                              .limit_s = SBX__RUNNER_LIMIT_S,
                              .timeout_ms = SBX__RUNNER_REPLY_MS,
                              .max_bytes = reply_room(exec)};
}

/* ---- fetching ------------------------------------------------------------------------------- */

static void send_fetch(sbx_runner_op *op, exec_op *exec, bool over,
                       void (*on_answer)(sbx_runner_op *op, const sbx_runner_answer *answer)) {
  sbx_buf body;
  sbx_runner_line line = sbx__runner_begin(op, &body);
  sbx_runner_sending how = beside(exec, "fetch the output of a command");
  sbx_runner_line_fetch(&line, exec->tag, exec->added, FETCH_MOST, over);
  sbx__runner_send(op, &body, &how, on_answer);
}

/* Adds what a fetch has brought. */
static int take_fetched(sbx_runner_op *op, exec_op *exec, const sbx_runner_answer *answer,
                        sbx_err *err) {
  sbx_runner_report report;
  int rc = sbx__runner_read(op, &report, answer, exec->tag, err);
  uint64_t before[2] = {exec->added[0], exec->added[1]};
  for (int i = 0; i < 2 && rc == SBX_OK; i++)
    add(exec, i, before[i], &report.head[i]);
  sbx_runner_report_deinit(&report);
  return rc;
}

static void follow_on(sbx_steps *steps);

static void on_followed(sbx_runner_op *op, const sbx_runner_answer *answer) {
  follow_op *follow = (follow_op *)(void *)op;
  sbx_err err;
  /* What cannot be had now may come later, and comes with the report at the latest. */
  bool came = take_fetched(op, follow->exec, answer, &err) == SBX_OK;
  uint64_t pause_ms = FETCH_PAUSE_MS;
  if (came)
    follow->repeat = (sbx_repeat){0};
  else
    pause_ms = sbx_repeat_pause(&follow->repeat, &sbx__runner_beside);
  sbx_steps_wait(&op->steps, pause_ms, follow_on);
}

static void follow_on(sbx_steps *steps) {
  follow_op *follow = (follow_op *)(void *)steps;
  send_fetch(&follow->op, follow->exec, false, on_followed);
}

static void on_follow_done(sbx_op *op, void *arg) {
  exec_op *exec = arg;
  (void)op;
  exec->follow = NULL;
}

static void start_following(exec_op *exec) {
  follow_op *follow = sbx__runner_op_new(sizeof *follow, exec->op.runner, exec->op.steps.session,
                                         on_follow_done, exec);
  if (follow == NULL)
    return; /* all of it comes with the report */
  exec->follow = &follow->op.steps.op;
  follow->exec = exec;
  sbx_steps_wait(&follow->op.steps, FIRST_FETCH_MS, follow_on);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void fetch_rest(exec_op *exec);
static void on_pause_in_rest(sbx_steps *steps);

static void on_forgotten(sbx_runner_op *op, const sbx_runner_answer *answer) {
  exec_op *exec = exec_of(op);
  sbx_runner_report report;
  sbx_err err;
  if (sbx__runner_read(op, &report, answer, exec->tag, &err) == SBX_OK)
    take_off(op->runner, exec->carried);
  sbx_runner_report_deinit(&report);
  sbx_steps_finish(&op->steps, NULL);
}

/* Where output had no room, what is missing may be what was wanted. A head that is all there is not
 * missing. */
static bool has_hole(const exec_op *exec, int i) {
  const sbx_runner_report *report = &exec->report;
  bool enough = !exec->keep && exec->share.tail == 0 && report->head[i].len >= exec->share.head;
  return report->lost[i] > 0 && !enough;
}

static bool finish_with_hole(exec_op *exec) {
  const sbx_runner_report *report = &exec->report;
  uint64_t missing = 0;
  sbx_err err;
  for (int i = 0; i < 2; i++)
    missing += has_hole(exec, i) ? report->lost[i] : 0;
  if (missing == 0)
    return false;
  sbx_err_set(&err, SBX_EQUOTA,
              "%s: the command has run and ended with exit code %d, but its output did not fit on "
              "the sandbox's disk: at least %llu bytes of it are missing; make room, or write less",
              exec->op.runner->wire->provider, report->exit_code, (unsigned long long)missing);
  sbx_steps_finish(&exec->op.steps, &err);
  return true;
}

/* All is here. More than a report's worth should not wait in the sandbox for the next command, nor
 * should the folders of many commands. */
static void finish_command(exec_op *exec) {
  const sbx_runner_report *report = &exec->report;
  sbx_runner *runner = exec->op.runner;
  size_t share = exec->share.head + exec->share.tail;
  bool is_much = exec->keep && (report->size[0] > share || report->size[1] > share);
  uint64_t first = runner->left.asked > runner->left.gone ? runner->left.asked : runner->left.gone;
  sbx_buf body;
  if (finish_with_hole(exec))
    return;
  if (!is_much && last_left(runner) - first < MANY_LEFT) {
    sbx_steps_finish(&exec->op.steps, NULL);
    return;
  }
  put_on(runner, exec->tag);
  exec->leaves = false;
  exec->carried = runner->left.asked = last_left(runner);
  sbx_runner_line line = sbx__runner_begin(&exec->op, &body);
  sbx_runner_sending how = beside(exec, "forget commands");
  sbx_runner_line_forget(&line, exec->tag, (const char(*)[33])runner->left.tags,
                         runner->left.count);
  sbx__runner_send(&exec->op, &body, &how, on_forgotten);
}

static void on_rest(sbx_runner_op *op, const sbx_runner_answer *answer) {
  exec_op *exec = exec_of(op);
  sbx_err err;
  uint64_t before = exec->added[0] + exec->added[1];
  int rc = take_fetched(op, exec, answer, &err);
  if (rc == SBX_OK && exec->added[0] + exec->added[1] == before)
    rc = sbx_err_set(&err, SBX_EPROTO, "%s: the end of the command's output is missing",
                     op->runner->wire->provider);
  if (rc == SBX_OK) {
    exec->repeat = (sbx_repeat){0};
    fetch_rest(exec);
  } else if (!sbx_steps_repeat(&op->steps, &exec->repeat, &sbx__runner_beside, NULL, &err,
                               on_pause_in_rest)) {
    sbx_steps_finish(&op->steps, &err);
  }
}

/* Nothing more is wanted. */
static void skip_rest(exec_op *exec) {
  for (int i = 0; i < 2; i++) {
    uint64_t rest = exec->report.size[i] - exec->added[i];
    if (exec->added[i] < exec->report.size[i])
      sbx_output_skip(exec->out, stream_of(i), rest);
    exec->added[i] = exec->report.size[i];
  }
  finish_command(exec);
}

static void fetch_rest(exec_op *exec) {
  const sbx_runner_report *report = &exec->report;
  bool more = exec->added[0] < report->size[0] || exec->added[1] < report->size[1];
  if (exec->keep && more && sbx_output_is_full(exec->out))
    skip_rest(exec);
  else if (exec->keep && more)
    send_fetch(&exec->op, exec, true, on_rest);
  else
    finish_command(exec);
}

static void on_pause_in_rest(sbx_steps *steps) {
  fetch_rest(exec_of_steps(steps));
}

static bool is_over(const sbx_runner_report *report) {
  return report->end == SBX_RUNNER_RAN || report->end == SBX_RUNNER_LATE ||
         report->end == SBX_RUNNER_STOPPED || report->end == SBX_RUNNER_UNSTORED ||
         report->end == SBX_RUNNER_NODIR || report->end == SBX_RUNNER_NOSHELL;
}

static void finish_unstarted(exec_op *exec) {
  sbx_err err;
  exec->status->started = false;
  if (exec->report.end == SBX_RUNNER_NODIR) {
    sbx_err_set(&err, SBX_EINVAL, "%s: cannot run in the working directory \"",
                exec->op.runner->wire->provider);
    sbx_err_append_remote(&err, sbx_slice_of(exec->dir, exec->dir_len));
    sbx_err_append(&err, "\": it is not there, is no directory, or must not be entered");
    sbx_err_append(&err, SBX__CWD_ADVICE);
  } else if (exec->report.end == SBX_RUNNER_NOSHELL) {
    sbx_err_set(&err, SBX_EINVAL,
                "%s: there is no such shell in the sandbox: ", exec->op.runner->wire->provider);
    sbx_err_append_remote(&err, sbx_slice_of(exec->shell, exec->shell_len));
    sbx_err_append(&err, "; install it, or take \"sh\"");
  } else {
    sbx__runner_unstored(exec->op.runner, &err);
  }
  sbx_steps_finish(&exec->op.steps, &err);
}

/* The report is one of a command that is over. */
static void take_end(exec_op *exec) {
  const sbx_runner_report *report = &exec->report;
  sbx_exec_status *status = exec->status;
  sbx_op_drop(&exec->follow, SBX_ECANCELED);
  take_off(exec->op.runner, exec->carried);
  if (report->end == SBX_RUNNER_UNSTORED || report->end == SBX_RUNNER_NODIR ||
      report->end == SBX_RUNNER_NOSHELL) {
    finish_unstarted(exec);
    return;
  }
  status->outcome = SBX_EXITED;
  status->exit_code = report->exit_code;
  status->limit_kept = report->end == SBX_RUNNER_LATE;
  status->tree_gone = report->tree_gone;
  status->background_running = report->background == SBX_RUNNER_LIVES;
  status->background_killed = report->background == SBX_RUNNER_WAS_ENDED;
  add_report(exec);
  fetch_rest(exec);
}

/* The wire's own limit has passed, after the program's: it was kept from running, or killed. */
static void finish_late(exec_op *exec) {
  exec->status->outcome = SBX_EXITED;
  exec->status->exit_code = 124;
  exec->status->limit_kept = true;
  sbx_steps_finish(&exec->op.steps, NULL);
}

/* ---- a line that broke off ------------------------------------------------------------------- */

static void ask(sbx_steps *steps);

static void on_asked(sbx_runner_op *op, const sbx_runner_answer *answer) {
  exec_op *exec = exec_of(op);
  const sbx_runner_report *report = &exec->report;
  sbx_err err;
  sbx_runner_report_deinit(&exec->report);
  int rc = sbx__runner_read(op, &exec->report, answer, exec->tag, &err);
  if (rc == SBX_OK && report->end == SBX_RUNNER_GOING) {
    exec->repeat = (sbx_repeat){0};
    sbx_steps_wait(&op->steps, FETCH_PAUSE_MS, ask);
  } else if (rc == SBX_OK && report->end == SBX_RUNNER_ENDED) {
    sbx_err_append(&exec->broken, "; what ran the command in the sandbox was killed");
    sbx_steps_finish(&op->steps, &exec->broken);
  } else if (rc == SBX_OK && is_over(report)) {
    exec->repeat = (sbx_repeat){0};
    take_end(exec);
  } else if (rc == SBX_OK ||
             !sbx_steps_repeat(&op->steps, &exec->repeat, &sbx__runner_beside, NULL, &err, ask)) {
    /* It has not begun, or there is nobody to ask: whether the sandbox is gone is for others. */
    sbx_steps_finish(&op->steps, &exec->broken);
  }
}

static void ask(sbx_steps *steps) {
  exec_op *exec = exec_of_steps(steps);
  sbx_buf body;
  sbx_runner_line line = sbx__runner_begin(&exec->op, &body);
  sbx_runner_sending how = beside(exec, "ask for the end of a command");
  sbx_runner_line_ask(&line, exec->tag, exec->share);
  sbx__runner_send(&exec->op, &body, &how, on_asked);
}

/* The command may run, or have run: its report is in the sandbox then. */
static void go_on(exec_op *exec, const sbx_err *why) {
  sbx_err_copy(&exec->broken, why);
  ask(&exec->op.steps);
}

/* ---- the answer ----------------------------------------------------------------------------- */

static void on_ran(sbx_runner_op *op, const sbx_runner_answer *answer) {
  exec_op *exec = exec_of(op);
  const sbx_runner_wire *wire = op->runner->wire;
  sbx_err err;
  exec->status->started = answer->started;
  if (answer->late) {
    finish_late(exec);
    return;
  }
  if (answer->broken && answer->started) {
    go_on(exec, answer->err);
    return;
  }
  sbx_runner_report_deinit(&exec->report);
  int rc = sbx__runner_read(op, &exec->report, answer, exec->tag, &err);
  if (rc == SBX_EPROTO && answer->err == NULL && wire->explain != NULL)
    exec->status->started = wire->explain(op->steps.session, answer->printed, &err);
  if (rc != SBX_OK) {
    sbx_steps_finish(&op->steps, &err);
  } else if (is_over(&exec->report)) {
    take_end(exec);
  } else {
    sbx_err_set(&err, SBX_ENET,
                "%s: run a command: a connection behind the proxy broke, and the request was "
                "delivered twice; it was not run a second time",
                wire->provider);
    go_on(exec, &err);
  }
}

/* ---- run ------------------------------------------------------------------------------------ */

static void free_large(exec_op *exec) {
  large *l = exec->large;
  exec->large = NULL;
  if (l == NULL)
    return;
  sbx_buf *bufs[] = {&l->copies, &l->variables};
  for (size_t i = 0; i < 2; i++) {
    if (bufs[i]->ptr != NULL)
      sbx_wipe(bufs[i]->ptr, bufs[i]->len); /* variables may be secrets */
    sbx_buf_deinit(bufs[i]);
  }
  sbx_free(l->env);
  sbx_free(l);
}

static void end_early(sbx_steps *steps, int reason) {
  exec_op *exec = exec_of_steps(steps);
  sbx_op_drop(&exec->follow, reason);
  if (reason == SBX_ECLOSED)
    exec->leaves = false; /* the session may be gone */
  else if (steps->request != NULL && exec->large == NULL)
    exec->status->started = true; /* the request cannot be called back */
}

static void let_go(sbx_steps *steps) {
  exec_op *exec = exec_of_steps(steps);
  sbx_op_drop(&exec->follow, SBX_ECANCELED);
  if (exec->leaves && (exec->status->started || exec->large != NULL))
    put_on(exec->op.runner, exec->tag);
}

static void release(sbx_steps *steps) {
  free_large(exec_of_steps(steps));
  sbx_runner_report_deinit(&exec_of_steps(steps)->report);
}

static void choose_share(exec_op *exec, const sbx_exec_spec *spec) {
  size_t most = spec->max_output_bytes;
  exec->keep = sbx_output_is_watched(exec->out) || most > REPORT_MAX;
  if (exec->keep)
    exec->share = (sbx_runner_share){FETCH_MOST, 0};
  else if (spec->truncate == SBX_KEEP_HEAD_AND_TAIL)
    exec->share = (sbx_runner_share){most / 2, most - most / 2};
  else
    exec->share = (sbx_runner_share){most, 0};
}

static void send_command(exec_op *exec, const sbx_exec_spec *spec, sbx_slice dir) {
  sbx_runner *runner = exec->op.runner;
  sbx_buf body;
  sbx_runner_command command = {
      .tag = exec->tag,
      .spec = spec,
      .dir = dir,
      .share = exec->share,
      .keep = exec->keep,
      .env = runner->env,
      .left = (const char(*)[33])runner->left.tags,
      .left_count = runner->left.count,
  };
  if (exec->large != NULL) {
    const struct part *parts = exec->large->parts;
    command.text = parts[TEXT].stored ? SBX_RUNNER_STORED : SBX_RUNNER_IN_LINE;
    command.input = parts[INPUT].stored ? SBX_RUNNER_STORED : SBX_RUNNER_IN_LINE;
    command.variables = parts[VARIABLES].stored ? SBX_RUNNER_STORED : SBX_RUNNER_IN_LINE;
  }
  sbx_runner_sending how = {.spec = spec,
                            .verb = "run a command",
                            .timeout_ms = SBX_NO_TIMEOUT,
                            .max_bytes = reply_room(exec)};
  if (spec->timeout_ms != SBX_NO_TIMEOUT)
    how.limit_s = (spec->timeout_ms + 999) / 1000 + WIRE_GRACE_S;
  sbx_runner_line line = sbx__runner_begin(&exec->op, &body);
  sbx_runner_line_run(&line, &command);
  exec->carried = last_left(runner);
  exec->leaves = true;
  exec->repeat = (sbx_repeat){0};
  sbx__runner_send(&exec->op, &body, &how, on_ran);
  free_large(exec);
  if (exec->keep && sbx_output_is_watched(exec->out) && !exec->op.steps.op.finished)
    start_following(exec);
}

/* ---- a command that does not fit into a line --------------------------------------------------
 */

static void store_next(sbx_steps *steps);

static void on_stored(sbx_runner_op *op, const sbx_runner_answer *answer) {
  exec_op *exec = exec_of(op);
  large *l = exec->large;
  sbx_err err;
  int rc = sbx__runner_stored(op, exec->tag, l->parts[l->part].bytes, &l->at, answer, &err);
  if (rc == SBX_OK) {
    exec->repeat = (sbx_repeat){0};
    store_next(&op->steps);
  } else if (!sbx_steps_repeat(&op->steps, &exec->repeat, &sbx__runner_beside, NULL, &err,
                               store_next)) {
    exec->status->started = false;
    sbx_steps_finish(&op->steps, &err);
  }
}

static void store_next(sbx_steps *steps) {
  exec_op *exec = exec_of_steps(steps);
  large *l = exec->large;
  exec->leaves = true;
  for (; l->part < sizeof l->parts / sizeof *l->parts; l->part++, l->at = 0) {
    const struct part *part = &l->parts[l->part];
    if (part->stored &&
        sbx__runner_store(&exec->op, exec->tag, part->name, part->bytes, &l->at, on_stored))
      return;
  }
  send_command(exec, &l->spec, l->dir);
}

/* Takes a copy of a slice that is in `copies` from here on, when all are there. */
static void take_copy(sbx_buf *copies, sbx_slice *slice, bool done, size_t *at) {
  if (!done)
    sbx_buf_append_slice(copies, *slice);
  else
    *slice = sbx_slice_of(copies->ptr + *at, slice->len);
  *at += slice->len;
}

static void copy_all(large *l, bool done) {
  size_t at = 0;
  sbx_slice *slices[] = {&l->spec.text, &l->spec.stdin_bytes, &l->spec.shell, &l->dir};
  for (size_t i = 0; i < 4; i++)
    take_copy(&l->copies, slices[i], done, &at);
  for (size_t i = 0; i < l->spec.env_count; i++) {
    take_copy(&l->copies, &l->env[i].name, done, &at);
    take_copy(&l->copies, &l->env[i].value, done, &at);
  }
}

static int make_large(exec_op *exec, const sbx_exec_spec *spec, sbx_slice text, sbx_slice dir,
                      size_t most) {
  large *l = exec->large = sbx_calloc(1, sizeof *l);
  size_t env_size = (spec->env_count + 1) * sizeof *l->env;
  if (l == NULL)
    return SBX_ENOMEM;
  sbx_buf_init(&l->copies, MAX_TEXT);
  l->env = sbx_calloc(1, env_size);
  if (l->env == NULL)
    return SBX_ENOMEM;
  l->spec = *spec;
  l->spec.text = text;
  l->dir = dir;
  if (spec->env_count > 0)
    memcpy(l->env, spec->env, spec->env_count * sizeof *l->env);
  if (spec->kind == SBX_EXEC_ARGV) {
    l->spec.kind = SBX_EXEC_SHELL;
    l->spec.shell = sbx_slice_str("sh");
  }
  copy_all(l, false);
  if (l->copies.error != SBX_OK)
    return l->copies.error;
  copy_all(l, true);
  l->spec.env = l->env;
  sbx_buf_init(&l->variables, MAX_TEXT);
  if (exec->op.runner->env && sbx_runner_line_variables(&l->variables, spec) != SBX_OK)
    return l->variables.error;
  const sbx_slice texts[] = {l->spec.text, l->spec.stdin_bytes, sbx_buf_slice(&l->variables)};
  static const char *const names[] = {"text", "input", "env"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    l->parts[i] = (struct part){names[i], texts[i], texts[i].len > most};
  return SBX_OK;
}

/* What is longer is stored first; a line has room for three of that. */
static size_t most_in_line(const sbx_runner *runner) {
  return runner->max_line > ROOM_FOR_REST ? (runner->max_line - ROOM_FOR_REST) / 4 : 0;
}

/* As lines for sh, quotes inside of values left out. */
static size_t length_of_variables(const sbx_exec_spec *spec) {
  size_t len = 0;
  for (size_t i = 0; i < spec->env_count; i++)
    len += sizeof "export =''" + spec->env[i].name.len + spec->env[i].value.len;
  return len;
}

static int start_command(exec_op *exec, const sbx_exec_spec *spec, sbx_slice dir) {
  sbx_buf words;
  sbx_slice text = spec->text;
  size_t most = most_in_line(exec->op.runner);
  int rc = SBX_OK;
  sbx_buf_init(&words, MAX_TEXT);
  if (exec->op.runner->max_line > 0 && spec->kind == SBX_EXEC_ARGV) {
    rc = sbx_runner_line_words(&words, spec);
    text = sbx_buf_slice(&words);
  }
  bool fits = exec->op.runner->max_line == 0 ||
              (text.len <= most && spec->stdin_bytes.len <= most &&
               (!exec->op.runner->env || length_of_variables(spec) <= most));
  if (rc == SBX_OK && fits) {
    send_command(exec, spec, dir);
  } else if (rc == SBX_OK) {
    rc = make_large(exec, spec, text, dir, most);
    if (rc == SBX_OK)
      store_next(&exec->op.steps);
  }
  sbx_buf_deinit(&words);
  return rc;
}

static size_t keep_name(char to[200], sbx_slice name) {
  size_t len = name.len < 200 ? name.len : 200;
  if (len > 0)
    memcpy(to, name.ptr, len);
  return len;
}

sbx_op *sbx_runner_exec(sbx_runner *runner, sbx_session *session, const sbx_exec_spec *spec,
                        sbx_slice dir, sbx_output *out, sbx_exec_status *status, sbx_op_done done,
                        void *arg) {
  sbx_err err;
  exec_op *exec = sbx__runner_op_new(sizeof *exec, runner, session, done, arg);
  if (exec == NULL)
    return NULL;
  exec->out = out;
  exec->status = status;
  exec->dir_len = keep_name(exec->dir, dir);
  exec->shell_len = keep_name(exec->shell, spec->shell);
  sbx_runner_report_init(&exec->report);
  exec->op.steps.release = release;
  exec->op.steps.ending = end_early;
  exec->op.steps.let_go = let_go;
  choose_share(exec, spec);
  int rc = sbx__runner_take_tag(runner, exec->tag, &err);
  if (rc == SBX_OK) {
    rc = start_command(exec, spec, dir);
    if (rc != SBX_OK)
      sbx_err_set(&err, rc, NULL);
  }
  if (rc != SBX_OK)
    sbx_steps_finish(&exec->op.steps, &err);
  return &exec->op.steps.op;
}

/* ---- kill ----------------------------------------------------------------------------------- */

typedef struct kill_op {
  sbx_runner_op op;
  char tag[SBX_RUNNER_TAG + 1];
} kill_op;

static void on_killed(sbx_runner_op *op, const sbx_runner_answer *answer) {
  kill_op *kill = (kill_op *)(void *)op;
  sbx_runner_report report;
  sbx_err err;
  int rc = sbx__runner_read(op, &report, answer, kill->tag, &err);
  bool gone = report.tree_gone;
  sbx_runner_report_deinit(&report);
  if (rc == SBX_OK && !gone)
    rc = sbx_err_set(&err, SBX_EPROVIDER, "%s: some processes of the command could not be ended",
                     op->runner->wire->provider);
  sbx_steps_finish(&op->steps, rc == SBX_OK ? NULL : &err);
}

sbx_op *sbx_runner_kill(sbx_runner *runner, sbx_session *session, sbx_op *exec, sbx_op_done done,
                        void *arg) {
  sbx_buf body;
  kill_op *kill = sbx__runner_op_new(sizeof *kill, runner, session, done, arg);
  if (kill == NULL)
    return NULL;
  memcpy(kill->tag, ((exec_op *)(void *)exec)->tag, sizeof kill->tag);
  sbx_runner_line line = sbx__runner_begin(&kill->op, &body);
  sbx_runner_sending how = {.verb = "end a command",
                            .limit_s = SBX__RUNNER_LIMIT_S,
                            .timeout_ms = SBX_NO_TIMEOUT,
                            .max_bytes = SBX__RUNNER_ROOM};
  sbx_runner_line_stop(&line, kill->tag);
  sbx__runner_send(&kill->op, &body, &how, on_killed);
  return &kill->op.steps.op;
}
