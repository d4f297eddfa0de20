/* input.c - what a running command is given: standard input and signals, each in its order.
 *
 * Invariant: what was given ends once, through finish(), and at the latest with the provider's
 * exec; of each lane the provider has one at a time, so that its op is all there is of
 * back-pressure. */
#include "sandbox/input.h"

#include "core/alloc.h"
#include "core/err.h"

#include <string.h>

struct sbx__given {
  sbx_op op;
  sbx__inputs *of; /* NULL: it is over */
  sbx__given *next;
  sbx_input what;
  sbx_op *child; /* the provider's */
  sbx_done_cb cb;
  void *arg;
  char bytes[]; /* of `what` */
};

static const char *const signals[] = {"SIGHUP",  "SIGINT",  "SIGQUIT", "SIGKILL", "SIGUSR1",
                                      "SIGUSR2", "SIGTERM", "SIGCONT", "SIGSTOP"};

const char *sbx__signal_name(const char *name) {
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    if (strcmp(signals[i], name) == 0)
      return signals[i];
  }
  return NULL;
}

static sbx__given **lane_of(sbx__inputs *inputs, sbx_input_kind kind) {
  return &inputs->lanes[kind == SBX_INPUT_SIGNAL || kind == SBX_INPUT_RESIZE];
}

/* ---- the end of one ---- */

static void finish(sbx__given *given, const sbx_err *err) {
  sbx__inputs *inputs = given->of;
  if (inputs == NULL)
    return;
  sbx__given **at = lane_of(inputs, given->what.kind);
  while (*at != given)
    at = &(*at)->next;
  *at = given->next;
  inputs->waiting -= given->what.bytes.len;
  given->of = NULL;
  sbx_op_drop(&given->child, SBX_ECANCELED);
  sbx_op_finish(&given->op, err);
}

static int say_ended(sbx_err *err) {
  return sbx_err_set(err, SBX_ECLOSED,
                     "the command has ended, or was not started, and takes nothing any more");
}

static void abort_given(sbx_op *op, int reason) {
  sbx_err err;
  sbx_err_set(&err, reason, NULL);
  finish((sbx__given *)(void *)op, &err);
}

static void destroy_given(sbx_op *op) {
  sbx_free(op);
}

static const sbx_op_class given_class = {"input", abort_given, destroy_given};

static void on_given_done(sbx_op *op, void *arg) {
  sbx__given *given = arg;
  if (given->cb != NULL)
    given->cb(given->arg, op->err.code != SBX_OK ? &op->err : NULL);
}

/* ---- with the provider ---- */

static void hand_over(sbx__inputs *inputs, sbx_input_kind kind);

static void on_taken(sbx_op *op, void *arg) {
  sbx__given *given = arg;
  sbx__inputs *inputs = given->of;
  sbx_input_kind kind = given->what.kind;
  sbx_err err;
  given->child = NULL;
  sbx_err_copy(&err, &op->err);
  if (err.code != SBX_OK) {
    const sbx_provider *provider = inputs->sb->provider;
    err.provider = provider->id;
    if (provider->hide != NULL)
      provider->hide(inputs->sb->places.config, inputs->session, &err);
  }
  finish(given, err.code != SBX_OK ? &err : NULL);
  hand_over(inputs, kind);
}

/* The first of a lane, unless the provider has it already. */
static void hand_over(sbx__inputs *inputs, sbx_input_kind kind) {
  sbx__given *first;
  while (inputs->exec != NULL && (first = *lane_of(inputs, kind)) != NULL && first->child == NULL) {
    first->child =
        inputs->sb->provider->give(inputs->session, inputs->exec, &first->what, on_taken, first);
    if (first->child != NULL)
      return;
    sbx_err err;
    sbx_err_set(&err, SBX_ENOMEM, NULL);
    finish(first, &err);
  }
}

/* ---- all of them ---- */

void sbx__inputs_init(sbx__inputs *inputs, sbx_sandbox *sb) {
  *inputs = (sbx__inputs){.sb = sb};
}

int sbx__inputs_add(sbx__inputs *inputs, const sbx_input *what, sbx_done_cb cb, void *arg,
                    sbx_err *err) {
  bool is_input = what->kind == SBX_INPUT_WRITE || what->kind == SBX_INPUT_END;
  size_t len = what->bytes.len;
  if (inputs->over)
    return say_ended(err);
  if (inputs->closed && is_input)
    return sbx_err_set(err, SBX_ECLOSED,
                       "the standard input of the command was ended before, and takes no more");
  if (len > SBX_INPUT_MAX - inputs->waiting)
    return sbx_err_set(err, SBX_ETOOBIG,
                       "more than %zu bytes would wait for the command to read them; wait for the "
                       "writes before, and write less at once",
                       SBX_INPUT_MAX);
  sbx__given *given = sbx_malloc(sizeof *given + len);
  if (given == NULL)
    return sbx_err_set(err, SBX_ENOMEM, "out of memory; the command was given nothing");
  *given = (sbx__given){.of = inputs, .what = *what, .cb = cb, .arg = arg};
  if (len > 0)
    given->what.bytes.ptr = memcpy(given->bytes, what->bytes.ptr, len);
  sbx_op_init(&given->op, &given_class, inputs->sb->loop, on_given_done, given);
  if (what->kind == SBX_INPUT_WRITE && len == 0) {
    given->of = NULL;
    sbx_op_finish(&given->op, NULL);
    return SBX_OK;
  }
  inputs->waiting += len;
  inputs->closed = inputs->closed || what->kind == SBX_INPUT_END;
  sbx__given **at = lane_of(inputs, what->kind);
  while (*at != NULL)
    at = &(*at)->next;
  *at = given;
  hand_over(inputs, what->kind);
  return SBX_OK;
}

void sbx__inputs_begin(sbx__inputs *inputs, sbx_session *session, sbx_op *exec) {
  inputs->session = session;
  inputs->exec = exec;
  hand_over(inputs, SBX_INPUT_WRITE);
  hand_over(inputs, SBX_INPUT_SIGNAL);
}

void sbx__inputs_end(sbx__inputs *inputs) {
  sbx_err err;
  say_ended(&err);
  err.provider = inputs->sb->provider->id;
  inputs->exec = NULL;
  inputs->over = true;
  for (int i = 0; i < SBX__LANES; i++) {
    while (inputs->lanes[i] != NULL)
      finish(inputs->lanes[i], &err);
  }
}
