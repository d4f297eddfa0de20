/* life.c - a sandbox from its create to its delete: create, attach, pause, resume, close; whether
 * it is alive or gone, and for how long.
 *
 * The provider ends a sandbox at the end of its lifetime, whatever runs in it. A command that may
 * take longer keeps it alive: as long as the command runs, the lifetime is begun anew in good time.
 * It is never made longer than that, so that a sandbox that is left alone still ends.
 *
 * Two generations of the control plane are about. The second one is tried first; a plane that does
 * not have it is remembered with the loop.
 *
 * Invariants: "gone" is the clear word of the sandbox's host or of the control plane; no answer,
 * and any other answer, is not. `may_exist` is true from the moment a create is sent until it is
 * certain that nothing was made; only then is there nothing to look for at the close. */
#include "providers/e2b/e2b.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/url.h"
#include "providers/remote/identity.h"
#include "providers/remote/probe.h"
#include "providers/remote/tag.h"

#include <string.h>

enum {
  MAX_BODY = 4 * 1024 * 1024,
  MAX_PLANES = 16,
  LOOK_AGAIN_MS = 2000,
  HEALTH_MS = 2500,          /* half of what a probe may take */
  LIFETIME_MARGIN_MS = 5000, /* between the end of a command and the end of the lifetime */
  MAX_LEAD_MS = 60 * 1000,   /* how long before its end the lifetime is begun anew */
  LEAST_AGAIN_MS = 500,      /* after a try that failed */
  MOST_AGAIN_MS = 5000,
  MIN_REFRESH_S = 15, /* the provider makes less than that so much */
  MAX_REFRESH_S = 3600,
};

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
  int rc = sbx__e2b_api_check(&err, reply, "prolong the lifetime");
  sbx_steps_finish(steps, rc == SBX_OK ? NULL : &err);
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

/* ---- probe ---------------------------------------------------------------------------------- */

static void tell(sbx_steps *steps, sbx_liveness liveness) {
  sbx_remote_probe_tell(steps, liveness);
  sbx_steps_finish(steps, NULL);
}

static void on_detail(sbx_steps *steps, sbx_http *reply) {
  bool found = reply->op.err.code == SBX_OK && reply->status == 200; /* running, or paused */
  if (sbx__e2b_is_404(reply))
    tell(steps, SBX_GONE);
  else
    tell(steps, found ? SBX_ALIVE : SBX_LIVENESS_UNKNOWN);
}

static void on_health(sbx_steps *steps, sbx_http *reply) {
  const sbx_session *session = steps->session;
  bool failed = reply->op.err.code != SBX_OK || reply->status >= 500;
  sbx__e2b_bad_gateway what = SBX__E2B_UNCLEAR;
  if (reply->op.err.code == SBX_OK && reply->status == 502)
    what = sbx__e2b_read_502(sbx_buf_slice(&reply->body));
  if (!failed || what == SBX__E2B_NO_PORT)
    tell(steps, SBX_ALIVE);
  else if (what == SBX__E2B_NO_SANDBOX && !session->can_pause)
    tell(steps, SBX_GONE);
  else if (session->config->debug)
    tell(steps, SBX_LIVENESS_UNKNOWN);
  else
    sbx__e2b_about(steps, "GET", session->box.id, "", NULL, on_detail);
}

sbx_op *sbx__e2b_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg) {
  sbx_steps *probe = sbx_remote_probe_new(session, session->config->loop, out, done, arg);
  if (probe == NULL)
    return NULL;
  const sbx__e2b_request request = {
      .http = {.method = "GET", .repeatable = true, .timeout_ms = HEALTH_MS},
      .path = sbx_slice_str("/health"),
  };
  sbx__e2b_to_sandbox(probe, &request, on_health);
  return &probe->op;
}

/* ---- which generation ----------------------------------------------------------------------- */

/* The control planes that have only the first one. */
typedef struct planes {
  sbx_loop_state state; /* first */
  char *urls[MAX_PLANES];
  size_t count;
} planes;

static const char planes_key;

static planes *find_planes(const sbx_config *config) {
  return (planes *)(void *)sbx_loop_find_state(config->loop, &planes_key);
}

static bool has_first_api_only(const sbx_config *config) {
  const planes *known = find_planes(config);
  for (size_t i = 0; known != NULL && i < known->count; i++) {
    if (strcmp(known->urls[i], config->api_url) == 0)
      return true;
  }
  return false;
}

static void free_planes(sbx_loop_state *state) {
  planes *known = (planes *)(void *)state;
  for (size_t i = 0; i < known->count; i++)
    sbx_free(known->urls[i]);
  sbx_free(known);
}

/* Without memory for it the next create finds out again. */
static void remember_first_api(const sbx_config *config) {
  planes *known = find_planes(config);
  if (known == NULL) {
    known = sbx_calloc(1, sizeof *known);
    if (known == NULL)
      return;
    known->state.key = &planes_key;
    known->state.end = free_planes;
    sbx_loop_add_state(config->loop, &known->state);
  }
  if (known->count == MAX_PLANES || has_first_api_only(config))
    return;
  char *url = sbx_strndup(config->api_url, strlen(config->api_url));
  if (url != NULL)
    known->urls[known->count++] = url;
}

/* A 404 about a template or a sandbox is an answer of a plane that knows the call. */
static bool lacks_second_api(const sbx_http *http) {
  static const char *const about[] = {"template ", "tag ", "Sandbox "};
  sbx_json_doc *doc = NULL;
  sbx_slice message = {NULL, 0};
  if (http->op.err.code != SBX_OK || http->status != 404)
    return http->op.err.code == SBX_OK && http->status == 405;
  if (sbx_json_parse(&doc, sbx_buf_slice(&http->body), NULL) == SBX_OK)
    sbx_json_string(sbx_json_get(sbx_json_root(doc), "message"), &message);
  bool lacks = true;
  for (size_t i = 0; i < sizeof about / sizeof *about; i++)
    lacks = lacks && !sbx_slice_starts_with(message, sbx_slice_str(about[i]));
  sbx_json_free(doc, false);
  return lacks;
}

/* ---- open: create, or connect to one that is there ------------------------------------------- */

typedef struct open_op {
  sbx_steps steps;
  bool first_api;
  uint64_t seconds;
  char *id; /* of the one to connect to; NULL: create */
} open_op;

static void release_open(sbx_steps *steps) {
  sbx_free(((open_op *)(void *)steps)->id);
}

static void take_reply(open_op *o, const sbx_http *reply) {
  sbx_session *session = o->steps.session;
  sbx_err err;
  if (sbx__e2b_take_sandbox(session, o->id, sbx_buf_slice(&reply->body), &err) != SBX_OK) {
    err.status = reply->status;
    sbx_steps_finish(&o->steps, &err);
    return;
  }
  session->open = true;
  sbx__e2b_life_set(session, o->seconds);
  sbx_steps_finish(&o->steps, NULL);
}

/* The prepared text ends inside of the metadata. */
static void write_create(sbx_buf *body, const sbx_session *session, bool first_api) {
  const sbx_config *config = session->config;
  sbx_buf_append_str(body, config->create_json);
  if (body->len > 0 && body->ptr[body->len - 1] != '{')
    sbx_buf_append_str(body, ",");
  sbx_buf_appendf(body, "\"" SBX__E2B_TAG_NAME "\":\"%s\"}%s}", session->tag,
                  first_api && config->secure ? ",\"secure\":true" : "");
}

static void send_open(open_op *o);

static void on_opened(sbx_steps *steps, sbx_http *reply) {
  open_op *o = (open_op *)(void *)steps;
  bool create = o->id == NULL;
  sbx_err err;
  if (sbx__e2b_api_check(&err, reply, create ? "create" : "connect") == SBX_OK) {
    take_reply(o, reply);
  } else if (!o->first_api && lacks_second_api(reply)) {
    remember_first_api(steps->session->config);
    o->first_api = true;
    send_open(o);
  } else {
    if (create)
      steps->session->may_exist = !err.no_effect;
    else
      err.no_effect = reply->status == 429 || (reply->status == 0 && !reply->sent_maybe);
    sbx_steps_finish(steps, &err);
  }
}

/* How long this may take is for the port to decide, which also waits for a late answer. */
static void send_open(open_op *o) {
  sbx_session *session = o->steps.session;
  sbx_buf url, body;
  const sbx_http_request http = {.method = "POST",
                                 .take_body = &body,
                                 .repeatable = o->id != NULL,
                                 .timeout_ms = SBX_NO_TIMEOUT};
  sbx_buf_init(&body, MAX_BODY);
  sbx__e2b_api_url(&url, session);
  sbx_buf_append_str(&url, o->first_api ? "/sandboxes" : "/v2/sandboxes");
  if (o->id != NULL) {
    sbx_buf_appendf(&url, "/%s/connect", o->id);
    sbx_buf_appendf(&body, "{\"timeout\":%llu}", (unsigned long long)o->seconds);
  } else {
    write_create(&body, session, o->first_api);
  }
  sbx__e2b_to_api(&o->steps, &url, &http, on_opened);
  if (o->id == NULL)
    session->may_exist = !o->steps.op.finished;
}

static open_op *open_new(sbx_session *session, uint64_t seconds, sbx_op_done done, void *arg) {
  open_op *o = sbx_steps_new(sizeof *o, session, session->config->loop, done, arg);
  if (o == NULL)
    return NULL;
  o->steps.release = release_open;
  o->seconds = seconds;
  o->first_api = has_first_api_only(session->config);
  return o;
}

static sbx_op *connect_to(sbx_session *session, const char *id, uint64_t seconds, sbx_op_done done,
                          void *arg) {
  open_op *o = open_new(session, seconds, done, arg);
  if (o == NULL)
    return NULL;
  o->id = sbx_strndup(id, strlen(id));
  if (o->id != NULL)
    send_open(o);
  else
    sbx_steps_finish_code(&o->steps, SBX_ENOMEM);
  return &o->steps.op;
}

sbx_op *sbx__e2b_open(sbx_session *session, sbx_op_done done, void *arg) {
  const sbx_config *config = session->config;
  sbx_err err;
  if (config->attach_id != NULL && config->api_key != NULL)
    return connect_to(session, config->attach_id, config->lifetime_s, done, arg);
  open_op *o = open_new(session, config->lifetime_s, done, arg);
  if (o == NULL)
    return NULL;
  o->first_api = o->first_api || !config->secure; /* the second knows no other way than secure */
  int rc = SBX_OK;
  if (config->debug)
    rc = sbx__e2b_take_debug(session, &err);
  else if (config->api_key == NULL)
    rc = sbx__e2b_missing_key(&err);
  else
    rc = sbx_remote_tag_make(session->tag, &err);
  session->open = rc == SBX_OK && config->debug;
  if (rc == SBX_OK && !config->debug)
    send_open(o);
  else
    sbx_steps_finish(&o->steps, rc == SBX_OK ? NULL : &err);
  return &o->steps.op;
}

/* ---- lifetime, pause, resume ---------------------------------------------------------------- */

typedef struct control_op {
  sbx_steps steps;
  sbx_control control;
  uint64_t seconds;
} control_op;

static void on_controlled(sbx_steps *steps, sbx_http *reply) {
  control_op *c = (control_op *)(void *)steps;
  sbx_err err;
  bool pause = c->control == SBX_PAUSE;
  int rc = sbx__e2b_api_check(&err, reply, pause ? "pause" : "set the lifetime");
  if (pause && reply->op.err.code == SBX_OK && reply->status == 409) /* paused already */
    rc = SBX_OK;
  if (rc == SBX_OK && !pause)
    sbx__e2b_life_set(steps->session, c->seconds);
  sbx_steps_finish(steps, rc == SBX_OK ? NULL : &err);
}

/* From the moment that it is on its way, the sandbox is not found any more. */
static void send_pause(control_op *c) {
  sbx_session *session = c->steps.session;
  sbx_buf body;
  session->can_pause = true;
  sbx_buf_init(&body, MAX_BODY);
  sbx_buf_append_str(&body, "{}");
  sbx__e2b_about(&c->steps, "POST", session->box.id, "/pause", &body, on_controlled);
}

sbx_op *sbx__e2b_control(sbx_session *session, sbx_control control, uint64_t seconds,
                         sbx_op_done done, void *arg) {
  bool debug = session->config->debug;
  if (control == SBX_RESUME && !debug)
    return connect_to(session, session->box.id, seconds > 0 ? seconds : session->config->lifetime_s,
                      done, arg);
  control_op *c = sbx_steps_new(sizeof *c, session, session->config->loop, done, arg);
  if (c == NULL)
    return NULL;
  c->control = control;
  c->seconds = seconds;
  if (debug)
    sbx_steps_finish(&c->steps, NULL);
  else if (control == SBX_PAUSE)
    send_pause(c);
  else
    sbx__e2b_about_number(&c->steps, "/timeout", "timeout", seconds, on_controlled);
  return &c->steps.op;
}

/* ---- close ---------------------------------------------------------------------------------- */

static void remove_it(sbx_steps *steps, const char *id, sbx_steps_reply on_reply) {
  sbx__e2b_about(steps, "DELETE", id, "", NULL, on_reply);
}

/* Gone already, or on its way out. */
static int removed(const sbx_http *reply, sbx_err *err) {
  int rc = sbx__e2b_api_check(err, reply, "delete");
  bool going = reply->op.err.code == SBX_OK && reply->status == 409 &&
               sbx_remote_exchange_says(sbx_buf_slice(&reply->body), "being killed");
  return going || sbx__e2b_is_404(reply) ? SBX_OK : rc;
}

static void gone(sbx_session *session) {
  session->open = false;
  session->may_exist = false;
}

static void find(sbx_steps *steps, sbx_steps_reply on_reply) {
  const sbx_session *session = steps->session;
  const sbx_http_request http = {.method = "GET", .repeatable = true};
  char metadata[sizeof SBX__E2B_TAG_NAME + 1 + SBX__E2B_TOKEN_LEN] = SBX__E2B_TAG_NAME "=";
  sbx_buf url;
  memcpy(metadata + strlen(metadata), session->tag, sizeof session->tag);
  sbx__e2b_api_url(&url, session);
  sbx_buf_append_str(&url, has_first_api_only(session->config) ? "/sandboxes" : "/v2/sandboxes");
  sbx_url_append_query(&url, sbx_slice_str("metadata"), sbx_slice_str(metadata));
  sbx__e2b_to_api(steps, &url, &http, on_reply);
}

static int take_found(const sbx_session *session, const sbx_json *list, char **id, sbx_err *err) {
  sbx_slice said;
  if (!sbx_json_is_array(list))
    return sbx_err_set(err, SBX_EPROTO, "e2b: list: unexpected answer: it is no array");
  for (const sbx_json *v = sbx_json_next(list, NULL, NULL); v != NULL;
       v = sbx_json_next(list, v, NULL)) {
    if (sbx_remote_tag_is_in(sbx_json_get(v, "metadata"), SBX__E2B_TAG_NAME, session->tag) &&
        sbx_json_string(sbx_json_get(v, "sandboxID"), &said))
      return sbx_remote_identity_take(id, said, "e2b", err);
  }
  return SBX_OK;
}

static int found(sbx_session *session, const sbx_http *reply, char **id, sbx_err *err) {
  sbx_json_doc *doc = NULL;
  bool absent = reply->op.err.code == SBX_OK && (reply->status == 404 || reply->status == 405);
  if (absent && !has_first_api_only(session->config)) {
    remember_first_api(session->config);
    if (has_first_api_only(session->config))
      return SBX_ENOTREADY;
  }
  int rc = sbx__e2b_api_check(err, reply, "list");
  if (rc == SBX_ENOTFOUND) /* it is the list that is not there, not the sandbox */
    return err->code = SBX_EPROTO;
  if (rc == SBX_OK)
    rc = sbx_json_parse(&doc, sbx_buf_slice(&reply->body), err);
  if (rc == SBX_OK)
    rc = take_found(session, sbx_json_root(doc), id, err);
  sbx_json_free(doc, false);
  return rc;
}

static const sbx_remote_tag_verbs verbs = {
    .look_again_ms = LOOK_AGAIN_MS,
    .find = find,
    .found = found,
    .remove = remove_it,
    .removed = removed,
    .gone = gone,
};

sbx_op *sbx__e2b_close(sbx_session *session, sbx_op_done done, void *arg) {
  const sbx_config *config = session->config;
  const char *id = config->debug ? NULL : session->box.id;
  return sbx_remote_tag_remove(session, config->loop, &verbs, id,
                               session->may_exist && !config->debug, done, arg);
}
