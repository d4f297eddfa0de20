/* files.c - put, get and list.
 *
 * Files go through the streams of a process, as the user of the commands, but for those that can be
 * read by the engine's archive calls; see reads_archives().
 *
 * Invariant: a put ends with success when the program has counted every byte, a get when it has
 * said that the file is whole; everything else is an error that names the path. */
#include "providers/docker/files.h"

#include "core/err.h"
#include "providers/docker/archive.h"
#include "providers/docker/docker.h"
#include "providers/docker/line.h"
#include "providers/docker/process.h"

#include <stdio.h>

enum { MAX_WORD = 64 };

typedef struct file_op {
  sbx_steps steps;
  const char *verb;
  sbx_buf path;
  sbx_buf bytes; /* put: a copy */
  sbx_buf *out;  /* get */
  sbx_buf word;  /* the program's */
} file_op;

static file_op *file_of(sbx_steps *steps) {
  return (file_op *)(void *)steps;
}

static void release(sbx_steps *steps) {
  file_op *f = file_of(steps);
  sbx_buf_deinit(&f->path);
  sbx_buf_deinit(&f->bytes);
  sbx_buf_deinit(&f->word);
}

static void fail(file_op *f, sbx_err *err) {
  if (err->code != SBX_ENOMEM) {
    sbx_err_append(err, "; the path was ");
    sbx_err_append_remote(err, sbx_buf_slice(&f->path));
  }
  sbx_steps_finish(&f->steps, err);
}

static file_op *file_new(sbx_session *session, const char *verb, sbx_slice path, sbx_op_done done,
                         void *arg) {
  file_op *f = sbx_steps_new(sizeof *f, session, session->config->loop, done, arg);
  if (f == NULL)
    return NULL;
  f->steps.release = release;
  f->verb = verb;
  sbx_buf_init(&f->path, SIZE_MAX / 2);
  sbx_buf_init(&f->bytes, SIZE_MAX / 2);
  sbx_buf_init(&f->word, MAX_WORD);
  if (sbx_buf_append_slice(&f->path, path) != SBX_OK)
    sbx_steps_finish_code(&f->steps, f->path.error);
  return f;
}

static void too_large(const file_op *f, sbx_err *err) {
  sbx_err_set(err, SBX_ETOOBIG, "docker: %s: the file has more than %zu bytes", f->verb,
              f->out->max);
}

/* ---- what the program says ------------------------------------------------------------------ */

static bool says(const file_op *f, const char *word) {
  sbx_slice said = sbx_buf_slice(&f->word);
  while (said.len > 0 && said.ptr[said.len - 1] == '\n')
    said.len--;
  return sbx_slice_eq_str(said, word);
}

static bool is_whole(void *arg) {
  return says(arg, "whole");
}

static void tell(file_op *f, const sbx__docker_end *end) {
  sbx_err err;
  if (says(f, "absent"))
    sbx_err_set(&err, SBX_ENOTFOUND, "docker: %s: there is no such file", f->verb);
  else if (says(f, "nodir"))
    sbx_err_set(&err, SBX_EINVAL,
                "docker: %s: it is no regular file, or it, or a directory on the way, may not be "
                "%s by the user of the commands",
                f->verb, f->out != NULL ? "read" : "written");
  else if (f->out != NULL && says(f, "large"))
    too_large(f, &err);
  else if (says(f, "unstored"))
    sbx_err_set(&err, SBX_EQUOTA,
                "docker: %s: there is no room; raise `diskMb`, or remove what is not needed",
                f->verb);
  else if (!sbx__docker_has_no_shell(f->steps.session, end, &err))
    sbx_err_set(&err, SBX_EPROVIDER, "docker: %s: it was interrupted", f->verb);
  err.provider = "docker";
  fail(f, &err);
}

static void on_file(sbx_op *op, void *arg) {
  file_op *f = arg;
  sbx_err err = op->err;
  f->steps.request = NULL;
  if (f->out != NULL && f->out->error == SBX_ETOOBIG)
    too_large(f, &err);
  else if (f->out != NULL && f->out->error != SBX_OK)
    sbx_err_set(&err, f->out->error, NULL);
  if (err.code != SBX_OK)
    fail(f, &err);
  else if (is_whole(f))
    sbx_steps_finish(&f->steps, NULL);
  else
    tell(f, sbx__docker_process_end(op));
}

/* ---- put ------------------------------------------------------------------------------------ */

static void on_put_output(void *arg, sbx_stream stream, sbx_slice bytes) {
  if (stream == SBX_STDOUT)
    sbx_buf_append_slice(&((file_op *)arg)->word, bytes);
}

static void begin_program(sbx_json_out *json, sbx_buf *request, const file_op *f,
                          sbx_runner_program program, uint64_t number, bool input) {
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)number);
  sbx__docker_process_begin(json, request, f->steps.session, sbx_runner_json(program), NULL, input);
  sbx_json_put_string(json, sbx_buf_slice(&f->path));
  sbx_json_put_string(json, sbx_slice_str(text));
  sbx__docker_process_end_request(json);
}

static void save(file_op *f, sbx_slice bytes) {
  sbx_json_out json;
  sbx_buf request;
  if (f->steps.op.finished)
    return;
  begin_program(&json, &request, f, SBX_RUNNER_SAVE, bytes.len, bytes.len > 0);
  const sbx__docker_process_spec spec = {.request = &request,
                                         .input = bytes.len > 0 ? bytes : sbx_slice_of(NULL, 0),
                                         .on_output = on_put_output,
                                         .is_told = is_whole};
  sbx_steps_wait_for(&f->steps, sbx__docker_process(f->steps.session, &spec, on_file, f));
  sbx_buf_deinit(&request);
}

sbx_op *sbx__docker_save(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                         void *arg) {
  file_op *f = file_new(session, "write a file", path, done, arg);
  if (f == NULL)
    return NULL;
  save(f, bytes);
  return &f->steps.op;
}

sbx_op *sbx__docker_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                        void *arg) {
  file_op *f = file_new(session, "write a file", path, done, arg);
  if (f == NULL)
    return NULL;
  if (sbx_buf_append_slice(&f->bytes, bytes) != SBX_OK)
    sbx_steps_finish_code(&f->steps, f->bytes.error);
  save(f, sbx_buf_slice(&f->bytes));
  return &f->steps.op;
}

/* ---- get ------------------------------------------------------------------------------------ */

/* What is too much is not waited for. */
static void on_get_output(void *arg, sbx_stream stream, sbx_slice bytes) {
  file_op *f = arg;
  int rc = sbx_buf_append_slice(stream == SBX_STDOUT ? f->out : &f->word, bytes);
  if (rc != SBX_OK && stream == SBX_STDOUT)
    sbx__docker_process_leave(f->steps.request);
}

static void load(file_op *f) {
  sbx_json_out json;
  sbx_buf request;
  begin_program(&json, &request, f, SBX_RUNNER_LOAD, f->out->max, false);
  const sbx__docker_process_spec spec = {
      .request = &request, .on_output = on_get_output, .is_told = is_whole};
  sbx_steps_wait_for(&f->steps, sbx__docker_process(f->steps.session, &spec, on_file, f));
  sbx_buf_deinit(&request);
}

static void on_fetched(sbx_op *op, void *arg) {
  file_op *f = arg;
  sbx_err err = op->err;
  f->steps.request = NULL;
  if (err.code == SBX_ETOOBIG)
    too_large(f, &err);
  if (err.code == SBX_OK)
    sbx_steps_finish(&f->steps, NULL);
  else if (err.code == SBX_ETOOBIG || err.code == SBX_ENOMEM)
    fail(f, &err);
  else
    load(f);
}

/* Whether files are read by the engine's archive calls where those give the same as a process:
 *
 * - Podman's cost half as much as a process does, and look at what the container sees. They do so
 *   as root; so not where a mount may hold what only root may read, nor in a container that is
 *   somebody else's, of whose file systems nothing is known.
 * - Docker's show another file system where the container's is in memory, which is all that may be
 *   written by default, and take as long as a process.
 *
 * Nothing is written by them, since that is not the same on any engine: a file that is there is
 * replaced, with its owner, its other names and who has it open; whether the user may write there
 * is not told; new directories are root's; what is broken off stays behind as root's, so that the
 * user can neither write nor remove it; and what is in memory does not count for `memoryMb`. */
static bool reads_archives(const sbx_session *session) {
  return session->is_podman && session->config->attach == NULL && !session->config->has_mounts;
}

sbx_op *sbx__docker_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                        void *arg) {
  file_op *f = file_new(session, "read a file", path, done, arg);
  if (f == NULL || f->steps.op.finished)
    return f != NULL ? &f->steps.op : NULL;
  f->out = out;
  if (reads_archives(session))
    sbx_steps_wait_for(&f->steps, sbx__docker_fetch(session, path, out, on_fetched, f));
  else
    load(f);
  return &f->steps.op;
}

/* ---- list ----------------------------------------------------------------------------------- */

sbx_op *sbx__docker_list(sbx_session *session, size_t max_entries, sbx_listing *out,
                         sbx_op_done done, void *arg) {
  return sbx_runner_list(sbx__docker_runner(session), session, sbx_slice_of(NULL, 0), max_entries,
                         out, done, arg);
}

/* ---- what is at a path ------------------------------------------------------------------------
 */

sbx_op *sbx__docker_at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                            sbx_op_done done, void *arg) {
  return sbx_runner_at_path(sbx__docker_runner(session), session, request, NULL, out, done, arg);
}
