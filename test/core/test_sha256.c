/* Tests of SHA-256 with NIST's vectors, of its HMAC with those of RFC 4231, and of CRC-32. */
#include "core/crc32.h"
#include "core/sha256.h"

#include "support/core_test.h"

static void assert_digest(const unsigned char digest[SBX_SHA256_BYTES], const char *hex) {
  sbx_buf text;
  sbx_buf_init(&text, 100);
  assert_int_equal(sbx_sha256_put_hex(&text, digest), SBX_OK);
  assert_slice(sbx_buf_slice(&text), sbx_slice_str(hex));
  sbx_buf_deinit(&text);
}

static void assert_hash(sbx_slice bytes, size_t piece, const char *hex) {
  unsigned char digest[SBX_SHA256_BYTES];
  sbx_sha256 hash;
  sbx_sha256_init(&hash);
  for (size_t at = 0; at < bytes.len; at += piece)
    sbx_sha256_feed(&hash,
                    sbx_slice_of(bytes.ptr + at, bytes.len - at < piece ? bytes.len - at : piece));
  sbx_sha256_end(&hash, digest);
  assert_digest(digest, hex);
}

static void test_vectors(void **state) {
  static const struct {
    sbx_slice bytes;
    const char *hex;
  } cases[] = {
      {BYTES(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {BYTES("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {BYTES("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {BYTES("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopq"
             "klmnopqrlmnopqrsmnopqrstnopqrstu"),
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    for (size_t piece = 1; piece <= cases[i].bytes.len + 1; piece++)
      assert_hash(cases[i].bytes, piece, cases[i].hex);
  }
}

static void test_a_million_letters(void **state) {
  enum { MANY = 1000000 };
  char *text = malloc(MANY);
  (void)state;
  assert_non_null(text);
  memset(text, 'a', MANY);
  assert_hash(sbx_slice_of(text, MANY), 997,
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  assert_hash(sbx_slice_of(text, MANY), MANY,
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  free(text);
}

static void test_hmac(void **state) {
  char aa[131], data[50];
  memset(aa, 0xaa, sizeof aa);
  memset(data, 0xdd, sizeof data);
  const struct {
    sbx_slice key, bytes;
    const char *hex;
  } cases[] = {
      {BYTES("\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"),
       BYTES("Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {BYTES("Jefe"), BYTES("what do ya want for nothing?"),
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {{aa, 20},
       {data, sizeof data},
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {{aa, sizeof aa},
       BYTES("Test Using Larger Than Block-Size Key - Hash Key First"),
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    unsigned char digest[SBX_SHA256_BYTES];
    sbx_hmac_sha256(digest, cases[i].key, cases[i].bytes);
    assert_digest(digest, cases[i].hex);
  }
}

static void test_crc32(void **state) {
  static const char text[] = "123456789";
  (void)state;
  assert_int_equal(sbx_crc32(0, LIT("")), 0);
  for (size_t n = 0; n < sizeof text; n++) {
    uint32_t crc = sbx_crc32(0, sbx_slice_of(text, n));
    assert_int_equal(sbx_crc32(crc, sbx_slice_of(text + n, sizeof text - 1 - n)), 0xcbf43926);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_vectors),
      cmocka_unit_test(test_a_million_letters),
      cmocka_unit_test(test_hmac),
      cmocka_unit_test(test_crc32),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
