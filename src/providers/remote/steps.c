/* steps.c - operations that are made of several requests.
 *
 * Invariant: at any time an operation waits for one request or for one pause, so that whoever ends
 * it has one thing to end. */
#include "providers/remote/steps.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/rand.h"

static sbx_steps *steps_of(sbx_op *op) {
  return (sbx_steps *)(void *)op;
}

static void abort_steps(sbx_op *op, int reason) {
  sbx_steps *steps = steps_of(op);
  if (steps->ending != NULL)
    steps->ending(steps, reason);
  sbx_op_drop(&steps->request, reason);
  sbx_steps_finish_code(steps, reason);
}

static void destroy_steps(sbx_op *op) {
  sbx_steps *steps = steps_of(op);
  if (steps->release != NULL)
    steps->release(steps);
  sbx_free(steps);
}

static const sbx_op_class steps_class = {"remote", abort_steps, destroy_steps};

static void on_pause(sbx_timer *timer) {
  sbx_steps *steps = (sbx_steps *)(void *)((char *)timer - offsetof(sbx_steps, pause));
  steps->on_time(steps);
}

void *sbx_steps_new(size_t size, sbx_session *session, sbx_loop *loop, sbx_op_done done,
                    void *arg) {
  sbx_steps *steps = sbx_calloc(1, size);
  if (steps == NULL)
    return NULL;
  steps->session = session;
  sbx_timer_init(&steps->pause, loop, on_pause);
  sbx_op_init(&steps->op, &steps_class, loop, done, arg);
  return steps;
}

static void on_done(sbx_op *op, void *arg) {
  sbx_steps *steps = arg;
  steps->request = NULL;
  steps->on_reply(steps, sbx_http_of(op));
}

void sbx_steps_send(sbx_steps *steps, sbx_http_client *client, const sbx_http_request *request,
                    sbx_steps_reply on_reply) {
  if (steps->op.finished)
    return;
  steps->on_reply = on_reply;
  steps->request = sbx_http_start(client, steps->op.loop, request, on_done, steps);
  if (steps->request == NULL)
    sbx_steps_finish_code(steps, SBX_ENOMEM);
}

void sbx_steps_wait(sbx_steps *steps, uint64_t ms, sbx_steps_time on_time) {
  if (steps->op.finished)
    return;
  steps->on_time = on_time;
  sbx_timer_start(&steps->pause, ms);
}

void sbx_steps_wait_for(sbx_steps *steps, sbx_op *child) {
  steps->request = child;
  if (child == NULL)
    sbx_steps_finish_code(steps, SBX_ENOMEM);
}

const sbx_repeat_rule sbx_repeat_delete = {
    .first_pause_ms = 150, .most_pause_ms = 2000, .most = 4, .conflicts = true};

uint64_t sbx_repeat_pause(sbx_repeat *repeat, const sbx_repeat_rule *rule) {
  uint64_t pause = repeat->pause_ms > 0 ? repeat->pause_ms : rule->first_pause_ms;
  repeat->pause_ms = pause * 2 < rule->most_pause_ms ? pause * 2 : rule->most_pause_ms;
  return pause;
}

static bool may_pass(const sbx_repeat *repeat, const sbx_repeat_rule *rule, int code) {
  if (code == SBX_ECONFLICT)
    return rule->conflicts;
  return (code == SBX_ENET || code == SBX_ERATE || code == SBX_EPROVIDER ||
          (code == SBX_ETIMEOUT && rule->timeouts)) &&
         repeat->failures < rule->most;
}

/* What the error asks for, and a little more, since others were told the same moment. */
static uint64_t asked_pause(const sbx_err *err) {
  uint64_t ms = err->retry_after_ms;
  return ms < UINT32_MAX ? ms + sbx_random_upto(ms / 4) : ms;
}

static bool is_in_time(const sbx_steps *steps, uint64_t pause_ms) {
  const sbx_timer *deadline = &steps->op.deadline;
  uint64_t now = sbx_now_ms();
  return !deadline->armed || (now < deadline->due_ms && pause_ms < deadline->due_ms - now);
}

bool sbx_steps_repeat(sbx_steps *steps, sbx_repeat *repeat, const sbx_repeat_rule *rule,
                      const sbx_err *err, sbx_steps_time on_time) {
  uint64_t pause = sbx_repeat_pause(repeat, rule);
  uint64_t asked = asked_pause(err);
  if (pause < asked)
    pause = asked;
  if (!may_pass(repeat, rule, err->code) || !is_in_time(steps, pause))
    return false;
  if (err->code != SBX_ECONFLICT)
    repeat->failures++;
  sbx_steps_wait(steps, pause, on_time);
  return true;
}

void sbx_steps_finish(sbx_steps *steps, const sbx_err *err) {
  if (steps->let_go != NULL && !steps->op.finished)
    steps->let_go(steps);
  sbx_timer_stop(&steps->pause);
  sbx_op_drop(&steps->request, SBX_ECANCELED); /* what runs beside it may have ended it */
  sbx_op_finish(&steps->op, err != NULL && err->code != SBX_OK ? err : NULL);
}

void sbx_steps_finish_code(sbx_steps *steps, int code) {
  sbx_err err = {0};
  if (code != SBX_OK)
    sbx_err_set(&err, code, NULL);
  sbx_steps_finish(steps, &err);
}
