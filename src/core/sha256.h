/* sha256.h - SHA-256 (FIPS 180-4) and its HMAC (RFC 2104), for signatures. Sans-I/O. */
#ifndef SBX_SHA256_H
#define SBX_SHA256_H

#include "core/buf.h"

enum { SBX_SHA256_BYTES = 32, SBX_SHA256_BLOCK = 64 };

typedef struct sbx_sha256 {
  uint32_t state[8];
  uint64_t bytes; /* fed so far */
  unsigned char block[SBX_SHA256_BLOCK];
} sbx_sha256;

void sbx_sha256_init(sbx_sha256 *hash);
void sbx_sha256_feed(sbx_sha256 *hash, sbx_slice bytes);
/* The digest; `hash` is wiped. */
void sbx_sha256_end(sbx_sha256 *hash, unsigned char out[SBX_SHA256_BYTES]);

void sbx_hmac_sha256(unsigned char out[SBX_SHA256_BYTES], sbx_slice key, sbx_slice bytes);
/* Appends the digest in lower-case hexadecimal digits. */
int sbx_sha256_put_hex(sbx_buf *out, const unsigned char digest[SBX_SHA256_BYTES]);

#endif
