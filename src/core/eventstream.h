/* eventstream.h - decoder for the messages of AWS's event streams
 * (application/vnd.amazon.eventstream). Sans-I/O.
 *
 * A message is its length, the length of its headers, a checksum of these two, the headers, the
 * payload, and a checksum of all that: numbers are big-endian, checksums are CRC-32. */
#ifndef SBX_EVENTSTREAM_H
#define SBX_EVENTSTREAM_H

#include "core/buf.h"

/* The headers that say what a message is; empty where it has no such header. All is borrowed. */
typedef struct sbx_event {
  sbx_slice kind;    /* ":message-type": "event", "exception" or "error" */
  sbx_slice name;    /* ":event-type", ":exception-type" or ":error-code" */
  sbx_slice message; /* ":error-message" */
  sbx_slice payload;
} sbx_event;

/* Returns 0, or a code with `err` filled to stop the decoder. */
typedef int (*sbx_event_fn)(void *arg, const sbx_event *event, sbx_err *err);

typedef struct sbx_eventstream {
  sbx_event_fn fn;
  void *arg;
  sbx_buf held; /* a message that has come in part; its cap is the longest one that is taken */
} sbx_eventstream;

/* Allocates nothing. */
void sbx_eventstream_init(sbx_eventstream *stream, size_t max_message, sbx_event_fn fn, void *arg);
void sbx_eventstream_deinit(sbx_eventstream *stream);
/* Takes bytes at any split. Errors: SBX_EPROTO, SBX_ETOOBIG, SBX_ENOMEM, or the callback's own.
 * After an error it must not be fed again. */
int sbx_eventstream_feed(sbx_eventstream *stream, sbx_slice bytes, sbx_err *err);
/* Whether the stream may end here: SBX_ENET inside a message. */
int sbx_eventstream_finish(const sbx_eventstream *stream, sbx_err *err);

#endif
