/* egress_tls.c - see the header.
 *
 * Strict: what a server might read in another way than we do is refused, since the name that is
 * compared must be the name that the server sees. */
#include "providers/local/egress_tls.h"

enum { RECORD_HANDSHAKE = 22, RECORD_MAX = 16 * 1024, CLIENT_HELLO = 1, MESSAGE_HEADER = 4 };
enum { EXTENSION_SERVER_NAME = 0, NAME_HOST = 0 };

void sbx__egress_hello_init(sbx__egress_hello *hello) {
  *hello = (sbx__egress_hello){0};
  sbx_buf_init(&hello->message, SBX__EGRESS_HELLO_MAX);
}

void sbx__egress_hello_deinit(sbx__egress_hello *hello) {
  sbx_buf_deinit(&hello->message);
}

/* ---- the message ---------------------------------------------------------------------------- */

/* Takes a big-endian number off the front. */
static bool take_number(sbx_slice *in, size_t bytes, size_t *out) {
  if (in->len < bytes)
    return false;
  *out = 0;
  for (size_t i = 0; i < bytes; i++)
    *out = *out << 8 | (unsigned char)in->ptr[i];
  *in = sbx_slice_skip(*in, bytes);
  return true;
}

/* Takes a vector whose length stands before it in `bytes` bytes. */
static bool take_vector(sbx_slice *in, size_t bytes, sbx_slice *out) {
  size_t len;
  if (!take_number(in, bytes, &len) || len > in->len)
    return false;
  *out = sbx_slice_of(in->ptr, len);
  *in = sbx_slice_skip(*in, len);
  return true;
}

/* Exactly one host name. */
static bool read_server_name(sbx__egress_hello *hello, sbx_slice in) {
  sbx_slice list, name;
  size_t type;
  if (!take_vector(&in, 2, &list) || in.len > 0)
    return false;
  if (!take_number(&list, 1, &type) || type != NAME_HOST || !take_vector(&list, 2, &name))
    return false;
  hello->name = name;
  return list.len == 0 && name.len > 0;
}

static bool read_extensions(sbx__egress_hello *hello, sbx_slice in) {
  bool named = false;
  while (in.len > 0) {
    size_t type;
    sbx_slice data;
    if (!take_number(&in, 2, &type) || !take_vector(&in, 2, &data))
      return false;
    if (type != EXTENSION_SERVER_NAME)
      continue;
    if (named || !read_server_name(hello, data))
      return false;
    named = true;
  }
  return true;
}

/* `in`: the message behind its header. */
static bool read_hello(sbx__egress_hello *hello, sbx_slice in) {
  enum { VERSION_AND_RANDOM = 34 };
  sbx_slice session, ciphers, compression, extensions;
  if (in.len < VERSION_AND_RANDOM || in.ptr[0] != 3)
    return false;
  in = sbx_slice_skip(in, VERSION_AND_RANDOM);
  if (!take_vector(&in, 1, &session) || session.len > 32)
    return false;
  if (!take_vector(&in, 2, &ciphers) || ciphers.len == 0 || ciphers.len % 2 != 0)
    return false;
  if (!take_vector(&in, 1, &compression) || compression.len == 0)
    return false;
  if (in.len == 0)
    return true; /* the oldest form, without extensions */
  return take_vector(&in, 2, &extensions) && in.len == 0 && read_extensions(hello, extensions);
}

/* ---- records -------------------------------------------------------------------------------- */

static int begin_record(sbx__egress_hello *hello, const char **why) {
  hello->header_len = 0;
  hello->left = (size_t)hello->header[3] << 8 | hello->header[4];
  if (hello->header[0] == RECORD_HANDSHAKE && hello->header[1] == 3 && hello->left > 0 &&
      hello->left <= RECORD_MAX)
    return SBX_OK;
  *why = "it does not begin with a TLS ClientHello";
  return SBX_EPROTO;
}

static int take_fragment(sbx__egress_hello *hello, sbx_slice bytes, const char **why) {
  size_t len = 0;
  int rc = sbx_buf_append_slice(&hello->message, bytes);
  hello->left -= bytes.len;
  if (rc == SBX_ENOMEM)
    return rc;
  sbx_slice in = sbx_buf_slice(&hello->message);
  *why = "its TLS ClientHello is too long";
  if (rc != SBX_OK)
    return SBX_EPROTO;
  if (in.len > 0 && in.ptr[0] != CLIENT_HELLO) {
    *why = "it does not begin with a TLS ClientHello";
    return SBX_EPROTO;
  }
  if (in.len < MESSAGE_HEADER)
    return SBX_OK;
  in = sbx_slice_skip(in, 1);
  take_number(&in, 3, &len);
  if (len > SBX__EGRESS_HELLO_MAX - MESSAGE_HEADER)
    return SBX_EPROTO;
  if (in.len < len)
    return SBX_OK;
  *why = "its TLS ClientHello is malformed";
  hello->done = true;
  return in.len == len && hello->left == 0 && read_hello(hello, in) ? SBX_OK : SBX_EPROTO;
}

int sbx__egress_hello_feed(sbx__egress_hello *hello, sbx_slice bytes, const char **why) {
  int rc = SBX_OK;
  while (rc == SBX_OK && bytes.len > 0 && !hello->done) {
    if (hello->left > 0) {
      sbx_slice part = sbx_slice_of(bytes.ptr, bytes.len < hello->left ? bytes.len : hello->left);
      bytes = sbx_slice_skip(bytes, part.len);
      rc = take_fragment(hello, part, why);
    } else {
      hello->header[hello->header_len++] = (uint8_t)bytes.ptr[0];
      bytes = sbx_slice_skip(bytes, 1);
      if (hello->header_len == sizeof hello->header)
        rc = begin_record(hello, why);
    }
  }
  return rc;
}
