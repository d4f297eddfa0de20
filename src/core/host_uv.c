/* host_uv.c - core/loop on a uv_loop_t.
 *
 * Handles: one uv_timer_t, two uv_check_t, one uv_idle_t, one uv_poll_t per watch, and one
 * uv_async_t. All are unreferenced but the async, which is referenced exactly while the loop says
 * that it must be kept; it also wakes the loop when a task is queued from outside.
 *
 * Invariant: memory that embeds a uv handle is freed only in that handle's close callback. */
#include "core/alloc.h"
#include "core/err.h"
#include "core/host.h"

#ifdef SBX_WEAK_UV
/* The addon is loaded by runtimes that have not all of these too; it does not come here then. */
#pragma weak uv_async_init
#pragma weak uv_async_send
#pragma weak uv_check_init
#pragma weak uv_check_start
#pragma weak uv_check_stop
#pragma weak uv_close
#pragma weak uv_freeaddrinfo
#pragma weak uv_getaddrinfo
#pragma weak uv_idle_init
#pragma weak uv_idle_start
#pragma weak uv_idle_stop
#pragma weak uv_poll_init
#pragma weak uv_poll_start
#pragma weak uv_poll_stop
#pragma weak uv_queue_work
#pragma weak uv_ref
#pragma weak uv_strerror
#pragma weak uv_timer_init
#pragma weak uv_timer_start
#pragma weak uv_timer_stop
#pragma weak uv_unref
#endif

typedef struct uv_host {
  sbx__host base;
  uv_loop_t *uv;
  uv_async_t wake;
  uv_timer_t timer;
  uv_check_t look;     /* active while the loop waits for a look at the descriptors */
  uv_check_t turn;     /* active in turns in which something of ours ran */
  uv_idle_t hurry;     /* active while each turn is wanted: its poll does not wait then */
  size_t open_handles; /* whose close callback has not come yet */
} uv_host;

typedef struct uv_watch {
  sbx_watch base;
  uv_poll_t poll;
} uv_watch;

typedef struct uv_job {
  uv_work_t req;
  sbx__job job;
} uv_job;

typedef struct uv_search {
  uv_getaddrinfo_t req;
  sbx__search search;
} uv_search;

static uv_host *of_host(sbx__host *host) {
  return (uv_host *)(void *)host;
}

static sbx_loop *loop_of(const void *data) {
  return ((const uv_host *)data)->base.loop;
}

/* ---- turns ---- */

static void on_wake(uv_async_t *handle) {
  sbx__loop_woken(loop_of(handle->data));
}

static void wake(sbx__host *host) {
  uv_async_send(&of_host(host)->wake);
}

static void keep(sbx__host *host, bool alive) {
  if (alive)
    uv_ref((uv_handle_t *)&of_host(host)->wake);
  else
    uv_unref((uv_handle_t *)&of_host(host)->wake);
}

static void on_timer(uv_timer_t *handle) {
  sbx__loop_timer(loop_of(handle->data), false);
}

/* libuv counts from its cached time, so it may come early. */
static void timer(sbx__host *host, uint64_t delay_ms) {
  if (delay_ms == SBX_NO_TIMEOUT)
    uv_timer_stop(&of_host(host)->timer);
  else
    uv_timer_start(&of_host(host)->timer, on_timer, delay_ms, 0);
}

/* A check comes right after the poll. */
static void on_look(uv_check_t *handle) {
  uv_check_stop(handle);
  sbx__loop_looked(loop_of(handle->data));
}

static void look(sbx__host *host) {
  uv_check_start(&of_host(host)->look, on_look);
}

/* A turn ends after the poll: timers that come before the next one belong to the next one. */
static void on_turn(uv_check_t *handle) {
  uv_check_stop(handle);
  sbx__loop_turn_ended(loop_of(handle->data));
}

static void turn(sbx__host *host) {
  uv_check_start(&of_host(host)->turn, on_turn);
}

static void on_hurry(uv_idle_t *handle) {
  sbx__loop_woken(loop_of(handle->data));
}

static void hurry(sbx__host *host, bool on) {
  if (on)
    uv_idle_start(&of_host(host)->hurry, on_hurry);
  else
    uv_idle_stop(&of_host(host)->hurry);
}

/* ---- the end ---- */

static void on_handle_closed(uv_host *host) {
  if (--host->open_handles > 0)
    return;
  sbx_loop *loop = host->base.loop;
  sbx_free(host);
  sbx__loop_closed(loop);
}

static void on_own_closed(uv_handle_t *handle) {
  on_handle_closed(handle->data);
}

static void close_host(sbx__host *base) {
  uv_host *host = of_host(base);
  uv_close((uv_handle_t *)&host->timer, on_own_closed);
  uv_close((uv_handle_t *)&host->look, on_own_closed);
  uv_close((uv_handle_t *)&host->turn, on_own_closed);
  uv_close((uv_handle_t *)&host->hurry, on_own_closed);
  uv_close((uv_handle_t *)&host->wake, on_own_closed);
}

/* ---- watches ---- */

static uv_watch *of_watch(sbx_watch *watch) {
  return (uv_watch *)(void *)watch;
}

static void on_poll(uv_poll_t *handle, int status, int events) {
  uv_watch *watch = handle->data;
  int seen = SBX_FAILED; /* libuv has stopped the poll then */
  if (status == 0)
    seen =
        ((events & UV_READABLE) ? SBX_READABLE : 0) | ((events & UV_WRITABLE) ? SBX_WRITABLE : 0);
  sbx__loop_ready(&watch->base, seen);
}

static int watch_start(sbx__host *base, int fd, sbx_watch **out, sbx_err *err) {
  uv_host *host = of_host(base);
  uv_watch *watch = sbx_calloc(1, sizeof *watch);
  if (watch == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  int rc = uv_poll_init(host->uv, &watch->poll, fd);
  if (rc != 0) {
    sbx_free(watch);
    return sbx_err_set(err, rc == UV_ENOMEM ? SBX_ENOMEM : SBX_EINVAL,
                       "cannot watch a descriptor: %s", uv_strerror(rc));
  }
  uv_unref((uv_handle_t *)&watch->poll);
  watch->poll.data = watch;
  host->open_handles++;
  *out = &watch->base;
  return SBX_OK;
}

static void watch_set(sbx_watch *watch, int events) {
  uv_poll_t *poll = &of_watch(watch)->poll;
  int mask =
      ((events & SBX_READABLE) ? UV_READABLE : 0) | ((events & SBX_WRITABLE) ? UV_WRITABLE : 0);
  if (mask == 0)
    uv_poll_stop(poll);
  else
    uv_poll_start(poll, mask, on_poll);
}

static void on_watch_closed(uv_handle_t *handle) {
  uv_watch *watch = handle->data;
  uv_host *host = of_host(sbx__loop_host(watch->base.loop));
  sbx_free(watch);
  on_handle_closed(host);
}

static void watch_stop(sbx_watch *watch) {
  uv_close((uv_handle_t *)&of_watch(watch)->poll, on_watch_closed);
}

/* ---- libuv's thread pool ---- */

static void on_work(uv_work_t *req) {
  uv_job *job = req->data;
  job->job.run(job->job.arg);
}

static void on_work_done(uv_work_t *req, int status) {
  uv_job *job = req->data;
  sbx__job copy = job->job;
  (void)status; /* nothing here cancels a request */
  sbx_free(job);
  sbx__loop_worked(&copy);
}

static int work(sbx__host *base, const sbx__job *job, sbx_err *err) {
  uv_job *own = sbx_calloc(1, sizeof *own);
  if (own == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  own->req.data = own;
  own->job = *job;
  int rc = uv_queue_work(of_host(base)->uv, &own->req, on_work, on_work_done);
  if (rc == 0)
    return SBX_OK;
  sbx_free(own);
  return sbx_err_set(err, SBX_ENOMEM, "cannot queue work: %s", uv_strerror(rc));
}

static void on_found(uv_getaddrinfo_t *req, int status, struct addrinfo *found) {
  uv_search *own = req->data;
  sbx__search search = own->search;
  sbx_free(own);
  sbx__loop_found(&search, status == 0 ? found : NULL, status == 0 ? NULL : uv_strerror(status));
  uv_freeaddrinfo(found);
}

static int lookup(sbx__host *base, const char *name, const sbx__search *search, sbx_err *err) {
  static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  uv_search *own = sbx_calloc(1, sizeof *own);
  if (own == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  own->req.data = own;
  own->search = *search;
  int rc = uv_getaddrinfo(of_host(base)->uv, &own->req, on_found, name, NULL, &hints);
  if (rc == 0)
    return SBX_OK;
  sbx_free(own);
  return sbx_err_set(err, rc == UV_ENOMEM ? SBX_ENOMEM : SBX_EINVAL, "cannot look for a host: %s",
                     uv_strerror(rc));
}

/* ---- the host ---- */

static const sbx__host_ops ops = {
    .wake = wake,
    .keep = keep,
    .timer = timer,
    .look = look,
    .turn = turn,
    .hurry = hurry,
    .watch_start = watch_start,
    .watch_set = watch_set,
    .watch_stop = watch_stop,
    .work = work,
    .lookup = lookup,
    .close = close_host,
};

int sbx_loop_new(sbx_loop **out, uv_loop_t *uv, sbx_err *err) {
  uv_host *host = sbx_calloc(1, sizeof *host);
  if (host == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  host->base.ops = &ops;
  host->uv = uv;
  sbx_loop *loop = NULL;
  int code = sbx__loop_new(&loop, &host->base, err);
  if (code != SBX_OK) {
    sbx_free(host);
    return code;
  }
  /* The async first: it is the only one that can fail. */
  int rc = uv_async_init(uv, &host->wake, on_wake);
  if (rc != 0) {
    sbx_free(host);
    sbx__loop_closed(loop);
    return sbx_err_set(err, SBX_EINVAL, "cannot use the event loop: %s", uv_strerror(rc));
  }
  uv_timer_init(uv, &host->timer);
  uv_check_init(uv, &host->look);
  uv_check_init(uv, &host->turn);
  uv_idle_init(uv, &host->hurry);
  uv_handle_t *const handles[] = {(uv_handle_t *)&host->wake, (uv_handle_t *)&host->timer,
                                  (uv_handle_t *)&host->look, (uv_handle_t *)&host->turn,
                                  (uv_handle_t *)&host->hurry};
  host->open_handles = sizeof handles / sizeof handles[0];
  for (size_t i = 0; i < host->open_handles; i++) {
    handles[i]->data = host;
    uv_unref(handles[i]);
  }
  *out = loop;
  return SBX_OK;
}
