/* open.c - from the create of a sandbox to its delete: create, attach, pause, resume, close.
 *
 * Two generations of the control plane are about. The second one is tried first; a plane that does
 * not have it is remembered with the loop.
 *
 * Every create carries a random tag in its metadata. When its answer is missing, the control plane
 * is asked for the sandbox with that tag, and a second time when there is none: what was asked for
 * may come up late.
 *
 * Invariants: `may_exist` is true from the moment a create is sent until it is certain that nothing
 * was made; only then is there nothing to look for at the close. Deleted is only what our own
 * create was answered with, or what bears our tag. */
#include "providers/e2b/open.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/url.h"
#include "providers/e2b/life.h"
#include "providers/e2b/wire.h"
#include "providers/remote/identity.h"
#include "providers/remote/tag.h"

#include <string.h>

enum { MAX_BODY = 2 * 1024 * 1024, MAX_PATH = 1024, MAX_PLANES = 16, LOOK_AGAIN_MS = 2000 };

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

/* ---- the end of both ------------------------------------------------------------------------ */

typedef struct open_op {
  sbx_steps steps;
  bool first_api;
  uint64_t seconds;
  char *id; /* connect */
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

/* ---- create --------------------------------------------------------------------------------- */

static int make_create(sbx_buf *body, const open_op *o) {
  const sbx_session *session = o->steps.session;
  const sbx_config *config = session->config;
  sbx_buf_append_str(body, "{");
  sbx_buf_append_str(body, config->create_json);
  if (o->first_api && !config->first_api)
    sbx_buf_append_str(body, ",\"secure\":true");
  sbx_buf_append_str(body, ",\"metadata\":{");
  if (config->metadata_json != NULL && config->metadata_json[0] != '\0') {
    sbx_buf_append_str(body, config->metadata_json);
    sbx_buf_append_str(body, ",");
  }
  return sbx_buf_appendf(body, "\"" SBX__E2B_TAG_NAME "\":\"%s\"}}", session->tag);
}

static void send_create(open_op *o);

static void on_created(sbx_steps *steps, sbx_http *reply) {
  open_op *o = (open_op *)(void *)steps;
  sbx_session *session = o->steps.session;
  sbx_err err;
  if (sbx__e2b_is_success(reply)) {
    take_reply(o, reply);
  } else if (!o->first_api && lacks_second_api(reply)) {
    session->may_exist = false;
    remember_first_api(session->config);
    o->first_api = true;
    send_create(o);
  } else {
    sbx__e2b_api_error(reply, "create", &err);
    session->may_exist = !err.no_effect;
    sbx_steps_finish(steps, &err);
  }
}

static void send_create(open_op *o) {
  sbx_session *session = o->steps.session;
  sbx_buf body;
  sbx_buf_init(&body, MAX_BODY);
  if (make_create(&body, o) == SBX_OK) {
    /* How long this may take is for the port to decide, which also waits for a late answer. */
    sbx__e2b_request request = {.http.method = "POST",
                                .path =
                                    sbx_slice_str(o->first_api ? "/sandboxes" : "/v2/sandboxes"),
                                .content_type = "application/json",
                                .http.take_body = &body,
                                .http.timeout_ms = SBX_NO_TIMEOUT};
    sbx__e2b_to_api(&o->steps, &request, on_created);
    session->may_exist = !o->steps.op.finished;
  } else {
    sbx_steps_finish_code(&o->steps, body.error);
  }
  sbx_buf_deinit(&body);
}

/* ---- connect -------------------------------------------------------------------------------- */

static void send_connect(open_op *o);

static void on_connected(sbx_steps *steps, sbx_http *reply) {
  open_op *o = (open_op *)(void *)steps;
  sbx_err err;
  if (sbx__e2b_is_success(reply)) {
    take_reply(o, reply);
  } else if (!o->first_api && lacks_second_api(reply)) {
    remember_first_api(o->steps.session->config);
    o->first_api = true;
    send_connect(o);
  } else {
    sbx__e2b_api_error(reply, "connect", &err);
    err.no_effect = reply->status == 429 || (reply->status == 0 && !reply->sent_maybe);
    sbx_steps_finish(steps, &err);
  }
}

static void send_connect(open_op *o) {
  sbx_buf path, body;
  sbx_buf_init(&path, MAX_PATH);
  sbx_buf_init(&body, MAX_PATH);
  sbx_buf_appendf(&path, "%s/%s/connect", o->first_api ? "/sandboxes" : "/v2/sandboxes", o->id);
  sbx_buf_appendf(&body, "{\"timeout\":%llu}", (unsigned long long)o->seconds);
  if (path.error == SBX_OK) {
    sbx__e2b_request request = {.http.method = "POST",
                                .path = sbx_buf_slice(&path),
                                .content_type = "application/json",
                                .http.take_body = &body,
                                .http.repeatable = true,
                                .http.timeout_ms = SBX_NO_TIMEOUT};
    sbx__e2b_to_api(&o->steps, &request, on_connected);
  } else {
    sbx_steps_finish_code(&o->steps, SBX_ENOMEM);
  }
  sbx_buf_deinit(&path);
  sbx_buf_deinit(&body);
}

/* ---- open ----------------------------------------------------------------------------------- */

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
    send_connect(o);
  else
    sbx_steps_finish_code(&o->steps, SBX_ENOMEM);
  return &o->steps.op;
}

static void open_debug(open_op *o) {
  sbx_session *session = o->steps.session;
  sbx_err err;
  int rc = sbx__e2b_take_debug(session, &err);
  session->open = rc == SBX_OK;
  sbx_steps_finish(&o->steps, rc == SBX_OK ? NULL : &err);
}

static void open_new_sandbox(open_op *o) {
  sbx_session *session = o->steps.session;
  sbx_err err;
  int rc = session->config->api_key != NULL ? SBX_OK : sbx__e2b_missing_key(&err);
  if (rc == SBX_OK)
    rc = sbx_remote_tag_make(session->tag, &err);
  if (rc == SBX_OK)
    send_create(o);
  else
    sbx_steps_finish(&o->steps, &err);
}

sbx_op *sbx__e2b_open(sbx_session *session, sbx_op_done done, void *arg) {
  const sbx_config *config = session->config;
  if (config->attach_id != NULL && config->api_key != NULL)
    return connect_to(session, config->attach_id, config->lifetime_s, done, arg);
  open_op *o = open_new(session, config->lifetime_s, done, arg);
  if (o == NULL)
    return NULL;
  o->first_api = o->first_api || config->first_api;
  if (config->debug)
    open_debug(o);
  else
    open_new_sandbox(o);
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
  sbx_session *session = c->steps.session;
  sbx_err err;
  if (!sbx_steps_arrived(steps, reply))
    return;
  bool pause = c->control == SBX_PAUSE;
  bool done = sbx__e2b_is_success(reply);
  if (!done && !(pause && reply->status == 409)) { /* paused already */
    sbx__e2b_api_error(reply, pause ? "pause" : "set the lifetime", &err);
    sbx_steps_finish(steps, &err);
    return;
  }
  if (!pause)
    sbx__e2b_life_set(session, c->seconds);
  sbx_steps_finish(steps, NULL);
}

/* From the moment that it is on its way, the sandbox is not found any more. */
static void send_pause(control_op *c) {
  sbx_buf body;
  c->steps.session->can_pause = true;
  sbx_buf_init(&body, MAX_PATH);
  sbx_buf_append_str(&body, "{}");
  sbx__e2b_about(&c->steps, "POST", "/pause", &body, on_controlled);
  sbx_buf_deinit(&body);
}

sbx_op *sbx__e2b_control(sbx_session *session, sbx_control control, uint64_t seconds,
                         sbx_op_done done, void *arg) {
  bool debug = session->config->debug;
  if (control == SBX_RESUME && !debug)
    return connect_to(session, session->id, seconds > 0 ? seconds : session->config->lifetime_s,
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

static void send_about(sbx_steps *steps, const char *method, sbx_buf *path,
                       sbx_steps_reply on_reply) {
  sbx__e2b_request request = {
      .http.method = method, .path = sbx_buf_slice(path), .http.repeatable = true};
  if (path->error == SBX_OK)
    sbx__e2b_to_api(steps, &request, on_reply);
  else
    sbx_steps_finish_code(steps, path->error);
  sbx_buf_deinit(path);
}

static void remove_it(sbx_steps *steps, const char *id, sbx_steps_reply on_reply) {
  sbx_buf path;
  sbx_buf_init(&path, MAX_PATH);
  sbx_buf_append_str(&path, "/sandboxes");
  sbx_url_append_segment(&path, sbx_slice_str(id));
  send_about(steps, "DELETE", &path, on_reply);
}

/* Gone already, or on its way out. */
static int removed(const sbx_http *reply, sbx_err *err) {
  bool going =
      reply->status == 409 && sbx_remote_exchange_says(sbx_buf_slice(&reply->body), "being killed");
  bool gone = reply->op.err.code == SBX_OK && (going || sbx__e2b_is_success(reply));
  return gone || sbx__e2b_is_404(reply) ? SBX_OK : sbx__e2b_api_error(reply, "delete", err);
}

static void gone(sbx_session *session) {
  session->open = false;
  session->may_exist = false;
}

static void find(sbx_steps *steps, sbx_steps_reply on_reply) {
  bool first_api = has_first_api_only(steps->session->config);
  sbx_buf path, metadata;
  sbx_buf_init(&path, MAX_PATH);
  sbx_buf_init(&metadata, MAX_PATH);
  sbx_buf_appendf(&metadata, SBX__E2B_TAG_NAME "=%s", steps->session->tag);
  sbx_buf_append_str(&path, first_api ? "/sandboxes" : "/v2/sandboxes");
  sbx_url_append_query(&path, sbx_slice_str("metadata"), sbx_buf_slice(&metadata));
  send_about(steps, "GET", &path, on_reply);
  sbx_buf_deinit(&metadata);
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
  if (reply->op.err.code != SBX_OK || reply->status != 200) {
    sbx__e2b_api_error(reply, "list", err);
    /* It is the list that is not there, not the sandbox. */
    return err->code = err->code == SBX_ENOTFOUND ? SBX_EPROTO : err->code;
  }
  int rc = sbx_json_parse(&doc, sbx_buf_slice(&reply->body), err);
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
  const char *id = config->debug ? NULL : session->id;
  return sbx_remote_tag_remove(session, config->loop, &verbs, id,
                               session->may_exist && !config->debug, done, arg);
}
