/* wire.h - one line to its report. */
#ifndef SBX_RUNNER_WIRE_H
#define SBX_RUNNER_WIRE_H

#include "providers/remote/runner/runner.h"

/* For lines that take the sandbox seconds at most. */
#define SBX__RUNNER_REPLY_MS 60000
#define SBX__RUNNER_LIMIT_S 30
/* What a wire adds, and a shell's greeting. */
#define SBX__RUNNER_ROOM ((size_t)1 << 20)

/* Of lines beside a command, which has run once: it is not given up for a hitch. */
extern const sbx_repeat_rule sbx__runner_beside;

/* `size` zeroed bytes that begin with an sbx_runner_op; NULL on out of memory. */
void *sbx__runner_op_new(size_t size, sbx_runner *runner, sbx_session *session, sbx_op_done done,
                         void *arg);
/* A tag for a command or a line. SBX_EPROVIDER: no random numbers. */
int sbx__runner_take_tag(sbx_runner *runner, char tag[SBX_RUNNER_TAG + 1], sbx_err *err);
/* A line to be written: its buffer is `body`, where the wire has begun what it sends. */
sbx_runner_line sbx__runner_begin(sbx_runner_op *op, sbx_buf *body);
void sbx__runner_send(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how,
                      void (*on_answer)(sbx_runner_op *op, const sbx_runner_answer *answer));
/* The report of a line; initializes it, so that it must be freed whatever came. */
int sbx__runner_read(sbx_runner_op *op, sbx_runner_report *report, const sbx_runner_answer *answer,
                     const char *tag, sbx_err *err);
/* Stores `bytes` in the sandbox piece by piece, from *at on: sends the next one and says so, or
 * there is none any more. `on_answer` gives the answer to sbx__runner_stored(), which moves *at. */
bool sbx__runner_store(sbx_runner_op *op, const char *tag, const char *name, sbx_slice bytes,
                       size_t *at,
                       void (*on_answer)(sbx_runner_op *op, const sbx_runner_answer *answer));
int sbx__runner_stored(sbx_runner_op *op, const char *tag, sbx_slice bytes, size_t *at,
                       const sbx_runner_answer *answer, sbx_err *err);
/* In words: there was no room for something of ours. */
int sbx__runner_unstored(const sbx_runner *runner, sbx_err *err);

#endif
