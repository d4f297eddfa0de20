/* line.c - one line of the runner as a process.
 *
 * Invariant: what a line has printed is handed on whole, or not at all. */
#include "providers/docker/line.h"

#include "core/err.h"
#include "providers/docker/process.h"

typedef struct line_op {
  sbx_steps steps;
  sbx_runner_op *op; /* it ends this op with itself */
  sbx_buf printed;
} line_op;

static void release(sbx_steps *steps) {
  sbx_buf_deinit(&((line_op *)(void *)steps)->printed);
}

static void on_output(void *arg, sbx_stream stream, sbx_slice bytes) {
  line_op *l = arg;
  if (stream == SBX_STDOUT && sbx_buf_append_slice(&l->printed, bytes) != SBX_OK)
    sbx__docker_process_leave(l->steps.request);
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
    sbx__docker_has_no_shell(l->steps.session, sbx__docker_process_end(process), &err);
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

static void send_line(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how) {
  sbx_session *session = op->steps.session;
  sbx_json_out json;
  sbx_buf request;
  line_op *l = sbx_steps_new(sizeof *l, session, op->runner->loop, on_line, op);
  sbx__docker_process_begin(&json, &request, session, sbx_buf_slice(body), NULL, false);
  sbx__docker_process_end_request(&json);
  if (body->error != SBX_OK)
    request.error = body->error;
  sbx_buf_deinit(body);
  if (l != NULL) {
    const sbx__docker_process_spec spec = {
        .request = &request, .on_output = on_output, .is_told = is_told};
    l->steps.release = release;
    l->op = op;
    sbx_buf_init(&l->printed, how->max_bytes);
    sbx_steps_wait_for(&l->steps, sbx__docker_process(session, &spec, on_process, l));
  }
  sbx_buf_deinit(&request);
  sbx_steps_wait_for(&op->steps, l != NULL ? &l->steps.op : NULL);
}

static const sbx_runner_wire wire = {.provider = "docker", .send = send_line};

sbx_runner *sbx__docker_runner(sbx_session *session) {
  session->runner.wire = &wire;
  session->runner.loop = session->config->loop;
  session->runner.json = true;
  return &session->runner;
}
