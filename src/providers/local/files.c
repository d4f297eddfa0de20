/* files.c - put, get, list and the verbs of paths: file access on libuv's pool threads.
 *
 * Invariant: while the work runs, only its thread touches the job's data, and nothing of the caller
 * is touched by it: an op that is aborted finishes at once, the job lives until its work has
 * ended. But a write that is called off is waited for, since it must not replace what is written
 * after it; not for long, should it be stuck. */
#include "providers/local/local.h"

#include "core/alloc.h"
#include "core/err.h"

#include <stdatomic.h>

enum { STUCK_MS = 3000 /* a write stops within a moment, unless its disk hangs */ };

typedef struct file_job {
  sbx_op op;
  sbx__workspace *workspace;
  int (*run)(struct file_job *job);
  sbx_slice path; /* into `copy` */
  sbx_slice bytes;
  char *copy;
  size_t max_entries;
  sbx_path_request request;
  sbx_buf data;
  sbx_listing listing;
  sbx_stats stats;
  sbx_buf *data_out; /* the caller's */
  sbx_listing *listing_out;
  sbx_stats *stats_out;
  int rc;
  sbx_err err; /* of the work */
  bool working;
  bool called_off;
  bool destroyed;    /* the op is over, the work is not */
  atomic_bool begun; /* set before `stop` is looked at, and that before this is */
  atomic_bool stop;
} file_job;

static file_job *job_of(sbx_op *op) {
  return (file_job *)(void *)op;
}

static void free_job(file_job *job) {
  sbx__workspace_unref(job->workspace);
  sbx_buf_deinit(&job->data);
  sbx_listing_free(&job->listing);
  sbx_stats_free(&job->stats);
  sbx_free(job->copy);
  sbx_free(job);
}

static void destroy_job(sbx_op *op) {
  file_job *job = job_of(op);
  job->destroyed = true;
  if (!job->working)
    free_job(job);
}

static int run_put(file_job *job) {
  return sbx_local_fs_write(&job->workspace->root, job->path, job->bytes, &job->stop, &job->err);
}

static int run_request(file_job *job);

static bool writes(const file_job *job) {
  sbx_path_verb verb = job->request.verb;
  bool by_parts = verb == SBX_PATH_JOIN || verb == SBX_PATH_TAKE;
  return job->run == run_put || (job->run == run_request && by_parts);
}

static void abort_job(sbx_op *op, int reason) {
  file_job *job = job_of(op);
  atomic_store(&job->stop, true);
  if (reason == SBX_ECANCELED && writes(job) && job->working && atomic_load(&job->begun)) {
    job->called_off = true;
    sbx_op_set_deadline(op, STUCK_MS);
  } else {
    sbx_op_finish_code(op, job->called_off && reason == SBX_ETIMEOUT ? SBX_ECANCELED : reason);
  }
}

static const sbx_op_class file_class = {"local file", abort_job, destroy_job};

static void work(void *arg) {
  file_job *job = arg;
  atomic_store(&job->begun, true);
  job->rc = atomic_load(&job->stop) ? sbx_err_set(&job->err, SBX_ECANCELED, NULL) : job->run(job);
}

/* Moves the result to the caller. */
static void deliver(file_job *job) {
  if (job->data_out != NULL) {
    sbx_buf_deinit(job->data_out);
    *job->data_out = job->data;
    sbx_buf_init(&job->data, 0);
  }
  if (job->listing_out != NULL) {
    *job->listing_out = job->listing;
    job->listing = (sbx_listing){NULL, 0};
  }
  if (job->stats_out != NULL) {
    *job->stats_out = job->stats;
    job->stats = (sbx_stats){0};
  }
}

static void on_worked(void *arg) {
  file_job *job = arg;
  job->working = false;
  if (job->destroyed) {
    free_job(job);
    return;
  }
  if (job->op.finished)
    return;
  if (job->rc == SBX_OK)
    deliver(job);
  sbx_op_finish(&job->op, job->rc != SBX_OK ? &job->err : NULL);
}

static file_job *new_job(sbx_session *session, sbx_slice path, sbx_slice bytes) {
  file_job *job = sbx_calloc(1, sizeof *job);
  if (job == NULL)
    return NULL;
  if (sbx_slices_copy(&job->copy, &path, &bytes) != SBX_OK) {
    sbx_free(job);
    return NULL;
  }
  job->path = path;
  job->bytes = bytes;
  job->workspace = sbx__workspace_ref(session->workspace);
  return job;
}

static sbx_op *start_job(file_job *job, sbx_loop *loop, sbx_op_done done, void *arg) {
  sbx_err err;
  sbx_op_init(&job->op, &file_class, loop, done, arg);
  if (sbx_loop_is_closing(loop))
    return &job->op; /* aborted from the ready list */
  job->working = true;
  if (sbx_work_start(loop, work, on_worked, job, &err) != SBX_OK) {
    job->working = false;
    sbx_op_finish(&job->op, &err);
  }
  return &job->op;
}

static int run_get(file_job *job) {
  return sbx_local_fs_read(&job->workspace->root, job->path, &job->data, &job->err);
}

static int run_list(file_job *job) {
  return sbx_local_fs_list(&job->workspace->root, job->max_entries, &job->listing, &job->err);
}

sbx_op *sbx__local_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                       void *arg) {
  file_job *job = new_job(session, path, bytes);
  if (job == NULL)
    return NULL;
  job->run = run_put;
  return start_job(job, session->config->loop, done, arg);
}

sbx_op *sbx__local_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                       void *arg) {
  file_job *job = new_job(session, path, sbx_slice_of(NULL, 0));
  if (job == NULL)
    return NULL;
  job->run = run_get;
  job->data_out = out;
  sbx_buf_init(&job->data, out->max);
  return start_job(job, session->config->loop, done, arg);
}

sbx_op *sbx__local_list(sbx_session *session, size_t max_entries, sbx_listing *out,
                        sbx_op_done done, void *arg) {
  file_job *job = new_job(session, sbx_slice_of(NULL, 0), sbx_slice_of(NULL, 0));
  if (job == NULL)
    return NULL;
  job->run = run_list;
  job->max_entries = max_entries;
  job->listing_out = out;
  return start_job(job, session->config->loop, done, arg);
}

static int run_request(file_job *job) {
  const sbx_local_root *root = &job->workspace->root;
  const sbx_path_request *request = &job->request;
  switch (request->verb) {
  case SBX_PATH_STAT:
    return sbx_local_fs_stat(root, job->path, &job->stats, &job->err);
  case SBX_PATH_LIST:
    return sbx_local_fs_list_dir(root, job->path, request->max_entries, &job->stats, &job->err);
  case SBX_PATH_REMOVE:
    return sbx_local_fs_remove_path(root, job->path, request->recursive, &job->stop, &job->err);
  case SBX_PATH_MOVE:
    return sbx_local_fs_move(root, job->path, job->bytes, &job->err);
  case SBX_PATH_PART:
    return sbx_local_fs_part(root, request, &job->stats, &job->err);
  case SBX_PATH_JOIN:
    return sbx_local_fs_join(root, request, &job->stop, &job->err);
  case SBX_PATH_TAKE:
    return sbx_local_fs_take(root, request, &job->stop, &job->err);
  case SBX_PATH_MAKE:
    break;
  }
  return sbx_local_fs_make_dir(root, job->path, &job->err);
}

sbx_op *sbx__local_at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                           sbx_op_done done, void *arg) {
  file_job *job = new_job(session, request->path, request->to);
  if (job == NULL)
    return NULL;
  job->run = run_request;
  job->request = *request;
  job->request.path = job->path;
  job->request.to = job->bytes;
  job->stats_out = out;
  return start_job(job, session->config->loop, done, arg);
}
