/* Tests of what at.sh prints of files. */
#include "providers/remote/runner/stats.h"

#include "support/core_test.h"

#include <string.h>

static int read_all(sbx_stats *stats, sbx_slice text, size_t most) {
  sbx_slice copy = tight_copy(text);
  *stats = (sbx_stats){0};
  int rc = sbx_runner_stats_read(stats, copy, most);
  tight_free(copy);
  return rc;
}

static void test_what_find_and_stat_say(void **state) {
  static const struct {
    sbx_slice text;
    sbx_stat stat;
  } cases[] = {
      {BYTES("f 5 1700000000.1234567890 640 a b\0"),
       {"a b", SBX_KIND_FILE, 5, 1700000000123, 0640}},
      {BYTES("d 4096 -1.5 1777 \0"), {"", SBX_KIND_DIRECTORY, 0, -1500, 01777}},
      {BYTES("l 9 0 777 \n\0"), {"\n", SBX_KIND_LINK, 0, 0, 0777}},
      {BYTES("s 9 7.05 777 x\0"), {"x", SBX_KIND_OTHER, 0, 7050, 0777}},
      {BYTES("N 9 7. 777 x\0"), {"x", SBX_KIND_OTHER, 0, 7000, 0777}},
      {BYTES("=81a4 18446744073709551615 1 - x\0"), {"x", SBX_KIND_FILE, UINT64_MAX, 1000, 0644}},
      {BYTES("=41ed 3 1 - x\0"), {"x", SBX_KIND_DIRECTORY, 0, 1000, 0755}},
      {BYTES("=a1ff 3 1 - x\0"), {"x", SBX_KIND_LINK, 0, 1000, 0777}},
      {BYTES("=1180 3 1 - x\0"), {"x", SBX_KIND_OTHER, 0, 1000, 0600}},
      {BYTES("f 3 - - x y\0"), {"x y", SBX_KIND_FILE, 3, SBX_TIME_UNKNOWN, -1}},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_stats stats;
    assert_int_equal(read_all(&stats, cases[i].text, 1), SBX_OK);
    assert_int_equal(stats.count, 1);
    assert_string_equal(stats.items[0].name, cases[i].stat.name);
    assert_int_equal(stats.items[0].kind, cases[i].stat.kind);
    assert_true(stats.items[0].size == cases[i].stat.size);
    assert_true(stats.items[0].modified_ms == cases[i].stat.modified_ms);
    assert_int_equal(stats.items[0].mode, cases[i].stat.mode);
    sbx_stats_free(&stats);
  }
}

static void test_what_nothing_says(void **state) {
  static const sbx_slice cases[] = {
      BYTES("\0"),
      BYTES("f\0"),
      BYTES("f 1\0"),
      BYTES("f x 1 1 a\0"),
      BYTES("f -1 1 1 a\0"),
      BYTES("f 18446744073709551616 1 1 a\0"),
      BYTES("f 1 x 1 a\0"),
      BYTES("f 1 1.x 1 a\0"),
      BYTES("f 1 99999999999999 1 a\0"),
      BYTES("f 1 1 8 a\0"),
      BYTES("ff 1 1 7 a\0"),
      BYTES("= 1 1 - a\0"),
      BYTES("=zz 1 1 - a\0"),
  };
  sbx_stats stats;
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    assert_int_equal(read_all(&stats, cases[i], 1), SBX_EPROTO);
    sbx_stats_free(&stats);
  }
}

static void test_a_list_that_is_cut_off(void **state) {
  static const sbx_slice text = BYTES("f 1 1 7 a\0d 2 2 7 b\0");
  sbx_stats stats;
  (void)state;
  for (size_t len = 0; len <= text.len; len++) {
    bool whole = len == 0 || text.ptr[len - 1] == '\0';
    assert_int_equal(read_all(&stats, sbx_slice_of(text.ptr, len), 2),
                     whole ? SBX_OK : SBX_ETOOBIG);
    sbx_stats_free(&stats);
  }
  assert_int_equal(read_all(&stats, text, 1), SBX_ETOOBIG);
  sbx_stats_free(&stats);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_find_and_stat_say),
      cmocka_unit_test(test_what_nothing_says),
      cmocka_unit_test(test_a_list_that_is_cut_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
