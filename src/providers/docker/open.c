/* open.c - makes a container, or attaches to one.
 *
 *   ping: which version -> [pull] -> create -> [pull, create] -> start -> [make room]
 *                       \-> look at the one that is there
 *
 * Invariant: from the moment a create may have left until it was refused, session->may_exist is
 * set, and close then looks for it. */
#include "core/err.h"
#include "core/url.h"
#include "providers/docker/docker.h"
#include "providers/docker/engine.h"
#include "providers/docker/owner.h"
#include "providers/docker/process.h"
#include "providers/remote/identity.h"

#include <string.h>

enum { MAX_BODY = 8 * 1024 * 1024 };

typedef struct open_op {
  sbx_steps steps;
  bool pulled;
} open_op;

static open_op *open_of(sbx_steps *steps) {
  return (open_op *)(void *)steps;
}

static void finish_open(sbx_steps *steps) {
  steps->session->open = true;
  sbx_steps_finish(steps, NULL);
}

/* Something was made by now: the open must not simply be sent once more. */
static void fail_made(sbx_steps *steps, sbx_err *err) {
  err->no_effect = false;
  sbx_steps_finish(steps, err);
}

/* ---- room to write -------------------------------------------------------------------------- */

/* Podman makes file systems in memory the root user's. */
static void on_room(sbx_op *op, void *arg) {
  sbx_steps *steps = arg;
  const sbx_process_end *end = sbx__docker_processes.ended(op);
  sbx_err err = op->err;
  steps->request = NULL;
  if (err.code == SBX_OK && end->exit_code != 0 &&
      !sbx__docker_processes.has_no_shell(steps->session, end, &err)) {
    sbx_err_set(&err, SBX_EPROVIDER, "docker: the working directory cannot be made writable: ");
    sbx_err_append_remote(&err, end->words);
  }
  if (err.code == SBX_OK)
    finish_open(steps);
  else
    fail_made(steps, &err);
}

static void make_room(sbx_steps *steps) {
  sbx_session *session = steps->session;
  const sbx_processes *wire = &sbx__docker_processes;
  sbx_process_request request;
  sbx__docker_process_begin(&request, session, sbx_slice_str("chmod 1777 \\\"$@\\\""), "0:0",
                            false);
  wire->word(&request, sbx_slice_str("/tmp"));
  if (session->config->disk != NULL)
    wire->word(&request, sbx_slice_str(session->config->dir));
  wire->end(&request, NULL, NULL);
  const sbx_process_spec spec = {.request = &request};
  sbx_steps_wait_for(steps, wire->start(session, &spec, on_room, steps));
  sbx_buf_deinit(&request.buf);
}

/* ---- start ---------------------------------------------------------------------------------- */

static void say_no_shell(sbx_err *err, const sbx_config *config) {
  sbx_err_set(err, SBX_EUNSUPPORTED, "docker: the image ");
  sbx_err_append_remote(err, sbx_slice_str(config->image));
  sbx_err_append(err, " has no /bin/sh, which every command needs; take an image with a shell");
  err->provider = "docker";
}

static void on_started(sbx_steps *steps, sbx_http *reply) {
  const sbx_session *session = steps->session;
  sbx_slice body = sbx_buf_slice(&reply->body);
  sbx_err err;
  int rc = reply->status == 304 ? SBX_OK
                                : sbx__docker_check(&err, session->config, &sbx__docker_engine,
                                                    reply, "start the container");
  if (rc != SBX_OK) {
    if (reply->status >= 400 && sbx_remote_exchange_says(body, "/bin/sh") &&
        (sbx_remote_exchange_says(body, "no such file") ||
         sbx_remote_exchange_says(body, "not found")))
      say_no_shell(&err, session->config);
    fail_made(steps, &err);
  } else if (session->is_podman) {
    make_room(steps);
  } else {
    finish_open(steps);
  }
}

static void start(sbx_steps *steps) {
  sbx_buf url;
  sbx__docker_container_url(&url, steps->session->config, steps->session->id, "/start");
  sbx__docker_send(steps, "POST", &url, NULL, true, on_started);
}

/* ---- create --------------------------------------------------------------------------------- */

static void create(sbx_steps *steps);

static void on_image(sbx_op *op, void *arg) {
  sbx_steps *steps = arg;
  steps->request = NULL;
  open_of(steps)->pulled = true;
  if (op->err.code == SBX_OK)
    create(steps);
  else
    sbx_steps_finish(steps, &op->err);
}

static void pull(sbx_steps *steps) {
  sbx_steps_wait_for(steps, sbx__docker_pull_image(steps->session, on_image, steps));
}

static void fail_create(sbx_steps *steps, sbx_err *err, bool no_image) {
  const sbx_config *config = steps->session->config;
  if (no_image) {
    sbx_err_append(err, "; the image is ");
    sbx_err_append_remote(err, sbx_slice_str(config->image));
    if (config->pull == SBX__DOCKER_PULL_NEVER)
      sbx_err_append(err, ", and `pull` is \"never\": fetch or load it first (docker pull)");
  }
  sbx_steps_finish(steps, err);
}

static void on_created(sbx_steps *steps, sbx_http *reply) {
  sbx_session *session = steps->session;
  sbx_json_doc *doc = NULL;
  sbx_slice id = {NULL, 0};
  sbx_err err;
  int rc = sbx__docker_json(&doc, session->config, &sbx__docker_engine, reply,
                            "create the container", &err);
  bool no_image =
      rc == SBX_ENOTFOUND && sbx_remote_exchange_says(sbx_buf_slice(&reply->body), "image");
  session->may_exist = rc == SBX_OK || !err.no_effect;
  if (rc == SBX_OK) {
    sbx_json_string(sbx_json_get(sbx_json_root(doc), "Id"), &id);
    rc = sbx_remote_identity_take(&session->id, id, "docker", &err);
  }
  sbx_json_free(doc, false);
  if (rc == SBX_OK)
    start(steps);
  else if (no_image && !open_of(steps)->pulled && session->config->pull != SBX__DOCKER_PULL_NEVER)
    pull(steps);
  else
    fail_create(steps, &err, no_image);
}

static void put_tmpfs(sbx_json_out *out, const sbx_session *session, const char *dir,
                      const char *options) {
  sbx_slice user = sbx_slice_str(session->config->user);
  size_t colon = sbx_slice_find(user, ':');
  sbx_buf text;
  sbx_buf_init(&text, 256);
  sbx_buf_append_str(&text, options);
  if (!session->is_podman) {
    sbx_buf_appendf(&text, ",uid=%.*s", (int)colon, user.ptr);
    if (colon < user.len)
      sbx_buf_appendf(&text, ",gid=%s", user.ptr + colon + 1);
  }
  sbx_json_put_name(out, sbx_slice_str(dir));
  sbx_json_put_string(out, sbx_buf_slice(&text));
  if (text.error != SBX_OK)
    out->buf->error = text.error;
  sbx_buf_deinit(&text);
}

/* The prepared texts are without their last brackets. */
static void write_create(sbx_buf *body, const sbx_session *session) {
  const sbx_config *config = session->config;
  sbx_buf_init(body, MAX_BODY);
  sbx_json_out out = {body, true};
  sbx_buf_append_str(body, config->create_body);
  sbx_json_put_name(&out, sbx_slice_str("HostConfig"));
  sbx_buf_append_str(body, config->host_body);
  out.need_comma = true;
  sbx_json_put_name(&out, sbx_slice_str("Tmpfs"));
  sbx_json_begin_object(&out);
  put_tmpfs(&out, session, "/tmp", config->memory);
  if (config->disk != NULL)
    put_tmpfs(&out, session, config->dir, config->disk);
  if (session->is_podman && config->closed != NULL) {
    sbx_buf_append_char(body, ',');
    sbx_buf_append_str(body, config->closed);
  }
  sbx_json_end_object(&out);
  sbx_json_end_object(&out);
  sbx_json_put_name(&out, sbx_slice_str("Labels"));
  sbx_buf_append_str(body, config->label_body);
  out.need_comma = config->label_body[1] != '\0';
  sbx__docker_put_owner(&out, session);
  sbx_json_end_object(&out);
  sbx_json_end_object(&out);
}

static void create(sbx_steps *steps) {
  sbx_session *session = steps->session;
  sbx_buf url, body;
  sbx_err err;
  if (sbx_remote_tag_make(session->tag, &err) != SBX_OK) {
    sbx_steps_finish(steps, &err);
    return;
  }
  write_create(&body, session);
  sbx__docker_url(&url, session->config, "/containers/create");
  if (session->config->platform != NULL)
    sbx_url_append_query(&url, sbx_slice_str("platform"), sbx_slice_str(session->config->platform));
  session->may_exist = true;
  sbx__docker_send(steps, "POST", &url, &body, false, on_created);
}

/* ---- one that is there ---------------------------------------------------------------------- */

static void on_looked(sbx_steps *steps, sbx_http *reply) {
  sbx_session *session = steps->session;
  sbx_json_doc *doc = NULL;
  sbx_slice id = {NULL, 0}, status = {NULL, 0};
  sbx_err err;
  bool running = false, paused = false;
  int rc = sbx__docker_json(&doc, session->config, &sbx__docker_engine, reply,
                            "look for the container", &err);
  const sbx_json *root = rc == SBX_OK ? sbx_json_root(doc) : NULL;
  const sbx_json *state = sbx_json_get(root, "State");
  sbx_json_bool(sbx_json_get(state, "Running"), &running);
  sbx_json_bool(sbx_json_get(state, "Paused"), &paused);
  if (rc == SBX_OK && (!running || paused)) {
    sbx_json_string(sbx_json_get(state, "Status"), &status);
    rc = sbx_err_set(&err, SBX_ENOTREADY, "docker: the container %s cannot be used; its state is ",
                     session->config->attach);
    sbx_err_append_remote(&err, status);
    sbx_err_append(&err, paused ? "; unpause it first" : "; start it first");
  }
  if (rc == SBX_OK) {
    sbx_json_string(sbx_json_get(root, "Id"), &id);
    rc = sbx_remote_identity_take(&session->id, id, "docker", &err);
  }
  sbx_json_free(doc, true);
  if (rc == SBX_OK)
    finish_open(steps);
  else
    sbx_steps_finish(steps, &err);
}

static void look(sbx_steps *steps) {
  sbx_buf url;
  sbx__docker_container_url(&url, steps->session->config, steps->session->config->attach, "/json");
  sbx__docker_send(steps, "GET", &url, NULL, true, on_looked);
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void begin(sbx_steps *steps) {
  if (steps->session->config->pull == SBX__DOCKER_PULL_ALWAYS)
    pull(steps);
  else
    create(steps);
}

static void on_agreed(sbx_steps *steps) {
  if (steps->session->config->attach != NULL)
    look(steps);
  else
    sbx__docker_check_limits(steps, begin);
}

sbx_op *sbx__docker_open(sbx_session *session, sbx_op_done done, void *arg) {
  open_op *o = sbx_steps_new(sizeof *o, session, session->config->loop, done, arg);
  if (o == NULL)
    return NULL;
  sbx__docker_agree(&o->steps, on_agreed);
  return &o->steps.op;
}
