/* pool.c - see the header.
 *
 * Invariant: what the lock guards is read and written under it alone; a job belongs to the pool
 * from sbx_pool_add() until sbx_pool_take() gives it back. */
#include "core/pool.h"

#include "core/alloc.h"
#include "core/err.h"

#include <assert.h>
#include <signal.h>
#include <string.h>

enum { THREADS_MAX = 4, STACK_BYTES = 512 * 1024 };

typedef struct queue {
  sbx_pool_job *first;
  sbx_pool_job **last;
} queue;

struct sbx_pool {
  void (*wake)(void *arg);
  void *arg;
  pthread_t threads[THREADS_MAX];
  size_t count; /* of threads; the owner's */

  pthread_mutex_t lock; /* guards the rest */
  pthread_cond_t more;
  queue waiting, ran;
  size_t idle; /* threads that wait for a job */
  bool ending;
};

static void put(queue *q, sbx_pool_job *job) {
  job->next = NULL;
  *q->last = job;
  q->last = &job->next;
}

static sbx_pool_job *take_all(queue *q) {
  sbx_pool_job *first = q->first;
  q->first = NULL;
  q->last = &q->first;
  return first;
}

static sbx_pool_job *take_one(queue *q) {
  sbx_pool_job *job = q->first;
  q->first = job->next;
  if (q->first == NULL)
    q->last = &q->first;
  return job;
}

int sbx_thread_start(pthread_t *out, void *(*run)(void *arg), void *arg) {
  pthread_attr_t attr;
  sigset_t all, before;
  int rc = pthread_attr_init(&attr);
  if (rc != 0)
    return rc;
  (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  rc = pthread_create(out, &attr, run, arg);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  return rc;
}

static void *serve(void *arg) {
  sbx_pool *pool = arg;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (pool->waiting.first == NULL && !pool->ending) {
      pool->idle++;
      pthread_cond_wait(&pool->more, &pool->lock);
      pool->idle--;
    }
    if (pool->waiting.first == NULL)
      break;
    sbx_pool_job *job = take_one(&pool->waiting);
    pthread_mutex_unlock(&pool->lock);
    job->run(job);
    pthread_mutex_lock(&pool->lock);
    put(&pool->ran, job);
    pool->wake(pool->arg);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

int sbx_pool_new(sbx_pool **out, void (*wake)(void *arg), void *arg, sbx_err *err) {
  sbx_pool *pool = sbx_calloc(1, sizeof *pool);
  if (pool == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  pool->wake = wake;
  pool->arg = arg;
  pool->waiting.last = &pool->waiting.first;
  pool->ran.last = &pool->ran.first;
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->more, NULL);
  *out = pool;
  return SBX_OK;
}

int sbx_pool_add(sbx_pool *pool, sbx_pool_job *job, sbx_err *err) {
  pthread_mutex_lock(&pool->lock);
  size_t waiting = 1;
  for (const sbx_pool_job *other = pool->waiting.first; other != NULL && waiting <= pool->idle;
       other = other->next)
    waiting++;
  bool enough = waiting <= pool->idle || pool->count == THREADS_MAX;
  pthread_mutex_unlock(&pool->lock);
  int rc = enough ? 0 : sbx_thread_start(&pool->threads[pool->count], serve, pool);
  if (rc != 0 && pool->count == 0)
    return sbx_err_set(err, SBX_ENOMEM, "cannot start a thread: %s", strerror(rc));
  if (!enough && rc == 0)
    pool->count++;
  pthread_mutex_lock(&pool->lock);
  put(&pool->waiting, job);
  pthread_cond_signal(&pool->more);
  pthread_mutex_unlock(&pool->lock);
  return SBX_OK;
}

sbx_pool_job *sbx_pool_take(sbx_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  sbx_pool_job *first = take_all(&pool->ran);
  pthread_mutex_unlock(&pool->lock);
  return first;
}

void sbx_pool_free(sbx_pool *pool) {
  if (pool == NULL)
    return;
  pthread_mutex_lock(&pool->lock);
  assert(pool->waiting.first == NULL && pool->ran.first == NULL);
  pool->ending = true;
  pthread_cond_broadcast(&pool->more);
  pthread_mutex_unlock(&pool->lock);
  for (size_t i = 0; i < pool->count; i++)
    pthread_join(pool->threads[i], NULL);
  pthread_cond_destroy(&pool->more);
  pthread_mutex_destroy(&pool->lock);
  sbx_free(pool);
}
