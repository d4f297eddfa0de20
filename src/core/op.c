/* op.c - the base of every asynchronous operation.
 *
 * Invariant: an op leaves the loop's list, and its memory, only from the ready list. So a walk over
 * the list may abort and finish ops, and a class may touch its op after sbx_op_finish() until it
 * returns to the loop. */
#include "core/op.h"

static void link_op(sbx_op *op) {
  sbx_op **head = sbx__loop_ops(op->loop);
  op->prev = NULL;
  op->next = *head;
  if (op->next != NULL)
    op->next->prev = op;
  *head = op;
}

static void unlink_op(sbx_op *op) {
  if (op->prev != NULL)
    op->prev->next = op->next;
  else
    *sbx__loop_ops(op->loop) = op->next;
  if (op->next != NULL)
    op->next->prev = op->prev;
}

static sbx_op *op_of_task(sbx_task *task) {
  return (sbx_op *)(void *)((char *)task - offsetof(sbx_op, task));
}

/* What has come in time counts, although it is read later. */
static void on_deadline(sbx_timer *timer) {
  if (!sbx_timer_put_off(timer))
    sbx_op_abort((sbx_op *)(void *)((char *)timer - offsetof(sbx_op, deadline)), SBX_ETIMEOUT);
}

static void on_born_closed(sbx_task *task) {
  sbx_op_abort(op_of_task(task), SBX_ECLOSED);
}

static void deliver(sbx_task *task) {
  sbx_op *op = op_of_task(task);
  sbx_loop *loop = op->loop;
  if (op->done != NULL)
    op->done(op, op->arg);
  unlink_op(op);
  op->cls->destroy(op);
  sbx_loop_release(loop);
}

void sbx_op_init(sbx_op *op, const sbx_op_class *cls, sbx_loop *loop, sbx_op_done done, void *arg) {
  op->cls = cls;
  op->loop = loop;
  op->done = done;
  op->arg = arg;
  op->aborted = 0;
  op->finished = false;
  sbx_err_clear(&op->err);
  sbx_timer_init(&op->deadline, loop, on_deadline);
  link_op(op);
  sbx_loop_hold(loop);
  sbx_task_init(&op->task, on_born_closed);
  if (sbx_loop_is_closing(loop))
    sbx_loop_defer(loop, &op->task);
}

void sbx_op_set_deadline(sbx_op *op, uint64_t ms) {
  if (!op->finished)
    sbx_timer_start(&op->deadline, ms);
}

void sbx_op_abort(sbx_op *op, int reason) {
  unsigned bit = 1u << (unsigned)-reason;
  if (op->finished || (op->aborted & bit) != 0)
    return;
  op->aborted |= bit;
  op->cls->abort(op, reason);
}

void sbx_op_finish(sbx_op *op, const sbx_err *err) {
  if (op->finished)
    return;
  op->finished = true;
  sbx_timer_stop(&op->deadline);
  if (err != NULL)
    sbx_err_copy(&op->err, err);
  sbx_task_cancel(&op->task);
  sbx_task_init(&op->task, deliver);
  sbx_loop_defer(op->loop, &op->task);
}

void sbx_op_finish_code(sbx_op *op, int code) {
  sbx_err err;
  if (code != SBX_OK)
    sbx_err_set(&err, code, NULL);
  sbx_op_finish(op, code != SBX_OK ? &err : NULL);
}

void sbx_op_disown(sbx_op *op) {
  op->done = NULL;
}

void sbx_op_drop(sbx_op **op, int reason) {
  sbx_op *dropped = *op;
  *op = NULL;
  if (dropped == NULL)
    return;
  sbx_op_disown(dropped);
  sbx_op_abort(dropped, reason);
}

void sbx__op_abort_all(sbx_loop *loop) {
  for (sbx_op *op = *sbx__loop_ops(loop); op != NULL; op = op->next)
    sbx_op_abort(op, SBX_ECLOSED);
}
