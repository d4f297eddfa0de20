/* wire.c - one line to its report. */
#include "providers/remote/runner/wire.h"

#include "core/err.h"
#include "core/rand.h"

#include <string.h>

#define MAX_BODY ((size_t)1 << 30)
/* Of a piece that is stored; a line without a limit takes this much. */
#define MOST_OF_PIECE ((size_t)96 << 10)

const sbx_repeat_rule sbx__runner_beside = {
    .first_pause_ms = 250, .most_pause_ms = 4000, .most = 5, .timeouts = true};

void *sbx__runner_op_new(size_t size, sbx_runner *runner, sbx_session *session, sbx_op_done done,
                         void *arg) {
  sbx_runner_op *op = sbx_steps_new(size, session, runner->loop, done, arg);
  if (op != NULL)
    op->runner = runner;
  return op;
}

int sbx__runner_take_tag(sbx_runner *runner, char tag[SBX_RUNNER_TAG + 1], sbx_err *err) {
  if (runner->spare.count == 0) {
    int rc = sbx_random_hex(runner->spare.digits, sizeof runner->spare.digits - 1, err);
    if (rc != SBX_OK)
      return rc;
    runner->spare.count = SBX_RUNNER_SPARE;
  }
  memcpy(tag, runner->spare.digits + --runner->spare.count * SBX_RUNNER_TAG, SBX_RUNNER_TAG);
  tag[SBX_RUNNER_TAG] = '\0';
  return SBX_OK;
}

sbx_runner_line sbx__runner_begin(sbx_runner_op *op, sbx_buf *body) {
  sbx_buf_init(body, MAX_BODY);
  if (op->runner->wire->begin != NULL)
    op->runner->wire->begin(op->steps.session, body);
  return (sbx_runner_line){.buf = body, .json = op->runner->json};
}

void sbx__runner_send(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how,
                      void (*on_answer)(sbx_runner_op *op, const sbx_runner_answer *answer)) {
  size_t most = op->runner->max_line;
  if (most > 0 && body->len > most && body->error == SBX_OK)
    body->error = SBX_ETOOBIG;
  op->on_answer = on_answer;
  op->verb = how->verb;
  op->runner->wire->send(op, body, how);
}

void sbx_runner_answered(sbx_runner_op *op, const sbx_runner_answer *answer) {
  op->on_answer(op, answer);
}

int sbx__runner_read(sbx_runner_op *op, sbx_runner_report *report, const sbx_runner_answer *answer,
                     const char *tag, sbx_err *err) {
  sbx_runner_report_init(report);
  if (answer->err == NULL)
    return sbx_runner_report_read(report, answer->printed, tag, op->runner->wire->provider, err);
  sbx_err_copy(err, answer->err);
  return err->code;
}

/* A third of a line for the program, the rest for base64. */
static size_t piece_of(const sbx_runner *runner) {
  size_t most = runner->max_line / 2;
  return most > 0 && most < MOST_OF_PIECE ? most : MOST_OF_PIECE / 4 * 3;
}

bool sbx__runner_store(sbx_runner_op *op, const char *tag, const char *name, sbx_slice bytes,
                       size_t *at,
                       void (*on_answer)(sbx_runner_op *op, const sbx_runner_answer *answer)) {
  sbx_buf body;
  sbx_slice piece = sbx_slice_skip(bytes, *at);
  if (piece.len == 0 && *at > 0)
    return false;
  if (piece.len > piece_of(op->runner))
    piece.len = piece_of(op->runner);
  sbx_runner_line line = sbx__runner_begin(op, &body);
  sbx_runner_line_store(&line, tag, name, *at, piece);
  sbx_runner_sending how = {.verb = "store what a command needs",
                            .limit_s = SBX__RUNNER_LIMIT_S,
                            .timeout_ms = SBX__RUNNER_REPLY_MS,
                            .max_bytes = SBX__RUNNER_ROOM};
  sbx__runner_send(op, &body, &how, on_answer);
  return true;
}

int sbx__runner_stored(sbx_runner_op *op, const char *tag, sbx_slice bytes, size_t *at,
                       const sbx_runner_answer *answer, sbx_err *err) {
  sbx_runner_report report;
  int rc = sbx__runner_read(op, &report, answer, tag, err);
  sbx_runner_end end = report.end;
  sbx_runner_report_deinit(&report);
  if (rc != SBX_OK)
    return rc;
  if (end != SBX_RUNNER_RAN)
    return sbx__runner_unstored(op->runner, err);
  size_t rest = bytes.len - *at, piece = piece_of(op->runner);
  *at += rest < piece ? rest : piece;
  if (bytes.len == 0)
    *at = 1; /* the one piece of nothing */
  return SBX_OK;
}

int sbx__runner_unstored(const sbx_runner *runner, sbx_err *err) {
  return sbx_err_set(err, SBX_EQUOTA,
                     "%s: the sandbox cannot store the command: nothing can be written in /tmp, "
                     "/var/tmp, /dev/shm, $TMPDIR, the home or the working directory; is the disk "
                     "full, or is the program base64 or mkfifo missing?",
                     runner->wire->provider);
}
