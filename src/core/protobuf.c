/* protobuf.c - protocol buffers.
 *
 * Invariant: a field lies wholly inside of its message, or there is none. */
#include "core/protobuf.h"

#include <string.h>

enum { MAX_VARINT = 10, MAX_HEAD = 2 * MAX_VARINT };

/* ---- reader --------------------------------------------------------------------------------- */

/* How many bytes it has; 0: it is cut, or too long. What is above 64 bits is dropped, as it is
 * everywhere. */
static size_t read_varint(sbx_slice s, uint64_t *value) {
  *value = 0;
  for (size_t i = 0; i < s.len && i < MAX_VARINT; i++) {
    unsigned char c = (unsigned char)s.ptr[i];
    *value |= (uint64_t)(c & 0x7f) << (7 * i);
    if (c < 0x80)
      return i + 1;
  }
  return 0;
}

static uint64_t read_fixed(const char *ptr, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; i++)
    value |= (uint64_t)(unsigned char)ptr[i] << (8 * i);
  return value;
}

/* How many bytes the value has, with its length; SIZE_MAX: none that fits. */
static size_t read_value(sbx_slice s, sbx_pb_field *field) {
  size_t head;
  switch (field->type) {
  case SBX_PB_VARINT:
    head = read_varint(s, &field->value);
    return head > 0 ? head : SIZE_MAX;
  case SBX_PB_BYTES:
    head = read_varint(s, &field->value);
    if (head == 0 || field->value > s.len - head)
      return SIZE_MAX;
    field->bytes = sbx_slice_of(s.ptr + head, (size_t)field->value);
    return head + field->bytes.len;
  case SBX_PB_FIXED32:
  case SBX_PB_FIXED64:
    head = field->type == SBX_PB_FIXED32 ? 4 : 8;
    if (s.len < head)
      return SIZE_MAX;
    field->value = read_fixed(s.ptr, head);
    return head;
  }
  return SIZE_MAX; /* groups, which no new message has */
}

bool sbx_pb_next(sbx_slice *rest, sbx_pb_field *field) {
  uint64_t key;
  size_t head = read_varint(*rest, &key);
  if (head == 0 || key >> 3 == 0 || key > UINT32_MAX)
    return false;
  *field = (sbx_pb_field){.number = (uint32_t)(key >> 3), .type = (sbx_pb_type)(key & 7)};
  size_t size = read_value(sbx_slice_skip(*rest, head), field);
  if (size == SIZE_MAX)
    return false;
  *rest = sbx_slice_skip(*rest, head + size);
  return true;
}

int sbx_pb_find(sbx_slice message, uint32_t number, sbx_pb_type type, sbx_pb_field *field) {
  sbx_pb_field next;
  bool found = false;
  while (sbx_pb_next(&message, &next)) {
    if (next.number != number || next.type != type)
      continue;
    *field = next;
    found = true;
  }
  if (message.len > 0)
    return SBX_EPROTO;
  return found ? SBX_OK : SBX_ENOTFOUND;
}

int sbx_pb_get_bytes(sbx_slice message, uint32_t number, sbx_slice *out) {
  sbx_pb_field field;
  int rc = sbx_pb_find(message, number, SBX_PB_BYTES, &field);
  *out = rc == SBX_OK ? field.bytes : sbx_slice_of("", 0);
  return rc == SBX_ENOTFOUND ? SBX_OK : rc;
}

int sbx_pb_get_varint(sbx_slice message, uint32_t number, uint64_t *out) {
  sbx_pb_field field;
  int rc = sbx_pb_find(message, number, SBX_PB_VARINT, &field);
  *out = rc == SBX_OK ? field.value : 0;
  return rc == SBX_ENOTFOUND ? SBX_OK : rc;
}

float sbx_pb_float(uint64_t value) {
  uint32_t bits = (uint32_t)value;
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

/* ---- writer --------------------------------------------------------------------------------- */

static size_t write_varint(char *out, uint64_t value) {
  size_t n = 0;
  for (; value >= 0x80; value >>= 7)
    out[n++] = (char)(0x80 | (value & 0x7f));
  out[n++] = (char)value;
  return n;
}

static size_t write_key(char *out, uint32_t number, sbx_pb_type type) {
  return write_varint(out, (uint64_t)number << 3 | (uint64_t)type);
}

int sbx_pb_put_varint(sbx_buf *out, uint32_t number, uint64_t value) {
  char head[MAX_HEAD];
  size_t n = write_key(head, number, SBX_PB_VARINT);
  n += write_varint(head + n, value);
  return sbx_buf_append(out, head, n);
}

int sbx_pb_put_float(sbx_buf *out, uint32_t number, float value) {
  char head[MAX_HEAD];
  uint32_t bits;
  size_t n = write_key(head, number, SBX_PB_FIXED32);
  memcpy(&bits, &value, sizeof bits);
  for (size_t i = 0; i < sizeof bits; i++)
    head[n++] = (char)(bits >> (8 * i));
  return sbx_buf_append(out, head, n);
}

int sbx_pb_put_bytes(sbx_buf *out, uint32_t number, sbx_slice bytes) {
  char head[MAX_HEAD];
  size_t n = write_key(head, number, SBX_PB_BYTES);
  n += write_varint(head + n, bytes.len);
  sbx_buf_append(out, head, n);
  return sbx_buf_append_slice(out, bytes);
}

int sbx_pb_put_str(sbx_buf *out, uint32_t number, const char *text) {
  return sbx_pb_put_bytes(out, number, sbx_slice_str(text));
}

int sbx_pb_put_pair(sbx_buf *out, uint32_t number, sbx_slice key, sbx_slice value) {
  size_t at = out->len;
  sbx_pb_put_bytes(out, 1, key);
  sbx_pb_put_bytes(out, 2, value);
  return sbx_pb_wrap(out, number, at);
}

int sbx_pb_wrap(sbx_buf *out, uint32_t number, size_t at) {
  char head[MAX_HEAD];
  if (out->error != SBX_OK)
    return out->error;
  size_t len = out->len - at;
  size_t n = write_key(head, number, SBX_PB_BYTES);
  n += write_varint(head + n, len);
  if (sbx_buf_append(out, head, n) != SBX_OK) /* the room; its bytes go to the front */
    return out->error;
  memmove(out->ptr + at + n, out->ptr + at, len);
  memcpy(out->ptr + at, head, n);
  return SBX_OK;
}
