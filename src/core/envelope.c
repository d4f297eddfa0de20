/* envelope.c - decoder and encoder for enveloped streams.
 *
 * Invariant: at most one envelope is held, and never more of it than `max`; an envelope that
 * arrives in one piece is handed on without a copy. */
#include "core/envelope.h"

#include "core/err.h"

#include <string.h>

void sbx_envelope_init(sbx_envelope *decoder, size_t max, sbx_envelope_fn fn, void *arg) {
  memset(decoder, 0, sizeof *decoder);
  decoder->fn = fn;
  decoder->arg = arg;
  sbx_buf_init(&decoder->payload, max);
}

void sbx_envelope_init_plain(sbx_envelope *decoder, size_t max, sbx_envelope_fn fn, void *arg) {
  sbx_envelope_init(decoder, max, fn, arg);
  decoder->plain = true;
}

void sbx_envelope_deinit(sbx_envelope *decoder) {
  sbx_buf_deinit(&decoder->payload);
}

static size_t take_head(sbx_envelope *decoder, sbx_slice bytes) {
  size_t n = sizeof decoder->head - decoder->head_len;
  if (n > bytes.len)
    n = bytes.len;
  memcpy(decoder->head + decoder->head_len, bytes.ptr, n);
  decoder->head_len += n;
  return n;
}

static int check_head(sbx_envelope *decoder, sbx_err *err) {
  const unsigned char *head = decoder->head;
  if ((head[0] & ~(decoder->plain ? 0 : SBX_ENVELOPE_END)) != 0)
    return sbx_err_set(err, SBX_EPROTO, "the stream has an envelope with unknown flags 0x%02x",
                       head[0]);
  decoder->payload_len =
      (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
  if (decoder->payload_len > decoder->payload.max)
    return sbx_err_set(err, SBX_ETOOBIG,
                       "the stream has an envelope of %zu bytes; at most %zu are taken",
                       decoder->payload_len, decoder->payload.max);
  return SBX_OK;
}

static int hand_on(sbx_envelope *decoder, sbx_slice payload, sbx_err *err) {
  bool is_end = (decoder->head[0] & SBX_ENVELOPE_END) != 0;
  decoder->ended = is_end;
  decoder->head_len = 0;
  int rc = decoder->fn(decoder->arg, is_end, payload, err);
  sbx_buf_truncate(&decoder->payload, 0);
  return rc;
}

/* Takes what it can of the current payload; *used says how much that was. */
static int take_payload(sbx_envelope *decoder, sbx_slice bytes, size_t *used, sbx_err *err) {
  size_t missing = decoder->payload_len - decoder->payload.len;
  *used = missing < bytes.len ? missing : bytes.len;
  if (decoder->payload.len == 0 && *used == missing)
    return hand_on(decoder, sbx_slice_of(bytes.ptr, missing), err);
  int rc = sbx_buf_append(&decoder->payload, bytes.ptr, *used);
  if (rc != SBX_OK)
    return sbx_err_set(err, rc, NULL);
  if (*used < missing)
    return SBX_OK;
  return hand_on(decoder, sbx_buf_slice(&decoder->payload), err);
}

int sbx_envelope_feed(sbx_envelope *decoder, sbx_slice bytes, sbx_err *err) {
  while (bytes.len > 0) {
    size_t used;
    int rc = SBX_OK;
    if (decoder->ended)
      return sbx_err_set(err, SBX_EPROTO, "the stream goes on after its end");
    if (decoder->head_len < sizeof decoder->head) {
      used = take_head(decoder, bytes);
      if (decoder->head_len == sizeof decoder->head) {
        rc = check_head(decoder, err);
        if (rc == SBX_OK && decoder->payload_len == 0)
          rc = hand_on(decoder, sbx_slice_of(NULL, 0), err);
      }
    } else {
      rc = take_payload(decoder, bytes, &used, err);
    }
    if (rc != SBX_OK)
      return rc;
    bytes = sbx_slice_skip(bytes, used);
  }
  return SBX_OK;
}

int sbx_envelope_finish(const sbx_envelope *decoder, sbx_err *err) {
  if (decoder->ended || (decoder->plain && decoder->head_len == 0))
    return SBX_OK;
  return sbx_err_set(err, SBX_EPROTO, "the stream broke off: its end is missing");
}

int sbx_envelope_append(sbx_buf *out, unsigned flags, sbx_slice payload) {
  if (payload.len > UINT32_MAX) {
    if (out->error == SBX_OK)
      out->error = SBX_ETOOBIG;
    return out->error;
  }
  unsigned len = (unsigned)payload.len;
  const char head[5] = {(char)flags, (char)(len >> 24), (char)(len >> 16), (char)(len >> 8),
                        (char)len};
  sbx_buf_append(out, head, sizeof head);
  return sbx_buf_append_slice(out, payload);
}
