/* tag.c - deletes a sandbox, also one whose create was not answered.
 *
 * Invariant: deleted is only what our own create was answered with, or what bears our tag. */
#include "providers/remote/tag.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/rand.h"

#include <string.h>

int sbx_remote_tag_make(char tag[SBX_REMOTE_TAG_LEN + 1], sbx_err *err) {
  return tag[0] != '\0' ? SBX_OK : sbx_random_hex(tag, SBX_REMOTE_TAG_LEN, err);
}

bool sbx_remote_tag_is_in(const sbx_json *tags, const char *name, const char *tag) {
  sbx_slice text;
  return tag[0] != '\0' && sbx_json_string(sbx_json_get(tags, name), &text) &&
         sbx_slice_eq_str(text, tag);
}

/* ---- removal -------------------------------------------------------------------------------- */

typedef struct removal {
  sbx_steps steps;
  const sbx_remote_tag_verbs *verbs;
  char *id;
  sbx_repeat repeat;
  bool looked; /* once, and found nothing */
} removal;

static removal *removal_of(sbx_steps *steps) {
  return (removal *)(void *)steps;
}

static void release(sbx_steps *steps) {
  sbx_free(removal_of(steps)->id);
}

static void succeed(removal *r) {
  r->verbs->gone(r->steps.session);
  sbx_steps_finish(&r->steps, NULL);
}

static void remove_it(sbx_steps *steps);
static void look(sbx_steps *steps);

static void fail_or_repeat(removal *r, const sbx_err *err, sbx_steps_time again) {
  if (!sbx_steps_repeat(&r->steps, &r->repeat, &sbx_repeat_delete, err, again))
    sbx_steps_finish(&r->steps, err);
}

static void on_removed(sbx_steps *steps, sbx_http *reply) {
  removal *r = removal_of(steps);
  sbx_err err;
  int rc = r->verbs->removed(reply, &err);
  if (rc == SBX_OK || rc == SBX_ENOTFOUND)
    succeed(r);
  else
    fail_or_repeat(r, &err, remove_it);
}

static void remove_it(sbx_steps *steps) {
  removal *r = removal_of(steps);
  r->verbs->remove(steps, r->id, on_removed);
}

static void on_look(sbx_steps *steps, sbx_http *reply) {
  removal *r = removal_of(steps);
  sbx_err err;
  int rc = r->verbs->found(steps->session, reply, &r->id, &err);
  if (rc == SBX_ENOTREADY) {
    look(steps);
  } else if (rc != SBX_OK) {
    fail_or_repeat(r, &err, look);
  } else if (r->id != NULL) {
    remove_it(steps);
  } else if (!r->looked) {
    r->looked = true;
    sbx_steps_wait(steps, r->verbs->look_again_ms, look);
  } else {
    succeed(r);
  }
}

static void look(sbx_steps *steps) {
  removal_of(steps)->verbs->find(steps, on_look);
}

sbx_op *sbx_remote_tag_remove(sbx_session *session, sbx_loop *loop,
                              const sbx_remote_tag_verbs *verbs, const char *id, bool made,
                              sbx_op_done done, void *arg) {
  removal *r = sbx_steps_new(sizeof *r, session, loop, done, arg);
  if (r == NULL)
    return NULL;
  r->steps.release = release;
  r->verbs = verbs;
  if (id != NULL)
    r->id = sbx_strndup(id, strlen(id));
  if (id != NULL && r->id == NULL)
    sbx_steps_finish_code(&r->steps, SBX_ENOMEM);
  else if (id != NULL)
    remove_it(&r->steps);
  else if (made)
    look(&r->steps);
  else
    succeed(r);
  return &r->steps.op;
}
