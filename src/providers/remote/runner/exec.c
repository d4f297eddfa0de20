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
#include "core/err.h"
#include "providers/remote/runner/args.h"
#include "providers/remote/runner/store.h"

#include <stdio.h>
#include <string.h>

/* In a report come at most so many bytes of each stream; the rest is fetched. */
#define REPORT_MAX ((size_t)16 << 20)
#define FETCH_MOST ((size_t)1 << 20)

enum {
  MAX_NAME = 200,       /* in a message */
  FIRST_FETCH_MS = 200, /* a quick command needs none */
  FETCH_PAUSE_MS = 40,
  MOST_WAITS = 7,    /* for a command that has begun, each twice as long: 5 s in all */
  WIRE_GRACE_S = 15, /* how much longer than the command's the wire's limit is */
  MANY_LEFT =
      SBX_RUNNER_LEFT / 2, /* of the list of folders, which then go without a next command */
};

typedef struct exec_op exec_op;

/* Fetches while the command runs. */
typedef struct follow_op {
  sbx_runner_op op;
  exec_op *exec;
} follow_op;

struct exec_op {
  sbx_runner_op op;
  sbx_output *out;
  sbx_exec_status *status;
  char dir[MAX_NAME]; /* as much of its name as a message takes */
  char shell[MAX_NAME];
  sbx_runner_share share;
  bool keep;
  sbx_buf line; /* until it is sent */
  sbx_runner_sending how;
  bool stored;      /* something of it was stored before its line */
  bool leaves;      /* what may be of it in the sandbox goes on the list of that */
  uint64_t carried; /* so far the list of the session went along with its line */
  sbx_op *follow;
  uint64_t added[2]; /* bytes of each stream that reached the collector */
  sbx_runner_report report;
  sbx_err broken; /* why its own line brought no report */
  unsigned waits; /* for its folder */
  bool begun;     /* its line is known to run, although nothing may be there yet */
};

static exec_op *exec_of(sbx_runner_op *op) {
  return (exec_op *)(void *)op;
}

static exec_op *exec_of_steps(sbx_steps *steps) {
  return (exec_op *)(void *)steps;
}

/* ---- folders that may go -------------------------------------------------------------------- */

static uint64_t end_of_left(const sbx_runner *runner) {
  return runner->left_gone + runner->left_len;
}

static void take_off(sbx_runner *runner, uint64_t until) {
  size_t off = until > runner->left_gone ? (size_t)(until - runner->left_gone) : 0;
  if (off > runner->left_len)
    off = runner->left_len;
  runner->left_len -= off;
  runner->left_gone += off;
  memmove(runner->left, runner->left + off, runner->left_len + 1);
}

/* A full list loses its oldest one, whose folder stays. */
static void put_on(sbx_runner *runner, const char *tag) {
  if (runner->left_len == SBX_RUNNER_LEFT)
    take_off(runner, runner->left_gone + SBX_RUNNER_TAG + 1);
  runner->left[runner->left_len] = ' ';
  memcpy(runner->left + runner->left_len + 1, tag, SBX_RUNNER_TAG + 1);
  runner->left_len += SBX_RUNNER_TAG + 1;
}

/* ---- output --------------------------------------------------------------------------------- */

static sbx_stream stream_of(int i) {
  return i == 0 ? SBX_STDOUT : SBX_STDERR;
}

/* Adds bytes that begin at `from`, less what is there already. */
static void add(exec_op *exec, int i, uint64_t from, const sbx_buf *bytes) {
  uint64_t known = exec->added[i] - from;
  if (from > exec->added[i] || known >= bytes->len)
    return;
  sbx_slice fresh = sbx_slice_skip(sbx_buf_slice(bytes), (size_t)known);
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

/* ---- questions about it ---------------------------------------------------------------------- */

/* Bytes of a report: base64 of two streams. */
static size_t most_of_report(const exec_op *exec) {
  return (exec->share.head + exec->share.tail) * 3;
}

static void ask(sbx_runner_op *op, const exec_op *exec, sbx_runner_program program,
                const char *verb, const char *words, sbx__runner_on_report on_report) {
  sbx__runner_ask(
      op,
      &(sbx__runner_question){
          .program = program, .verb = verb, .words = words, .max_bytes = most_of_report(exec)},
      on_report);
}

static void fetch(sbx_runner_op *op, const exec_op *exec, bool over,
                  sbx__runner_on_report on_report) {
  char words[80];
  snprintf(words, sizeof words, " %llu %llu %zu %d", (unsigned long long)exec->added[0],
           (unsigned long long)exec->added[1], FETCH_MOST, over);
  ask(op, exec, SBX_RUNNER_FETCH, "fetch the output of a command", words, on_report);
}

/* How many bytes are new in what a fetch has brought. */
static uint64_t take_fetched(exec_op *exec, const sbx_runner_report *report) {
  uint64_t before[2] = {exec->added[0], exec->added[1]};
  for (int i = 0; i < 2; i++)
    add(exec, i, before[i], &report->head[i]);
  return exec->added[0] + exec->added[1] - before[0] - before[1];
}

/* ---- while it runs -------------------------------------------------------------------------- */

static void follow_on(sbx_steps *steps);

/* What cannot be had now may come later, and comes with the report at the latest. */
static void on_followed(sbx_runner_op *op, sbx_runner_report *report, sbx_err *err) {
  bool came = err->code == SBX_OK;
  if (came)
    take_fetched(((follow_op *)(void *)op)->exec, report);
  sbx_steps_wait(&op->steps,
                 came ? FETCH_PAUSE_MS : sbx_repeat_pause(&op->repeat, &sbx__runner_beside),
                 follow_on);
}

static void follow_on(sbx_steps *steps) {
  follow_op *follow = (follow_op *)(void *)steps;
  fetch(&follow->op, follow->exec, false, on_followed);
}

static void on_follow_done(sbx_op *op, void *arg) {
  (void)op;
  ((exec_op *)arg)->follow = NULL;
}

static void start_following(exec_op *exec) {
  follow_op *follow = sbx__runner_op_new(sizeof *follow, exec->op.runner, exec->op.steps.session,
                                         exec->op.tag, on_follow_done, exec);
  if (follow == NULL)
    return; /* all of it comes with the report */
  exec->follow = &follow->op.steps.op;
  follow->exec = exec;
  sbx_steps_wait(&follow->op.steps, FIRST_FETCH_MS, follow_on);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void on_forgotten(sbx_runner_op *op, sbx_runner_report *report, sbx_err *err) {
  (void)report;
  if (err->code == SBX_OK)
    take_off(op->runner, exec_of(op)->carried);
  sbx_steps_finish(&op->steps, NULL);
}

/* Where output had no room, what is missing may be what was wanted. A head that is all there is not
 * missing. */
static uint64_t hole_of(const exec_op *exec, int i) {
  const sbx_runner_report *report = &exec->report;
  bool enough = !exec->keep && exec->share.tail == 0 && report->head[i].len >= exec->share.head;
  return enough ? 0 : report->lost[i];
}

static bool is_much(const exec_op *exec) {
  size_t share = exec->share.head + exec->share.tail;
  return exec->keep && (exec->report.size[0] > share || exec->report.size[1] > share);
}

/* All is here. More than a report's worth should not wait in the sandbox for the next command, nor
 * should the folders of many commands. */
static void finish_command(exec_op *exec) {
  sbx_runner *runner = exec->op.runner;
  uint64_t missing = hole_of(exec, 0) + hole_of(exec, 1);
  uint64_t first = runner->left_asked > runner->left_gone ? runner->left_asked : runner->left_gone;
  sbx_err err = {0};
  if (missing > 0)
    sbx_err_set(&err, SBX_EQUOTA,
                "%s: the command has run and ended with exit code %d, but its output did not fit "
                "on the sandbox's disk: at least %llu bytes of it are missing; make room, or write "
                "less",
                runner->wire->provider, exec->report.exit_code, (unsigned long long)missing);
  if (missing > 0 || (!is_much(exec) && end_of_left(runner) - first < MANY_LEFT)) {
    sbx_steps_finish(&exec->op.steps, &err);
    return;
  }
  put_on(runner, exec->op.tag);
  exec->leaves = false;
  exec->carried = runner->left_asked = end_of_left(runner);
  ask(&exec->op, exec, SBX_RUNNER_FORGET, "forget commands", runner->left, on_forgotten);
}

static void fetch_rest(sbx_steps *steps);

static void on_rest(sbx_runner_op *op, sbx_runner_report *report, sbx_err *err) {
  if (err->code == SBX_OK && take_fetched(exec_of(op), report) == 0)
    sbx_err_set(err, SBX_EPROTO, "%s: the end of the command's output is missing",
                op->runner->wire->provider);
  if (err->code == SBX_OK)
    fetch_rest(&op->steps);
  else if (!sbx__runner_again(op, err, fetch_rest))
    sbx_steps_finish(&op->steps, err);
}

static void fetch_rest(sbx_steps *steps) {
  exec_op *exec = exec_of_steps(steps);
  const uint64_t *size = exec->report.size;
  bool more = exec->keep && (exec->added[0] < size[0] || exec->added[1] < size[1]);
  if (more && !sbx_output_is_full(exec->out)) {
    fetch(&exec->op, exec, true, on_rest);
    return;
  }
  for (int i = 0; more && i < 2; i++) { /* nothing more is wanted */
    if (exec->added[i] < size[i])
      sbx_output_skip(exec->out, stream_of(i), size[i] - exec->added[i]);
  }
  finish_command(exec);
}

static void finish_unstarted(exec_op *exec) {
  const char *provider = exec->op.runner->wire->provider;
  sbx_err err;
  exec->status->started = false;
  if (exec->report.end == SBX_RUNNER_NODIR) {
    sbx_runner_no_directory(&err, provider, exec->dir);
  } else if (exec->report.end == SBX_RUNNER_NOSHELL) {
    sbx_runner_no_shell(&err, provider, exec->shell);
  } else {
    sbx__runner_unstored(exec->op.runner, &err);
  }
  sbx_steps_finish(&exec->op.steps, &err);
}

static bool is_over(const sbx_runner_report *report) {
  return report->end <= SBX_RUNNER_NOSHELL;
}

/* The report is one of a command that is over. */
static void take_end(exec_op *exec) {
  const sbx_runner_report *report = &exec->report;
  sbx_exec_status *status = exec->status;
  sbx_op_drop(&exec->follow, SBX_ECANCELED);
  take_off(exec->op.runner, exec->carried);
  if (report->end >= SBX_RUNNER_UNSTORED) {
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
  fetch_rest(&exec->op.steps);
}

static void keep_report(exec_op *exec, sbx_runner_report *report) {
  sbx_runner_report_deinit(&exec->report);
  exec->report = *report;
  sbx_runner_report_init(report);
}

/* ---- a line that broke off ------------------------------------------------------------------- */

static void ask_for_end(sbx_steps *steps);

static void on_asked(sbx_runner_op *op, sbx_runner_report *report, sbx_err *err) {
  exec_op *exec = exec_of(op);
  keep_report(exec, report);
  report = &exec->report;
  if (err->code == SBX_OK && is_over(report)) {
    take_end(exec);
  } else if (err->code == SBX_OK && report->end == SBX_RUNNER_GOING) {
    sbx_steps_wait(&op->steps, FETCH_PAUSE_MS, ask_for_end);
  } else if (err->code == SBX_OK && report->end == SBX_RUNNER_ABSENT && exec->begun &&
             exec->waits < MOST_WAITS) {
    sbx_steps_wait(&op->steps, (uint64_t)FETCH_PAUSE_MS << exec->waits++, ask_for_end);
  } else if (err->code == SBX_OK || !sbx__runner_again(op, err, ask_for_end)) {
    /* It has not begun, or there is nobody to ask: whether the sandbox is gone is for others. */
    if (err->code == SBX_OK && report->end == SBX_RUNNER_ENDED)
      sbx_err_append(&exec->broken, "; what ran the command in the sandbox was killed");
    sbx_steps_finish(&op->steps, &exec->broken);
  }
}

static void ask_for_end(sbx_steps *steps) {
  exec_op *exec = exec_of_steps(steps);
  char words[50];
  snprintf(words, sizeof words, " %zu %zu", exec->share.head, exec->share.tail);
  ask(&exec->op, exec, SBX_RUNNER_ASK, "ask for the end of a command", words, on_asked);
}

/* ---- the answer ----------------------------------------------------------------------------- */

static void on_ran(sbx_runner_op *op, sbx_runner_report *report, sbx_err *err) {
  exec_op *exec = exec_of(op);
  const sbx_runner_wire *wire = op->runner->wire;
  const sbx_runner_answer *answer = op->answer;
  sbx_exec_status *status = exec->status;
  status->started = answer->started;
  exec->begun = answer->begun;
  if (answer->late) {
    /* The wire's limit has passed, after the program's: it was kept from running, or killed. */
    status->outcome = SBX_EXITED;
    status->exit_code = 124;
    status->limit_kept = true;
    sbx_steps_finish(&op->steps, NULL);
    return;
  }
  keep_report(exec, report);
  if (err->code == SBX_OK && is_over(&exec->report)) {
    take_end(exec);
    return;
  }
  if (err->code == SBX_OK)
    sbx_err_set(err, SBX_ENET,
                "%s: run a command: a connection behind the proxy broke, and the request was "
                "delivered twice; it was not run a second time",
                wire->provider);
  else if (err->code == SBX_EPROTO && answer->err == NULL && wire->explain != NULL)
    status->started = wire->explain(answer->printed, err);
  sbx_err_copy(&exec->broken, err);
  /* It may run, or have run: its report is in the sandbox then. */
  if (answer->err == NULL ? err->code == SBX_ENET : answer->broken && answer->started)
    ask_for_end(&op->steps);
  else
    sbx_steps_finish(&op->steps, err);
}

/* ---- run ------------------------------------------------------------------------------------ */

static void end_early(sbx_steps *steps, int reason) {
  exec_op *exec = exec_of_steps(steps);
  sbx_op_drop(&exec->follow, reason);
  if (reason == SBX_ECLOSED)
    exec->leaves = false; /* the session may be gone */
  else if (steps->request != NULL && exec->op.store == NULL)
    exec->status->started = true; /* the request cannot be called back */
}

static void let_go(sbx_steps *steps) {
  exec_op *exec = exec_of_steps(steps);
  sbx_op_drop(&exec->follow, SBX_ECANCELED);
  if (exec->leaves && (exec->status->started || exec->stored))
    put_on(exec->op.runner, exec->op.tag);
}

static void release(sbx_steps *steps) {
  exec_op *exec = exec_of_steps(steps);
  sbx__runner_store_free(&exec->op);
  sbx_buf_deinit(&exec->line);
  sbx_runner_report_deinit(&exec->report);
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

static void send_command(sbx_runner_op *op, sbx_err *err) {
  exec_op *exec = exec_of(op);
  sbx_buf line = exec->line;
  if (err->code != SBX_OK) {
    sbx_steps_finish(&op->steps, err);
    return;
  }
  sbx_buf_init(&exec->line, 0);
  sbx__runner_send(op, &line, &exec->how, on_ran);
  if (sbx_output_is_watched(exec->out) && !op->steps.op.finished)
    start_following(exec);
}

/* Writes its line, in which what is too large for one is only named, and keeps that to be stored.
 */
static int write_line(exec_op *exec, const sbx_exec_spec *spec, sbx_slice dir) {
  static const char *const names[SBX_RUNNER_PARTS] = {"text", "input", "env"};
  sbx_runner_op *op = &exec->op;
  sbx_runner_command command;
  int rc = sbx_runner_command_init(&command, spec, op->runner->env);
  command.tag = op->tag;
  command.dir = dir;
  command.share = exec->share;
  command.keep = exec->keep;
  command.left = op->runner->left;
  for (int i = 0; i < SBX_RUNNER_PARTS && rc == SBX_OK; i++) {
    command.stored[i] = command.parts[i].len > sbx__runner_most_in_line(op->runner);
    if (command.stored[i])
      rc = sbx__runner_keep(op, names[i], command.parts[i]);
  }
  exec->how = (sbx_runner_sending){.spec = spec,
                                   .verb = "run a command",
                                   .timeout_ms = SBX_NO_TIMEOUT,
                                   .max_bytes = most_of_report(exec) + SBX__RUNNER_ROOM,
                                   .once = true};
  if (spec->timeout_ms != SBX_NO_TIMEOUT)
    exec->how.limit_s = (spec->timeout_ms + 999) / 1000 + WIRE_GRACE_S;
  if (rc == SBX_OK) {
    sbx_runner_line line = sbx__runner_begin(op, &exec->line, &exec->how);
    sbx_runner_line_run(&line, &command);
    exec->carried = end_of_left(op->runner);
  }
  sbx_runner_command_deinit(&command);
  exec->how.spec = NULL; /* it is the caller's */
  return rc;
}

static void keep_name(char to[MAX_NAME], sbx_slice name) {
  size_t len = name.len < MAX_NAME ? name.len : MAX_NAME - 1;
  if (len > 0)
    memcpy(to, name.ptr, len);
}

sbx_op *sbx_runner_exec(sbx_runner *runner, sbx_session *session, const sbx_exec_spec *spec,
                        sbx_slice dir, sbx_output *out, sbx_exec_status *status, sbx_op_done done,
                        void *arg) {
  sbx_err err = {0};
  exec_op *exec = sbx__runner_op_new(sizeof *exec, runner, session, NULL, done, arg);
  if (exec == NULL)
    return NULL;
  exec->out = out;
  exec->status = status;
  keep_name(exec->dir, dir);
  keep_name(exec->shell, spec->shell);
  sbx_runner_report_init(&exec->report);
  exec->op.steps.release = release;
  exec->op.steps.ending = end_early;
  exec->op.steps.let_go = let_go;
  choose_share(exec, spec);
  int rc = write_line(exec, spec, dir);
  exec->leaves = true;
  exec->stored = exec->op.store != NULL;
  if (rc != SBX_OK)
    sbx_steps_finish_code(&exec->op.steps, rc);
  else if (exec->stored)
    sbx__runner_store(&exec->op, send_command);
  else
    send_command(&exec->op, &err);
  return &exec->op.steps.op;
}

sbx_op *sbx_runner_exec_in(sbx_runner *runner, sbx_session *session, const sbx_exec_spec *spec,
                           int (*absolute)(sbx_buf *out, const sbx_session *session,
                                           sbx_slice path),
                           sbx_output *out, sbx_exec_status *status, sbx_op_done done, void *arg) {
  sbx_op *op = NULL;
  sbx_buf dir;
  sbx_buf_init(&dir, SIZE_MAX);
  if (absolute(&dir, session, spec->cwd) == SBX_OK)
    op = sbx_runner_exec(runner, session, spec, sbx_buf_slice(&dir), out, status, done, arg);
  sbx_buf_deinit(&dir);
  return op;
}

/* ---- kill ----------------------------------------------------------------------------------- */

static void on_killed(sbx_runner_op *op, sbx_runner_report *report, sbx_err *err) {
  if (err->code == SBX_OK && !report->tree_gone)
    sbx_err_set(err, SBX_EPROVIDER, "%s: some processes of the command could not be ended",
                op->runner->wire->provider);
  sbx_steps_finish(&op->steps, err);
}

sbx_op *sbx_runner_stop(sbx_runner *runner, sbx_session *session, const char *tag, sbx_op_done done,
                        void *arg) {
  sbx_runner_op *kill = sbx__runner_op_new(sizeof *kill, runner, session, tag, done, arg);
  if (kill == NULL)
    return NULL;
  sbx__runner_ask(
      kill,
      &(sbx__runner_question){.program = SBX_RUNNER_STOP, .verb = "end a command", .kills = true},
      on_killed);
  return &kill->steps.op;
}

sbx_op *sbx_runner_kill(sbx_runner *runner, sbx_session *session, sbx_op *exec, sbx_op_done done,
                        void *arg) {
  return sbx_runner_stop(runner, session, ((sbx_runner_op *)(void *)exec)->tag, done, arg);
}
