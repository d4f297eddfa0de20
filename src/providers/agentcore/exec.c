/* exec.c - executeCommand as the runner's wire: a line is the command.
 *
 * The tool has no limit, no directory, no variables and no input, knows no kill, and gives text:
 * what is no UTF-8 is lost. So the runner's programs are what it runs. They keep the limit in the
 * sandbox, and their report is ASCII, exact to the byte.
 *
 * Invariant: the line of a command is sent once, unless its signature was refused. */
#include "core/alloc.h"
#include "core/err.h"
#include "providers/agentcore/agentcore.h"
#include "providers/agentcore/result.h"

#include <string.h>

/* The kernel takes 128 KiB for one argument. */
#define MAX_LINE ((size_t)120 * 1024)

static void begin(sbx_session *session, sbx_buf *body, const sbx_runner_sending *how) {
  (void)session;
  (void)how;
  sbx__ac_begin_line(body);
}

static sbx_runner_op *op_of(sbx_steps *steps) {
  return (sbx_runner_op *)(void *)steps;
}

static int read_result(sbx__ac_result *result, const sbx_http *reply, const char *verb,
                       sbx_err *err) {
  sbx_err why = {0};
  int rc = sbx__ac_result_read(result, sbx_buf_slice(&reply->body), &why);
  if (rc == SBX_OK || rc == SBX_ENOMEM)
    return rc == SBX_OK ? SBX_OK : sbx_err_set(err, rc, NULL);
  sbx_err_set(err, rc, "agentcore: %s: %s", verb, why.message);
  err->provider = "agentcore";
  err->status = reply->status;
  err->no_effect = result->refused;
  return rc;
}

/* An exception in place of a result is a refusal like one by a status. */
static void on_reply(sbx_steps *steps, sbx_http *reply) {
  sbx__ac_result result;
  sbx_runner_answer answer = {0};
  sbx_err err = {0};
  const char *verb = op_of(steps)->verb;
  bool arrived = reply->op.err.code == SBX_OK;
  sbx__ac_result_init(&result);
  int rc = sbx__ac_check_inside(&err, reply, verb);
  bool began = rc == SBX_OK;
  if (began)
    rc = read_result(&result, reply, verb, &err);
  answer.printed = sbx_buf_slice(&result.printed);
  answer.err = rc == SBX_OK ? NULL : &err;
  answer.started = arrived ? !err.no_effect : reply->sent_maybe;
  answer.broken = rc == SBX_ENET || (arrived && reply->status >= 500) ||
                  (began && rc != SBX_OK && !result.refused);
  answer.begun = sbx_remote_exchange_broke_off(reply);
  sbx_runner_answered(op_of(steps), &answer);
  sbx__ac_result_deinit(&result);
}

/* What was printed comes twice: as an output, and as a text that shows it. */
static void send_line(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how) {
  sbx_buf_append_str(body, SBX__AC_END_LINE);
  const sbx_http_request request = {
      .take_body = body,
      .repeatable = !how->once,
      .timeout_ms = how->timeout_ms,
      .max_bytes = 2 * how->max_bytes + SBX_HTTP_REPLY_MAX + 2 * body->len,
  };
  sbx__ac_invoke(&op->steps, &request, on_reply);
}

static const sbx_runner_wire wire = {.provider = "agentcore", .begin = begin, .send = send_line};

/* ---- verbs ---------------------------------------------------------------------------------- */

static sbx_runner *runner_of(sbx_session *session) {
  sbx_runner *runner = &session->runner;
  runner->wire = &wire;
  runner->loop = session->config->loop;
  runner->json = true;
  runner->env = true;
  runner->max_line = MAX_LINE;
  return runner;
}

/* A session has no variables: those of the options go with each command, before its own. */
sbx_op *sbx__ac_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                     sbx_exec_status *status, sbx_op_done done, void *arg) {
  const sbx_config *config = session->config;
  sbx_exec_spec with = *spec;
  sbx_env_var *env = NULL;
  if (config->env_count > 0) {
    env = sbx_calloc(config->env_count + spec->env_count, sizeof *env);
    if (env == NULL)
      return NULL;
    memcpy(env, config->env, config->env_count * sizeof *env);
    if (spec->env_count > 0)
      memcpy(env + config->env_count, spec->env, spec->env_count * sizeof *env);
    with.env = env;
    with.env_count += config->env_count;
  }
  sbx_op *op = sbx_runner_exec_in(runner_of(session), session, &with, sbx__ac_absolute, out, status,
                                  done, arg);
  sbx_free(env);
  return op;
}

sbx_op *sbx__ac_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg) {
  return sbx_runner_kill(runner_of(session), session, exec, done, arg);
}

sbx_op *sbx__ac_at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                        sbx_op_done done, void *arg) {
  return sbx_runner_at_path(runner_of(session), session, request, sbx__ac_absolute, out, done, arg);
}

sbx_op *sbx__ac_list(sbx_session *session, size_t max_entries, sbx_listing *out, sbx_op_done done,
                     void *arg) {
  return sbx_runner_list(runner_of(session), session, sbx_slice_str(session->dir), max_entries, out,
                         done, arg);
}

sbx_op *sbx__ac_read(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                     void *arg) {
  return sbx_runner_get(runner_of(session), session, path, out, done, arg);
}

sbx_op *sbx__ac_write(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                      void *arg) {
  return sbx_runner_put(runner_of(session), session, path, bytes, done, arg);
}
