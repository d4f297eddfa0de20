/* process.h - one process in a container: exec create, exec start, its streams, its end. */
#ifndef SBX_DOCKER_PROCESS_H
#define SBX_DOCKER_PROCESS_H

#include "core/json.h"
#include "providers/docker/session.h"
#include "providers/remote/runner/text.h"

/* What became of a process; valid until its op's `done` has returned, also when the op failed. */
typedef struct sbx__docker_end {
  bool may_have_run;
  bool exited; /* `exit_code` is known */
  int exit_code;
  sbx_slice words; /* the first that it, or the engine in its place, has printed */
} sbx__docker_end;

typedef struct sbx__docker_process_spec {
  sbx_buf *request; /* begun by sbx__docker_process_begin(); its bytes are taken */
  sbx_slice input;  /* borrowed; without a pointer: there is none */
  bool end_input;   /* its end is told; only where sbx__docker_tells_end() */
  /* May leave or abort the process. May be NULL. */
  void (*on_output)(void *arg, sbx_stream stream, sbx_slice bytes);
  /* Asked at the end of the streams: whether they have told enough, so that the engine need not be
   * asked for the exit code. NULL: never. */
  bool (*is_told)(void *arg);
} sbx__docker_process_spec;

/* Begins the request of a process of `program`, as it stands inside a JSON string, up to its
 * arguments. `user` NULL: the one of the options, or else the container's. */
void sbx__docker_process_begin(sbx_json_out *json, sbx_buf *request, const sbx_session *session,
                               sbx_slice program, const char *user, bool input);
/* Ends a request without variables. */
void sbx__docker_process_end_request(sbx_json_out *json);

/* Whether the end of an input can be told on this engine's connections. */
bool sbx__docker_tells_end(const sbx_session *session);

/* Starts it and follows it to its end. `arg` is also that of the functions. The op fails when the
 * end is not known. */
sbx_op *sbx__docker_process(sbx_session *session, const sbx__docker_process_spec *spec,
                            sbx_op_done done, void *arg);
const sbx__docker_end *sbx__docker_process_end(const sbx_op *process);
/* Stops following; the op ends with success. */
void sbx__docker_process_leave(sbx_op *process);
/* The container has no /bin/sh to run our programs with: fills `err` and returns true when that is
 * how the process ended. */
bool sbx__docker_has_no_shell(const sbx_session *session, const sbx__docker_end *end, sbx_err *err);

#endif
