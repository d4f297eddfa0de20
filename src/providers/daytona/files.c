/* files.c - put and get.
 *
 * A file is written by the bulk route, which makes folders; where that is not there, or would
 * change the name, by the single one. It is read by the single download, which is exact to the byte
 * for all but the kernel's files: those are read by a command. One that nothing comes from may be a
 * pipe that nobody writes to: it is looked at. */
#include "providers/remote/files.h"
#include "providers/daytona/daytona.h"

#include "core/err.h"

enum { SILENT_MS = 1500, PAGE = 4096 };

/* ---- what is silent ------------------------------------------------------------------------- */

typedef struct look_op {
  sbx_steps steps;
  sbx_remote_file *file; /* it ends this op with itself */
} look_op;

/* Go's letters of a pipe, a device or a socket stand before the nine of the rights. */
static bool is_special(sbx_slice mode) {
  for (size_t i = 0; i + 9 < mode.len; i++) {
    if (mode.ptr[i] == 'p' || mode.ptr[i] == 'D' || mode.ptr[i] == 'S')
      return true;
  }
  return false;
}

static void on_look(sbx_steps *steps, sbx_http *reply) {
  sbx_remote_file *file = ((look_op *)(void *)steps)->file;
  sbx_json_doc *doc = NULL;
  sbx_slice mode;
  sbx_err err;
  bool special = sbx_remote_exchange_json(&doc, &sbx__daytona_files, reply, "look at a file",
                                          &err) == SBX_OK &&
                 sbx_json_string(sbx_json_get(sbx_json_root(doc), "mode"), &mode) &&
                 is_special(mode);
  sbx_json_free(doc, false);
  sbx_steps_finish(steps, NULL);
  if (!special)
    return; /* it is only slow */
  sbx_err_set(&err, SBX_EINVAL,
              "daytona: %s: it is no regular file, but a pipe, a device or a socket", file->verb);
  err.provider = "daytona";
  sbx_remote_files_fail(file, &err);
}

static void look(sbx_steps *steps) {
  sbx_buf url;
  sbx__daytona_tool_url(&url, steps->session, "/files/info",
                        sbx_buf_slice(&((look_op *)(void *)steps)->file->path));
  sbx__daytona_send(steps, "GET", &url, NULL, true, on_look);
}

static void on_looked(sbx_op *op, void *arg) {
  (void)op;
  ((sbx_remote_file *)arg)->beside = NULL;
}

/* Without memory for it, the op's own limit ends what is silent. */
static void look_when_silent(sbx_remote_file *file) {
  sbx_session *session = file->steps.session;
  if (file->steps.op.finished)
    return;
  look_op *beside = sbx_steps_new(sizeof *beside, session, session->config->loop, on_looked, file);
  if (beside == NULL)
    return;
  file->beside = &beside->steps.op;
  beside->file = file;
  sbx_steps_wait(&beside->steps, SILENT_MS, look);
}

/* ---- put ------------------------------------------------------------------------------------ */

static int make_absolute(sbx_remote_file *file) {
  sbx_buf path;
  sbx_buf_init(&path, SBX__DAYTONA_URL_MAX);
  int rc = sbx__daytona_absolute(&path, file->steps.session, sbx_buf_slice(&file->path));
  sbx_buf_deinit(&file->path);
  file->path = path;
  return rc;
}

static void upload(sbx_remote_file *file, const char *route, sbx_slice named,
                   const sbx_http_part *parts, size_t count, sbx_steps_reply on_reply) {
  const sbx_config *config = file->steps.session->config;
  sbx_buf url;
  /* A file may be written twice. */
  sbx_http_request request = {
      .method = "POST",
      .headers = &config->headers,
      .parts = parts,
      .part_count = count,
      .repeatable = true,
      .timeout_ms = SBX_NO_TIMEOUT,
  };
  sbx__daytona_tool_url(&url, file->steps.session, route, named);
  sbx_remote_exchange_send(&file->steps, config->http, &url, &request, NULL, on_reply);
}

static void upload_alone(sbx_remote_file *file) {
  sbx_http_part part = sbx_remote_files_part(file, "file");
  upload(file, "/files/upload", sbx_buf_slice(&file->path), &part, 1, sbx_remote_files_on_put);
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
  sbx_buf url;
  size_t slash = path.len;
  while (slash > 0 && path.ptr[slash - 1] != '/')
    slash--;
  if (slash <= 1) {
    upload_alone(file);
    return;
  }
  sbx__daytona_tool_url(&url, file->steps.session, "/files/folder",
                        sbx_slice_of(path.ptr, slash - 1));
  sbx_buf_append_str(&url, "&mode=0755");
  sbx__daytona_send(&file->steps, "POST", &url, NULL, true, on_folder);
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
        sbx_remote_files_part(file, "files[0].file"),
    };
    upload(file, "/files/bulk-upload", sbx_slice_of(NULL, 0), parts, 2, on_bulk_uploaded);
  }
  look_when_silent(file);
}

sbx_op *sbx__daytona_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                         void *arg) {
  sbx_remote_file *file = sbx_remote_files_put(session, session->config->loop, &sbx__daytona_files,
                                               path, bytes, done, arg);
  if (file == NULL)
    return NULL;
  sbx__daytona_need_home(&file->steps, path, start_put);
  return &file->steps.op;
}

/* ---- get ------------------------------------------------------------------------------------ */

static void on_read(sbx_op *op, void *arg) {
  sbx_remote_file *file = arg;
  sbx_err err = op->err;
  file->steps.request = NULL;
  if (err.code == SBX_OK)
    sbx_steps_finish(&file->steps, NULL);
  else
    sbx_remote_files_fail(file, &err);
}

static void read_by_command(sbx_remote_file *file) {
  sbx_buf_truncate(file->out, 0);
  sbx_steps_wait_for(
      &file->steps,
      sbx__daytona_read(file->steps.session, sbx_buf_slice(&file->path), file->out, on_read, file));
}

static bool is_of_kernel(sbx_slice path) {
  return sbx_slice_starts_with(path, sbx_slice_str("/proc/")) ||
         sbx_slice_starts_with(path, sbx_slice_str("/sys/"));
}

/* The kernel's files say that they are empty, or that they have a page; a link may lead to one. */
static void on_downloaded(sbx_steps *steps, sbx_http *reply) {
  sbx_remote_file *file = sbx_remote_files_of(steps);
  bool empty = reply->op.err.code == SBX_OK && file->out->len == 0;
  bool less = reply->op.err.code == SBX_ENET && file->out->len < PAGE;
  if (reply->status == 200 && (empty || less))
    read_by_command(file);
  else
    sbx_remote_files_on_got(steps, reply);
}

static void start_get(sbx_steps *steps) {
  sbx_remote_file *file = sbx_remote_files_of(steps);
  const sbx_config *config = steps->session->config;
  sbx_http_request request = sbx_remote_files_download(file);
  sbx_buf url;
  int rc = make_absolute(file);
  if (rc != SBX_OK) {
    sbx_steps_finish_code(steps, rc);
    return;
  }
  if (is_of_kernel(sbx_buf_slice(&file->path))) {
    read_by_command(file);
    return;
  }
  request.headers = &config->headers;
  sbx__daytona_tool_url(&url, steps->session, "/files/download", sbx_buf_slice(&file->path));
  sbx_remote_exchange_send(steps, config->http, &url, &request, NULL, on_downloaded);
  look_when_silent(file);
}

sbx_op *sbx__daytona_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                         void *arg) {
  sbx_remote_file *file = sbx_remote_files_get(session, session->config->loop, &sbx__daytona_files,
                                               path, out, done, arg);
  if (file == NULL)
    return NULL;
  sbx__daytona_need_home(&file->steps, path, start_get);
  return &file->steps.op;
}
