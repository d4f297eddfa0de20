/* Tests of core/secrets: what is hidden of a message, and what is not. */
#include "core/secrets.h"

#include "core/err.h"
#include "support/core_test.h"

static void check(const char *message, const char *secret, const char *expected) {
  sbx_err err;
  sbx_err_set(&err, SBX_EPROTO, "%s", message);
  sbx_secret_hide(&err, sbx_slice_str(secret));
  assert_string_equal(err.message, expected);
}

/* C188 */
static void test_hide(void **state) {
  (void)state;
  check("", "secret-1", "");
  check("no such thing", "secret-1", "no such thing");
  check("secret-1", "secret-1", "***");
  check("a secret-1, secret-1b secret-2", "secret-1", "a ***, ***b secret-2");
  check("ssecret-1", "secret-1", "s***");
  check("secrsecret-1", "secret-1", "secr***");
  check("the key is short", "key", "the key is short");
  check("nothing", "", "nothing");
}

/* Remote text is cut at some length, and more may follow. */
static void test_hide_the_beginning(void **state) {
  (void)state;
  const char *token = "tok_0123456789abcdef";
  check("bad token tok_0123456789abcdef!", token, "bad token ***!");
  check("bad token tok_01234567", token, "bad token ***");
  check("bad token tok_0123456789ab; more", token, "bad token ***; more");
  check("bad token tok_0123456", token, "bad token tok_0123456");
}

static void test_long_message(void **state) {
  (void)state;
  sbx_err err;
  sbx_err_set(&err, SBX_EPROTO, "x");
  while (strlen(err.message) + 9 < sizeof err.message)
    sbx_err_append(&err, "secret-1 ");
  sbx_secret_hide(&err, sbx_slice_str("secret-1"));
  assert_null(strstr(err.message, "secret"));
  assert_non_null(strstr(err.message, "*** *** ***"));
}

static void test_fields(void **state) {
  (void)state;
  sbx_headers headers;
  sbx_err err;
  sbx_headers_init(&headers, 4096);
  assert_int_equal(sbx_headers_add(&headers, LIT("Authorization"), LIT("Bearer canary-1"), NULL),
                   0);
  assert_int_equal(sbx_headers_add(&headers, LIT("X-My-Token"), LIT("canary-2"), NULL), 0);
  assert_int_equal(sbx_headers_add(&headers, LIT("X-Trace"), LIT("visible"), NULL), 0);
  sbx_err_set(&err, SBX_EPROTO, "Bearer canary-1 canary-2 visible");
  sbx_secret_hide_fields(&err, &headers);
  assert_string_equal(err.message, "*** *** *** visible");
  sbx_headers_deinit(&headers);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(test_hide, no_leaks),
      cmocka_unit_test_teardown(test_hide_the_beginning, no_leaks),
      cmocka_unit_test_teardown(test_long_message, no_leaks),
      cmocka_unit_test_teardown(test_fields, no_leaks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
