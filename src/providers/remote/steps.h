/* steps.h - operations that are made of several requests, and when one of them is sent again. */
#ifndef SBX_REMOTE_STEPS_H
#define SBX_REMOTE_STEPS_H

#include "core/http.h"
#include "providers/provider.h"

/* First member of an operation of a session that sends one request after the other and may pause
 * in between, or wait for another operation. Ending it early ends what it waits for, so nothing of
 * that has to be written again.
 *
 *   op = sbx_steps_new(size, ...) -> sbx_steps_send -> on_reply -> sbx_steps_wait -> on_time
 *   -> ... -> sbx_steps_finish */
typedef struct sbx_steps sbx_steps;
typedef void (*sbx_steps_reply)(sbx_steps *steps, sbx_http *reply);
typedef void (*sbx_steps_time)(sbx_steps *steps);

struct sbx_steps {
  sbx_op op;
  sbx_session *session; /* not touched after the finish */
  sbx_op *request;      /* in flight */
  sbx_timer pause;
  sbx_steps_reply on_reply;
  sbx_steps_time on_time;
  /* Each may be NULL. */
  void (*ending)(sbx_steps *steps, int reason); /* it ends early */
  void (*let_go)(sbx_steps *steps);  /* it ends, in whatever way: stops what runs beside it */
  void (*release)(sbx_steps *steps); /* frees what it holds */
};

/* `size` zeroed bytes that begin with an sbx_steps; NULL on out of memory. */
void *sbx_steps_new(size_t size, sbx_session *session, sbx_loop *loop, sbx_op_done done, void *arg);
/* `on_reply` gets every reply, whatever its status, and every failure (reply->op.err). */
void sbx_steps_send(sbx_steps *steps, sbx_http_client *client, const sbx_http_request *request,
                    sbx_steps_reply on_reply);
void sbx_steps_wait(sbx_steps *steps, uint64_t ms, sbx_steps_time on_time);
/* Waits for another operation, whose `done` must set `request` to NULL; NULL finishes with
 * SBX_ENOMEM. */
void sbx_steps_wait_for(sbx_steps *steps, sbx_op *child);

/* When a request that may be sent twice is sent again: a few times after a 429, a failure of the
 * service and a broken connection; after others as they are named here. */
typedef struct sbx_repeat_rule {
  uint64_t first_pause_ms; /* then twice as long each time */
  uint64_t most_pause_ms;
  unsigned most;  /* repeats, one after the other */
  bool conflicts; /* after a conflict, for as long as it lasts */
  bool timeouts;  /* after a request that was not answered in time */
} sbx_repeat_rule;

/* Deletes, and the search for what is to be deleted. */
extern const sbx_repeat_rule sbx_repeat_delete;

/* How often a request was repeated. After a success, zero-initialize it once more. */
typedef struct sbx_repeat {
  uint64_t pause_ms;
  unsigned failures;
} sbx_repeat;

/* Waits and then calls `on_time`, when `err` may pass by the rule. No pause is shorter than the
 * error says. False: it does not pass, or not before the op's deadline; there is no pause. */
bool sbx_steps_repeat(sbx_steps *steps, sbx_repeat *repeat, const sbx_repeat_rule *rule,
                      const sbx_err *err, sbx_steps_time on_time);
/* The next of the rule's pauses. */
uint64_t sbx_repeat_pause(sbx_repeat *repeat, const sbx_repeat_rule *rule);
/* `err` NULL, or without a code: success. */
void sbx_steps_finish(sbx_steps *steps, const sbx_err *err);
void sbx_steps_finish_code(sbx_steps *steps, int code);

#endif
