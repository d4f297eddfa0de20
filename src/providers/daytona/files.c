/* files.c - put and get.
 *
 * A file is written by the bulk route, which makes folders; where that is not there, or would
 * change the name, by a folder and a single upload. It is read by the single download, which is
 * exact to the byte.
 *
 * Invariant: "no such file" is said only when the daemon says so; not when the sandbox, or the
 * route, is missing. */
#include "providers/daytona/daytona.h"

#include "core/err.h"

/* ---- put ------------------------------------------------------------------------------------ */

typedef struct put_op {
  sbx_steps steps;
  sbx_buf path;  /* absolute */
  sbx_buf bytes; /* borrowed by the uploads */
} put_op;

static put_op *put_of(sbx_steps *steps) {
  return (put_op *)(void *)steps;
}

static void release_put(sbx_steps *steps) {
  sbx_buf_deinit(&put_of(steps)->path);
  sbx_buf_deinit(&put_of(steps)->bytes);
}

static void finish_put(put_op *put, const sbx_http *reply) {
  sbx_err err;
  int rc = sbx__daytona_check_tool(&err, reply, "write a file");
  if (rc == SBX_OK) {
    sbx_steps_finish(&put->steps, NULL);
    return;
  }
  sbx_err_append(&err, "; the path was ");
  sbx_err_append_remote(&err, sbx_buf_slice(&put->path));
  sbx_steps_finish(&put->steps, &err);
}

static void send_parts(put_op *put, sbx_buf *url, const sbx_http_part *parts, size_t count,
                       sbx_steps_reply on_reply) {
  const sbx_config *config = put->steps.session->config;
  if (url->error == SBX_OK) {
    /* A file may be written twice. */
    sbx_http_request request = {
        .method = "POST",
        .url = sbx_buf_slice(url),
        .headers = &config->headers,
        .parts = parts,
        .part_count = count,
        .repeatable = true,
        .timeout_ms = SBX_NO_TIMEOUT,
    };
    sbx_steps_send(&put->steps, config->http, &request, on_reply);
  } else {
    sbx_steps_finish_code(&put->steps, url->error);
  }
  sbx_buf_deinit(url);
}

static void on_uploaded(sbx_steps *steps, sbx_http *reply) {
  finish_put(put_of(steps), reply);
}

static void upload(put_op *put) {
  sbx_buf url;
  sbx_http_part part = {
      .name = sbx_slice_str("file"),
      .filename = sbx_slice_str("file"),
      .content_type = sbx_slice_str("application/octet-stream"),
      .content = sbx_buf_slice(&put->bytes),
      .borrowed = true,
  };
  sbx__daytona_tool_url(&url, put->steps.session, "/files/upload", sbx_buf_slice(&put->path));
  send_parts(put, &url, &part, 1, on_uploaded);
}

static void on_folder(sbx_steps *steps, sbx_http *reply) {
  put_op *put = put_of(steps);
  /* Refusals of the folder show in what the upload says. */
  if (reply->op.err.code == SBX_OK && reply->status < 500 && reply->status != 401)
    upload(put);
  else
    finish_put(put, reply);
}

static void upload_alone(put_op *put) {
  sbx_slice path = sbx_buf_slice(&put->path);
  sbx_buf url;
  size_t slash = path.len;
  while (slash > 0 && path.ptr[slash - 1] != '/')
    slash--;
  if (slash <= 1) {
    upload(put);
    return;
  }
  sbx__daytona_tool_url(&url, put->steps.session, "/files/folder",
                        sbx_slice_of(path.ptr, slash - 1));
  sbx_buf_append_str(&url, "&mode=0755");
  sbx__daytona_send(&put->steps, "POST", &url, NULL, true, on_folder);
}

static void on_bulk_uploaded(sbx_steps *steps, sbx_http *reply) {
  put_op *put = put_of(steps);
  bool refused = reply->op.err.code == SBX_OK && (reply->status == 405 || reply->status == 501);
  if (refused || sbx__daytona_no_route(reply))
    upload_alone(put);
  else
    finish_put(put, reply);
}

static void upload_in_bulk(put_op *put) {
  sbx_buf url;
  sbx_http_part parts[2] = {
      {.name = sbx_slice_str("files[0].path"), .content = sbx_buf_slice(&put->path)},
      {.name = sbx_slice_str("files[0].file"),
       .filename = sbx_slice_str("file"),
       .content_type = sbx_slice_str("application/octet-stream"),
       .content = sbx_buf_slice(&put->bytes),
       .borrowed = true},
  };
  sbx__daytona_tool_url(&url, put->steps.session, "/files/bulk-upload", sbx_slice_of(NULL, 0));
  send_parts(put, &url, parts, 2, on_bulk_uploaded);
}

/* The bulk route trims names. */
static bool is_trimmed(sbx_slice path) {
  unsigned char last = path.len > 0 ? (unsigned char)path.ptr[path.len - 1] : 'x';
  return last <= ' ' || last >= 0x80;
}

sbx_op *sbx__daytona_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                         void *arg) {
  put_op *put = sbx_steps_new(sizeof *put, session, session->config->loop, done, arg);
  if (put == NULL)
    return NULL;
  sbx_buf_init(&put->path, SBX__DAYTONA_URL_MAX);
  sbx_buf_init(&put->bytes, bytes.len);
  put->steps.release = release_put;
  sbx__daytona_absolute(&put->path, session, path);
  sbx_buf_append_slice(&put->bytes, bytes);
  int code = put->path.error != SBX_OK ? put->path.error : put->bytes.error;
  if (code != SBX_OK)
    sbx_steps_finish_code(&put->steps, code);
  else if (is_trimmed(sbx_buf_slice(&put->path)))
    upload_alone(put);
  else
    upload_in_bulk(put);
  return &put->steps.op;
}

/* ---- get ------------------------------------------------------------------------------------ */

typedef struct get_op {
  sbx_steps steps;
  sbx_buf *out;
  sbx_buf path;
} get_op;

static get_op *get_of(sbx_steps *steps) {
  return (get_op *)(void *)steps;
}

static void release_get(sbx_steps *steps) {
  sbx_buf_deinit(&get_of(steps)->path);
}

static int take_bytes(void *consumer, sbx_slice bytes, sbx_err *err) {
  get_op *get = consumer;
  int rc = sbx_buf_append_slice(get->out, bytes);
  if (rc == SBX_ETOOBIG)
    return sbx_err_set(err, rc, "the file has more than %zu bytes", get->out->max);
  return rc == SBX_OK ? SBX_OK : sbx_err_set(err, rc, NULL);
}

/* A 404 that is about the file: with an empty body, or with words that say so. */
static bool is_missing_file(const sbx_http *reply) {
  sbx_slice body = sbx_buf_slice(&reply->body);
  if (reply->op.err.code != SBX_OK || reply->status != 404)
    return false;
  if (sbx_remote_exchange_says(body, "sandbox container not found"))
    return false;
  return body.len == 0 || sbx_remote_exchange_says(body, "FILE_NOT_FOUND") ||
         sbx_remote_exchange_says(body, "file not found") ||
         sbx_remote_exchange_says(body, "no such file");
}

static sbx_err unexpected(const sbx_http *reply) {
  sbx_err err;
  sbx_err_set(&err, SBX_EPROTO, "daytona: read a file: unexpected answer: HTTP %d", reply->status);
  err.status = reply->status;
  return err;
}

static void on_downloaded(sbx_steps *steps, sbx_http *reply) {
  get_op *get = get_of(steps);
  sbx_err err;
  /* Not looked at further: a file may well be a web page. */
  if (reply->op.err.code == SBX_OK && reply->status == 200) {
    sbx_steps_finish(steps, NULL);
    return;
  }
  int rc = sbx__daytona_check_tool(&err, reply, "read a file");
  if (rc == SBX_OK)
    err = unexpected(reply);
  if (is_missing_file(reply))
    err.code = SBX_ENOTFOUND;
  else if (rc == SBX_ENOTFOUND)
    err.code = SBX_EPROTO; /* something else is missing */
  sbx_err_append(&err, "; the path was ");
  sbx_err_append_remote(&err, sbx_buf_slice(&get->path));
  sbx_steps_finish(steps, &err);
}

sbx_op *sbx__daytona_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                         void *arg) {
  const sbx_config *config = session->config;
  sbx_buf url;
  get_op *get = sbx_steps_new(sizeof *get, session, config->loop, done, arg);
  if (get == NULL)
    return NULL;
  get->out = out;
  sbx_buf_init(&get->path, SBX__DAYTONA_URL_MAX);
  get->steps.release = release_get;
  sbx_buf_append_slice(&get->path, path);
  sbx__daytona_tool_url(&url, session, "/files/download", path);
  if (url.error == SBX_OK && get->path.error == SBX_OK) {
    sbx_http_request request = {
        .method = "GET",
        .url = sbx_buf_slice(&url),
        .headers = &config->headers,
        .repeatable = true,
        .timeout_ms = SBX_NO_TIMEOUT,
        .on_bytes = take_bytes,
        .consumer = get,
    };
    sbx_steps_send(&get->steps, config->http, &request, on_downloaded);
  } else {
    sbx_steps_finish_code(&get->steps, url.error != SBX_OK ? url.error : get->path.error);
  }
  sbx_buf_deinit(&url);
  return &get->steps.op;
}
