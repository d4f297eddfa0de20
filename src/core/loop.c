/* loop.c - the core's state on the event loop of a host (host.h).
 *
 * Invariant: tasks run only from leave(), that is, at the end of a callback of the host's, or when
 * the host's process ends (sbx_loop_run_ready). */
#include "core/loop.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/host.h"
#include "core/op.h"
#include "core/os.h"

#include <assert.h>

/* Tasks that one drain runs before other users of the loop get their turn. */
enum { DRAIN_MAX = 256 };

/* How late a timer comes when the loop was busy, and not just the clock coarse; and how long a
 * deadline that comes late waits for the end of what can be read. */
enum { LATE_MS = 2, LATE_MOST_MS = 100 };

/* Our share of one turn, without the ready list. */
#define SHARE_NS (UINT64_C(6) * 1000 * 1000)

struct sbx_loop {
  sbx__host *host;
  bool kept;    /* what the host was told */
  bool looking; /* overdue timers wait for a look at the descriptors */
  bool in_turn; /* something of ours ran in this turn */

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
  return sbx_os_now_ns() / 1000000;
}

static void update_ref(sbx_loop *loop) {
  bool keep = loop->holds > 0 || loop->works > 0 || loop->ready != NULL || loop->closing;
  if (loop->ended || keep == loop->kept)
    return;
  loop->kept = keep;
  loop->host->ops->keep(loop->host, keep);
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
    loop->host->ops->wake(loop->host);
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

/* Nothing is in flight any more: ends what the loop itself owns. */
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
  loop->host->ops->close(loop->host);
}

static void enter(sbx_loop *loop) {
  if (loop->depth++ == 0)
    loop->entered_ns = sbx_os_now_ns();
  if (!loop->in_turn)
    loop->host->ops->turn(loop->host);
  loop->in_turn = true;
}

static void leave(sbx_loop *loop) {
  if (loop->ready != NULL) {
    /* What the host does with results is no work of ours. */
    uint64_t began_ns = sbx_os_now_ns();
    if (loop->scope != NULL)
      loop->scope(loop->scope_arg, drain, loop);
    else
      drain(loop);
    loop->entered_ns += sbx_os_now_ns() - began_ns;
  }
  if (loop->ready != NULL)
    loop->host->ops->wake(loop->host);
  if (--loop->depth > 0)
    return;
  loop->spent_ns += sbx_os_now_ns() - loop->entered_ns;
  if (loop->ready == NULL && loop->closing && !loop->ended && loop->ops == NULL && loop->works == 0)
    end(loop);
}

/* ---- turns ---- */

void sbx__loop_turn_ended(sbx_loop *loop) {
  loop->in_turn = false;
  loop->turns++;
  loop->spent_ns = 0;
  if (loop->each_turn == NULL)
    return;
  enter(loop);
  loop->each_turn(loop->each_turn_arg);
  leave(loop);
}

void sbx_loop_each_turn(sbx_loop *loop, void (*run)(void *arg), void *arg) {
  loop->each_turn = run;
  loop->each_turn_arg = arg;
  loop->host->ops->hurry(loop->host, run != NULL);
}

bool sbx_loop_is_spent(const sbx_loop *loop) {
  uint64_t now = loop->depth > 0 ? sbx_os_now_ns() - loop->entered_ns : 0;
  return loop->spent_ns + now > SHARE_NS;
}

void sbx__loop_woken(sbx_loop *loop) {
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

/* Sets the host's timer to the heap's first. It may come early; sbx__loop_timer() then comes here
 * again. While a look is awaited the timer only keeps it short; with no delay at all libuv might
 * call it for ever without a look. */
static void update_timer(sbx_loop *loop) {
  uint64_t delay = SBX_NO_TIMEOUT;
  if (loop->timers != NULL) {
    uint64_t now = sbx_now_ms();
    uint64_t due = loop->timers->due_ms;
    uint64_t least = loop->looking ? 1 : 0;
    delay = due > now + least ? due - now : least;
  }
  loop->host->ops->timer(loop->host, delay);
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

void sbx__loop_looked(sbx_loop *loop) {
  enter(loop);
  loop->looking = false;
  fire_timers(loop);
  leave(loop);
}

/* When the loop was busy until after a deadline, what came in time is still unread, and a host may
 * look at its timers first: then descriptors get their turn before them. */
void sbx__loop_timer(sbx_loop *loop, bool looked) {
  enter(loop);
  uint64_t now = sbx_now_ms();
  if (!looked && !loop->looking && loop->timers != NULL && now > loop->timers->due_ms &&
      now - loop->timers->due_ms >= LATE_MS) {
    loop->looking = true;
    loop->host->ops->look(loop->host);
  }
  if (loop->looking)
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

void sbx__loop_ready(sbx_watch *watch, int events) {
  sbx_loop *loop = watch->loop;
  enter(loop);
  loop->brought = loop->turns + 1;
  watch->fn(watch->arg, events);
  leave(loop);
}

int sbx_watch_start(sbx_watch **out, sbx_loop *loop, int fd, int events, sbx_watch_fn fn, void *arg,
                    sbx_err *err) {
  sbx_watch *watch = NULL;
  int code = loop->host->ops->watch_start(loop->host, fd, &watch, err);
  if (code != SBX_OK)
    return code;
  watch->loop = loop;
  watch->fn = fn;
  watch->arg = arg;
  watch->next = loop->watches;
  if (watch->next != NULL)
    watch->next->prev = watch;
  loop->watches = watch;
  sbx_watch_set(watch, events);
  *out = watch;
  return SBX_OK;
}

void sbx_watch_set(sbx_watch *watch, int events) {
  watch->loop->host->ops->watch_set(watch, events);
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
  watch->loop->host->ops->watch_stop(watch);
}

/* ---- work on a thread pool, and names ---- */

void sbx__loop_worked(const sbx__job *job) {
  sbx_loop *loop = job->loop;
  enter(loop);
  loop->works--;
  update_ref(loop);
  job->done(job->arg);
  leave(loop);
}

int sbx_work_start(sbx_loop *loop, void (*run)(void *arg), void (*done)(void *arg), void *arg,
                   sbx_err *err) {
  sbx__job job = {.loop = loop, .run = run, .done = done, .arg = arg};
  int code = loop->host->ops->work(loop->host, &job, err);
  if (code == SBX_OK)
    loop->works++;
  update_ref(loop);
  return code;
}

void sbx__loop_found(const sbx__search *search, const struct addrinfo *found, const char *why) {
  sbx_loop *loop = search->loop;
  enter(loop);
  loop->works--;
  update_ref(loop);
  search->done(search->arg, found, why);
  leave(loop);
}

int sbx_lookup_start(sbx_loop *loop, const char *host, sbx_lookup_fn done, void *arg,
                     sbx_err *err) {
  sbx__search search = {.loop = loop, .done = done, .arg = arg};
  int code = loop->host->ops->lookup(loop->host, host, &search, err);
  if (code == SBX_OK)
    loop->works++;
  update_ref(loop);
  return code;
}

/* ---- the loop itself ---- */

int sbx__loop_new(sbx_loop **out, sbx__host *host, sbx_err *err) {
  sbx_loop *loop = sbx_calloc(1, sizeof *loop);
  if (loop == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  loop->ready_tail = &loop->ready;
  loop->host = host;
  host->loop = loop;
  *out = loop;
  return SBX_OK;
}

sbx__host *sbx__loop_host(const sbx_loop *loop) {
  return loop->host;
}

void sbx__loop_closed(sbx_loop *loop) {
  void (*closed)(void *arg) = loop->closed;
  void *arg = loop->closed_arg;
  sbx_free(loop);
  if (closed != NULL)
    closed(arg);
}

void sbx_loop_close(sbx_loop *loop, void (*closed)(void *arg), void *arg) {
  assert(!loop->closing);
  loop->closing = true;
  loop->closed = closed;
  loop->closed_arg = arg;
  update_ref(loop);
  sbx__op_abort_all(loop);
  if (loop->depth == 0)
    loop->host->ops->wake(loop->host);
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
