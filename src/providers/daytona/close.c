/* close.c - deletes a sandbox.
 *
 * Without an id a create's answer was lost. The sandbox is then looked for by its name and deleted
 * only when it carries our tag: with a name of the user's choice it may be somebody else's.
 *
 * Invariant: success means that nothing is left that would have to be paid for. */
#include "providers/daytona/daytona.h"

#include "core/err.h"

enum { SECOND_LOOK_MS = 1000 }; /* a create that was cut off may still be at work */

typedef struct close_op {
  sbx_steps steps;
  sbx_repeat repeat;
  unsigned looks;
} close_op;

static close_op *close_of(sbx_steps *steps) {
  return (close_op *)(void *)steps;
}

static void delete_it(sbx_steps *steps);

static void on_delete(sbx_steps *steps, sbx_http *reply) {
  close_op *c = close_of(steps);
  sbx_err err;
  int rc = sbx__daytona_check(&err, reply, "delete the sandbox");
  bool gone = sbx__daytona_is_gone(reply);
  if (rc == SBX_OK || gone) {
    steps->session->open = false;
    sbx_steps_finish(steps, NULL);
  } else if (!sbx_steps_repeat(steps, &c->repeat, &sbx_repeat_delete, reply, &err, delete_it)) {
    sbx_steps_finish(steps, &err);
  }
}

static void delete_it(sbx_steps *steps) {
  sbx__daytona_to_api(steps, "DELETE", steps->session->id, "", on_delete);
}

static void look(sbx_steps *steps);

static bool is_ours(const sbx_session *session, const sbx_json *sandbox) {
  const sbx_json *tag = sbx_json_get(sbx_json_get(sandbox, "labels"), "cloudsandbox");
  sbx_slice text;
  return sbx_json_string(tag, &text) && sbx_slice_eq_str(text, session->tag);
}

static void on_found(sbx_steps *steps, const sbx_http *reply) {
  sbx_json_doc *doc = NULL;
  sbx_err err;
  int rc = sbx_json_parse(&doc, sbx_buf_slice(&reply->body), &err);
  bool ours = rc == SBX_OK && is_ours(steps->session, sbx_json_root(doc));
  if (ours)
    rc = sbx__daytona_take(steps->session, sbx_json_root(doc), &err);
  sbx_json_free(doc, true);
  if (rc != SBX_OK)
    sbx_steps_finish(steps, &err);
  else if (ours)
    delete_it(steps);
  else
    sbx_steps_finish(steps, NULL);
}

static void on_look(sbx_steps *steps, sbx_http *reply) {
  close_op *c = close_of(steps);
  sbx_err err;
  int rc = sbx__daytona_check(&err, reply, "look for a sandbox whose creation was not answered");
  if (rc == SBX_OK) {
    on_found(steps, reply);
  } else if (rc == SBX_ENOTFOUND && c->looks++ == 0) {
    sbx_steps_wait(steps, SECOND_LOOK_MS, look);
  } else if (rc == SBX_ENOTFOUND) {
    sbx_steps_finish(steps, NULL);
  } else if (!sbx_steps_repeat(steps, &c->repeat, &sbx_repeat_delete, reply, &err, look)) {
    sbx_steps_finish(steps, &err);
  }
}

static void look(sbx_steps *steps) {
  sbx__daytona_to_api(steps, "GET", steps->session->name, "", on_look);
}

sbx_op *sbx__daytona_close(sbx_session *session, sbx_op_done done, void *arg) {
  close_op *c = sbx_steps_new(sizeof *c, session, session->config->loop, done, arg);
  if (c == NULL)
    return NULL;
  if (session->id != NULL)
    delete_it(&c->steps);
  else if (session->may_exist)
    look(&c->steps);
  else
    sbx_steps_finish(&c->steps, NULL);
  return &c->steps.op;
}
