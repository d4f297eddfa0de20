/* eventstream.c - decoder for the messages of AWS's event streams.
 *
 * Invariant: a length is used only when the checksum over it was right, and nothing of a message is
 * told before all of it was checked. */
#include "core/eventstream.h"

#include "core/crc32.h"
#include "core/err.h"

enum { PRELUDE = 12, CHECKSUM = 4, LEAST = PRELUDE + CHECKSUM };

void sbx_eventstream_init(sbx_eventstream *stream, size_t max_message, sbx_event_fn fn, void *arg) {
  stream->fn = fn;
  stream->arg = arg;
  sbx_buf_init(&stream->held, max_message);
}

void sbx_eventstream_deinit(sbx_eventstream *stream) {
  sbx_buf_deinit(&stream->held);
}

/* A number of 1, 2 or 4 bytes at the front, which is taken off; false: it is cut. */
static bool take_number(sbx_slice *in, size_t bytes, size_t *out) {
  if (in->len < bytes)
    return false;
  *out = 0;
  for (size_t i = 0; i < bytes; i++)
    *out = *out << 8 | (unsigned char)in->ptr[i];
  *in = sbx_slice_skip(*in, bytes);
  return true;
}

static bool take_bytes(sbx_slice *in, size_t len, sbx_slice *out) {
  if (in->len < len)
    return false;
  *out = sbx_slice_of(in->ptr, len);
  *in = sbx_slice_skip(*in, len);
  return true;
}

static size_t number_at(sbx_slice in, size_t at) {
  size_t number = 0;
  in = sbx_slice_skip(in, at);
  take_number(&in, 4, &number);
  return number;
}

/* ---- headers -------------------------------------------------------------------------------- */

enum { BYTES = 6, TEXT = 7, TYPES = 10 };

static bool take_value(sbx_slice *in, size_t type, sbx_slice *value) {
  /* What it takes: true, false, byte, int16, int32, int64, bytes, text, timestamp, UUID. */
  static const unsigned char sizes[TYPES] = {0, 0, 1, 2, 4, 8, 0, 0, 8, 16};
  size_t len = 0;
  if (type == BYTES || type == TEXT)
    return take_number(in, 2, &len) && take_bytes(in, len, value);
  return type < TYPES && take_bytes(in, sizes[type], value);
}

static void take_header(sbx_event *event, sbx_slice name, sbx_slice value) {
  if (sbx_slice_eq_str(name, ":message-type"))
    event->kind = value;
  else if (sbx_slice_eq_str(name, ":event-type") || sbx_slice_eq_str(name, ":exception-type") ||
           sbx_slice_eq_str(name, ":error-code"))
    event->name = value;
  else if (sbx_slice_eq_str(name, ":error-message"))
    event->message = value;
}

static bool take_headers(sbx_event *event, sbx_slice in) {
  while (in.len > 0) {
    size_t len = 0, type = 0;
    sbx_slice name = {NULL, 0}, value = {NULL, 0};
    if (!take_number(&in, 1, &len) || !take_bytes(&in, len, &name) || !take_number(&in, 1, &type) ||
        !take_value(&in, type, &value))
      return false;
    if (type == TEXT)
      take_header(event, name, value);
  }
  return true;
}

/* ---- messages ------------------------------------------------------------------------------- */

/* The length of the message that begins here, of which at least the prelude has come. */
static int check_prelude(const sbx_eventstream *stream, sbx_slice in, size_t *total, sbx_err *err) {
  size_t headers = number_at(in, 4);
  *total = number_at(in, 0);
  if (sbx_crc32(0, sbx_slice_of(in.ptr, 8)) != number_at(in, 8))
    return sbx_err_set(err, SBX_EPROTO, "the event stream has a wrong checksum of a length");
  if (*total < LEAST || headers > *total - LEAST)
    return sbx_err_set(err, SBX_EPROTO, "the event stream has a length that makes no sense");
  if (*total > stream->held.max)
    return sbx_err_set(err, SBX_ETOOBIG, "a message of the event stream is too long");
  return SBX_OK;
}

/* All of a message, whose prelude was checked. */
static int tell(const sbx_eventstream *stream, sbx_slice in, sbx_err *err) {
  size_t headers = number_at(in, 4), end = in.len - CHECKSUM;
  sbx_event event = {.payload = sbx_slice_of(in.ptr + PRELUDE + headers, end - PRELUDE - headers)};
  if (sbx_crc32(0, sbx_slice_of(in.ptr, end)) != number_at(in, end))
    return sbx_err_set(err, SBX_EPROTO, "the event stream has a wrong checksum of a message");
  if (!take_headers(&event, sbx_slice_of(in.ptr + PRELUDE, headers)))
    return sbx_err_set(err, SBX_EPROTO, "the event stream has headers that make no sense");
  return stream->fn(stream->arg, &event, err);
}

/* Tells the whole messages at the front, and takes them off. */
static int take_messages(const sbx_eventstream *stream, sbx_slice *in, sbx_err *err) {
  int rc = SBX_OK;
  while (rc == SBX_OK && in->len >= PRELUDE) {
    size_t total;
    rc = check_prelude(stream, *in, &total, err);
    if (rc != SBX_OK || in->len < total)
      return rc;
    rc = tell(stream, sbx_slice_of(in->ptr, total), err);
    *in = sbx_slice_skip(*in, total);
  }
  return rc;
}

/* Holds as much of the message that has begun as there is; the rest stays in `bytes`. */
static int hold(sbx_eventstream *stream, sbx_slice *bytes, sbx_err *err) {
  sbx_buf *held = &stream->held;
  size_t wanted = PRELUDE;
  if (held->len >= PRELUDE) {
    int rc = check_prelude(stream, sbx_buf_slice(held), &wanted, err);
    if (rc != SBX_OK)
      return rc;
  }
  size_t n = wanted - held->len < bytes->len ? wanted - held->len : bytes->len;
  if (sbx_buf_append(held, bytes->ptr, n) != SBX_OK)
    return sbx_err_set(err, held->error, NULL);
  *bytes = sbx_slice_skip(*bytes, n);
  return SBX_OK;
}

int sbx_eventstream_feed(sbx_eventstream *stream, sbx_slice bytes, sbx_err *err) {
  int rc = SBX_OK;
  while (rc == SBX_OK && bytes.len > 0) {
    if (stream->held.len == 0) {
      rc = take_messages(stream, &bytes, err);
      if (rc != SBX_OK || bytes.len == 0)
        return rc;
    }
    rc = hold(stream, &bytes, err);
    if (rc == SBX_OK) {
      sbx_slice held = sbx_buf_slice(&stream->held);
      rc = take_messages(stream, &held, err);
      sbx_buf_consume(&stream->held, stream->held.len - held.len);
    }
  }
  return rc;
}

int sbx_eventstream_finish(const sbx_eventstream *stream, sbx_err *err) {
  if (stream->held.len == 0)
    return SBX_OK;
  return sbx_err_set(err, SBX_ENET, "the event stream ended inside a message");
}
