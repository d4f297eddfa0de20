/* driver.c - see the header.
 *
 * One epoll descriptor has the watched descriptors, a timer and an eventfd that wakes. The waiting
 * thread waits on a second one, which has the first, for one report only: it is armed again at the
 * end of each turn. So the two threads share no data, and need no lock.
 *
 * Invariant: only the loop's thread touches what is here, but for the wake descriptor, which the
 * pool's threads write to, the `pause` flag, and what never changes. */
#include "core/driver.h"

#include "core/err.h"

#ifdef __linux__
#include "core/alloc.h"
#include "core/host.h"
#include "core/os.h"
#include "core/pool.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

enum { BATCH = 64 };

/* After so much work of ours, the thread waits a moment before it asks for the next turn. A
 * runtime calls what was asked for while it calls something, at once, so without it the program's
 * other work would get no turn while there is always something ready. */
#define BUSY_NS (UINT64_C(2) * 1000 * 1000)
#define PAUSE_NS 100000

typedef struct driver_watch {
  sbx_watch base;
  sbx_driver *driver;
  int fd;
  uint32_t events; /* 0: it is not among the descriptors */
  sbx_task failed; /* tells that it could not be put back there */
} driver_watch;

struct sbx_driver {
  sbx__host base;
  sbx_driver_host host;
  sbx_pool *pool;

  int ready_fd; /* epoll: all that is watched */
  int outer_fd; /* epoll: ready_fd and stop_fd, for the thread */
  int wake_fd, timer_fd, stop_fd;
  pthread_t waiter;
  bool waits; /* the thread runs */
  atomic_bool pause;

  struct epoll_event batch[BATCH]; /* what this turn's look has brought */
  int batch_at, batch_count;
  uint64_t timer_at_ms; /* when the timer comes; UINT64_MAX: not */
  uint64_t busy_ns;     /* since the last pause */
  bool turning;
  bool woken; /* sbx__loop_woken() is due */
  bool hurry;
  bool leaving; /* sbx_driver_free() was called */
  bool closed;
};

static sbx_driver *of_host(sbx__host *host) {
  return (sbx_driver *)(void *)host;
}

static void kick(int fd) {
  const uint64_t one = 1;
  ssize_t n;
  do
    n = write(fd, &one, sizeof one);
  while (n < 0 && errno == EINTR);
}

static bool add(int epoll, int fd, uint32_t events, void *arg) {
  struct epoll_event event = {.events = events, .data.ptr = arg};
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* ---- turns ---- */

static void wake(sbx__host *host) {
  sbx_driver *d = of_host(host);
  if (!d->woken && !d->turning)
    kick(d->wake_fd);
  d->woken = true;
}

static void keep(sbx__host *host, bool alive) {
  sbx_driver *d = of_host(host);
  if (!d->leaving)
    d->host.keep(d->host.arg, alive);
}

/* Set earlier only: a timer that comes too early costs one turn, and most are stopped in time. */
static void timer(sbx__host *host, uint64_t delay_ms) {
  sbx_driver *d = of_host(host);
  uint64_t now = sbx_now_ms();
  uint64_t at = delay_ms < UINT64_MAX - now ? now + delay_ms : UINT64_MAX;
  if (at >= d->timer_at_ms)
    return;
  d->timer_at_ms = at;
  struct itimerspec in = {.it_value.tv_sec = (time_t)(delay_ms / 1000),
                          .it_value.tv_nsec = (long)(delay_ms % 1000) * 1000000};
  if (delay_ms == 0)
    in.it_value.tv_nsec = 1; /* 0 would stop it */
  timerfd_settime(d->timer_fd, 0, &in, NULL);
}

/* A turn's timers come after its look, and its end comes always. */
static void nothing(sbx__host *host) {
  (void)host;
}

static void hurry(sbx__host *host, bool on) {
  sbx_driver *d = of_host(host);
  d->hurry = on;
  if (on && !d->turning)
    kick(d->wake_fd);
}

/* ---- watches ---- */

static driver_watch *of_watch(sbx_watch *watch) {
  return (driver_watch *)(void *)watch;
}

static void set_events(driver_watch *watch, uint32_t events) {
  if (events == watch->events)
    return;
  struct epoll_event event = {.events = events, .data.ptr = watch};
  int what = watch->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  watch->events = epoll_ctl(watch->driver->ready_fd, what, watch->fd, &event) == 0 ? events : 0;
}

/* An event of this turn that has not been brought yet would come to a watch that is gone. */
static void forget(driver_watch *watch) {
  sbx_driver *d = watch->driver;
  for (int i = d->batch_at; i < d->batch_count; i++) {
    if (d->batch[i].data.ptr == watch)
      d->batch[i].data.ptr = NULL;
  }
}

static void report_failed(sbx_task *task) {
  driver_watch *watch = (driver_watch *)(void *)((char *)task - offsetof(driver_watch, failed));
  watch->base.fn(watch->base.arg, SBX_FAILED);
}

static int watch_start(sbx__host *base, int fd, sbx_watch **out, sbx_err *err) {
  sbx_driver *d = of_host(base);
  driver_watch *watch = sbx_calloc(1, sizeof *watch);
  if (watch == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  watch->driver = d;
  watch->fd = fd;
  sbx_task_init(&watch->failed, report_failed);
  set_events(watch, EPOLLIN); /* whether it can be watched shows when it is */
  if (watch->events == 0) {
    int rc = errno == ENOMEM || errno == ENOSPC ? SBX_ENOMEM : SBX_EINVAL;
    sbx_free(watch);
    return sbx_err_set(err, rc, "cannot watch a descriptor: %s", strerror(errno));
  }
  *out = &watch->base;
  return SBX_OK;
}

static void watch_set(sbx_watch *base, int events) {
  driver_watch *watch = of_watch(base);
  if (events == 0)
    forget(watch);
  sbx_task_cancel(&watch->failed);
  set_events(watch, ((events & SBX_READABLE) ? (uint32_t)EPOLLIN : 0) |
                        ((events & SBX_WRITABLE) ? (uint32_t)EPOLLOUT : 0));
  if (events != 0 && watch->events == 0)
    sbx_loop_defer(watch->driver->base.loop, &watch->failed);
}

static void watch_stop(sbx_watch *base) {
  driver_watch *watch = of_watch(base);
  sbx_task_cancel(&watch->failed);
  set_events(watch, 0);
  forget(watch);
  sbx_free(watch);
}

static void bring(driver_watch *watch, uint32_t events) {
  int seen = ((events & EPOLLIN) ? SBX_READABLE : 0) | ((events & EPOLLOUT) ? SBX_WRITABLE : 0);
  if (events & EPOLLERR) {
    seen = SBX_FAILED;
    set_events(watch, 0);
  } else if (seen == 0) { /* hung up, and nothing is left in it */
    seen = ((watch->events & EPOLLIN) ? SBX_READABLE : 0) |
           ((watch->events & EPOLLOUT) ? SBX_WRITABLE : 0);
  }
  sbx__loop_ready(&watch->base, seen);
}

/* ---- work and names ---- */

typedef struct driver_job {
  sbx_pool_job base;
  sbx__job job;
} driver_job;

static void run_job(sbx_pool_job *base) {
  const driver_job *own = (const driver_job *)(void *)base;
  own->job.run(own->job.arg);
}

static void job_done(sbx_pool_job *base) {
  sbx__job job = ((const driver_job *)(void *)base)->job;
  sbx_free(base);
  sbx__loop_worked(&job);
}

static int work(sbx__host *base, const sbx__job *job, sbx_err *err) {
  driver_job *own = sbx_calloc(1, sizeof *own);
  if (own == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  own->base.run = run_job;
  own->base.done = job_done;
  own->job = *job;
  int code = sbx_pool_add(of_host(base)->pool, &own->base, err);
  if (code != SBX_OK)
    sbx_free(own);
  return code;
}

enum { NAME_MAX_BYTES = 253 };

typedef struct driver_search {
  sbx_pool_job base;
  sbx__search search;
  struct addrinfo *found;
  int rc;
  char name[NAME_MAX_BYTES + 1];
} driver_search;

static void run_search(sbx_pool_job *base) {
  static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  driver_search *own = (driver_search *)(void *)base;
  own->rc = getaddrinfo(own->name, NULL, &hints, &own->found);
}

static void search_done(sbx_pool_job *base) {
  driver_search *own = (driver_search *)(void *)base;
  sbx__search search = own->search;
  struct addrinfo *found = own->rc == 0 ? own->found : NULL;
  const char *why = own->rc == 0 ? NULL : gai_strerror(own->rc);
  sbx_free(own);
  sbx__loop_found(&search, found, why);
  if (found != NULL)
    freeaddrinfo(found);
}

static int lookup(sbx__host *base, const char *name, const sbx__search *search, sbx_err *err) {
  size_t len = strnlen(name, NAME_MAX_BYTES + 1);
  if (len == 0 || len > NAME_MAX_BYTES)
    return sbx_err_set(err, SBX_EINVAL, "cannot look for a host: that is no name");
  driver_search *own = sbx_calloc(1, sizeof *own);
  if (own == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  own->base.run = run_search;
  own->base.done = search_done;
  own->search = *search;
  memcpy(own->name, name, len);
  int code = sbx_pool_add(of_host(base)->pool, &own->base, err);
  if (code != SBX_OK)
    sbx_free(own);
  return code;
}

static void wake_from_pool(void *arg) {
  kick(((const sbx_driver *)arg)->wake_fd);
}

/* ---- a turn ---- */

static void take_turn(sbx_driver *d, int wait_ms) {
  bool woken = d->woken, due = false;
  d->turning = true;
  d->woken = false;
  int n = epoll_wait(d->ready_fd, d->batch, BATCH, woken || d->hurry ? 0 : wait_ms);
  d->batch_count = n > 0 ? n : 0;
  for (d->batch_at = 0; d->batch_at < d->batch_count;) {
    const struct epoll_event *event = &d->batch[d->batch_at++];
    if (event->data.ptr == &d->timer_fd)
      due = true;
    else if (event->data.ptr != &d->wake_fd && event->data.ptr != NULL)
      bring(event->data.ptr, event->events);
  }
  d->batch_count = 0;
  for (sbx_pool_job *job = sbx_pool_take(d->pool), *next; job != NULL; job = next) {
    next = job->next;
    job->done(job);
  }
  if ((woken || d->hurry) && !d->closed)
    sbx__loop_woken(d->base.loop);
  if (due && !d->closed) {
    d->timer_at_ms = UINT64_MAX;
    sbx__loop_timer(d->base.loop, true);
  }
  if (!d->closed)
    sbx__loop_turn_ended(d->base.loop);
  d->turning = false;
}

void sbx_driver_turn(sbx_driver *d) {
  if (d->closed || !d->waits)
    return;
  assert(!d->turning);
  uint64_t began = sbx_os_now_ns();
  take_turn(d, 0);
  if (d->woken || d->hurry)
    kick(d->wake_fd);
  d->busy_ns += sbx_os_now_ns() - began;
  atomic_store(&d->pause, d->busy_ns > BUSY_NS);
  if (d->busy_ns > BUSY_NS)
    d->busy_ns = 0;
  struct epoll_event again = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = d};
  epoll_ctl(d->outer_fd, EPOLL_CTL_MOD, d->ready_fd, &again);
}

/* ---- the host ---- */

static void close_host(sbx__host *host) {
  of_host(host)->closed = true;
}

static const sbx__host_ops ops = {
    .wake = wake,
    .keep = keep,
    .timer = timer,
    .look = nothing,
    .turn = nothing,
    .hurry = hurry,
    .watch_start = watch_start,
    .watch_set = watch_set,
    .watch_stop = watch_stop,
    .work = work,
    .lookup = lookup,
    .close = close_host,
};

static void *wait_for_turns(void *arg) {
  sbx_driver *d = arg;
  const struct timespec moment = {.tv_nsec = PAUSE_NS};
  for (;;) {
    struct epoll_event event;
    if (epoll_wait(d->outer_fd, &event, 1, -1) != 1)
      continue; /* the process was stopped, and goes on */
    if (event.data.ptr == &d->stop_fd)
      return NULL;
    if (atomic_load(&d->pause))
      nanosleep(&moment, NULL);
    d->host.ready(d->host.arg);
  }
}

static void free_driver(sbx_driver *d) {
  const int fds[] = {d->outer_fd, d->ready_fd, d->wake_fd, d->timer_fd, d->stop_fd};
  for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
    if (fds[i] >= 0)
      close(fds[i]);
  }
  sbx_pool_free(d->pool);
  sbx_free(d);
}

static bool open_descriptors(sbx_driver *d) {
  d->ready_fd = epoll_create1(EPOLL_CLOEXEC);
  d->outer_fd = epoll_create1(EPOLL_CLOEXEC);
  d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  d->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  d->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  /* Those of ours report each change, so that they need not be read. */
  return d->ready_fd >= 0 && d->outer_fd >= 0 && d->wake_fd >= 0 && d->stop_fd >= 0 &&
         d->timer_fd >= 0 && add(d->ready_fd, d->wake_fd, EPOLLIN | EPOLLET, &d->wake_fd) &&
         add(d->ready_fd, d->timer_fd, EPOLLIN | EPOLLET, &d->timer_fd) &&
         add(d->outer_fd, d->stop_fd, EPOLLIN, &d->stop_fd) &&
         add(d->outer_fd, d->ready_fd, EPOLLIN | EPOLLONESHOT, d);
}

int sbx_driver_new(sbx_driver **out, sbx_loop **loop, const sbx_driver_host *host, sbx_err *err) {
  sbx_driver *d = sbx_calloc(1, sizeof *d);
  if (d == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  d->base.ops = &ops;
  d->host = *host;
  d->timer_at_ms = UINT64_MAX;
  d->outer_fd = d->ready_fd = d->wake_fd = d->timer_fd = d->stop_fd = -1;
  atomic_init(&d->pause, false);
  int code = sbx_pool_new(&d->pool, wake_from_pool, d, err);
  if (code == SBX_OK && !open_descriptors(d))
    code = sbx_err_set(err, SBX_EPROVIDER, "cannot make an event loop: %s", strerror(errno));
  if (code == SBX_OK)
    code = sbx__loop_new(loop, &d->base, err);
  if (code != SBX_OK) {
    free_driver(d);
    return code;
  }
  int rc = sbx_thread_start(&d->waiter, wait_for_turns, d);
  if (rc != 0) {
    sbx__loop_closed(*loop);
    free_driver(d);
    return sbx_err_set(err, SBX_EPROVIDER, "cannot start a thread: %s", strerror(rc));
  }
  d->waits = true;
  *out = d;
  return SBX_OK;
}

void sbx_driver_quiet(sbx_driver *d) {
  if (!d->waits)
    return;
  d->waits = false;
  kick(d->stop_fd);
  pthread_join(d->waiter, NULL);
}

void sbx_driver_free(sbx_driver *d) {
  sbx_driver_quiet(d);
  d->leaving = true;
  if (d->turning)
    return;
  if (!sbx_loop_is_closing(d->base.loop))
    sbx_loop_close(d->base.loop, NULL, NULL);
  while (!d->closed)
    take_turn(d, -1);
  sbx__loop_closed(d->base.loop);
  free_driver(d);
}
#else

int sbx_driver_new(sbx_driver **out, sbx_loop **loop, const sbx_driver_host *host, sbx_err *err) {
  (void)out, (void)loop, (void)host;
  return sbx_err_set(err, SBX_EUNSUPPORTED,
                     "this JavaScript runtime is supported on Linux only; use Node.js");
}

void sbx_driver_turn(sbx_driver *driver) {
  (void)driver;
}

void sbx_driver_quiet(sbx_driver *driver) {
  (void)driver;
}

void sbx_driver_free(sbx_driver *driver) {
  (void)driver;
}

#endif
