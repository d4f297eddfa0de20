/* files.c - one file that is written or read over HTTP.
 *
 * Invariant: a put ends with success when the service has said so, a get when every byte is in its
 * buffer; everything else is an error that names the path. */
#include "providers/remote/files.h"

#include "core/err.h"

/* ---- the op --------------------------------------------------------------------------------- */

static void release(sbx_steps *steps) {
  sbx_remote_file *file = sbx_remote_files_of(steps);
  sbx_buf_deinit(&file->path);
  sbx_buf_deinit(&file->bytes);
}

static void let_go(sbx_steps *steps) {
  sbx_op_drop(&sbx_remote_files_of(steps)->beside, SBX_ECANCELED);
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
