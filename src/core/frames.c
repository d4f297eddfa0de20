/* frames.c - decoder for a container engine's frames.
 *
 * Invariant: of the stream nothing is held but the head of one frame. */
#include "core/frames.h"

#include "core/err.h"

#include <string.h>

void sbx_frames_init(sbx_frames *decoder, sbx_frames_fn fn, void *arg) {
  *decoder = (sbx_frames){.fn = fn, .arg = arg};
}

/* Out of step, everything behind it would be taken for what it is not. */
static int take_head(sbx_frames *decoder, sbx_err *err) {
  const unsigned char *head = decoder->head;
  if (head[0] > SBX_FRAME_ERROR || head[1] != 0 || head[2] != 0 || head[3] != 0)
    return sbx_err_set(err, SBX_EPROTO,
                       "the stream has a frame that makes no sense (%02x %02x %02x %02x)", head[0],
                       head[1], head[2], head[3]);
  decoder->left = (size_t)head[4] << 24 | (size_t)head[5] << 16 | (size_t)head[6] << 8 | head[7];
  return SBX_OK;
}

int sbx_frames_feed(sbx_frames *decoder, sbx_slice bytes, sbx_err *err) {
  while (bytes.len > 0) {
    size_t missing = sizeof decoder->head - decoder->head_len;
    size_t n = missing > 0 ? missing : decoder->left;
    if (n > bytes.len)
      n = bytes.len;
    int rc = SBX_OK;
    if (missing > 0) {
      memcpy(decoder->head + decoder->head_len, bytes.ptr, n);
      decoder->head_len += n;
      if (n == missing)
        rc = take_head(decoder, err);
    } else {
      decoder->left -= n;
      rc = decoder->fn(decoder->arg, (sbx_frame)decoder->head[0], sbx_slice_of(bytes.ptr, n), err);
    }
    if (rc != SBX_OK)
      return rc;
    if (decoder->head_len == sizeof decoder->head && decoder->left == 0)
      decoder->head_len = 0;
    bytes = sbx_slice_skip(bytes, n);
  }
  return SBX_OK;
}

int sbx_frames_finish(const sbx_frames *decoder, sbx_err *err) {
  if (decoder->head_len == 0)
    return SBX_OK;
  return sbx_err_set(err, SBX_EPROTO, "the stream ended inside a frame");
}
