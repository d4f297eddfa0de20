/* process.h - one process of a sandbox. */
#ifndef SBX_E2B_PROCESS_H
#define SBX_E2B_PROCESS_H

#include "providers/e2b/e2b.h"

/* What became of a process; valid until its op's `done` has returned, also when the op failed. */
typedef struct sbx__e2b_end {
  int64_t pid; /* 0: its start was not told */
  bool may_have_run;
  bool ended;              /* what follows is known */
  bool exited;             /* by itself; else by a signal */
  int exit_code;           /* when exited */
  int signal_number;       /* else, 0 when unknown */
  const char *signal_name; /* static text or NULL */
  bool limit_passed;       /* the service has ended the stream because of the limit */
} sbx__e2b_end;

typedef struct sbx__e2b_process_spec {
  sbx_slice request; /* JSON of the start request */
  const char *cwd;   /* shown when it cannot be entered; it lives as long as the process; or NULL */
  bool as_root;
  uint64_t limit_ms; /* SBX_NO_TIMEOUT: none */
  /* Called from the ready list; may leave or abort the process. May be NULL. */
  void (*on_output)(void *arg, sbx_stream stream, sbx_slice bytes);
  /* What comes from now on does not follow what came: some of it may be lost. May be NULL. */
  void (*on_gap)(void *arg);
} sbx__e2b_process_spec;

/* Begins a start request: a shell that runs `program`, a text as it stands in JSON, up to the words
 * that this gets. Then their array is to be ended, other members may follow, and the end, which
 * says the directory. */
void sbx__e2b_request_begin(sbx_json_out *out, sbx_buf *request, sbx_slice program);
void sbx__e2b_request_end(sbx_json_out *out, sbx_slice cwd);

/* Starts a process and follows it until it has ended. `arg` is also on_output's. */
sbx_op *sbx__e2b_process(sbx_session *session, const sbx__e2b_process_spec *spec, sbx_op_done done,
                         void *arg);
const sbx__e2b_end *sbx__e2b_process_end(const sbx_op *process);
/* Stops following; the op ends with success. */
void sbx__e2b_process_leave(sbx_op *process);

/* Runs one of our own programs, and keeps what it prints on stdout, all of it or none: SBX_ETOOBIG,
 * or SBX_ENET when a part of it was lost. `request` is used up, with the error that it may have. */
sbx_op *sbx__e2b_line(sbx_session *session, sbx_buf *request, uint64_t limit_ms, size_t max_bytes,
                      sbx_op_done done, void *arg);
sbx_slice sbx__e2b_line_printed(const sbx_op *line);
/* Runs a program that ends processes, as root, with these words, behind which is a NULL; again when
 * the connection breaks, since what is dead stays so. Success: its exit code was 0, nothing was
 * left. SBX_EPROVIDER: it was another one. */
sbx_op *sbx__e2b_killer(sbx_session *session, sbx_runner_program text, const char *const *words,
                        sbx_op_done done, void *arg);

#endif
