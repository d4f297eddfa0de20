/* Tests of core/gzip: what it writes is read back. */
#include "core/gzip.h"

#include "support/core_test.h"
#include "support/gzip_model.h"

enum { MOST = 1 << 20 };

/* ---- gzip ---- */

static void check_gzip(size_t len) {
  sbx_buf in, file, out;
  sbx_buf_init(&in, MOST);
  sbx_buf_init(&file, 2 * MOST);
  sbx_buf_init(&out, MOST);
  for (size_t i = 0; i < len; i++)
    sbx_buf_append_char(&in, (char)(i * 7 + i / 256));
  assert_int_equal(sbx_gzip_store(&file, sbx_buf_slice(&in)), SBX_OK);
  assert_true(model_gunzip(&out, sbx_buf_slice(&file)));
  assert_true(sbx_slice_eq(sbx_buf_slice(&in), sbx_buf_slice(&out)));
  sbx_buf_deinit(&in);
  sbx_buf_deinit(&file);
  sbx_buf_deinit(&out);
}

static void test_gzip_of_every_size(void **state) {
  static const size_t sizes[] = {0, 1, 2, 65534, 65535, 65536, 131069, 131070, 131071, 500000};
  (void)state;
  for (size_t i = 0; i < COUNT(sizes); i++)
    check_gzip(sizes[i]);
}

/* The file that gzip itself says this is: `printf 123456789 | gzip -1` has the same last bytes. */
static void test_gzip_checksum(void **state) {
  sbx_buf file;
  (void)state;
  sbx_buf_init(&file, 100);
  assert_int_equal(sbx_gzip_store(&file, LIT("123456789")), SBX_OK);
  assert_memory_equal(file.ptr + file.len - 8, "\x26\x39\xf4\xcb\x09\0\0\0", 8);
  sbx_buf_deinit(&file);
}

/* ---- room ---- */

static int store(size_t most) {
  sbx_buf file;
  sbx_buf_init(&file, most);
  int rc = sbx_gzip_store(&file, LIT("bytes"));
  sbx_buf_deinit(&file);
  return rc;
}

static void test_without_room(void **state) {
  (void)state;
  assert_int_equal(store(28), SBX_OK);
  assert_int_equal(store(27), SBX_ETOOBIG);
  sbx_alloc_fail_at(1, false);
  assert_int_equal(store(MOST), SBX_ENOMEM);
  sbx_alloc_fail_at(0, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gzip_of_every_size),
      cmocka_unit_test(test_gzip_checksum),
      cmocka_unit_test(test_without_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
