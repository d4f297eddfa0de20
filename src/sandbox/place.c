/* place.c - one sandbox at the provider, from its open to its deletion.
 *
 * Invariant: a place leaves the list only when nothing is left at the provider, as far as can be
 * known: it was deleted, the provider says that it is gone, it is not ours to delete, or the user
 * freed the object. Until then somebody is told: the callers of the start, or of close. */
#include "sandbox/place.h"

#include "core/alloc.h"
#include "core/rand.h"

#include <string.h>

enum { MAX_RETRIES = 3, FIRST_RETRY_MS = 150 };

static sbx__place *place_of_timer(sbx_timer *timer) {
  return (sbx__place *)(void *)((char *)timer - offsetof(sbx__place, timer));
}

static sbx__place *place_of_task(sbx_task *task) {
  return (sbx__place *)(void *)((char *)task - offsetof(sbx__place, end));
}

bool sbx__place_is_busy(const sbx__place *place) {
  return place->op != NULL || place->retry.armed || place->ending;
}

bool sbx__places_are_open(const sbx__places *set) {
  return set->current != NULL && set->current->state == SBX__PLACE_OPEN;
}

/* ---- what is told of it ---- */

static void tell(const sbx__place *place, sbx__life what, const sbx_err *err) {
  place->set->events->life(place->set, place, what, err);
}

/* Once, as soon as it has an id; also of one that comes too late to be used. Without memory for the
 * id nothing is told. */
static void tell_created(sbx__place *place) {
  const sbx_provider *provider = place->set->provider;
  const char *id = provider->session_id(place->session);
  if (place->id != NULL || id == NULL)
    return;
  place->id = sbx_strndup(id, strlen(id));
  if (place->id != NULL && provider->session_owned(place->session))
    tell(place, SBX__LIFE_CREATED, NULL);
}

/* ---- why one could not be deleted: as large as all the rest of a place, and few have it ---- */

static const sbx_err no_memory = {.code = SBX_ENOMEM, .message = "out of memory"};

static void forget_failure(sbx__place *place) {
  if (place->failure != &no_memory)
    sbx_free((void *)place->failure);
  place->failure = NULL;
}

static void set_failure(sbx__place *place, const sbx_err *err) {
  sbx_err *copy = sbx_calloc(1, sizeof *copy);
  if (copy != NULL)
    sbx_err_copy(copy, err);
  place->failure = copy != NULL ? copy : &no_memory;
  place->state = SBX__PLACE_UNWANTED;
}

/* ---- the end of a place ---- */

static void place_free(sbx__place *place) {
  sbx__places *set = place->set;
  sbx_timer_stop(&place->timer);
  sbx_timer_stop(&place->retry);
  sbx_task_cancel(&place->end);
  if (set->current == place)
    set->current = NULL;
  if (place->prev != NULL)
    place->prev->next = place->next;
  else
    set->first = place->next;
  if (place->next != NULL)
    place->next->prev = place->prev;
  set->provider->session_free(place->session);
  forget_failure(place);
  sbx_free(place->id);
  sbx_free(place);
}

static void on_end(sbx_task *task) {
  sbx__place *place = place_of_task(task);
  sbx__places *set = place->set;
  place_free(place);
  set->events->changed(set);
}

/* The session must outlive its op, which is freed only after its `done` has returned. */
static void place_end(sbx__place *place) {
  if (place->set->current == place)
    place->set->current = NULL;
  place->state = SBX__PLACE_GONE;
  place->ending = true;
  sbx_loop_defer(place->set->loop, &place->end);
}

void sbx__place_leave(sbx__place *place) {
  place->uses--;
  bool unneeded = place->state == SBX__PLACE_GONE || place->set->freed;
  if (place->uses == 0 && unneeded && !sbx__place_is_busy(place))
    place_end(place);
}

void sbx__place_abandon(sbx__place *place) {
  if (place->op != NULL) {
    sbx_op_abort(place->op, SBX_ECLOSED);
    return;
  }
  sbx_timer_stop(&place->timer);
  sbx_timer_stop(&place->retry);
  if (place->uses == 0)
    place_free(place);
}

/* Calls that were to go on in it must not go on in an empty one that others may have started. */
static void lost_while_reopening(sbx__place *place) {
  sbx_err err;
  sbx_timer_stop(&place->timer);
  sbx_timer_stop(&place->retry);
  if (place->op != NULL)
    sbx_op_abort(place->op, SBX_ECANCELED);
  sbx_err_set(&err, SBX_ELOST,
              "the sandbox is gone, and its files and processes with it; nothing was run; %s",
              place->set->lost ? "make a new sandbox object to go on"
                               : "the next call starts a new, empty sandbox");
  place->set->events->started(place->set, &err);
}

void sbx__place_is_gone(sbx__place *place) {
  sbx__places *set = place->set;
  bool reopening = place->state == SBX__PLACE_OPENING;
  if (place->state == SBX__PLACE_GONE)
    return;
  place->state = SBX__PLACE_GONE;
  tell(place, SBX__LIFE_LOST, NULL);
  if (set->current == place) {
    set->current = NULL;
    set->lost = !set->recreate || !set->provider->session_owned(place->session);
  }
  set->events->gone(set, place);
  if (reopening)
    lost_while_reopening(place);
}

/* ---- no answer ---- */

void sbx__places_no_answer(const sbx__places *set, uint64_t limit_ms, sbx_err *err) {
  const char *service = set->provider->service != NULL ? set->provider->service(set->config) : NULL;
  sbx_err_set(err, SBX_ETIMEOUT, "no answer%s%s within %llu ms", service != NULL ? " of " : "",
              service != NULL ? service : "", (unsigned long long)limit_ms);
}

/* ---- delete ---- */

/* Without an id there is nothing yet that could be deleted: a search comes first. */
static uint64_t delete_limit(const sbx__place *place) {
  const sbx__places *set = place->set;
  bool known = set->provider->session_id(place->session) != NULL;
  return known ? set->delete_timeout_ms : set->search_timeout_ms;
}

static void on_deleted(sbx_op *op, void *arg) {
  sbx__place *place = arg;
  sbx__places *set = place->set;
  place->op = NULL;
  if (op->err.code == SBX_OK || op->err.code == SBX_ENOTFOUND || set->freed) {
    if (place->id != NULL && set->provider->session_owned(place->session))
      tell(place, SBX__LIFE_DELETED, NULL);
    place_end(place);
    return;
  }
  sbx_err err = op->err;
  if (op->err.code == SBX_ETIMEOUT)
    sbx__places_no_answer(set, delete_limit(place), &err);
  tell(place, SBX__LIFE_DELETE_FAILED, &err);
  set_failure(place, &err);
  set->events->changed(set);
}

void sbx__place_delete(sbx__place *place) {
  sbx__places *set = place->set;
  sbx_err err;
  forget_failure(place);
  bool needed = set->provider->session_owned(place->session) || set->provider->closes_attached;
  if (set->freed || !needed) {
    place_end(place);
    return;
  }
  if (sbx_loop_is_closing(set->loop)) {
    sbx_err_set(&err, SBX_ECLOSED, "the event loop is ending");
    set_failure(place, &err);
    return;
  }
  place->state = SBX__PLACE_DELETING;
  place->since_ms = sbx_now_ms();
  place->op = set->provider->close(place->session, on_deleted, place);
  if (place->op == NULL) {
    sbx_err_set(&err, SBX_ENOMEM, NULL);
    set_failure(place, &err);
    return;
  }
  sbx_op_set_deadline(place->op, delete_limit(place));
}

/* ---- open ---- */

static void fail_start(sbx__places *set, const sbx_err *cause) {
  sbx_err err;
  sbx_err_set(&err, cause->code, "the sandbox could not be started: %s; nothing was run",
              cause->message);
  err.status = cause->status;
  err.provider = cause->provider;
  set->current = NULL;
  set->events->started(set, &err);
}

static void start_failed(sbx__place *place, const sbx_err *cause) {
  tell(place, SBX__LIFE_START_FAILED, cause);
  fail_start(place->set, cause);
}

/* Opens it again after a while, when the last attempt certainly made nothing and there is time: the
 * service could not be reached, or told us when to come back. False: it stays failed. */
static bool retry_later(sbx__place *place, const sbx_err *err) {
  uint64_t delay = 0;
  if (!err->no_effect || place->retries == MAX_RETRIES)
    return false;
  if (err->code == SBX_ENET)
    delay = (uint64_t)FIRST_RETRY_MS << place->retries;
  else if (err->code == SBX_ERATE)
    delay = err->retry_after_ms;
  if (delay == 0 || delay > place->set->start_timeout_ms)
    return false;
  /* Others were told the same moment. */
  delay += sbx_random_upto(delay / 4);
  if (sbx_now_ms() + delay >= place->timer.due_ms)
    return false;
  place->retries++;
  sbx_timer_start(&place->retry, delay);
  return true;
}

/* It keeps its files, so that a later call, or the close, decides what becomes of it; nothing is
 * deleted here. */
static void reopen_failed(sbx__place *place, const sbx_err *cause) {
  sbx__places *set = place->set;
  sbx_err why, err;
  sbx_err_copy(&why, cause);
  if (why.code == SBX_ETIMEOUT)
    sbx__places_no_answer(set, set->start_timeout_ms, &why);
  sbx_err_set(
      &err, why.code,
      "the sandbox has stopped and could not be started again: %s; nothing was run, and its "
      "files are kept",
      why.message);
  err.status = why.status;
  err.provider = why.provider;
  place->state = SBX__PLACE_HALTED;
  tell(place, SBX__LIFE_START_FAILED, &why);
  set->events->started(set, &err);
}

static void on_reopened(sbx__place *place, const sbx_err *err) {
  if (place->set->freed)
    place->state = SBX__PLACE_GONE;
  if (place->state == SBX__PLACE_OPENING && err->code == SBX_OK) {
    place->state = SBX__PLACE_OPEN;
    tell(place, SBX__LIFE_STARTED, NULL);
    place->set->events->started(place->set, NULL);
  } else if (err->code == SBX_ELOST) {
    sbx__place_is_gone(place);
  } else if (place->state == SBX__PLACE_OPENING) {
    reopen_failed(place, err);
  }
  if (place->state == SBX__PLACE_GONE && place->uses == 0)
    place_end(place);
}

static void on_opened(sbx_op *op, void *arg) {
  sbx__place *place = arg;
  sbx__places *set = place->set;
  bool in_time = place->state == SBX__PLACE_OPENING;
  place->op = NULL;
  if (in_time && !set->freed && retry_later(place, &op->err))
    return;
  sbx_timer_stop(&place->timer);
  if (op->err.code == SBX_OK)
    tell_created(place);
  if (place->reopens > 0) {
    on_reopened(place, &op->err);
  } else if (in_time && op->err.code == SBX_OK && !set->freed) {
    place->state = SBX__PLACE_OPEN;
    tell(place, SBX__LIFE_STARTED, NULL);
    set->events->started(set, NULL);
  } else {
    /* Late, or failed with an unknown rest: nobody will use it, so nobody may pay for it. */
    place->state = SBX__PLACE_UNWANTED;
    if (in_time)
      start_failed(place, &op->err);
    sbx__place_delete(place);
  }
  set->events->changed(set);
}

/* It waits for its next try, which a loop that was held up has not begun: nothing is over there. */
static void out_of_time(sbx__place *place) {
  sbx__places *set = place->set;
  sbx_err err;
  sbx_timer_stop(&place->retry);
  sbx__places_no_answer(set, set->start_timeout_ms, &err);
  if (place->reopens > 0) {
    reopen_failed(place, &err);
    set->events->changed(set);
    return;
  }
  start_failed(place, &err);
  place_end(place);
}

static void on_place_timer(sbx_timer *timer) {
  sbx__place *place = place_of_timer(timer);
  sbx__places *set = place->set;
  if (place->state == SBX__PLACE_LATE) {
    sbx_op_abort(place->op, SBX_ETIMEOUT);
    return;
  }
  if (place->op == NULL) {
    out_of_time(place);
    return;
  }
  if (place->reopens > 0) {
    sbx_op_abort(place->op, SBX_ETIMEOUT);
    return;
  }
  /* A create that is cut off now may still happen over there, with an answer that nobody reads. So
   * it may go on for a while; its answer is the surest way to what has to be deleted. */
  place->state = SBX__PLACE_LATE;
  sbx_timer_start(&place->timer, set->late_timeout_ms);
  sbx_err err;
  sbx__places_no_answer(set, set->start_timeout_ms, &err);
  sbx_err_append(&err, "; if it comes up late it is deleted; try again, or raise "
                       "startTimeoutSeconds");
  start_failed(place, &err);
  set->events->changed(set);
}

void sbx__place_hurry(sbx__place *place) {
  uint64_t limit = place->set->hurry_timeout_ms;
  if (place->state == SBX__PLACE_LATE && place->timer.due_ms > sbx_now_ms() + limit)
    sbx_timer_start(&place->timer, limit);
}

static void on_retry(sbx_timer *timer) {
  sbx__place *place = (sbx__place *)(void *)((char *)timer - offsetof(sbx__place, retry));
  place->op = place->set->provider->open(place->session, on_opened, place);
  if (place->op != NULL)
    return;
  sbx_err err;
  sbx_err_set(&err, SBX_ENOMEM, NULL);
  sbx_timer_stop(&place->timer);
  if (place->reopens > 0) {
    reopen_failed(place, &err);
    place->set->events->changed(place->set);
    return;
  }
  start_failed(place, &err);
  place_end(place);
}

static void on_progress(void *arg, sbx_slice json) {
  sbx__places *set = arg;
  set->events->progress(set, json);
}

static sbx__place *place_new(sbx__places *set) {
  sbx__place *place = sbx_calloc(1, sizeof *place);
  if (place == NULL)
    return NULL;
  place->set = set;
  place->session = set->provider->session_new(set->config);
  if (place->session == NULL) {
    sbx_free(place);
    return NULL;
  }
  if (set->provider->watch != NULL)
    set->provider->watch(place->session, on_progress, set);
  sbx_timer_init(&place->timer, set->loop, on_place_timer);
  sbx_timer_init(&place->retry, set->loop, on_retry);
  sbx_task_init(&place->end, on_end);
  place->next = set->first;
  if (place->next != NULL)
    place->next->prev = place;
  set->first = place;
  return place;
}

void sbx__place_open(sbx__places *set) {
  for (sbx__place *old = set->first; old != NULL; old = old->next) {
    if (old->state == SBX__PLACE_UNWANTED && !sbx__place_is_busy(old))
      sbx__place_delete(old);
  }
  sbx__place *place = place_new(set);
  if (place != NULL)
    place->op = set->provider->open(place->session, on_opened, place);
  if (place == NULL || place->op == NULL) {
    if (place != NULL)
      place_free(place);
    sbx_err err;
    sbx_err_set(&err, SBX_ENOMEM, NULL);
    fail_start(set, &err);
    return;
  }
  set->current = place;
  place->since_ms = sbx_now_ms();
  sbx_timer_start(&place->timer, set->start_timeout_ms);
}

void sbx__place_reopen(sbx__place *place) {
  sbx__places *set = place->set;
  place->state = SBX__PLACE_OPENING;
  place->reopens++;
  place->retries = 0;
  place->since_ms = sbx_now_ms();
  place->op = set->provider->open(place->session, on_opened, place);
  if (place->op == NULL) {
    sbx_err err;
    sbx_err_set(&err, SBX_ENOMEM, NULL);
    reopen_failed(place, &err);
    return;
  }
  sbx_timer_start(&place->timer, set->start_timeout_ms);
}
