/* event_model.h - writes the messages of an event stream, for tests. */
#ifndef SBX_TEST_EVENT_MODEL_H
#define SBX_TEST_EVENT_MODEL_H

#include "core/buf.h"
#include "core/crc32.h"

static inline void event_put_number(sbx_buf *out, size_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; i--)
    sbx_buf_append_char(out, (char)(value >> 8 * i & 0xff));
}

/* A header whose value is a text. */
static inline void event_put_header(sbx_buf *out, const char *name, const char *value) {
  sbx_slice text = sbx_slice_str(value);
  event_put_number(out, sbx_slice_str(name).len, 1);
  sbx_buf_append_str(out, name);
  event_put_number(out, 7, 1);
  event_put_number(out, text.len, 2);
  sbx_buf_append_slice(out, text);
}

static inline void event_put_message(sbx_buf *out, sbx_slice headers, sbx_slice payload) {
  size_t begin = out->len;
  event_put_number(out, headers.len + payload.len + 16, 4);
  event_put_number(out, headers.len, 4);
  event_put_number(out, sbx_crc32(0, sbx_slice_skip(sbx_buf_slice(out), begin)), 4);
  sbx_buf_append_slice(out, headers);
  sbx_buf_append_slice(out, payload);
  event_put_number(out, sbx_crc32(0, sbx_slice_skip(sbx_buf_slice(out), begin)), 4);
}

/* ":message-type" is `kind`; the header `name` has `value`. */
static inline void event_put(sbx_buf *out, const char *kind, const char *name, const char *value,
                             const char *payload) {
  sbx_buf headers;
  sbx_buf_init(&headers, 4096);
  event_put_header(&headers, ":message-type", kind);
  event_put_header(&headers, name, value);
  event_put_message(out, sbx_buf_slice(&headers), sbx_slice_str(payload));
  sbx_buf_deinit(&headers);
}

#endif
