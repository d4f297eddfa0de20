/* runner.h - how a command runs in a place whose only verb is "run this line with sh, and give me
 * what it prints".
 *
 *   runner.h   what a provider uses
 *   exec.c     a command from its line to its report; the kill
 *   files.c    put, get and list
 *   store.c    what is too large for a line
 *   wire.c     one line to its report
 *   line.c     writes lines
 *   report.c   reads reports
 *   text.c     the programs; *.sh are their sources
 *
 * Each uses what stands below it only. A wire that has some of it by itself takes line.h, report.h
 * or text.h alone. */
#ifndef SBX_RUNNER_H
#define SBX_RUNNER_H

#include "providers/remote/runner/line.h"
#include "providers/remote/runner/report.h"
#include "providers/remote/steps.h"

enum {
  SBX_RUNNER_TAG = 32,
  SBX_RUNNER_LEFT = 128 * (SBX_RUNNER_TAG + 1),
};

/* ---- the wire, a provider's part ------------------------------------------------------------- */

typedef struct sbx_runner_op sbx_runner_op;

/* How a line is sent. */
typedef struct sbx_runner_sending {
  const sbx_exec_spec *spec; /* of the line that runs a command; else NULL. Only for `begin` */
  const char *verb;          /* for messages */
  uint64_t limit_s;          /* after which the wire may end it, if it can; 0: never */
  uint64_t timeout_ms;       /* for the answer; SBX_NO_TIMEOUT: the operation has a deadline */
  size_t max_bytes;          /* of what it prints */
  bool once;  /* it runs a command, or does what cannot be done twice: not sent again */
  bool kills; /* it ends a command: as root, where the wire can */
} sbx_runner_sending;

/* What came of a line. */
typedef struct sbx_runner_answer {
  const sbx_err *err; /* NULL: it has run */
  sbx_slice printed;
  bool started; /* it may have run */
  bool broken;  /* the connection broke, or something on the way failed: it may still run */
  bool late;    /* the wire ended it at its limit */
  bool begun;   /* the wire has said that it runs */
} sbx_runner_answer;

typedef struct sbx_runner_wire {
  const char *provider;
  /* What stands before a line in the buffer that is sent; may be NULL. */
  void (*begin)(sbx_session *session, sbx_buf *body, const sbx_runner_sending *how);
  /* Sends it and calls sbx_runner_answered(), unless the operation ends before. `body` is used up,
   * with the error that it may have: SBX_ENOMEM or SBX_ETOOBIG, which is answered, too. The line
   * begins at op->line_at. */
  void (*send)(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how);
  /* What came in place of a report, when a command's line printed something else: changes `err`
   * when it knows better, and says whether the command was started. May be NULL. */
  bool (*explain)(sbx_slice printed, sbx_err *err);
  /* Makes a file of the sandbox and calls sbx_runner_uploaded(); `bytes` stay until then, or until
   * the operation ends. What is too large for a line goes this way; NULL, or where it is refused:
   * piece by piece, in lines. */
  void (*upload)(sbx_runner_op *op, const char *path, sbx_slice bytes);
} sbx_runner_wire;

/* A sandbox's part of it, in its session; zero-initialize, then set what is above the line. */
typedef struct sbx_runner {
  const sbx_runner_wire *wire;
  sbx_loop *loop;
  bool json;       /* lines stand inside a JSON string */
  bool env;        /* lines carry the variables, since the wire does not */
  size_t max_line; /* bytes, without what the wire begins with; 0: any */
  /* ---- */
  /* Commands that are over for us, and whose folders are still in the sandbox: the next command's
   * line takes them away. Their tags, each behind a blank; the oldest comes first. */
  char left[SBX_RUNNER_LEFT + 1];
  size_t left_len;
  uint64_t left_gone;  /* how much of the list has been taken off: where its first byte stood */
  uint64_t left_asked; /* up to here a line of its own was sent for them */
} sbx_runner;

/* First member of every operation that sends lines. */
struct sbx_runner_op {
  sbx_steps steps;
  sbx_runner *runner;
  char tag[SBX_RUNNER_TAG + 1]; /* of the command that it is about, or its own */
  const char *verb;             /* of the line in flight */
  size_t line_at;
  const sbx_runner_answer *answer; /* while its report is taken */
  void (*on_report)(sbx_runner_op *op, sbx_runner_report *report, sbx_err *err);
  sbx_repeat repeat;               /* of lines that may be sent again */
  struct sbx__runner_store *store; /* what its line needs; NULL: nothing, or all is there */
};

void sbx_runner_answered(sbx_runner_op *op, const sbx_runner_answer *answer);
/* `err` without a code: the file is there. */
void sbx_runner_uploaded(sbx_runner_op *op, sbx_err *err);

/* ---- verbs ----------------------------------------------------------------------------------- */

/* `dir` is where it runs: absolute, or "~" and what is below it; empty: where a line is run. */
sbx_op *sbx_runner_exec(sbx_runner *runner, sbx_session *session, const sbx_exec_spec *spec,
                        sbx_slice dir, sbx_output *out, sbx_exec_status *status, sbx_op_done done,
                        void *arg);
/* The same in spec->cwd, which `absolute` appends to `out` as the sandbox calls it. */
sbx_op *sbx_runner_exec_in(sbx_runner *runner, sbx_session *session, const sbx_exec_spec *spec,
                           int (*absolute)(sbx_buf *out, const sbx_session *session,
                                           sbx_slice path),
                           sbx_output *out, sbx_exec_status *status, sbx_op_done done, void *arg);
/* Success: nothing of the command was left. */
sbx_op *sbx_runner_kill(sbx_runner *runner, sbx_session *session, sbx_op *exec, sbx_op_done done,
                        void *arg);
/* The same of a command by its tag, which may be over for us. */
sbx_op *sbx_runner_stop(sbx_runner *runner, sbx_session *session, const char *tag, sbx_op_done done,
                        void *arg);
/* Paths are absolute. */
sbx_op *sbx_runner_list(sbx_runner *runner, sbx_session *session, sbx_slice dir, size_t max_entries,
                        sbx_listing *out, sbx_op_done done, void *arg);
sbx_op *sbx_runner_put(sbx_runner *runner, sbx_session *session, sbx_slice path, sbx_slice bytes,
                       sbx_op_done done, void *arg);
sbx_op *sbx_runner_get(sbx_runner *runner, sbx_session *session, sbx_slice path, sbx_buf *out,
                       sbx_op_done done, void *arg);
/* A provider's `at_path`. `absolute` as above; NULL: paths are below where a line is run. */
sbx_op *
sbx_runner_at_path(sbx_runner *runner, sbx_session *session, const sbx_path_request *request,
                   int (*absolute)(sbx_buf *out, const sbx_session *session, sbx_slice path),
                   sbx_stats *out, sbx_op_done done, void *arg);

#endif
