/* files.c - put and get.
 *
 * A file is written as an archive of the root that has it alone, and read by its path. What the
 * service does not do, or does not explain, a command of ours does: files of the kernel, pipes, the
 * home, and whatever was refused. */
#include "providers/remote/files.h"
#include "providers/vercel/vercel.h"

#include "core/err.h"

enum { MODE = 0644 };

static int check(sbx_err *err, const sbx_session *session, const sbx_http *reply,
                 const char *verb) {
  (void)session;
  return sbx_remote_exchange_check(err, &sbx__vercel_inside, reply, verb);
}

static const sbx_remote_files session_files = {
    .provider = "vercel",
    .check = check,
    .read = sbx__vercel_read,
    .write = sbx__vercel_write,
};

static int make_absolute(sbx_remote_file *file) {
  sbx_buf path;
  sbx_buf_init(&path, SBX__VERCEL_URL_MAX);
  int rc = sbx__vercel_absolute(&path, file->steps.session, sbx_buf_slice(&file->path));
  file->said = file->path;
  file->path = path;
  return rc;
}

/* The service has something against the path; a command can say what. */
static bool is_about_path(const sbx_http *reply) {
  int status = reply->op.err.code == SBX_OK ? reply->status : 0;
  return status == 400 || status == 409 || status == 500 ||
         (status == 422 && !sbx_remote_exchange_says(sbx_buf_slice(&reply->body), "sandbox_"));
}

/* ---- put ------------------------------------------------------------------------------------ */

static void on_put(sbx_steps *steps, sbx_http *reply) {
  if (is_about_path(reply))
    sbx_remote_files_write(sbx_remote_files_of(steps));
  else
    sbx_remote_files_on_put(steps, reply);
}

sbx_op *sbx__vercel_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                        void *arg) {
  sbx_remote_file *file =
      sbx_remote_files_put(session, session->config->loop, &session_files, path, bytes, done, arg);
  if (file == NULL)
    return NULL;
  if (make_absolute(file) != SBX_OK) {
    sbx_steps_finish_code(&file->steps, file->path.error);
  } else if (sbx__vercel_is_at_home(path)) {
    sbx_remote_files_write(file);
  } else {
    sbx__vercel_upload(&file->steps, sbx_buf_slice(&file->path), MODE, sbx_buf_slice(&file->bytes),
                       on_put);
    sbx_remote_files_watch(file);
  }
  return &file->steps.op;
}

/* ---- get ------------------------------------------------------------------------------------ */

/* What is read is bytes; JSON in their place is some other answer. */
static bool is_bytes(const sbx_http *reply) {
  sbx_slice type;
  return sbx_headers_get(&reply->headers, "content-type", &type) &&
         sbx_remote_exchange_says(type, "application/octet-stream");
}

static void on_got(sbx_steps *steps, sbx_http *reply) {
  sbx_remote_file *file = sbx_remote_files_of(steps);
  int status = reply->op.err.code == SBX_OK ? reply->status : 0;
  sbx_err err;
  /* A session that is over has the same 404 as a file that is not there. */
  if (is_about_path(reply) || sbx_remote_exchange_is_gone(&sbx__vercel_api, reply)) {
    sbx_remote_files_read(file);
  } else if (status == 200 && !is_bytes(reply)) {
    sbx_err_set(&err, SBX_EPROTO, "vercel: %s: the answer is no file", file->verb);
    err.status = status;
    err.provider = "vercel";
    sbx_remote_files_fail(file, &err);
  } else {
    sbx_remote_files_on_got(steps, reply);
  }
}

sbx_op *sbx__vercel_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                        void *arg) {
  sbx_remote_file *file =
      sbx_remote_files_get(session, session->config->loop, &session_files, path, out, done, arg);
  if (file == NULL)
    return NULL;
  sbx_http_request request = sbx_remote_files_download(file);
  sbx_json_out json;
  sbx_buf body;
  if (make_absolute(file) != SBX_OK) {
    sbx_steps_finish_code(&file->steps, file->path.error);
    return &file->steps.op;
  }
  if (sbx__vercel_is_at_home(path) || sbx_remote_files_is_of_kernel(file)) {
    sbx_remote_files_read(file);
    return &file->steps.op;
  }
  sbx_buf_init(&body, (size_t)8 * SBX__VERCEL_URL_MAX);
  sbx_json_out_init(&json, &body);
  sbx_json_begin_object(&json);
  sbx_json_put_text(&json, "path", sbx_buf_slice(&file->path));
  sbx_json_end_object(&json);
  request.method = "POST";
  request.take_body = &body;
  sbx__vercel_to_session(&file->steps, "/fs/read", &request, on_got);
  sbx_remote_files_watch(file);
  return &file->steps.op;
}
