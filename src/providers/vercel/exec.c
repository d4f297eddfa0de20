/* exec.c - the cmd route as the runner's wire: a line is the argument of a shell.
 *
 * The route runs a program, and streams both of its outputs in JSON. That is text: what is no UTF-8
 * is lost, and so may be a letter that comes in two parts; a program in the background may hold the
 * answer open; and a kill reaches one process. So the runner's programs are what it runs. Their
 * report is ASCII, exact to the byte, and can be asked for once more when the stream breaks.
 *
 * Invariant: the line of a command is sent once, whatever comes of it. */
#include "core/err.h"
#include "providers/vercel/logs.h"
#include "providers/vercel/vercel.h"

#include <stdio.h>
#include <string.h>

enum {
  /* The kernel takes 128 KiB for one argument. */
  MAX_LINE = 120 * 1024,
  LONGEST_S = 24 * 60 * 60, /* no session lasts longer */
  KILLED = 128,             /* exit codes above it are signals' */
};

static void put_env(sbx_json_out *json, const sbx_exec_spec *spec) {
  sbx_json_put_name(json, sbx_slice_str("env"));
  sbx_json_begin_object(json);
  for (size_t i = 0; spec != NULL && i < spec->env_count; i++) {
    sbx_json_put_name(json, spec->env[i].name);
    sbx_json_put_string(json, spec->env[i].value);
  }
  sbx_json_end_object(json);
}

/* The program goes to the command's directory by itself. What ends a command is run by root: the
 * command may have started something by sudo. */
static void begin(sbx_session *session, sbx_buf *body, const sbx_runner_sending *how) {
  sbx_json_out json;
  sbx_json_out_init(&json, body);
  sbx_json_begin_object(&json);
  sbx_json_put_text(&json, "cwd", sbx_slice_str("/"));
  put_env(&json, how->spec);
  sbx_json_put_name(&json, sbx_slice_str("sudo"));
  sbx_json_put_bool(&json, how->kills && !session->no_sudo);
  sbx_buf_append_str(body, ",\"wait\":true,\"logs\":true");
  if (how->limit_s > 0 && how->limit_s <= LONGEST_S)
    sbx_buf_appendf(body, ",\"timeout\":%llu", (unsigned long long)how->limit_s * 1000);
  sbx_buf_append_str(body, ",\"command\":\"/bin/sh\",\"args\":[\"-c\",\"");
}

/* ---- the answer ----------------------------------------------------------------------------- */

static sbx_runner_op *op_of(sbx_steps *steps) {
  return (sbx_runner_op *)(void *)steps;
}

/* What the lines say; SBX_ENET when the command may have gone on behind them. */
static int read_logs(sbx__vercel_logs *logs, const sbx_http *reply, const char *verb,
                     sbx_err *err) {
  sbx_err why = {0};
  int rc = sbx__vercel_logs_feed(logs, sbx_buf_slice(&reply->body), &why);
  if (rc == SBX_OK)
    rc = sbx__vercel_logs_finish(logs, &why);
  if (rc == SBX_OK && logs->exit_code > KILLED)
    rc = sbx_err_set(&why, SBX_ENET, "what ran it in the sandbox was killed (exit code %lld)",
                     (long long)logs->exit_code);
  if (rc == SBX_OK || rc == SBX_ENOMEM)
    return rc == SBX_OK ? SBX_OK : sbx_err_set(err, rc, NULL);
  sbx_err_set(err, rc, "vercel: %s: %s", verb, why.message);
  err->provider = "vercel";
  err->status = reply->status;
  return rc;
}

static void on_reply(sbx_steps *steps, sbx_http *reply) {
  sbx__vercel_logs logs;
  sbx_runner_answer answer = {0};
  sbx_err err = {0};
  const char *verb = op_of(steps)->verb;
  bool arrived = reply->op.err.code == SBX_OK;
  sbx__vercel_logs_init(&logs, reply->body.len);
  int rc = sbx_remote_exchange_check(&err, &sbx__vercel_inside, reply, verb);
  bool began = rc == SBX_OK;
  if (began)
    rc = read_logs(&logs, reply, verb, &err);
  answer.printed = sbx_buf_slice(&logs.printed);
  answer.err = rc == SBX_OK ? NULL : &err;
  answer.started = arrived ? began || !err.no_effect : reply->sent_maybe;
  answer.broken = rc == SBX_ENET || (arrived && (reply->status >= 500 || began));
  answer.begun = sbx_remote_exchange_broke_off(reply) || (logs.id[0] != '\0' && !logs.ended);
  sbx_runner_answered(op_of(steps), &answer);
  sbx__vercel_logs_deinit(&logs);
}

/* The answer says the command line twice, at its beginning and at its end. */
static void send_line(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how) {
  sbx_buf_append_str(body, "\"]}");
  const sbx_http_request request = {
      .method = "POST",
      .take_body = body,
      .repeatable = !how->once,
      .timeout_ms = how->timeout_ms,
      .max_bytes = how->max_bytes + 4 * body->len,
  };
  sbx__vercel_to_session(&op->steps, "/cmd", &request, on_reply);
}

static void on_uploaded(sbx_steps *steps, sbx_http *reply) {
  sbx_err err = {0};
  sbx_remote_exchange_check(&err, &sbx__vercel_inside, reply, op_of(steps)->verb);
  sbx_runner_uploaded(op_of(steps), &err);
}

static void upload(sbx_runner_op *op, const char *path, sbx_slice bytes) {
  sbx__vercel_upload(&op->steps, sbx_slice_str(path), 0600, bytes, on_uploaded);
}

static const sbx_runner_wire wire = {
    .provider = "vercel",
    .begin = begin,
    .send = send_line,
    .upload = upload,
};

/* ---- verbs ---------------------------------------------------------------------------------- */

static sbx_runner *runner_of(sbx_session *session) {
  sbx_runner *runner = &session->runner;
  runner->wire = &wire;
  runner->loop = session->config->loop;
  runner->json = true;
  runner->max_line = MAX_LINE;
  return runner;
}

sbx_op *sbx__vercel_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                         sbx_exec_status *status, sbx_op_done done, void *arg) {
  return sbx_runner_exec_in(runner_of(session), session, spec, sbx__vercel_absolute, out, status,
                            done, arg);
}

sbx_op *sbx__vercel_list(sbx_session *session, size_t max_entries, sbx_listing *out,
                         sbx_op_done done, void *arg) {
  return sbx_runner_list(runner_of(session), session, sbx_slice_str(session->dir), max_entries, out,
                         done, arg);
}

sbx_op *sbx__vercel_at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                            sbx_op_done done, void *arg) {
  return sbx_runner_at_path(runner_of(session), session, request, sbx__vercel_absolute, out, done,
                            arg);
}

sbx_op *sbx__vercel_read(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                         void *arg) {
  return sbx_runner_get(runner_of(session), session, path, out, done, arg);
}

sbx_op *sbx__vercel_write(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                          void *arg) {
  return sbx_runner_put(runner_of(session), session, path, bytes, done, arg);
}

/* ---- kill ----------------------------------------------------------------------------------- */

/* A line of ours ends the whole tree, as root or, where that is refused, as the command's user.
 * When neither can be run, the service's own kill at least ends what runs the command. */
typedef struct kill_op {
  sbx_steps steps;
  char tag[SBX_RUNNER_TAG + 1];
  char command[SBX__VERCEL_ID_MAX + 1]; /* as the service calls it; empty: it has not said */
  sbx_err failure;
} kill_op;

static void on_signalled(sbx_steps *steps, sbx_http *reply) {
  const kill_op *k = (kill_op *)(void *)steps;
  bool taken = reply->op.err.code == SBX_OK && reply->status >= 200 && reply->status < 300;
  sbx_steps_finish(steps, taken ? NULL : &k->failure);
}

static void signal_it(kill_op *k) {
  char rest[SBX__VERCEL_ID_MAX + 16];
  sbx_buf body;
  snprintf(rest, sizeof rest, "/cmd/%s/kill", k->command);
  sbx_buf_init(&body, 32);
  sbx_buf_append_str(&body, "{\"signal\":9}");
  sbx__vercel_to_session(&k->steps, rest, &(sbx_http_request){.method = "POST", .take_body = &body},
                         on_signalled);
}

static void end_tree(kill_op *k);

static void on_tree_ended(sbx_op *op, void *arg) {
  kill_op *k = arg;
  bool refused =
      op->err.code == SBX_EINVAL || op->err.code == SBX_EFORBIDDEN || op->err.code == SBX_EPROTO;
  k->steps.request = NULL;
  k->failure = op->err;
  if (refused && !k->steps.session->no_sudo) {
    k->steps.session->no_sudo = true;
    end_tree(k);
  } else if (op->err.code != SBX_OK && op->err.code != SBX_EPROVIDER && k->command[0] != '\0') {
    signal_it(k);
  } else {
    sbx_steps_finish(&k->steps, &k->failure);
  }
}

static void end_tree(kill_op *k) {
  sbx_session *session = k->steps.session;
  sbx_steps_wait_for(&k->steps,
                     sbx_runner_stop(runner_of(session), session, k->tag, on_tree_ended, k));
}

/* The beginning of the answer, which has come. */
static void find_command(kill_op *k, const sbx_runner_op *exec) {
  sbx__vercel_logs logs;
  sbx_err ignored;
  if (exec->steps.request == NULL)
    return;
  const sbx_buf *body = &sbx_http_of(exec->steps.request)->body;
  sbx__vercel_logs_init(&logs, body->len);
  sbx__vercel_logs_feed(&logs, sbx_buf_slice(body), &ignored);
  memcpy(k->command, logs.id, sizeof k->command);
  sbx__vercel_logs_deinit(&logs);
}

sbx_op *sbx__vercel_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg) {
  const sbx_runner_op *running = (const sbx_runner_op *)(const void *)exec;
  kill_op *k = sbx_steps_new(sizeof *k, session, session->config->loop, done, arg);
  if (k == NULL)
    return NULL;
  memcpy(k->tag, running->tag, sizeof k->tag);
  find_command(k, running);
  end_tree(k);
  return &k->steps.op;
}
