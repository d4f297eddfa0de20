/* Lists that are read as they come: fed in pieces they give the items that they give when fed at
 * once, and fail alike. The first byte of the input sets the size of the pieces. */
#include "core/items.h"
#include "fuzz.h"

enum { MAX_ITEM = 128 };

static int on_item(void *arg, const sbx_json *item, sbx_err *err) {
  sbx_buf *seen = arg;
  sbx_slice text = {NULL, 0};
  (void)err;
  if (sbx_json_string(item, &text)) {
    MUST(text.len <= MAX_ITEM);
    sbx_buf_append_char(seen, 'S');
    return sbx_buf_append_slice(seen, text);
  }
  bool nested = sbx_json_is_array(item) || sbx_json_is_object(item);
  return sbx_buf_appendf(seen, "%c%zu", nested ? 'N' : 'V', nested ? sbx_json_count(item) : 0);
}

static int run(const char *member, sbx_slice in, size_t piece, sbx_buf *seen) {
  sbx_items d;
  sbx_err err;
  int rc = SBX_OK;
  sbx_items_init(&d, member, MAX_ITEM, on_item, seen);
  for (size_t at = 0; rc == SBX_OK && at < in.len; at += piece) {
    size_t n = in.len - at < piece ? in.len - at : piece;
    rc = sbx_items_feed(&d, sbx_slice_of(in.ptr + at, n), &err);
  }
  if (rc == SBX_OK)
    rc = sbx_items_finish(&d, &err);
  sbx_items_deinit(&d);
  return rc;
}

static int run_array(sbx_slice in, size_t piece, sbx_buf *seen) {
  return run(NULL, in, piece, seen);
}

static int run_member(sbx_slice in, size_t piece, sbx_buf *seen) {
  return run("entries", in, piece, seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  sbx_slice in = sbx_slice_of((const char *)data + 1, size - 1);
  size_t piece = (size_t)data[0] % 16 + 1;
  fuzz_check_split(run_array, in, piece);
  fuzz_check_split(run_member, in, piece);
  return 0;
}
