/* egress_tls.h - which host a TLS client says it wants: the server name of its ClientHello.
 * Sans-I/O. */
#ifndef SBX_EGRESS_TLS_H
#define SBX_EGRESS_TLS_H

#include "core/buf.h"

/* No ClientHello is longer; those with post-quantum keys have about 2 KiB. */
enum { SBX__EGRESS_HELLO_MAX = 16 * 1024 };
/* The first byte of every TLS connection. */
enum { SBX__EGRESS_TLS_FIRST = 0x16 };

typedef struct sbx__egress_hello {
  sbx_buf message; /* the handshake message, out of its records */
  uint8_t header[5];
  size_t header_len;
  size_t left; /* of the record */
  bool done;
  sbx_slice name; /* once `done`: as sent, within `message`; empty when there is none */
} sbx__egress_hello;

void sbx__egress_hello_init(sbx__egress_hello *hello);
void sbx__egress_hello_deinit(sbx__egress_hello *hello);
/* Takes bytes at any split, until `done`; those behind it are not looked at. SBX_EPROTO: it is no
 * ClientHello, is too long, or names more than one host; `*why` says which. SBX_ENOMEM. After an
 * error it must not be fed again. */
int sbx__egress_hello_feed(sbx__egress_hello *hello, sbx_slice bytes, const char **why);

#endif
