/* result.c - what a tool's answer says: the events of its stream, as one result.
 *
 * The 200 of an answer says nothing: an exception may be all that comes. */
#include "providers/agentcore/result.h"

#include "core/err.h"
#include "core/eventstream.h"
#include "core/json.h"
#include "providers/agentcore/wire.h"

#define MOST ((size_t)1 << 30)

void sbx__ac_result_init(sbx__ac_result *result) {
  *result = (sbx__ac_result){0};
  sbx_buf_init(&result->printed, MOST);
  sbx_buf_init(&result->said, MOST);
}

void sbx__ac_result_deinit(sbx__ac_result *result) {
  sbx_buf_deinit(&result->printed);
  sbx_buf_deinit(&result->said);
}

static bool put_member(sbx_buf *out, const sbx_json *object, const char *name) {
  sbx_slice text;
  if (!sbx_json_string(sbx_json_get(object, name), &text))
    return false;
  sbx_buf_append_slice(out, text);
  return true;
}

static void put_texts(sbx_buf *out, const sbx_json *content) {
  const sbx_json *block = sbx_json_is_array(content) ? sbx_json_next(content, NULL, NULL) : NULL;
  for (; block != NULL; block = sbx_json_next(content, block, NULL))
    put_member(out, block, "text");
}

/* The texts repeat the outputs, where those are there. */
static int take_result(sbx__ac_result *result, sbx_slice payload, sbx_err *err) {
  sbx_json_doc *doc = NULL;
  bool failed = false;
  int rc = sbx_json_parse(&doc, payload, err);
  if (rc != SBX_OK)
    return rc;
  const sbx_json *root = sbx_json_root(doc), *parts = sbx_json_get(root, "structuredContent");
  bool has_out = put_member(&result->printed, parts, "stdout");
  bool has_err = put_member(&result->said, parts, "stderr");
  if (!has_out && !has_err) {
    put_texts(&result->printed, sbx_json_get(root, "content"));
    put_texts(&result->said, sbx_json_get(root, "content"));
  }
  sbx_json_bool(sbx_json_get(root, "isError"), &failed);
  result->failed = result->failed || failed;
  result->any = true;
  sbx_json_free(doc, false);
  rc = result->printed.error != SBX_OK ? result->printed.error : result->said.error;
  return rc != SBX_OK ? sbx_err_set(err, rc, NULL) : SBX_OK;
}

static int take_exception(sbx__ac_result *result, const sbx_event *event, sbx_err *err) {
  const sbx__ac_meaning *meaning = sbx__ac_meaning_of(event->name);
  sbx_json_doc *doc = NULL;
  sbx_slice text = event->payload;
  int code = meaning != NULL ? meaning->code : SBX_EPROVIDER;
  if (sbx_json_parse(&doc, event->payload, NULL) == SBX_OK &&
      !sbx_json_string(sbx_json_get(sbx_json_root(doc), "message"), &text))
    sbx_json_string(sbx_json_get(sbx_json_root(doc), "Message"), &text);
  if (event->message.len > 0)
    text = event->message;
  if (code == SBX_ENOTFOUND || (code == SBX_EINVAL && sbx__ac_says_over(text)))
    code = SBX_ECONFLICT; /* a look at the session says whether it is over */
  sbx_err_set(err, code, "the stream says ");
  sbx_err_append_remote(err, event->name);
  sbx_err_append(err, ": ");
  sbx_err_append_remote(err, text);
  if (meaning != NULL && meaning->advice != NULL)
    sbx_err_append(err, "%s", meaning->advice);
  /* A session may also have gone while the tool ran. */
  result->refused = meaning != NULL && meaning->refused && !result->any &&
                    (code == meaning->code && code != SBX_ENOTFOUND);
  result->broken_off = !result->refused;
  sbx_json_free(doc, false);
  return code;
}

static int on_event(void *arg, const sbx_event *event, sbx_err *err) {
  sbx__ac_result *result = arg;
  if (sbx_slice_eq_str(event->kind, "exception") || sbx_slice_eq_str(event->kind, "error"))
    return take_exception(result, event, err);
  if (!sbx_slice_eq_str(event->kind, "event") || !sbx_slice_eq_str(event->name, "result"))
    return SBX_OK; /* of a later version */
  return take_result(result, event->payload, err);
}

int sbx__ac_result_read(sbx__ac_result *result, sbx_slice body, sbx_err *err) {
  sbx_eventstream stream;
  sbx_eventstream_init(&stream, MOST, on_event, result);
  int rc = sbx_eventstream_feed(&stream, body, err);
  if (rc == SBX_OK)
    rc = sbx_eventstream_finish(&stream, err);
  if (rc == SBX_OK && !result->any)
    rc = sbx_err_set(err, SBX_ENET, "the answer ended before its result");
  sbx_eventstream_deinit(&stream);
  return rc;
}
