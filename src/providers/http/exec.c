/* exec.c - the service's exec as the runner's wire.
 *
 * A service runs an argv and answers once, when it is over, with text: bytes that are no UTF-8 are
 * lost, nothing is streamed, and there is no way to end what runs. So what it runs are the runner's
 * programs, one line each, by a shell. The variables go by its own member. Input and large texts go
 * in lines, since a service need not store files outside of the working directory. */
#include "core/err.h"
#include "providers/http/service.h"

/* The kernel takes 128 KiB as one argument. */
#define MAX_LINE ((size_t)120 * 1024)

static void begin(sbx_session *session, sbx_buf *body, const sbx_runner_sending *how) {
  sbx__hs_begin(session, body, how->spec, how->limit_s);
}

/* Not even the shell ran: `exit_code` says so, as shells do. */
static bool has_no_shell(const sbx_json *answer, sbx_slice printed) {
  int64_t exit_code;
  return printed.len == 0 && sbx_json_int(sbx_json_get(answer, "exit_code"), 126, 127, &exit_code);
}

static int read_answer(const sbx_json *answer, const char *verb, sbx_runner_answer *out,
                       sbx_err *err) {
  sbx_slice why = {NULL, 0};
  sbx_json_string(sbx_json_get(answer, "stdout"), &out->printed);
  sbx_json_bool(sbx_json_get(answer, "timed_out"), &out->late);
  if (out->late)
    return sbx_err_set(err, SBX_ETIMEOUT, "http: %s: the service has ended it at its limit", verb);
  if (!has_no_shell(answer, out->printed))
    return SBX_OK;
  sbx_json_string(sbx_json_get(answer, "stderr"), &why);
  sbx_err_set(err, SBX_EPROVIDER, "http: %s: the sandbox has no /bin/sh that runs: ", verb);
  sbx_err_append_remote(err, why);
  err->no_effect = true;
  return err->code;
}

static void on_reply(sbx_steps *steps, sbx_http *reply) {
  sbx_runner_op *op = (sbx_runner_op *)(void *)steps;
  sbx_json_doc *doc = NULL;
  sbx_runner_answer answer = {0};
  sbx_err err = {0};
  bool arrived = reply->op.err.code == SBX_OK;
  int rc = sbx__hs_json(&doc, reply, op->verb, SBX__HS_SESSION, &err);
  if (rc == SBX_OK)
    rc = read_answer(sbx_json_root(doc), op->verb, &answer, &err);
  answer.err = rc == SBX_OK ? NULL : &err;
  answer.started = arrived ? rc == SBX_OK || !err.no_effect : reply->sent_maybe;
  answer.broken = arrived ? reply->status >= 500 : reply->op.err.code == SBX_ENET;
  sbx_runner_answered(op, &answer);
  sbx_json_free(doc, false);
}

static void send_line(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how) {
  sbx_buf_append_str(body, "\"]}");
  sbx__hs_send(&op->steps, body,
               &(sbx_http_request){.repeatable = !how->once,
                                   .timeout_ms = how->timeout_ms,
                                   .max_bytes = how->max_bytes},
               on_reply);
}

static const sbx_runner_wire wire = {.provider = "http", .begin = begin, .send = send_line};

/* ---- verbs ---------------------------------------------------------------------------------- */

static sbx_runner *runner_of(sbx_session *session) {
  sbx_runner *runner = &session->runner;
  runner->wire = &wire;
  runner->loop = session->config->loop;
  runner->json = true;
  runner->max_line = MAX_LINE;
  return runner;
}

sbx_op *sbx__hs_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                     sbx_exec_status *status, sbx_op_done done, void *arg) {
  return sbx_runner_exec_in(runner_of(session), session, spec, sbx__hs_absolute, out, status, done,
                            arg);
}

sbx_op *sbx__hs_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg) {
  return sbx_runner_kill(runner_of(session), session, exec, done, arg);
}

sbx_op *sbx__hs_list(sbx_session *session, size_t max_entries, sbx_listing *out, sbx_op_done done,
                     void *arg) {
  return sbx_runner_list(runner_of(session), session, sbx_slice_str(session->dir), max_entries, out,
                         done, arg);
}

sbx_op *sbx__hs_at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                        sbx_op_done done, void *arg) {
  return sbx_runner_at_path(runner_of(session), session, request, sbx__hs_absolute, out, done, arg);
}

sbx_op *sbx__hs_read(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                     void *arg) {
  return sbx_runner_get(runner_of(session), session, path, out, done, arg);
}

sbx_op *sbx__hs_write(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                      void *arg) {
  return sbx_runner_put(runner_of(session), session, path, bytes, done, arg);
}
