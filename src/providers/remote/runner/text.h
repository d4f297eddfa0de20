/* text.h - the runner's programs, shell texts made from the .sh files of this folder. */
#ifndef SBX_RUNNER_TEXT_H
#define SBX_RUNNER_TEXT_H

#include "core/buf.h"

typedef enum sbx_runner_program {
  SBX_RUNNER_WRAP_SHELL, /* runs a command, for wires that stream its outputs */
  SBX_RUNNER_WRAP_CODE,
  SBX_RUNNER_BOUND_SHELL, /* the same for wires that keep no limit */
  SBX_RUNNER_BOUND_CODE,
  SBX_RUNNER_KILL,   /* ends a process tree; its exit code says whether nothing is left */
  SBX_RUNNER_KERNEL, /* the same for a kernel of Jupyter */
  SBX_RUNNER_RUN_SHELL,
  SBX_RUNNER_RUN_CODE,
  SBX_RUNNER_ASK,
  SBX_RUNNER_FETCH,
  SBX_RUNNER_FORGET,
  SBX_RUNNER_STOP,
  SBX_RUNNER_STORE,
  SBX_RUNNER_LIST,
  SBX_RUNNER_GET,
  SBX_RUNNER_PUT,
  SBX_RUNNER_AT,   /* what is at a path, and changes of names */
  SBX_RUNNER_PART, /* files in parts */
  SBX_RUNNER_LOAD, /* reads a file, for wires with streams of their own */
  SBX_RUNNER_SAVE, /* writes one */
  SBX_RUNNER_LIVE, /* the first process of a container: ends with its lifetime */
} sbx_runner_program;

/* As it is given to `sh -c`. What each takes as its arguments stands at the top of its file. Text
 * of a user is never put into it. Static, and ends in NUL. */
sbx_slice sbx_runner_text(sbx_runner_program program);
/* The same as it stands between the quotes of a JSON string. Only of those that stand there alone:
 * SBX_RUNNER_WRAP_SHELL and _CODE, _BOUND_SHELL and _CODE, _KILL, _KERNEL, _SAVE and _LOAD. The
 * rest would be bytes for nothing. */
sbx_slice sbx_runner_json(sbx_runner_program program);
/* The same as it stands between single quotes inside a JSON string: '"exec /bin/sh -c '" + this. */
sbx_slice sbx_runner_quoted(sbx_runner_program program);

#endif
