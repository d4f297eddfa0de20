/* code.c - code in the interpreter of templates that have one.
 *
 * The service runs code in a context, which keeps its state, and streams what comes of it. It keeps
 * no limit: the clock here does. Code that has to be stopped is stopped by a restart of its
 * context; a mere end of the stream would let it go on, and everything after it wait.
 *
 * Invariant: code has run to its end only when the reply has said so; the stream's end does not. */
#include "providers/e2b/code.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/err.h"
#include "core/lines.h"
#include "providers/e2b/cell.h"
#include "providers/e2b/context.h"
#include "providers/e2b/life.h"
#include "providers/e2b/wire.h"

#include <string.h>

enum {
  MAX_REQUEST = 64 * 1024 * 1024,
  MAX_LINE = 16 * 1024 * 1024, /* as much as may be kept of output; one is held and parsed whole */
  RESTART_MS = 5000,
  /* For the connection's end after that of the code; less than the port's clock waits for us beyond
   * the limit, which the code may have kept by a hair. */
  AFTER_END_MS = 500,
};

typedef struct code_op {
  sbx_steps steps; /* it waits for the context, the reply, or the restart */
  sbx_exec_status *status;
  sbx_language language;
  char *context;   /* id; NULL: the default one */
  sbx_buf request; /* JSON, but for its end */
  sbx__e2b_cell cell;
  sbx_lines lines;
  sbx_timer limit;
  sbx_timer drain; /* after the end of the code */
  bool sent;       /* the code may run */
  bool began;      /* the sandbox's life knows of it */
} code_op;

/* ---- the end -------------------------------------------------------------------------------- */

static void let_go(sbx_steps *steps) {
  code_op *x = (code_op *)(void *)steps;
  sbx_timer_stop(&x->limit);
  sbx_timer_stop(&x->drain);
  if (x->began)
    sbx__e2b_life_leave(x->steps.session);
  x->began = false;
}

/* What has come is kept in any case. */
static void finish(code_op *x, const sbx_err *err) {
  sbx__e2b_cell_finish(&x->cell);
  sbx_steps_finish(&x->steps, err);
}

static void fail(code_op *x, int code, const char *text) {
  sbx_err err;
  sbx_err_set(&err, code, "%s", text);
  finish(x, &err);
}

static void release(sbx_steps *steps) {
  code_op *x = (code_op *)(void *)steps;
  sbx_lines_deinit(&x->lines);
  sbx__e2b_cell_deinit(&x->cell);
  sbx_buf_deinit(&x->request);
  sbx_free(x->context);
}

bool sbx__e2b_is_code(const sbx_op *op) {
  return ((const sbx_steps *)(const void *)op)->release == release;
}

/* ---- limit and kill ------------------------------------------------------------------------- */

/* The kernel is gone, and with it its group; a child in a session of its own is not. */
static void on_limit_restarted(sbx_op *op, void *arg) {
  code_op *x = arg;
  (void)op;
  x->steps.request = NULL;
  finish(x, NULL);
}

static void on_limit(sbx_timer *timer) {
  code_op *x = (code_op *)(void *)((char *)timer - offsetof(code_op, limit));
  sbx_op_drop(&x->steps.request, SBX_ECANCELED);
  x->status->limit_kept = true;
  if (!x->sent) {
    x->status->tree_gone = true;
    finish(x, NULL);
    return;
  }
  sbx_op *restart =
      sbx__e2b_context_restart(x->steps.session, x->context, x->language, on_limit_restarted, x);
  if (restart != NULL)
    sbx_op_set_deadline(restart, RESTART_MS);
  sbx_steps_wait_for(&x->steps, restart);
}

/* Nothing runs that would have to be killed. */
static sbx_op *nothing_to_kill(sbx_session *session, sbx_op_done done, void *arg) {
  sbx_steps *steps = sbx_steps_new(sizeof *steps, session, session->config->loop, done, arg);
  if (steps == NULL)
    return NULL;
  sbx_steps_finish(steps, NULL);
  return &steps->op;
}

/* The stream ends now, and with it the op; the restart says whether the code did. */
sbx_op *sbx__e2b_code_kill(sbx_session *session, sbx_op *op, sbx_op_done done, void *arg) {
  code_op *x = (code_op *)(void *)op;
  bool running = x->sent && !x->cell.ended && !x->steps.op.finished;
  sbx_op *restart = running ? sbx__e2b_context_restart(session, x->context, x->language, done, arg)
                            : nothing_to_kill(session, done, arg);
  if (restart == NULL || x->steps.op.finished || x->cell.ended)
    return restart;
  sbx_op_drop(&x->steps.request, SBX_ECANCELED);
  x->status->kill_is_partial = running;
  x->status->outcome = SBX_SIGNALLED;
  x->status->signal_number = 9;
  x->status->signal_name = "SIGKILL";
  finish(x, NULL);
  return restart;
}

/* ---- the reply ------------------------------------------------------------------------------ */

/* Nothing of interest follows the line of the end, and the limit is of the code only. */
static int on_line(void *arg, sbx_slice line, sbx_err *err) {
  code_op *x = arg;
  if (x->cell.ended)
    return SBX_OK;
  int rc = sbx__e2b_cell_line(&x->cell, line, err);
  if (x->cell.ended) {
    sbx_timer_stop(&x->limit);
    sbx_timer_start(&x->drain, AFTER_END_MS);
  }
  return rc;
}

/* Inside libcurl: what goes on from here to the user waits for the ready list there. */
static int on_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  code_op *x = arg;
  int rc = sbx_lines_feed(&x->lines, bytes, err);
  if (rc == SBX_ETOOBIG)
    sbx_err_append(err, "; have the code write large results to a file, and read that");
  return rc;
}

static void take_status(code_op *x, const sbx_http *http) {
  sbx_err err;
  sbx_slice body = sbx_buf_slice(&http->body);
  sbx__e2b_sandbox_error(x->steps.session, http, "code", &err);
  x->status->started = http->status >= 500 && !err.no_effect;
  if (http->status == 404 && x->context != NULL)
    sbx__e2b_context_forget(x->steps.session, x->context);
  if (http->status == 502 && sbx__e2b_read_502(body) == SBX__E2B_NO_PORT)
    sbx_err_append(&err, "; if the template has no interpreter, say interpreter: false");
  finish(x, &err);
}

static void finish_ended(code_op *x) {
  x->status->started = true;
  x->status->exit_code = x->cell.failed ? 1 : 0;
  if (x->cell.kernel_lost)
    fail(x, SBX_EPROVIDER, "e2b: code: the interpreter lost the connection to its kernel");
  else
    finish(x, NULL);
}

static void on_drain(sbx_timer *timer) {
  code_op *x = (code_op *)(void *)((char *)timer - offsetof(code_op, drain));
  sbx_op_drop(&x->steps.request, SBX_ECANCELED);
  finish_ended(x);
}

static void on_reply_end(sbx_steps *steps, sbx_http *http) {
  code_op *x = (code_op *)(void *)steps;
  bool cut = http->op.err.code != SBX_OK;
  x->status->started = !cut || http->sent_maybe;
  if (x->cell.ended)
    finish_ended(x);
  else if (cut)
    finish(x, &http->op.err);
  else if (http->status != 200)
    take_status(x, http);
  else
    fail(x, SBX_EPROTO, "e2b: code: the reply broke off: its end is missing");
}

/* ---- the request ---------------------------------------------------------------------------- */

/* The service pastes values into source text between quotes. */
static int check_env(const sbx_exec_spec *spec, sbx_err *err) {
  for (size_t i = 0; i < spec->env_count; i++) {
    sbx_slice value = spec->env[i].value;
    size_t at = 0;
    while (at < value.len && strchr("'\\\r\n", value.ptr[at]) == NULL)
      at++;
    if (at == value.len)
      continue;
    sbx_err_set(err, SBX_EINVAL, "the interpreter cannot take the value of the variable ");
    sbx_err_append_remote(err, spec->env[i].name);
    sbx_err_append(err, ": it has a ', a backslash or a line end; put it into a file, or set it in "
                        "the code");
    return SBX_EINVAL;
  }
  return SBX_OK;
}

static int check(const sbx_exec_spec *spec, sbx_err *err) {
  bool ok =
      sbx_utf8_valid(spec->text) && sbx_utf8_valid(spec->cwd) && sbx_utf8_valid(spec->context);
  for (size_t i = 0; ok && i < spec->env_count; i++)
    ok = sbx_utf8_valid(spec->env[i].value);
  if (!ok)
    return sbx_err_set(err, SBX_EINVAL, "code, its directory and its variables must be UTF-8");
  if (spec->stdin_bytes.len > 0)
    return sbx_err_set(err, SBX_EUNSUPPORTED,
                       "code in the interpreter has no stdin; write a file and read that");
  return check_env(spec, err);
}

static int begin_request(sbx_buf *request, const sbx_exec_spec *spec, sbx_err *err) {
  sbx_json_out out;
  sbx_json_out_init(&out, request);
  sbx_json_begin_object(&out);
  sbx_json_put_name(&out, sbx_slice_str("code"));
  sbx_json_put_string(&out, spec->text);
  if (spec->env_count > 0) {
    sbx_json_put_name(&out, sbx_slice_str("env_vars"));
    sbx_json_begin_object(&out);
    for (size_t i = 0; i < spec->env_count; i++) {
      sbx_json_put_name(&out, spec->env[i].name);
      sbx_json_put_string(&out, spec->env[i].value);
    }
    sbx_json_end_object(&out);
  }
  if (request->error == SBX_OK)
    return SBX_OK;
  return sbx_err_set(err, request->error,
                     request->error == SBX_ETOOBIG
                         ? "the code is too large; write it to a file and run that"
                         : NULL);
}

/* The service takes one of the two. */
static void end_request(code_op *x) {
  sbx_json_out out = {.buf = &x->request, .need_comma = true};
  sbx_json_put_name(&out, sbx_slice_str(x->context != NULL ? "context_id" : "language"));
  const char *value = x->context != NULL ? x->context : sbx__e2b_language(x->language);
  sbx_json_put_string(&out, sbx_slice_str(value));
  sbx_json_end_object(&out);
}

static void send_request(code_op *x) {
  x->sent = true;
  end_request(x);
  sbx__e2b_request request = {.http.method = "POST",
                              .path = sbx_slice_str("/execute"),
                              .content_type = "application/json",
                              .http.take_body = &x->request,
                              .http.timeout_ms = SBX_NO_TIMEOUT,
                              .http.on_bytes = on_bytes,
                              .http.consumer = x,
                              .port = SBX__E2B_CODE_PORT};
  sbx__e2b_to_sandbox(&x->steps, &request, on_reply_end);
}

static void on_context(sbx_op *op, void *arg) {
  code_op *x = arg;
  x->steps.request = NULL;
  if (op->err.code == SBX_OK)
    send_request(x);
  else
    finish(x, &op->err);
}

static void begin(code_op *x, const sbx_exec_spec *spec) {
  sbx_session *session = x->steps.session;
  sbx__e2b_life_enter(session, spec->timeout_ms);
  x->began = true;
  if (spec->timeout_ms != SBX_NO_TIMEOUT)
    sbx_timer_start(&x->limit, spec->timeout_ms);
  if (!sbx__e2b_needs_context(spec)) {
    send_request(x);
    return;
  }
  sbx_steps_wait_for(&x->steps, sbx__e2b_context_wait(session, spec, &x->context, on_context, x));
}

sbx_op *sbx__e2b_code(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                      sbx_exec_status *status, sbx_op_done done, void *arg) {
  sbx_err err;
  code_op *x = sbx_steps_new(sizeof *x, session, session->config->loop, done, arg);
  if (x == NULL)
    return NULL;
  x->steps.let_go = let_go;
  x->steps.release = release;
  x->status = status;
  x->language = spec->language;
  sbx_buf_init(&x->request, MAX_REQUEST);
  sbx__e2b_cell_init(&x->cell, out);
  sbx_lines_init(&x->lines, MAX_LINE, on_line, x);
  sbx_timer_init(&x->limit, session->config->loop, on_limit);
  sbx_timer_init(&x->drain, session->config->loop, on_drain);
  int rc = check(spec, &err);
  if (rc == SBX_OK)
    rc = begin_request(&x->request, spec, &err);
  if (rc == SBX_OK)
    begin(x, spec);
  else
    sbx_steps_finish(&x->steps, &err);
  return &x->steps.op;
}
