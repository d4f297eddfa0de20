/* envelope.h - decoder and encoder for enveloped streams: the Connect protocol's, and gRPC's.
 * Sans-I/O.
 *
 * An envelope is one flag byte, a 32-bit big-endian length and the payload. Flag 0x02 marks the
 * last one of a stream; a stream without it is broken, never a success. (connect protocol,
 * "streaming RPCs"; compression is never asked for, so flag 0x01 is an error here.) gRPC has the
 * same form without a last one, since trailers say the end. */
#ifndef SBX_ENVELOPE_H
#define SBX_ENVELOPE_H

#include "core/buf.h"

enum { SBX_ENVELOPE_COMPRESSED = 1, SBX_ENVELOPE_END = 2 };

/* Gets each whole payload. Returns 0, or a code with `err` filled to stop the decoder. */
typedef int (*sbx_envelope_fn)(void *arg, bool is_end, sbx_slice payload, sbx_err *err);

typedef struct sbx_envelope {
  sbx_envelope_fn fn;
  void *arg;
  sbx_buf payload; /* of the envelope that is not complete yet; its max is the largest allowed */
  unsigned char head[5];
  size_t head_len;
  size_t payload_len;
  bool ended; /* the end envelope was seen */
  bool plain; /* gRPC: there is none */
} sbx_envelope;

/* `max` is the largest payload in bytes. */
void sbx_envelope_init(sbx_envelope *decoder, size_t max, sbx_envelope_fn fn, void *arg);
/* The same for gRPC: every payload is a message, and `is_end` is never set. */
void sbx_envelope_init_plain(sbx_envelope *decoder, size_t max, sbx_envelope_fn fn, void *arg);
void sbx_envelope_deinit(sbx_envelope *decoder);
/* Takes bytes at any split. Errors: SBX_EPROTO (unknown flag, compressed, bytes after the end),
 * SBX_ETOOBIG, SBX_ENOMEM, or the callback's own. After an error it must not be fed again. */
int sbx_envelope_feed(sbx_envelope *decoder, sbx_slice bytes, sbx_err *err);
/* Whether the stream may end here: SBX_EPROTO when the end envelope is missing, or for gRPC a part
 * of one. */
int sbx_envelope_finish(const sbx_envelope *decoder, sbx_err *err);

/* Appends one envelope with these flags around `payload`. */
int sbx_envelope_append(sbx_buf *out, unsigned flags, sbx_slice payload);

#endif
