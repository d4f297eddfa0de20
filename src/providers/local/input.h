/* input.h - what a running command is given: standard input through a pipe, signals by its guard.
 */
#ifndef SBX_LOCAL_INPUT_H
#define SBX_LOCAL_INPUT_H

#include "providers/provider.h"

typedef struct sbx__local_give sbx__local_give_op;

typedef struct sbx__local_input {
  sbx_loop *loop;
  int fd; /* our end of the pipe or terminal, -1: there is none, or it was ended */
  bool is_tty;
  sbx_watch *watch;
  sbx__local_give_op *writing;    /* or the end, which is never waited for */
  sbx__local_give_op *signalling; /* a signal, or a size, until the command runs */
  int (*send_signal)(void *arg, int number);
  void *arg;
  bool begun;
  bool over;
} sbx__local_input;

/* `send_signal` is called while the command runs, and returns 0 or an errno value. */
void sbx__local_input_init(sbx__local_input *input, sbx_loop *loop,
                           int (*send_signal)(void *arg, int number), void *arg);
/* Makes the pipe; `out` is the command's end of it. */
int sbx__local_input_open(sbx__local_input *input, int *out, sbx_err *err);
/* Makes a terminal; `out` is the command's end, `master` ours, of which the caller has a copy to
 * read from. */
int sbx__local_input_open_tty(sbx__local_input *input, sbx_tty_size size, int *out, int *master,
                              sbx_err *err);
/* The command runs. */
void sbx__local_input_begin(sbx__local_input *input);
/* It has ended, or never will have begun: ends what is in flight. May be called twice. */
void sbx__local_input_end(sbx__local_input *input);

sbx_op *sbx__local_input_give(sbx__local_input *input, const sbx_input *what, sbx_op_done done,
                              void *arg);

#endif
