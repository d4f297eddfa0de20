/* pool.h - a few threads for work that blocks, made when there is some. */
#ifndef SBX_CORE_POOL_H
#define SBX_CORE_POOL_H

#include "sbx.h"

#include <pthread.h>

/* Embedded in its owner. */
typedef struct sbx_pool_job {
  struct sbx_pool_job *next;
  void (*run)(struct sbx_pool_job *job);  /* on a thread of the pool */
  void (*done)(struct sbx_pool_job *job); /* for its owner, to call after sbx_pool_take() */
} sbx_pool_job;

typedef struct sbx_pool sbx_pool;

/* `wake(arg)` is called on a thread of the pool when a job has run. Errors: SBX_ENOMEM. */
int sbx_pool_new(sbx_pool **out, void (*wake)(void *arg), void *arg, sbx_err *err);
/* Errors: SBX_ENOMEM when the system gives not one thread. */
int sbx_pool_add(sbx_pool *pool, sbx_pool_job *job, sbx_err *err);
/* The jobs that have run since this was called last, in that order; NULL: none. */
sbx_pool_job *sbx_pool_take(sbx_pool *pool);
/* No job may be left. NULL is fine. */
void sbx_pool_free(sbx_pool *pool);

/* A thread that receives no signal. Its stack is small. */
int sbx_thread_start(pthread_t *out, void *(*run)(void *arg), void *arg);

#endif
