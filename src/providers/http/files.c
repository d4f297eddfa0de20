/* files.c - put and get.
 *
 * A path below the working directory goes to the service's own routes, which are exact to the byte;
 * all others, and what a route refuses, go by commands. Those make folders, reach the whole file
 * system, and say why something cannot be done, which the protocol leaves open. */
#include "providers/remote/files.h"
#include "providers/http/service.h"

#include "core/err.h"

static int check(sbx_err *err, const sbx_session *session, const sbx_http *reply,
                 const char *verb) {
  (void)session;
  return sbx__hs_check(err, reply, verb, SBX__HS_FILE);
}

static const sbx_remote_files service_files = {
    .provider = "http",
    .check = check,
    .read = sbx__hs_read,
    .write = sbx__hs_write,
};

/* Whether a command would be told the same. */
static bool is_final(const sbx_http *reply) {
  sbx_err err;
  int rc = sbx__hs_check(&err, reply, "", SBX__HS_FILE);
  return rc == SBX_OK || reply->op.err.code != SBX_OK || rc == SBX_ELOST || rc == SBX_ENOTFOUND ||
         rc == SBX_EAUTH || rc == SBX_ERATE || rc == SBX_ETOOBIG;
}

static void on_put(sbx_steps *steps, sbx_http *reply) {
  if (is_final(reply))
    sbx_remote_files_on_put(steps, reply);
  else
    sbx_remote_files_write(sbx_remote_files_of(steps));
}

static void on_got(sbx_steps *steps, sbx_http *reply) {
  if (is_final(reply))
    sbx_remote_files_on_got(steps, reply);
  else
    sbx_remote_files_read(sbx_remote_files_of(steps));
}

/* Makes the path what commands see, and sends the request for what is below the working directory;
 * false: a command has to go. */
static bool go_direct(sbx_remote_file *file, sbx_slice path, const sbx_http_request *request,
                      sbx_steps_reply on_reply) {
  const sbx_session *session = file->steps.session;
  bool direct = sbx__hs_below(session, &path) && sbx__hs_is_plain(path);
  file->said = file->path;
  sbx_buf_init(&file->path, SBX__HS_URL_MAX);
  int rc = sbx__hs_absolute(&file->path, session, sbx_buf_slice(&file->said));
  if (rc != SBX_OK) {
    sbx_steps_finish_code(&file->steps, rc);
    return true;
  }
  if (direct) {
    sbx__hs_to_file(&file->steps, path, request, on_reply);
    sbx_remote_files_watch(file);
  }
  return direct;
}

sbx_op *sbx__hs_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                    void *arg) {
  sbx_remote_file *file =
      sbx_remote_files_put(session, session->config->loop, &service_files, path, bytes, done, arg);
  const sbx_http_request request = {.method = "PUT",
                                    .content_type = "application/octet-stream",
                                    .body = bytes,
                                    .repeatable = true};
  if (file == NULL)
    return NULL;
  if (!file->steps.op.finished && !go_direct(file, path, &request, on_put))
    sbx_remote_files_write(file);
  return &file->steps.op;
}

sbx_op *sbx__hs_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                    void *arg) {
  sbx_remote_file *file =
      sbx_remote_files_get(session, session->config->loop, &service_files, path, out, done, arg);
  if (file == NULL)
    return NULL;
  const sbx_http_request request = sbx_remote_files_download(file);
  if (!file->steps.op.finished && !go_direct(file, path, &request, on_got))
    sbx_remote_files_read(file);
  return &file->steps.op;
}
