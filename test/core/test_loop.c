/* Tests of core/loop: timers, watches, deferred tasks, pool work, liveness and the orderly end. */
#include "core/loop.h"

#include "core/err.h"
#include "support/loop_fixture.h"

#include <unistd.h>

typedef struct fixture {
  uv_loop_t uv;
  sbx_loop *loop;
} fixture;

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  loop_open(&f->uv, &f->loop);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  loop_end(&f->uv, f->loop);
  free(f);
  return 0;
}

/* ---- liveness ---- */

static void test_idle_loop_returns(void **state) {
  fixture *f = *state;
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
}

static void no_fire(sbx_timer *timer) {
  (void)timer;
  fail_msg("the timer must not fire");
}

static void test_timer_alone_does_not_hold(void **state) {
  fixture *f = *state;
  sbx_timer timer;
  sbx_timer_init(&timer, f->loop, no_fire);
  sbx_timer_start(&timer, 60000);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  sbx_timer_stop(&timer);
}

/* ---- tasks ---- */

typedef struct counting_task {
  sbx_task task;
  sbx_loop *loop;
  int runs;
  int again; /* how often it queues itself once more */
  int *clock;
  int ran_at;
} counting_task;

static void count_task(sbx_task *task) {
  counting_task *t = (counting_task *)(void *)task;
  t->runs++;
  if (t->clock != NULL)
    t->ran_at = ++*t->clock;
  if (t->again > 0) {
    t->again--;
    sbx_loop_defer(t->loop, task);
  }
}

static void init_task(counting_task *t, sbx_loop *loop, int *clock) {
  *t = (counting_task){.loop = loop, .clock = clock};
  sbx_task_init(&t->task, count_task);
}

static void test_defer_from_outside_runs_later_in_order(void **state) {
  fixture *f = *state;
  int clock = 0;
  counting_task t[4];
  for (int i = 0; i < 4; i++) {
    init_task(&t[i], f->loop, &clock);
    sbx_loop_defer(f->loop, &t[i].task);
    sbx_loop_defer(f->loop, &t[i].task); /* queued once only */
  }
  sbx_task_cancel(&t[3].task);
  sbx_task_cancel(&t[1].task);
  sbx_task_cancel(&t[1].task);
  sbx_loop_defer(f->loop, &t[1].task);
  assert_int_equal(t[0].runs, 0);
  /* A queued task keeps the loop alive without any hold. */
  assert_int_not_equal(uv_loop_alive(&f->uv), 0);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(t[0].ran_at, 1);
  assert_int_equal(t[2].ran_at, 2);
  assert_int_equal(t[1].ran_at, 3);
  assert_int_equal(t[3].runs, 0);
  assert_int_equal(t[0].runs + t[1].runs + t[2].runs, 3);
}

static void test_cancel_all_lets_the_loop_end(void **state) {
  fixture *f = *state;
  counting_task t;
  init_task(&t, f->loop, NULL);
  sbx_loop_defer(f->loop, &t.task);
  sbx_task_cancel(&t.task);
  assert_int_equal(uv_loop_alive(&f->uv), 0);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(t.runs, 0);
}

static void stop_uv_timer(uv_timer_t *timer) {
  (*(int *)timer->data)++;
  uv_close((uv_handle_t *)timer, NULL);
}

static void test_endless_tasks_leave_room_for_others(void **state) {
  fixture *f = *state;
  counting_task t;
  init_task(&t, f->loop, NULL);
  t.again = 100000;
  int fired = 0;
  uv_timer_t other;
  uv_timer_init(&f->uv, &other);
  other.data = &fired;
  uv_timer_start(&other, stop_uv_timer, 0, 0);
  sbx_loop_defer(f->loop, &t.task);
  while (fired == 0)
    uv_run(&f->uv, UV_RUN_ONCE);
  assert_true(t.again > 0);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(t.runs, 100001);
}

typedef struct scope_log {
  int scopes;
  int inside;
} scope_log;

static void scope(void *arg, void (*body)(void *body_arg), void *body_arg) {
  scope_log *log = arg;
  log->scopes++;
  log->inside++;
  body(body_arg);
  log->inside--;
}

typedef struct scoped_timer {
  sbx_timer timer;
  counting_task task;
  scope_log *log;
} scoped_timer;

static void fire_scoped(sbx_timer *timer) {
  scoped_timer *s = (scoped_timer *)(void *)timer;
  assert_int_equal(s->log->inside, 0);
  sbx_loop_defer(timer->loop, &s->task.task);
  assert_int_equal(s->task.runs, 0);
  sbx_loop_release(timer->loop);
}

static void test_scope_only_around_work(void **state) {
  fixture *f = *state;
  scope_log log = {0};
  scoped_timer s[2];
  sbx_loop_set_scope(f->loop, scope, &log);
  for (int i = 0; i < 2; i++) {
    init_task(&s[i].task, f->loop, NULL);
    s[i].log = &log;
    sbx_timer_init(&s[i].timer, f->loop, fire_scoped);
    sbx_timer_start(&s[i].timer, 0);
    sbx_loop_hold(f->loop);
  }
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(s[0].task.runs + s[1].task.runs, 2);
  assert_true(log.scopes >= 1 && log.scopes <= 2);
  sbx_loop_set_scope(f->loop, NULL, NULL);
}

/* ---- timers ---- */

typedef struct ordered_timer {
  sbx_timer timer;
  fixture *f;
  uint64_t *last_due;
  int *fired;
} ordered_timer;

static void fire_ordered(sbx_timer *timer) {
  ordered_timer *t = (ordered_timer *)(void *)timer;
  assert_false(timer->armed);
  assert_true(timer->due_ms >= *t->last_due);
  assert_true(sbx_now_ms() >= timer->due_ms);
  *t->last_due = timer->due_ms;
  ++*t->fired;
  sbx_loop_release(timer->loop);
}

static void test_timers_fire_in_order_of_due_time(void **state) {
  fixture *f = *state;
  enum { N = 500 };
  static ordered_timer t[N];
  uint64_t last_due = 0;
  int fired = 0;
  unsigned seed = 1;
  for (int i = 0; i < N; i++) {
    t[i] = (ordered_timer){.f = f, .last_due = &last_due, .fired = &fired};
    sbx_timer_init(&t[i].timer, f->loop, fire_ordered);
    seed = seed * 1103515245u + 12345u;
    sbx_timer_start(&t[i].timer, (seed >> 16) % 40);
    sbx_loop_hold(f->loop);
  }
  /* Take a third out from the middle of the heap, move another third. */
  int stopped = 0;
  for (int i = 0; i < N; i += 3) {
    sbx_timer_stop(&t[i].timer);
    sbx_timer_stop(&t[i].timer);
    sbx_loop_release(f->loop);
    stopped++;
    if (i + 1 < N) {
      seed = seed * 1103515245u + 12345u;
      sbx_timer_start(&t[i + 1].timer, (seed >> 16) % 40);
    }
  }
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(fired, N - stopped);
}

typedef struct repeating {
  sbx_timer timer;
  int left;
} repeating;

static void fire_repeating(sbx_timer *timer) {
  repeating *r = (repeating *)(void *)timer;
  if (r->left-- > 0)
    sbx_timer_start(timer, 0);
  else
    sbx_loop_release(timer->loop);
}

static void test_timer_may_rearm_itself_without_delay(void **state) {
  fixture *f = *state;
  repeating r = {.left = 1000};
  sbx_timer_init(&r.timer, f->loop, fire_repeating);
  sbx_timer_start(&r.timer, 0);
  sbx_loop_hold(f->loop);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(r.left, -1);
}

typedef struct freeing {
  sbx_timer timer;
  sbx_timer *victim;
} freeing;

static void fire_freeing(sbx_timer *timer) {
  freeing *t = (freeing *)(void *)timer;
  sbx_timer_stop(t->victim);
  sbx_free(t->victim);
  sbx_loop_release(timer->loop);
}

static void test_owner_may_be_freed_after_stop(void **state) {
  fixture *f = *state;
  freeing t;
  t.victim = sbx_malloc(sizeof *t.victim);
  sbx_timer_init(t.victim, f->loop, no_fire);
  sbx_timer_start(t.victim, SBX_NO_TIMEOUT - 1); /* does not overflow */
  sbx_timer_init(&t.timer, f->loop, fire_freeing);
  sbx_timer_start(&t.timer, 1);
  sbx_loop_hold(f->loop);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
}

/* ---- watches ---- */

typedef struct pipe_watch {
  fixture *f;
  int fds[2];
  sbx_watch *watch;
  int seen;
  int calls;
  size_t bytes;
  bool eof;
} pipe_watch;

static void on_readable(void *arg, int events) {
  pipe_watch *p = arg;
  p->seen |= events;
  p->calls++;
  char chunk[4];
  ssize_t n = read(p->fds[0], chunk, sizeof chunk);
  assert_true(n >= 0);
  p->bytes += (size_t)n;
  if (n == 0) {
    p->eof = true;
    sbx_watch_stop(p->watch);
    p->watch = NULL;
    close(p->fds[0]);
    sbx_loop_release(p->f->loop);
  }
}

static void test_watch_is_level_triggered_and_sees_hang_up(void **state) {
  fixture *f = *state;
  pipe_watch p = {.f = f};
  assert_int_equal(pipe(p.fds), 0);
  assert_int_equal(
      sbx_watch_start(&p.watch, f->loop, p.fds[0], SBX_READABLE, on_readable, &p, NULL), SBX_OK);
  /* No hold: the watch alone does not keep the loop alive. */
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(write(p.fds[1], "0123456789", 10), 10);
  close(p.fds[1]);
  sbx_loop_hold(f->loop);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(p.bytes, 10);
  assert_true(p.eof);
  assert_int_equal(p.seen, SBX_READABLE);
  assert_int_equal(p.calls, 4);
}

static void test_watch_pauses_and_descriptor_can_be_reused_at_once(void **state) {
  fixture *f = *state;
  pipe_watch p = {.f = f};
  assert_int_equal(pipe(p.fds), 0);
  assert_int_equal(write(p.fds[1], "x", 1), 1);
  assert_int_equal(sbx_watch_start(&p.watch, f->loop, p.fds[0], 0, on_readable, &p, NULL), SBX_OK);
  sbx_loop_hold(f->loop);
  uv_run(&f->uv, UV_RUN_NOWAIT);
  assert_int_equal(p.calls, 0);
  sbx_watch_set(p.watch, SBX_READABLE);
  uv_run(&f->uv, UV_RUN_NOWAIT);
  assert_int_equal(p.bytes, 1);
  sbx_watch_stop(p.watch);
  assert_int_equal(
      sbx_watch_start(&p.watch, f->loop, p.fds[0], SBX_READABLE, on_readable, &p, NULL), SBX_OK);
  close(p.fds[1]);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_true(p.eof);
  sbx_watch_stop(NULL);
}

static void on_failed(void *arg, int events) {
  pipe_watch *p = arg;
  p->calls++;
  p->seen |= events;
  sbx_loop_release(p->f->loop);
}

static void test_watch_reports_an_error_once(void **state) {
  fixture *f = *state;
  pipe_watch p = {.f = f};
  char fill[4096] = {0};
  assert_int_equal(pipe(p.fds), 0);
  assert_int_equal(sbx_watch_start(&p.watch, f->loop, p.fds[1], 0, on_failed, &p, NULL), SBX_OK);
  while (write(p.fds[1], fill, sizeof fill) > 0)
    ;
  sbx_watch_set(p.watch, SBX_WRITABLE);
  sbx_loop_hold(f->loop);
  uv_run(&f->uv, UV_RUN_NOWAIT);
  assert_int_equal(p.calls, 0);
  close(p.fds[0]); /* nobody reads any more: the writing end is broken */
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(p.calls, 1);
  assert_int_equal(p.seen, SBX_FAILED);
  sbx_watch_stop(p.watch);
  close(p.fds[1]);
}

typedef struct busy_host {
  sbx_timer timer;
  int pipe[2];
  sbx_watch *watch;
  uv_timer_t other; /* of the host */
  int step;
} busy_host;

static void fire_late(sbx_timer *timer) {
  busy_host *b = (busy_host *)(void *)timer;
  assert_int_equal(b->step++, 1);
  sbx_loop_release(timer->loop);
}

static void read_in_time(void *arg, int events) {
  busy_host *b = arg;
  char byte;
  assert_int_equal(events, SBX_READABLE);
  assert_int_equal(read(b->pipe[0], &byte, 1), 1);
  assert_int_equal(b->step++, 0);
}

/* Something comes in time, but the host is busy until the timer is overdue; then it uses timers. */
static void be_busy(uv_timer_t *other) {
  busy_host *b = other->data;
  sbx_timer more;
  assert_int_equal(write(b->pipe[1], "x", 1), 1);
  while (sbx_now_ms() < b->timer.due_ms + 20)
    usleep(1000);
  uv_update_time(other->loop);
  sbx_timer_init(&more, b->timer.loop, no_fire);
  sbx_timer_start(&more, 0);
  sbx_timer_stop(&more);
  uv_close((uv_handle_t *)other, NULL);
}

static void test_what_came_in_time_is_seen_before_a_deadline(void **state) {
  fixture *f = *state;
  busy_host b = {.step = 0};
  assert_int_equal(pipe(b.pipe), 0);
  sbx_timer_init(&b.timer, f->loop, fire_late);
  sbx_timer_start(&b.timer, 20);
  sbx_loop_hold(f->loop);
  assert_int_equal(
      sbx_watch_start(&b.watch, f->loop, b.pipe[0], SBX_READABLE, read_in_time, &b, NULL), SBX_OK);
  uv_timer_init(&f->uv, &b.other);
  b.other.data = &b;
  uv_timer_start(&b.other, be_busy, 5, 0);
  uv_run(&f->uv, UV_RUN_DEFAULT);
  assert_int_equal(b.step, 2);
  sbx_watch_stop(b.watch);
  close(b.pipe[0]);
  close(b.pipe[1]);
}

/* C178: a deadline that comes late waits for the end of what can be read, bounded. */
typedef struct late_host {
  sbx_timer deadline; /* first */
  int pipe[2];
  sbx_watch *watch;
  uint64_t since;
  int left; /* bytes in the pipe; the reader takes one per turn. Negative: without an end */
  int seen; /* of them, when the deadline passed */
} late_host;

static void read_one(void *arg, int events) {
  late_host *b = arg;
  char byte;
  assert_int_equal(events, SBX_READABLE);
  assert_int_equal(read(b->pipe[0], &byte, 1), 1);
  b->seen++;
  if (--b->left < 0)
    assert_int_equal(write(b->pipe[1], "x", 1), 1);
}

static void pass_deadline(sbx_timer *timer) {
  late_host *b = (late_host *)(void *)timer;
  if (sbx_timer_put_off(timer))
    return;
  sbx_watch_stop(b->watch);
  sbx_loop_release(timer->loop);
}

static void run_late(fixture *f, late_host *b, int bytes) {
  assert_int_equal(pipe(b->pipe), 0);
  for (int i = 0; i < (bytes > 0 ? bytes : 1); i++)
    assert_int_equal(write(b->pipe[1], "x", 1), 1);
  b->left = bytes > 0 ? bytes : 0;
  sbx_timer_init(&b->deadline, f->loop, pass_deadline);
  sbx_timer_start(&b->deadline, 5);
  sbx_loop_hold(f->loop);
  assert_int_equal(sbx_watch_start(&b->watch, f->loop, b->pipe[0], SBX_READABLE, read_one, b, NULL),
                   SBX_OK);
  usleep(30000); /* the host is busy */
  b->since = sbx_now_ms();
  uv_run(&f->uv, UV_RUN_DEFAULT);
  close(b->pipe[0]);
  close(b->pipe[1]);
}

static void test_what_came_in_time_is_read_to_its_end(void **state) {
  fixture *f = *state;
  late_host b = {0};
  run_late(f, &b, 20);
  assert_int_equal(b.seen, 20);
}

static void test_a_deadline_passes_whatever_comes(void **state) {
  fixture *f = *state;
  late_host b = {0};
  run_late(f, &b, -1);
  assert_true(b.seen > 1);
  assert_true(sbx_now_ms() - b.since < 2000); /* it is a tenth of a second */
}

/* A deadline of a loop that was not late does not wait for anything. */
static void test_a_deadline_in_time_is_not_put_off(void **state) {
  fixture *f = *state;
  sbx_timer timer;
  sbx_timer_init(&timer, f->loop, no_fire);
  sbx_timer_start(&timer, 60000);
  assert_false(sbx_timer_put_off(&timer));
  sbx_timer_stop(&timer);
}

/* ---- shares of a turn ---- */

typedef struct greedy {
  sbx_timer timer; /* first */
  int fired;
  bool before, within, after;
  int turns;
} greedy;

static void take_too_long(sbx_timer *timer) {
  greedy *g = (greedy *)(void *)timer;
  if (g->fired++ > 0) {
    g->after = sbx_loop_is_spent(timer->loop);
    sbx_loop_each_turn(timer->loop, NULL, NULL);
    sbx_loop_release(timer->loop);
    return;
  }
  g->before = sbx_loop_is_spent(timer->loop);
  usleep(20000);
  g->within = sbx_loop_is_spent(timer->loop);
  sbx_timer_start(timer, 5);
}

static void count_turn(void *arg) {
  ((greedy *)arg)->turns++;
}

static void test_each_turn_has_its_share(void **state) {
  fixture *f = *state;
  greedy g = {.before = true, .after = true};
  sbx_timer_init(&g.timer, f->loop, take_too_long);
  sbx_timer_start(&g.timer, 1);
  sbx_loop_each_turn(f->loop, count_turn, &g);
  sbx_loop_hold(f->loop);
  uv_run(&f->uv, UV_RUN_DEFAULT);
  assert_false(g.before);
  assert_true(g.within);
  assert_false(g.after);
  assert_true(g.turns > 0);
}

typedef struct eager {
  sbx_timer timer; /* first; the only one, and far away */
  int turns;
  bool gave_up;
} eager;

static void give_up(sbx_timer *timer) {
  ((eager *)(void *)timer)->gave_up = true;
  sbx_loop_release(timer->loop);
}

static void take_turns(void *arg) {
  eager *e = arg;
  if (++e->turns < 5)
    return;
  sbx_loop_each_turn(e->timer.loop, NULL, NULL);
  sbx_timer_stop(&e->timer);
  sbx_loop_release(e->timer.loop);
}

/* Work that is left for the next turn must not wait until something else happens. */
static void test_wanted_turns_come_by_themselves(void **state) {
  fixture *f = *state;
  eager e = {0};
  sbx_timer_init(&e.timer, f->loop, give_up);
  sbx_timer_start(&e.timer, 20 * 1000);
  sbx_loop_each_turn(f->loop, take_turns, &e);
  sbx_loop_hold(f->loop);
  uv_run(&f->uv, UV_RUN_DEFAULT);
  assert_false(e.gave_up);
  assert_int_equal(e.turns, 5);
}

static void test_watch_refuses_what_cannot_be_polled(void **state) {
  fixture *f = *state;
  sbx_watch *watch = NULL;
  sbx_err err;
  assert_int_equal(sbx_watch_start(&watch, f->loop, -1, SBX_READABLE, on_readable, NULL, &err),
                   SBX_EINVAL);
  assert_null(watch);
  assert_int_equal(err.code, SBX_EINVAL);
}

/* ---- pool work ---- */

typedef struct job {
  fixture *f;
  uv_thread_t main_thread;
  bool ran_elsewhere;
  int done;
} job;

static void run_job(void *arg) {
  job *j = arg;
  uv_thread_t self = uv_thread_self();
  j->ran_elsewhere = !uv_thread_equal(&self, &j->main_thread);
}

static void job_done(void *arg) {
  ((job *)arg)->done++;
}

static void test_pool_work(void **state) {
  fixture *f = *state;
  job j = {.f = f, .main_thread = uv_thread_self()};
  assert_int_equal(sbx_work_start(f->loop, run_job, job_done, &j, NULL), SBX_OK);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  assert_true(j.ran_elsewhere);
  assert_int_equal(j.done, 1);
}

/* ---- the end ---- */

static void end_transfer(void *arg) {
  (*(int *)arg)++;
}

static void test_close_waits_for_work_and_drains(void **state) {
  fixture *f = *state;
  job j = {.f = f, .main_thread = uv_thread_self()};
  counting_task t;
  init_task(&t, f->loop, NULL);
  int transfer_ends = 0;
  sbx_loop_set_transfer_state(f->loop, &transfer_ends, end_transfer);
  assert_ptr_equal(sbx_loop_transfer_state(f->loop), &transfer_ends);
  pipe_watch p = {.f = f};
  assert_int_equal(pipe(p.fds), 0);
  assert_int_equal(
      sbx_watch_start(&p.watch, f->loop, p.fds[0], SBX_READABLE, on_readable, &p, NULL), SBX_OK);
  assert_int_equal(sbx_work_start(f->loop, run_job, job_done, &j, NULL), SBX_OK);
  sbx_loop_defer(f->loop, &t.task);
  assert_false(sbx_loop_is_closing(f->loop));
  sbx_loop_close(f->loop, on_loop_closed, NULL);
  assert_true(sbx_loop_is_closing(f->loop));
  assert_int_equal(loops_closed, 0);
  assert_int_equal(t.runs, 0);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  f->loop = NULL;
  assert_int_equal(t.runs, 1);
  assert_int_equal(j.done, 1);
  assert_int_equal(transfer_ends, 1);
  close(p.fds[0]);
  close(p.fds[1]);
}

static void close_from_task(sbx_task *task) {
  counting_task *t = (counting_task *)(void *)task;
  t->runs++;
  sbx_loop_close(t->loop, on_loop_closed, NULL);
}

static void test_close_from_a_task(void **state) {
  fixture *f = *state;
  counting_task t = {.loop = f->loop};
  sbx_task_init(&t.task, close_from_task);
  sbx_loop_defer(f->loop, &t.task);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  f->loop = NULL;
  assert_int_equal(t.runs, 1);
}

static void test_every_allocation_may_fail(void **state) {
  fixture *f = *state;
  size_t before = sbx_alloc_live();
  sbx_err err;
  sbx_loop *loop = NULL;
  sbx_alloc_fail_at(1, false);
  assert_int_equal(sbx_loop_new(&loop, &f->uv, &err), SBX_ENOMEM);
  sbx_watch *watch = NULL;
  sbx_alloc_fail_at(1, false);
  assert_int_equal(sbx_watch_start(&watch, f->loop, 0, SBX_READABLE, on_readable, NULL, &err),
                   SBX_ENOMEM);
  job j = {.f = f};
  sbx_alloc_fail_at(1, false);
  assert_int_equal(sbx_work_start(f->loop, run_job, job_done, &j, &err), SBX_ENOMEM);
  sbx_alloc_fail_at(0, false);
  assert_int_equal(sbx_alloc_live(), before);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(test_idle_loop_returns),
      T(test_timer_alone_does_not_hold),
      T(test_defer_from_outside_runs_later_in_order),
      T(test_cancel_all_lets_the_loop_end),
      T(test_endless_tasks_leave_room_for_others),
      T(test_scope_only_around_work),
      T(test_timers_fire_in_order_of_due_time),
      T(test_timer_may_rearm_itself_without_delay),
      T(test_owner_may_be_freed_after_stop),
      T(test_watch_is_level_triggered_and_sees_hang_up),
      T(test_watch_pauses_and_descriptor_can_be_reused_at_once),
      T(test_watch_reports_an_error_once),
      T(test_what_came_in_time_is_seen_before_a_deadline),
      T(test_what_came_in_time_is_read_to_its_end),
      T(test_a_deadline_passes_whatever_comes),
      T(test_a_deadline_in_time_is_not_put_off),
      T(test_each_turn_has_its_share),
      T(test_wanted_turns_come_by_themselves),
      T(test_watch_refuses_what_cannot_be_polled),
      T(test_pool_work),
      T(test_close_waits_for_work_and_drains),
      T(test_close_from_a_task),
      T(test_every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
