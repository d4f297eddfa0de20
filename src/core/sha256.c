/* sha256.c - SHA-256 and its HMAC. */
#include "core/sha256.h"

#include "core/alloc.h"

#include <string.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, unsigned n) {
  return x >> n | x << (32 - n);
}

static void load(uint32_t w[64], const unsigned char *block) {
  for (size_t i = 0; i < 16; i++)
    w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
           (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  for (size_t i = 16; i < 64; i++) {
    uint32_t a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
}

static void take_block(uint32_t state[8], const unsigned char *block) {
  uint32_t w[64];
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  load(w, block);
  for (size_t i = 0; i < 64; i++) {
    uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    uint32_t one = h + s1 + ((e & f) ^ (~e & g)) + constants[i] + w[i];
    uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    uint32_t two = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const uint32_t add[8] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; i++)
    state[i] += add[i];
}

void sbx_sha256_init(sbx_sha256 *hash) {
  static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, start, sizeof start);
  hash->bytes = 0;
}

void sbx_sha256_feed(sbx_sha256 *hash, sbx_slice bytes) {
  size_t held = (size_t)(hash->bytes % SBX_SHA256_BLOCK);
  hash->bytes += bytes.len;
  while (bytes.len > 0) {
    if (held == 0 && bytes.len >= SBX_SHA256_BLOCK) {
      take_block(hash->state, (const unsigned char *)bytes.ptr);
      bytes = sbx_slice_skip(bytes, SBX_SHA256_BLOCK);
      continue;
    }
    size_t n = SBX_SHA256_BLOCK - held < bytes.len ? SBX_SHA256_BLOCK - held : bytes.len;
    memcpy(hash->block + held, bytes.ptr, n);
    held = (held + n) % SBX_SHA256_BLOCK;
    if (held == 0)
      take_block(hash->state, hash->block);
    bytes = sbx_slice_skip(bytes, n);
  }
}

static void put_number(unsigned char *out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    out[i] = (unsigned char)(value >> 8 * (bytes - 1 - i));
}

void sbx_sha256_end(sbx_sha256 *hash, unsigned char out[SBX_SHA256_BYTES]) {
  static const char padding[SBX_SHA256_BLOCK] = {(char)0x80};
  unsigned char bits[8];
  size_t held = (size_t)(hash->bytes % SBX_SHA256_BLOCK);
  put_number(bits, hash->bytes * 8, sizeof bits);
  sbx_sha256_feed(hash, sbx_slice_of(padding, (held < 56 ? 56 : 120) - held));
  sbx_sha256_feed(hash, sbx_slice_of((const char *)bits, sizeof bits));
  for (size_t i = 0; i < 8; i++)
    put_number(out + 4 * i, hash->state[i], 4);
  sbx_wipe(hash, sizeof *hash);
}

void sbx_hmac_sha256(unsigned char out[SBX_SHA256_BYTES], sbx_slice key, sbx_slice bytes) {
  sbx_sha256 hash;
  unsigned char pad[SBX_SHA256_BLOCK] = {0};
  if (key.len > sizeof pad) {
    sbx_sha256_init(&hash);
    sbx_sha256_feed(&hash, key);
    sbx_sha256_end(&hash, pad);
  } else if (key.len > 0) {
    memcpy(pad, key.ptr, key.len);
  }
  for (size_t i = 0; i < sizeof pad; i++)
    pad[i] ^= 0x36;
  sbx_sha256_init(&hash);
  sbx_sha256_feed(&hash, sbx_slice_of((const char *)pad, sizeof pad));
  sbx_sha256_feed(&hash, bytes);
  sbx_sha256_end(&hash, out);
  for (size_t i = 0; i < sizeof pad; i++)
    pad[i] ^= 0x36 ^ 0x5c;
  sbx_sha256_init(&hash);
  sbx_sha256_feed(&hash, sbx_slice_of((const char *)pad, sizeof pad));
  sbx_sha256_feed(&hash, sbx_slice_of((const char *)out, SBX_SHA256_BYTES));
  sbx_sha256_end(&hash, out);
  sbx_wipe(pad, sizeof pad);
}

int sbx_sha256_put_hex(sbx_buf *out, const unsigned char digest[SBX_SHA256_BYTES]) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < SBX_SHA256_BYTES; i++) {
    sbx_buf_append_char(out, digits[digest[i] >> 4]);
    sbx_buf_append_char(out, digits[digest[i] & 15]);
  }
  return out->error;
}
