/* line.h - writes the lines that run the runner's programs. Sans-I/O.
 *
 * Invariant: text of the user is never part of a program. It comes in base64, or quoted where it is
 * a name. */
#ifndef SBX_RUNNER_LINE_H
#define SBX_RUNNER_LINE_H

#include "providers/provider.h"
#include "providers/remote/runner/text.h"

/* A line on its way into a buffer. It must not have other text behind it. */
typedef struct sbx_runner_line {
  sbx_buf *buf; /* has the error */
  bool json;    /* it stands inside a JSON string */
} sbx_runner_line;

/* How much of each output comes with a report: all of it up to `head` + `tail` bytes, else only
 * these parts. */
typedef struct sbx_runner_share {
  size_t head;
  size_t tail;
} sbx_runner_share;

/* What may be too large for a line, and is stored in the sandbox before it then. */
enum { SBX_RUNNER_TEXT, SBX_RUNNER_INPUT, SBX_RUNNER_VARIABLES, SBX_RUNNER_PARTS };

typedef struct sbx_runner_command {
  const char *tag; /* names its folder in the sandbox */
  const sbx_exec_spec *spec;
  sbx_slice dir; /* "~" is the home; empty: where the line is run */
  sbx_runner_share share;
  bool keep;        /* what does not fit into the report stays there to be fetched */
  const char *left; /* tags of the commands whose folders may go, each behind a blank */
  bool stored[SBX_RUNNER_PARTS];
  sbx_slice parts[SBX_RUNNER_PARTS]; /* of `spec`, or of `made` */
  sbx_buf made[2];
} sbx_runner_command;

/* Fills in the parts; `env`: the line carries the variables, too. SBX_ENOMEM, SBX_ETOOBIG; to be
 * freed in any case. */
int sbx_runner_command_init(sbx_runner_command *command, const sbx_exec_spec *spec, bool env);
void sbx_runner_command_deinit(sbx_runner_command *command);

/* The line of a command. */
void sbx_runner_line_run(const sbx_runner_line *line, const sbx_runner_command *command);
/* The line of another program. What they do, and what the words mean, stands at the top of their
 * files. `text` (a NULL pointer: none) comes in base64, then `words`, ours, each behind a blank. */
void sbx_runner_line_ask(const sbx_runner_line *line, sbx_runner_program program, const char *tag,
                         sbx_slice text, const char *words);

#endif
