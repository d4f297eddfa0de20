/* files.c - put and get.
 *
 * A file is written by the bulk route, which makes folders; where that is not there, or would
 * change the name, by the single one. It is read by the single download, which is exact to the byte
 * for all but the kernel's files: those are read by a command. One that nothing comes from may be a
 * pipe that nobody writes to: it is looked at. */
#include "providers/remote/files.h"
#include "providers/daytona/daytona.h"

#include "core/err.h"

/* ---- how files are reached ------------------------------------------------------------------ */

static int check(sbx_err *err, const sbx_session *session, const sbx_http *reply,
                 const char *verb) {
  (void)session;
  return sbx_remote_exchange_check(err, &sbx__daytona_files, reply, verb);
}

static void look(sbx_steps *steps, sbx_slice path, sbx_steps_reply on_reply) {
  sbx__daytona_to_tool(steps, "/files/info", path, &sbx__daytona_question, on_reply);
}

static bool find_mode(const sbx_json *answer, sbx_slice *mode) {
  return sbx_json_string(sbx_json_get(answer, "mode"), mode);
}

static const sbx_remote_files toolbox_files = {
    .provider = "daytona",
    .check = check,
    .read = sbx__daytona_read,
    .look = look,
    .mode = find_mode,
};

/* ---- put ------------------------------------------------------------------------------------ */

static int make_absolute(sbx_remote_file *file) {
  sbx_buf path;
  sbx_buf_init(&path, SBX__DAYTONA_URL_MAX);
  int rc = sbx__daytona_absolute(&path, file->steps.session, sbx_buf_slice(&file->path));
  file->said = file->path;
  file->path = path;
  return rc;
}

static void upload_alone(sbx_remote_file *file) {
  sbx_http_part part = sbx_remote_files_part("file", sbx_buf_slice(&file->bytes));
  sbx__daytona_upload(&file->steps, "/files/upload", sbx_buf_slice(&file->path), &part, 1,
                      sbx_remote_files_on_put);
}

static void on_folder(sbx_steps *steps, sbx_http *reply) {
  /* Refusals of the folder show in what the upload says. */
  if (reply->op.err.code == SBX_OK && reply->status < 500 && reply->status != 401)
    upload_alone(sbx_remote_files_of(steps));
  else
    sbx_remote_files_on_put(steps, reply);
}

/* Old daemons make no folders for a single upload. */
static void upload_with_folder(sbx_remote_file *file) {
  sbx_slice path = sbx_buf_slice(&file->path);
  size_t slash = path.len;
  while (slash > 0 && path.ptr[slash - 1] != '/')
    slash--;
  if (slash <= 1) {
    upload_alone(file);
    return;
  }
  sbx__daytona_to_tool(&file->steps, "/files/folder?mode=0755", sbx_slice_of(path.ptr, slash - 1),
                       &(sbx_http_request){.method = "POST", .repeatable = true}, on_folder);
}

static void on_bulk_uploaded(sbx_steps *steps, sbx_http *reply) {
  bool refused = reply->op.err.code == SBX_OK && (reply->status == 405 || reply->status == 501);
  if (refused || sbx__daytona_no_route(reply))
    upload_with_folder(sbx_remote_files_of(steps));
  else
    sbx_remote_files_on_put(steps, reply);
}

/* The bulk route trims names. */
static bool is_trimmed(sbx_slice path) {
  unsigned char last = path.len > 0 ? (unsigned char)path.ptr[path.len - 1] : 'x';
  return last <= ' ' || last >= 0x80;
}

static void start_put(sbx_steps *steps) {
  sbx_remote_file *file = sbx_remote_files_of(steps);
  int rc = make_absolute(file);
  if (rc != SBX_OK) {
    sbx_steps_finish_code(steps, rc);
  } else if (is_trimmed(sbx_buf_slice(&file->path))) {
    upload_with_folder(file);
  } else {
    sbx_http_part parts[2] = {
        {.name = sbx_slice_str("files[0].path"), .content = sbx_buf_slice(&file->path)},
        sbx_remote_files_part("files[0].file", sbx_buf_slice(&file->bytes)),
    };
    sbx__daytona_upload(steps, "/files/bulk-upload", sbx_slice_of(NULL, 0), parts, 2,
                        on_bulk_uploaded);
  }
  sbx_remote_files_watch(file);
}

sbx_op *sbx__daytona_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                         void *arg) {
  sbx_remote_file *file =
      sbx_remote_files_put(session, session->config->loop, &toolbox_files, path, bytes, done, arg);
  if (file == NULL)
    return NULL;
  sbx__daytona_need_home(&file->steps, path, start_put);
  return &file->steps.op;
}

/* ---- get ------------------------------------------------------------------------------------ */

static void start_get(sbx_steps *steps) {
  sbx_remote_file *file = sbx_remote_files_of(steps);
  const sbx_http_request request = sbx_remote_files_download(file);
  int rc = make_absolute(file);
  if (rc != SBX_OK) {
    sbx_steps_finish_code(steps, rc);
    return;
  }
  if (sbx_remote_files_is_of_kernel(file)) {
    sbx_remote_files_read(file);
    return;
  }
  sbx__daytona_to_tool(steps, "/files/download", sbx_buf_slice(&file->path), &request,
                       sbx_remote_files_on_got);
  sbx_remote_files_watch(file);
}

sbx_op *sbx__daytona_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                         void *arg) {
  sbx_remote_file *file =
      sbx_remote_files_get(session, session->config->loop, &toolbox_files, path, out, done, arg);
  if (file == NULL)
    return NULL;
  sbx__daytona_need_home(&file->steps, path, start_get);
  return &file->steps.op;
}
