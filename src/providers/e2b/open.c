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
#include "core/rand.h"
#include "core/url.h"
#include "providers/e2b/life.h"
#include "providers/e2b/wire.h"

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
  if (http->status != 404)
    return http->status == 405;
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
  if (sbx__e2b_take_sandbox(session, sbx_buf_slice(&reply->body), &err) != SBX_OK) {
    err.status = reply->status;
    sbx_steps_finish(&o->steps, &err);
    return;
  }
  session->open = true;
  sbx__e2b_life_set(session, o->seconds);
  sbx_steps_finish(&o->steps, NULL);
}

/* There was no reply. What was not sent had no effect. */
static void fail_unanswered(open_op *o, const sbx_http *reply) {
  sbx_err err;
  sbx_err_copy(&err, &reply->op.err);
  err.no_effect = !reply->sent_maybe;
  sbx_steps_finish(&o->steps, &err);
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

/* Whether a reply of this status may come after the sandbox was made. */
static bool may_have_created(int status) {
  return status < 400 || (status >= 500 && status != 503);
}

static void on_created(sbx_steps *steps, sbx_http *reply) {
  open_op *o = (open_op *)(void *)steps;
  sbx_session *session = o->steps.session;
  sbx_err err;
  if (reply->op.err.code != SBX_OK) {
    session->may_exist = reply->sent_maybe;
    fail_unanswered(o, reply);
  } else if (sbx__e2b_is_success(reply)) {
    take_reply(o, reply);
  } else if (!o->first_api && lacks_second_api(reply)) {
    session->may_exist = false;
    remember_first_api(session->config);
    o->first_api = true;
    send_create(o);
  } else {
    sbx__e2b_api_error(reply, "create", &err);
    session->may_exist = may_have_created(reply->status);
    err.no_effect = !session->may_exist;
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
  if (reply->op.err.code != SBX_OK) {
    fail_unanswered(o, reply);
  } else if (sbx__e2b_is_success(reply)) {
    take_reply(o, reply);
  } else if (!o->first_api && lacks_second_api(reply)) {
    remember_first_api(o->steps.session->config);
    o->first_api = true;
    send_connect(o);
  } else {
    sbx__e2b_api_error(reply, "connect", &err);
    err.no_effect = reply->status == 429;
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
  if (rc == SBX_OK && session->tag[0] == '\0')
    rc = sbx_random_hex(session->tag, SBX__E2B_TOKEN_LEN, &err);
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

/* ---- close: delete -------------------------------------------------------------------------- */

typedef struct close_op {
  sbx_steps steps;
  char *id; /* of what was found; NULL: it is the session's */
  sbx_repeat repeat;
  bool first_api;
  bool looked; /* once, and found nothing */
} close_op;

static void finish(close_op *c, const sbx_err *err) {
  sbx_steps_finish(&c->steps, err);
}

static void send_about(close_op *c, const char *method, const sbx_buf *path,
                       sbx_steps_reply on_reply) {
  sbx__e2b_request request = {
      .http.method = method, .path = sbx_buf_slice(path), .http.repeatable = true};
  if (path->error == SBX_OK)
    sbx__e2b_to_api(&c->steps, &request, on_reply);
  else
    sbx_steps_finish_code(&c->steps, path->error);
}

static void read_failure(const sbx_http *http, const char *verb, sbx_err *err) {
  if (http->op.err.code != SBX_OK)
    sbx_err_copy(err, &http->op.err);
  else
    sbx__e2b_api_error(http, verb, err);
}

/* Gone already, or on its way out. */
static bool is_deleted(const sbx_http *http) {
  sbx_slice body = sbx_buf_slice(&http->body);
  if (http->status == 409)
    return body.len > 0 && memmem(body.ptr, body.len, "being killed", 12) != NULL;
  return sbx__e2b_is_404(http) || sbx__e2b_is_success(http);
}

static void send_delete(sbx_steps *steps);

static void on_deleted(sbx_steps *steps, sbx_http *http) {
  close_op *c = (close_op *)(void *)steps;
  sbx_session *session = c->steps.session;
  sbx_err err;
  if (http->op.err.code == SBX_OK && is_deleted(http)) {
    session->open = false;
    session->may_exist = false;
    finish(c, NULL);
    return;
  }
  read_failure(http, "delete", &err);
  if (!sbx_steps_repeat(steps, &c->repeat, &sbx_repeat_delete, http, &err, send_delete))
    finish(c, &err);
}

static void send_delete(sbx_steps *steps) {
  close_op *c = (close_op *)(void *)steps;
  sbx_buf path;
  sbx_buf_init(&path, MAX_PATH);
  sbx_buf_append_str(&path, "/sandboxes");
  sbx_url_append_segment(&path, sbx_slice_str(c->id != NULL ? c->id : steps->session->id));
  send_about(c, "DELETE", &path, on_deleted);
  sbx_buf_deinit(&path);
}

/* ---- find ----------------------------------------------------------------------------------- */

static void look(sbx_steps *steps);

static bool has_our_tag(const sbx_json *sandbox, const sbx_session *session) {
  sbx_slice tag;
  const sbx_json *metadata = sbx_json_get(sandbox, "metadata");
  return sbx_json_string(sbx_json_get(metadata, SBX__E2B_TAG_NAME), &tag) &&
         sbx_slice_eq_str(tag, session->tag);
}

static bool find(const sbx_json *list, const sbx_session *session, sbx_slice *id) {
  for (const sbx_json *v = sbx_json_next(list, NULL, NULL); v != NULL;
       v = sbx_json_next(list, v, NULL)) {
    if (has_our_tag(v, session) && sbx_json_string(sbx_json_get(v, "sandboxID"), id))
      return true;
  }
  return false;
}

static void found_nothing(close_op *c) {
  if (!c->looked) {
    c->looked = true;
    sbx_steps_wait(&c->steps, LOOK_AGAIN_MS, look);
    return;
  }
  c->steps.session->may_exist = false;
  finish(c, NULL);
}

static void delete_found(close_op *c, sbx_slice id) {
  sbx_free(c->id);
  c->id = sbx_strndup(id.ptr, id.len);
  if (c->id != NULL)
    send_delete(&c->steps);
  else
    sbx_steps_finish_code(&c->steps, SBX_ENOMEM);
}

static void take_list(close_op *c, sbx_slice body) {
  sbx_json_doc *doc = NULL;
  sbx_slice id;
  sbx_err err;
  int rc = sbx_json_parse(&doc, body, &err);
  if (rc == SBX_OK && !sbx_json_is_array(sbx_json_root(doc)))
    rc = sbx_err_set(&err, SBX_EPROTO, "e2b: list: unexpected answer: it is no array");
  if (rc != SBX_OK)
    finish(c, &err);
  else if (find(sbx_json_root(doc), c->steps.session, &id))
    delete_found(c, id);
  else
    found_nothing(c);
  sbx_json_free(doc, false);
}

static void on_listed(sbx_steps *steps, sbx_http *http) {
  close_op *c = (close_op *)(void *)steps;
  bool arrived = http->op.err.code == SBX_OK;
  sbx_err err;
  if (arrived && http->status == 200) {
    take_list(c, sbx_buf_slice(&http->body));
    return;
  }
  if (arrived && !c->first_api && (http->status == 404 || http->status == 405)) {
    c->first_api = true;
    look(steps);
    return;
  }
  read_failure(http, "list", &err);
  if (err.code == SBX_ENOTFOUND)
    err.code = SBX_EPROTO; /* it is the list that is not there, not the sandbox */
  if (!sbx_steps_repeat(steps, &c->repeat, &sbx_repeat_delete, http, &err, look))
    finish(c, &err);
}

static void look(sbx_steps *steps) {
  close_op *c = (close_op *)(void *)steps;
  sbx_buf path, metadata;
  sbx_buf_init(&path, MAX_PATH);
  sbx_buf_init(&metadata, MAX_PATH);
  sbx_buf_appendf(&metadata, SBX__E2B_TAG_NAME "=%s", steps->session->tag);
  sbx_buf_append_str(&path, c->first_api ? "/sandboxes" : "/v2/sandboxes");
  sbx_url_append_query(&path, sbx_slice_str("metadata"), sbx_buf_slice(&metadata));
  send_about(c, "GET", &path, on_listed);
  sbx_buf_deinit(&metadata);
  sbx_buf_deinit(&path);
}

static void release_close(sbx_steps *steps) {
  sbx_free(((close_op *)(void *)steps)->id);
}

/* ---- close ---------------------------------------------------------------------------------- */

sbx_op *sbx__e2b_close(sbx_session *session, sbx_op_done done, void *arg) {
  close_op *c = sbx_steps_new(sizeof *c, session, session->config->loop, done, arg);
  if (c == NULL)
    return NULL;
  c->steps.release = release_close;
  c->first_api = has_first_api_only(session->config);
  bool was_created = !session->config->debug;
  if (was_created && session->id != NULL)
    send_delete(&c->steps);
  else if (was_created && session->may_exist)
    look(&c->steps);
  else
    finish(c, NULL);
  return &c->steps.op;
}
