/* Tests of core/err: the code table, cutting, and text that came from outside. */
#include "core/err.h"

#include "core/enc.h"
#include "support/core_test.h"

static bool is_valid(const sbx_err *err) {
  size_t len = strnlen(err->message, sizeof err->message);
  return len < sizeof err->message && sbx_utf8_valid(sbx_slice_of(err->message, len));
}

static void test_table(void **state) {
  (void)state;
  static const int codes[] = {
#define X(name, number, code, retryable, text) SBX_##name,
      SBX_ERROR_MAP(X)
#undef X
  };
  for (size_t i = 0; i < COUNT(codes); i++) {
    sbx_err err;
    assert_int_equal(sbx_err_set(&err, codes[i], NULL), codes[i]);
    assert_int_equal(err.code, codes[i]);
    assert_true(strlen(err.message) > 0);
    assert_int_equal(sbx_err_name(codes[i])[0], 'E');
    assert_true(strlen(sbx_err_public_code(codes[i])) > 0);
    for (size_t k = 0; k < i; k++)
      assert_int_not_equal(codes[i], codes[k]);
  }
  assert_string_equal(sbx_err_name(SBX_EINVAL), "EINVAL");
  assert_string_equal(sbx_err_public_code(SBX_EPATH), "INVALID_ARG");
  assert_true(sbx_err_retryable(SBX_ERATE));
  assert_false(sbx_err_retryable(SBX_EAUTH));
  static const int strangers[] = {0, 1, -25, -1000, 5};
  for (size_t i = 0; i < COUNT(strangers); i++) {
    assert_string_equal(sbx_err_name(strangers[i]), "");
    assert_string_equal(sbx_err_public_code(strangers[i]), "");
    assert_false(sbx_err_retryable(strangers[i]));
  }
}

static void test_set_clears_the_rest(void **state) {
  (void)state;
  sbx_err err = {.status = 500, .may_have_run = true, .provider = "x", .message = "old"};
  assert_int_equal(sbx_err_set(&err, SBX_ENET, "no route to %s", "host"), SBX_ENET);
  assert_string_equal(err.message, "no route to host");
  assert_int_equal(err.status, 0);
  assert_false(err.may_have_run);
  assert_null(err.provider);
  sbx_err_clear(&err);
  assert_int_equal(err.code, SBX_OK);
  assert_string_equal(err.message, "");
}

static void test_null_is_fine(void **state) {
  (void)state;
  sbx_err err;
  sbx_err_set(&err, SBX_EINVAL, NULL);
  assert_int_equal(sbx_err_set(NULL, SBX_EINVAL, "%d", 1), SBX_EINVAL);
  sbx_err_clear(NULL);
  sbx_err_copy(NULL, &err);
  sbx_err_append(NULL, "%d", 1);
  sbx_err_append_remote(NULL, LIT("x"));
}

static void test_copy(void **state) {
  (void)state;
  sbx_err from, to;
  sbx_err_set(&from, SBX_EAUTH, "refused");
  from.status = 401;
  from.may_have_run = true;
  sbx_err_copy(&to, &from);
  assert_memory_equal(&to, &from, sizeof to);
  sbx_err_copy(&to, &to);
  assert_memory_equal(&to, &from, sizeof to);
}

/* A text of two-, three- and four-byte characters, cut by the end of the message at any offset. */
static void test_cut_at_utf8_boundary(void **state) {
  (void)state;
  static const char *const chars[] = {"\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
  for (size_t c = 0; c < COUNT(chars); c++) {
    for (int pad = 0; pad < 4; pad++) {
      sbx_err err;
      char text[2 * SBX_ERR_MESSAGE_MAX] = "";
      size_t width = strlen(chars[c]);
      for (size_t at = 0; at + width < sizeof text; at += width)
        memcpy(text + at, chars[c], width + 1);
      sbx_err_set(&err, SBX_EINVAL, "%*s%s", pad, "", text);
      assert_true(is_valid(&err));
      assert_in_range(strlen(err.message), SBX_ERR_MESSAGE_MAX - width, SBX_ERR_MESSAGE_MAX - 1);
      sbx_err_append(&err, "%s", "more");
      assert_true(is_valid(&err));
      sbx_err_append_remote(&err, LIT("\xE2\x82\xAC more"));
      assert_true(is_valid(&err));
    }
  }
}

static void test_invalid_utf8_in_arguments(void **state) {
  (void)state;
  sbx_err err;
  sbx_err_set(&err, SBX_EINVAL, "<%s>", "a\xFF\xE2\x82z");
  assert_string_equal(err.message, "<a???z>");
  sbx_err_append(&err, "%s", "\x80");
  assert_string_equal(err.message, "<a???z>?");
}

static void test_append(void **state) {
  (void)state;
  sbx_err err;
  sbx_err_set(&err, SBX_EINVAL, "one");
  sbx_err_append(&err, " %s", "two");
  sbx_err_append(&err, ", %d", 3);
  assert_string_equal(err.message, "one two, 3");
  assert_int_equal(err.code, SBX_EINVAL);
}

static void test_remote_text(void **state) {
  (void)state;
  static const struct {
    sbx_slice in;
    const char *shown;
  } cases[] = {
      {BYTES("plain"), "plain"},
      {BYTES(""), ""},
      {BYTES(" \r\n\t "), ""},
      {BYTES("  a  \n b\t\r\n"), "a b"},
      {BYTES("a\0b\x1B[31mred\x07"), "a b [31mred"},
      {BYTES("a\x7F\xC2\x9B!"), "a !"},
      {BYTES("\xC2\xA0x"), "\xC2\xA0x"},
      {BYTES("bad \xFF\xE2\x82 end"), "bad \xEF\xBF\xBD\xEF\xBF\xBD end"},
      {BYTES("<html><head><title>502 Bad Gateway</title></head>\n<body></body></html>"),
       "502 Bad Gateway"},
      {BYTES("<!DOCTYPE html><h1>No</h1><p>entry"), "No entry"},
      {BYTES("1 < 2 and 3 > 2"), "1 < 2 and 3 > 2"},
      {BYTES("a <b without an end"), "a <b without an end"},
      {BYTES("<a<a<a"), "<a<a<a"},
      {BYTES("<"), "<"},
      {BYTES("<p"), "<p"},
      {BYTES("{\"message\":\"no such sandbox\"}"), "{\"message\":\"no such sandbox\"}"},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_err err;
    sbx_slice in = tight_copy(cases[i].in);
    sbx_err_set(&err, SBX_EPROVIDER, "said: ");
    sbx_err_append_remote(&err, in);
    assert_string_equal(err.message + 6, cases[i].shown);
    tight_free(in);
  }
}

static void test_remote_text_is_bounded(void **state) {
  (void)state;
  static char text[100000];
  for (size_t pad = 0; pad < 4; pad++) {
    sbx_err err;
    memset(text, 'x', pad);
    for (size_t at = pad; at + 3 <= sizeof text; at += 3)
      memcpy(text + at, "\xE2\x82\xAC", 3);
    sbx_err_set(&err, SBX_EPROVIDER, "said: ");
    sbx_err_append_remote(&err, sbx_slice_of(text, sizeof text));
    assert_true(is_valid(&err));
    assert_in_range(strlen(err.message) - 6, SBX_ERR_REMOTE_MAX - 3, SBX_ERR_REMOTE_MAX);
    sbx_err_append_remote(&err, sbx_slice_of(text, sizeof text));
    sbx_err_append_remote(&err, sbx_slice_of(text, sizeof text));
    assert_true(is_valid(&err));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(test_table, no_leaks),
      cmocka_unit_test_teardown(test_set_clears_the_rest, no_leaks),
      cmocka_unit_test_teardown(test_null_is_fine, no_leaks),
      cmocka_unit_test_teardown(test_copy, no_leaks),
      cmocka_unit_test_teardown(test_cut_at_utf8_boundary, no_leaks),
      cmocka_unit_test_teardown(test_invalid_utf8_in_arguments, no_leaks),
      cmocka_unit_test_teardown(test_append, no_leaks),
      cmocka_unit_test_teardown(test_remote_text, no_leaks),
      cmocka_unit_test_teardown(test_remote_text_is_bounded, no_leaks),
  };
  return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
