/* files.c - one file that is written or read over HTTP.
 *
 * Invariant: a put ends with success when the service has said so, a get when every byte is in its
 * buffer; everything else is an error that names the path. */
#include "providers/remote/files.h"

#include "core/err.h"

enum { SILENT_MS = 1500, PAGE = 4096 };

/* ---- the op --------------------------------------------------------------------------------- */

static void release(sbx_steps *steps) {
  sbx_remote_file *file = sbx_remote_files_of(steps);
  sbx_buf_deinit(&file->path);
  sbx_buf_deinit(&file->said);
  sbx_buf_deinit(&file->bytes);
}

static void let_go(sbx_steps *steps) {
  sbx_op_drop(&sbx_remote_files_of(steps)->beside, SBX_ECANCELED);
}

static sbx_remote_file *file_new(sbx_session *session, sbx_loop *loop,
                                 const sbx_remote_files *files, const char *verb, sbx_slice path,
                                 sbx_slice bytes, sbx_op_done done, void *arg) {
  sbx_remote_file *file = sbx_steps_new(sizeof *file, session, loop, done, arg);
  if (file == NULL)
    return NULL;
  file->steps.release = release;
  file->steps.let_go = let_go;
  file->loop = loop;
  file->files = files;
  file->verb = verb;
  sbx_buf_init(&file->path, SBX_REMOTE_PATH_MAX);
  sbx_buf_init(&file->bytes, SIZE_MAX / 2);
  if (bytes.len > 0 && sbx_buf_append_slice(&file->bytes, bytes) != SBX_OK)
    sbx_steps_finish_code(&file->steps, file->bytes.error);
  if (sbx_buf_append_slice(&file->path, path) == SBX_ETOOBIG) {
    sbx_err err;
    sbx_err_set(&err, SBX_EINVAL, "%s: %s: the path is too long", files->provider, verb);
    sbx_steps_finish(&file->steps, &err);
  } else if (file->path.error != SBX_OK) {
    sbx_steps_finish_code(&file->steps, file->path.error);
  }
  return file;
}

sbx_remote_file *sbx_remote_files_put(sbx_session *session, sbx_loop *loop,
                                      const sbx_remote_files *files, sbx_slice path,
                                      sbx_slice bytes, sbx_op_done done, void *arg) {
  return file_new(session, loop, files, "write a file", path, bytes, done, arg);
}

sbx_remote_file *sbx_remote_files_get(sbx_session *session, sbx_loop *loop,
                                      const sbx_remote_files *files, sbx_slice path, sbx_buf *out,
                                      sbx_op_done done, void *arg) {
  sbx_remote_file *file =
      file_new(session, loop, files, "read a file", path, sbx_slice_of(NULL, 0), done, arg);
  if (file != NULL)
    file->out = out;
  return file;
}

void sbx_remote_files_fail(sbx_remote_file *file, sbx_err *err) {
  if (err->code != SBX_ENOMEM) {
    sbx_err_append(err, "; the path was ");
    sbx_err_append_remote(err, sbx_buf_slice(file->said.len > 0 ? &file->said : &file->path));
  }
  sbx_steps_finish(&file->steps, err);
}

/* ---- what is silent ------------------------------------------------------------------------- */

typedef struct look_op {
  sbx_steps steps;
  sbx_remote_file *file; /* it ends this op with itself */
  sbx_buf nothing;       /* has no room: no more than a try is wanted */
} look_op;

/* Go's letters of a pipe, a device or a socket stand before the nine of the rights. */
static bool is_special(sbx_slice mode) {
  for (size_t i = 0; i + 9 < mode.len; i++) {
    if (mode.ptr[i] == 'p' || mode.ptr[i] == 'D' || mode.ptr[i] == 'S')
      return true;
  }
  return false;
}

/* `special`: else it is only slow. */
static void end_look(sbx_steps *steps, bool special) {
  sbx_remote_file *file = ((look_op *)(void *)steps)->file;
  sbx_err err;
  sbx_steps_finish(steps, NULL);
  if (!special)
    return;
  sbx_err_set(&err, SBX_EINVAL, "%s: %s: it is no regular file, but a pipe, a device or a socket",
              file->files->provider, file->verb);
  err.provider = file->files->provider;
  sbx_remote_files_fail(file, &err);
}

static void on_look(sbx_steps *steps, sbx_http *reply) {
  const sbx_remote_file *file = ((look_op *)(void *)steps)->file;
  sbx_json_doc *doc = NULL;
  sbx_slice mode;
  bool special = reply->op.err.code == SBX_OK && reply->status == 200 &&
                 sbx_json_parse(&doc, sbx_buf_slice(&reply->body), NULL) == SBX_OK &&
                 file->files->mode(sbx_json_root(doc), &mode) && is_special(mode);
  sbx_json_free(doc, false);
  end_look(steps, special);
}

static void on_tried(sbx_op *op, void *arg) {
  sbx_steps *steps = arg;
  bool special = op->err.code == SBX_EINVAL;
  steps->request = NULL;
  end_look(steps, special);
}

static void look(sbx_steps *steps) {
  look_op *l = (look_op *)(void *)steps;
  const sbx_remote_files *files = l->file->files;
  sbx_slice path = sbx_buf_slice(&l->file->path);
  if (files->look != NULL)
    files->look(steps, path, on_look);
  else
    sbx_steps_wait_for(steps, files->read(steps->session, path, &l->nothing, on_tried, steps));
}

static void on_looked(sbx_op *op, void *arg) {
  (void)op;
  ((sbx_remote_file *)arg)->beside = NULL;
}

/* Without memory for it, the op's own limit ends what is silent. */
void sbx_remote_files_watch(sbx_remote_file *file) {
  if (file->steps.op.finished)
    return;
  look_op *beside = sbx_steps_new(sizeof *beside, file->steps.session, file->loop, on_looked, file);
  if (beside == NULL)
    return;
  file->beside = &beside->steps.op;
  beside->file = file;
  sbx_steps_wait(&beside->steps, SILENT_MS, look);
}

/* ---- by a command --------------------------------------------------------------------------- */

/* Its words name the path already. */
static void on_command(sbx_op *op, void *arg) {
  sbx_remote_file *file = arg;
  sbx_err err = op->err;
  file->steps.request = NULL;
  sbx_steps_finish(&file->steps, &err);
}

void sbx_remote_files_read(sbx_remote_file *file) {
  sbx_op_drop(&file->beside, SBX_ECANCELED);
  sbx_buf_truncate(file->out, 0);
  sbx_steps_wait_for(&file->steps,
                     file->files->read(file->steps.session, sbx_buf_slice(&file->path), file->out,
                                       on_command, file));
}

void sbx_remote_files_write(sbx_remote_file *file) {
  sbx_op_drop(&file->beside, SBX_ECANCELED);
  sbx_steps_wait_for(&file->steps,
                     file->files->write(file->steps.session, sbx_buf_slice(&file->path),
                                        sbx_buf_slice(&file->bytes), on_command, file));
}

/* ---- put ------------------------------------------------------------------------------------ */

sbx_http_part sbx_remote_files_part(const char *name, sbx_slice bytes) {
  return (sbx_http_part){
      .name = sbx_slice_str(name),
      .filename = sbx_slice_str("file"),
      .content_type = sbx_slice_str("application/octet-stream"),
      .content = bytes,
      .borrowed = true,
  };
}

void sbx_remote_files_on_put(sbx_steps *steps, sbx_http *reply) {
  sbx_remote_file *file = sbx_remote_files_of(steps);
  sbx_err err;
  if (file->files->check(&err, steps->session, reply, file->verb) == SBX_OK)
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

bool sbx_remote_files_is_of_kernel(const sbx_remote_file *file) {
  sbx_slice path = sbx_buf_slice(&file->path);
  return sbx_slice_starts_with(path, sbx_slice_str("/proc/")) ||
         sbx_slice_starts_with(path, sbx_slice_str("/sys/"));
}

void sbx_remote_files_on_got(sbx_steps *steps, sbx_http *reply) {
  sbx_remote_file *file = sbx_remote_files_of(steps);
  bool empty = reply->op.err.code == SBX_OK && file->out->len == 0;
  bool less = reply->op.err.code == SBX_ENET && file->out->len < PAGE;
  sbx_err err;
  /* A link may lead to a file of the kernel. */
  if (reply->status == 200 && (empty || less)) {
    sbx_remote_files_read(file);
    return;
  }
  /* Not looked at further: a file may well be a web page. */
  if (reply->op.err.code == SBX_OK && reply->status == 200) {
    sbx_steps_finish(steps, NULL);
    return;
  }
  if (file->files->check(&err, steps->session, reply, file->verb) == SBX_OK) {
    sbx_err_set(&err, SBX_EPROTO, "%s: %s: unexpected answer: HTTP %d", file->files->provider,
                file->verb, reply->status);
    err.status = reply->status;
  }
  sbx_remote_files_fail(file, &err);
}
