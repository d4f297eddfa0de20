/* Tests of core/buf: slices, the cap, the sticky error, the terminating NUL. */
#include "core/buf.h"

#include "support/core_test.h"

static void test_slice_equality(void **state) {
  (void)state;
  assert_true(sbx_slice_eq(LIT("a\0b"), LIT("a\0b")));
  assert_false(sbx_slice_eq(LIT("a\0b"), LIT("a\0c")));
  assert_false(sbx_slice_eq(LIT("ab"), LIT("abc")));
  assert_true(sbx_slice_eq(sbx_slice_of(NULL, 0), LIT("")));
  assert_true(sbx_slice_eq_str(LIT("abc"), "abc"));
  assert_false(sbx_slice_eq_str(LIT("abc\0"), "abc"));
  assert_true(sbx_slice_eq_nocase(LIT("Content-TYPE"), LIT("content-type")));
  assert_false(sbx_slice_eq_nocase(LIT("@"), LIT("`"))); /* 0x40 and 0x60: no letters */
  assert_false(sbx_slice_eq_nocase(LIT("["), LIT("{")));
  assert_false(sbx_slice_eq_nocase(LIT("\xC3\x84"), LIT("\xC3\xA4")));
}

static void test_slice_search(void **state) {
  (void)state;
  assert_true(sbx_slice_starts_with(LIT("abc"), LIT("ab")));
  assert_true(sbx_slice_starts_with(LIT("abc"), LIT("")));
  assert_true(sbx_slice_starts_with(sbx_slice_of(NULL, 0), sbx_slice_of(NULL, 0)));
  assert_false(sbx_slice_starts_with(LIT("ab"), LIT("abc")));
  assert_int_equal(sbx_slice_find(LIT("abcb"), 'b'), 1);
  assert_int_equal(sbx_slice_find(LIT("abc"), 'x'), 3);
  assert_int_equal(sbx_slice_find(sbx_slice_of(NULL, 0), 'x'), 0);
  assert_true(sbx_slice_has_nul(LIT("a\0")));
  assert_false(sbx_slice_has_nul(LIT("a")));
  assert_slice(sbx_slice_skip(LIT("abc"), 1), LIT("bc"));
  assert_slice(sbx_slice_skip(LIT("abc"), 3), LIT(""));
  assert_slice(sbx_slice_skip(LIT("abc"), 99), LIT(""));
  assert_slice(sbx_slice_skip(sbx_slice_of(NULL, 0), 1), LIT(""));
}

static void test_empty(void **state) {
  (void)state;
  sbx_buf buf;
  size_t len = 9;
  sbx_buf_init(&buf, 10);
  assert_int_equal(sbx_buf_append(&buf, NULL, 0), SBX_OK);
  assert_int_equal(sbx_buf_append_str(&buf, ""), SBX_OK);
  assert_int_equal(sbx_buf_appendf(&buf, "%s", ""), SBX_OK);
  sbx_buf_consume(&buf, 3);
  sbx_buf_truncate(&buf, 3);
  assert_null(buf.ptr);
  assert_slice(sbx_buf_slice(&buf), LIT(""));
  assert_null(sbx_buf_take(&buf, &len));
  assert_int_equal(len, 0);
  sbx_buf_deinit(&buf);
}

static void test_append(void **state) {
  (void)state;
  sbx_buf buf;
  sbx_buf_init(&buf, SIZE_MAX);
  sbx_buf_append(&buf, "a\0b", 3);
  sbx_buf_append_char(&buf, 'c');
  sbx_buf_append_str(&buf, "de");
  sbx_buf_append_slice(&buf, LIT("f"));
  sbx_buf_appendf(&buf, "%d-%s", 42, "x");
  assert_int_equal(buf.error, SBX_OK);
  assert_slice(sbx_buf_slice(&buf), LIT("a\0bcdef42-x"));
  assert_int_equal(buf.ptr[buf.len], 0);
  sbx_buf_deinit(&buf);
  assert_null(buf.ptr);
  assert_true(buf.max == SIZE_MAX);
}

/* Every way to reach a cap, at it and one beyond it. */
static void test_cap(void **state) {
  (void)state;
  static const size_t caps[] = {0, 1, 7, 23, 63, 64, 65, 1000};
  for (size_t i = 0; i < COUNT(caps); i++) {
    sbx_buf buf;
    sbx_buf_init(&buf, caps[i]);
    for (size_t n = 0; n < caps[i]; n++) {
      assert_int_equal(sbx_buf_append_char(&buf, (char)('a' + n % 26)), SBX_OK);
      assert_true(buf.cap <= caps[i]);
      assert_int_equal(buf.ptr[buf.len], 0);
    }
    assert_int_equal(sbx_buf_reserve(&buf, 0), SBX_OK);
    assert_int_equal(sbx_buf_append_char(&buf, 'x'), SBX_ETOOBIG);
    assert_int_equal(buf.len, caps[i]);
    for (size_t n = 0; n < caps[i]; n++)
      assert_int_equal(buf.ptr[n], 'a' + n % 26);
    sbx_buf_deinit(&buf);
    assert_int_equal(buf.error, SBX_OK);
    assert_int_equal(sbx_buf_appendf(&buf, "%*s", (int)caps[i] + 1, ""), SBX_ETOOBIG);
    sbx_buf_deinit(&buf);
  }
}

static void test_error_is_sticky(void **state) {
  (void)state;
  sbx_buf buf;
  size_t len;
  sbx_buf_init(&buf, 4);
  sbx_buf_append_str(&buf, "ab");
  assert_int_equal(sbx_buf_append_str(&buf, "cde"), SBX_ETOOBIG);
  assert_int_equal(sbx_buf_append_str(&buf, "c"), SBX_ETOOBIG);
  assert_int_equal(sbx_buf_append_str(&buf, ""), SBX_ETOOBIG);
  assert_int_equal(sbx_buf_appendf(&buf, "c"), SBX_ETOOBIG);
  assert_int_equal(sbx_buf_reserve(&buf, 0), SBX_ETOOBIG);
  assert_slice(sbx_buf_slice(&buf), LIT("ab"));
  char *bytes = sbx_buf_take(&buf, &len);
  assert_string_equal(bytes, "ab");
  sbx_free(bytes);
  assert_int_equal(sbx_buf_append_str(&buf, "abcd"), SBX_OK);
  sbx_buf_deinit(&buf);
}

static void test_reserve_overflow(void **state) {
  (void)state;
  sbx_buf buf;
  sbx_buf_init(&buf, SIZE_MAX);
  sbx_buf_append_char(&buf, 'a');
  assert_int_equal(sbx_buf_reserve(&buf, SIZE_MAX), SBX_ETOOBIG);
  sbx_buf_deinit(&buf);
  assert_int_equal(sbx_buf_reserve(&buf, SIZE_MAX), SBX_ENOMEM);
  sbx_buf_deinit(&buf);
}

static void test_consume_and_truncate(void **state) {
  (void)state;
  for (size_t n = 0; n <= 8; n++) {
    sbx_buf buf;
    sbx_buf_init(&buf, 100);
    sbx_buf_append_str(&buf, "abcdef");
    sbx_buf_consume(&buf, n);
    assert_slice(sbx_buf_slice(&buf), sbx_slice_skip(LIT("abcdef"), n));
    assert_int_equal(buf.ptr[buf.len], 0);
    sbx_buf_append_str(&buf, "gh");
    sbx_buf_truncate(&buf, n);
    assert_int_equal(buf.ptr[buf.len], 0);
    assert_true(buf.len <= n || n > 8);
    sbx_buf_deinit(&buf);
  }
}

static int append_much(void *arg) {
  sbx_buf buf;
  sbx_buf_init(&buf, 100000);
  for (int i = 0; i < 50; i++)
    sbx_buf_appendf(&buf, "%0*d", (int)(intptr_t)arg, i);
  int rc = buf.error;
  if (rc == SBX_OK)
    assert_int_equal(buf.len, 50 * (intptr_t)arg);
  sbx_buf_deinit(&buf);
  return rc;
}

static void test_allocation_failure(void **state) {
  (void)state;
  assert_in_range(each_allocation_fails(append_much, (void *)(intptr_t)100), 5, 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(test_slice_equality, no_leaks),
      cmocka_unit_test_teardown(test_slice_search, no_leaks),
      cmocka_unit_test_teardown(test_empty, no_leaks),
      cmocka_unit_test_teardown(test_append, no_leaks),
      cmocka_unit_test_teardown(test_cap, no_leaks),
      cmocka_unit_test_teardown(test_error_is_sticky, no_leaks),
      cmocka_unit_test_teardown(test_reserve_overflow, no_leaks),
      cmocka_unit_test_teardown(test_consume_and_truncate, no_leaks),
      cmocka_unit_test_teardown(test_allocation_failure, no_leaks),
  };
  return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
