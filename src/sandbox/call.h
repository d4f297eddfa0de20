/* call.h - the base of every call: waiting for the start, cancel, probe, finish.
 *
 * A call is an sbx_op, so the loop's end reaches it, its callback comes from the ready list, and it
 * ends once. The ops of the provider are its children; a call ends only when they have ended. */
#ifndef SBX_SANDBOX_CALL_H
#define SBX_SANDBOX_CALL_H

#include "sandbox/sandbox.h"

/* Whether a new call may begin: SBX_ECLOSED, SBX_ELOST. */
int sbx__sandbox_check(const sbx_sandbox *sb, sbx_err *err);

typedef struct sbx__call_kind {
  /* The sandbox is open: starts the provider's op, or finishes. */
  void (*run)(sbx_call *call);
  /* A running call is to end early, by SBX_ECANCELED, SBX_ETIMEOUT or SBX_ECLOSED. */
  void (*stop)(sbx_call *call, int reason);
  /* Calls the user back. */
  void (*report)(sbx_call *call, const sbx_err *err);
  /* Frees what the call holds, the sandbox may be gone by then; NULL for nothing. */
  void (*release)(sbx_call *call);
  /* What a user has to know of the effects when the call failed; NULL for nothing. */
  const char *(*effects)(const sbx_call *call);
} sbx__call_kind;

typedef enum sbx__call_state {
  SBX__CALL_WAITS_FOR_START,
  SBX__CALL_CLOSES,
  SBX__CALL_RUNS, /* until it has finished, an op of the provider is in flight */
} sbx__call_state;

struct sbx_call {
  sbx_op op;
  const sbx__call_kind *kind;
  sbx_sandbox *sb;
  sbx_call *next, *prev;
  void *arg; /* the user's */
  sbx__call_state state;
  bool keeps_arguments; /* until its end, so that it could be run a second time */
  bool begun_again;     /* its work was refused once, by a sandbox that did not run */
  bool torn_down;       /* the sandbox was freed or the loop ended: reports SBX_ECLOSED */
  bool endless;         /* it has no limit, so a close does not wait for it */
  bool cancelled;       /* by the user */
  bool shut;            /* ended by a close: reports SBX_ECLOSED */
  bool may_have_run;    /* goes into the error */
  sbx__place *place;    /* where it runs */
  unsigned reopens;     /* of the place, when it began to run */
  unsigned pauses;      /* the same */
  sbx_op *child;        /* the provider's op that does the work */
  sbx_buf *data;        /* what a read has brought; its callback may take it. NULL: it is none */
  uint64_t limit_ms;    /* of that op, for messages */
  bool limit_passed;
  sbx_op *probe;
  sbx_liveness liveness;
  sbx_err cause; /* why the work failed; without a code the call goes on to succeed */
};

/* Makes the call live. Everything that can fail was done before. */
void sbx__call_init(sbx_call *call, sbx_sandbox *sb, const sbx__call_kind *kind, void *arg);
/* Runs it now when the sandbox is open, else after the start, which is begun if need be. */
void sbx__call_begin(sbx_call *call);
/* The start has ended: runs the waiting calls, or fails them. */
void sbx__calls_started(sbx_sandbox *sb, const sbx_err *err);
/* A place is gone: ends what runs there. */
void sbx__calls_gone(sbx_sandbox *sb, const sbx__place *place);
/* A close does not wait for it any longer: it ends as after a cancel, and reports SBX_ECLOSED. */
void sbx__call_shut(sbx_call *call);
/* Whether a sandbox that is gone, or cannot be reached, could look like this. */
bool sbx__is_doubtful(int code);
/* The child failed with `cause`: asks, where that is in doubt, whether the sandbox is still there,
 * and finishes. */
void sbx__call_fail(sbx_call *call);
/* Finishes with `cause`, or with SBX_ELOST when a probe says that the sandbox is gone. */
void sbx__call_probe(sbx_call *call);
/* The only way out of a call. `err` NULL: success. SBX_ECANCELED of a call that was shut becomes
 * SBX_ECLOSED. */
void sbx__call_finish(sbx_call *call, const sbx_err *err);
/* Finishes with SBX_ENOMEM: the provider's op could not be made. */
void sbx__call_finish_nomem(sbx_call *call);
/* For calls whose work is one op of the provider: its `done`, ... */
void sbx__call_child_done(sbx_op *op, void *arg);
/* ... what follows its start (NULL: it could not be made), and the kind's `stop`. */
void sbx__call_await(sbx_call *call, sbx_op *child, uint64_t limit_ms);
void sbx__call_stop_child(sbx_call *call, int reason);

#endif
