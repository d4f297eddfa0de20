/* protobuf.h - protocol buffers, as far as messages of services need them: a writer of fields, and
 * a reader that goes from field to field. Sans-I/O.
 *
 * There is no schema: who reads a message looks at the numbers that he knows and skips the others,
 * so that a service may add fields. Nothing is copied, and nothing is recursive: a message inside
 * a message is a slice, which is read by another call. */
#ifndef SBX_PROTOBUF_H
#define SBX_PROTOBUF_H

#include "core/buf.h"

typedef enum sbx_pb_type {
  SBX_PB_VARINT = 0,
  SBX_PB_FIXED64 = 1,
  SBX_PB_BYTES = 2, /* strings, bytes and messages */
  SBX_PB_FIXED32 = 5,
} sbx_pb_type;

typedef struct sbx_pb_field {
  uint32_t number;
  sbx_pb_type type;
  uint64_t value;  /* of the three types of numbers, as the bits that came */
  sbx_slice bytes; /* of the fourth; a part of the message */
} sbx_pb_field;

/* Takes the next field off `rest`. False at the end, or where it is no message: then *rest is not
 * empty. */
bool sbx_pb_next(sbx_slice *rest, sbx_pb_field *field);
/* The last field with this number and type, as the format has it for one that is there more than
 * once. SBX_ENOTFOUND, or SBX_EPROTO: the message is none. */
int sbx_pb_find(sbx_slice message, uint32_t number, sbx_pb_type type, sbx_pb_field *field);
/* The same for what may be missing: empty, or 0. SBX_OK or SBX_EPROTO. */
int sbx_pb_get_bytes(sbx_slice message, uint32_t number, sbx_slice *out);
int sbx_pb_get_varint(sbx_slice message, uint32_t number, uint64_t *out);
/* A fixed32 as the float that it is. */
float sbx_pb_float(uint64_t value);

/* Each appends one field; numbers that are 0 are written, too. Returns out->error. */
int sbx_pb_put_varint(sbx_buf *out, uint32_t number, uint64_t value);
int sbx_pb_put_float(sbx_buf *out, uint32_t number, float value);
int sbx_pb_put_bytes(sbx_buf *out, uint32_t number, sbx_slice bytes);
/* Text of our own. */
int sbx_pb_put_str(sbx_buf *out, uint32_t number, const char *text);
/* An entry of a map of strings. */
int sbx_pb_put_pair(sbx_buf *out, uint32_t number, sbx_slice key, sbx_slice value);
/* Makes the bytes from `at` on, already written, the content of a field. */
int sbx_pb_wrap(sbx_buf *out, uint32_t number, size_t at);

#endif
