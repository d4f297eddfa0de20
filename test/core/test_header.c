/* Tests of core/header: names and values that may be sent, lines as received, Retry-After. */
#include "core/header.h"

#include "support/core_test.h"

static void test_add_and_get(void **state) {
  (void)state;
  sbx_headers h;
  sbx_slice value = LIT("untouched");
  sbx_headers_init(&h, 1000);
  assert_false(sbx_headers_get(&h, "a", &value));
  assert_int_equal(sbx_headers_add(&h, LIT("Content-Type"), LIT(" \ttext/plain \t"), NULL), SBX_OK);
  assert_int_equal(sbx_headers_add(&h, LIT("X-Empty"), LIT("  "), NULL), SBX_OK);
  assert_int_equal(sbx_headers_add(&h, LIT("x-two"), LIT("one"), NULL), SBX_OK);
  assert_int_equal(sbx_headers_add(&h, LIT("X-Two"), LIT("a\tb \xC3\xA4\xFF"), NULL), SBX_OK);
  assert_int_equal(h.count, 4);
  assert_true(sbx_headers_get(&h, "CONTENT-TYPE", &value));
  assert_slice(value, LIT("text/plain"));
  assert_int_equal(value.ptr[value.len], 0);
  assert_true(sbx_headers_get(&h, "x-empty", &value));
  assert_int_equal(value.len, 0);
  assert_true(sbx_headers_get(&h, "X-TWO", &value));
  assert_slice(value, LIT("one"));
  assert_slice(h.items[3].value, LIT("a\tb \xC3\xA4\xFF"));
  assert_slice(h.items[3].name, LIT("X-Two"));
  value = LIT("untouched");
  assert_false(sbx_headers_get(&h, "content-typ", &value));
  assert_false(sbx_headers_get(&h, "", &value));
  assert_slice(value, LIT("untouched"));
  sbx_headers_deinit(&h);
  assert_int_equal(h.count, 0);
  assert_int_equal(sbx_headers_add(&h, LIT("a"), LIT("b"), NULL), SBX_OK);
  sbx_headers_deinit(&h);
}

static void test_every_byte(void **state) {
  (void)state;
  for (int c = 0; c < 256; c++) {
    char name[3] = {'a', (char)c, 'b'};
    bool token = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 (c && strchr("!#$%&'*+-.^_`|~", c));
    bool sendable = c == '\t' || (c >= 0x20 && c != 0x7F);
    bool line_ok = c != '\r' && c != '\n' && c != 0;
    sbx_headers h;
    sbx_err err = {0};
    sbx_headers_init(&h, 1000);
    assert_int_equal(sbx_headers_add(&h, sbx_slice_of(name, 3), LIT("v"), &err),
                     token ? SBX_OK : SBX_EINVAL);
    assert_int_equal(err.code, token ? SBX_OK : SBX_EINVAL);
    assert_int_equal(sbx_headers_add(&h, LIT("n"), sbx_slice_of(name, 3), NULL),
                     sendable ? SBX_OK : SBX_EINVAL);
    char line[] = {'a', (char)c, 'b', ':', 'v'};
    assert_int_equal(sbx_headers_add_line(&h, sbx_slice_of(line, 5), NULL),
                     token || c == ':' ? SBX_OK : SBX_EPROTO);
    char value[] = {'n', ':', 'a', (char)c, 'b'};
    assert_int_equal(sbx_headers_add_line(&h, sbx_slice_of(value, 5), NULL),
                     line_ok ? SBX_OK : SBX_EPROTO);
    sbx_headers_deinit(&h);
  }
}

static void test_message_tells_no_value(void **state) {
  (void)state;
  sbx_headers h;
  sbx_err err;
  sbx_headers_init(&h, 20);
  assert_int_equal(sbx_headers_add(&h, LIT("X-Key"), LIT("sk-canary\r\nX: y"), &err), SBX_EINVAL);
  assert_null(strstr(err.message, "canary"));
  assert_non_null(strstr(err.message, "X-Key"));
  assert_int_equal(sbx_headers_add(&h, LIT("X-Key"), LIT("sk-canary-sk-canary"), &err),
                   SBX_ETOOBIG);
  assert_null(strstr(err.message, "canary"));
  assert_int_equal(sbx_headers_add(&h, LIT("sk-canary key"), LIT("v"), &err), SBX_EINVAL);
  assert_null(strstr(err.message, "canary"));
  assert_int_equal(sbx_headers_add_line(&h, LIT("sk-canary"), &err), SBX_EPROTO);
  assert_null(strstr(err.message, "canary"));
  assert_int_equal(h.count, 0);
  sbx_headers_deinit(&h);
}

static void test_values_are_wiped(void **state) {
  (void)state;
  sbx_headers h;
  sbx_slice value;
  sbx_headers_init(&h, 1000);
  assert_int_equal(sbx_headers_add(&h, LIT("X-Key"), LIT("sk-canary"), NULL), SBX_OK);
  assert_int_equal(sbx_headers_add(&h, LIT("X-Other"), LIT("y"), NULL), SBX_OK);
  assert_true(sbx_headers_get(&h, "x-key", &value));
  watch_secret(value);
  sbx_headers_deinit(&h);
  assert_true(secret_was_wiped());
}

static void test_lines(void **state) {
  (void)state;
  static const struct {
    sbx_slice line, name, value;
  } cases[] = {
      {BYTES("a:b"), BYTES("a"), BYTES("b")},
      {BYTES("a: b\r\n"), BYTES("a"), BYTES("b")},
      {BYTES("a: b\n"), BYTES("a"), BYTES("b")},
      {BYTES("a:\r\n"), BYTES("a"), BYTES("")},
      {BYTES("a:"), BYTES("a"), BYTES("")},
      {BYTES("a: \t\r\n"), BYTES("a"), BYTES("")},
      {BYTES("Date:  Sun, 06 Nov 1994 08:49:37 GMT  \r\n"), BYTES("Date"),
       BYTES("Sun, 06 Nov 1994 08:49:37 GMT")},
      {BYTES("a:b:c"), BYTES("a"), BYTES("b:c")},
      {BYTES("a: \x01\x7F\xFF"), BYTES("a"), BYTES("\x01\x7F\xFF")},
  };
  static const sbx_slice bad[] = {
      BYTES(""),
      BYTES("\r\n"),
      BYTES("a"),
      BYTES(":b"),
      BYTES(" a:b"), /* a folded line */
      BYTES("\ta:b"),
      BYTES("a :b"),
      BYTES("a\t:b"),
      BYTES("a b:c"),
      BYTES("HTTP/1.1 200 OK\r\n"),
      BYTES("a: b\r"),
      BYTES("a: b\r\r\n"),
      BYTES("a: b\n\n"),
      BYTES("a: b\r\nc: d\r\n"),
      BYTES("a: b\0\r\n"),
      BYTES("a\0: b"),
      BYTES("\xC3\xA4: b"),
  };
  sbx_headers h;
  sbx_headers_init(&h, 1000);
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_slice line = tight_copy(cases[i].line);
    assert_int_equal(sbx_headers_add_line(&h, line, NULL), SBX_OK);
    assert_slice(h.items[i].name, cases[i].name);
    assert_slice(h.items[i].value, cases[i].value);
    tight_free(line);
  }
  for (size_t i = 0; i < COUNT(bad); i++) {
    sbx_slice line = tight_copy(bad[i]);
    sbx_err err = {0};
    assert_int_equal(sbx_headers_add_line(&h, line, &err), SBX_EPROTO);
    assert_int_equal(err.code, SBX_EPROTO);
    tight_free(line);
  }
  assert_int_equal(h.count, COUNT(cases));
  sbx_headers_deinit(&h);
}

static void test_limits(void **state) {
  (void)state;
  sbx_headers h;
  sbx_err err;
  sbx_headers_init(&h, 10);
  assert_int_equal(sbx_headers_add(&h, LIT("name"), LIT("value"), NULL), SBX_OK);
  assert_int_equal(sbx_headers_add(&h, LIT("n"), LIT("v"), &err), SBX_ETOOBIG);
  assert_int_equal(sbx_headers_add(&h, LIT("n"), LIT("  "), NULL), SBX_OK);
  assert_int_equal(sbx_headers_add_line(&h, LIT("n:"), NULL), SBX_ETOOBIG);
  assert_int_equal(h.count, 2);
  sbx_headers_deinit(&h);
  sbx_headers_init(&h, SIZE_MAX);
  for (int i = 0; i < SBX_HEADERS_MAX_COUNT; i++)
    assert_int_equal(sbx_headers_add(&h, LIT("n"), LIT("v"), NULL), SBX_OK);
  assert_int_equal(sbx_headers_add(&h, LIT("n"), LIT("v"), NULL), SBX_ETOOBIG);
  assert_int_equal(sbx_headers_add_line(&h, LIT("n:v"), NULL), SBX_ETOOBIG);
  assert_int_equal(h.count, SBX_HEADERS_MAX_COUNT);
  sbx_headers_deinit(&h);
}

/* ---- Retry-After ---- */

#define NOV_6_1994 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */

static void test_retry_after(void **state) {
  (void)state;
  static const struct {
    sbx_slice value;
    int64_t now;
    uint64_t delay_ms;
  } cases[] = {
      {BYTES("0"), 0, 0},
      {BYTES("1"), 0, 1000},
      {BYTES(" 120\t"), 0, 120000},
      {BYTES("007"), 0, 7000},
      {BYTES("4294967295"), 0, 4294967295000},
      {BYTES("4294967296"), 0, 4294967295000},
      {BYTES("99999999999999999999999999999999"), 0, 4294967295000},
      {BYTES("Sun, 06 Nov 1994 08:49:37 GMT"), NOV_6_1994, 0},
      {BYTES("Sun, 06 Nov 1994 08:49:37 GMT"), NOV_6_1994 - 1, 1000},
      {BYTES("Sun, 06 Nov 1994 08:49:37 GMT"), NOV_6_1994 + 1, 0},
      {BYTES("Sunday, 06-Nov-94 08:49:37 GMT"), NOV_6_1994 - 5, 5000},
      {BYTES("Sun Nov  6 08:49:37 1994"), NOV_6_1994 - 5, 5000},
      {BYTES("Sun Nov 16 08:49:37 1994"), NOV_6_1994, 864000000},
      {BYTES("Thu, 29 Feb 2024 00:00:00 GMT"), 1709164799, 1000},
      {BYTES("Wed, 31 Dec 2025 23:59:60 GMT"), 1767225598, 1000},
      /* Two digits of a year that is more than 50 years ahead are of the past. */
      {BYTES("Friday, 01-Jan-26 00:00:00 GMT"), 1767225600 - 3, 3000},
      {BYTES("Sunday, 06-Nov-94 08:49:37 GMT"), 1767225600, 0},
      {BYTES("Fri, 01 Jan 9999 00:00:00 GMT"), 0, 4294967295000},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_slice value = tight_copy(cases[i].value);
    uint64_t delay = 42;
    if (!sbx_retry_after(value, cases[i].now, &delay) || delay != cases[i].delay_ms)
      fail_msg("%.*s: %llu", (int)value.len, value.ptr, (unsigned long long)delay);
    tight_free(value);
  }
}

static void test_retry_after_refusals(void **state) {
  (void)state;
  static const sbx_slice bad[] = {
      BYTES(""),
      BYTES(" "),
      BYTES("-1"),
      BYTES("+1"),
      BYTES("1.5"),
      BYTES("1s"),
      BYTES("1 2"),
      BYTES("0x1"),
      BYTES("1\0"),
      BYTES("soon"),
      BYTES("Sun, 06 Nov 1994 08:49:37"),
      BYTES("Sun, 06 Nov 1994 08:49:37 UTC"),
      BYTES("Sun, 06 Nov 1994 08:49:37 GMT+1"),
      BYTES("Sun, 06 Nov 1994 24:00:00 GMT"),
      BYTES("Sun, 06 Nov 1994 08:60:00 GMT"),
      BYTES("Sun, 06 Nov 1994 08:00:61 GMT"),
      BYTES("Sun, 00 Nov 1994 08:49:37 GMT"),
      BYTES("Thu, 31 Nov 1994 08:49:37 GMT"),
      BYTES("Thu, 29 Feb 2023 08:49:37 GMT"),
      BYTES("Sun, 06 Nob 1994 08:49:37 GMT"),
      BYTES("Sun, 06 nov 1994 08:49:37 GMT"),
      BYTES("Sun, 06 ovD 1994 08:49:37 GMT"),
      BYTES("Sun, 6 Nov 1994 08:49:37 GMT"),
      BYTES("S1n, 06 Nov 1994 08:49:37 GMT"),
      BYTES("Sun, 06 Nov 1994 08:49:3\xB7 GMT"),
      BYTES("Sunday, 06-Nov-1994 08:49:37 GMT"),
      BYTES("Sun Nov    08:49:37 1994"),
      BYTES("Sun Nov 06 08:49:37 94"),
      BYTES(", "),
  };
  for (size_t i = 0; i < COUNT(bad); i++) {
    sbx_slice value = tight_copy(bad[i]);
    uint64_t delay = 42;
    if (sbx_retry_after(value, 0, &delay))
      fail_msg("taken: %.*s", (int)value.len, value.ptr);
    assert_int_equal(delay, 42);
    tight_free(value);
  }
}

/* ---- allocation failure ---- */

static int fill(void *arg) {
  (void)arg;
  sbx_headers h;
  sbx_err err = {0};
  int rc = SBX_OK;
  sbx_headers_init(&h, 1000);
  for (int i = 0; i < 10 && rc == SBX_OK; i++)
    rc = sbx_headers_add(&h, LIT("name"), LIT("value"), &err);
  if (rc == SBX_OK)
    rc = sbx_headers_add_line(&h, LIT("name: value\r\n"), &err);
  assert_int_equal(err.code, rc);
  sbx_headers_deinit(&h);
  return rc;
}

static void test_allocation_failure(void **state) {
  (void)state;
  assert_int_equal(each_allocation_fails(fill, NULL), 11 + 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(test_add_and_get, no_leaks),
      cmocka_unit_test_teardown(test_every_byte, no_leaks),
      cmocka_unit_test_teardown(test_message_tells_no_value, no_leaks),
      cmocka_unit_test_teardown(test_values_are_wiped, no_leaks),
      cmocka_unit_test_teardown(test_lines, no_leaks),
      cmocka_unit_test_teardown(test_limits, no_leaks),
      cmocka_unit_test_teardown(test_retry_after, no_leaks),
      cmocka_unit_test_teardown(test_retry_after_refusals, no_leaks),
      cmocka_unit_test_teardown(test_allocation_failure, no_leaks),
  };
  return cmocka_run_group_tests_name("header", tests, NULL, NULL);
}
