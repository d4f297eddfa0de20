/* life.c - alive or gone, and for how long.
 *
 * The provider ends a sandbox at the end of its lifetime, whatever runs in it. A command that may
 * take longer keeps it alive: as long as the command runs, the lifetime is begun anew in good time.
 * It is never made longer than that, so that a sandbox that is left alone still ends.
 *
 * Invariant: "gone" is the clear word of the sandbox's host or of the control plane; no answer, and
 * any other answer, is not. */
#include "providers/e2b/life.h"

#include "core/err.h"
#include "providers/e2b/wire.h"

enum {
  HEALTH_MS = 2500,          /* half of what a probe may take */
  LIFETIME_MARGIN_MS = 5000, /* between the end of a command and the end of the lifetime */
  MAX_LEAD_MS = 60 * 1000,   /* how long before its end the lifetime is begun anew */
  LEAST_AGAIN_MS = 500,      /* after a try that failed */
  MOST_AGAIN_MS = 5000,
  MIN_REFRESH_S = 15, /* the provider makes less than that so much */
  MAX_REFRESH_S = 3600,
};

/* ---- probe ---------------------------------------------------------------------------------- */

typedef struct probe_op {
  sbx_steps steps;
  sbx_liveness *out;
} probe_op;

static void tell(probe_op *p, sbx_liveness liveness) {
  *p->out = liveness;
  sbx_steps_finish(&p->steps, NULL);
}

static void on_detail(sbx_steps *steps, sbx_http *reply) {
  probe_op *p = (probe_op *)(void *)steps;
  if (reply->op.err.code != SBX_OK)
    tell(p, SBX_LIVENESS_UNKNOWN);
  else if (sbx__e2b_is_404(reply))
    tell(p, SBX_GONE);
  else
    tell(p, reply->status == 200 ? SBX_ALIVE : SBX_LIVENESS_UNKNOWN); /* running, or paused */
}

static void ask_control_plane(probe_op *p) {
  if (p->steps.session->config->debug)
    tell(p, SBX_LIVENESS_UNKNOWN);
  else
    sbx__e2b_about(&p->steps, "GET", "", NULL, on_detail);
}

static void on_health(sbx_steps *steps, sbx_http *http) {
  probe_op *p = (probe_op *)(void *)steps;
  if (http->op.err.code != SBX_OK || (http->status >= 500 && http->status != 502)) {
    ask_control_plane(p);
    return;
  }
  if (http->status != 502) {
    tell(p, SBX_ALIVE);
    return;
  }
  switch (sbx__e2b_read_502(sbx_buf_slice(&http->body))) {
  case SBX__E2B_NO_PORT:
    tell(p, SBX_ALIVE);
    break;
  case SBX__E2B_NO_SANDBOX:
    if (!p->steps.session->can_pause) {
      tell(p, SBX_GONE);
      break;
    }
    ask_control_plane(p);
    break;
  case SBX__E2B_UNCLEAR:
    ask_control_plane(p);
    break;
  }
}

sbx_op *sbx__e2b_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg) {
  probe_op *p = sbx_steps_new(sizeof *p, session, session->config->loop, done, arg);
  if (p == NULL)
    return NULL;
  p->out = out;
  sbx__e2b_request request = {.http.method = "GET",
                              .path = sbx_slice_str("/health"),
                              .http.repeatable = true,
                              .http.timeout_ms = HEALTH_MS};
  sbx__e2b_to_sandbox(&p->steps, &request, on_health);
  return &p->steps.op;
}

/* ---- keeping it alive while a command runs --------------------------------------------------- */

/* For a request that prolongs it: a moment before its end, or now when that has passed. */
static void arm(sbx_session *session) {
  uint64_t now = sbx_now_ms();
  uint64_t left = session->ends_at_ms > now ? session->ends_at_ms - now : 0;
  uint64_t lead = left / 2 < MAX_LEAD_MS ? left / 2 : MAX_LEAD_MS;
  sbx_timer_start(&session->keep_alive, left - lead);
}

/* After a try that failed: while there is time for others, else without haste. */
static void arm_again(sbx_session *session, uint64_t least_ms) {
  uint64_t now = sbx_now_ms();
  uint64_t delay =
      session->ends_at_ms > now ? (session->ends_at_ms - now) / 4 : (uint64_t)MOST_AGAIN_MS;
  if (delay < LEAST_AGAIN_MS)
    delay = LEAST_AGAIN_MS;
  if (delay > MOST_AGAIN_MS)
    delay = MOST_AGAIN_MS;
  sbx_timer_start(&session->keep_alive, delay > least_ms ? delay : least_ms);
}

/* Whether something runs that the lifetime may be too short for. */
static bool is_needed(const sbx_session *session) {
  if (session->execs == 0 || session->cannot_refresh || session->config->debug)
    return false;
  return session->busy_until_ms == UINT64_MAX ||
         session->busy_until_ms + LIFETIME_MARGIN_MS > session->ends_at_ms;
}

static uint32_t refresh_seconds(const sbx_session *session) {
  uint32_t seconds = session->lifetime_s;
  if (seconds < MIN_REFRESH_S)
    return MIN_REFRESH_S;
  return seconds < MAX_REFRESH_S ? seconds : MAX_REFRESH_S;
}

static void on_refresh_reply(sbx_steps *steps, sbx_http *reply) {
  sbx_err err;
  if (!sbx_steps_arrived(steps, reply))
    return;
  bool done = sbx__e2b_is_success(reply);
  if (!done)
    sbx__e2b_api_error(reply, "prolong the lifetime", &err);
  sbx_steps_finish(steps, done ? NULL : &err);
}

/* Asking again would be answered the same. */
static bool is_final(int code) {
  return code == SBX_EINVAL || code == SBX_EAUTH || code == SBX_EFORBIDDEN || code == SBX_ENOTFOUND;
}

static void on_refreshed(sbx_op *op, void *arg) {
  sbx_session *session = arg;
  session->refresh = NULL;
  session->cannot_refresh = is_final(op->err.code);
  if (op->err.code == SBX_OK) {
    uint64_t ends_at_ms = sbx_now_ms() + refresh_seconds(session) * (uint64_t)1000;
    if (session->ends_at_ms < ends_at_ms) /* it only prolongs */
      session->ends_at_ms = ends_at_ms;
  }
  if (!is_needed(session))
    return;
  if (op->err.code == SBX_OK)
    arm(session);
  else
    arm_again(session, op->err.retry_after_ms);
}

static void on_keep_alive(sbx_timer *timer) {
  sbx_session *session = (sbx_session *)(void *)((char *)timer - offsetof(sbx_session, keep_alive));
  if (session->refresh != NULL)
    return;
  sbx_steps *steps =
      sbx_steps_new(sizeof *steps, session, session->config->loop, on_refreshed, session);
  if (steps == NULL) {
    arm_again(session, 0);
    return;
  }
  session->refresh = &steps->op;
  sbx__e2b_about_number(steps, "/refreshes", "duration", refresh_seconds(session),
                        on_refresh_reply);
}

void sbx__e2b_life_set(sbx_session *session, uint64_t seconds) {
  /* Whether it came before or after this is not known. */
  sbx_op_drop(&session->refresh, SBX_ECANCELED);
  session->cannot_refresh = false;
  session->lifetime_s = (uint32_t)seconds;
  session->ends_at_ms = sbx_now_ms() + seconds * 1000;
  if (is_needed(session))
    arm(session);
  else
    sbx_timer_stop(&session->keep_alive);
}

void sbx__e2b_life_enter(sbx_session *session, uint64_t limit_ms) {
  uint64_t until = limit_ms != SBX_NO_TIMEOUT ? sbx_now_ms() + limit_ms : UINT64_MAX;
  if (session->execs++ == 0 || session->busy_until_ms < until)
    session->busy_until_ms = until;
  if (is_needed(session) && !session->keep_alive.armed && session->refresh == NULL)
    arm(session);
}

void sbx__e2b_life_leave(sbx_session *session) {
  if (--session->execs == 0)
    sbx_timer_stop(&session->keep_alive);
}

void sbx__e2b_life_init(sbx_session *session) {
  sbx_timer_init(&session->keep_alive, session->config->loop, on_keep_alive);
}

void sbx__e2b_life_deinit(sbx_session *session) {
  sbx_timer_stop(&session->keep_alive);
  sbx_op_drop(&session->refresh, SBX_ECANCELED);
}
