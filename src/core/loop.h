/* loop.h - what the core needs of an event loop: timers, descriptor watches, pool work, deferred
 * tasks, and an orderly end. Which loop that is, only the hosts under it know (host.h).
 *
 * Invariant: user code runs only from the ready list, which is drained at the end of each loop
 * callback, never from inside a libcurl callback and never from inside a call into the library. */
#ifndef SBX_LOOP_H
#define SBX_LOOP_H

#include "sbx.h"

/* Monotonic milliseconds, taken from the clock at the time of the call (not the loop's cached
 * time). */
uint64_t sbx_now_ms(void);

/* ---- deferred tasks ---- */

/* Embedded in its owner; queued at most once at a time; no allocation. */
typedef struct sbx_task {
  struct sbx_task *next;
  struct sbx_task **prev_next; /* NULL when not queued */
  void (*run)(struct sbx_task *task);
  sbx_loop *loop; /* where it is queued */
} sbx_task;

void sbx_task_init(sbx_task *task, void (*run)(sbx_task *task));
/* Runs the task in this turn of the loop, after the current callback. No-op when queued already. */
void sbx_loop_defer(sbx_loop *loop, sbx_task *task);
void sbx_task_cancel(sbx_task *task);

/* ---- timers ---- */

/* Embedded in its owner; kept in one intrusive heap behind one timer of the host, so that its owner
 * can be freed at once after sbx_timer_stop(). No allocation. */
typedef struct sbx_timer {
  uint64_t due_ms;
  uint64_t late_ms;                         /* since when it is put off; 0: it is not */
  struct sbx_timer *child, *sibling, *prev; /* heap links */
  bool armed;
  sbx_loop *loop;
  void (*fire)(struct sbx_timer *timer);
} sbx_timer;

void sbx_timer_init(sbx_timer *timer, sbx_loop *loop, void (*fire)(sbx_timer *timer));
/* (Re)arms it `delay_ms` from now; SBX_NO_TIMEOUT disarms. */
void sbx_timer_start(sbx_timer *timer, uint64_t delay_ms);
void sbx_timer_stop(sbx_timer *timer);
/* For a deadline, in its `fire`: true when the loop was busy until after it and what came in time
 * is still being read. It is armed again then, for the next turn; at most for a moment, however
 * much comes. */
bool sbx_timer_put_off(sbx_timer *timer);

/* ---- work per turn ---- */

/* Whether the core has had its share of this turn of the loop: what can wait then waits for the
 * next one, so that the host's other work gets its turn. What runs from the ready list does not
 * count: most of it is the host's. */
bool sbx_loop_is_spent(const sbx_loop *loop);

/* `run(arg)` is called once per turn, after the look at the descriptors, which waits for nothing
 * then; NULL: no more. One owner: transfer.c. */
void sbx_loop_each_turn(sbx_loop *loop, void (*run)(void *arg), void *arg);

/* ---- descriptor watches ---- */

typedef struct sbx_watch sbx_watch;
/* SBX_FAILED comes alone, when the descriptor reports an error; the watch is then paused until
 * sbx_watch_set(). */
enum { SBX_READABLE = 1, SBX_WRITABLE = 2, SBX_FAILED = 4 };
typedef void (*sbx_watch_fn)(void *arg, int events);

/* Watches `fd` for SBX_READABLE and/or SBX_WRITABLE; level-triggered; hang-up counts as readable.
 * Errors: SBX_ENOMEM, SBX_EINVAL. */
int sbx_watch_start(sbx_watch **out, sbx_loop *loop, int fd, int events, sbx_watch_fn fn, void *arg,
                    sbx_err *err);
/* Changes what is watched for; 0 pauses. */
void sbx_watch_set(sbx_watch *watch, int events);
/* Ends it; `fn` is not called again and the caller may close the descriptor at once. NULL is fine.
 */
void sbx_watch_stop(sbx_watch *watch);

/* ---- work on the host's thread pool ---- */

/* Runs `run(arg)` on the pool, then `done(arg)` on the loop. The work cannot be cancelled once
 * started; sbx_loop_close() waits for it. Errors: SBX_ENOMEM. */
int sbx_work_start(sbx_loop *loop, void (*run)(void *arg), void (*done)(void *arg), void *arg,
                   sbx_err *err);

/* ---- names ---- */

/* `found` is valid until it returns; NULL when there is none, and `why` then says so. */
typedef void (*sbx_lookup_fn)(void *arg, const struct addrinfo *found, const char *why);
/* Looks for the addresses of `host`, as getaddrinfo() does for TCP, on the host's thread pool. It
 * cannot be cancelled once started; sbx_loop_close() waits for it. Errors: SBX_ENOMEM, SBX_EINVAL
 * for what cannot be a name. */
int sbx_lookup_start(sbx_loop *loop, const char *host, sbx_lookup_fn done, void *arg, sbx_err *err);

/* ---- keeping the loop alive ---- */

/* While at least one hold is taken, the host's loop goes on. Timers and watches alone do not keep
 * the loop alive; queued tasks and pool work do. */
void sbx_loop_hold(sbx_loop *loop);
void sbx_loop_release(sbx_loop *loop);
bool sbx_loop_is_closing(const sbx_loop *loop);
/* Runs the ready list until it is empty, at once, even from inside a callback of ours. For a host
 * whose process ends without a further turn of the loop: called after sbx_loop_close(), it releases
 * all that needs no waiting. */
void sbx_loop_run_ready(sbx_loop *loop);

/* `scope(arg, body, body_arg)` is called around each draining of the ready list that has something
 * to run, and must call `body(body_arg)` exactly once; a host puts what its callbacks need around
 * it (Node: a callback scope). NULL takes it away. */
typedef void (*sbx_loop_scope_fn)(void *arg, void (*body)(void *body_arg), void *body_arg);
void sbx_loop_set_scope(sbx_loop *loop, sbx_loop_scope_fn scope, void *arg);

/* ---- state that others keep with a loop ---- */

/* Embedded in its owner, and found again by a key: the address of something of the owner's. The
 * loop calls `end` once, when no op is live any more. */
typedef struct sbx_loop_state {
  struct sbx_loop_state *next;
  const void *key;
  void (*end)(struct sbx_loop_state *state);
} sbx_loop_state;

void sbx_loop_add_state(sbx_loop *loop, sbx_loop_state *state);
/* NULL when there is none. */
sbx_loop_state *sbx_loop_find_state(const sbx_loop *loop, const void *key);

/* One slot for transfer.c's state, and how the loop ends it: once, when no op is live any more. */
void *sbx_loop_transfer_state(const sbx_loop *loop);
void sbx_loop_set_transfer_state(sbx_loop *loop, void *state, void (*end)(void *state));

#endif
