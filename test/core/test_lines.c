/* Tests of core/lines: what comes out does not depend on where the stream is cut. */
#include "core/lines.h"

#include "support/core_test.h"

static int collect(void *arg, sbx_slice line, sbx_err *err) {
  sbx_buf *text = arg;
  (void)err;
  sbx_buf_append_char(text, '<');
  sbx_buf_append_slice(text, line);
  return sbx_buf_append_char(text, '>');
}

static const char sample[] = "{\"a\":1}\n\n{\"b\":\"\xC3\xA4\"}\r\n\r\nx\0y\nlast";

static void test_every_split(void **state) {
  (void)state;
  sbx_slice all = LIT(sample);
  for (size_t first = 0; first <= all.len; first++) {
    for (size_t second = first; second <= all.len; second++) {
      sbx_buf text;
      sbx_lines d;
      sbx_err err;
      sbx_buf_init(&text, 4096);
      sbx_lines_init(&d, 16, collect, &text);
      assert_int_equal(sbx_lines_feed(&d, sbx_slice_of(all.ptr, first), &err), SBX_OK);
      assert_int_equal(sbx_lines_feed(&d, sbx_slice_of(all.ptr + first, second - first), &err),
                       SBX_OK);
      assert_int_equal(sbx_lines_feed(&d, sbx_slice_skip(all, second), &err), SBX_OK);
      assert_int_equal(sbx_lines_finish(&d, &err), SBX_OK);
      assert_true(
          sbx_slice_eq(sbx_buf_slice(&text), LIT("<{\"a\":1}><{\"b\":\"\xC3\xA4\"}><x\0y><last>")));
      sbx_lines_deinit(&d);
      sbx_buf_deinit(&text);
    }
  }
}

static int feed(sbx_slice first, sbx_slice second, size_t max) {
  sbx_buf text;
  sbx_lines d;
  sbx_err err;
  sbx_buf_init(&text, 4096);
  sbx_lines_init(&d, max, collect, &text);
  int rc = sbx_lines_feed(&d, first, &err);
  if (rc == SBX_OK)
    rc = sbx_lines_feed(&d, second, &err);
  sbx_lines_deinit(&d);
  sbx_buf_deinit(&text);
  return rc;
}

static void test_longest(void **state) {
  (void)state;
  assert_int_equal(feed(LIT("12345678\n"), LIT(""), 8), SBX_OK);
  assert_int_equal(feed(LIT("1234"), LIT("5678\n"), 8), SBX_OK);
  assert_int_equal(feed(LIT("123456789\n"), LIT(""), 8), SBX_ETOOBIG);
  assert_int_equal(feed(LIT("12345678"), LIT("9"), 8), SBX_ETOOBIG);
  sbx_alloc_fail_at(1, false);
  assert_int_equal(feed(LIT("12"), LIT("3\n"), 8), SBX_ENOMEM);
  sbx_alloc_fail_at(0, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_split),
      cmocka_unit_test(test_longest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
