/* files.c - put and get through the streams of a process, as the user of the commands.
 *
 * Invariant: a put ends with success when the program has counted every byte, a get when it has
 * said that the file is whole; everything else is an error that names the path. */
#include "providers/remote/process/process.h"

#include "core/err.h"

#include <stdio.h>

enum { MAX_WORD = 64 };

typedef struct file_op {
  sbx_steps steps;
  const sbx_processes *wire;
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

static file_op *file_new(const sbx_processes *wire, sbx_session *session, sbx_loop *loop,
                         const char *verb, sbx_slice path, sbx_op_done done, void *arg) {
  file_op *f = sbx_steps_new(sizeof *f, session, loop, done, arg);
  if (f == NULL)
    return NULL;
  f->steps.release = release;
  f->wire = wire;
  f->verb = verb;
  sbx_buf_init(&f->path, SIZE_MAX / 2);
  sbx_buf_init(&f->bytes, SIZE_MAX / 2);
  sbx_buf_init(&f->word, MAX_WORD);
  if (sbx_buf_append_slice(&f->path, path) != SBX_OK)
    sbx_steps_finish_code(&f->steps, f->path.error);
  return f;
}

static void too_large(const file_op *f, sbx_err *err) {
  sbx_err_set(err, SBX_ETOOBIG, "%s: %s: the file has more than %zu bytes", f->wire->provider,
              f->verb, f->out->max);
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

static void tell(file_op *f, const sbx_process_end *end) {
  const sbx_processes *wire = f->wire;
  sbx_err err;
  if (says(f, "absent"))
    sbx_err_set(&err, SBX_ENOTFOUND, "%s: %s: there is no such file", wire->provider, f->verb);
  else if (says(f, "nodir"))
    sbx_err_set(&err, SBX_EINVAL,
                "%s: %s: it is no regular file, or it, or a directory on the way, may not be %s by "
                "the user of the commands",
                wire->provider, f->verb, f->out != NULL ? "read" : "written");
  else if (f->out != NULL && says(f, "large"))
    too_large(f, &err);
  else if (says(f, "unstored"))
    sbx_err_set(&err, SBX_EQUOTA, "%s: %s: there is no room; %s", wire->provider, f->verb,
                wire->no_room);
  else if (!wire->has_no_shell(f->steps.session, end, &err))
    sbx_err_set(&err, SBX_EPROVIDER, "%s: %s: it was interrupted", wire->provider, f->verb);
  err.provider = wire->provider;
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
    tell(f, f->wire->ended(op));
}

/* ---- put ------------------------------------------------------------------------------------ */

static void on_put_output(void *arg, sbx_stream stream, sbx_slice bytes) {
  if (stream == SBX_STDOUT)
    sbx_buf_append_slice(&((file_op *)arg)->word, bytes);
}

static void start(file_op *f, sbx_runner_program program, uint64_t number, sbx_slice input,
                  void (*on_output)(void *arg, sbx_stream stream, sbx_slice bytes)) {
  const sbx_processes *wire = f->wire;
  sbx_session *session = f->steps.session;
  sbx_process_request request;
  char text[32];
  if (f->steps.op.finished)
    return;
  snprintf(text, sizeof text, "%llu", (unsigned long long)number);
  wire->begin(&request, session, sbx__process_text(wire, program), input.ptr != NULL);
  wire->word(&request, sbx_buf_slice(&f->path));
  wire->word(&request, sbx_slice_str(text));
  wire->end(&request, NULL, NULL);
  const sbx_process_spec spec = {
      .request = &request, .input = input, .on_output = on_output, .is_told = is_whole};
  sbx_steps_wait_for(&f->steps, wire->start(session, &spec, on_file, f));
  sbx_buf_deinit(&request.buf);
}

static void save(file_op *f, sbx_slice bytes) {
  sbx_slice input = bytes.len > 0 ? bytes : sbx_slice_of(NULL, 0);
  start(f, SBX_RUNNER_SAVE, bytes.len, input, on_put_output);
}

sbx_op *sbx_process_save(const sbx_processes *wire, sbx_session *session, sbx_loop *loop,
                         sbx_slice path, sbx_slice bytes, sbx_op_done done, void *arg) {
  file_op *f = file_new(wire, session, loop, "write a file", path, done, arg);
  if (f == NULL)
    return NULL;
  save(f, bytes);
  return &f->steps.op;
}

sbx_op *sbx_process_put(const sbx_processes *wire, sbx_session *session, sbx_loop *loop,
                        sbx_slice path, sbx_slice bytes, sbx_op_done done, void *arg) {
  file_op *f = file_new(wire, session, loop, "write a file", path, done, arg);
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
    f->wire->leave(f->steps.request);
}

static void load(file_op *f) {
  start(f, SBX_RUNNER_LOAD, f->out->max, sbx_slice_of(NULL, 0), on_get_output);
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

sbx_op *sbx_process_get(const sbx_processes *wire, sbx_session *session, sbx_loop *loop,
                        sbx_slice path, sbx_buf *out,
                        sbx_op *(*fetch)(sbx_session *session, sbx_slice path, sbx_buf *out,
                                         sbx_op_done done, void *arg),
                        sbx_op_done done, void *arg) {
  file_op *f = file_new(wire, session, loop, "read a file", path, done, arg);
  if (f == NULL || f->steps.op.finished)
    return f != NULL ? &f->steps.op : NULL;
  f->out = out;
  if (fetch != NULL)
    sbx_steps_wait_for(&f->steps, fetch(session, path, out, on_fetched, f));
  else
    load(f);
  return &f->steps.op;
}
