/* streamed.h - a command whose outputs come as they are written: one of the programs of wrap.sh or
 * bound.sh, over a wire that has streams. What does not depend on the wire. */
#ifndef SBX_RUNNER_STREAMED_H
#define SBX_RUNNER_STREAMED_H

#include "core/loop.h"
#include "core/output.h"
#include "providers/provider.h"
#include "providers/remote/runner/args.h"
#include "providers/remote/runner/trailer.h"

/* One of the two streams, on its way to the output. */
typedef struct sbx_runner_stream {
  struct sbx_runner_streamed *of;
  sbx_stream stream;
  sbx_runner_trailer trailer;
} sbx_runner_stream;

typedef struct sbx_runner_streamed {
  char token[SBX_RUNNER_TOKEN + 1]; /* of the variable that marks its processes */
  char mark[sizeof SBX_RUNNER_MARK + 1 + SBX_RUNNER_TOKEN]; /* NAME=VALUE */
  sbx_buf
      main; /* path of the file that its code stands in, as begin_code.sh names it; empty: none */
  sbx_err failure; /* it failed so, and its tree has to be ended first */
  sbx_timer drain; /* for what the streams still hold when the command has ended, or was killed */
  uint64_t drain_ms;
  bool stopped;
  char shell[80], dir[80]; /* the beginnings of their names, for messages */
  sbx_output *out;
  sbx_exec_status *status;
  sbx_runner_stream ends[2]; /* by sbx_stream */
} sbx_runner_streamed;

/* Makes the token. `out` and `status` outlive it. SBX_ENOMEM, or no random numbers. */
int sbx_runner_streamed_init(sbx_runner_streamed *s, const sbx_exec_spec *spec, sbx_output *out,
                             sbx_exec_status *status, sbx_err *err);
void sbx_runner_streamed_deinit(sbx_runner_streamed *s);

/* What a stream brought, without the line of the program; when both lines are there the drain
 * begins. */
void sbx_runner_streamed_feed(sbx_runner_streamed *s, sbx_stream stream, sbx_slice bytes);
/* What was held back is no line: the streams have ended, or a part of them is missing. */
void sbx_runner_streamed_flush(sbx_runner_streamed *s);
void sbx_runner_streamed_drain(sbx_runner_streamed *s);
/* Nobody waits any more. */
void sbx_runner_streamed_stop(sbx_runner_streamed *s);

/* Whether the program has told in both outputs that the command has ended. */
bool sbx_runner_streamed_told(const sbx_runner_streamed *s);
/* The first line; its exit code counts when it was found. */
const sbx_runner_trailer *sbx_runner_streamed_line(const sbx_runner_streamed *s);
/* Whether the program has started nothing, and why. */
bool sbx_runner_streamed_unstarted(const sbx_runner_streamed *s, const char *provider,
                                   sbx_err *err);
/* The end of its tree was tried; NULL, or the failure that this completes. */
const sbx_err *sbx_runner_streamed_tree(sbx_runner_streamed *s, bool gone);
/* The command was ended by SIGKILL. */
void sbx_runner_streamed_killed(sbx_runner_streamed *s);

#endif
