/* host.h - the seam between core/loop and the event loop that it runs on: libuv's (host_uv.c), or
 * one of our own where the runtime has none that watches descriptors (driver.c).
 *
 * A host calls the sbx__loop_* functions from its own callbacks on the loop's thread, never from
 * inside a call of its table, and nothing more after sbx__loop_closed(). */
#ifndef SBX_CORE_HOST_H
#define SBX_CORE_HOST_H

#include "core/loop.h"

typedef struct sbx__host sbx__host;

/* The head of a host's own watch, which the host allocates and frees. */
struct sbx_watch {
  sbx_loop *loop;
  sbx_watch *next, *prev;
  sbx_watch_fn fn;
  void *arg;
};

/* Work for the pool; copied by the host. */
typedef struct sbx__job {
  sbx_loop *loop;
  void (*run)(void *arg);
  void (*done)(void *arg);
  void *arg;
} sbx__job;

/* A search for the addresses of a name; copied by the host, without the name. */
typedef struct sbx__search {
  sbx_loop *loop;
  sbx_lookup_fn done;
  void *arg;
} sbx__search;

typedef struct sbx__host_ops {
  /* sbx__loop_woken() in a coming turn. */
  void (*wake)(sbx__host *host);
  /* Whether the host's program must go on because of us; no, at first. */
  void (*keep)(sbx__host *host, bool alive);
  /* sbx__loop_timer() in `delay_ms`, or a little earlier or later; SBX_NO_TIMEOUT: not. */
  void (*timer)(sbx__host *host, uint64_t delay_ms);
  /* sbx__loop_looked() after the next look at the descriptors. */
  void (*look)(sbx__host *host);
  /* sbx__loop_turn_ended() at the end of this turn. */
  void (*turn)(sbx__host *host);
  /* While it is on each look waits for nothing, and sbx__loop_woken() comes in each turn. */
  void (*hurry)(sbx__host *host, bool on);
  /* Its head is zeroed; it watches for nothing yet. */
  int (*watch_start)(sbx__host *host, int fd, sbx_watch **out, sbx_err *err);
  void (*watch_set)(sbx_watch *watch, int events);
  /* The descriptor may be closed by the caller at once. */
  void (*watch_stop)(sbx_watch *watch);
  int (*work)(sbx__host *host, const sbx__job *job, sbx_err *err);
  int (*lookup)(sbx__host *host, const char *name, const sbx__search *search, sbx_err *err);
  /* No watch is left, and no work: frees the host in its own time, after sbx__loop_closed(). */
  void (*close)(sbx__host *host);
} sbx__host_ops;

/* The head of a host. */
struct sbx__host {
  const sbx__host_ops *ops;
  sbx_loop *loop;
};

/* Puts a loop on `host`, and tells the host. Errors: SBX_ENOMEM; the host is untouched then. */
int sbx__loop_new(sbx_loop **out, sbx__host *host, sbx_err *err);
sbx__host *sbx__loop_host(const sbx_loop *loop);

void sbx__loop_woken(sbx_loop *loop);
/* `looked`: the host has looked at the descriptors in this turn already. */
void sbx__loop_timer(sbx_loop *loop, bool looked);
void sbx__loop_looked(sbx_loop *loop);
void sbx__loop_turn_ended(sbx_loop *loop);
void sbx__loop_ready(sbx_watch *watch, int events);
/* After job->run(). */
void sbx__loop_worked(const sbx__job *job);
void sbx__loop_found(const sbx__search *search, const struct addrinfo *found, const char *why);
/* Frees the loop and tells its owner. */
void sbx__loop_closed(sbx_loop *loop);

#endif
