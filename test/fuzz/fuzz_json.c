/* Whatever is accepted is JSON to cJSON as well and means the same, and survives being written and
 * read again. */
#include "core/enc.h"
#include "core/json.h"
#include "fuzz.h"

#include <cjson/cJSON.h>
#include <string.h>

/* cJSON cuts numbers after 63 bytes. */
#define CJSON_MAX_NUMBER 60

static bool has_long_number(sbx_slice text) {
  size_t run = 0;
  for (size_t i = 0; i < text.len; i++) {
    char c = text.ptr[i];
    run = sbx_is_digit(c) || (c && strchr("+-.eE", c)) ? run + 1 : 0;
    if (run > CJSON_MAX_NUMBER)
      return true;
  }
  return false;
}

static void compare(const sbx_json *ours, const cJSON *theirs) {
  sbx_slice text;
  int64_t n;
  double d;
  bool b;
  MUST(theirs);
  MUST(sbx_json_is_object(ours) == cJSON_IsObject(theirs));
  MUST(sbx_json_is_array(ours) == cJSON_IsArray(theirs));
  MUST(sbx_json_is_null(ours) == cJSON_IsNull(theirs));
  if (sbx_json_string(ours, &text)) {
    MUST(sbx_utf8_valid(text));
    MUST(cJSON_IsString(theirs) && strcmp(theirs->valuestring, text.ptr) == 0);
  } else if (sbx_json_bool(ours, &b)) {
    MUST(cJSON_IsBool(theirs) && cJSON_IsTrue(theirs) == b);
  } else if (sbx_json_number(ours, &d)) {
    MUST(cJSON_IsNumber(theirs) && theirs->valuedouble == d);
    if (sbx_json_int(ours, INT32_MIN, INT32_MAX, &n))
      MUST(theirs->valueint == n);
  }
  const sbx_json *item = NULL;
  const cJSON *their_item = theirs->child;
  while ((item = sbx_json_next(ours, item, &text)) != NULL) {
    compare(item, their_item);
    if (sbx_json_is_object(ours)) {
      MUST(strcmp(their_item->string, text.ptr) == 0);
      /* A name with a NUL cannot be asked for. */
      MUST(sbx_slice_has_nul(text) || sbx_json_get(ours, text.ptr) == item);
    }
    their_item = their_item->next;
  }
  MUST(!their_item);
}

static void write_value(sbx_json_out *out, const sbx_json *v) {
  sbx_slice text;
  int64_t n;
  bool b;
  if (sbx_json_string(v, &text)) {
    sbx_json_put_string(out, text);
  } else if (sbx_json_bool(v, &b)) {
    sbx_json_put_bool(out, b);
  } else if (sbx_json_int(v, INT64_MIN, INT64_MAX, &n)) {
    sbx_json_put_int(out, n);
  } else if (sbx_json_is_object(v)) {
    sbx_json_begin_object(out);
    for (const sbx_json *item = NULL; (item = sbx_json_next(v, item, &text)) != NULL;) {
      sbx_json_put_name(out, text);
      write_value(out, item);
    }
    sbx_json_end_object(out);
  } else if (sbx_json_is_array(v)) {
    sbx_json_begin_array(out);
    for (const sbx_json *item = NULL; (item = sbx_json_next(v, item, NULL)) != NULL;)
      write_value(out, item);
    sbx_json_end_array(out);
  } else {
    sbx_json_put_null(out); /* and numbers that are no integers */
  }
}

static void write_doc(sbx_buf *buf, const sbx_json_doc *doc) {
  sbx_json_out out;
  sbx_buf_init(buf, SIZE_MAX);
  sbx_json_out_init(&out, buf);
  write_value(&out, sbx_json_root(doc));
  MUST(buf->error == SBX_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sbx_slice text = sbx_slice_of((const char *)data, size);
  sbx_json_doc *doc = NULL, *again = NULL;
  sbx_err err = {0};
  if (sbx_json_parse(&doc, text, &err) != SBX_OK) {
    MUST(!doc && err.code == SBX_EPROTO && err.message[0]);
    return 0;
  }
  if (!has_long_number(text)) {
    cJSON *theirs = cJSON_ParseWithLength(text.ptr, text.len);
    compare(sbx_json_root(doc), theirs);
    cJSON_Delete(theirs);
  }
  sbx_buf first, second;
  write_doc(&first, doc);
  MUST(sbx_json_parse(&again, sbx_buf_slice(&first), &err) == SBX_OK);
  write_doc(&second, again);
  MUST(sbx_slice_eq(sbx_buf_slice(&first), sbx_buf_slice(&second)));
  sbx_buf_deinit(&first);
  sbx_buf_deinit(&second);
  sbx_json_free(doc, true);
  sbx_json_free(again, false);
  return 0;
}
