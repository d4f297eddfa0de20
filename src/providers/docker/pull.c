/* pull.c - fetches an image.
 *
 * Invariant: a success of the request is none of the pull: a failure comes as one of the objects
 * that the answer streams. */
#include "core/err.h"
#include "core/lines.h"
#include "core/url.h"
#include "providers/docker/docker.h"

enum { MAX_LINE = 64 * 1024 };

typedef struct pull_op {
  sbx_steps steps;
  sbx_lines lines;
  sbx_err failure;
} pull_op;

static pull_op *pull_of(sbx_steps *steps) {
  return (pull_op *)(void *)steps;
}

static void release(sbx_steps *steps) {
  sbx_lines_deinit(&pull_of(steps)->lines);
}

static void name_image(sbx_err *err, const sbx_config *config) {
  sbx_err_append(err, "; the image is ");
  sbx_err_append_remote(err, sbx_slice_str(config->image));
}

/* {"status": ..., "id": ..., "current": ..., "total": ...} */
static void tell_progress(const sbx_session *session, const sbx_json *object) {
  static const char *const numbers[] = {"current", "total"};
  const sbx_json *detail = sbx_json_get(object, "progressDetail");
  sbx_json_out out;
  sbx_slice text;
  sbx_buf json;
  int64_t number;
  if (session->on_progress == NULL || !sbx_json_string(sbx_json_get(object, "status"), &text))
    return;
  sbx_buf_init(&json, MAX_LINE);
  sbx_json_out_init(&out, &json);
  sbx_json_begin_object(&out);
  sbx_json_put_name(&out, sbx_slice_str("status"));
  sbx_json_put_string(&out, text);
  if (sbx_json_string(sbx_json_get(object, "id"), &text)) {
    sbx_json_put_name(&out, sbx_slice_str("id"));
    sbx_json_put_string(&out, text);
  }
  for (size_t i = 0; i < 2; i++) {
    if (!sbx_json_int(sbx_json_get(detail, numbers[i]), 0, INT64_MAX / 2, &number))
      continue;
    sbx_json_put_name(&out, sbx_slice_str(numbers[i]));
    sbx_json_put_int(&out, number);
  }
  sbx_json_end_object(&out);
  if (json.error == SBX_OK)
    session->on_progress(session->progress_arg, sbx_buf_slice(&json));
  sbx_buf_deinit(&json);
}

static int on_line(void *arg, sbx_slice line, sbx_err *err) {
  pull_op *p = arg;
  sbx_json_doc *doc = NULL;
  sbx_slice text = {NULL, 0};
  int rc = sbx_json_parse(&doc, line, err);
  if (rc != SBX_OK)
    return rc;
  const sbx_json *root = sbx_json_root(doc);
  if (sbx_json_string(sbx_json_get(sbx_json_get(root, "errorDetail"), "message"), &text) ||
      sbx_json_string(sbx_json_get(root, "error"), &text)) {
    bool none = sbx_remote_exchange_says(text, "not found") ||
                sbx_remote_exchange_says(text, "manifest unknown") ||
                sbx_remote_exchange_says(text, "no matching manifest");
    sbx_err_set(&p->failure, none ? SBX_ENOTFOUND : SBX_EPROVIDER, "docker: pull the image: ");
    sbx_err_append_remote(&p->failure, text);
  } else {
    tell_progress(p->steps.session, root);
  }
  sbx_json_free(doc, false);
  return SBX_OK;
}

static int on_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  return sbx_lines_feed(&((pull_op *)arg)->lines, bytes, err);
}

static void on_pulled(sbx_steps *steps, sbx_http *reply) {
  pull_op *p = pull_of(steps);
  sbx_err err;
  int rc =
      sbx__docker_check(&err, steps->session->config, &sbx__docker_engine, reply, "pull the image");
  if (rc == SBX_OK)
    rc = sbx_lines_finish(&p->lines, &err);
  if (rc == SBX_OK && p->failure.code != SBX_OK) {
    rc = p->failure.code;
    sbx_err_copy(&err, &p->failure);
  }
  if (rc == SBX_OK) {
    sbx_steps_finish(steps, NULL);
    return;
  }
  err.no_effect = true; /* no container was made */
  err.provider = "docker";
  name_image(&err, steps->session->config);
  sbx_steps_finish(steps, &err);
}

/* Without a tag every one that there is would come. */
static void append_name(sbx_buf *url, sbx_slice image) {
  size_t colon = image.len;
  bool digest = sbx_slice_find(image, '@') < image.len;
  for (size_t i = image.len; i > 0 && image.ptr[i - 1] != '/' && !digest; i--) {
    if (image.ptr[i - 1] == ':')
      colon = i - 1;
  }
  sbx_url_append_query(url, sbx_slice_str("fromImage"), sbx_slice_of(image.ptr, colon));
  if (!digest)
    sbx_url_append_query(url, sbx_slice_str("tag"),
                         colon < image.len ? sbx_slice_skip(image, colon + 1)
                                           : sbx_slice_str("latest"));
}

sbx_op *sbx__docker_pull_image(sbx_session *session, sbx_op_done done, void *arg) {
  const sbx_config *config = session->config;
  sbx_buf url;
  pull_op *p = sbx_steps_new(sizeof *p, session, config->loop, done, arg);
  if (p == NULL)
    return NULL;
  p->steps.release = release;
  sbx_lines_init(&p->lines, MAX_LINE, on_line, p);
  sbx_http_request request = {
      .method = "POST",
      .repeatable = true,
      .timeout_ms = SBX_NO_TIMEOUT, /* the start has a limit */
      .on_bytes = on_bytes,
      .consumer = p,
  };
  sbx__docker_url(&url, config, "/images/create");
  append_name(&url, sbx_slice_str(config->image));
  if (config->platform != NULL)
    sbx_url_append_query(&url, sbx_slice_str("platform"), sbx_slice_str(config->platform));
  sbx_remote_exchange_send(&p->steps, config->http, &url, &request, NULL, on_pulled);
  return &p->steps.op;
}
