/* files.c - one file that is written or read over HTTP.
 *
 * Invariant: a put ends with success when the service has said so, a get when every byte is in its
 * buffer; everything else is an error that names the path. */
#include "providers/remote/files.h"

#include "core/alloc.h"
#include "core/err.h"

#include <stdio.h>

/* ---- the op --------------------------------------------------------------------------------- */

static void release(sbx_steps *steps) {
  sbx_remote_file *file = sbx_remote_files_of(steps);
  sbx_buf_deinit(&file->path);
  sbx_buf_deinit(&file->bytes);
}

typedef struct sbx_remote_reader reader;

/* A reading by a command. It outlives the op when that ends early: until the command's is done. */
struct sbx_remote_reader {
  sbx_remote_file *file; /* NULL: it has ended */
  sbx_op *command;
  sbx_output *printed;
  sbx_exec_status status;
  sbx_err failed; /* to take the bytes */
};

static void let_go(sbx_steps *steps) {
  sbx_remote_file *file = sbx_remote_files_of(steps);
  sbx_op_drop(&file->beside, SBX_ECANCELED);
  if (file->reader == NULL)
    return;
  file->reader->file = NULL;
  sbx_op_abort(file->reader->command, SBX_ECANCELED);
}

static sbx_remote_file *file_new(sbx_session *session, sbx_loop *loop,
                                 const sbx_remote_service *service, const char *verb,
                                 sbx_slice path, sbx_slice bytes, sbx_op_done done, void *arg) {
  sbx_remote_file *file = sbx_steps_new(sizeof *file, session, loop, done, arg);
  if (file == NULL)
    return NULL;
  file->steps.release = release;
  file->steps.let_go = let_go;
  file->service = service;
  file->verb = verb;
  sbx_buf_init(&file->path, SBX_REMOTE_PATH_MAX);
  sbx_buf_init(&file->bytes, SIZE_MAX / 2);
  if (bytes.len > 0 && sbx_buf_append_slice(&file->bytes, bytes) != SBX_OK)
    sbx_steps_finish_code(&file->steps, file->bytes.error);
  if (sbx_buf_append_slice(&file->path, path) == SBX_ETOOBIG) {
    sbx_err err;
    sbx_err_set(&err, SBX_EINVAL, "%s: %s: the path is too long", service->provider, verb);
    sbx_steps_finish(&file->steps, &err);
  } else if (file->path.error != SBX_OK) {
    sbx_steps_finish_code(&file->steps, file->path.error);
  }
  return file;
}

sbx_remote_file *sbx_remote_files_put(sbx_session *session, sbx_loop *loop,
                                      const sbx_remote_service *service, sbx_slice path,
                                      sbx_slice bytes, sbx_op_done done, void *arg) {
  return file_new(session, loop, service, "write a file", path, bytes, done, arg);
}

sbx_remote_file *sbx_remote_files_get(sbx_session *session, sbx_loop *loop,
                                      const sbx_remote_service *service, sbx_slice path,
                                      sbx_buf *out, sbx_op_done done, void *arg) {
  sbx_remote_file *file =
      file_new(session, loop, service, "read a file", path, sbx_slice_of(NULL, 0), done, arg);
  if (file != NULL)
    file->out = out;
  return file;
}

void sbx_remote_files_fail(sbx_remote_file *file, sbx_err *err) {
  if (err->code != SBX_ENOMEM) {
    sbx_err_append(err, "; the path was ");
    sbx_err_append_remote(err, sbx_buf_slice(&file->path));
  }
  sbx_steps_finish(&file->steps, err);
}

/* ---- put ------------------------------------------------------------------------------------ */

sbx_http_part sbx_remote_files_part(const sbx_remote_file *file, const char *name) {
  return (sbx_http_part){
      .name = sbx_slice_str(name),
      .filename = sbx_slice_str("file"),
      .content_type = sbx_slice_str("application/octet-stream"),
      .content = sbx_buf_slice(&file->bytes),
      .borrowed = true,
  };
}

void sbx_remote_files_on_put(sbx_steps *steps, sbx_http *reply) {
  sbx_remote_file *file = sbx_remote_files_of(steps);
  sbx_err err;
  if (sbx_remote_exchange_check(&err, file->service, reply, file->verb) == SBX_OK)
    sbx_steps_finish(steps, NULL);
  else
    sbx_remote_files_fail(file, &err);
}

/* ---- get ------------------------------------------------------------------------------------ */

static int take_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  sbx_remote_file *file = arg;
  int rc = sbx_buf_append_slice(file->out, bytes);
  if (rc == SBX_ETOOBIG)
    return sbx_err_set(err, rc, "the file has more than %zu bytes", file->out->max);
  return rc == SBX_OK ? SBX_OK : sbx_err_set(err, rc, NULL);
}

/* Makes room at once for what the head promises: only a hint. What it says too much, or what memory
 * is missing, shows with the bytes. */
static int take_head(void *arg, int status, const sbx_headers *headers, sbx_err *err) {
  sbx_remote_file *file = arg;
  sbx_slice length;
  size_t size = 0;
  (void)err;
  if (status != 200 || !sbx_headers_get(headers, "content-length", &length))
    return SBX_OK;
  for (size_t i = 0; i < length.len && sbx_is_digit(length.ptr[i]) && size < file->out->max; i++)
    size = size * 10 + (size_t)(length.ptr[i] - '0');
  if (size > 0 && size <= file->out->max && sbx_buf_reserve(file->out, size) != SBX_OK)
    file->out->error = SBX_OK;
  return SBX_OK;
}

sbx_http_request sbx_remote_files_download(sbx_remote_file *file) {
  return (sbx_http_request){
      .method = "GET",
      .repeatable = true,
      .timeout_ms = SBX_NO_TIMEOUT,
      .on_head = take_head,
      .on_bytes = take_bytes,
      .consumer = file,
  };
}

void sbx_remote_files_on_got(sbx_steps *steps, sbx_http *reply) {
  sbx_remote_file *file = sbx_remote_files_of(steps);
  sbx_err err;
  /* Not looked at further: a file may well be a web page. */
  if (reply->op.err.code == SBX_OK && reply->status == 200) {
    sbx_steps_finish(steps, NULL);
    return;
  }
  if (sbx_remote_exchange_check(&err, file->service, reply, file->verb) == SBX_OK) {
    sbx_err_set(&err, SBX_EPROTO, "%s: %s: unexpected answer: HTTP %d", file->service->provider,
                file->verb, reply->status);
    err.status = reply->status;
  }
  sbx_remote_files_fail(file, &err);
}

/* ---- get, by a command ---------------------------------------------------------------------- */

/* $1 the file, $2 the most bytes. Its exit codes are none that head has. */
static const char program[] = "[ -d \"$1\" ] && exit 101\n"
                              "[ -e \"$1\" ] || exit 102\n"
                              "[ -f \"$1\" ] || exit 103\n"
                              "[ -r \"$1\" ] || exit 104\n"
                              "exec head -c \"$2\" < \"$1\"\n";

static void on_printed(void *arg, sbx_stream stream, sbx_slice bytes) {
  reader *r = arg;
  if (stream == SBX_STDOUT && r->file != NULL && r->failed.code == SBX_OK)
    take_bytes(r->file, bytes, &r->failed);
}

static int explain_exit(const reader *r, sbx_err *err) {
  const char *provider = r->file->service->provider, *verb = r->file->verb;
  sbx_kept joined, out, printed;
  switch (r->status.outcome == SBX_EXITED ? r->status.exit_code : -1) {
  case 0:
    return SBX_OK;
  case 101:
    return sbx_err_set(err, SBX_EINVAL, "%s: %s: it is a directory", provider, verb);
  case 102:
    return sbx_err_set(err, SBX_ENOTFOUND, "%s: %s: there is no such file", provider, verb);
  case 103:
    return sbx_err_set(err, SBX_EINVAL,
                       "%s: %s: it is no regular file, but a pipe, a device or a socket", provider,
                       verb);
  case 104:
    return sbx_err_set(err, SBX_EFORBIDDEN, "%s: %s: permission denied", provider, verb);
  default:
    sbx_output_view(r->printed, &joined, &out, &printed);
    sbx_err_set(err, SBX_EPROVIDER, "%s: %s: the command that reads it has failed: ", provider,
                verb);
    sbx_err_append_remote(err, printed.bytes);
    return SBX_EPROVIDER;
  }
}

static void free_reader(reader *r) {
  sbx_output_free(r->printed);
  sbx_free(r);
}

static void on_read(sbx_op *command, void *arg) {
  reader *r = arg;
  sbx_remote_file *file = r->file;
  sbx_err err = command->err;
  if (file != NULL) {
    file->reader = NULL;
    if (err.code == SBX_OK)
      err = r->failed;
    if (err.code == SBX_OK && explain_exit(r, &err) == SBX_OK)
      sbx_steps_finish(&file->steps, NULL);
    else
      sbx_remote_files_fail(file, &err);
  }
  free_reader(r);
}

/* What is left of the time of the op. */
static uint64_t time_left(const sbx_op *op) {
  uint64_t now = sbx_now_ms();
  if (!op->deadline.armed)
    return SBX_NO_TIMEOUT;
  return op->deadline.due_ms > now ? op->deadline.due_ms - now : 1;
}

static int start_reading(reader *r, sbx_remote_exec exec) {
  sbx_remote_file *file = r->file;
  char most[32];
  snprintf(most, sizeof most, "%zu", file->out->max + 1);
  const sbx_slice argv[] = {sbx_slice_str("/bin/sh"),   sbx_slice_str("-c"),
                            sbx_slice_str(program),     sbx_slice_str("sh"),
                            sbx_buf_slice(&file->path), sbx_slice_str(most)};
  const sbx_exec_spec spec = {
      .kind = SBX_EXEC_ARGV,
      .argv = argv,
      .argc = sizeof argv / sizeof *argv,
      .timeout_ms = time_left(&file->steps.op),
      .max_output_bytes = SBX_ERR_REMOTE_MAX,
  };
  r->printed = sbx_output_new(spec.max_output_bytes, SBX_KEEP_HEAD, false, on_printed, r);
  if (r->printed != NULL)
    r->command = exec(file->steps.session, &spec, r->printed, &r->status, on_read, r);
  return r->command != NULL ? SBX_OK : SBX_ENOMEM;
}

void sbx_remote_files_read(sbx_remote_file *file, sbx_remote_exec exec) {
  if (file->steps.op.finished)
    return;
  reader *r = sbx_calloc(1, sizeof *r);
  file->out->len = 0;
  if (r != NULL)
    r->file = file;
  if (r != NULL && start_reading(r, exec) == SBX_OK) {
    file->reader = r;
    return;
  }
  if (r != NULL)
    free_reader(r);
  sbx_steps_finish_code(&file->steps, SBX_ENOMEM);
}
