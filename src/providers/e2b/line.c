/* line.c - one line of the runner through the process service.
 *
 * Invariant: what a line has printed is handed on whole, or not at all. */
#include "providers/e2b/line.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/json.h"
#include "providers/e2b/process.h"
#include "providers/e2b/session.h"

enum { MAX_REQUEST = 1024 * 1024 };

typedef struct line_op {
  sbx_steps steps;
  sbx_runner_op *op; /* it ends this op with itself */
  sbx_buf printed;
  bool gap;
} line_op;

static void release_line(sbx_steps *steps) {
  sbx_buf_deinit(&((line_op *)(void *)steps)->printed);
}

static void on_output(void *arg, sbx_stream stream, sbx_slice bytes) {
  line_op *l = arg;
  if (stream == SBX_STDOUT && sbx_buf_append_slice(&l->printed, bytes) != SBX_OK)
    sbx__e2b_process_leave(l->steps.request);
}

static void on_gap(void *arg) {
  ((line_op *)arg)->gap = true;
}

static void on_process(sbx_op *process, void *arg) {
  line_op *l = arg;
  sbx_err err = process->err;
  l->steps.request = NULL;
  if (err.code == SBX_OK && l->printed.error != SBX_OK)
    sbx_err_set(&err, l->printed.error, NULL);
  else if (err.code == SBX_OK && l->gap)
    sbx_err_set(&err, SBX_ENET, "e2b: %s: a part of the answer was lost on the way", l->op->verb);
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

/* {"process": {"cmd": "/bin/sh", "args": ["-c", LINE], "cwd": "./"}, "stdin": false} */
static void write_request(sbx_buf *request, const sbx_buf *body) {
  sbx_json_out out;
  sbx_buf_init(request, MAX_REQUEST);
  sbx_json_out_init(&out, request);
  sbx_buf_append_str(request, "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",");
  sbx_json_put_string(&out, sbx_buf_slice(body));
  sbx_buf_append_str(request, "],\"cwd\":\"./\"},\"stdin\":false}");
  if (body->error != SBX_OK)
    request->error = body->error;
}

static void send_line(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how) {
  sbx_session *session = op->steps.session;
  sbx_buf request;
  line_op *l = sbx_steps_new(sizeof *l, session, op->runner->loop, on_line, op);
  write_request(&request, body);
  sbx_buf_deinit(body);
  if (l != NULL) {
    const sbx__e2b_process_spec spec = {.request = &request,
                                        .limit_ms = how->limit_s * 1000,
                                        .on_output = on_output,
                                        .on_gap = on_gap};
    l->steps.release = release_line;
    l->op = op;
    sbx_buf_init(&l->printed, how->max_bytes);
    if (request.error == SBX_OK)
      sbx_steps_wait_for(&l->steps, sbx__e2b_process(session, &spec, on_process, l));
    else
      sbx_steps_finish_code(&l->steps, request.error);
  }
  sbx_buf_deinit(&request);
  sbx_steps_wait_for(&op->steps, l != NULL ? &l->steps.op : NULL);
}

static const sbx_runner_wire process_service = {.provider = "e2b", .send = send_line};

/* NULL on out of memory. */
static sbx_runner *runner_of(sbx_session *session) {
  if (session->runner == NULL)
    session->runner = sbx_calloc(1, sizeof *session->runner);
  if (session->runner == NULL)
    return NULL;
  session->runner->wire = &process_service;
  session->runner->loop = session->config->loop;
  return session->runner;
}

sbx_op *sbx__e2b_line_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                          void *arg) {
  sbx_buf name;
  sbx_buf_init(&name, SIZE_MAX);
  sbx__e2b_append_path(&name, path);
  sbx_runner *runner = runner_of(session);
  sbx_op *op = runner != NULL && name.error == SBX_OK
                   ? sbx_runner_get(runner, session, sbx_buf_slice(&name), out, done, arg)
                   : NULL;
  sbx_buf_deinit(&name);
  return op;
}

sbx_op *sbx__e2b_line_list(sbx_session *session, size_t max_entries, sbx_listing *out,
                           sbx_op_done done, void *arg) {
  sbx_runner *runner = runner_of(session);
  return runner != NULL
             ? sbx_runner_list(runner, session, sbx_slice_of(NULL, 0), max_entries, out, done, arg)
             : NULL;
}
