/* input.h - what a running command is given: standard input and signals, each in its order. */
#ifndef SBX_SANDBOX_INPUT_H
#define SBX_SANDBOX_INPUT_H

#include "sandbox/sandbox.h"

#define SBX__SIGNAL_NAMES                                                                          \
  "SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGUSR1, SIGUSR2, SIGTERM, SIGCONT and SIGSTOP"

/* The same name with static lifetime, or NULL for one that is not among these. */
const char *sbx__signal_name(const char *name);

typedef struct sbx__given sbx__given;

/* The standard input; and signals and sizes, which do not wait for it. */
enum { SBX__LANES = 2 };

typedef struct sbx__inputs {
  sbx_sandbox *sb;
  sbx_session *session;
  sbx_op *exec;                  /* NULL: it has not begun */
  sbx__given *lanes[SBX__LANES]; /* the first of each is with the provider, once there is `exec` */
  size_t waiting;                /* bytes */
  bool closed;                   /* the user has ended the standard input */
  bool over;
} sbx__inputs;

void sbx__inputs_init(sbx__inputs *inputs, sbx_sandbox *sb);
/* The errors of sbx_call_write(). */
int sbx__inputs_add(sbx__inputs *inputs, const sbx_input *what, sbx_done_cb cb, void *arg,
                    sbx_err *err);
/* The provider's exec has begun, and takes what waits. */
void sbx__inputs_begin(sbx__inputs *inputs, sbx_session *session, sbx_op *exec);
/* It has ended: so does what waits. May be called twice. */
void sbx__inputs_end(sbx__inputs *inputs);

#endif
