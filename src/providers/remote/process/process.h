/* process.h - commands and files where the wire's verb is "run this program, with both of its
 * outputs as streams".
 *
 *   process.h  what a provider fills in, and what it gets for it
 *   exec.c     a command, and the kill of its tree
 *   files.c    put and get
 *   line.c     a process as the runner's wire, for what has no program of its own
 *
 * Each uses what stands above it only, and the programs of the runner. */
#ifndef SBX_PROCESS_H
#define SBX_PROCESS_H

#include "core/json.h"
#include "providers/remote/runner/runner.h"
#include "providers/remote/runner/text.h"
#include "providers/remote/steps.h"

/* ---- one process, a provider's part --------------------------------------------------------- */

/* What became of a process; valid until its op's `done` has returned, also when the op failed. */
typedef struct sbx_process_end {
  bool may_have_run;
  bool exited; /* `exit_code` is known */
  int exit_code;
  sbx_slice words; /* the first that it, or the service in its place, has printed */
} sbx_process_end;

/* A process on its way to the wire. `json` is of use to wires of JSON alone. */
typedef struct sbx_process_request {
  sbx_buf buf;
  sbx_json_out json;
} sbx_process_request;

typedef struct sbx_process_spec {
  sbx_process_request *request; /* written; its bytes are taken */
  sbx_slice input;              /* borrowed; without a pointer: there is none */
  bool end_input;               /* its end is told; only where the wire can */
  /* May leave or abort the process. May be NULL. */
  void (*on_output)(void *arg, sbx_stream stream, sbx_slice bytes);
  /* Asked at the end of the streams: whether they have told enough, so that the service need not
   * be asked for the exit code. NULL: never. */
  bool (*is_told)(void *arg);
} sbx_process_spec;

typedef struct sbx_processes {
  const char *provider;
  bool json;           /* programs stand inside JSON strings */
  size_t max_text;     /* longer ones go as a file; 0: as much as the kernel takes in a word */
  const char *no_room; /* what to do about a full disk; added to a message */
  /* Begins the request of a process of `sh -c PROGRAM cloudsandbox`; words follow, then the end,
   * with the variables of `spec` (NULL: none) and the mark `token`. An error is in request->buf. */
  void (*begin)(sbx_process_request *request, const sbx_session *session, sbx_slice program,
                bool input);
  void (*word)(sbx_process_request *request, sbx_slice word);
  void (*end)(sbx_process_request *request, const sbx_exec_spec *spec, const char *token);
  /* Whether the end of an input can be told in this sandbox. NULL: in every one. */
  bool (*tells_end)(const sbx_session *session);
  /* Whether the outputs are closed when the program ends, also where something still writes to
   * them. NULL: in no sandbox. */
  bool (*closes_outputs)(const sbx_session *session);
  /* Starts it and follows it to its end. `arg` is also that of the spec's functions. The op fails
   * when the end is not known. */
  sbx_op *(*start)(sbx_session *session, const sbx_process_spec *spec, sbx_op_done done, void *arg);
  const sbx_process_end *(*ended)(const sbx_op *process);
  /* Stops following; the op ends with success, perhaps a little later. */
  void (*leave)(sbx_op *process);
  /* There is no /bin/sh to run our programs with: fills `err` and returns true when that is how the
   * process ended. */
  bool (*has_no_shell)(const sbx_session *session, const sbx_process_end *end, sbx_err *err);
} sbx_processes;

/* A program of ours as `begin` takes it. */
static inline sbx_slice sbx__process_text(const sbx_processes *wire, sbx_runner_program program) {
  return wire->json ? sbx_runner_json(program) : sbx_runner_text(program);
}

/* ---- verbs ---------------------------------------------------------------------------------- */

sbx_op *sbx_process_exec(const sbx_processes *wire, sbx_session *session, sbx_loop *loop,
                         const sbx_exec_spec *spec, sbx_output *out, sbx_exec_status *status,
                         sbx_op_done done, void *arg);
/* Of an op of sbx_process_exec(). Success: nothing of the command was left. */
sbx_op *sbx_process_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg);

sbx_op *sbx_process_put(const sbx_processes *wire, sbx_session *session, sbx_loop *loop,
                        sbx_slice path, sbx_slice bytes, sbx_op_done done, void *arg);
/* The same with bytes that stay until the op is over. */
sbx_op *sbx_process_save(const sbx_processes *wire, sbx_session *session, sbx_loop *loop,
                         sbx_slice path, sbx_slice bytes, sbx_op_done done, void *arg);
/* `fetch` (NULL: none) tries another way first; an error of it leads to the process, but for
 * SBX_ETOOBIG and SBX_ENOMEM. */
sbx_op *sbx_process_get(const sbx_processes *wire, sbx_session *session, sbx_loop *loop,
                        sbx_slice path, sbx_buf *out,
                        sbx_op *(*fetch)(sbx_session *session, sbx_slice path, sbx_buf *out,
                                         sbx_op_done done, void *arg),
                        sbx_op_done done, void *arg);

/* A line of the runner as a program; for the `send` of its wire. */
void sbx_process_line(const sbx_processes *wire, sbx_runner_op *op, sbx_buf *body,
                      const sbx_runner_sending *how);

#endif
