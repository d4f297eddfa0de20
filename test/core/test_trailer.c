/* Tests of the line by which a command's wrapper says that it has ended. */
#include "providers/remote/runner/trailer.h"

#include "support/core_test.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static void gather(void *arg, sbx_slice bytes) {
  sbx_buf_append_slice(arg, bytes);
}

static void feed(sbx_runner_trailer *t, sbx_slice bytes) {
  sbx_slice copy = tight_copy(bytes);
  sbx_runner_trailer_feed(t, copy);
  tight_free(copy);
}

static void check_line(sbx_slice text, sbx_slice clean, int code) {
  for (size_t first = 0; first <= text.len; first++) {
    for (size_t second = first; second <= text.len; second++) {
      sbx_buf out;
      sbx_buf_init(&out, 4096);
      sbx_runner_trailer t = {.token = TOKEN, .fn = gather, .arg = &out};
      feed(&t, sbx_slice_of(text.ptr, first));
      feed(&t, sbx_slice_of(text.ptr + first, second - first));
      feed(&t, sbx_slice_skip(text, second));
      sbx_runner_trailer_end(&t);
      assert_slice(sbx_buf_slice(&out), clean);
      assert_int_equal(t.found, code >= 0);
      assert_int_equal(t.exit_code, code >= 0 ? code : 0);
      sbx_buf_deinit(&out);
    }
  }
}

static void test_the_line_at_every_split(void **state) {
  (void)state;
  check_line(LIT("out\x1e" TOKEN " 0\n"), LIT("out"), 0);
  check_line(LIT("\x1e" TOKEN " 137\nlater"), LIT("later"), 137);
  check_line(LIT("\x1e" TOKEN " 137 4\nlater"), LIT("later"), 137);
  check_line(LIT("\x1e" TOKEN " 1 12\x1e" TOKEN " 0 123456789\n"), LIT("\x1e" TOKEN " 1 12"), 0);
  check_line(LIT("a\x1e\x1e" TOKEN " 7\n\x1e" TOKEN " 8\n"), LIT("a\x1e\x1e" TOKEN " 8\n"), 7);
  check_line(LIT("a\0\x1e"
                 "0123\0\x1e" TOKEN " 255\n"),
             LIT("a\0\x1e"
                 "0123\0"),
             255);
}

static void test_what_is_no_line(void **state) {
  static const sbx_slice cases[] = {
      BYTES(""),
      BYTES("\x1e"),
      BYTES("\x1e" TOKEN),
      BYTES("\x1e" TOKEN " "),
      BYTES("\x1e" TOKEN " 12"),
      BYTES("\x1e" TOKEN " \n"),
      BYTES("\x1e" TOKEN " 1 \n"),
      BYTES("\x1e" TOKEN " 1  2\n"),
      BYTES("\x1e" TOKEN " 1 2 3\n"),
      BYTES("\x1e" TOKEN " 1 1234567890\n"),
      BYTES("\x1e" TOKEN " 1234\n"),
      BYTES("\x1e" TOKEN " x\n"),
      BYTES("\x1e" TOKEN " -1\n"),
      BYTES("\x1e" TOKEN "0 0\n"),
      BYTES("\x1e"
            "f123456789abcdef0123456789abcdef 0\n"),
      BYTES(TOKEN " 0\n"),
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++)
    check_line(cases[i], cases[i], -1);
}

static void test_the_number_behind_the_code(void **state) {
  static const struct {
    sbx_slice text;
    int code;
    int64_t number;
  } cases[] = {{BYTES("\x1e" TOKEN " 137 4\n"), 137, 4},
               {BYTES("\x1e" TOKEN " 137\n"), 137, 0},
               {BYTES("\x1e" TOKEN " 1 7\x1e" TOKEN " 3\n"), 3, 0},
               {BYTES("\x1e" TOKEN " 9 999999999\n"), 9, 999999999}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sbx_buf out;
    sbx_buf_init(&out, 4096);
    sbx_runner_trailer t = {.token = TOKEN, .fn = gather, .arg = &out};
    feed(&t, cases[i].text);
    sbx_runner_trailer_end(&t);
    assert_true(t.found && t.exit_code == cases[i].code && t.number == cases[i].number);
    sbx_buf_deinit(&out);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_line_at_every_split),
      cmocka_unit_test(test_what_is_no_line),
      cmocka_unit_test(test_the_number_behind_the_code),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
