/* Encodings: what is encoded decodes to itself; what decodes is the one text for its bytes; UTF-8
 * repaired is valid and cut anywhere stays whole. */
#include "core/enc.h"
#include "fuzz.h"

static void check_base64(sbx_slice in) {
  sbx_buf text, bytes;
  sbx_buf_init(&text, SIZE_MAX);
  sbx_buf_init(&bytes, in.len);
  MUST(sbx_base64_encode(&text, in) == SBX_OK);
  MUST(text.len == (in.len + 2) / 3 * 4);
  MUST(sbx_base64_decode(&bytes, sbx_buf_slice(&text)) == SBX_OK);
  MUST(sbx_slice_eq(sbx_buf_slice(&bytes), in));

  /* The input as base64: taken only when it is what its bytes encode to, but for the padding and
   * line ends. */
  sbx_buf plain;
  sbx_buf_init(&plain, SIZE_MAX);
  for (size_t i = 0; i < in.len; i++) {
    if (in.ptr[i] != '\r' && in.ptr[i] != '\n')
      sbx_buf_append_char(&plain, in.ptr[i]);
  }
  size_t padding = (4 - plain.len % 4) % 4;
  sbx_buf_append(&plain, "===", padding);
  sbx_buf_truncate(&bytes, 0);
  sbx_buf_truncate(&text, 0);
  int rc = sbx_base64_decode(&bytes, in);
  MUST(rc == SBX_OK || (rc == SBX_EINVAL && bytes.len == 0));
  if (rc == SBX_OK) {
    sbx_base64_encode(&text, sbx_buf_slice(&bytes));
    MUST(sbx_slice_eq(sbx_buf_slice(&text), sbx_buf_slice(&plain)));
  }
  sbx_buf_deinit(&text);
  sbx_buf_deinit(&bytes);
  sbx_buf_deinit(&plain);
}

static void check_percent(sbx_slice in) {
  sbx_buf text, bytes;
  sbx_buf_init(&text, SIZE_MAX);
  sbx_buf_init(&bytes, in.len);
  MUST(sbx_percent_encode(&text, in) == SBX_OK);
  MUST(sbx_slice_find(sbx_buf_slice(&text), '/') == text.len);
  MUST(sbx_percent_decode(&bytes, sbx_buf_slice(&text)) == SBX_OK);
  MUST(sbx_slice_eq(sbx_buf_slice(&bytes), in));
  sbx_buf_truncate(&text, 0);
  sbx_buf_truncate(&bytes, 0);
  MUST(sbx_percent_encode_path(&text, in) == SBX_OK);
  MUST(sbx_percent_decode(&bytes, sbx_buf_slice(&text)) == SBX_OK);
  MUST(sbx_slice_eq(sbx_buf_slice(&bytes), in));
  sbx_buf_truncate(&bytes, 0);
  int rc = sbx_percent_decode(&bytes, in);
  MUST(rc == SBX_OK ? bytes.len <= in.len : rc == SBX_EINVAL && bytes.len == 0);
  sbx_buf_deinit(&text);
  sbx_buf_deinit(&bytes);
}

/* A whole text cut anywhere: both sides find the boundary before the cut character. */
static void check_cuts(sbx_slice text) {
  for (size_t at = 0; at <= text.len && at < 64; at++) {
    sbx_slice head = sbx_slice_of(text.ptr, at);
    size_t floor = sbx_utf8_floor(head);
    size_t skip = sbx_utf8_skip_continuation(sbx_slice_skip(text, at));
    MUST(sbx_utf8_valid(sbx_slice_of(text.ptr, floor)));
    MUST(sbx_utf8_valid(sbx_slice_skip(text, at + skip)));
    MUST((floor == at) == (skip == 0));
    MUST(at - floor + skip <= 4);
  }
}

static void check_utf8(sbx_slice in) {
  sbx_buf repaired;
  sbx_buf_init(&repaired, SIZE_MAX);
  MUST(sbx_utf8_append_lossy(&repaired, in) == SBX_OK);
  sbx_slice text = sbx_buf_slice(&repaired);
  MUST(sbx_utf8_valid(text));
  MUST(sbx_utf8_valid(in) == sbx_slice_eq(in, text));
  size_t floor = sbx_utf8_floor(in);
  MUST(floor <= in.len && in.len - floor <= 3);
  MUST(sbx_utf8_skip_continuation(in) <= 3);
  check_cuts(text);
  sbx_buf_deinit(&repaired);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sbx_slice in = sbx_slice_of((const char *)data, size);
  check_base64(in);
  check_percent(in);
  check_utf8(in);
  return 0;
}
