/* close.c - delete, also what a create has made whose answer was lost.
 *
 * Every create carries a random tag in its metadata. When its answer is missing, the control plane
 * is asked for the sandbox with that tag, and a second time when there is none: what was asked for
 * may come up late.
 *
 * Invariant: deleted is only what our own create was answered with, or what bears our tag. */
#include "providers/e2b/e2b.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/url.h"

#include <string.h>

enum { MAX_PATH = 1024, LOOK_AGAIN_MS = 2000 };

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

static void send_request(close_op *c, const char *method, const sbx_buf *path,
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

/* ---- delete --------------------------------------------------------------------------------- */

/* Gone already, or on its way out. */
static bool is_deleted(const sbx_http *http) {
  sbx_slice body = sbx_buf_slice(&http->body);
  if (http->status == 409)
    return body.len > 0 && memmem(body.ptr, body.len, "being killed", 12) != NULL;
  return sbx__e2b_is_404(http) || (http->status >= 200 && http->status < 300);
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
  send_request(c, "DELETE", &path, on_deleted);
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
  send_request(c, "GET", &path, on_listed);
  sbx_buf_deinit(&metadata);
  sbx_buf_deinit(&path);
}

static void release(sbx_steps *steps) {
  sbx_free(((close_op *)(void *)steps)->id);
}

/* ---- close ---------------------------------------------------------------------------------- */

sbx_op *sbx__e2b_close(sbx_session *session, sbx_op_done done, void *arg) {
  close_op *c = sbx_steps_new(sizeof *c, session, session->config->loop, done, arg);
  if (c == NULL)
    return NULL;
  c->steps.release = release;
  c->first_api = sbx__e2b_has_first_api_only(session->config);
  bool was_created = !session->config->debug;
  if (was_created && session->id != NULL)
    send_delete(&c->steps);
  else if (was_created && session->may_exist)
    look(&c->steps);
  else
    finish(c, NULL);
  return &c->steps.op;
}
