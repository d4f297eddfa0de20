/* The line by which a command's wrapper tells its end: found at any split, taken out once, and all
 * the rest handed on as it was. The first byte of the input sets the size of the pieces; a byte
 * 0xff stands for the token, which is not to be guessed. */
#include "fuzz.h"
#include "providers/remote/runner/trailer.h"

#include <string.h>

enum { RS = 0x1e, DIGITS = 3, MORE_DIGITS = 9 };

static char token[SBX_RUNNER_TOKEN + 1];

static void gather(void *arg, sbx_slice bytes) {
  MUST(bytes.len > 0 && sbx_buf_append_slice(arg, bytes) == SBX_OK);
}

/* Length of a whole line at the start of `s`, else 0. */
static size_t line_at(sbx_slice s, int *code) {
  size_t at = SBX_RUNNER_TOKEN + 2, digits = 0, more = 0;
  if (s.len < at || s.ptr[0] != RS || memcmp(s.ptr + 1, token, SBX_RUNNER_TOKEN) != 0 ||
      s.ptr[at - 1] != ' ')
    return 0;
  for (*code = 0; at < s.len && s.ptr[at] >= '0' && s.ptr[at] <= '9'; at++, digits++)
    *code = digits < DIGITS ? *code * 10 + (s.ptr[at] - '0') : 0;
  if (digits == 0 || digits > DIGITS)
    return 0;
  if (at < s.len && s.ptr[at] == ' ') {
    for (at++; at < s.len && s.ptr[at] >= '0' && s.ptr[at] <= '9'; at++)
      more++;
    if (more == 0 || more > MORE_DIGITS)
      return 0;
  }
  return at < s.len && s.ptr[at] == '\n' ? at + 1 : 0;
}

/* What must come out, found without any state. */
static bool expect(sbx_slice in, sbx_buf *out, int *code) {
  for (size_t at = 0; at < in.len; at++) {
    size_t len = line_at(sbx_slice_skip(in, at), code);
    if (len == 0)
      continue;
    sbx_buf_append(out, in.ptr, at);
    sbx_buf_append_slice(out, sbx_slice_skip(in, at + len));
    return true;
  }
  sbx_buf_append_slice(out, in);
  return false;
}

static void expand(sbx_slice in, sbx_buf *stream) {
  for (size_t i = 0; i < in.len; i++) {
    if ((unsigned char)in.ptr[i] == 0xff)
      sbx_buf_append_str(stream, token);
    else
      sbx_buf_append_char(stream, in.ptr[i]);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sbx_buf stream, expected, got;
  int code = 0;
  if (size == 0)
    return 0;
  memset(token, 'a', SBX_RUNNER_TOKEN);
  sbx_buf_init(&stream, SIZE_MAX);
  sbx_buf_init(&expected, SIZE_MAX);
  sbx_buf_init(&got, SIZE_MAX);
  expand(sbx_slice_of((const char *)data + 1, size - 1), &stream);
  sbx_slice in = sbx_buf_slice(&stream);
  bool found = expect(in, &expected, &code);
  sbx_runner_trailer trailer = {.token = token, .fn = gather, .arg = &got};
  while (in.len > 0)
    sbx_runner_trailer_feed(&trailer, fuzz_take(&in, (size_t)data[0] % 48 + 1));
  sbx_runner_trailer_end(&trailer);
  MUST(trailer.found == found && (!found || trailer.exit_code == code));
  MUST(sbx_slice_eq(sbx_buf_slice(&got), sbx_buf_slice(&expected)));
  sbx_buf_deinit(&stream);
  sbx_buf_deinit(&expected);
  sbx_buf_deinit(&got);
  return 0;
}
