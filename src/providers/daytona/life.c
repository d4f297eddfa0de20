/* life.c - creates a sandbox, attaches to one, or starts one again that has stopped; deletes it;
 * and looks whether it lives.
 *
 *   create or look up -> poll until started -> where is the toolbox? -> working directory
 *
 * One whose create was not answered is looked for by its name, and deleted only when it carries our
 * tag: with a name of the user's choice it may be somebody else's.
 *
 * Invariant: from the moment a create may have left until it was refused, session->may_exist is
 * set, and close then looks for it. */
#include "providers/daytona/daytona.h"

#include "core/err.h"
#include "providers/remote/identity.h"
#include "providers/remote/probe.h"

#include <string.h>

enum {
  POLL_MS = 100,
  MAX_POLL_MS = 1000,
  QUICK_POLLS = 50, /* at POLL_MS; then each pause is a tenth longer */
  MAX_FAILED_POLLS = 5,
  MAX_TOOLBOX_TRIES = 20,
  TOOLBOX_TRY_MS = 150,
};

typedef struct open_op {
  sbx_steps steps;
  unsigned polls;
  unsigned failures; /* in a row */
  uint64_t pause_ms;
  bool may_start; /* it exists, and is only to be started */
  bool start_asked;
  unsigned tries; /* of the toolbox */
} open_op;

static open_op *open_of(sbx_steps *steps) {
  return (open_op *)(void *)steps;
}

/* ---- the toolbox ---------------------------------------------------------------------------- */

static void ask_directory(sbx_steps *steps);

static bool is_not_ready(const sbx_http *reply, int code) {
  return code == SBX_ECONFLICT || code == SBX_ENET ||
         (reply->op.err.code == SBX_OK && reply->status >= 502 && reply->status <= 504);
}

static void on_directory(sbx_steps *steps, sbx_http *reply) {
  open_op *o = open_of(steps);
  sbx_err err;
  int rc = sbx__daytona_take_dir(&steps->session->dir, reply,
                                 "ask the sandbox for its working directory", &err);
  /* Old ones do not tell; relative paths begin at the right place there all the same. */
  if (rc == SBX_OK || sbx__daytona_no_route(reply)) {
    steps->session->open = true;
    sbx_steps_finish(steps, NULL);
  } else if (is_not_ready(reply, rc) && ++o->tries < MAX_TOOLBOX_TRIES) {
    /* The container may be up a little before what runs in it. */
    sbx_steps_wait(steps, TOOLBOX_TRY_MS, ask_directory);
  } else {
    /* This request had no effect, but the create before it: that must not be sent once more. */
    err.no_effect = false;
    sbx_steps_finish(steps, &err);
  }
}

static void ask_directory(sbx_steps *steps) {
  sbx__daytona_to_tool(steps, "/work-dir", sbx_slice_of(NULL, 0), &sbx__daytona_question,
                       on_directory);
}

/* Takes the toolbox's address, which the reply names in the member `name`, and goes on with it.
 * False when the reply names none. */
static bool go_to(sbx_steps *steps, const sbx_http *reply, const char *name) {
  sbx_json_doc *doc = NULL;
  sbx_err err;
  sbx_slice base;
  bool named = sbx_remote_exchange_json(&doc, &sbx__daytona_api, reply, "look for the toolbox",
                                        &err) == SBX_OK &&
               sbx_json_string(sbx_json_get(sbx_json_root(doc), name), &base) && base.len > 0;
  int rc = named ? sbx__daytona_set_toolbox(steps->session, base, "", &err) : SBX_OK;
  sbx_json_free(doc, false);
  if (rc != SBX_OK)
    sbx_steps_finish(steps, &err);
  else if (named)
    ask_directory(steps);
  return named;
}

/* The last resort, of servers without a proxy, is the way through the API. */
static void on_public_config(sbx_steps *steps, sbx_http *reply) {
  sbx_slice api = sbx_slice_str(steps->session->config->api_url);
  sbx_err err;
  if (go_to(steps, reply, "proxyToolboxUrl"))
    return;
  if (sbx__daytona_set_toolbox(steps->session, api, "/toolbox", &err) == SBX_OK)
    ask_directory(steps);
  else
    sbx_steps_finish(steps, &err);
}

static void on_toolbox_url(sbx_steps *steps, sbx_http *reply) {
  if (!go_to(steps, reply, "url"))
    sbx__daytona_to_api(steps, "/config", &sbx__daytona_question, on_public_config);
}

static void find_toolbox(open_op *o) {
  const sbx_session *session = o->steps.session;
  if (session->toolbox != NULL)
    ask_directory(&o->steps);
  else
    sbx__daytona_about(&o->steps, "GET", session->id, "/toolbox-proxy-url", on_toolbox_url);
}

/* ---- until it has started ------------------------------------------------------------------- */

static void on_start_asked(sbx_steps *steps, sbx_http *reply);

static void poll(sbx_steps *steps);

static void poll_later(open_op *o) {
  o->polls++;
  if (o->polls <= 1)
    o->pause_ms = POLL_MS;
  else if (o->polls > QUICK_POLLS && o->pause_ms < MAX_POLL_MS)
    o->pause_ms += o->pause_ms / 10;
  sbx_steps_wait(&o->steps, o->pause_ms, poll);
}

/* `missing`: the API knows it no more; one that was open is lost then. */
static void finish_failed(open_op *o, sbx_err *err, bool missing) {
  if (missing && o->steps.session->open)
    err->code = SBX_ELOST;
  sbx_steps_finish(&o->steps, err);
}

static void fail_start(open_op *o, const sbx_json *sandbox) {
  sbx_slice state = sbx_slice_str("unknown"), reason;
  sbx_err err;
  sbx_json_string(sbx_json_get(sandbox, "state"), &state);
  sbx_err_set(&err, SBX_EPROVIDER, "daytona: the sandbox does not start; its state is ");
  sbx_err_append_remote(&err, state);
  if (sbx_json_string(sbx_json_get(sandbox, "errorReason"), &reason) && reason.len > 0) {
    sbx_err_append(&err, ": ");
    sbx_err_append_remote(&err, reason);
  }
  err.provider = "daytona";
  finish_failed(o, &err, sbx__daytona_state_of(sandbox) == SBX__DAYTONA_GONE);
}

static void ask_start(open_op *o) {
  o->start_asked = true;
  sbx__daytona_about(&o->steps, "POST", o->steps.session->id, "/start", on_start_asked);
}

/* One more look at it brought this. */
static void go_on(open_op *o, const sbx_json *sandbox) {
  sbx_err err;
  if (sbx__daytona_take(o->steps.session, sandbox, &err) != SBX_OK) {
    sbx_steps_finish(&o->steps, &err);
    return;
  }
  switch (sbx__daytona_state_of(sandbox)) {
  case SBX__DAYTONA_STARTED:
    find_toolbox(o);
    return;
  case SBX__DAYTONA_HALTED:
    if (o->may_start && !o->start_asked)
      ask_start(o);
    else if (o->start_asked && o->polls < QUICK_POLLS)
      poll_later(o); /* looks may be answered from a cache */
    else
      fail_start(o, sandbox);
    return;
  case SBX__DAYTONA_FAILED:
  case SBX__DAYTONA_GONE:
    fail_start(o, sandbox);
    return;
  case SBX__DAYTONA_HALTING:
  case SBX__DAYTONA_CHANGING:
    poll_later(o);
    return;
  }
}

static bool is_passing(const sbx_http *reply, int code) {
  bool answered = reply->op.err.code == SBX_OK;
  bool foreign = answered && reply->status == 404 && code == SBX_EPROTO;
  return code == SBX_ENET || code == SBX_ERATE || foreign || (answered && reply->status >= 500);
}

static void on_poll(sbx_steps *steps, sbx_http *reply) {
  open_op *o = open_of(steps);
  const sbx_session *session = steps->session;
  sbx_json_doc *doc = NULL;
  sbx_err err;
  int rc = sbx_remote_exchange_json(&doc, &sbx__daytona_api, reply, "wait for the sandbox to start",
                                    &err);
  const sbx_json *sandbox = rc == SBX_OK ? sbx_json_root(doc) : NULL;
  if (rc == SBX_OK && session->id == NULL &&
      !sbx__daytona_is_named(sandbox, session->config->attach))
    rc = sbx_err_set(&err, SBX_EPROTO, "daytona: the answer is about another sandbox than \"%s\"",
                     session->config->attach);
  if (rc == SBX_OK) {
    o->failures = 0;
    go_on(o, sandbox);
  } else if (is_passing(reply, rc) && ++o->failures < MAX_FAILED_POLLS) {
    poll_later(o);
  } else {
    err.no_effect = false;
    finish_failed(o, &err, rc == SBX_ENOTFOUND);
  }
  sbx_json_free(doc, true);
}

static void poll(sbx_steps *steps) {
  const sbx_session *session = steps->session;
  const char *id = session->id != NULL ? session->id : session->config->attach;
  sbx__daytona_about(steps, "GET", id, "", on_poll);
}

static void on_start_asked(sbx_steps *steps, sbx_http *reply) {
  open_op *o = open_of(steps);
  sbx_err err;
  int rc = sbx_remote_exchange_check(&err, &sbx__daytona_api, reply, "start the sandbox");
  if (rc == SBX_OK) {
    o->polls = 0; /* what it took to stop is no part of the time to start */
  } else if (rc == SBX_ECONFLICT) {
    o->start_asked = false; /* it is still changing: this start does not count */
  } else {
    finish_failed(o, &err, rc == SBX_ENOTFOUND);
    return;
  }
  poll_later(o);
}

/* ---- create --------------------------------------------------------------------------------- */

static void on_created(sbx_steps *steps, sbx_http *reply) {
  open_op *o = open_of(steps);
  sbx_session *session = steps->session;
  sbx_json_doc *doc = NULL;
  sbx_err err;
  int rc = sbx_remote_exchange_json(&doc, &sbx__daytona_api, reply, "create the sandbox", &err);
  /* A web page in place of a success does not come from what makes sandboxes. */
  bool page = reply->status == 200 && sbx_remote_exchange_is_page(reply);
  bool made = rc == SBX_OK || !(err.no_effect || page);
  if (rc == SBX_OK && !sbx__daytona_is_named(sbx_json_root(doc), session->name))
    rc = sbx_err_set(&err, SBX_EPROTO,
                     "daytona: create the sandbox: the answer is about another sandbox than \"%s\"",
                     session->name);
  session->may_exist = made;
  if (rc == SBX_OK)
    go_on(o, sbx_json_root(doc));
  else
    sbx_steps_finish(steps, &err);
  sbx_json_free(doc, true);
}

static int name_session(sbx_session *session, sbx_err *err) {
  char name[SBX_REMOTE_TAG_LEN + 16] = "cloudsandbox-";
  const char *workspace = session->config->workspace;
  int rc = sbx_remote_tag_make(session->tag, err);
  if (rc != SBX_OK || session->name != NULL)
    return rc;
  memcpy(name + strlen(name), session->tag, sizeof session->tag);
  rc = sbx__daytona_set_text(&session->name, sbx_slice_str(workspace != NULL ? workspace : name));
  return rc == SBX_OK ? SBX_OK : sbx_err_set(err, rc, NULL);
}

static void create(open_op *o) {
  sbx_session *session = o->steps.session;
  sbx_buf json;
  sbx_err err;
  if (name_session(session, &err) != SBX_OK) {
    sbx_steps_finish(&o->steps, &err);
    return;
  }
  sbx_buf_init(&json, (size_t)8 << 20);
  /* The prepared text ends inside of the labels, after the first. */
  sbx_buf_append_str(&json, session->config->create_body);
  sbx_json_out out = {&json, true};
  sbx_json_put_text(&out, "cloudsandbox", sbx_slice_str(session->tag));
  sbx_json_end_object(&out);
  sbx_json_put_text(&out, "name", sbx_slice_str(session->name));
  sbx_json_end_object(&out);
  session->may_exist = true;
  sbx__daytona_to_api(&o->steps, "/sandbox",
                      &(sbx_http_request){.method = "POST", .take_body = &json}, on_created);
}

sbx_op *sbx__daytona_open(sbx_session *session, sbx_op_done done, void *arg) {
  open_op *o = sbx_steps_new(sizeof *o, session, session->config->loop, done, arg);
  if (o == NULL)
    return NULL;
  o->pause_ms = POLL_MS;
  o->may_start = session->open || session->config->attach != NULL;
  if (session->config->keyless) {
    sbx_err err;
    sbx_err_set(&err, SBX_EKEY, "daytona: " SBX__DAYTONA_NO_KEY);
    sbx_steps_finish(&o->steps, &err);
  } else if (o->may_start) {
    poll(&o->steps);
  } else {
    create(o);
  }
  return &o->steps.op;
}

/* ---- close -------------------------------------------------------------------------------- */

static void find(sbx_steps *steps, sbx_steps_reply on_reply) {
  sbx__daytona_about(steps, "GET", steps->session->name, "", on_reply);
}

static int found(sbx_session *session, const sbx_http *reply, char **id, sbx_err *err) {
  sbx_json_doc *doc = NULL;
  sbx_slice said = {NULL, 0};
  int rc = sbx_remote_exchange_json(&doc, &sbx__daytona_api, reply,
                                    "look for a sandbox whose creation was not answered", err);
  const sbx_json *sandbox = rc == SBX_OK ? sbx_json_root(doc) : NULL;
  if (sbx_remote_tag_is_in(sbx_json_get(sandbox, "labels"), "cloudsandbox", session->tag)) {
    sbx_json_string(sbx_json_get(sandbox, "id"), &said);
    rc = sbx_remote_identity_take(id, said, "daytona", err);
  }
  sbx_json_free(doc, true);
  return rc == SBX_ENOTFOUND ? SBX_OK : rc;
}

static void remove_it(sbx_steps *steps, const char *id, sbx_steps_reply on_reply) {
  sbx__daytona_about(steps, "DELETE", id, "", on_reply);
}

static int removed(const sbx_http *reply, sbx_err *err) {
  return sbx_remote_exchange_check(err, &sbx__daytona_api, reply, "delete the sandbox");
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

sbx_op *sbx__daytona_close(sbx_session *session, sbx_op_done done, void *arg) {
  return sbx_remote_tag_remove(session, session->config->loop, &verbs, session->id,
                               session->may_exist, done, arg);
}

/* ---- probe -------------------------------------------------------------------------------- */

/* A sandbox that is deleted as soon as it stops is gone when it stops; another one keeps its files.
 */
static sbx_liveness liveness_of(const sbx_session *session, sbx__daytona_state state) {
  switch (state) {
  case SBX__DAYTONA_STARTED:
    return SBX_ALIVE;
  case SBX__DAYTONA_GONE:
  case SBX__DAYTONA_FAILED:
    return SBX_GONE;
  case SBX__DAYTONA_HALTED:
  case SBX__DAYTONA_HALTING:
    return session->config->ephemeral ? SBX_GONE : SBX_HALTED;
  case SBX__DAYTONA_CHANGING:
    break;
  }
  return SBX_LIVENESS_UNKNOWN;
}

static void on_remains_removed(sbx_steps *steps, sbx_http *reply) {
  (void)reply;
  sbx_steps_finish(steps, NULL);
}

static void on_probed(sbx_steps *steps, sbx_http *reply) {
  const sbx_session *session = steps->session;
  sbx_json_doc *doc = NULL;
  sbx_err err;
  sbx__daytona_state state = SBX__DAYTONA_GONE;
  sbx_liveness now = SBX_LIVENESS_UNKNOWN;
  int rc = sbx_remote_exchange_json(&doc, &sbx__daytona_api, reply, "look at the sandbox", &err);
  if (rc == SBX_ENOTFOUND) {
    now = SBX_GONE;
  } else if (rc == SBX_OK && sbx__daytona_is_named(sbx_json_root(doc), session->id)) {
    state = sbx__daytona_state_of(sbx_json_root(doc));
    now = liveness_of(session, state);
  }
  sbx_json_free(doc, true);
  sbx_remote_probe_tell(steps, now);
  /* It is of no use any more, but still there. */
  bool remains = now == SBX_GONE && state != SBX__DAYTONA_GONE;
  if (remains && session->config->owned)
    sbx__daytona_about(steps, "DELETE", session->id, "", on_remains_removed);
  else
    sbx_steps_finish(steps, NULL);
}

sbx_op *sbx__daytona_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg) {
  sbx_steps *probe = sbx_remote_probe_new(session, session->config->loop, out, done, arg);
  if (probe == NULL)
    return NULL;
  sbx__daytona_about(probe, "GET", session->id, "", on_probed);
  return &probe->op;
}
