/* Tests of core/enc: UTF-8 against the definition, base64's canonical form, percent-encoding. */
#include "core/enc.h"

#include "support/core_test.h"

/* ---- UTF-8 ---- */

/* The definition, written apart from the code under test. */
static size_t encode(uint32_t c, char to[4]) {
  if (c < 0x80) {
    to[0] = (char)c;
    return 1;
  }
  if (c < 0x800) {
    to[0] = (char)(0xC0 + c / 64);
    to[1] = (char)(0x80 + c % 64);
    return 2;
  }
  if (c < 0x10000) {
    to[0] = (char)(0xE0 + c / 4096);
    to[1] = (char)(0x80 + c / 64 % 64);
    to[2] = (char)(0x80 + c % 64);
    return 3;
  }
  to[0] = (char)(0xF0 + c / 262144);
  to[1] = (char)(0x80 + c / 4096 % 64);
  to[2] = (char)(0x80 + c / 64 % 64);
  to[3] = (char)(0x80 + c % 64);
  return 4;
}

static void test_every_code_point(void **state) {
  (void)state;
  for (uint32_t c = 0; c <= 0x1FFFFF; c++) {
    char bytes[4];
    size_t len = encode(c, bytes);
    bool is_scalar = c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF);
    if (sbx_utf8_valid(sbx_slice_of(bytes, len)) != is_scalar)
      fail_msg("U+%04X", (unsigned)c);
    for (size_t cut = 1; is_scalar && cut < len; cut++) {
      size_t step;
      if (sbx_utf8_step(sbx_slice_of(bytes, cut), &step) != SBX_UTF8_CUT || step != cut ||
          sbx_utf8_floor(sbx_slice_of(bytes, cut)) != 0 ||
          sbx_utf8_skip_continuation(sbx_slice_of(bytes + cut, len - cut)) != len - cut)
        fail_msg("U+%04X cut at %zu", (unsigned)c, cut);
    }
  }
}

#define R "\xEF\xBF\xBD"

static void test_lossy(void **state) {
  (void)state;
  static const struct {
    sbx_slice in, out;
  } cases[] = {
      {BYTES(""), BYTES("")},
      {BYTES("abc\0d"), BYTES("abc\0d")},
      {BYTES("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"),
       BYTES("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80")},
      {BYTES("\x80"), BYTES(R)},
      {BYTES("\xBF\xBF"), BYTES(R R)},
      {BYTES("\xC0\xAF"), BYTES(R R)},                   /* overlong */
      {BYTES("\xC1\xBF"), BYTES(R R)},                   /* overlong */
      {BYTES("\xE0\x80\xAF"), BYTES(R R R)},             /* overlong */
      {BYTES("\xE0\x9F\xBF"), BYTES(R R R)},             /* overlong */
      {BYTES("\xF0\x80\x80\xAF"), BYTES(R R R R)},       /* overlong */
      {BYTES("\xF0\x8F\xBF\xBF"), BYTES(R R R R)},       /* overlong */
      {BYTES("\xED\xA0\x80"), BYTES(R R R)},             /* surrogate */
      {BYTES("\xED\xBF\xBF"), BYTES(R R R)},             /* surrogate */
      {BYTES("\xF4\x90\x80\x80"), BYTES(R R R R)},       /* above U+10FFFF */
      {BYTES("\xF5\x80\x80\x80"), BYTES(R R R R)},       /* above U+10FFFF */
      {BYTES("\xF8\x88\x80\x80\x80"), BYTES(R R R R R)}, /* five bytes */
      {BYTES("\xFE\xFF"), BYTES(R R)},
      {BYTES("\xC3"), BYTES(R)},
      {BYTES("\xE2\x82"), BYTES(R)},
      {BYTES("\xF0\x9F\x98"), BYTES(R)},
      {BYTES("\xC3"
             "A"),
       BYTES(R "A")},
      {BYTES("\xE2\x82"
             "A"),
       BYTES(R "A")},
      {BYTES("\xF0\x9F\x98"
             "A"),
       BYTES(R "A")},
      {BYTES("\xF0\x9F\xF0\x9F\x98\x80"), BYTES(R "\xF0\x9F\x98\x80")},
      {BYTES("\xE2\xE2\x82\xAC"), BYTES(R "\xE2\x82\xAC")},
      {BYTES("a\xFF\xFE"
             "A"),
       BYTES("a" R R "A")},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_slice in = tight_copy(cases[i].in);
    sbx_buf out;
    sbx_buf_init(&out, 100);
    assert_int_equal(sbx_utf8_append_lossy(&out, in), SBX_OK);
    assert_slice(sbx_buf_slice(&out), cases[i].out);
    assert_int_equal(sbx_utf8_valid(in), sbx_slice_eq(cases[i].in, cases[i].out));
    sbx_buf_deinit(&out);
    tight_free(in);
  }
}

static void test_lossy_cap(void **state) {
  (void)state;
  sbx_buf out;
  sbx_buf_init(&out, 5);
  assert_int_equal(sbx_utf8_append_lossy(&out, LIT("\xFF\xFF")), SBX_ETOOBIG);
  assert_slice(sbx_buf_slice(&out), LIT(R));
  sbx_buf_deinit(&out);
}

static void test_floor_and_skip(void **state) {
  (void)state;
  static const struct {
    sbx_slice in;
    size_t floor, skip;
  } cases[] = {
      {BYTES(""), 0, 0},
      {BYTES("a"), 1, 0},
      {BYTES("a\xC3"), 1, 0},
      {BYTES("a\xC3\xA4"), 3, 0},
      {BYTES("\xE2\x82"), 0, 0},
      {BYTES("a\xF0\x9F\x98"), 1, 0},
      {BYTES("a\xF0\x9F\x98\x80"), 5, 0},
      {BYTES("a\x80"), 2, 0},            /* not UTF-8: nothing to keep together */
      {BYTES("\x80\x80\x80\x80"), 4, 0}, /* longer than the rest of any sequence */
      {BYTES("\x80\x80\x80"), 3, 3},
      {BYTES("\x82\xAC"
             "a"),
       3, 2},
      {BYTES("a\xFF"), 2, 0},
      {BYTES("a\xC0"), 2, 0},
      {BYTES("a\xE0\x80"), 3, 0}, /* overlong: never valid */
      {BYTES("a\xED\xA0"), 3, 0}, /* surrogate: never valid */
      {BYTES("a\xF4\x90"), 3, 0},
      {BYTES("a\xE2\x82\xAC\x82"), 5, 0},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_slice in = tight_copy(cases[i].in);
    assert_int_equal(sbx_utf8_floor(in), cases[i].floor);
    assert_int_equal(sbx_utf8_skip_continuation(in), cases[i].skip);
    tight_free(in);
  }
}

/* ---- base64 ---- */

static int decode(sbx_slice text, sbx_buf *out) {
  sbx_slice in = tight_copy(text);
  int rc = sbx_base64_decode(out, in);
  tight_free(in);
  return rc;
}

static void test_base64_vectors(void **state) {
  (void)state;
  static const struct {
    sbx_slice bytes;
    const char *text;
  } cases[] = {
      {BYTES(""), ""},
      {BYTES("f"), "Zg=="},
      {BYTES("fo"), "Zm8="},
      {BYTES("foo"), "Zm9v"},
      {BYTES("foob"), "Zm9vYg=="},
      {BYTES("fooba"), "Zm9vYmE="},
      {BYTES("foobar"), "Zm9vYmFy"},
      {BYTES("\0\0\0"), "AAAA"},
      {BYTES("\xFF\xFF\xFF"), "////"},
      {BYTES("\xFB\xEF\xBE"), "++++"},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_buf out;
    sbx_buf_init(&out, 100);
    assert_int_equal(sbx_base64_encode(&out, cases[i].bytes), SBX_OK);
    assert_slice(sbx_buf_slice(&out), sbx_slice_str(cases[i].text));
    sbx_buf_truncate(&out, 0);
    assert_int_equal(decode(sbx_slice_str(cases[i].text), &out), SBX_OK);
    assert_slice(sbx_buf_slice(&out), cases[i].bytes);
    sbx_buf_deinit(&out);
  }
}

static void test_base64_round_trip(void **state) {
  (void)state;
  unsigned char bytes[600];
  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = (unsigned char)(i * 7 + i / 256);
  for (size_t len = 0; len <= sizeof bytes; len++) {
    sbx_buf text, back;
    sbx_buf_init(&text, (len + 2) / 3 * 4);
    sbx_buf_init(&back, len);
    sbx_slice in = sbx_slice_of((const char *)bytes, len);
    assert_int_equal(sbx_base64_encode(&text, in), SBX_OK);
    assert_int_equal(decode(sbx_buf_slice(&text), &back), SBX_OK);
    assert_slice(sbx_buf_slice(&back), in);
    sbx_buf_deinit(&text);
    sbx_buf_deinit(&back);
  }
}

static void test_base64_tolerance(void **state) {
  (void)state;
  static const char *const same[] = {
      "Zm9vYg==",  "Zm9vYg", "Zm9v\nYg==", "Zm9v\r\nYg==\r\n", "\nZ\nm\n9\nv\nY\ng\n=\n=\n",
      "Zm9vYg\r\n"};
  for (size_t i = 0; i < COUNT(same); i++) {
    sbx_buf out;
    sbx_buf_init(&out, 4); /* line breaks must not count against the cap */
    assert_int_equal(decode(sbx_slice_str(same[i]), &out), SBX_OK);
    assert_slice(sbx_buf_slice(&out), LIT("foob"));
    sbx_buf_deinit(&out);
  }
}

static void test_base64_refusals(void **state) {
  (void)state;
  static const sbx_slice bad[] = {
      BYTES("Z"),          BYTES("Zm9vY"),   BYTES("Z==="),     BYTES("="),
      BYTES("=="),         BYTES("===="),    BYTES("Zg="),      BYTES("Zg==="),
      BYTES("Zm8=="),      BYTES("Zm9v="),   BYTES("Zm9v===="), BYTES("Zg==Zg=="),
      BYTES("Zg=a"),       BYTES("Z=g="),    BYTES("=Zg="),     BYTES("Zh=="),
      BYTES("Zh"),         BYTES("Zm9="),    BYTES("Zm9"),      BYTES("Zm9v YmFy"),
      BYTES("Zm9v\t"),     BYTES("Zm9-"),    BYTES("Zm9_"),     BYTES("Zm9v\0"),
      BYTES("Zm9v*"),      BYTES("Zm9\xC3"), BYTES("Zm9v\x0B"), BYTES("Zm9v.YmFy"),
      BYTES("data:,Zm9v"), BYTES("%3D"),
  };
  for (size_t i = 0; i < COUNT(bad); i++) {
    sbx_buf out;
    sbx_buf_init(&out, 100);
    sbx_buf_append_str(&out, "kept");
    assert_int_equal(decode(bad[i], &out), SBX_EINVAL);
    assert_slice(sbx_buf_slice(&out), LIT("kept"));
    assert_int_equal(out.ptr[out.len], 0);
    assert_int_equal(out.error, SBX_OK);
    sbx_buf_deinit(&out);
  }
}

/* Of the texts for one byte, those whose spare bits are zero are the only ones taken. */
static void test_base64_is_canonical(void **state) {
  (void)state;
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t taken = 0;
  for (size_t a = 0; a < 64; a++) {
    for (size_t b = 0; b < 64; b++) {
      char text[4] = {digits[a], digits[b], '=', '='};
      sbx_buf out;
      sbx_buf_init(&out, 1);
      int rc = sbx_base64_decode(&out, sbx_slice_of(text, 4));
      assert_int_equal(rc, b % 16 == 0 ? SBX_OK : SBX_EINVAL);
      taken += rc == SBX_OK;
      sbx_buf_deinit(&out);
    }
  }
  assert_int_equal(taken, 256);
}

static void test_base64_caps(void **state) {
  (void)state;
  sbx_buf out;
  sbx_buf_init(&out, 3);
  assert_int_equal(sbx_base64_encode(&out, LIT("a")), SBX_ETOOBIG);
  sbx_buf_deinit(&out);
  assert_int_equal(sbx_base64_decode(&out, LIT("Zm9v")), SBX_OK);
  assert_int_equal(sbx_base64_decode(&out, LIT("Zg==")), SBX_ETOOBIG);
  assert_int_equal(sbx_base64_decode(&out, LIT("!")), SBX_ETOOBIG); /* sticky */
  assert_slice(sbx_buf_slice(&out), LIT("foo"));
  sbx_buf_deinit(&out);
  sbx_buf_init(&out, SIZE_MAX);
  assert_int_equal(sbx_base64_encode(&out, sbx_slice_of("", SIZE_MAX)), SBX_ETOOBIG);
  assert_int_equal(out.error, SBX_ETOOBIG);
}

/* ---- percent-encoding ---- */

static void test_percent_every_byte(void **state) {
  (void)state;
  for (int c = 0; c < 256; c++) {
    char byte = (char)c;
    char escape[4];
    snprintf(escape, sizeof escape, "%%%02X", (unsigned)c);
    bool plain = c && (strchr("-._~", c) || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                       (c >= 'a' && c <= 'z'));
    sbx_slice expected = plain ? sbx_slice_of(&byte, 1) : sbx_slice_str(escape);
    sbx_buf out;
    sbx_buf_init(&out, 10);
    sbx_percent_encode(&out, sbx_slice_of(&byte, 1));
    assert_slice(sbx_buf_slice(&out), expected);
    sbx_buf_truncate(&out, 0);
    sbx_percent_encode_path(&out, sbx_slice_of(&byte, 1));
    assert_slice(sbx_buf_slice(&out), c == '/' ? LIT("/") : expected);
    sbx_buf_truncate(&out, 0);
    assert_int_equal(sbx_percent_decode(&out, sbx_slice_str(escape)), SBX_OK);
    assert_slice(sbx_buf_slice(&out), sbx_slice_of(&byte, 1));
    assert_int_equal(sbx_hex_value(byte) >= 0, c && strchr("0123456789abcdefABCDEF", c) != NULL);
    sbx_buf_deinit(&out);
  }
}

static void test_percent_decode(void **state) {
  (void)state;
  static const sbx_slice bad[] = {BYTES("%"),   BYTES("%4"),   BYTES("a%"),    BYTES("%G0"),
                                  BYTES("%0G"), BYTES("%%41"), BYTES("%41%4"), BYTES("% 1"),
                                  BYTES("%-1"), BYTES("%0x")};
  sbx_buf out;
  sbx_buf_init(&out, 100);
  assert_int_equal(sbx_percent_decode(&out, LIT("a%20b+%c3%A4%00")), SBX_OK);
  assert_slice(sbx_buf_slice(&out), LIT("a b+\xC3\xA4\0"));
  for (size_t i = 0; i < COUNT(bad); i++) {
    sbx_slice in = tight_copy(bad[i]);
    assert_int_equal(sbx_percent_decode(&out, in), SBX_EINVAL);
    assert_slice(sbx_buf_slice(&out), LIT("a b+\xC3\xA4\0"));
    tight_free(in);
  }
  sbx_buf_deinit(&out);
}

/* ---- allocation failure ---- */

static int do_all(void *arg) {
  (void)arg;
  sbx_buf a, b, c;
  sbx_buf_init(&a, 4096);
  sbx_buf_init(&b, 4096);
  sbx_buf_init(&c, 4096);
  char bytes[300];
  memset(bytes, 0xFF, sizeof bytes);
  int rc = sbx_base64_encode(&a, sbx_slice_of(bytes, sizeof bytes));
  if (rc == SBX_OK)
    rc = sbx_base64_decode(&b, sbx_buf_slice(&a));
  if (rc == SBX_OK)
    rc = sbx_utf8_append_lossy(&c, sbx_buf_slice(&b));
  if (rc == SBX_OK)
    rc = sbx_percent_encode(&c, sbx_buf_slice(&b));
  if (rc == SBX_OK)
    rc = sbx_percent_decode(&c, sbx_buf_slice(&a));
  sbx_buf_deinit(&a);
  sbx_buf_deinit(&b);
  sbx_buf_deinit(&c);
  return rc;
}

static void test_allocation_failure(void **state) {
  (void)state;
  assert_in_range(each_allocation_fails(do_all, NULL), 5, 15);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(test_every_code_point, no_leaks),
      cmocka_unit_test_teardown(test_lossy, no_leaks),
      cmocka_unit_test_teardown(test_lossy_cap, no_leaks),
      cmocka_unit_test_teardown(test_floor_and_skip, no_leaks),
      cmocka_unit_test_teardown(test_base64_vectors, no_leaks),
      cmocka_unit_test_teardown(test_base64_round_trip, no_leaks),
      cmocka_unit_test_teardown(test_base64_tolerance, no_leaks),
      cmocka_unit_test_teardown(test_base64_refusals, no_leaks),
      cmocka_unit_test_teardown(test_base64_is_canonical, no_leaks),
      cmocka_unit_test_teardown(test_base64_caps, no_leaks),
      cmocka_unit_test_teardown(test_percent_every_byte, no_leaks),
      cmocka_unit_test_teardown(test_percent_decode, no_leaks),
      cmocka_unit_test_teardown(test_allocation_failure, no_leaks),
  };
  return cmocka_run_group_tests_name("enc", tests, NULL, NULL);
}
