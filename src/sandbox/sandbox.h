/* sandbox.h - the inside of the port's semantics; for the files of this folder and their tests.
 *
 *   object.c    the object: options, start, close, free
 *   place.c     one sandbox at the provider, from its open to its deletion
 *   call.c      the base of every call: waiting for the start, cancel, probe, finish
 *   spec.c      checks and copies of what a call is given
 *   exec.c      run a command: two clocks, kill, outcome
 *   relay.c     a command's output on its way to the user's callback
 *   file.c      write, read, list
 *   control.c   lifetime, pause, resume
 *
 * A call is an sbx_op, so the loop's end reaches it, its callback comes from the ready list, and it
 * ends once. The ops of the provider are its children; a call ends only when they have ended. */
#ifndef SBX_SANDBOX_H
#define SBX_SANDBOX_H

#include "providers/provider.h"

/* In whole seconds what a signed 32-bit number of milliseconds holds: the longest limit that a
 * SandboxAgent's contract allows. */
enum { SBX__MAX_TIMEOUT_MS = 2147483000 };
enum { SBX__MAX_LIFETIME_S = 24 * 60 * 60 };
#define SBX__MAX_OUTPUT_BYTES ((size_t)1 << 30)
#define SBX__MAX_READ_BYTES ((size_t)1 << 31)

typedef struct sbx__place sbx__place;

struct sbx_sandbox {
  sbx_loop *loop;
  const sbx_provider *provider;
  sbx_config *config;
  char *shell;              /* for commands that name none; NULL: the provider chooses */
  bool recreate;            /* a lost sandbox is replaced by the next call */
  uint64_t exec_timeout_ms; /* when the command brings none */
  uint64_t start_timeout_ms;
  uint64_t late_timeout_ms;  /* for the answer of a create that missed the start's deadline */
  uint64_t hurry_timeout_ms; /* the same, once somebody waits for the close */
  uint64_t file_timeout_ms;
  uint64_t probe_timeout_ms;
  uint64_t delete_timeout_ms;
  uint64_t search_timeout_ms; /* to find and delete what a create may have made */

  sbx__place *place;    /* the one that calls use; NULL before a start and after a loss */
  sbx__place *places;   /* all that have a session, that one included */
  sbx_call *first_call; /* in order of arrival, until their callbacks have returned */
  sbx_call *last_call;
  size_t active;   /* calls in the list that are no closes */
  size_t closers;  /* closes that have not finished */
  sbx_timer grace; /* until the calls in flight are ended for a close */

  bool closed;   /* close or free was called: no further calls */
  bool deleting; /* the closers wait for deletions only */
  bool lost;     /* gone, and not to be replaced */
  bool freed;    /* the user's pointer is dead; release when nothing is left */
};

/* As sbx_sandbox_new() with a provider that is not in the table. */
int sbx__sandbox_new_with(sbx_sandbox **out, sbx_loop *loop, const sbx_provider *provider,
                          sbx_slice options_json, sbx_err *err);
/* Whether a new call may begin: SBX_ECLOSED, SBX_ELOST. */
int sbx__sandbox_check(const sbx_sandbox *sb, sbx_err *err);
/* Something ended: goes on with a close or a free that waited for it. May free `sb`. */
void sbx__sandbox_step(sbx_sandbox *sb);

/* ---- places ---- */

typedef enum sbx__place_state {
  SBX__PLACE_OPENING,
  SBX__PLACE_OPEN,
  SBX__PLACE_HALTED,   /* was open, has its files, and does not run: the next call opens it again */
  SBX__PLACE_LATE,     /* opening still, but the callers were told that it took too long */
  SBX__PLACE_UNWANTED, /* to be deleted; with an `err`, the last attempt failed */
  SBX__PLACE_DELETING,
  SBX__PLACE_GONE, /* nothing is left at the provider */
} sbx__place_state;

/* A provider's session and who still needs it. */
struct sbx__place {
  sbx_sandbox *sb;
  sbx_session *session;
  sbx__place_state state;
  size_t uses;     /* calls that run in it */
  sbx_op *op;      /* open or close */
  sbx_timer timer; /* the start's deadline, then the time for a late answer */
  sbx_timer retry; /* until the next open, after one that changed nothing */
  unsigned retries;
  unsigned reopens; /* how often; its files are not given up when it cannot be opened again */
  bool pausing;     /* the provider's pause is in flight: nothing else is sent */
  unsigned pauses;  /* begun, and not certainly without effect */
  sbx_task end;     /* frees it outside of the provider's callbacks */
  bool ending;
  sbx_err err; /* why it could not be deleted */
  sbx__place *next, *prev;
};

/* Begins the one start that all waiting calls share; they fail with it. */
void sbx__place_open(sbx_sandbox *sb);
/* Opens one again that is halted; the same for its waiting calls. */
void sbx__place_reopen(sbx__place *place);
/* Deletes what is or may be there; a failure is kept in `err`. Not while an op is in flight. */
void sbx__place_delete(sbx__place *place);
/* Somebody waits for the close: a late answer is not waited for much longer. */
void sbx__place_hurry(sbx__place *place);
/* The provider says that it exists no more: the other calls in it end, and it is not deleted. */
void sbx__place_is_gone(sbx__place *place);
/* A call that ran in it has ended. */
void sbx__place_leave(sbx__place *place);
/* Its op is in flight or comes, or it is about to be freed. */
bool sbx__place_is_busy(const sbx__place *place);
/* The user freed the sandbox: lets go of what is at the provider. */
void sbx__place_abandon(sbx__place *place);

/* ---- calls ---- */

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
  sbx_op *probe;
  sbx_liveness liveness;
  sbx_err cause; /* why the work failed; without a code the call goes on to succeed */
};

/* Makes the call live. Everything that can fail was done before. */
void sbx__call_init(sbx_call *call, sbx_sandbox *sb, const sbx__call_kind *kind, void *arg);
/* Runs it now when the sandbox is open, else after the start, which is begun if need be. */
void sbx__call_begin(sbx_call *call);
/* Whether sbx__call_begin() would run a call before it returns. */
bool sbx__sandbox_is_open(const sbx_sandbox *sb);
/* The start has ended: runs the waiting calls, or fails them. */
void sbx__calls_started(sbx_sandbox *sb, const sbx_err *err);
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

/* ---- output ---- */

typedef struct sbx__chunk sbx__chunk;

/* Output that waits for the ready list: it may arrive deep inside the core, even inside libcurl,
 * where no user code may run. What one turn of the loop brings is all that is ever held. */
typedef struct sbx__relay {
  sbx_loop *loop;
  sbx_output_cb fn;
  void *arg;
  sbx__chunk *first;
  sbx__chunk **last;
  bool *freed; /* set while `fn` runs: it may end the call that the relay belongs to */
} sbx__relay;

void sbx__relay_init(sbx__relay *relay, sbx_loop *loop, sbx_output_cb fn, void *arg);
/* False when there is no memory: what came is then lost. */
bool sbx__relay_add(sbx__relay *relay, sbx_stream stream, sbx_slice bytes);
/* Calls `fn` with all that waits; only from the ready list. False when the relay is no more. */
bool sbx__relay_flush(sbx__relay *relay);
void sbx__relay_deinit(sbx__relay *relay);

/* ---- arguments ---- */

int sbx__check_path(sbx_slice path, sbx_err *err);
int sbx__check_shell(sbx_slice shell, sbx_err *err);
int sbx__check_spec(const sbx_exec_spec *spec, uint32_t caps, sbx_err *err);
/* Copies all that `from` points to into one block; sbx_free() it. Errors: SBX_ENOMEM. */
int sbx__copy_spec(sbx_exec_spec *to, char **block, const sbx_exec_spec *from);

#endif
