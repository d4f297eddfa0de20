/* Tests of core/ustar and core/gzip: what they write is read back, and every name and size of
 * interest with it. */
#include "core/gzip.h"
#include "core/ustar.h"

#include "support/archive_model.h"
#include "support/core_test.h"

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

/* ---- ustar ---- */

static void check_file(sbx_slice name, sbx_slice bytes, bool in_pax) {
  sbx_buf archive;
  model_entry entry;
  sbx_buf_init(&archive, MOST);
  assert_int_equal(sbx_ustar_file(&archive, name, 0640, bytes), SBX_OK);
  assert_int_equal(sbx_ustar_end(&archive), SBX_OK);
  assert_int_equal(archive.len % 512, 0);
  assert_int_equal(archive.ptr[156] == 'x', in_pax);
  sbx_slice in = sbx_buf_slice(&archive);
  assert_true(model_untar(&in, &entry));
  assert_true(sbx_slice_eq(entry.name, name));
  assert_true(sbx_slice_eq(entry.bytes, bytes));
  assert_int_equal(entry.mode, 0640);
  assert_true(model_is_end(in));
  sbx_buf_deinit(&archive);
}

static void test_a_file(void **state) {
  (void)state;
  check_file(LIT("a/b.txt"), LIT("x"), false);
  check_file(LIT("empty"), LIT(""), false);
  check_file(LIT("caf\xc3\xa9"), LIT("x\0y"), true);
  char block[1025];
  memset(block, 'b', sizeof block);
  for (size_t len = 510; len <= 514; len++)
    check_file(LIT("a"), sbx_slice_of(block, len), false);
  check_file(LIT("a"), sbx_slice_of(block, 1024), false);
  check_file(LIT("a"), sbx_slice_of(block, 1025), false);
}

/* The length of a record counts its own digits: it goes from 9 to 11, from 99 to 101, and so on. */
static void test_names_of_every_length(void **state) {
  char name[1200];
  (void)state;
  memset(name, 'n', sizeof name);
  for (size_t len = 1; len <= sizeof name; len++)
    check_file(sbx_slice_of(name, len), LIT("x"), len >= 100);
  name[0] = (char)0xc3;
  name[1] = (char)0xa9;
  for (size_t len = 2; len <= 100; len++)
    check_file(sbx_slice_of(name, len), LIT("x"), true);
}

static void test_several_files(void **state) {
  sbx_buf archive;
  model_entry entry;
  (void)state;
  sbx_buf_init(&archive, MOST);
  sbx_ustar_file(&archive, LIT("first"), 0600, LIT("1"));
  sbx_ustar_file(&archive, LIT("\xc3\xa9"), 0755, LIT("22"));
  sbx_ustar_end(&archive);
  sbx_slice in = sbx_buf_slice(&archive);
  assert_true(model_untar(&in, &entry) && sbx_slice_eq_str(entry.name, "first"));
  assert_true(model_untar(&in, &entry) && sbx_slice_eq_str(entry.bytes, "22"));
  assert_int_equal(entry.mode, 0755);
  assert_true(model_is_end(in));
  sbx_buf_deinit(&archive);
}

/* ---- room ---- */

static int write_both(size_t most) {
  sbx_buf archive, file;
  sbx_buf_init(&archive, most);
  sbx_buf_init(&file, most);
  sbx_ustar_file(&archive, LIT("caf\xc3\xa9"), 0644, LIT("bytes"));
  int rc = sbx_ustar_end(&archive);
  if (rc == SBX_OK)
    rc = sbx_gzip_store(&file, sbx_buf_slice(&archive));
  sbx_buf_deinit(&archive);
  sbx_buf_deinit(&file);
  return rc;
}

static void test_without_room(void **state) {
  int rc = SBX_ENOMEM;
  size_t nth = 0;
  (void)state;
  assert_int_equal(write_both(3072), SBX_ETOOBIG); /* the archive, but not its frame */
  assert_int_equal(write_both(600), SBX_ETOOBIG);
  while (rc == SBX_ENOMEM) {
    sbx_alloc_fail_at(++nth, false);
    rc = write_both(MOST);
    sbx_alloc_fail_at(0, false);
  }
  assert_int_equal(rc, SBX_OK);
  assert_true(nth > 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gzip_of_every_size),
      cmocka_unit_test(test_gzip_checksum),
      cmocka_unit_test(test_a_file),
      cmocka_unit_test(test_names_of_every_length),
      cmocka_unit_test(test_several_files),
      cmocka_unit_test(test_without_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
