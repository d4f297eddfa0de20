/* op.h - the base of every asynchronous operation.
 *
 * An op is a small state machine that ends through one function, sbx_op_finish(). Deadline, cancel
 * and the loop's end come to it through one function of its class, `abort`, so that no operation
 * can forget them. The owner's callback runs from the loop's ready list, after which the op is
 * freed.
 *
 *   sbx_op_init -> (class does its steps) -> sbx_op_finish -> [ready list] done(op) -> destroy(op)
 */
#ifndef SBX_OP_H
#define SBX_OP_H

#include "core/err.h"
#include "core/loop.h"

typedef struct sbx_op sbx_op;
typedef void (*sbx_op_done)(sbx_op *op, void *arg);

typedef struct sbx_op_class {
  const char *name;
  /* Asked to end early; `reason` is SBX_ECANCELED, SBX_ETIMEOUT or SBX_ECLOSED. It must come to
   * sbx_op_finish() soon: at once for SBX_ECLOSED (the loop is ending: release, do not wait), else
   * when what it waits for has been told to stop. Called at most once per reason; never after
   * finish. */
  void (*abort)(sbx_op *op, int reason);
  /* Frees the op's own memory; everything else was released before finish. */
  void (*destroy)(sbx_op *op);
} sbx_op_class;

struct sbx_op {
  const sbx_op_class *cls;
  sbx_loop *loop;
  sbx_op_done done;
  void *arg;
  sbx_timer deadline;
  sbx_task task;
  sbx_op *next, *prev; /* the loop's list of live ops */
  sbx_err err;         /* err.code is SBX_OK after a success */
  unsigned aborted;    /* bit per reason that was passed to the class */
  bool finished;
};

/* The op is live from here on: it holds the loop and is aborted when the loop ends. When the loop
 * is closing already, abort(SBX_ECLOSED) is called from the ready list. */
void sbx_op_init(sbx_op *op, const sbx_op_class *cls, sbx_loop *loop, sbx_op_done done, void *arg);
/* Calls abort(SBX_ETIMEOUT) after `ms`; SBX_NO_TIMEOUT: never. */
void sbx_op_set_deadline(sbx_op *op, uint64_t ms);
/* Passes `reason` to the class, unless the op has finished. */
void sbx_op_abort(sbx_op *op, int reason);
/* Ends the op with `err` (NULL: success; the error is copied). Only the first call counts. */
void sbx_op_finish(sbx_op *op, const sbx_err *err);
/* The same with the plain error of `code`; SBX_OK: success. As a class's `abort` it serves ops that
 * have nothing to stop. */
void sbx_op_finish_code(sbx_op *op, int code);
/* The owner no longer wants `done`; the op goes on and frees itself. */
void sbx_op_disown(sbx_op *op);
/* Disowns *op, if there is one, and aborts it; its owner's pointer becomes NULL. */
void sbx_op_drop(sbx_op **op, int reason);

/* Used by loop.c only: aborts all live ops with SBX_ECLOSED. */
void sbx__op_abort_all(sbx_loop *loop);
/* Head of the loop's list of live ops; storage in the loop. */
sbx_op **sbx__loop_ops(sbx_loop *loop);

#endif
