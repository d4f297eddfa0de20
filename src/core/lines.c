/* lines.c - splits a stream into lines.
 *
 * Invariant: only a line that arrives in pieces is copied; never more than `max` bytes are held. */
#include "core/lines.h"

#include "core/err.h"

void sbx_lines_init(sbx_lines *decoder, size_t max, sbx_lines_fn fn, void *arg) {
  decoder->fn = fn;
  decoder->arg = arg;
  sbx_buf_init(&decoder->partial, max);
}

void sbx_lines_deinit(sbx_lines *decoder) {
  sbx_buf_deinit(&decoder->partial);
}

static int hand_on(sbx_lines *decoder, sbx_slice line, sbx_err *err) {
  if (line.len > 0 && line.ptr[line.len - 1] == '\r')
    line.len--;
  return line.len > 0 ? decoder->fn(decoder->arg, line, err) : SBX_OK;
}

static int keep(sbx_lines *decoder, sbx_slice part, sbx_err *err) {
  int rc = sbx_buf_append_slice(&decoder->partial, part);
  if (rc == SBX_ETOOBIG)
    return sbx_err_set(err, rc, "a line of the reply is longer than %zu bytes",
                       decoder->partial.max);
  return rc == SBX_OK ? SBX_OK : sbx_err_set(err, rc, NULL);
}

int sbx_lines_feed(sbx_lines *decoder, sbx_slice bytes, sbx_err *err) {
  while (bytes.len > 0) {
    size_t end = sbx_slice_find(bytes, '\n');
    sbx_slice line = sbx_slice_of(bytes.ptr, end);
    if (end == bytes.len)
      return keep(decoder, bytes, err);
    int rc;
    if (decoder->partial.len == 0 && line.len <= decoder->partial.max) {
      rc = hand_on(decoder, line, err);
    } else {
      rc = keep(decoder, line, err);
      if (rc == SBX_OK)
        rc = hand_on(decoder, sbx_buf_slice(&decoder->partial), err);
      sbx_buf_truncate(&decoder->partial, 0);
    }
    if (rc != SBX_OK)
      return rc;
    bytes = sbx_slice_skip(bytes, end + 1);
  }
  return SBX_OK;
}

int sbx_lines_finish(sbx_lines *decoder, sbx_err *err) {
  int rc = hand_on(decoder, sbx_buf_slice(&decoder->partial), err);
  sbx_buf_truncate(&decoder->partial, 0);
  return rc;
}
