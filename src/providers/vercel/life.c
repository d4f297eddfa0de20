/* life.c - creates a sandbox, or attaches to one; looks whether its session lives, prolongs it, and
 * deletes it.
 *
 *   create or look up -> poll while it is pending
 *
 * A sandbox whose create was not answered is looked for by its name; with a name of the user's
 * choice it may be somebody else's, and is deleted only when it carries our tag.
 *
 * Invariant: from the moment a create may have left until it was refused, session->may_exist is
 * set, and close then looks for it. */
#include "core/alloc.h"
#include "core/err.h"
#include "providers/remote/identity.h"
#include "providers/remote/probe.h"
#include "providers/vercel/vercel.h"

#include <string.h>

enum { POLL_MS = 250, MAX_FAILED_POLLS = 5, MAX_PATH_BYTES = 4096 };

/* ---- session -------------------------------------------------------------------------------- */

sbx_session *sbx__vercel_session_new(sbx_config *config) {
  sbx_session *session = sbx_calloc(1, sizeof *session);
  if (session != NULL)
    session->config = config;
  return session;
}

void sbx__vercel_session_free(sbx_session *session) {
  if (session == NULL)
    return;
  sbx_free(session->name);
  sbx_free(session->id);
  sbx_free(session->dir);
  sbx_free(session);
}

/* ---- what answers say ----------------------------------------------------------------------- */

typedef enum state { RUNNING, PENDING, OVER, UNKNOWN } state;

/* Also while a session is being stopped or saved nothing can be done in it any more. */
static state state_of(const sbx_json *about) {
  static const struct {
    const char *name;
    state state;
  } states[] = {
      {"running", RUNNING}, {"pending", PENDING}, {"stopping", OVER},     {"stopped", OVER},
      {"failed", OVER},     {"aborted", OVER},    {"snapshotting", OVER},
  };
  sbx_slice name;
  for (size_t i = 0;
       sbx_json_string(sbx_json_get(about, "status"), &name) && i < sizeof states / sizeof *states;
       i++) {
    if (sbx_slice_eq_str(name, states[i].name))
      return states[i].state;
  }
  return UNKNOWN;
}

static bool is_named(const sbx_json *answer, const char *name) {
  sbx_slice said;
  return sbx_json_string(sbx_json_get(sbx_json_get(answer, "sandbox"), "name"), &said) &&
         sbx_slice_eq_str(said, name);
}

static int set_text(char **to, sbx_slice text, sbx_err *err) {
  char *copy = sbx_strndup(text.ptr, text.len);
  if (copy == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  sbx_free(*to);
  *to = copy;
  return SBX_OK;
}

/* Takes what an answer's "session" says: which one it is, and where its commands run. */
static int take_session(sbx_session *session, const sbx_json *about, sbx_err *err) {
  sbx_slice id = {NULL, 0}, dir;
  sbx_json_string(sbx_json_get(about, "id"), &id);
  int rc = sbx_remote_identity_take(&session->id, id, "vercel", err);
  if (rc == SBX_OK && (!sbx_json_string(sbx_json_get(about, "cwd"), &dir) || dir.len == 0 ||
                       dir.len > MAX_PATH_BYTES || dir.ptr[0] != '/' || sbx_slice_has_nul(dir)))
    rc = sbx_err_set(err, SBX_EPROTO, "vercel: the answer does not say the working directory");
  return rc == SBX_OK ? set_text(&session->dir, dir, err) : rc;
}

/* ---- open ----------------------------------------------------------------------------------- */

typedef struct open_op {
  sbx_steps steps;
  unsigned failures; /* of polls, in a row */
} open_op;

static void poll(sbx_steps *steps);

static void fail_start(sbx_steps *steps, const sbx_json *about) {
  sbx_slice name = sbx_slice_str("unknown");
  sbx_err err;
  sbx_json_string(sbx_json_get(about, "status"), &name);
  sbx_err_set(&err, SBX_EPROVIDER, "vercel: the sandbox does not start; its state is ");
  sbx_err_append_remote(&err, name);
  err.provider = "vercel";
  sbx_steps_finish(steps, &err);
}

static void go_on(sbx_steps *steps, const sbx_json *about) {
  sbx_session *session = steps->session;
  sbx_err err;
  if (take_session(session, about, &err) != SBX_OK) {
    sbx_steps_finish(steps, &err);
    return;
  }
  switch (state_of(about)) {
  case RUNNING:
    session->open = true;
    sbx_steps_finish(steps, NULL);
    return;
  case OVER:
    fail_start(steps, about);
    return;
  case PENDING:
  case UNKNOWN:
    sbx_steps_wait(steps, POLL_MS, poll);
    return;
  }
}

static bool is_passing(const sbx_http *reply, int code) {
  return code == SBX_ENET || code == SBX_ERATE ||
         (reply->op.err.code == SBX_OK && reply->status >= 500);
}

static void on_poll(sbx_steps *steps, sbx_http *reply) {
  open_op *o = (open_op *)(void *)steps;
  sbx_json_doc *doc = NULL;
  sbx_err err;
  int rc = sbx_remote_exchange_json(&doc, &sbx__vercel_api, reply, "wait for the sandbox to start",
                                    &err);
  if (rc == SBX_OK) {
    o->failures = 0;
    go_on(steps, sbx_json_get(sbx_json_root(doc), "session"));
  } else if (is_passing(reply, rc) && ++o->failures < MAX_FAILED_POLLS) {
    sbx_steps_wait(steps, POLL_MS, poll);
  } else {
    err.no_effect = false; /* this request had none, but the create before it */
    sbx_steps_finish(steps, &err);
  }
  sbx_json_free(doc, true);
}

static void poll(sbx_steps *steps) {
  sbx__vercel_to_session(steps, "", &sbx__vercel_question, on_poll);
}

static void on_opened(sbx_steps *steps, sbx_http *reply) {
  sbx_session *session = steps->session;
  const char *verb =
      session->config->attach != NULL ? "look for the sandbox" : "create the sandbox";
  sbx_json_doc *doc = NULL;
  sbx_err err;
  int rc = sbx_remote_exchange_json(&doc, &sbx__vercel_api, reply, verb, &err);
  /* A web page in place of a success does not come from what makes sandboxes. */
  bool page = reply->status == 200 && sbx_remote_exchange_is_page(reply);
  bool made = rc == SBX_OK || !(err.no_effect || page);
  if (rc == SBX_OK && !is_named(sbx_json_root(doc), session->name))
    rc =
        sbx_err_set(&err, SBX_EPROTO, "vercel: %s: the answer is about another sandbox than \"%s\"",
                    verb, session->name);
  session->may_exist = made;
  if (rc == SBX_OK)
    go_on(steps, sbx_json_get(sbx_json_root(doc), "session"));
  else
    sbx_steps_finish(steps, &err);
  sbx_json_free(doc, true);
}

static int name_session(sbx_session *session, sbx_err *err) {
  const sbx_config *config = session->config;
  char ours[SBX_REMOTE_TAG_LEN + 16] = "cloudsandbox-";
  int rc = sbx_remote_tag_make(session->tag, err);
  if (rc != SBX_OK || session->name != NULL)
    return rc;
  memcpy(ours + strlen(ours), session->tag, sizeof session->tag);
  const char *name = config->attach != NULL ? config->attach : config->name;
  return set_text(&session->name, sbx_slice_str(name != NULL ? name : ours), err);
}

static void create(sbx_steps *steps) {
  sbx_session *session = steps->session;
  sbx_buf json;
  sbx_buf_init(&json, (size_t)8 << 20);
  /* The prepared text ends inside of the tags. */
  sbx_buf_append_str(&json, session->config->create_body);
  sbx_json_out out = {&json, json.len > 0 && json.ptr[json.len - 1] != '{'};
  sbx_json_put_text(&out, "cloudsandbox", sbx_slice_str(session->tag));
  sbx_json_end_object(&out);
  sbx_json_put_text(&out, "name", sbx_slice_str(session->name));
  sbx_json_end_object(&out);
  session->may_exist = true;
  sbx__vercel_create(steps, &json, on_opened);
}

sbx_op *sbx__vercel_open(sbx_session *session, sbx_op_done done, void *arg) {
  open_op *o = sbx_steps_new(sizeof *o, session, session->config->loop, done, arg);
  sbx_err err;
  if (o == NULL)
    return NULL;
  if (session->config->keyless) {
    sbx_err_set(&err, SBX_EKEY, "vercel: " SBX__VERCEL_NO_KEY);
    sbx_steps_finish(&o->steps, &err);
  } else if (name_session(session, &err) != SBX_OK) {
    sbx_steps_finish(&o->steps, &err);
  } else if (session->config->attach != NULL) {
    sbx__vercel_to_sandbox(&o->steps, "GET", session->name, "true", on_opened);
  } else {
    create(&o->steps);
  }
  return &o->steps.op;
}

/* ---- close ---------------------------------------------------------------------------------- */

static void find(sbx_steps *steps, sbx_steps_reply on_reply) {
  sbx__vercel_to_sandbox(steps, "GET", steps->session->name, "false", on_reply);
}

static int found(sbx_session *session, const sbx_http *reply, char **id, sbx_err *err) {
  sbx_json_doc *doc = NULL;
  sbx_err ignored;
  int rc = sbx_remote_exchange_json(&doc, &sbx__vercel_api, reply,
                                    "look for a sandbox whose creation was not answered", err);
  const sbx_json *answer = rc == SBX_OK ? sbx_json_root(doc) : NULL;
  bool ours = session->config->name == NULL ||
              sbx_remote_tag_is_in(sbx_json_get(sbx_json_get(answer, "sandbox"), "tags"),
                                   "cloudsandbox", session->tag);
  if (is_named(answer, session->name) && ours) {
    take_session(session, sbx_json_get(answer, "session"), &ignored);
    rc = set_text(id, sbx_slice_str(session->name), err);
  }
  sbx_json_free(doc, true);
  return rc == SBX_ENOTFOUND ? SBX_OK : rc;
}

/* Whatever came of the stop, the delete says whether it is gone. */
static void on_stopped(sbx_steps *steps, sbx_http *reply) {
  (void)reply;
  sbx__vercel_to_sandbox(steps, "DELETE", steps->session->name, NULL, steps->session->removed);
}

static void remove_it(sbx_steps *steps, const char *name, sbx_steps_reply on_reply) {
  sbx_session *session = steps->session;
  (void)name;
  session->removed = on_reply;
  if (session->id != NULL)
    sbx__vercel_to_session(steps, "/stop",
                           &(sbx_http_request){.method = "POST", .repeatable = true}, on_stopped);
  else
    on_stopped(steps, NULL);
}

static int removed(const sbx_http *reply, sbx_err *err) {
  return sbx_remote_exchange_check(err, &sbx__vercel_api, reply, "delete the sandbox");
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

sbx_op *sbx__vercel_close(sbx_session *session, sbx_op_done done, void *arg) {
  return sbx_remote_tag_remove(session, session->config->loop, &verbs,
                               session->id != NULL ? session->name : NULL, session->may_exist, done,
                               arg);
}

/* ---- probe ---------------------------------------------------------------------------------- */

static void on_remains_removed(sbx_steps *steps, sbx_http *reply) {
  (void)reply;
  sbx_steps_finish(steps, NULL);
}

static void on_probed(sbx_steps *steps, sbx_http *reply) {
  sbx_session *session = steps->session;
  sbx_json_doc *doc = NULL;
  sbx_err err;
  int rc = sbx_remote_exchange_json(&doc, &sbx__vercel_api, reply, "look at the sandbox", &err);
  const sbx_json *about = rc == SBX_OK ? sbx_json_get(sbx_json_root(doc), "session") : NULL;
  state now =
      about != NULL && take_session(session, about, &err) == SBX_OK ? state_of(about) : UNKNOWN;
  if (now == RUNNING)
    sbx_remote_probe_tell(steps, SBX_ALIVE);
  else if (now == OVER || rc == SBX_ENOTFOUND)
    sbx_remote_probe_tell(steps, SBX_GONE);
  sbx_json_free(doc, true);
  /* Its files are lost; it is of no use any more, but still there. */
  if (now == OVER && session->config->owned)
    sbx__vercel_to_sandbox(steps, "DELETE", session->name, NULL, on_remains_removed);
  else
    sbx_steps_finish(steps, NULL);
}

sbx_op *sbx__vercel_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg) {
  sbx_steps *probe = sbx_remote_probe_new(session, session->config->loop, out, done, arg);
  if (probe == NULL)
    return NULL;
  sbx__vercel_to_session(probe, "", &sbx__vercel_question, on_probed);
  return &probe->op;
}

/* ---- lifetime ------------------------------------------------------------------------------- */

static void on_prolonged(sbx_steps *steps, sbx_http *reply) {
  sbx_err err = {0};
  sbx_remote_exchange_check(&err, &sbx__vercel_inside, reply, "prolong the sandbox's life");
  sbx_steps_finish(steps, &err);
}

sbx_op *sbx__vercel_control(sbx_session *session, sbx_control control, uint64_t seconds,
                            sbx_op_done done, void *arg) {
  sbx_steps *steps = sbx_steps_new(sizeof *steps, session, session->config->loop, done, arg);
  sbx_buf body;
  (void)control; /* the only one of its capabilities */
  if (steps == NULL)
    return NULL;
  sbx_buf_init(&body, 64);
  sbx_buf_appendf(&body, "{\"duration\":%llu000}", (unsigned long long)seconds);
  /* It adds up, so it is sent once. */
  sbx__vercel_to_session(steps, "/extend-timeout",
                         &(sbx_http_request){.method = "POST", .take_body = &body}, on_prolonged);
  return &steps->op;
}
