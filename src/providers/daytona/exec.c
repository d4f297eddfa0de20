/* exec.c - the toolbox as the runner's wire: a line is the "command" of process/execute.
 *
 * The toolbox feeds a line to some shell and gives back what that prints, but nothing of it when
 * its limit passes; both outputs are mixed, bytes that are no UTF-8 are lost, and a command that
 * reads its input eats the rest of the line. So the runner's programs are what it runs. Old daemons
 * split the line into words by themselves, and take it as one argument. */
#include "providers/daytona/daytona.h"
#include "providers/remote/files.h"

#include "core/enc.h"
#include "core/err.h"

/* Old daemons pass the line as one argument, which has its limit, and in base64. */
#define MAX_OLD_LINE ((size_t)80 * 1024)

/* {"timeout": ..., "cwd": ..., "envs": ..., "command": "LINE"}. The program goes to the command's
 * directory by itself: the toolbox does not say well that there is none, and what the shell reads
 * at its start may move it. */
static void begin(sbx_session *session, sbx_buf *body, const sbx_runner_sending *how) {
  const sbx_exec_spec *spec = how->spec;
  sbx_json_out json;
  sbx_json_out_init(&json, body);
  sbx_json_begin_object(&json);
  if (how->limit_s > 0 && how->limit_s <= UINT32_MAX) {
    sbx_json_put_name(&json, sbx_slice_str("timeout"));
    sbx_json_put_int(&json, (int64_t)how->limit_s);
  }
  if (session->dir != NULL) {
    sbx_json_put_name(&json, sbx_slice_str("cwd"));
    sbx_json_put_string(&json, sbx_slice_str("/"));
  }
  if (spec != NULL && spec->env_count > 0 && !session->old_env) {
    sbx_json_put_name(&json, sbx_slice_str("envs"));
    sbx_json_begin_object(&json);
    for (size_t i = 0; i < spec->env_count; i++) {
      sbx_json_put_name(&json, spec->env[i].name);
      sbx_json_put_string(&json, spec->env[i].value);
    }
    sbx_json_end_object(&json);
  }
  sbx_json_put_name(&json, sbx_slice_str("command"));
  sbx_buf_append_char(body, '"');
}

/* For daemons that split the line into words by themselves: quotes, but no shell. */
static void wrap_for_old_shell(sbx_buf *body, size_t line_at) {
  sbx_buf whole = *body;
  sbx_slice line = sbx_slice_skip(sbx_buf_slice(&whole), line_at);
  sbx_buf_init(body, whole.max);
  sbx_buf_append(body, whole.ptr, whole.len - line.len);
  sbx_buf_append_str(body, "sh -c \\\"echo '");
  sbx_base64_encode(body, line);
  sbx_buf_append_str(body, "' | base64 -d | sh\\\"");
  if (whole.error != SBX_OK)
    body->error = whole.error;
  sbx_buf_deinit(&whole);
}

/* ---- the answer ----------------------------------------------------------------------------- */

/* There is no report, and the text that came in its place says why: the process of the shell could
 * not be started. */
static bool explain(sbx_slice printed, sbx_err *err) {
  if (!sbx_slice_starts_with(printed, sbx_slice_str("exec: ")) &&
      !sbx_slice_starts_with(printed, sbx_slice_str("fork/exec ")))
    return true;
  if (sbx_remote_exchange_says(printed, "argument list too long")) {
    sbx_err_set(err, SBX_ETOOBIG,
                "daytona: the variables of the command are too large; pass long text through stdin "
                "or a file");
    return false;
  }
  sbx_err_set(err, SBX_EPROVIDER, "daytona: the sandbox has no shell that runs: ");
  sbx_err_append_remote(err, printed);
  return false;
}

static sbx_runner_op *op_of(sbx_steps *steps) {
  return (sbx_runner_op *)(void *)steps;
}

static void on_reply(sbx_steps *steps, sbx_http *reply) {
  sbx_json_doc *doc = NULL;
  sbx_runner_answer answer = {0};
  sbx_err err = {0};
  const char *verb = op_of(steps)->verb;
  bool arrived = reply->op.err.code == SBX_OK;
  int rc = sbx_remote_exchange_json(&doc, &sbx__daytona_toolbox, reply, verb, &err);
  if (rc == SBX_OK &&
      !sbx_json_string(sbx_json_get(sbx_json_root(doc), "result"), &answer.printed)) {
    rc = sbx_err_set(&err, SBX_EPROTO, "daytona: %s: unexpected answer", verb);
    err.status = reply->status;
  }
  answer.err = rc == SBX_OK ? NULL : &err;
  answer.started = arrived ? rc == SBX_OK || !err.no_effect : reply->sent_maybe;
  answer.late = arrived && reply->status == 408;
  answer.broken = arrived ? reply->status >= 500 : reply->op.err.code == SBX_ENET;
  sbx_runner_answered(op_of(steps), &answer);
  sbx_json_free(doc, false);
}

static void send_line(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how) {
  const sbx_http_request request = {
      .method = "POST",
      .take_body = body,
      .repeatable = !how->once,
      .timeout_ms = how->timeout_ms,
      .max_bytes = how->max_bytes,
  };
  if (op->steps.session->old_shell)
    wrap_for_old_shell(body, op->line_at);
  sbx_buf_append_str(body, "\"}");
  sbx__daytona_to_tool(&op->steps, "/process/execute", sbx_slice_of(NULL, 0), &request, on_reply);
}

static void on_uploaded(sbx_steps *steps, sbx_http *reply) {
  sbx_err err = {0};
  sbx__daytona_check_tool(&err, reply, op_of(steps)->verb);
  sbx_runner_uploaded(op_of(steps), &err);
}

static void upload(sbx_runner_op *op, const char *path, sbx_slice bytes) {
  const sbx_http_part part = sbx_remote_files_part("file", bytes);
  sbx__daytona_upload(&op->steps, "/files/upload", sbx_slice_str(path), &part, 1, on_uploaded);
}

static const sbx_runner_wire toolbox = {
    .provider = "daytona",
    .begin = begin,
    .send = send_line,
    .explain = explain,
    .upload = upload,
};

/* ---- verbs ----------------------------------------------------------------------------------- */

static sbx_runner *runner_of(sbx_session *session) {
  sbx_runner *runner = &session->runner;
  runner->wire = &toolbox;
  runner->loop = session->config->loop;
  runner->json = !session->old_shell;
  runner->env = session->old_env;
  runner->max_line = session->old_shell ? MAX_OLD_LINE : 0;
  return runner;
}

sbx_op *sbx__daytona_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                          sbx_exec_status *status, sbx_op_done done, void *arg) {
  return sbx_runner_exec_in(runner_of(session), session, spec, sbx__daytona_absolute, out, status,
                            done, arg);
}

sbx_op *sbx__daytona_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg) {
  return sbx_runner_kill(runner_of(session), session, exec, done, arg);
}

/* The toolbox's own listing is one folder deep, in old versions; find is everywhere. */
sbx_op *sbx__daytona_list(sbx_session *session, size_t max_entries, sbx_listing *out,
                          sbx_op_done done, void *arg) {
  sbx_slice dir = session->dir != NULL ? sbx_slice_str(session->dir) : sbx_slice_of(NULL, 0);
  return sbx_runner_list(runner_of(session), session, dir, max_entries, out, done, arg);
}

sbx_op *sbx__daytona_at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                             sbx_op_done done, void *arg) {
  return sbx_runner_at_path(runner_of(session), session, request, sbx__daytona_absolute, out, done,
                            arg);
}

sbx_op *sbx__daytona_read(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                          void *arg) {
  return sbx_runner_get(runner_of(session), session, path, out, done, arg);
}
