/* Tests of core/driver: the same loop as in test_loop.c on an event loop of our own. */
#include "core/driver.h"

#include "core/loop.h"
#include "core/pool.h"
#include "support/core_test.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct fixture {
  sbx_driver *driver;
  sbx_loop *loop;
  sem_t ready;
  atomic_int asked; /* turns that are asked for and not taken */
  bool alive;
  pthread_t thread;
} fixture;

static void on_ready(void *arg) {
  fixture *f = arg;
  assert_int_equal(atomic_fetch_add(&f->asked, 1), 0);
  sem_post(&f->ready);
}

static void on_keep(void *arg, bool alive) {
  fixture *f = arg;
  assert_true(alive != f->alive);
  assert_true(pthread_equal(pthread_self(), f->thread));
  f->alive = alive;
}

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  f->thread = pthread_self();
  sem_init(&f->ready, 0, 0);
  const sbx_driver_host host = {on_ready, on_keep, f};
  assert_int_equal(sbx_driver_new(&f->driver, &f->loop, &host, NULL), SBX_OK);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  sbx_driver_free(f->driver);
  assert_int_equal(sbx_alloc_live(), 0);
  sem_destroy(&f->ready);
  free(f);
  return 0;
}

static void turn(fixture *f) {
  while (sem_wait(&f->ready) != 0)
    assert_int_equal(errno, EINTR);
  atomic_store(&f->asked, 0);
  sbx_driver_turn(f->driver);
}

static void run(fixture *f) {
  while (f->alive)
    turn(f);
}

/* ---- tasks and timers ---- */

typedef struct noted {
  union {
    sbx_task task;
    sbx_timer timer;
  };
  fixture *f;
  int *clock;
  int at, again;
} noted;

static void note(noted *n) {
  n->at = ++*n->clock;
}

static void on_task(sbx_task *task) {
  noted *n = (noted *)(void *)task;
  note(n);
  if (n->again-- > 0)
    sbx_loop_defer(n->f->loop, task);
}

static void test_tasks_run_in_order_and_keep_the_program(void **state) {
  fixture *f = *state;
  int clock = 0;
  noted n[2];
  for (int i = 0; i < 2; i++) {
    n[i] = (noted){.f = f, .clock = &clock};
    sbx_task_init(&n[i].task, on_task);
    sbx_loop_defer(f->loop, &n[i].task);
  }
  n[1].again = 10000; /* more than one turn runs */
  assert_true(f->alive);
  assert_int_equal(n[0].at, 0);
  run(f);
  assert_int_equal(n[0].at, 1);
  assert_int_equal(n[1].at, 10002);
}

static void on_timer(sbx_timer *timer) {
  noted *n = (noted *)(void *)timer;
  note(n);
  if (n->again-- > 0)
    sbx_timer_start(timer, 0);
  else
    sbx_loop_release(timer->loop);
}

static void test_timers_fire_in_order(void **state) {
  fixture *f = *state;
  static const uint64_t delays[] = {60 * 1000, 20, 0, 5};
  int clock = 0;
  uint64_t began = sbx_now_ms();
  noted n[4];
  for (int i = 0; i < 4; i++) {
    n[i] = (noted){.f = f, .clock = &clock};
    sbx_timer_init(&n[i].timer, f->loop, on_timer);
    sbx_timer_start(&n[i].timer, delays[i]);
    if (i > 0)
      sbx_loop_hold(f->loop);
  }
  n[2].again = 3;
  run(f);
  assert_true(sbx_now_ms() - began >= 20);
  assert_true(n[1].at > 0 && n[3].at > 0);
  assert_int_equal(clock, 6);
  assert_int_equal(n[0].at, 0);
  sbx_timer_stop(&n[0].timer);
  /* The one that was set for 60 s comes no later for that. */
  n[1].again = 0;
  sbx_timer_start(&n[1].timer, 1);
  sbx_loop_hold(f->loop);
  run(f);
  assert_int_equal(n[1].at, 7);
}

static void on_each_turn(void *arg) {
  noted *n = arg;
  note(n);
  if (n->at < 5)
    return;
  sbx_loop_each_turn(n->f->loop, NULL, NULL);
  sbx_loop_release(n->f->loop);
}

static void test_wanted_turns_come_by_themselves(void **state) {
  fixture *f = *state;
  int clock = 0;
  noted n = {.f = f, .clock = &clock};
  sbx_loop_each_turn(f->loop, on_each_turn, &n);
  sbx_loop_hold(f->loop);
  run(f);
  assert_int_equal(n.at, 5);
}

/* ---- descriptors ---- */

typedef struct end {
  fixture *f;
  int fd[2];
  sbx_watch *watch;
  struct end *other; /* stopped by this one */
  int calls, seen;
  size_t bytes;
} end;

static void open_end(end *e, fixture *f, sbx_watch_fn fn, int events) {
  *e = (end){.f = f};
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, e->fd), 0);
  assert_int_equal(sbx_watch_start(&e->watch, f->loop, e->fd[0], events, fn, e, NULL), SBX_OK);
}

static void close_end(end *e) {
  sbx_watch_stop(e->watch);
  close(e->fd[0]);
  if (e->fd[1] >= 0)
    close(e->fd[1]);
}

static void on_event(void *arg, int events) {
  end *e = arg;
  e->calls++;
  e->seen |= events;
  if (events & SBX_READABLE) {
    char chunk[4];
    ssize_t n = read(e->fd[0], chunk, sizeof chunk);
    assert_true(n >= 0);
    e->bytes += (size_t)n;
    if (n > 0)
      return;
  }
  sbx_watch_set(e->watch, 0);
  sbx_loop_release(e->f->loop);
}

static void test_a_watch_is_level_triggered_and_sees_the_end(void **state) {
  fixture *f = *state;
  end e;
  open_end(&e, f, on_event, 0);
  assert_int_equal(write(e.fd[1], "0123456789", 10), 10);
  assert_false(f->alive); /* a watch alone keeps nothing */
  sbx_watch_set(e.watch, SBX_READABLE);
  close(e.fd[1]);
  e.fd[1] = -1;
  sbx_loop_hold(f->loop);
  run(f);
  assert_int_equal(e.bytes, 10);
  assert_int_equal(e.calls, 4);
  assert_int_equal(e.seen, SBX_READABLE);
  /* A paused one is not told that it is hung up, which the system reports always. */
  noted n = {.f = f, .clock = &(int){0}};
  sbx_task_init(&n.task, on_task);
  sbx_loop_defer(f->loop, &n.task);
  run(f);
  assert_int_equal(e.calls, 4);
  close_end(&e);
}

static void test_a_watch_for_writing(void **state) {
  fixture *f = *state;
  end e;
  open_end(&e, f, on_event, SBX_WRITABLE);
  sbx_loop_hold(f->loop);
  run(f);
  assert_int_equal(e.seen, SBX_WRITABLE);
  close_end(&e);
}

static void test_a_watch_reports_an_error_once(void **state) {
  fixture *f = *state;
  end e;
  char fill[4096] = {0};
  open_end(&e, f, on_event, 0);
  sbx_watch_stop(e.watch);
  close(e.fd[0]);
  close(e.fd[1]);
  assert_int_equal(pipe2(e.fd, O_NONBLOCK), 0);
  while (write(e.fd[1], fill, sizeof fill) > 0)
    ;
  assert_int_equal(sbx_watch_start(&e.watch, f->loop, e.fd[1], SBX_WRITABLE, on_event, &e, NULL),
                   SBX_OK);
  close(e.fd[0]);
  e.fd[0] = -1;
  sbx_loop_hold(f->loop);
  run(f);
  assert_int_equal(e.calls, 1);
  assert_int_equal(e.seen, SBX_FAILED);
  close_end(&e);
}

/* What is watched again may be gone from under its number: that is told, not waited for. */
static void test_a_watch_that_cannot_go_on_fails(void **state) {
  fixture *f = *state;
  end e;
  open_end(&e, f, on_event, SBX_READABLE);
  sbx_watch_set(e.watch, 0);
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  assert_int_equal(dup2(file, e.fd[0]), e.fd[0]);
  close(file);
  sbx_loop_hold(f->loop);
  sbx_watch_set(e.watch, SBX_READABLE);
  assert_int_equal(e.calls, 0);
  run(f);
  assert_int_equal(e.calls, 1);
  assert_int_equal(e.seen, SBX_FAILED);
  /* One that is stopped before hears nothing. */
  sbx_watch_set(e.watch, SBX_READABLE);
  close_end(&e);
}

static void stop_the_other(void *arg, int events) {
  end *e = arg;
  (void)events;
  e->calls++;
  close_end(e->other);
  e->other->watch = NULL;
  sbx_watch_set(e->watch, 0);
  sbx_loop_release(e->f->loop);
}

/* Both are ready in one look: the second is gone when its turn comes. */
static void test_a_watch_may_be_stopped_by_another(void **state) {
  fixture *f = *state;
  end a, b;
  open_end(&a, f, stop_the_other, SBX_READABLE);
  open_end(&b, f, stop_the_other, SBX_READABLE);
  a.other = &b;
  b.other = &a;
  assert_int_equal(write(a.fd[1], "x", 1), 1);
  assert_int_equal(write(b.fd[1], "x", 1), 1);
  /* The turn that is asked for comes after both. */
  sbx_loop_hold(f->loop);
  run(f);
  assert_int_equal(a.calls + b.calls, 1);
  close_end(a.calls > 0 ? &a : &b);
}

static void test_a_watch_refuses_what_cannot_be_watched(void **state) {
  fixture *f = *state;
  sbx_watch *watch = NULL;
  sbx_err err;
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  assert_int_equal(sbx_watch_start(&watch, f->loop, file, SBX_READABLE, on_event, NULL, &err),
                   SBX_EINVAL);
  close(file);
  assert_int_equal(sbx_watch_start(&watch, f->loop, -1, SBX_READABLE, on_event, NULL, &err),
                   SBX_EINVAL);
  assert_null(watch);
}

/* ---- work ---- */

typedef struct job {
  fixture *f;
  sem_t *gate; /* waited for */
  bool elsewhere;
  int done;
} job;

static void run_job(void *arg) {
  job *j = arg;
  j->elsewhere = !pthread_equal(pthread_self(), j->f->thread);
  if (j->gate != NULL)
    sem_wait(j->gate);
}

static void job_done(void *arg) {
  job *j = arg;
  assert_true(pthread_equal(pthread_self(), j->f->thread));
  j->done++;
}

static void test_work_runs_elsewhere_and_keeps_the_program(void **state) {
  fixture *f = *state;
  sem_t gate;
  job jobs[20];
  sem_init(&gate, 0, 0);
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 20; i++) {
      jobs[i] = (job){.f = f, .gate = &gate};
      assert_int_equal(sbx_work_start(f->loop, run_job, job_done, &jobs[i], NULL), SBX_OK);
    }
    assert_true(f->alive);
    for (int i = 0; i < 20; i++)
      sem_post(&gate);
    run(f);
    for (int i = 0; i < 20; i++)
      assert_true(jobs[i].elsewhere && jobs[i].done == 1);
  }
  sem_destroy(&gate);
}

static void on_found(void *arg, const struct addrinfo *found, const char *why) {
  int *answers = arg;
  *answers += found != NULL && found->ai_socktype == SOCK_STREAM ? 1 : 100;
  assert_true((found == NULL) == (why != NULL));
}

static void test_names_are_looked_for(void **state) {
  fixture *f = *state;
  int answers = 0;
  char name[300];
  memset(name, 'a', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  assert_int_equal(sbx_lookup_start(f->loop, "127.0.0.1", on_found, &answers, NULL), SBX_OK);
  run(f);
  assert_int_equal(answers, 1);
  assert_int_equal(sbx_lookup_start(f->loop, "127.0.0.1:x", on_found, &answers, NULL), SBX_OK);
  run(f);
  assert_int_equal(answers, 101);
  assert_int_equal(sbx_lookup_start(f->loop, "", on_found, &answers, NULL), SBX_EINVAL);
  assert_int_equal(sbx_lookup_start(f->loop, name, on_found, &answers, NULL), SBX_EINVAL);
}

/* ---- the end ---- */

static void test_the_end_waits_for_work_and_runs_what_is_queued(void **state) {
  fixture *f = *state;
  sem_t gate;
  int clock = 0;
  noted n = {.f = f, .clock = &clock};
  job j = {.f = f, .gate = &gate};
  end e;
  sem_init(&gate, 0, 1);
  sbx_task_init(&n.task, on_task);
  open_end(&e, f, on_event, SBX_READABLE);
  assert_int_equal(sbx_work_start(f->loop, run_job, job_done, &j, NULL), SBX_OK);
  sbx_loop_defer(f->loop, &n.task);
  sbx_driver_quiet(f->driver);
  while (sem_trywait(&f->ready) == 0)
    ;
  sbx_driver_turn(f->driver); /* one that was asked for before: nothing happens any more */
  assert_int_equal(n.at, 0);
  sbx_driver_free(f->driver); /* the watch goes with the loop */
  assert_int_equal(n.at, 1);
  assert_int_equal(j.done, 1);
  assert_int_not_equal(sem_trywait(&f->ready), 0);
  close(e.fd[0]);
  close(e.fd[1]);
  sem_destroy(&gate);
  const sbx_driver_host host = {on_ready, on_keep, f};
  f->alive = false;
  atomic_store(&f->asked, 0);
  assert_int_equal(sbx_driver_new(&f->driver, &f->loop, &host, NULL), SBX_OK);
}

static void on_exit_task(sbx_task *task) {
  noted *n = (noted *)(void *)task;
  sbx_driver_free(n->f->driver);
  on_task(task);
}

static void test_the_program_ends_inside_a_turn(void **state) {
  fixture *f = *state;
  int clock = 0;
  noted n = {.f = f, .clock = &clock}, after = {.f = f, .clock = &clock};
  sbx_task_init(&n.task, on_exit_task);
  sbx_task_init(&after.task, on_task);
  sbx_loop_defer(f->loop, &n.task);
  sbx_loop_defer(f->loop, &after.task);
  turn(f);
  assert_int_equal(after.at, 2); /* the rest of the turn has all that it needs */
  f->alive = false;
  assert_int_not_equal(sem_trywait(&f->ready), 0);
  sbx_driver_turn(f->driver);
}

static void test_every_allocation_may_fail(void **state) {
  fixture *f = *state;
  const sbx_driver_host host = {on_ready, on_keep, f};
  size_t before = sbx_alloc_live();
  sbx_driver *driver = NULL;
  sbx_loop *loop = NULL;
  sbx_watch *watch = NULL;
  sbx_err err;
  for (size_t i = 1; i <= 3; i++) {
    sbx_alloc_fail_at(i, false);
    assert_int_equal(sbx_driver_new(&driver, &loop, &host, &err), SBX_ENOMEM);
    assert_null(driver);
  }
  sbx_alloc_fail_at(1, false);
  assert_int_equal(sbx_watch_start(&watch, f->loop, 0, SBX_READABLE, on_event, NULL, &err),
                   SBX_ENOMEM);
  sbx_alloc_fail_at(1, false);
  assert_int_equal(sbx_work_start(f->loop, run_job, job_done, NULL, &err), SBX_ENOMEM);
  sbx_alloc_fail_at(1, false);
  assert_int_equal(sbx_lookup_start(f->loop, "a", on_found, NULL, &err), SBX_ENOMEM);
  sbx_alloc_fail_at(0, false);
  assert_int_equal(sbx_alloc_live(), before);
  assert_false(f->alive);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(test_tasks_run_in_order_and_keep_the_program),
      T(test_timers_fire_in_order),
      T(test_wanted_turns_come_by_themselves),
      T(test_a_watch_is_level_triggered_and_sees_the_end),
      T(test_a_watch_for_writing),
      T(test_a_watch_reports_an_error_once),
      T(test_a_watch_that_cannot_go_on_fails),
      T(test_a_watch_may_be_stopped_by_another),
      T(test_a_watch_refuses_what_cannot_be_watched),
      T(test_work_runs_elsewhere_and_keeps_the_program),
      T(test_names_are_looked_for),
      T(test_the_end_waits_for_work_and_runs_what_is_queued),
      T(test_the_program_ends_inside_a_turn),
      T(test_every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
