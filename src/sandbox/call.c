/* call.c - the base of every call: waiting for the start, cancel, probe, finish.
 *
 * Invariant: a call that runs has an op of the provider in flight, so each step comes from the end
 * of one; its callback comes once, through sbx__call_finish(). */
#include "sandbox/call.h"

#include "core/alloc.h"

static sbx_call *call_of(sbx_op *op) {
  return (sbx_call *)(void *)((char *)op - offsetof(sbx_call, op));
}

/* ---- finish ---- */

static const char *effects_of(const sbx_call *call) {
  return call->kind->effects != NULL ? call->kind->effects(call) : NULL;
}

static void say_shut(const sbx_call *call, sbx_err *err) {
  bool ran = call->state == SBX__CALL_RUNS;
  const char *effects = ran ? effects_of(call) : "nothing was run";
  sbx_err_set(err, SBX_ECLOSED, "the sandbox was closed %s",
              ran ? "while this call ran" : "before this call could begin");
  if (effects != NULL)
    sbx_err_append(err, "; %s", effects);
  sbx_err_append(err, "; to let calls end, wait for them before close(), or give it a longer "
                      "graceSeconds");
}

/* Whatever a service wrote, and wherever it was taken into a message. */
static void hide_secrets(const sbx__places *places, sbx_err *err) {
  if (places->provider->hide == NULL)
    return;
  places->provider->hide(places->config, NULL, err);
  for (const sbx__place *place = places->first; place != NULL; place = place->next)
    places->provider->hide(places->config, place->session, err);
}

void sbx__call_finish(sbx_call *call, const sbx_err *err) {
  sbx_err final;
  if (call->op.finished)
    return;
  if (call->state == SBX__CALL_CLOSES)
    call->sb->closers--;
  sbx_err_clear(&final);
  if (call->torn_down)
    sbx_err_set(
        &final, SBX_ECLOSED,
        "the sandbox object was freed, or its event loop ended, before this call had ended");
  else if (err != NULL)
    sbx_err_copy(&final, err);
  if (call->shut && final.code == SBX_ECANCELED)
    say_shut(call, &final);
  if (final.code == SBX_OK) {
    sbx_op_finish(&call->op, NULL);
    return;
  }
  if (final.provider == NULL)
    final.provider = call->sb->provider->id;
  final.may_have_run = call->may_have_run;
  hide_secrets(&call->sb->places, &final);
  sbx_op_finish(&call->op, &final);
}

void sbx__call_finish_nomem(sbx_call *call) {
  sbx_err err;
  sbx_err_set(&err, SBX_ENOMEM, "out of memory; nothing was sent");
  sbx__call_finish(call, &err);
}

static void on_done(sbx_op *op, void *arg) {
  sbx_call *call = arg;
  sbx_sandbox *sb = call->sb;
  call->kind->report(call, op->err.code != SBX_OK ? &op->err : NULL);
  if (call->prev != NULL)
    call->prev->next = call->next;
  else
    sb->first_call = call->next;
  if (call->next != NULL)
    call->next->prev = call->prev;
  else
    sb->last_call = call->prev;
  if (call->state != SBX__CALL_CLOSES)
    sb->active--;
  if (call->place != NULL)
    sbx__place_leave(call->place);
  sb->step(sb);
}

/* ---- cancel, deadline, the loop's end ---- */

static void abort_call(sbx_op *op, int reason) {
  sbx_call *call = call_of(op);
  if (reason == SBX_ECLOSED)
    call->torn_down = true;
  if (reason == SBX_ETIMEOUT)
    call->limit_passed = true;
  if (call->state == SBX__CALL_RUNS) {
    if (call->probe != NULL)
      sbx_op_abort(call->probe, reason);
    else
      call->kind->stop(call, reason);
    return;
  }
  sbx_err err;
  sbx_err_set(&err, reason, "cancelled before the sandbox had started; nothing was run");
  sbx__call_finish(call, &err);
}

void sbx_call_cancel(sbx_call *call) {
  call->cancelled = true;
  sbx_op_abort(&call->op, SBX_ECANCELED);
}

char *sbx_call_take_bytes(sbx_call *call) {
  size_t len;
  return call->data != NULL ? sbx_buf_take(call->data, &len) : NULL;
}

void sbx_bytes_free(char *bytes) {
  sbx_free(bytes);
}

/* What a start makes has to be deleted: whoever waits for the start only is not shut. */
void sbx__call_shut(sbx_call *call) {
  if (call->op.finished || call->cancelled || call->kind->stop == NULL)
    return;
  call->shut = true;
  sbx_op_abort(&call->op, SBX_ECANCELED);
}

static void destroy_call(sbx_op *op) {
  sbx_call *call = call_of(op);
  if (call->kind->release != NULL)
    call->kind->release(call);
  sbx_free(call);
}

static const sbx_op_class call_class = {"call", abort_call, destroy_call};

/* ---- begin ---- */

int sbx__sandbox_check(const sbx_sandbox *sb, sbx_err *err) {
  if (sb->closed || sbx_loop_is_closing(sb->loop))
    sbx_err_set(err, SBX_ECLOSED, "the sandbox is closed; make a new sandbox object to go on");
  else if (sb->places.lost)
    sbx_err_set(err, SBX_ELOST,
                "the sandbox is gone, and its files and processes with it; make a new sandbox "
                "object to go on");
  else
    return SBX_OK;
  if (err != NULL)
    err->provider = sb->provider->id;
  return sb->closed || sbx_loop_is_closing(sb->loop) ? SBX_ECLOSED : SBX_ELOST;
}

void sbx__call_init(sbx_call *call, sbx_sandbox *sb, const sbx__call_kind *kind, void *arg) {
  call->kind = kind;
  call->sb = sb;
  call->arg = arg;
  call->state = SBX__CALL_WAITS_FOR_START;
  call->prev = sb->last_call;
  if (call->prev != NULL)
    call->prev->next = call;
  else
    sb->first_call = call;
  sb->last_call = call;
  sbx_op_init(&call->op, &call_class, sb->loop, on_done, call);
}

static void refuse_paused(sbx_call *call) {
  sbx_err err;
  sbx_err_set(&err, SBX_ECONFLICT,
              "the sandbox is being paused, and nothing was sent; call resume() first");
  sbx__call_finish(call, &err);
}

static void run(sbx_call *call) {
  sbx__place *place = call->sb->places.current;
  if (place->pausing) {
    refuse_paused(call);
    return;
  }
  call->state = SBX__CALL_RUNS;
  call->place = place;
  place->uses++;
  call->reopens = place->reopens;
  call->pauses = place->pauses;
  call->kind->run(call);
}

/* Calls wait for it; one that is opening already is joined. */
static void open_place(sbx_sandbox *sb) {
  if (sb->places.current == NULL)
    sbx__place_open(&sb->places);
  else if (sb->places.current->state == SBX__PLACE_HALTED)
    sbx__place_reopen(sb->places.current);
}

void sbx__call_begin(sbx_call *call) {
  sbx_sandbox *sb = call->sb;
  sb->active++;
  if (sbx__places_are_open(&sb->places))
    run(call);
  else
    open_place(sb);
}

void sbx__calls_started(sbx_sandbox *sb, const sbx_err *err) {
  for (sbx_call *call = sb->first_call; call != NULL; call = call->next) {
    if (call->state != SBX__CALL_WAITS_FOR_START || call->op.finished)
      continue;
    if (err == NULL)
      run(call);
    else
      sbx__call_finish(call, err);
  }
}

void sbx__calls_gone(sbx_sandbox *sb, const sbx__place *place) {
  for (sbx_call *call = sb->first_call; call != NULL; call = call->next) {
    if (call->place == place && call->child != NULL)
      sbx_op_abort(call->child, SBX_ECANCELED);
  }
}

/* ---- lost, or only slow? ---- */

static void finish_lost(sbx_call *call) {
  sbx_sandbox *sb = call->sb;
  sbx_err err;
  sbx__place_is_gone(call->place);
  const char *effects = effects_of(call);
  sbx_err_set(&err, SBX_ELOST, "the sandbox is gone, and its files and processes with it; ");
  if (effects != NULL)
    sbx_err_append(&err, "%s; ", effects);
  sbx_err_append(&err, sb->places.lost || sb->closed ? "make a new sandbox object to go on"
                                                     : "the next call starts a new, empty sandbox");
  /* A call that was ended because another one found out has no cause of its own. */
  if (call->cause.code != SBX_OK && call->cause.code != SBX_ECANCELED)
    sbx_err_append(&err, " (%s)", call->cause.message);
  err.status = call->cause.status;
  sbx__call_finish(call, &err);
}

/* Nothing says that the sandbox is gone: the call ends as it would have. */
static void finish_as_it_is(sbx_call *call) {
  const char *effects = effects_of(call);
  if (call->cause.code == SBX_OK) {
    sbx__call_finish(call, NULL);
    return;
  }
  if (effects != NULL)
    sbx_err_append(&call->cause, "; %s", effects);
  sbx__call_finish(call, &call->cause);
}

/* What a sandbox looks like that is being paused: broken streams, nobody there. It has all it had.
 */
static bool was_paused_meanwhile(const sbx_call *call) {
  return call->pauses != call->place->pauses && call->place->state != SBX__PLACE_GONE;
}

static void finish_paused(sbx_call *call) {
  const char *effects = effects_of(call);
  sbx_err err;
  if (call->cause.code == SBX_OK) {
    sbx__call_finish(call, NULL);
    return;
  }
  sbx_err_set(&err, SBX_ECONFLICT, "the sandbox was paused while this call ran; ");
  if (effects != NULL)
    sbx_err_append(&err, "%s; ", effects);
  sbx_err_append(&err, "call resume() first (%s)", call->cause.message);
  err.status = call->cause.status;
  sbx__call_finish(call, &err);
}

/* Once, and only where nothing of it was done. */
static bool may_begin_again(const sbx_call *call) {
  return call->cause.no_effect && !call->may_have_run && !call->begun_again && !call->torn_down &&
         !call->shut && call->keeps_arguments;
}

/* Another call has found it halted. What this one met was that, whatever a look says by now. */
static bool was_halted_meanwhile(const sbx_call *call) {
  const sbx__place *place = call->place;
  return call->reopens != place->reopens || place->state == SBX__PLACE_HALTED;
}

static void begin_again(sbx_call *call) {
  sbx__place *place = call->place;
  call->begun_again = true;
  call->state = SBX__CALL_WAITS_FOR_START;
  call->place = NULL;
  sbx_err_clear(&call->cause);
  sbx__place_leave(place);
  /* Another call may have had it started meanwhile. */
  if (sbx__places_are_open(&call->sb->places))
    run(call);
  else
    open_place(call->sb);
}

/* The sandbox has its files and does not run. Whoever comes next has it started again. */
static void finish_halted(sbx_call *call) {
  if (call->place->state == SBX__PLACE_OPEN)
    call->place->state = SBX__PLACE_HALTED;
  if (may_begin_again(call)) {
    begin_again(call);
    return;
  }
  if (call->cause.code != SBX_OK)
    sbx_err_append(&call->cause, "; the sandbox has stopped and keeps its files, and the next call "
                                 "starts it again");
  finish_as_it_is(call);
}

static void on_probed(sbx_op *op, void *arg) {
  sbx_call *call = arg;
  call->probe = NULL;
  bool answered = op->err.code == SBX_OK;
  if (was_paused_meanwhile(call))
    finish_paused(call);
  else if ((answered && call->liveness == SBX_GONE) || call->place->state == SBX__PLACE_GONE)
    finish_lost(call);
  else if (answered && call->liveness == SBX_HALTED)
    finish_halted(call);
  else if (was_halted_meanwhile(call) && may_begin_again(call))
    begin_again(call);
  else
    finish_as_it_is(call);
}

void sbx__call_probe(sbx_call *call) {
  sbx_sandbox *sb = call->sb;
  if (call->place->state == SBX__PLACE_GONE) {
    finish_lost(call);
    return;
  }
  if (was_paused_meanwhile(call)) {
    finish_paused(call);
    return;
  }
  call->liveness = SBX_LIVENESS_UNKNOWN;
  if (!call->torn_down)
    call->probe = sb->provider->probe(call->place->session, &call->liveness, on_probed, call);
  if (call->probe == NULL)
    finish_as_it_is(call);
  else
    sbx_op_set_deadline(call->probe, sb->probe_timeout_ms);
}

bool sbx__is_doubtful(int code) {
  return code == SBX_ENET || code == SBX_EPROTO || code == SBX_EPROVIDER || code == SBX_ETIMEOUT ||
         code == SBX_ENOTFOUND || code == SBX_ECONFLICT;
}

void sbx__call_fail(sbx_call *call) {
  bool lost = call->cause.code == SBX_ELOST;
  if (was_paused_meanwhile(call) && (lost || sbx__is_doubtful(call->cause.code)))
    finish_paused(call);
  else if (lost)
    finish_lost(call);
  else if (call->place->state == SBX__PLACE_GONE || sbx__is_doubtful(call->cause.code) ||
           call->cause.code == SBX_EAUTH) /* some refuse a good key once the sandbox is gone */
    sbx__call_probe(call);
  else
    finish_as_it_is(call);
}

/* ---- calls whose work is one op of the provider ---- */

void sbx__call_child_done(sbx_op *op, void *arg) {
  sbx_call *call = arg;
  call->child = NULL;
  sbx_op_set_deadline(&call->op, SBX_NO_TIMEOUT);
  sbx_err_copy(&call->cause, &op->err);
  if (call->limit_passed && op->err.code == SBX_ETIMEOUT)
    sbx__places_no_answer(&call->sb->places, call->limit_ms, &call->cause);
  if (op->err.code == SBX_OK)
    sbx__call_finish(call, NULL);
  else
    sbx__call_fail(call);
}

void sbx__call_await(sbx_call *call, sbx_op *child, uint64_t limit_ms) {
  call->child = child;
  call->limit_ms = limit_ms;
  if (child == NULL)
    sbx__call_finish_nomem(call);
  else
    sbx_op_set_deadline(&call->op, limit_ms);
}

void sbx__call_stop_child(sbx_call *call, int reason) {
  if (call->child != NULL)
    sbx_op_abort(call->child, reason);
}
