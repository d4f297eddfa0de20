/* wire.c - one line to its report. */
#include "providers/remote/runner/wire.h"

#include "core/err.h"
#include "core/rand.h"

#include <string.h>

#define MAX_BODY ((size_t)1 << 30)

enum { QUICK_LIMIT_S = 30, QUICK_REPLY_MS = 60000, SLOW_LIMIT_S = 120 };

const sbx_repeat_rule sbx__runner_beside = {
    .first_pause_ms = 250, .most_pause_ms = 4000, .most = 5, .timeouts = true};

void *sbx__runner_op_new(size_t size, sbx_runner *runner, sbx_session *session, const char *tag,
                         sbx_op_done done, void *arg) {
  sbx_err err;
  sbx_runner_op *op = sbx_steps_new(size, session, runner->loop, done, arg);
  if (op == NULL)
    return NULL;
  op->runner = runner;
  if (tag != NULL)
    memcpy(op->tag, tag, sizeof op->tag);
  else if (sbx_random_hex(op->tag, SBX_RUNNER_TAG, &err) != SBX_OK)
    sbx_steps_finish(&op->steps, &err);
  return op;
}

sbx_runner_line sbx__runner_begin(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how) {
  sbx_buf_init(body, MAX_BODY);
  if (op->runner->wire->begin != NULL)
    op->runner->wire->begin(op->steps.session, body, how);
  op->line_at = body->len;
  return (sbx_runner_line){.buf = body, .json = op->runner->json};
}

void sbx__runner_send(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how,
                      sbx__runner_on_report on_report) {
  size_t most = op->runner->max_line;
  if (most > 0 && body->len - op->line_at > most && body->error == SBX_OK)
    body->error = SBX_ETOOBIG;
  op->on_report = on_report;
  op->verb = how->verb;
  if (op->steps.op.finished)
    sbx_buf_deinit(body);
  else
    op->runner->wire->send(op, body, how);
}

void sbx__runner_ask(sbx_runner_op *op, const sbx__runner_question *question,
                     sbx__runner_on_report on_report) {
  const sbx_runner_sending how = {
      .verb = question->verb,
      .limit_s = question->slow ? SLOW_LIMIT_S : QUICK_LIMIT_S,
      .timeout_ms = question->slow ? SBX_NO_TIMEOUT : QUICK_REPLY_MS,
      .max_bytes = question->max_bytes + SBX__RUNNER_ROOM,
      .once = question->once,
      .kills = question->kills,
  };
  sbx_buf body;
  sbx_runner_line line = sbx__runner_begin(op, &body, &how);
  sbx_runner_line_ask(&line, question->program, op->tag, question->text,
                      question->words != NULL ? question->words : "");
  sbx__runner_send(op, &body, &how, on_report);
}

bool sbx__runner_again(sbx_runner_op *op, const sbx_err *err, sbx_steps_time on_time) {
  return sbx_steps_repeat(&op->steps, &op->repeat, &sbx__runner_beside, err, on_time);
}

void sbx_runner_answered(sbx_runner_op *op, const sbx_runner_answer *answer) {
  sbx_runner_report report;
  sbx_err err = {0};
  sbx_runner_report_init(&report);
  if (answer->err != NULL)
    sbx_err_copy(&err, answer->err);
  else if (sbx_runner_report_read(&report, answer->printed, op->tag, op->runner->wire->provider,
                                  &err) == SBX_OK)
    op->repeat = (sbx_repeat){0};
  op->answer = answer;
  op->on_report(op, &report, &err);
  sbx_runner_report_deinit(&report);
}

size_t sbx__runner_most(size_t entries, size_t each) {
  const size_t most = (size_t)8 << 20;
  if (entries > most / each)
    return most;
  size_t bytes = entries * each;
  return bytes > SBX__RUNNER_LEAST ? bytes : SBX__RUNNER_LEAST;
}
