/* wire.h - one line to its report. */
#ifndef SBX_RUNNER_WIRE_H
#define SBX_RUNNER_WIRE_H

#include "providers/remote/runner/runner.h"

/* What a wire adds, and a shell's greeting. */
#define SBX__RUNNER_ROOM ((size_t)1 << 20)

/* Of lines beside a command, which has run once: it is not given up for a hitch. */
extern const sbx_repeat_rule sbx__runner_beside;

typedef void (*sbx__runner_on_report)(sbx_runner_op *op, sbx_runner_report *report, sbx_err *err);

/* `size` zeroed bytes that begin with an sbx_runner_op; NULL on out of memory. `tag` is the
 * command's that it is about; NULL: a new one. When it has finished already, there are no random
 * numbers; it can be gone on with all the same. */
void *sbx__runner_op_new(size_t size, sbx_runner *runner, sbx_session *session, const char *tag,
                         sbx_op_done done, void *arg);
/* A line to be written: its buffer is `body`, where the wire has begun what it sends. */
sbx_runner_line sbx__runner_begin(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how);
/* `on_report` gets what the line has reported, or why it has not; it may keep the report's bytes
 * when it leaves an initialized one in their place. */
void sbx__runner_send(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how,
                      sbx__runner_on_report on_report);

/* A line of another program than a command's; see sbx_runner_line_ask(). */
typedef struct sbx__runner_question {
  sbx_runner_program program;
  const char *verb;
  const char *words; /* NULL: none */
  sbx_slice text;
  size_t max_bytes; /* of what it prints, without what a wire adds */
  bool slow;        /* it may take minutes, else seconds */
  bool kills;       /* it ends a command */
  bool once;        /* what it does cannot be done twice */
} sbx__runner_question;

void sbx__runner_ask(sbx_runner_op *op, const sbx__runner_question *question,
                     sbx__runner_on_report on_report);
/* Room for an answer of as many entries as may be wanted, at about `each` bytes; not for all of
 * very many: a longer answer is asked for again. */
#define SBX__RUNNER_LEAST ((size_t)64 << 10)
size_t sbx__runner_most(size_t entries, size_t each);
/* The same line once more after a pause, by the rule above; see sbx_steps_repeat(). */
bool sbx__runner_again(sbx_runner_op *op, const sbx_err *err, sbx_steps_time on_time);

#endif
