/* process.h - one process of a sandbox. */
#ifndef SBX_E2B_PROCESS_H
#define SBX_E2B_PROCESS_H

#include "providers/e2b/e2b.h"

/* So much of a directory's name, with its NUL, is shown in messages. */
enum { SBX__E2B_CWD_SHOWN = 80 };

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
  sbx_buf *request; /* JSON of the start request; its bytes are taken */
  const char *cwd;  /* SBX__E2B_CWD_SHOWN bytes, shown when it cannot be entered; or NULL */
  bool as_root;
  uint64_t limit_ms; /* SBX_NO_TIMEOUT: none */
  /* Called from the ready list; may leave or abort the process. May be NULL. */
  void (*on_output)(void *arg, sbx_stream stream, sbx_slice bytes);
  /* What comes from now on does not follow what came: some of it may be lost. May be NULL. */
  void (*on_gap)(void *arg);
} sbx__e2b_process_spec;

/* Starts a process and follows it until it has ended. `arg` is also on_output's. */
sbx_op *sbx__e2b_process(sbx_session *session, const sbx__e2b_process_spec *spec, sbx_op_done done,
                         void *arg);
const sbx__e2b_end *sbx__e2b_process_end(const sbx_op *process);
/* Stops following; the op ends with success. */
void sbx__e2b_process_leave(sbx_op *process);

#endif
