/* life.c - creates a sandbox, or attaches to one; looks whether it lives; deletes it.
 *
 *   token -> app -> (environment) -> image, built where it has to be -> create
 *   token -> task -> access to the command router, where one is attached to
 *
 * All that stands before the create makes nothing that would have to be paid for, and is asked
 * again when it failed in passing. The create is sent once.
 *
 * Invariant: from the moment a create may have left until it was refused, session->may_exist is
 * set, and close then looks for it by its tag. */
#include "core/alloc.h"
#include "core/err.h"
#include "providers/modal/access.h"
#include "providers/modal/modal.h"
#include "providers/remote/identity.h"
#include "providers/remote/probe.h"

#include <stdio.h>
#include <string.h>

enum {
  MAX_MESSAGE = 8 * 1024 * 1024,
  MAX_NAME = 256,
  TASK_PAUSE_MS = 500,
  BUILD_S = 55, /* for which one call listens to a build */
  CREATE = 1,   /* object_creation_type: what is missing is made */
};

#define TAG "cloudsandbox"

/* As the vendor's own clients try a call again. */
static const sbx_repeat_rule passing = {
    .first_pause_ms = 100, .most_pause_ms = 1000, .most = 3, .timeouts = true};

/* ---- session -------------------------------------------------------------------------------- */

sbx_session *sbx__modal_session_new(sbx_config *config) {
  sbx_session *session = sbx_calloc(1, sizeof *session);
  if (session != NULL)
    session->config = config;
  return session;
}

void sbx__modal_session_free(sbx_session *session) {
  if (session == NULL)
    return;
  sbx_free(session->app_id);
  sbx_free(session->id);
  sbx_free(session->task);
  sbx_free(session->router_url);
  sbx_free_secret(session->auth);
  sbx_free_secret(session->jwt);
  sbx_free_secret(session->router_secret);
  sbx_free(session);
}

/* ---- a GenericResult: how something has ended ------------------------------------------------ */

enum { RESULT_NONE, RESULT_SUCCESS };

static const char *result_name(uint64_t status) {
  static const char *const names[] = {"is not over",
                                      "ended",
                                      "failed",
                                      "was terminated",
                                      "reached the end of its lifetime",
                                      "could not be started",
                                      "failed inside of Modal",
                                      "was idle for too long",
                                      "was ended for want of memory"};
  return status < sizeof names / sizeof *names ? names[status] : "ended in a way that is not known";
}

static void say_result(sbx_err *err, int code, const char *what, sbx_slice result) {
  uint64_t status = 0;
  sbx_slice exception = {NULL, 0};
  sbx_pb_get_varint(result, 1, &status);
  sbx_pb_get_bytes(result, 2, &exception);
  sbx_err_set(err, code, "modal: %s %s", what, result_name(status));
  if (exception.len > 0) {
    sbx_err_append(err, ": ");
    sbx_err_append_remote(err, exception);
  }
  err->provider = "modal";
}

/* ---- open ----------------------------------------------------------------------------------- */

typedef struct open_op open_op;

/* One call of an open. */
typedef struct stage {
  const char *method;
  const char *verb;
  void (*write)(open_op *o, sbx_buf *message);
  void (*read)(open_op *o, sbx_slice message); /* goes on, or finishes */
  bool stream;
  bool once; /* it makes a sandbox */
} stage;

struct open_op {
  sbx_steps steps;
  const stage *at;
  sbx_repeat repeat;
  char *image;
  char *entry;   /* the last one of a build's log that was seen */
  char *builder; /* version of the image builder */
  char key[37];
  sbx_envelope decoder; /* of a build */
  sbx_buf result;
};

static open_op *open_of(sbx_steps *steps) {
  return (open_op *)(void *)steps;
}

static void release_open(sbx_steps *steps) {
  open_op *o = open_of(steps);
  sbx_free(o->image);
  sbx_free(o->entry);
  sbx_free(o->builder);
  sbx_envelope_deinit(&o->decoder);
  sbx_buf_deinit(&o->result);
}

static void call(sbx_steps *steps);

static void go_to(open_op *o, const stage *next) {
  o->at = next;
  o->repeat = (sbx_repeat){0};
  call(&o->steps);
}

static void fail_open(open_op *o, sbx_err *err) {
  if (o->steps.session->may_exist)
    err->no_effect = false;
  sbx_steps_finish(&o->steps, err);
}

static void fail_strange(open_op *o, const char *what) {
  sbx_err err;
  sbx__modal_strange(&err, o->at->verb, what);
  err.no_effect = !o->steps.session->may_exist;
  sbx_steps_finish(&o->steps, &err);
}

/* Takes an id that the answer has in this field. */
static bool take_id(open_op *o, char **to, sbx_slice message, uint32_t number) {
  sbx_slice id;
  sbx_err err;
  if (sbx_pb_get_bytes(message, number, &id) != SBX_OK || !sbx_remote_identity_is_id(id)) {
    fail_strange(o, "the answer has no id");
    return false;
  }
  if (sbx__modal_set(to, id, &err) == SBX_OK)
    return true;
  sbx_steps_finish(&o->steps, &err);
  return false;
}

static void put_text(sbx_buf *message, uint32_t number, const char *text) {
  if (text != NULL)
    sbx_pb_put_str(message, number, text);
}

static const stage app, environment, image, build, create, task;

static void finish_open(open_op *o) {
  o->steps.session->open = true;
  sbx_steps_finish(&o->steps, NULL);
}

/* ---- access */

static void on_access(sbx_op *op, void *arg) {
  open_op *o = arg;
  sbx_err err = op->err;
  o->steps.request = NULL;
  if (err.code != SBX_OK)
    fail_open(o, &err);
  else
    finish_open(o);
}

static void get_access(open_op *o) {
  sbx_session *session = o->steps.session;
  if (sbx__modal_has_access(session))
    finish_open(o);
  else
    sbx_steps_wait_for(&o->steps, sbx__modal_get_access(session, on_access, o));
}

/* ---- task */

static void write_task(open_op *o, sbx_buf *message) {
  sbx_pb_put_str(message, 1, o->steps.session->id);
}

static void read_task(open_op *o, sbx_slice message) {
  sbx_session *session = o->steps.session;
  sbx_slice id, result;
  sbx_err err;
  if (sbx_pb_get_bytes(message, 1, &id) != SBX_OK ||
      sbx_pb_get_bytes(message, 2, &result) != SBX_OK) {
    fail_strange(o, "the answer is no message");
  } else if (result.len > 0) {
    say_result(&err, SBX_ENOTFOUND, "the sandbox", result);
    fail_open(o, &err);
  } else if (id.len == 0) {
    sbx_steps_wait(&o->steps, TASK_PAUSE_MS, call);
  } else if (take_id(o, &session->task, message, 1)) {
    get_access(o);
  }
}

/* ---- create */

static void write_create(open_op *o, sbx_buf *message) {
  const sbx_session *session = o->steps.session;
  const sbx_config *config = session->config;
  sbx_pb_put_str(message, 1, session->app_id);
  size_t at = message->len;
  sbx_pb_put_str(message, 3, o->image);
  sbx_buf_append_slice(message, sbx_buf_slice(&config->definition));
  sbx_pb_wrap(message, 2, at);
  sbx_buf_append_slice(message, sbx_buf_slice(&config->tags));
  sbx_pb_put_pair(message, 4, sbx_slice_str(TAG), sbx_slice_str(session->tag));
}

static void read_create(open_op *o, sbx_slice message) {
  sbx_session *session = o->steps.session;
  sbx_slice id = {NULL, 0}, task_id = {NULL, 0}, access = {NULL, 0};
  sbx_err err = {0};
  if (sbx_pb_get_bytes(message, 1, &id) != SBX_OK ||
      sbx_pb_get_bytes(message, 3, &task_id) != SBX_OK ||
      sbx_pb_get_bytes(message, 5, &access) != SBX_OK) {
    fail_strange(o, "the answer is no message");
    return;
  }
  if (sbx_remote_identity_take(&session->id, id, "modal", &err) == SBX_OK && access.len > 0)
    sbx__modal_take_access(session, access, create.verb, &err);
  if (err.code != SBX_OK)
    fail_open(o, &err);
  else if (task_id.len == 0)
    go_to(o, &task);
  else if (take_id(o, &session->task, message, 3))
    get_access(o);
}

/* ---- image */

/* The status of a result decides; without one the build goes on. */
static void take_result(open_op *o, sbx_slice result) {
  uint64_t status = RESULT_NONE;
  sbx_err err;
  if (result.len > 0 && sbx_pb_get_varint(result, 1, &status) != SBX_OK) {
    fail_strange(o, "the answer is no message");
  } else if (status == RESULT_NONE) {
    sbx_buf_truncate(&o->result, 0);
    go_to(o, &build);
  } else if (status == RESULT_SUCCESS) {
    go_to(o, &create);
  } else {
    say_result(&err, SBX_EINVAL, "the image's build", result);
    sbx_err_append(&err, "; is the name of the image right?");
    err.no_effect = true;
    fail_open(o, &err);
  }
}

static void write_image(open_op *o, sbx_buf *message) {
  const sbx_config *config = o->steps.session->config;
  char command[MAX_NAME + 8];
  snprintf(command, sizeof command, "FROM %s", config->image);
  size_t at = message->len;
  sbx_pb_put_str(message, 6, command);
  sbx_pb_wrap(message, 2, at);
  sbx_pb_put_str(message, 4, o->steps.session->app_id);
  put_text(message, 9, o->builder);
}

static void read_image(open_op *o, sbx_slice message) {
  sbx_slice result;
  if (!take_id(o, &o->image, message, 1))
    return;
  if (sbx_pb_get_bytes(message, 2, &result) != SBX_OK)
    fail_strange(o, "the answer is no message");
  else
    take_result(o, result);
}

static void write_build(open_op *o, sbx_buf *message) {
  sbx_pb_put_str(message, 1, o->image);
  sbx_pb_put_float(message, 2, BUILD_S);
  put_text(message, 3, o->entry);
}

/* Its log is not kept. */
static int on_build(void *arg, bool is_end, sbx_slice payload, sbx_err *err) {
  open_op *o = arg;
  sbx_slice result, entry;
  (void)is_end;
  if (sbx_pb_get_bytes(payload, 1, &result) != SBX_OK ||
      sbx_pb_get_bytes(payload, 3, &entry) != SBX_OK)
    return sbx_err_set(err, SBX_EPROTO, "the build's log is no message");
  if (entry.len > 0 && entry.len <= MAX_NAME && sbx__modal_set(&o->entry, entry, err) != SBX_OK)
    return err->code;
  if (result.len > 0) {
    sbx_buf_truncate(&o->result, 0);
    return sbx_buf_append_slice(&o->result, result);
  }
  return SBX_OK;
}

static void read_build(open_op *o, sbx_slice message) {
  (void)message;
  take_result(o, sbx_buf_slice(&o->result));
}

/* ---- environment and app */

static void write_environment(open_op *o, sbx_buf *message) {
  put_text(message, 1, o->steps.session->config->environment);
}

static void read_environment(open_op *o, sbx_slice message) {
  sbx_slice metadata, settings, version;
  sbx_err err;
  if (sbx_pb_get_bytes(message, 2, &metadata) != SBX_OK ||
      sbx_pb_get_bytes(metadata, 2, &settings) != SBX_OK ||
      sbx_pb_get_bytes(settings, 1, &version) != SBX_OK || version.len > MAX_NAME)
    fail_strange(o, "the answer is no message");
  else if (version.len > 0 && sbx__modal_set(&o->builder, version, &err) != SBX_OK)
    sbx_steps_finish(&o->steps, &err);
  else
    go_to(o, &image);
}

static void write_app(open_op *o, sbx_buf *message) {
  const sbx_config *config = o->steps.session->config;
  sbx_pb_put_str(message, 1, config->app);
  put_text(message, 2, config->environment);
  sbx_pb_put_varint(message, 3, CREATE);
}

static void read_app(open_op *o, sbx_slice message) {
  const sbx_config *config = o->steps.session->config;
  if (!take_id(o, &o->steps.session->app_id, message, 1))
    return;
  if (config->image_id != NULL)
    go_to(o, &create);
  else
    go_to(o, o->builder != NULL ? &image : &environment);
}

static const stage app = {"AppGetOrCreate", "look for the app", write_app, read_app, false, false};
static const stage environment = {"EnvironmentGetOrCreate",
                                  "look for the environment",
                                  write_environment,
                                  read_environment,
                                  false,
                                  false};
static const stage image = {
    "ImageGetOrCreate", "look for the image", write_image, read_image, false, false};
static const stage build = {
    "ImageJoinStreaming", "build the image", write_build, read_build, true, false};
static const stage create = {
    "SandboxCreateV2", "create the sandbox", write_create, read_create, false, true};
static const stage task = {
    "SandboxGetTaskIdV2", "wait for the sandbox to start", write_task, read_task, false, false};

/* ---- one stage after the other */

static void on_reply(sbx_steps *steps, sbx_http *reply) {
  open_op *o = open_of(steps);
  sbx_session *session = steps->session;
  const stage *at = o->at;
  sbx_slice message = {NULL, 0};
  sbx_err err = {0};
  int rc = at->stream ? sbx__modal_check(&err, SBX__MODAL_CONTROL, reply, at->verb)
                      : sbx__modal_message(&message, SBX__MODAL_CONTROL, reply, at->verb, &err);
  if (at->once && rc != SBX_OK && err.no_effect)
    session->may_exist = false;
  if (rc == SBX_OK) {
    at->read(o, message);
    return;
  }
  if (!at->once)
    err.no_effect = true; /* nothing that has to be paid for */
  if (at->once || !sbx_steps_repeat(steps, &o->repeat, &passing, &err, call))
    fail_open(o, &err);
}

static int on_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  return sbx_envelope_feed(&((open_op *)arg)->decoder, bytes, err);
}

static void call(sbx_steps *steps) {
  open_op *o = open_of(steps);
  const stage *at = o->at;
  sbx_session *session = steps->session;
  sbx_buf message;
  sbx_buf_init(&message, MAX_MESSAGE);
  at->write(o, &message);
  sbx_envelope_deinit(&o->decoder);
  sbx_envelope_init_plain(&o->decoder, SBX__MODAL_MESSAGE_MAX, on_build, o);
  session->may_exist = session->may_exist || at->once;
  const sbx__modal_call it = {
      .method = at == &task && sbx__modal_is_old(session->id) ? "SandboxGetTaskId" : at->method,
      .message = &message,
      .repeatable = !at->once,
      .timeout_ms = at->once ? 0 : SBX__MODAL_CALL_MS + (at->stream ? BUILD_S * 1000 : 0),
      .key = at->stream ? NULL : o->key,
      .on_bytes = at->stream ? on_bytes : NULL,
      .consumer = o,
  };
  sbx__modal_send(steps, &it, on_reply);
  if (message.ptr != NULL)
    sbx_wipe(message.ptr, message.len); /* variables may be secrets */
  sbx_buf_deinit(&message);
}

static void on_authorized(sbx_op *op, void *arg) {
  open_op *o = arg;
  sbx_err err = op->err;
  o->steps.request = NULL;
  if (err.code != SBX_OK)
    fail_open(o, &err);
  else
    go_to(o, o->steps.session->config->attach != NULL ? &task : &app);
}

static int prepare(open_op *o, sbx_err *err) {
  sbx_session *session = o->steps.session;
  const sbx_config *config = session->config;
  int rc = config->keyless ? sbx_err_set(err, SBX_EKEY, "modal: " SBX__MODAL_NO_KEY)
                           : sbx_remote_tag_make(session->tag, err);
  if (rc == SBX_OK && config->attach != NULL)
    rc = sbx_remote_identity_take(&session->id, sbx_slice_str(config->attach), "modal", err);
  if (rc == SBX_OK && config->image_id != NULL)
    rc = sbx__modal_set(&o->image, sbx_slice_str(config->image_id), err);
  if (rc == SBX_OK && config->builder != NULL)
    rc = sbx__modal_set(&o->builder, sbx_slice_str(config->builder), err);
  const char *tag = session->tag;
  snprintf(o->key, sizeof o->key, "%.8s-%.4s-4%.3s-a%.3s-%.12s", tag, tag + 8, tag + 13, tag + 17,
           tag + 20);
  return rc;
}

sbx_op *sbx__modal_open(sbx_session *session, sbx_op_done done, void *arg) {
  open_op *o = sbx_steps_new(sizeof *o, session, session->config->loop, done, arg);
  sbx_err err;
  if (o == NULL)
    return NULL;
  o->steps.release = release_open;
  sbx_envelope_init_plain(&o->decoder, SBX__MODAL_MESSAGE_MAX, on_build, o);
  sbx_buf_init(&o->result, MAX_MESSAGE);
  if (prepare(o, &err) != SBX_OK)
    sbx_steps_finish(&o->steps, &err);
  else
    sbx_steps_wait_for(&o->steps, sbx__modal_authorize(session, on_authorized, o));
  return &o->steps.op;
}

/* ---- close ---------------------------------------------------------------------------------- */

/* A call of a close, for which there may have to be a token first. */
static void on_close_authorized(sbx_op *op, void *arg);

static void send_closing(sbx_steps *steps) {
  sbx_session *session = steps->session;
  const sbx_config *config = session->config;
  const char *id = session->closing_id;
  sbx_buf message;
  if (!sbx__modal_is_authorized(session)) {
    sbx_steps_wait_for(steps, sbx__modal_authorize(session, on_close_authorized, steps));
    return;
  }
  sbx_buf_init(&message, 4096);
  if (id != NULL) {
    sbx_pb_put_str(&message, 1, id);
  } else {
    put_text(&message, 1, session->app_id);
    put_text(&message, 3, config->environment);
    sbx_pb_put_pair(&message, 5, sbx_slice_str(TAG), sbx_slice_str(session->tag));
  }
  const char *terminate =
      id != NULL && sbx__modal_is_old(id) ? "SandboxTerminate" : "SandboxTerminateV2";
  const sbx__modal_call it = {.method = id != NULL ? terminate : "SandboxListV2",
                              .message = &message,
                              .repeatable = true,
                              .timeout_ms = SBX__MODAL_CALL_MS};
  sbx__modal_send(steps, &it, session->closing);
  sbx_buf_deinit(&message);
}

static void on_close_authorized(sbx_op *op, void *arg) {
  sbx_steps *steps = arg;
  steps->request = NULL;
  if (op->err.code != SBX_OK)
    sbx_steps_finish(steps, &op->err);
  else
    send_closing(steps);
}

static void find(sbx_steps *steps, sbx_steps_reply on_found) {
  sbx_session *session = steps->session;
  session->closing_id = NULL;
  session->closing = on_found;
  send_closing(steps);
}

/* Whether one of a sandbox's tags is the session's. */
static bool has_tag(const sbx_session *session, sbx_slice about) {
  sbx_pb_field field;
  sbx_slice name, value;
  while (sbx_pb_next(&about, &field)) {
    if (field.number == 6 && field.type == SBX_PB_BYTES &&
        sbx_pb_get_bytes(field.bytes, 1, &name) == SBX_OK && sbx_slice_eq_str(name, TAG) &&
        sbx_pb_get_bytes(field.bytes, 2, &value) == SBX_OK && sbx_slice_eq_str(value, session->tag))
      return true;
  }
  return false;
}

static int found(sbx_session *session, const sbx_http *reply, char **id, sbx_err *err) {
  static const char verb[] = "look for a sandbox whose creation was not answered";
  sbx_slice message;
  sbx_pb_field field;
  int rc = sbx__modal_message(&message, SBX__MODAL_CONTROL, reply, verb, err);
  while (rc == SBX_OK && *id == NULL && sbx_pb_next(&message, &field)) {
    sbx_slice said;
    if (field.number == 1 && field.type == SBX_PB_BYTES && has_tag(session, field.bytes) &&
        sbx_pb_get_bytes(field.bytes, 1, &said) == SBX_OK)
      rc = sbx_remote_identity_take(id, said, "modal", err);
  }
  return rc == SBX_ENOTFOUND ? SBX_OK : rc;
}

static void remove_it(sbx_steps *steps, const char *id, sbx_steps_reply on_removed) {
  sbx_session *session = steps->session;
  session->closing_id = id;
  session->closing = on_removed;
  send_closing(steps);
}

static int removed(const sbx_http *reply, sbx_err *err) {
  sbx_slice message;
  return sbx__modal_message(&message, SBX__MODAL_CONTROL, reply, "terminate the sandbox", err);
}

static void gone(sbx_session *session) {
  session->open = false;
}

static const sbx_remote_tag_verbs verbs = {
    .look_again_ms = 1000,
    .find = find,
    .found = found,
    .remove = remove_it,
    .removed = removed,
    .gone = gone,
};

sbx_op *sbx__modal_close(sbx_session *session, sbx_op_done done, void *arg) {
  return sbx_remote_tag_remove(session, session->config->loop, &verbs, session->id,
                               session->may_exist, done, arg);
}

/* ---- probe ---------------------------------------------------------------------------------- */

static void on_probed(sbx_steps *steps, sbx_http *reply) {
  sbx_slice message, result;
  uint64_t status = 0;
  sbx_err err;
  int rc = sbx__modal_message(&message, SBX__MODAL_CONTROL, reply, "look at the sandbox", &err);
  if (rc == SBX_ENOTFOUND)
    sbx_remote_probe_tell(steps, SBX_GONE);
  else if (rc == SBX_OK && sbx_pb_get_bytes(message, 1, &result) == SBX_OK &&
           sbx_pb_get_varint(result, 1, &status) == SBX_OK)
    sbx_remote_probe_tell(steps, status == RESULT_NONE ? SBX_ALIVE : SBX_GONE);
  sbx_steps_finish(steps, NULL);
}

static void look(sbx_steps *steps) {
  const char *id = steps->session->id;
  sbx_buf message;
  sbx_buf_init(&message, 1024);
  sbx_pb_put_str(&message, 1, id);
  sbx_pb_put_float(&message, 2, 0);
  const sbx__modal_call it = {.method = sbx__modal_is_old(id) ? "SandboxWait" : "SandboxWaitV2",
                              .message = &message,
                              .repeatable = true};
  sbx__modal_send(steps, &it, on_probed);
  sbx_buf_deinit(&message);
}

static void on_probe_authorized(sbx_op *op, void *arg) {
  sbx_steps *steps = arg;
  steps->request = NULL;
  if (op->err.code != SBX_OK)
    sbx_steps_finish(steps, NULL);
  else
    look(steps);
}

sbx_op *sbx__modal_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg) {
  sbx_steps *probe = sbx_remote_probe_new(session, session->config->loop, out, done, arg);
  if (probe == NULL)
    return NULL;
  if (sbx__modal_is_authorized(session))
    look(probe);
  else
    sbx_steps_wait_for(probe, sbx__modal_authorize(session, on_probe_authorized, probe));
  return &probe->op;
}
