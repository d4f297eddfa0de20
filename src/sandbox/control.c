/* control.c - changes the life of a sandbox: lifetime, pause, resume.
 *
 * Invariant: a control never starts a sandbox that nobody has used; there is nothing to prolong or
 * to pause then. */
#include "sandbox/call.h"

#include "core/alloc.h"

enum { MAX_LIFETIME_S = 24 * 60 * 60 };

typedef struct control_call {
  sbx_call call;
  sbx_done_cb cb;
  sbx_control control;
  uint64_t seconds;
} control_call;

static control_call *control_of(sbx_call *call) {
  return (control_call *)(void *)call;
}

/* A pause that fails may have come to pass all the same, unless its refusal is clear. */
static void on_pause_done(sbx_op *op, void *arg) {
  sbx_call *call = arg;
  bool refused = op->err.code != SBX_OK && op->err.code != SBX_ECANCELED &&
                 op->err.code != SBX_ECLOSED && !sbx__is_doubtful(op->err.code);
  call->place->pausing = false;
  if (refused)
    call->pauses = --call->place->pauses;
  sbx__call_child_done(op, arg);
}

/* Some answer a pause late, and have taken the sandbox out of their routing long before. */
static void run_pause(sbx_call *call) {
  sbx_op *child =
      call->sb->provider->control(call->place->session, SBX_PAUSE, 0, on_pause_done, call);
  if (child != NULL) {
    call->place->pausing = true;
    call->pauses = ++call->place->pauses;
  }
  sbx__call_await(call, child, call->sb->places.delete_timeout_ms);
}

static void run_control(sbx_call *call) {
  control_call *control = control_of(call);
  if (control->control == SBX_PAUSE) {
    run_pause(call);
    return;
  }
  sbx_op *child = call->sb->provider->control(call->place->session, control->control,
                                              control->seconds, sbx__call_child_done, call);
  sbx__call_await(call, child, call->sb->places.delete_timeout_ms);
}

static void report_control(sbx_call *call, const sbx_err *err) {
  control_of(call)->cb(call->arg, err);
}

static const sbx__call_kind control_kind = {run_control, sbx__call_stop_child, report_control, NULL,
                                            NULL};

static int check(const sbx_sandbox *sb, sbx_control control, uint64_t seconds, sbx_err *err) {
  static const struct {
    uint32_t needed;
    bool takes_none; /* 0 seconds have a meaning */
    const char *missing;
  } kinds[] = {
      [SBX_SET_LIFETIME] = {SBX_CAP_LIFETIME, false,
                            "this provider's sandboxes have no lifetime that could be set"},
      [SBX_EXTEND_LIFETIME] = {SBX_CAP_EXTEND, false,
                               "this provider's sandboxes have no lifetime that could be extended"},
      [SBX_PAUSE] = {SBX_CAP_PAUSE, true, "this provider cannot pause a sandbox"},
      [SBX_RESUME] = {SBX_CAP_PAUSE, true, "this provider cannot pause a sandbox"},
  };
  if (!(sbx_provider_caps(sb->provider, sb->places.config) & kinds[control].needed))
    return sbx_err_set(err, SBX_EUNSUPPORTED, "%s", kinds[control].missing);
  if (seconds > MAX_LIFETIME_S || (!kinds[control].takes_none && seconds == 0))
    return sbx_err_set(err, SBX_EINVAL, "a lifetime is a whole number of seconds from 1 to %d",
                       MAX_LIFETIME_S);
  if (!sbx__places_are_open(&sb->places))
    return sbx_err_set(err, SBX_ENOTREADY,
                       "the sandbox has not started; start it, or make any other call, first");
  return SBX_OK;
}

int sbx_sandbox_control(sbx_sandbox *sb, sbx_control control, uint64_t seconds, sbx_done_cb cb,
                        void *arg, sbx_call **out, sbx_err *err) {
  int rc = sbx__sandbox_check(sb, err);
  if (rc == SBX_OK)
    rc = check(sb, control, seconds, err);
  if (rc != SBX_OK)
    return rc;
  control_call *call = sbx_calloc(1, sizeof *call);
  if (call == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  call->cb = cb;
  call->control = control;
  call->seconds = seconds;
  sbx__call_init(&call->call, sb, &control_kind, arg);
  sbx__call_begin(&call->call);
  if (out != NULL)
    *out = &call->call;
  return SBX_OK;
}
