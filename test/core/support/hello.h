/* hello.h - makes TLS ClientHellos. */
#ifndef SBX_TEST_HELLO_H
#define SBX_TEST_HELLO_H

#include "core/buf.h"

#include <string.h>

static inline void hello_number(sbx_buf *out, size_t value, int bytes) {
  while (bytes-- > 0)
    sbx_buf_append_char(out, (char)(value >> (8 * bytes)));
}

/* A handshake message of type ClientHello, in records of at most `record` bytes. */
static inline void hello_write_message(sbx_buf *out, sbx_slice body, size_t record) {
  sbx_buf message;
  sbx_buf_init(&message, SIZE_MAX);
  hello_number(&message, 1, 1);
  hello_number(&message, body.len, 3);
  sbx_buf_append_slice(&message, body);
  for (size_t at = 0; at < message.len; at += record) {
    size_t len = message.len - at < record ? message.len - at : record;
    hello_number(out, 0x160301, 3);
    hello_number(out, len, 2);
    sbx_buf_append(out, message.ptr + at, len);
  }
  sbx_buf_deinit(&message);
}

/* With this server name; NULL: without one. */
static inline void hello_write(sbx_buf *out, const char *name, size_t record) {
  sbx_buf body, extensions;
  sbx_buf_init(&body, SIZE_MAX);
  sbx_buf_init(&extensions, SIZE_MAX);
  hello_number(&extensions, 43, 2); /* supported_versions */
  hello_number(&extensions, 3, 2);
  hello_number(&extensions, 0x020304, 3);
  if (name != NULL) {
    size_t len = strlen(name);
    hello_number(&extensions, 0, 2);
    hello_number(&extensions, len + 5, 2);
    hello_number(&extensions, len + 3, 2);
    hello_number(&extensions, 0, 1);
    hello_number(&extensions, len, 2);
    sbx_buf_append(&extensions, name, len);
  }
  hello_number(&extensions, 21, 2); /* padding */
  hello_number(&extensions, 70, 2);
  for (int i = 0; i < 70; i++)
    sbx_buf_append_char(&extensions, '\0');
  hello_number(&body, 0x0303, 2);
  for (int i = 0; i < 32; i++)
    sbx_buf_append_char(&body, 'R');
  hello_number(&body, 0, 1);
  hello_number(&body, 4, 2);
  hello_number(&body, 0x13011302, 4);
  hello_number(&body, 0x0100, 2);
  hello_number(&body, extensions.len, 2);
  sbx_buf_append_slice(&body, sbx_buf_slice(&extensions));
  hello_write_message(out, sbx_buf_slice(&body), record);
  sbx_buf_deinit(&body);
  sbx_buf_deinit(&extensions);
}

#endif
