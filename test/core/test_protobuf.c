/* Tests of core/protobuf: messages as the format has them, and every way in which one can be cut.
 */
#include "core/protobuf.h"

#include "support/core_test.h"

#define EXPECT(buf, text) assert_true(sbx_slice_eq(sbx_buf_slice(buf), LIT(text)))

static void test_written(void **state) {
  (void)state;
  sbx_buf out;
  sbx_buf_init(&out, 4096);
  sbx_pb_put_str(&out, 1, "demo");
  assert_int_equal(sbx_pb_put_varint(&out, 3, 1), SBX_OK);
  EXPECT(&out, "\x0a\x04"
               "demo\x18\x01");
  sbx_buf_truncate(&out, 0);
  sbx_pb_put_str(&out, 6, "FROM python:3.12-slim");
  sbx_pb_wrap(&out, 2, 0);
  sbx_pb_put_str(&out, 4, "ap-1");
  sbx_pb_put_str(&out, 9, "2025.06");
  EXPECT(&out, "\x12\x17\x32\x15"
               "FROM python:3.12-slim\x22\x04"
               "ap-1\x4a\x07"
               "2025.06");
  sbx_buf_truncate(&out, 0);
  sbx_pb_put_str(&out, 1, "im-1");
  sbx_pb_put_float(&out, 2, 55);
  EXPECT(&out, "\x0a\x04"
               "im-1\x15\x00\x00\x5c\x42");
  sbx_buf_truncate(&out, 0);
  sbx_pb_put_pair(&out, 12, LIT("A"), LIT("b"));
  EXPECT(&out, "\x62\x06\x0a\x01"
               "A\x12\x01"
               "b");
  sbx_buf_truncate(&out, 0);
  sbx_pb_put_varint(&out, 22, UINT64_MAX);
  EXPECT(&out, "\xb0\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  sbx_buf_deinit(&out);
}

static void test_wrapped(void **state) {
  (void)state;
  static char text[300];
  sbx_buf out;
  sbx_slice inner;
  sbx_buf_init(&out, 4096);
  memset(text, 'x', sizeof text);
  sbx_pb_put_str(&out, 1, "before");
  size_t at = out.len;
  sbx_pb_put_bytes(&out, 7, sbx_slice_of(text, sizeof text));
  assert_int_equal(sbx_pb_wrap(&out, 2, at), SBX_OK);
  assert_int_equal(sbx_pb_get_bytes(sbx_buf_slice(&out), 2, &inner), SBX_OK);
  assert_int_equal(inner.len, sizeof text + 3);
  assert_int_equal(sbx_pb_get_bytes(inner, 7, &inner), SBX_OK);
  assert_true(sbx_slice_eq(inner, sbx_slice_of(text, sizeof text)));
  sbx_buf_deinit(&out);
}

static void test_read(void **state) {
  (void)state;
  sbx_pb_field field;
  sbx_slice bytes;
  uint64_t number;
  /* the last one counts; fields of other types and numbers are passed over */
  const sbx_slice message = LIT("\x08\x03\x0a\x02"
                                "ab\x15\x00\x00\x5c\x42\x19\x01\x00\x00\x00\x00\x00\x00\x80\x08\x96"
                                "\x01\x0a\x01"
                                "c\xf8\xff\xff\xff\x0f\x05");
  assert_int_equal(sbx_pb_get_varint(message, 1, &number), SBX_OK);
  assert_int_equal(number, 150);
  assert_int_equal(sbx_pb_get_bytes(message, 1, &bytes), SBX_OK);
  assert_true(sbx_slice_eq(bytes, LIT("c")));
  assert_int_equal(sbx_pb_find(message, 2, SBX_PB_FIXED32, &field), SBX_OK);
  assert_true(sbx_pb_float(field.value) > 54.9F && sbx_pb_float(field.value) < 55.1F);
  assert_int_equal(sbx_pb_find(message, 3, SBX_PB_FIXED64, &field), SBX_OK);
  assert_true(field.value == 0x8000000000000001U);
  assert_int_equal(sbx_pb_find(message, 0x1fffffff, SBX_PB_VARINT, &field), SBX_OK);
  assert_int_equal(field.value, 5);
  assert_int_equal(sbx_pb_find(message, 9, SBX_PB_VARINT, &field), SBX_ENOTFOUND);
  assert_int_equal(sbx_pb_get_bytes(message, 9, &bytes), SBX_OK);
  assert_int_equal(bytes.len, 0);
}

static void test_negative_numbers(void **state) {
  (void)state;
  uint64_t number;
  assert_int_equal(
      sbx_pb_get_varint(LIT("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 1, &number), SBX_OK);
  assert_int_equal((int32_t)(uint32_t)number, -1);
}

static void test_cut(void **state) {
  (void)state;
  const sbx_slice message = LIT("\x0a\x02"
                                "ab\x15\x00\x00\x5c\x42\x19\x01\x00\x00\x00\x00\x00\x00\x80\x08\x96"
                                "\x01");
  static const size_t ends[] = {0, 4, 9, 18, 21};
  size_t next = 0;
  sbx_pb_field field;
  for (size_t len = 0; len <= message.len; len++) {
    /* of its own size, so that a byte too many is seen */
    char *copy = sbx_strndup(message.ptr, len);
    int rc = sbx_pb_find(sbx_slice_of(copy, len), 99, SBX_PB_VARINT, &field);
    bool whole = len == ends[next];
    assert_int_equal(rc, whole ? SBX_ENOTFOUND : SBX_EPROTO);
    next += whole;
    sbx_free(copy);
  }
}

static void test_refused(void **state) {
  (void)state;
  static const sbx_slice cases[] = {
      BYTES("\x00\x01"),                                         /* field 0 */
      BYTES("\x0b\x01\x0c"),                                     /* a group */
      BYTES("\x0e"),                                             /* a type that is none */
      BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),     /* longer than all memory */
      BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* eleven bytes */
      BYTES("\x80\x80\x80\x80\x80\x01\x01"),                     /* a number of 36 bits */
  };
  sbx_pb_field field;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(sbx_pb_find(cases[i], 99, SBX_PB_VARINT, &field), SBX_EPROTO);
}

static void test_without_room(void **state) {
  (void)state;
  sbx_buf out;
  sbx_buf_init(&out, 4);
  assert_int_equal(sbx_pb_put_str(&out, 1, "four"), SBX_ETOOBIG);
  assert_int_equal(sbx_pb_wrap(&out, 1, 0), SBX_ETOOBIG);
  sbx_buf_deinit(&out);
  sbx_buf_init(&out, 6);
  sbx_pb_put_str(&out, 1, "four");
  assert_int_equal(sbx_pb_wrap(&out, 1, 0), SBX_ETOOBIG);
  sbx_buf_deinit(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_written),      cmocka_unit_test(test_wrapped),
      cmocka_unit_test(test_read),         cmocka_unit_test(test_negative_numbers),
      cmocka_unit_test(test_cut),          cmocka_unit_test(test_refused),
      cmocka_unit_test(test_without_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
