/* AWS's event streams: fed in pieces they say what they say when fed at once. The first byte of the
 * input sets the size of the pieces; the second one whether the input is taken as it is, or as the
 * headers of a message whose checksums are right. */
#include "core/crc32.h"
#include "core/eventstream.h"

#include "fuzz.h"

enum { MOST = 4096 };

static int on_event(void *arg, const sbx_event *event, sbx_err *err) {
  sbx_buf *seen = arg;
  (void)err;
  sbx_buf_appendf(seen, "%zu %zu %zu ", event->kind.len, event->name.len, event->message.len);
  sbx_buf_append_slice(seen, event->payload);
  return SBX_OK;
}

static int run(sbx_slice in, size_t piece, sbx_buf *seen) {
  sbx_eventstream stream;
  sbx_err err;
  int rc = SBX_OK;
  sbx_eventstream_init(&stream, MOST, on_event, seen);
  for (size_t at = 0; rc == SBX_OK && at < in.len; at += piece) {
    size_t n = in.len - at < piece ? in.len - at : piece;
    rc = sbx_eventstream_feed(&stream, sbx_slice_of(in.ptr + at, n), &err);
  }
  if (rc == SBX_OK)
    rc = sbx_eventstream_finish(&stream, &err);
  MUST(rc == SBX_OK || rc == SBX_ENET || rc == SBX_EPROTO || rc == SBX_ETOOBIG || rc == SBX_ENOMEM);
  MUST(stream.held.len <= MOST);
  sbx_eventstream_deinit(&stream);
  return rc;
}

static void put_number(sbx_buf *out, size_t value) {
  for (int i = 3; i >= 0; i--)
    sbx_buf_append_char(out, (char)(value >> 8 * i & 0xff));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sbx_slice in = {(const char *)data, size};
  size_t piece = fuzz_take_byte(&in) % 40 + 1;
  bool plain = fuzz_take_byte(&in) % 2 == 0;
  sbx_buf message;
  sbx_buf_init(&message, MOST * 2);
  if (!plain) {
    put_number(&message, in.len + 16 + 3);
    put_number(&message, in.len);
    put_number(&message, sbx_crc32(0, sbx_buf_slice(&message)));
  }
  sbx_buf_append_slice(&message, in);
  if (!plain) {
    sbx_buf_append_str(&message, "end");
    put_number(&message, sbx_crc32(0, sbx_buf_slice(&message)));
  }
  fuzz_check_split(run, sbx_buf_slice(&message), piece);
  sbx_buf_deinit(&message);
  return 0;
}
