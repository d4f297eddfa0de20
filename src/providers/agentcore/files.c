/* files.c - put and get.
 *
 * Both go by commands, which are exact to the byte, reach the whole file system, and say why
 * something cannot be done. The service's own readFiles decides by itself whether a file is text,
 * and what it then leaves out cannot be seen. A large file would take many lines: below the working
 * directory it goes by writeFiles, in one request, as bytes. */
#include "providers/remote/files.h"
#include "providers/agentcore/agentcore.h"
#include "providers/agentcore/result.h"

#include "core/enc.h"
#include "core/err.h"

#include <string.h>

enum { FITS_A_LINE = 64 * 1024 };

#define MAX_BODY ((size_t)1 << 30)

/* ---- paths ---------------------------------------------------------------------------------- */

/* Whether the path is below the working directory by its words, which are then what is left. */
static bool is_below(const sbx_session *session, sbx_slice *path) {
  sbx_slice dir = sbx_slice_str(session->dir);
  if (path->len == 0 || (path->ptr[0] != '/' && path->ptr[0] != '~'))
    return true;
  if (!sbx_slice_starts_with(*path, dir) || path->len <= dir.len || path->ptr[dir.len] != '/')
    return false;
  *path = sbx_slice_skip(*path, dir.len + 1);
  return true;
}

int sbx__ac_absolute(sbx_buf *out, const sbx_session *session, sbx_slice path) {
  if (is_below(session, &path)) {
    sbx_buf_append_str(out, session->dir);
    sbx_buf_append_str(out, path.len > 0 ? "/" : "");
  }
  return sbx_buf_append_slice(out, path);
}

/* The service refuses what might leave the directory; and what is no text would become another
 * name in JSON. */
static bool is_plain(sbx_slice path) {
  bool plain = path.len > 0 && path.ptr[path.len - 1] != '/' && sbx_utf8_valid(path);
  while (plain && path.len > 0) {
    sbx_slice part = sbx_slice_of(path.ptr, sbx_slice_find(path, '/'));
    plain = part.len > 0 && !sbx_slice_eq_str(part, ".") && !sbx_slice_eq_str(part, "..");
    path = sbx_slice_skip(path, part.len + 1);
  }
  return plain;
}

/* ---- put ------------------------------------------------------------------------------------ */

static int check(sbx_err *err, const sbx_session *session, const sbx_http *reply,
                 const char *verb) {
  (void)session;
  return sbx__ac_check_inside(err, reply, verb);
}

static const sbx_remote_files session_files = {
    .provider = "agentcore",
    .check = check,
    .read = sbx__ac_read,
    .write = sbx__ac_write,
};

/* A command says more than the service's refusal, or succeeds where that did not. */
static void on_put(sbx_steps *steps, sbx_http *reply) {
  sbx_remote_file *file = sbx_remote_files_of(steps);
  sbx__ac_result result;
  sbx_err err;
  sbx__ac_result_init(&result);
  bool answered = reply->op.err.code == SBX_OK && reply->status == 200;
  bool wrote = answered &&
               sbx__ac_result_read(&result, sbx_buf_slice(&reply->body), &err) == SBX_OK &&
               !result.failed;
  if (wrote)
    sbx_steps_finish(steps, NULL);
  else if (answered || reply->status == 400 || reply->status == 413)
    sbx_remote_files_write(file);
  else
    sbx_remote_files_on_put(steps, reply);
  sbx__ac_result_deinit(&result);
}

static void put_whole(sbx_remote_file *file, sbx_slice path) {
  sbx_buf body;
  sbx_json_out json;
  sbx_buf_init(&body, MAX_BODY);
  sbx_buf_reserve(&body, file->bytes.len / 3 * 4 + path.len + 256);
  sbx_buf_append_str(&body, "{\"name\":\"writeFiles\",\"arguments\":{\"content\":[");
  sbx_json_out_init(&json, &body);
  sbx_json_begin_object(&json);
  sbx_json_put_text(&json, "path", path);
  sbx_buf_append_str(&body, ",\"blob\":\"");
  sbx_base64_encode(&body, sbx_buf_slice(&file->bytes));
  sbx_buf_append_str(&body, "\"}]}}");
  sbx__ac_invoke(
      &file->steps,
      &(sbx_http_request){.take_body = &body, .repeatable = true, .max_bytes = SBX_HTTP_REPLY_MAX},
      on_put);
  sbx_remote_files_watch(file);
}

sbx_op *sbx__ac_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                    void *arg) {
  sbx_remote_file *file =
      sbx_remote_files_put(session, session->config->loop, &session_files, path, bytes, done, arg);
  sbx_buf absolute;
  if (file == NULL)
    return NULL;
  if (file->steps.op.finished)
    return &file->steps.op;
  sbx_buf_init(&absolute, SBX_REMOTE_PATH_MAX);
  int rc = sbx__ac_absolute(&absolute, session, path);
  file->said = file->path;
  file->path = absolute;
  if (rc != SBX_OK)
    sbx_steps_finish_code(&file->steps, rc);
  else if (bytes.len > FITS_A_LINE && is_below(session, &path) && is_plain(path))
    put_whole(file, path);
  else
    sbx_remote_files_write(file);
  return &file->steps.op;
}

/* ---- get ------------------------------------------------------------------------------------ */

sbx_op *sbx__ac_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                    void *arg) {
  sbx_remote_file *file =
      sbx_remote_files_get(session, session->config->loop, &session_files, path, out, done, arg);
  sbx_buf absolute;
  if (file == NULL)
    return NULL;
  if (file->steps.op.finished)
    return &file->steps.op;
  sbx_buf_init(&absolute, SBX_REMOTE_PATH_MAX);
  int rc = sbx__ac_absolute(&absolute, session, path);
  file->said = file->path;
  file->path = absolute;
  if (rc != SBX_OK)
    sbx_steps_finish_code(&file->steps, rc);
  else
    sbx_remote_files_read(file);
  return &file->steps.op;
}
