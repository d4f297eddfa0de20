/* spool.c - bytes that come inside libcurl wait here for the ready list.
 *
 * Invariant: each byte is handed on once, in order, and never from inside sbx_spool_add(). */
#include "core/spool.h"

#include "core/alloc.h"

static void on_turn(sbx_task *task) {
  sbx_spool_flush((sbx_spool *)(void *)((char *)task - offsetof(sbx_spool, task)));
}

void sbx_spool_init(sbx_spool *spool, sbx_loop *loop, sbx_spool_fn fn, void *arg) {
  sbx_buf_init(&spool->bytes, SIZE_MAX / 2);
  sbx_task_init(&spool->task, on_turn);
  spool->loop = loop;
  spool->fn = fn;
  spool->arg = arg;
}

void sbx_spool_deinit(sbx_spool *spool) {
  sbx_task_cancel(&spool->task);
  sbx_buf_deinit(&spool->bytes);
}

int sbx_spool_add(sbx_spool *spool, sbx_slice bytes) {
  int rc = sbx_buf_append_slice(&spool->bytes, bytes);
  if (rc == SBX_OK && bytes.len > 0)
    sbx_loop_defer(spool->loop, &spool->task);
  return rc;
}

void sbx_spool_flush(sbx_spool *spool) {
  size_t len;
  sbx_task_cancel(&spool->task);
  char *bytes = sbx_buf_take(&spool->bytes, &len);
  if (bytes != NULL && len > 0)
    spool->fn(spool->arg, sbx_slice_of(bytes, len));
  sbx_free(bytes);
}
