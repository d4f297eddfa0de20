/* kill.c - ends a process tree.
 *
 * Two requests at once: the process service's own signal, which reaches the one process that it
 * knows and lets it close the streams, and a second command that kills everything that is marked.
 * That one runs as root: what a command has started by sudo is root's.
 *
 * Invariant: success means that nothing marked was left when it was looked for. */
#include "providers/e2b/e2b.h"

#include "core/err.h"

enum {
  KILLER_LIMIT_MS = 4000,
  KILLER_DEADLINE_MS = 5000, /* also when the service does not keep the limit */
  AGAIN_MS = 300,
  MAX_BODY = 256
};

static void on_signal_reply(sbx_steps *steps, sbx_http *reply) {
  (void)reply; /* the process may have ended meanwhile */
  sbx_steps_finish(steps, NULL);
}

/* Nobody waits for the answer. */
static void send_signal(sbx_session *session, int64_t pid) {
  sbx_buf body;
  sbx_steps *steps = sbx_steps_new(sizeof *steps, session, session->config->loop, NULL, NULL);
  if (steps == NULL)
    return;
  sbx_buf_init(&body, MAX_BODY);
  sbx_buf_appendf(&body, "{\"process\":{\"pid\":%lld},\"signal\":\"SIGNAL_SIGKILL\"}",
                  (long long)pid);
  sbx__e2b_request request = {.http.method = "POST",
                              .path = sbx_slice_str("/process.Process/SendSignal"),
                              .content_type = "application/json",
                              .http.take_body = &body,
                              .http.repeatable = true,
                              .http.timeout_ms = KILLER_LIMIT_MS,
                              .rpc = true};
  sbx__e2b_to_sandbox(steps, &request, on_signal_reply);
  sbx_buf_deinit(&body);
}

static void on_killer_done(sbx_op *op, void *arg) {
  sbx_steps *steps = arg;
  const sbx__e2b_end *end = sbx__e2b_process_end(op);
  sbx_err err;
  steps->request = NULL;
  if (op->err.code != SBX_OK) {
    sbx_steps_finish(steps, &op->err);
  } else if (end->exited && end->exit_code == 0) {
    sbx_steps_finish(steps, NULL);
  } else {
    sbx_err_set(&err, SBX_EPROVIDER, "e2b: kill: some processes of the command could not be ended");
    sbx_steps_finish(steps, &err);
  }
}

sbx_op *sbx__e2b_kill_tree(sbx_session *session, const char *token, int64_t pid, sbx_op_done done,
                           void *arg) {
  sbx_buf request;
  sbx_op *process = NULL;
  sbx_steps *steps = sbx_steps_new(sizeof *steps, session, session->config->loop, done, arg);
  if (steps == NULL)
    return NULL;
  if (sbx__e2b_command_killer(&request, token) == SBX_OK) {
    sbx__e2b_process_spec spec = {
        .request = &request, .as_root = true, .limit_ms = KILLER_LIMIT_MS};
    process = sbx__e2b_process(session, &spec, on_killer_done, steps);
  }
  if (process != NULL)
    sbx_op_set_deadline(process, KILLER_DEADLINE_MS);
  sbx_buf_deinit(&request);
  if (pid > 0)
    send_signal(session, pid);
  sbx_steps_wait_for(steps, process);
  return &steps->op;
}

/* ---- the kill of an exec -------------------------------------------------------------------- */

typedef struct kill_op {
  sbx_steps steps;
  sbx_op *exec; /* NULL when it has ended */
  int64_t pid;
} kill_op;

static void release_kill(sbx_steps *steps) {
  kill_op *k = (kill_op *)(void *)steps;
  if (k->exec != NULL)
    sbx__e2b_exec_end_kill(k->exec);
}

static void kill_now(sbx_steps *steps);

static void on_tree_killed(sbx_op *op, void *arg) {
  kill_op *k = arg;
  k->steps.request = NULL;
  if (op->err.code != SBX_OK) {
    sbx_steps_finish(&k->steps, &op->err);
  } else if (k->exec != NULL && k->pid == 0) {
    /* It was asked to start, and may do so only now. */
    sbx_steps_wait(&k->steps, AGAIN_MS, kill_now);
  } else {
    if (k->exec != NULL)
      sbx__e2b_exec_tree_gone(k->exec);
    sbx_steps_finish(&k->steps, NULL);
  }
}

static void kill_now(sbx_steps *steps) {
  kill_op *k = (kill_op *)(void *)steps;
  if (k->exec == NULL) {
    sbx_steps_finish(steps, NULL);
    return;
  }
  const char *token = sbx__e2b_exec_begin_kill(k->exec, &k->exec, &k->pid);
  sbx_steps_wait_for(&k->steps,
                     sbx__e2b_kill_tree(k->steps.session, token, k->pid, on_tree_killed, k));
}

sbx_op *sbx__e2b_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg) {
  kill_op *k = sbx_steps_new(sizeof *k, session, session->config->loop, done, arg);
  if (k == NULL)
    return NULL;
  k->exec = exec;
  k->steps.release = release_kill;
  kill_now(&k->steps);
  return &k->steps.op;
}
