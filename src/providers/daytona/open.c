/* open.c - creates a sandbox, attaches to one, or starts one again that has stopped, and
 * waits until its toolbox answers.
 *
 *   create or look up -> poll until started -> where is the toolbox? -> working directory
 *
 * Invariant: from the moment a create may have left until it was refused, session->may_exist is
 * set, and close then looks for it. */
#include "providers/daytona/daytona.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/rand.h"

#include <stdlib.h>
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

static int replace(char **to, sbx_slice text) {
  char *copy = sbx_strndup(text.ptr, text.len);
  if (copy == NULL)
    return SBX_ENOMEM;
  sbx_free(*to);
  *to = copy;
  return SBX_OK;
}

/* ---- what the answers say ------------------------------------------------------------------- */

/* {base}/{id} */
static int set_toolbox(sbx_session *session, sbx_slice base) {
  sbx_buf url;
  size_t len;
  sbx_buf_init(&url, SBX__DAYTONA_URL_MAX);
  while (base.len > 0 && base.ptr[base.len - 1] == '/')
    base.len--;
  sbx_buf_append_slice(&url, base);
  sbx_buf_append_char(&url, '/');
  sbx_buf_append_str(&url, session->id);
  int rc = url.error;
  if (rc == SBX_OK) {
    sbx_free(session->toolbox);
    session->toolbox = sbx_buf_take(&url, &len);
  }
  sbx_buf_deinit(&url);
  return rc;
}

/* An id becomes part of addresses. */
static bool is_id(sbx_slice id) {
  for (size_t i = 0; i < id.len; i++) {
    char c = id.ptr[i];
    if (!sbx_is_letter(c) && !sbx_is_digit(c) && c != '-' && c != '_')
      return false;
  }
  return id.len > 0 && id.len <= 128;
}

static bool is_older(const char *version, int minor_limit) {
  char *end = NULL;
  long major = strtol(version, &end, 10);
  if (end == version || *end != '.')
    return false;
  const char *at = end + 1;
  long minor = strtol(at, &end, 10);
  return end != at && major == 0 && minor < minor_limit;
}

static int take_version(sbx_session *session, const sbx_json *sandbox) {
  sbx_slice version;
  if (!sbx_json_string(sbx_json_get(sandbox, "daemonVersion"), &version) || version.len > 64)
    return SBX_OK;
  char *text = sbx_strndup(version.ptr, version.len);
  if (text == NULL)
    return SBX_ENOMEM;
  session->old_shell = is_older(text, 156);
  session->old_env = is_older(text, 167);
  sbx_free(text);
  return SBX_OK;
}

int sbx__daytona_take(sbx_session *session, const sbx_json *sandbox, sbx_err *err) {
  const sbx_config *config = session->config;
  sbx_slice id, base;
  int rc = SBX_OK;
  if (!sbx_json_string(sbx_json_get(sandbox, "id"), &id) || !is_id(id))
    return sbx_err_set(err, SBX_EPROTO, "daytona: the answer has no id of a sandbox");
  if (session->id == NULL || !sbx_slice_eq_str(id, session->id))
    rc = replace(&session->id, id);
  if (rc == SBX_OK)
    rc = take_version(session, sandbox);
  if (rc == SBX_OK && config->toolbox_url != NULL)
    rc = set_toolbox(session, sbx_slice_str(config->toolbox_url));
  else if (rc == SBX_OK && sbx_json_string(sbx_json_get(sandbox, "toolboxProxyUrl"), &base) &&
           base.len > 0)
    rc = set_toolbox(session, base);
  return rc == SBX_OK ? SBX_OK : sbx_err_set(err, rc, NULL);
}

/* Parses a reply that was found to be a success. */
static int parse(sbx_json_doc **doc, const sbx_http *reply, const char *verb, sbx_err *err) {
  sbx_err why;
  int rc = sbx_json_parse(doc, sbx_buf_slice(&reply->body), &why);
  if (rc == SBX_EPROTO) {
    sbx_err_set(err, SBX_EPROTO, "daytona: %s: unexpected answer: %s", verb, why.message);
    err->status = reply->status;
  } else if (rc != SBX_OK) {
    sbx_err_copy(err, &why);
  }
  return rc;
}

/* ---- the toolbox ---------------------------------------------------------------------------- */

static void ask_directory(sbx_steps *steps);

static void finish_open(open_op *o) {
  o->steps.session->open = true;
  sbx_steps_finish(&o->steps, NULL);
}

static bool is_not_ready(const sbx_http *reply, int code) {
  return code == SBX_ECONFLICT || code == SBX_ENET ||
         (reply->op.err.code == SBX_OK && reply->status >= 502 && reply->status <= 504);
}

static void on_directory(sbx_steps *steps, sbx_http *reply) {
  open_op *o = open_of(steps);
  sbx_json_doc *doc = NULL;
  sbx_slice dir;
  sbx_err err;
  int rc = sbx__daytona_check_tool(&err, reply, "ask the sandbox for its working directory");
  /* The container may be up a little before what runs in it. */
  if (is_not_ready(reply, rc) && ++o->tries < MAX_TOOLBOX_TRIES) {
    sbx_steps_wait(steps, TOOLBOX_TRY_MS, ask_directory);
    return;
  }
  /* Old ones do not tell; relative paths begin at the right place there all the same. */
  bool untold = rc != SBX_OK && sbx__daytona_no_route(reply);
  if (rc == SBX_OK)
    rc = parse(&doc, reply, "ask the sandbox for its working directory", &err);
  if (rc == SBX_OK && (!sbx_json_string(sbx_json_get(sbx_json_root(doc), "dir"), &dir) ||
                       dir.len == 0 || dir.ptr[0] != '/' || sbx_slice_has_nul(dir)))
    rc = sbx_err_set(&err, SBX_EPROTO, "daytona: the sandbox's working directory is no path");
  if (rc == SBX_OK && replace(&o->steps.session->dir, dir) != SBX_OK)
    rc = sbx_err_set(&err, SBX_ENOMEM, NULL);
  sbx_json_free(doc, false);
  if (rc == SBX_OK || untold) {
    finish_open(o);
    return;
  }
  /* This request had none, but the create before it: that must not be sent once more. */
  err.no_effect = false;
  sbx_steps_finish(steps, &err);
}

static void ask_directory(sbx_steps *steps) {
  sbx_buf url;
  sbx__daytona_tool_url(&url, steps->session, "/work-dir", sbx_slice_of(NULL, 0));
  sbx__daytona_send(steps, "GET", &url, NULL, true, on_directory);
}

/* The last resort of servers without a proxy: through the API. */
static void use_api_route(open_op *o) {
  sbx_buf url;
  size_t len;
  sbx_buf_init(&url, SBX__DAYTONA_URL_MAX);
  sbx_buf_append_str(&url, o->steps.session->config->api_url);
  sbx_buf_append_str(&url, "/toolbox/");
  sbx_buf_append_str(&url, o->steps.session->id);
  sbx_buf_append_str(&url, "/toolbox");
  if (url.error == SBX_OK)
    o->steps.session->toolbox = sbx_buf_take(&url, &len);
  int code = url.error;
  sbx_buf_deinit(&url);
  if (code != SBX_OK)
    sbx_steps_finish_code(&o->steps, code);
  else
    ask_directory(&o->steps);
}

/* Whether the reply names the toolbox's address in the member `name`. */
static bool take_address(open_op *o, const sbx_http *reply, const char *name) {
  sbx_json_doc *doc = NULL;
  sbx_err err;
  sbx_slice base;
  bool taken = sbx__daytona_check(&err, reply, "look for the toolbox") == SBX_OK &&
               sbx_json_parse(&doc, sbx_buf_slice(&reply->body), NULL) == SBX_OK &&
               sbx_json_string(sbx_json_get(sbx_json_root(doc), name), &base) && base.len > 0 &&
               set_toolbox(o->steps.session, base) == SBX_OK;
  sbx_json_free(doc, false);
  return taken;
}

static void on_public_config(sbx_steps *steps, sbx_http *reply) {
  open_op *o = open_of(steps);
  if (take_address(o, reply, "proxyToolboxUrl"))
    ask_directory(steps);
  else
    use_api_route(o);
}

static void on_toolbox_url(sbx_steps *steps, sbx_http *reply) {
  open_op *o = open_of(steps);
  if (take_address(o, reply, "url")) {
    ask_directory(steps);
    return;
  }
  sbx_buf url;
  sbx_buf_init(&url, SBX__DAYTONA_URL_MAX);
  sbx_buf_append_str(&url, steps->session->config->api_url);
  sbx_buf_append_str(&url, "/config");
  sbx__daytona_send(steps, "GET", &url, NULL, true, on_public_config);
}

static void find_toolbox(open_op *o) {
  const sbx_session *session = o->steps.session;
  if (session->toolbox != NULL)
    ask_directory(&o->steps);
  else
    sbx__daytona_to_api(&o->steps, "GET", session->id, "/toolbox-proxy-url", on_toolbox_url);
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
  sbx__daytona_to_api(&o->steps, "POST", o->steps.session->id, "/start", on_start_asked);
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

/* The sandbox object of a success, or the end. */
static void take_reply(open_op *o, const sbx_http *reply, const char *verb) {
  sbx_json_doc *doc = NULL;
  sbx_err err;
  if (parse(&doc, reply, verb, &err) == SBX_OK)
    go_on(o, sbx_json_root(doc));
  else
    sbx_steps_finish(&o->steps, &err);
  sbx_json_free(doc, true);
}

static bool is_passing(const sbx_http *reply, int code) {
  bool answered = reply->op.err.code == SBX_OK;
  bool foreign = answered && reply->status == 404 && code == SBX_EPROTO;
  return code == SBX_ENET || code == SBX_ERATE || foreign || (answered && reply->status >= 500);
}

static void on_poll(sbx_steps *steps, sbx_http *reply) {
  open_op *o = open_of(steps);
  sbx_err err;
  int rc = sbx__daytona_check(&err, reply, "wait for the sandbox to start");
  if (rc == SBX_OK) {
    o->failures = 0;
    take_reply(o, reply, "wait for the sandbox to start");
  } else if (is_passing(reply, rc) && ++o->failures < MAX_FAILED_POLLS) {
    poll_later(o);
  } else {
    err.no_effect = false;
    finish_failed(o, &err, rc == SBX_ENOTFOUND);
  }
}

static void poll(sbx_steps *steps) {
  const sbx_session *session = steps->session;
  const char *id = session->id != NULL ? session->id : session->config->attach;
  sbx__daytona_to_api(steps, "GET", id, "", on_poll);
}

static void on_start_asked(sbx_steps *steps, sbx_http *reply) {
  open_op *o = open_of(steps);
  sbx_err err;
  int rc = sbx__daytona_check(&err, reply, "start the sandbox");
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
  sbx_err err;
  int rc = sbx__daytona_check(&err, reply, "create the sandbox");
  if (rc == SBX_OK) {
    take_reply(o, reply, "create the sandbox");
    return;
  }
  /* This one says that a sandbox was made, and did not start. */
  if (sbx__daytona_says(sbx_buf_slice(&reply->body), "sandbox failed to start")) {
    err.code = SBX_EPROVIDER;
    err.no_effect = false;
  }
  if (err.no_effect || (reply->status == 200 && sbx__daytona_is_page(reply)))
    o->steps.session->may_exist = false;
  sbx_steps_finish(steps, &err);
}

static int name_session(sbx_session *session, sbx_err *err) {
  char name[SBX__DAYTONA_TAG + 16] = "cloudsandbox-";
  if (session->tag[0] != '\0')
    return SBX_OK;
  int rc = sbx_random_hex(session->tag, SBX__DAYTONA_TAG, err);
  if (rc != SBX_OK)
    return rc;
  memcpy(name + strlen(name), session->tag, sizeof session->tag);
  const char *workspace = session->config->workspace;
  rc = replace(&session->name, sbx_slice_str(workspace != NULL ? workspace : name));
  if (rc != SBX_OK)
    session->tag[0] = '\0';
  return rc == SBX_OK ? SBX_OK : sbx_err_set(err, rc, NULL);
}

static void create(open_op *o) {
  sbx_session *session = o->steps.session;
  sbx_buf url, json;
  sbx_err err;
  if (name_session(session, &err) != SBX_OK) {
    sbx_steps_finish(&o->steps, &err);
    return;
  }
  sbx_buf_init(&json, (size_t)8 << 20);
  /* The prepared text ends inside of the labels, after the first. */
  sbx_buf_append_str(&json, session->config->create_body);
  sbx_json_out out = {&json, true};
  sbx_json_put_name(&out, sbx_slice_str("cloudsandbox"));
  sbx_json_put_string(&out, sbx_slice_str(session->tag));
  sbx_json_end_object(&out);
  sbx_json_put_name(&out, sbx_slice_str("name"));
  sbx_json_put_string(&out, sbx_slice_str(session->name));
  sbx_json_end_object(&out);
  session->may_exist = true;
  sbx__daytona_api_url(&url, session->config, NULL, "");
  sbx__daytona_send(&o->steps, "POST", &url, &json, false, on_created);
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
