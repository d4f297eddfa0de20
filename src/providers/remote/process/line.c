/* line.c - one line of the runner as a process.
 *
 * Invariant: what a line has printed is handed on whole, or not at all. */
#include "providers/remote/process/process.h"

#include "core/err.h"

typedef struct line_op {
  sbx_steps steps;
  const sbx_processes *wire;
  sbx_runner_op *op; /* it ends this op with itself */
  sbx_buf printed;
} line_op;

static void release(sbx_steps *steps) {
  sbx_buf_deinit(&((line_op *)(void *)steps)->printed);
}

static void on_output(void *arg, sbx_stream stream, sbx_slice bytes) {
  line_op *l = arg;
  if (stream == SBX_STDOUT && sbx_buf_append_slice(&l->printed, bytes) != SBX_OK)
    l->wire->leave(l->steps.request);
}

/* The report has an end of its own. */
static bool is_told(void *arg) {
  return ((line_op *)arg)->printed.len > 0;
}

static void on_process(sbx_op *process, void *arg) {
  line_op *l = arg;
  sbx_err err = process->err;
  l->steps.request = NULL;
  if (err.code == SBX_OK && l->printed.error != SBX_OK)
    sbx_err_set(&err, l->printed.error, NULL);
  else if (err.code == SBX_OK)
    l->wire->has_no_shell(l->steps.session, l->wire->ended(process), &err);
  sbx_steps_finish(&l->steps, err.code != SBX_OK ? &err : NULL);
}

static void on_line(sbx_op *done, void *arg) {
  line_op *l = (line_op *)(void *)done;
  sbx_runner_op *op = arg;
  sbx_runner_answer answer = {
      .err = done->err.code != SBX_OK ? &done->err : NULL,
      .printed = sbx_buf_slice(&l->printed),
      .started = true,
      .broken = done->err.code == SBX_ENET,
  };
  op->steps.request = NULL;
  sbx_runner_answered(op, &answer);
}

void sbx_process_line(const sbx_processes *wire, sbx_runner_op *op, sbx_buf *body,
                      const sbx_runner_sending *how) {
  sbx_session *session = op->steps.session;
  sbx_process_request request;
  line_op *l = sbx_steps_new(sizeof *l, session, op->runner->loop, on_line, op);
  wire->begin(&request, session, sbx_buf_slice(body), false);
  wire->end(&request, NULL, NULL);
  if (body->error != SBX_OK)
    request.buf.error = body->error;
  sbx_buf_deinit(body);
  if (l != NULL) {
    const sbx_process_spec spec = {.request = &request, .on_output = on_output, .is_told = is_told};
    l->steps.release = release;
    l->wire = wire;
    l->op = op;
    sbx_buf_init(&l->printed, how->max_bytes);
    sbx_steps_wait_for(&l->steps, wire->start(session, &spec, on_process, l));
  }
  sbx_buf_deinit(&request.buf);
  sbx_steps_wait_for(&op->steps, l != NULL ? &l->steps.op : NULL);
}
