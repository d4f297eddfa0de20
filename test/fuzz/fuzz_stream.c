/* Stream decoders: fed in pieces they give what they give when fed at once, and fail alike. The
 * first byte of the input sets the size of the pieces. */
#include "core/envelope.h"
#include "core/frames.h"
#include "core/head.h"
#include "core/lines.h"
#include "fuzz.h"

enum { MAX_PAYLOAD = 512 };

static int on_envelope(void *arg, bool is_end, sbx_slice payload, sbx_err *err) {
  sbx_buf *seen = arg;
  (void)err;
  MUST(payload.len <= MAX_PAYLOAD);
  sbx_buf_append_char(seen, is_end ? 'E' : 'P');
  return sbx_buf_append_slice(seen, payload);
}

static int on_line(void *arg, sbx_slice line, sbx_err *err) {
  sbx_buf *seen = arg;
  (void)err;
  MUST(line.len > 0 && line.len <= MAX_PAYLOAD && sbx_slice_find(line, '\n') == line.len);
  sbx_buf_append_char(seen, 'L');
  return sbx_buf_append_slice(seen, line);
}

static int run_envelopes(sbx_slice in, size_t piece, sbx_buf *seen) {
  sbx_envelope d;
  sbx_err err;
  int rc = SBX_OK;
  sbx_envelope_init(&d, MAX_PAYLOAD, on_envelope, seen);
  for (size_t at = 0; rc == SBX_OK && at < in.len; at += piece) {
    size_t n = in.len - at < piece ? in.len - at : piece;
    rc = sbx_envelope_feed(&d, sbx_slice_of(in.ptr + at, n), &err);
  }
  if (rc == SBX_OK)
    rc = sbx_envelope_finish(&d, &err);
  sbx_envelope_deinit(&d);
  return rc;
}

static int run_plain(sbx_slice in, size_t piece, sbx_buf *seen) {
  sbx_envelope d;
  sbx_err err;
  int rc = SBX_OK;
  sbx_envelope_init_plain(&d, MAX_PAYLOAD, on_envelope, seen);
  for (size_t at = 0; rc == SBX_OK && at < in.len; at += piece) {
    size_t n = in.len - at < piece ? in.len - at : piece;
    rc = sbx_envelope_feed(&d, sbx_slice_of(in.ptr + at, n), &err);
  }
  if (rc == SBX_OK)
    rc = sbx_envelope_finish(&d, &err);
  MUST(!d.ended);
  sbx_envelope_deinit(&d);
  return rc;
}

static int run_lines(sbx_slice in, size_t piece, sbx_buf *seen) {
  sbx_lines d;
  sbx_err err;
  int rc = SBX_OK;
  sbx_lines_init(&d, MAX_PAYLOAD, on_line, seen);
  for (size_t at = 0; rc == SBX_OK && at < in.len; at += piece) {
    size_t n = in.len - at < piece ? in.len - at : piece;
    rc = sbx_lines_feed(&d, sbx_slice_of(in.ptr + at, n), &err);
  }
  if (rc == SBX_OK)
    rc = sbx_lines_finish(&d, &err);
  sbx_lines_deinit(&d);
  return rc;
}

typedef struct frames_seen {
  sbx_buf *seen;
  int last;
} frames_seen;

static int on_frame(void *arg, sbx_frame frame, sbx_slice bytes, sbx_err *err) {
  frames_seen *f = arg;
  (void)err;
  MUST(bytes.len > 0 && frame <= SBX_FRAME_ERROR);
  if (f->last != (int)frame)
    sbx_buf_append_char(f->seen, (char)('0' + (int)frame));
  f->last = (int)frame;
  return sbx_buf_append_slice(f->seen, bytes);
}

static int run_frames(sbx_slice in, size_t piece, sbx_buf *seen) {
  sbx_frames d;
  sbx_err err;
  int rc = SBX_OK;
  frames_seen f = {seen, -1};
  sbx_frames_init(&d, on_frame, &f);
  for (size_t at = 0; rc == SBX_OK && at < in.len; at += piece) {
    size_t n = in.len - at < piece ? in.len - at : piece;
    rc = sbx_frames_feed(&d, sbx_slice_of(in.ptr + at, n), &err);
  }
  return rc == SBX_OK ? sbx_frames_finish(&d, &err) : rc;
}

/* What is behind the head counts as seen, too: where it ends must not depend on the pieces. */
static int run_head(sbx_slice in, size_t piece, sbx_buf *seen) {
  sbx_head head;
  sbx_err err;
  int rc = SBX_OK;
  sbx_head_init(&head, MAX_PAYLOAD);
  while (rc == SBX_OK && !head.done && in.len > 0) {
    size_t used = 0;
    rc = sbx_head_feed(&head, sbx_slice_of(in.ptr, in.len < piece ? in.len : piece), &used, &err);
    MUST(rc != SBX_OK || used > 0);
    in = sbx_slice_skip(in, used);
  }
  MUST(!head.done || head.status == 101 || (head.status >= 200 && head.status <= 999));
  for (size_t i = 0; rc == SBX_OK && i < head.headers.count; i++)
    sbx_buf_append_slice(seen, head.headers.items[i].value);
  if (rc == SBX_OK && head.done)
    sbx_buf_append_slice(seen, in);
  sbx_head_deinit(&head);
  return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  sbx_slice in = sbx_slice_of((const char *)data + 1, size - 1);
  size_t piece = (size_t)data[0] % 16 + 1;
  fuzz_check_split(run_envelopes, in, piece);
  fuzz_check_split(run_plain, in, piece);
  fuzz_check_split(run_lines, in, piece);
  fuzz_check_split(run_frames, in, piece);
  fuzz_check_split(run_head, in, piece);
  return 0;
}
