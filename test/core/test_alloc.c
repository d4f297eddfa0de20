/* Tests of core/alloc: the wrappers' edges and the failure counters that other tests rely on. */
#include "core/alloc.h"

#include "support/core_test.h"

static void test_zero_size_gives_a_block(void **state) {
  (void)state;
  void *a = sbx_malloc(0);
  void *b = sbx_calloc(0, 8);
  void *c = sbx_realloc(NULL, 0);
  assert_non_null(a);
  assert_non_null(b);
  assert_non_null(c);
  assert_int_equal(sbx_alloc_live(), 3);
  c = sbx_realloc(c, 0);
  assert_non_null(c);
  assert_int_equal(sbx_alloc_live(), 3);
  sbx_free(a);
  sbx_free(b);
  sbx_free(c);
  sbx_free(NULL);
}

static void test_calloc_zeroes_and_checks_overflow(void **state) {
  (void)state;
  char *p = sbx_calloc(16, 4);
  for (size_t i = 0; i < 64; i++)
    assert_int_equal(p[i], 0);
  sbx_free(p);
  assert_null(sbx_calloc(SIZE_MAX / 2 + 1, 2));
  assert_null(sbx_calloc(2, SIZE_MAX / 2 + 1));
}

static void test_realloc_keeps_bytes(void **state) {
  (void)state;
  char *p = sbx_malloc(4);
  memcpy(p, "abcd", 4);
  p = sbx_realloc(p, 4096);
  assert_memory_equal(p, "abcd", 4);
  sbx_alloc_fail_at(1, false);
  assert_null(sbx_realloc(p, 8192));
  assert_memory_equal(p, "abcd", 4);
  sbx_free(p);
}

static void test_strndup(void **state) {
  (void)state;
  char *p = sbx_strndup("abcdef", 3);
  assert_string_equal(p, "abc");
  sbx_free(p);
  p = sbx_strndup(NULL, 0);
  assert_string_equal(p, "");
  sbx_free(p);
  p = sbx_strndup("a\0b", 3);
  assert_memory_equal(p, "a\0b", 4);
  sbx_free(p);
  assert_null(sbx_strndup("", SIZE_MAX));
}

static void test_wipe(void **state) {
  (void)state;
  char secret[] = "sk-canary";
  sbx_wipe(secret, sizeof secret);
  for (size_t i = 0; i < sizeof secret; i++)
    assert_int_equal(secret[i], 0);
  sbx_wipe(NULL, 0);
}

static void test_sizes(void **state) {
  (void)state;
  size_t n = 7;
  assert_true(sbx_size_add(&n, SIZE_MAX - 1, 1));
  assert_true(n == SIZE_MAX);
  assert_false(sbx_size_add(&n, SIZE_MAX, 1));
  assert_false(sbx_size_add(&n, 1, SIZE_MAX));
  assert_true(n == SIZE_MAX);
  assert_true(sbx_size_mul(&n, SIZE_MAX / 3, 3));
  assert_true(n == SIZE_MAX / 3 * 3);
  assert_true(sbx_size_mul(&n, SIZE_MAX, 0));
  assert_int_equal(n, 0);
  assert_true(sbx_size_mul(&n, 0, SIZE_MAX));
  assert_false(sbx_size_mul(&n, SIZE_MAX / 3 + 1, 3));
  assert_false(sbx_size_mul(&n, 2, SIZE_MAX));
  assert_int_equal(n, 0);
}

static void test_fail_once(void **state) {
  (void)state;
  sbx_alloc_fail_at(2, false);
  void *a = sbx_malloc(1);
  assert_non_null(a);
  assert_false(sbx_alloc_failed());
  assert_null(sbx_malloc(1));
  assert_true(sbx_alloc_failed());
  void *b = sbx_malloc(1);
  assert_non_null(b);
  assert_true(sbx_alloc_failed());
  sbx_free(a);
  sbx_free(b);
}

static void test_fail_sticky(void **state) {
  (void)state;
  sbx_alloc_fail_at(1, true);
  assert_null(sbx_malloc(1));
  assert_null(sbx_calloc(1, 1));
  assert_null(sbx_realloc(NULL, 1));
  assert_null(sbx_strndup("a", 1));
  sbx_alloc_fail_at(0, false);
  assert_false(sbx_alloc_failed());
  void *a = sbx_malloc(1);
  assert_non_null(a);
  sbx_free(a);
}

static void test_grow(void **state) {
  int *items = NULL;
  (void)state;
  for (int i = 0; i < 100; i++) {
    int *grown = sbx_grow(items, (size_t)i, sizeof *items);
    assert_non_null(grown);
    items = grown;
    items[i] = i;
  }
  assert_int_equal(items[64], 64);
  assert_ptr_equal(sbx_grow(items, 100, sizeof *items), items);
  assert_null(sbx_grow(items, SIZE_MAX / 2 + 1, sizeof *items));
  sbx_free(items);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(test_zero_size_gives_a_block, no_leaks),
      cmocka_unit_test_teardown(test_calloc_zeroes_and_checks_overflow, no_leaks),
      cmocka_unit_test_teardown(test_realloc_keeps_bytes, no_leaks),
      cmocka_unit_test_teardown(test_strndup, no_leaks),
      cmocka_unit_test_teardown(test_wipe, no_leaks),
      cmocka_unit_test_teardown(test_sizes, no_leaks),
      cmocka_unit_test_teardown(test_fail_once, no_leaks),
      cmocka_unit_test_teardown(test_fail_sticky, no_leaks),
      cmocka_unit_test_teardown(test_grow, no_leaks),
  };
  return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
