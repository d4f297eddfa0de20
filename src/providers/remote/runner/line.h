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

/* Where a text is. */
typedef enum sbx_runner_source {
  SBX_RUNNER_IN_LINE,
  SBX_RUNNER_STORED, /* by sbx_runner_line_store() before */
} sbx_runner_source;

typedef struct sbx_runner_command {
  const char *tag; /* names its folder in the sandbox */
  const sbx_exec_spec *spec;
  sbx_slice dir; /* "~" is the home; empty: where the line is run */
  sbx_runner_share share;
  bool keep; /* what does not fit into the report stays there to be fetched */
  bool env;  /* the line carries the variables */
  sbx_runner_source text;
  sbx_runner_source input;
  sbx_runner_source variables;
  const char (*left)[33]; /* tags of the commands whose folders may go */
  size_t left_count;
} sbx_runner_command;

/* What the programs do stands at the top of their files. */
void sbx_runner_line_run(const sbx_runner_line *line, const sbx_runner_command *command);
/* Fetches output from the two offsets on, up to `most` bytes of each; waits a moment when there is
 * none, unless the command is `over`. */
void sbx_runner_line_fetch(const sbx_runner_line *line, const char *tag, const uint64_t at[2],
                           size_t most, bool over);
void sbx_runner_line_ask(const sbx_runner_line *line, const char *tag, sbx_runner_share share);
void sbx_runner_line_forget(const sbx_runner_line *line, const char *tag, const char (*left)[33],
                            size_t left_count);
void sbx_runner_line_stop(const sbx_runner_line *line, const char *tag);
void sbx_runner_line_store(const sbx_runner_line *line, const char *tag, const char *name,
                           size_t at, sbx_slice piece);
/* The report's stdout is, of each file, its size, a blank, its path and NUL; at most `most` bytes.
 */
void sbx_runner_line_list(const sbx_runner_line *line, const char *tag, sbx_slice dir, size_t most);
/* The report's stdout is the file, when that has at most `most` bytes. */
void sbx_runner_line_get(const sbx_runner_line *line, const char *tag, sbx_slice path, size_t most);
/* Moves what was stored as "input" to where it belongs. */
void sbx_runner_line_put(const sbx_runner_line *line, const char *tag, sbx_slice path);

/* The text that the command's shell, or its interpreter, gets: words are a text of quoted ones. */
int sbx_runner_line_words(sbx_buf *out, const sbx_exec_spec *spec);
/* Variables as lines for sh. */
int sbx_runner_line_variables(sbx_buf *out, const sbx_exec_spec *spec);
/* Strict quoting for sh: the only one there is. */
void sbx_runner_quote(sbx_buf *out, sbx_slice text);

#endif
