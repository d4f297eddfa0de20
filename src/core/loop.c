/* loop.c - the core's state on one uv_loop_t.
 *
 * Handles: one uv_timer_t for all sbx_timers (a pairing heap), two uv_check_t, one uv_idle_t, one
 * uv_poll_t per watch, and one uv_async_t. All are unreferenced but the async, which is
 * referenced exactly while something is held, queued or closing; it also wakes the loop when a task
 * is queued from outside.
 *
 * Invariant: tasks run only from leave(), that is, at the end of a libuv callback of ours, or when
 * the host's process ends (sbx_loop_run_ready). Memory that embeds a uv handle is freed only in
 * that handle's close callback. */
#include "core/loop.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/op.h"

#include <assert.h>

/* Tasks that one drain runs before other users of the loop get their turn. */
enum { DRAIN_MAX = 256 };

/* How late a timer comes when the loop was busy, and not just the clock coarse; and how long a
 * deadline that comes late waits for the end of what can be read. */
enum { LATE_MS = 2, LATE_MOST_MS = 100 };

/* Our share of one turn, without the ready list. */
#define SHARE_NS (UINT64_C(6) * 1000 * 1000)

struct sbx_watch {
  uv_poll_t poll;
  sbx_loop *loop;
  sbx_watch *next, *prev;
  sbx_watch_fn fn;
  void *arg;
};

typedef struct pool_work {
  uv_work_t req;
  sbx_loop *loop;
  void (*run)(void *arg);
  void (*done)(void *arg);
  void *arg;
} pool_work;

typedef struct lookup {
  uv_getaddrinfo_t req;
  sbx_loop *loop;
  sbx_lookup_fn done;
  void *arg;
} lookup;

struct sbx_loop {
  uv_loop_t *uv;
  uv_async_t wake;
  uv_timer_t timer;
  uv_check_t check;    /* active while overdue timers wait for a look at the descriptors */
  uv_check_t turn_end; /* active in turns in which something of ours ran */
  uv_idle_t hurry;     /* active while each turn is wanted: its poll does not wait then */
  size_t open_handles; /* whose close callback has not come yet */

  uint64_t turns;      /* counts those */
  uint64_t brought;    /* the last in which a descriptor brought something */
  uint64_t spent_ns;   /* in this one, by callbacks that have returned */
  uint64_t entered_ns; /* when the one that runs began */
  void (*each_turn)(void *arg);
  void *each_turn_arg;

  sbx_task *ready;
  sbx_task **ready_tail;
  unsigned depth; /* of our callbacks: more than one where what we called runs the loop itself */
  sbx_loop_scope_fn scope;
  void *scope_arg;

  sbx_timer *timers; /* root of the heap */
  size_t timer_count;

  sbx_watch *watches;
  sbx_op *ops;
  size_t holds;
  size_t works;

  void *transfer;
  void (*transfer_end)(void *state);
  sbx_loop_state *states;

  bool closing; /* sbx_loop_close() was called */
  bool ended;   /* the handles are being closed */
  void (*closed)(void *arg);
  void *closed_arg;
};

uint64_t sbx_now_ms(void) {
  return uv_hrtime() / 1000000;
}

static void update_ref(sbx_loop *loop) {
  if (loop->ended)
    return;
  if (loop->holds > 0 || loop->ready != NULL || loop->closing)
    uv_ref((uv_handle_t *)&loop->wake);
  else
    uv_unref((uv_handle_t *)&loop->wake);
}

/* ---- deferred tasks ---- */

void sbx_task_init(sbx_task *task, void (*run)(sbx_task *task)) {
  task->next = NULL;
  task->prev_next = NULL;
  task->run = run;
  task->loop = NULL;
}

void sbx_loop_defer(sbx_loop *loop, sbx_task *task) {
  assert(!loop->ended);
  if (task->prev_next != NULL)
    return;
  task->loop = loop;
  task->next = NULL;
  task->prev_next = loop->ready_tail;
  *loop->ready_tail = task;
  loop->ready_tail = &task->next;
  update_ref(loop);
  if (loop->depth == 0)
    uv_async_send(&loop->wake);
}

void sbx_task_cancel(sbx_task *task) {
  if (task->prev_next == NULL)
    return;
  *task->prev_next = task->next;
  if (task->next != NULL)
    task->next->prev_next = task->prev_next;
  else
    task->loop->ready_tail = task->prev_next;
  task->prev_next = NULL;
  task->next = NULL;
  update_ref(task->loop);
}

static void drain(void *arg) {
  sbx_loop *loop = arg;
  for (int n = 0; n < DRAIN_MAX && loop->ready != NULL; n++) {
    sbx_task *task = loop->ready;
    sbx_task_cancel(task);
    task->run(task);
  }
}

/* ---- callbacks of ours: enter() first, leave() last ---- */

static void on_handle_closed(sbx_loop *loop) {
  if (--loop->open_handles > 0)
    return;
  void (*closed)(void *arg) = loop->closed;
  void *arg = loop->closed_arg;
  sbx_free(loop);
  if (closed != NULL)
    closed(arg);
}

static void on_own_handle_closed(uv_handle_t *handle) {
  on_handle_closed(handle->data);
}

/* Nothing is in flight any more: closes what the loop itself owns. */
static void end(sbx_loop *loop) {
  if (loop->transfer_end != NULL)
    loop->transfer_end(loop->transfer);
  while (loop->states != NULL) {
    sbx_loop_state *state = loop->states;
    loop->states = state->next;
    state->end(state);
  }
  loop->ended = true;
  while (loop->watches != NULL)
    sbx_watch_stop(loop->watches);
  uv_close((uv_handle_t *)&loop->timer, on_own_handle_closed);
  uv_close((uv_handle_t *)&loop->check, on_own_handle_closed);
  uv_close((uv_handle_t *)&loop->turn_end, on_own_handle_closed);
  uv_close((uv_handle_t *)&loop->hurry, on_own_handle_closed);
  uv_close((uv_handle_t *)&loop->wake, on_own_handle_closed);
}

static void on_turn_end(uv_check_t *handle);

static void enter(sbx_loop *loop) {
  if (loop->depth++ == 0)
    loop->entered_ns = uv_hrtime();
  if (!uv_is_active((uv_handle_t *)&loop->turn_end))
    uv_check_start(&loop->turn_end, on_turn_end);
}

static void leave(sbx_loop *loop) {
  if (loop->ready != NULL) {
    /* What the host does with results is no work of ours. */
    uint64_t began_ns = uv_hrtime();
    if (loop->scope != NULL)
      loop->scope(loop->scope_arg, drain, loop);
    else
      drain(loop);
    loop->entered_ns += uv_hrtime() - began_ns;
  }
  if (loop->ready != NULL)
    uv_async_send(&loop->wake);
  if (--loop->depth > 0)
    return;
  loop->spent_ns += uv_hrtime() - loop->entered_ns;
  if (loop->ready == NULL && loop->closing && !loop->ended && loop->ops == NULL && loop->works == 0)
    end(loop);
}

/* ---- turns ---- */

/* A turn ends after the poll: timers that come before the next one belong to the next one. */
static void on_turn_end(uv_check_t *handle) {
  sbx_loop *loop = handle->data;
  uv_check_stop(handle);
  loop->turns++;
  loop->spent_ns = 0;
  if (loop->each_turn == NULL)
    return;
  enter(loop);
  loop->each_turn(loop->each_turn_arg);
  leave(loop);
}

/* So that the turn has an end, whatever else happens in it. */
static void on_hurry(uv_idle_t *handle) {
  sbx_loop *loop = handle->data;
  enter(loop);
  leave(loop);
}

void sbx_loop_each_turn(sbx_loop *loop, void (*run)(void *arg), void *arg) {
  loop->each_turn = run;
  loop->each_turn_arg = arg;
  if (run != NULL)
    uv_idle_start(&loop->hurry, on_hurry);
  else
    uv_idle_stop(&loop->hurry);
}

bool sbx_loop_is_spent(const sbx_loop *loop) {
  uint64_t now = loop->depth > 0 ? uv_hrtime() - loop->entered_ns : 0;
  return loop->spent_ns + now > SHARE_NS;
}

static void on_wake(uv_async_t *handle) {
  sbx_loop *loop = handle->data;
  enter(loop);
  leave(loop);
}

/* ---- timers: a pairing heap; `prev` is the left sibling, or the parent of a first child ---- */

static sbx_timer *heap_meld(sbx_timer *a, sbx_timer *b) {
  if (a == NULL)
    return b;
  if (b == NULL)
    return a;
  if (b->due_ms < a->due_ms) {
    sbx_timer *swap = a;
    a = b;
    b = swap;
  }
  b->prev = a;
  b->sibling = a->child;
  if (a->child != NULL)
    a->child->prev = b;
  a->child = b;
  a->sibling = NULL;
  a->prev = NULL;
  return a;
}

/* Melds a list of siblings in two passes: pairs from the left, then all from the right. */
static sbx_timer *heap_meld_siblings(sbx_timer *first) {
  sbx_timer *pairs = NULL;
  while (first != NULL) {
    sbx_timer *a = first;
    sbx_timer *b = a->sibling;
    first = b != NULL ? b->sibling : NULL;
    a->prev = a->sibling = NULL;
    if (b != NULL)
      b->prev = b->sibling = NULL;
    a = heap_meld(a, b);
    a->sibling = pairs;
    pairs = a;
  }
  sbx_timer *root = NULL;
  while (pairs != NULL) {
    sbx_timer *next = pairs->sibling;
    pairs->sibling = NULL;
    root = heap_meld(root, pairs);
    pairs = next;
  }
  return root;
}

static void heap_insert(sbx_loop *loop, sbx_timer *timer) {
  timer->child = timer->sibling = timer->prev = NULL;
  loop->timers = heap_meld(loop->timers, timer);
  loop->timer_count++;
}

static void heap_remove(sbx_loop *loop, sbx_timer *timer) {
  sbx_timer *rest = heap_meld_siblings(timer->child);
  if (timer == loop->timers) {
    loop->timers = rest;
  } else {
    if (timer->prev->child == timer)
      timer->prev->child = timer->sibling;
    else
      timer->prev->sibling = timer->sibling;
    if (timer->sibling != NULL)
      timer->sibling->prev = timer->prev;
    loop->timers = heap_meld(loop->timers, rest);
  }
  timer->child = timer->sibling = timer->prev = NULL;
  loop->timer_count--;
}

static void on_timer(uv_timer_t *handle);

/* Sets the uv timer to the heap's first. libuv counts from its cached time, so it may come early;
 * on_timer() then comes here again. While on_check() is awaited the timer only keeps the poll
 * before it short; with no delay at all libuv might call it for ever without a poll. */
static void update_timer(sbx_loop *loop) {
  if (loop->timers == NULL) {
    uv_timer_stop(&loop->timer);
    return;
  }
  uint64_t now = sbx_now_ms();
  uint64_t due = loop->timers->due_ms;
  uint64_t least = uv_is_active((uv_handle_t *)&loop->check) ? 1 : 0;
  uv_timer_start(&loop->timer, on_timer, due > now + least ? due - now : least, 0);
}

static void fire_timers(sbx_loop *loop) {
  uint64_t now = sbx_now_ms();
  /* Bounded, so that a timer that arms itself with no delay cannot hold the loop. */
  for (size_t budget = loop->timer_count; budget > 0; budget--) {
    sbx_timer *timer = loop->timers;
    if (timer == NULL || timer->due_ms > now)
      break;
    heap_remove(loop, timer);
    timer->armed = false;
    timer->fire(timer);
  }
  update_timer(loop);
}

/* Comes right after the poll. */
static void on_check(uv_check_t *handle) {
  sbx_loop *loop = handle->data;
  enter(loop);
  uv_check_stop(handle);
  fire_timers(loop);
  leave(loop);
}

/* When the loop was busy until after a deadline, what came in time is still unread, and libuv runs
 * timers before it polls: then descriptors get their turn first. */
static void on_timer(uv_timer_t *handle) {
  sbx_loop *loop = handle->data;
  enter(loop);
  uint64_t now = sbx_now_ms();
  if (loop->timers != NULL && now > loop->timers->due_ms && now - loop->timers->due_ms >= LATE_MS)
    uv_check_start(&loop->check, on_check);
  if (uv_is_active((uv_handle_t *)&loop->check))
    update_timer(loop);
  else
    fire_timers(loop);
  leave(loop);
}

void sbx_timer_init(sbx_timer *timer, sbx_loop *loop, void (*fire)(sbx_timer *timer)) {
  *timer = (sbx_timer){.loop = loop, .fire = fire};
}

/* Whether the last look at the descriptors brought anything, or what it brought waits for its turn.
 * It may have been before the end of a turn or after it. */
static bool brings_more(const sbx_loop *loop) {
  return loop->each_turn != NULL || (loop->brought > 0 && loop->turns + 1 - loop->brought <= 1);
}

bool sbx_timer_put_off(sbx_timer *timer) {
  uint64_t now = sbx_now_ms();
  bool late = timer->late_ms != 0 || now - timer->due_ms >= LATE_MS;
  uint64_t since = timer->late_ms != 0 ? timer->late_ms : now;
  if (!late || !brings_more(timer->loop) || now - since >= LATE_MOST_MS)
    return false;
  sbx_timer_start(timer, 1);
  timer->late_ms = since;
  return true;
}

void sbx_timer_start(sbx_timer *timer, uint64_t delay_ms) {
  sbx_loop *loop = timer->loop;
  sbx_timer *first = loop->timers;
  if (timer->armed)
    heap_remove(loop, timer);
  uint64_t now = sbx_now_ms();
  timer->armed = delay_ms != SBX_NO_TIMEOUT;
  timer->late_ms = 0;
  if (timer->armed) {
    timer->due_ms = delay_ms < UINT64_MAX - now ? now + delay_ms : UINT64_MAX;
    heap_insert(loop, timer);
  }
  if (loop->timers != first || first == timer)
    update_timer(loop);
}

void sbx_timer_stop(sbx_timer *timer) {
  if (timer->armed)
    sbx_timer_start(timer, SBX_NO_TIMEOUT);
}

/* ---- descriptor watches ---- */

static void on_watch_closed(uv_handle_t *handle) {
  sbx_watch *watch = handle->data;
  sbx_loop *loop = watch->loop;
  sbx_free(watch);
  on_handle_closed(loop);
}

static void on_poll(uv_poll_t *handle, int status, int events) {
  sbx_watch *watch = handle->data;
  sbx_loop *loop = watch->loop;
  enter(loop);
  int seen = 0;
  loop->brought = loop->turns + 1;
  if (status < 0)
    seen = SBX_FAILED;
  else
    seen =
        ((events & UV_READABLE) ? SBX_READABLE : 0) | ((events & UV_WRITABLE) ? SBX_WRITABLE : 0);
  watch->fn(watch->arg, seen);
  leave(loop);
}

int sbx_watch_start(sbx_watch **out, sbx_loop *loop, int fd, int events, sbx_watch_fn fn, void *arg,
                    sbx_err *err) {
  sbx_watch *watch = sbx_calloc(1, sizeof *watch);
  if (watch == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  int rc = uv_poll_init(loop->uv, &watch->poll, fd);
  if (rc != 0) {
    sbx_free(watch);
    return sbx_err_set(err, rc == UV_ENOMEM ? SBX_ENOMEM : SBX_EINVAL,
                       "cannot watch a descriptor: %s", uv_strerror(rc));
  }
  uv_unref((uv_handle_t *)&watch->poll);
  watch->poll.data = watch;
  watch->loop = loop;
  watch->fn = fn;
  watch->arg = arg;
  watch->next = loop->watches;
  if (watch->next != NULL)
    watch->next->prev = watch;
  loop->watches = watch;
  loop->open_handles++;
  sbx_watch_set(watch, events);
  *out = watch;
  return SBX_OK;
}

void sbx_watch_set(sbx_watch *watch, int events) {
  int mask =
      ((events & SBX_READABLE) ? UV_READABLE : 0) | ((events & SBX_WRITABLE) ? UV_WRITABLE : 0);
  if (mask == 0)
    uv_poll_stop(&watch->poll);
  else
    uv_poll_start(&watch->poll, mask, on_poll);
}

void sbx_watch_stop(sbx_watch *watch) {
  if (watch == NULL)
    return;
  if (watch->prev != NULL)
    watch->prev->next = watch->next;
  else
    watch->loop->watches = watch->next;
  if (watch->next != NULL)
    watch->next->prev = watch->prev;
  uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
}

/* ---- work on libuv's thread pool ---- */

static void on_work(uv_work_t *req) {
  pool_work *work = req->data;
  work->run(work->arg);
}

static void on_work_done(uv_work_t *req, int status) {
  pool_work *work = req->data;
  sbx_loop *loop = work->loop;
  (void)status; /* nothing here cancels a request */
  enter(loop);
  loop->works--;
  work->done(work->arg);
  sbx_free(work);
  leave(loop);
}

int sbx_work_start(sbx_loop *loop, void (*run)(void *arg), void (*done)(void *arg), void *arg,
                   sbx_err *err) {
  pool_work *work = sbx_calloc(1, sizeof *work);
  if (work == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  work->req.data = work;
  work->loop = loop;
  work->run = run;
  work->done = done;
  work->arg = arg;
  int rc = uv_queue_work(loop->uv, &work->req, on_work, on_work_done);
  if (rc != 0) {
    sbx_free(work);
    return sbx_err_set(err, SBX_ENOMEM, "cannot queue work: %s", uv_strerror(rc));
  }
  loop->works++;
  return SBX_OK;
}

/* ---- names ---- */

static void on_lookup(uv_getaddrinfo_t *req, int status, struct addrinfo *found) {
  lookup *l = req->data;
  sbx_loop *loop = l->loop;
  enter(loop);
  loop->works--;
  l->done(l->arg, status == 0 ? found : NULL, status == 0 ? NULL : uv_strerror(status));
  uv_freeaddrinfo(found);
  sbx_free(l);
  leave(loop);
}

int sbx_lookup_start(sbx_loop *loop, const char *host, sbx_lookup_fn done, void *arg,
                     sbx_err *err) {
  static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  lookup *l = sbx_calloc(1, sizeof *l);
  if (l == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  *l = (lookup){.req.data = l, .loop = loop, .done = done, .arg = arg};
  int rc = uv_getaddrinfo(loop->uv, &l->req, on_lookup, host, NULL, &hints);
  if (rc != 0) {
    sbx_free(l);
    return sbx_err_set(err, rc == UV_ENOMEM ? SBX_ENOMEM : SBX_EINVAL, "cannot look for a host: %s",
                       uv_strerror(rc));
  }
  loop->works++;
  return SBX_OK;
}

/* ---- the loop itself ---- */

int sbx_loop_new(sbx_loop **out, uv_loop_t *uv, sbx_err *err) {
  sbx_loop *loop = sbx_calloc(1, sizeof *loop);
  if (loop == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  loop->uv = uv;
  loop->ready_tail = &loop->ready;
  /* The async first: it is the only one that can fail. */
  int rc = uv_async_init(uv, &loop->wake, on_wake);
  if (rc != 0) {
    sbx_free(loop);
    return sbx_err_set(err, SBX_EINVAL, "cannot use the event loop: %s", uv_strerror(rc));
  }
  uv_timer_init(uv, &loop->timer);
  uv_check_init(uv, &loop->check);
  uv_check_init(uv, &loop->turn_end);
  uv_idle_init(uv, &loop->hurry);
  loop->wake.data = loop;
  loop->timer.data = loop;
  loop->check.data = loop;
  loop->turn_end.data = loop;
  loop->hurry.data = loop;
  loop->open_handles = 5;
  uv_unref((uv_handle_t *)&loop->wake);
  uv_unref((uv_handle_t *)&loop->timer);
  uv_unref((uv_handle_t *)&loop->check);
  uv_unref((uv_handle_t *)&loop->turn_end);
  uv_unref((uv_handle_t *)&loop->hurry);
  *out = loop;
  return SBX_OK;
}

void sbx_loop_close(sbx_loop *loop, void (*closed)(void *arg), void *arg) {
  assert(!loop->closing);
  loop->closing = true;
  loop->closed = closed;
  loop->closed_arg = arg;
  update_ref(loop);
  sbx__op_abort_all(loop);
  if (loop->depth == 0)
    uv_async_send(&loop->wake);
}

void sbx_loop_run_ready(sbx_loop *loop) {
  loop->depth++;
  while (loop->ready != NULL)
    drain(loop);
  loop->depth--;
}

void sbx_loop_hold(sbx_loop *loop) {
  loop->holds++;
  update_ref(loop);
}

void sbx_loop_release(sbx_loop *loop) {
  assert(loop->holds > 0);
  loop->holds--;
  update_ref(loop);
}

bool sbx_loop_is_closing(const sbx_loop *loop) {
  return loop->closing;
}

uv_loop_t *sbx_loop_uv(sbx_loop *loop) {
  return loop->uv;
}

void sbx_loop_set_scope(sbx_loop *loop, sbx_loop_scope_fn scope, void *arg) {
  loop->scope = scope;
  loop->scope_arg = arg;
}

sbx_op **sbx__loop_ops(sbx_loop *loop) {
  return &loop->ops;
}

void *sbx_loop_transfer_state(const sbx_loop *loop) {
  return loop->transfer;
}

void sbx_loop_set_transfer_state(sbx_loop *loop, void *state, void (*end_state)(void *state)) {
  loop->transfer = state;
  loop->transfer_end = end_state;
}

void sbx_loop_add_state(sbx_loop *loop, sbx_loop_state *state) {
  state->next = loop->states;
  loop->states = state;
}

sbx_loop_state *sbx_loop_find_state(const sbx_loop *loop, const void *key) {
  sbx_loop_state *state = loop->states;
  while (state != NULL && state->key != key)
    state = state->next;
  return state;
}
