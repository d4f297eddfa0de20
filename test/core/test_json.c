/* Tests of core/json: what is JSON and what is not, exact strings and integers, bounds, the
 * writer. */
#include "core/json.h"

#include "support/core_test.h"

#include <cjson/cJSON.h>
#include <locale.h>
#include <pthread.h>

/* Parses a copy that ends where its block ends. */
static int parse(sbx_json_doc **doc, sbx_slice text, sbx_err *err) {
  sbx_slice copy = tight_copy(text);
  int rc = sbx_json_parse(doc, copy, err);
  tight_free(copy);
  return rc;
}

static sbx_json_doc *must_parse(sbx_slice text) {
  sbx_json_doc *doc = NULL;
  sbx_err err = {0};
  if (parse(&doc, text, &err) != SBX_OK)
    fail_msg("%.*s: %s", (int)text.len, text.ptr, err.message);
  return doc;
}

/* ---- what is JSON ---- */

static void test_accepts(void **state) {
  (void)state;
  static const sbx_slice good[] = {
      BYTES("null"),
      BYTES("true"),
      BYTES("false"),
      BYTES("0"),
      BYTES("-0"),
      BYTES("10"),
      BYTES("1.5"),
      BYTES("-0.0e-0"),
      BYTES("1E+400"),
      BYTES("\"\""),
      BYTES("[]"),
      BYTES("{}"),
      BYTES(" \t\r\n[ \n] \r"),
      BYTES("[1,2 , 3]"),
      BYTES("{\"\":{\"\":[]}, \"a\" : null}"),
      BYTES("{\"a\":1,\"A\":2,\"a\\u0000\":3,\"aa\":4}"),
      BYTES("\"\x7F\xC3\xA4\xE2\x80\xA8\xF0\x9F\x98\x80\""),
      BYTES("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\uD83D\\uDE00\""),
  };
  for (size_t i = 0; i < COUNT(good); i++)
    sbx_json_free(must_parse(good[i]), i % 2 == 0);
}

static void test_refuses(void **state) {
  (void)state;
  static const sbx_slice bad[] = {
      BYTES(""),
      BYTES(" "),
      BYTES("\xEF\xBB\xBF{}"),
      BYTES("nul"),
      BYTES("nulL"),
      BYTES("True"),
      BYTES("nullx"),
      BYTES("{} {}"),
      BYTES("{}\0"),
      BYTES("\0{}"),
      BYTES("[1\0]"),
      BYTES("[\v1]"),
      BYTES("[\xC2\xA0]"),
      BYTES("["),
      BYTES("]"),
      BYTES("[1"),
      BYTES("[1,"),
      BYTES("[1,]"),
      BYTES("[,1]"),
      BYTES("[1 2]"),
      BYTES("[1}"),
      BYTES("{"),
      BYTES("{\"a\"}"),
      BYTES("{\"a\":}"),
      BYTES("{\"a\":1,}"),
      BYTES("{\"a\":1"),
      BYTES("{\"a\":1]"),
      BYTES("{a:1}"),
      BYTES("{1:1}"),
      BYTES("{'a':1}"),
      BYTES("{\"a\":1 \"b\":2}"),
      BYTES("{,}"),
      BYTES("// x\n1"),
      BYTES("01"),
      BYTES("-"),
      BYTES("-a"),
      BYTES("+1"),
      BYTES(".5"),
      BYTES("1."),
      BYTES("1.e1"),
      BYTES("1e"),
      BYTES("1e+"),
      BYTES("0x10"),
      BYTES("NaN"),
      BYTES("Infinity"),
      BYTES("-Infinity"),
      BYTES("\""),
      BYTES("\"a"),
      BYTES("\"a\\"),
      BYTES("\"a\\\""),
      BYTES("\"\\x41\""),
      BYTES("\"\\'\""),
      BYTES("\"\\\0\""),
      BYTES("\"\\u\""),
      BYTES("\"\\u12\""),
      BYTES("\"\\u12G4\""),
      BYTES("\"\\U0041\""),
      BYTES("\"\\uD800\""),
      BYTES("\"\\uDC00\""),
      BYTES("\"\\uD800\\u0041\""),
      BYTES("\"\\uD800\\uD800\""),
      BYTES("\"\\uDE00\\uD83D\""),
      BYTES("\"\\uD83D\\n\""),
      BYTES("\"\\uD83D\\uDE0\""),
      BYTES("\"a\nb\""),
      BYTES("\"a\0b\""),
      BYTES("\"a\x1F\""),
      BYTES("\"\xFF\""),
      BYTES("\"\xC0\x80\""),
      BYTES("\"\xED\xA0\x80\""),
      BYTES("\"\xE2\x82\""),
      BYTES("{\"\xFF\":1}"),
      BYTES("{\"a\":1,\"a\":1}"),
      BYTES("{\"a\":1,\"b\":2,\"\\u0061\":1}"),
      BYTES("{\"a\\u0000b\":1,\"a\\u0000b\":2}"),
      BYTES("[{\"x\":{\"\":1,\"\":2}}]"),
  };
  for (size_t i = 0; i < COUNT(bad); i++) {
    sbx_json_doc *doc = NULL;
    sbx_err err = {0};
    if (parse(&doc, bad[i], &err) != SBX_EPROTO)
      fail_msg("taken: %.*s", (int)bad[i].len, bad[i].ptr);
    assert_null(doc);
    assert_int_equal(err.code, SBX_EPROTO);
    assert_non_null(strstr(err.message, "at byte "));
    assert_int_equal(parse(&doc, bad[i], NULL), SBX_EPROTO);
  }
}

static const char sample[] =
    "{\"id\":\"s\\u0000b\\ud83d\\ude00\",\"n\":[1,-2.5e3,true,false,null,{}],\"o\":{\"\":\"\xE2"
    "\x82\xAC\"}}";

/* No beginning of a text is a text, and no changed byte does harm. */
static void test_every_cut_and_every_byte(void **state) {
  (void)state;
  sbx_json_doc *doc;
  sbx_slice whole = LIT(sample);
  sbx_json_free(must_parse(whole), false);
  for (size_t len = 0; len < whole.len; len++)
    assert_int_equal(parse(&doc, sbx_slice_of(whole.ptr, len), NULL), SBX_EPROTO);
  static const char bytes[] = "\0\x1F \"\\{}[],:0-e.ut\x80\xFF";
  for (size_t at = 0; at < whole.len; at++) {
    for (size_t b = 0; b < sizeof bytes - 1; b++) {
      char changed[sizeof sample];
      memcpy(changed, sample, sizeof sample);
      changed[at] = bytes[b];
      if (parse(&doc, sbx_slice_of(changed, whole.len), NULL) == SBX_OK)
        sbx_json_free(doc, false);
    }
  }
}

static void test_message_tells_no_content(void **state) {
  (void)state;
  sbx_json_doc *doc;
  sbx_err err;
  assert_int_equal(parse(&doc, LIT("{\"token\":\"sk-canary\",\"sk-canary\":sk-canary}"), &err),
                   SBX_EPROTO);
  assert_null(strstr(err.message, "canary"));
  assert_string_equal(err.message, "invalid JSON at byte 33: no value");
}

/* ---- depth ---- */

static sbx_slice nested(char *text, size_t depth, const char *open, const char *core, char close) {
  size_t len = 0;
  for (size_t i = 0; i < depth; i++) {
    memcpy(text + len, open, strlen(open));
    len += strlen(open);
  }
  memcpy(text + len, core, strlen(core));
  len += strlen(core);
  memset(text + len, close, depth);
  return sbx_slice_of(text, len + depth);
}

static void test_depth(void **state) {
  (void)state;
  char text[1000];
  sbx_json_doc *doc;
  sbx_json_free(must_parse(nested(text, 64, "[", "", ']')), false);
  sbx_json_free(must_parse(nested(text, 64, "[", "0", ']')), false);
  sbx_json_free(must_parse(nested(text, 63, "{\"a\":", "{}", '}')), false);
  assert_int_equal(parse(&doc, nested(text, 65, "[", "", ']'), NULL), SBX_EPROTO);
  assert_int_equal(parse(&doc, nested(text, 64, "{\"a\":", "[]", '}'), NULL), SBX_EPROTO);
  /* Depth is not a count: many siblings are fine. */
  sbx_json_free(must_parse(LIT("[[],[],{},[[]],[],[[[]]]]")), false);
}

static void *parse_deep(void *arg) {
  const sbx_slice *text = arg;
  sbx_json_doc *doc;
  sbx_err err;
  int rc = sbx_json_parse(&doc, *text, &err);
  return rc == SBX_EPROTO && strstr(err.message, "nested too deeply") ? arg : NULL;
}

static void test_deep_text_on_a_small_stack(void **state) {
  (void)state;
  static char text[200000];
  static const char *const openings[] = {"[", "{\"a\":"};
  for (size_t i = 0; i < COUNT(openings); i++) {
    size_t width = strlen(openings[i]);
    for (size_t at = 0; at < sizeof text; at++)
      text[at] = openings[i][at % width];
    sbx_slice all = sbx_slice_of(text, sizeof text);
    pthread_attr_t attr;
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, 128 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attr, parse_deep, &all), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &all);
    pthread_attr_destroy(&attr);
  }
}

/* ---- accessors ---- */

static void test_strings(void **state) {
  (void)state;
  static const struct {
    sbx_slice json, value;
  } cases[] = {
      {BYTES("\"\""), BYTES("")},
      {BYTES("\"a\\u0000b\\u0000\""), BYTES("a\0b\0")},
      {BYTES("\"\\u0000\""), BYTES("\0")},
      {BYTES("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), BYTES("\"\\/\b\f\n\r\t")},
      {BYTES("\"\\u007f\\u0080\\u07ff\\u0800\\uffff\""),
       BYTES("\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF")},
      {BYTES("\"\\ud800\\udc00\\uDBFF\\uDFFF\""), BYTES("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF")},
      {BYTES("\"\\u004a\\u004A\""), BYTES("JJ")},
      {BYTES("\"\xC3\xA4\\n\xE2\x82\xAC\""), BYTES("\xC3\xA4\n\xE2\x82\xAC")},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_json_doc *doc = must_parse(cases[i].json);
    sbx_slice value;
    assert_true(sbx_json_string(sbx_json_root(doc), &value));
    assert_slice(value, cases[i].value);
    assert_int_equal(value.ptr[value.len], 0);
    sbx_json_free(doc, true);
  }
}

/* Larger than one chunk, and many small ones over several chunks. */
static void test_long_and_many_strings(void **state) {
  (void)state;
  sbx_buf text;
  sbx_json_out out;
  static char big[20000];
  memset(big, 'x', sizeof big);
  sbx_buf_init(&text, 1 << 20);
  sbx_json_out_init(&out, &text);
  sbx_json_begin_array(&out);
  for (size_t i = 0; i < 1000; i++)
    sbx_json_put_string(&out, sbx_slice_of(big, i));
  sbx_json_put_string(&out, sbx_slice_of(big, sizeof big));
  sbx_json_end_array(&out);
  sbx_json_doc *doc = must_parse(sbx_buf_slice(&text));
  const sbx_json *item = NULL;
  for (size_t i = 0; i <= 1000; i++) {
    sbx_slice value;
    item = sbx_json_next(sbx_json_root(doc), item, NULL);
    assert_true(sbx_json_string(item, &value));
    assert_slice(value, sbx_slice_of(big, i < 1000 ? i : sizeof big));
  }
  assert_null(sbx_json_next(sbx_json_root(doc), item, NULL));
  sbx_json_free(doc, false);
  sbx_buf_deinit(&text);
}

static void test_secrets_are_wiped(void **state) {
  (void)state;
  for (int secret = 0; secret < 2; secret++) {
    sbx_json_doc *doc = must_parse(LIT("{\"token\":\"sk-canary\",\"n\":12}"));
    sbx_slice token;
    assert_true(sbx_json_string(sbx_json_get(sbx_json_root(doc), "token"), &token));
    watch_secret(token);
    sbx_json_free(doc, secret != 0);
    assert_int_equal(secret_was_wiped(), secret);
  }
}

static void test_get(void **state) {
  (void)state;
  sbx_json_doc *doc =
      must_parse(LIT("{\"a\\u0000b\":1,\"A\":2,\"a\":3,\"\":4,\"n\":null,\"o\":{\"x\":true}}"));
  const sbx_json *root = sbx_json_root(doc);
  int64_t n = 0;
  assert_true(sbx_json_int(sbx_json_get(root, "a"), 0, 9, &n));
  assert_int_equal(n, 3);
  assert_true(sbx_json_int(sbx_json_get(root, "A"), 0, 9, &n));
  assert_int_equal(n, 2);
  assert_true(sbx_json_int(sbx_json_get(root, ""), 0, 9, &n));
  assert_int_equal(n, 4);
  assert_null(sbx_json_get(root, "b"));
  assert_null(sbx_json_get(root, "aa"));
  assert_true(sbx_json_is_null(sbx_json_get(root, "n")));
  assert_null(sbx_json_get(sbx_json_get(root, "n"), "x"));
  assert_null(sbx_json_get(sbx_json_get(root, "none"), "x"));
  bool b = false;
  assert_true(sbx_json_bool(sbx_json_get(sbx_json_get(root, "o"), "x"), &b));
  assert_true(b);
  sbx_json_free(doc, false);
}

static void test_types_do_not_mix(void **state) {
  (void)state;
  sbx_json_doc *doc = must_parse(LIT("[null,true,false,7,\"7\",[],{}]"));
  const sbx_json *v = NULL;
  for (int i = 0; i < 8; i++) {
    /* The last turn is about NULL. */
    v = sbx_json_next(sbx_json_root(doc), v, NULL);
    sbx_slice s;
    bool b;
    int64_t n;
    double d;
    assert_int_equal(sbx_json_is_null(v), i == 0);
    assert_int_equal(sbx_json_bool(v, &b), i == 1 || i == 2);
    assert_int_equal(sbx_json_int(v, 7, 7, &n), i == 3);
    assert_int_equal(sbx_json_number(v, &d), i == 3);
    assert_int_equal(sbx_json_int_or_text(v, 7, 7, &n), i == 3 || i == 4);
    assert_int_equal(sbx_json_string(v, &s), i == 4);
    assert_int_equal(sbx_json_is_string(v), i == 4);
    assert_int_equal(sbx_json_is_array(v), i == 5);
    assert_int_equal(sbx_json_is_object(v), i == 6);
    assert_int_equal(sbx_json_count(v), 0);
    assert_null(sbx_json_next(v, NULL, NULL));
    assert_null(sbx_json_get(v, "a"));
  }
  assert_null(v);
  sbx_json_free(doc, false);
  sbx_json_free(NULL, true);
}

static void test_integers(void **state) {
  (void)state;
  static const struct {
    const char *json;
    bool fits;
    int64_t value;
  } cases[] = {
      {"0", true, 0},
      {"-0", true, 0},
      {"-1", true, -1},
      {"9007199254740993", true, 9007199254740993},
      {"9223372036854775807", true, INT64_MAX},
      {"-9223372036854775808", true, INT64_MIN},
      {"9223372036854775808", false, 0},
      {"-9223372036854775809", false, 0},
      {"18446744073709551616", false, 0},
      {"100000000000000000000000000000000000000000000000000000000000000000000000", false, 0},
      {"1.0", false, 0},
      {"1e3", false, 0},
      {"1E0", false, 0},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_json_doc *doc = must_parse(sbx_slice_str(cases[i].json));
    int64_t n = 42;
    assert_int_equal(sbx_json_int(sbx_json_root(doc), INT64_MIN, INT64_MAX, &n), cases[i].fits);
    assert_true(n == (cases[i].fits ? cases[i].value : 42));
    n = 42;
    assert_int_equal(sbx_json_int_or_text(sbx_json_root(doc), INT64_MIN, INT64_MAX, &n),
                     cases[i].fits);
    assert_true(n == (cases[i].fits ? cases[i].value : 42));
    sbx_json_free(doc, false);
  }
}

static void test_integer_range(void **state) {
  (void)state;
  sbx_json_doc *doc = must_parse(LIT("10"));
  const sbx_json *v = sbx_json_root(doc);
  int64_t n = 42;
  assert_false(sbx_json_int(v, 11, 20, &n));
  assert_false(sbx_json_int(v, 0, 9, &n));
  assert_int_equal(n, 42);
  assert_true(sbx_json_int(v, 10, 10, &n));
  assert_int_equal(n, 10);
  sbx_json_free(doc, false);
}

static void test_integer_text(void **state) {
  (void)state;
  static const sbx_slice bad[] = {BYTES("\"\""),        BYTES("\" 1\""),      BYTES("\"1 \""),
                                  BYTES("\"+1\""),      BYTES("\"01\""),      BYTES("\"-\""),
                                  BYTES("\"1.0\""),     BYTES("\"0x1\""),     BYTES("\"1\\u0000\""),
                                  BYTES("\"\\u0000\""), BYTES("\"\xD9\xA1\"")};
  for (size_t i = 0; i < COUNT(bad); i++) {
    sbx_json_doc *doc = must_parse(bad[i]);
    int64_t n;
    assert_false(sbx_json_int_or_text(sbx_json_root(doc), INT64_MIN, INT64_MAX, &n));
    sbx_json_free(doc, false);
  }
  sbx_json_doc *doc = must_parse(LIT("\"-9223372036854775808\""));
  int64_t n;
  assert_true(sbx_json_int_or_text(sbx_json_root(doc), INT64_MIN, INT64_MAX, &n));
  assert_true(n == INT64_MIN);
  assert_false(sbx_json_int(sbx_json_root(doc), INT64_MIN, INT64_MAX, &n));
  sbx_json_free(doc, false);
}

static void check_number(const char *json, bool finite, double value) {
  sbx_json_doc *doc = must_parse(sbx_slice_str(json));
  double d = 42;
  assert_int_equal(sbx_json_number(sbx_json_root(doc), &d), finite);
  assert_true(d == (finite ? value : 42));
  sbx_json_free(doc, false);
}

static void test_numbers(void **state) {
  (void)state;
  check_number("0.1", true, 0.1);
  check_number("-1.5e3", true, -1500);
  check_number("1E-400", true, 0);
  check_number("1e308", true, 1e308);
  check_number("1e309", false, 0);
  check_number("-1e309", false, 0);
  check_number("0.000000000000000000000000000000000000000000000000000000000000000000000000000001",
               true, 1e-78);
}

/* A program may have set a locale whose decimal point is a comma. */
static void test_numbers_in_another_locale(void **state) {
  (void)state;
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8"};
  bool set = false;
  for (size_t i = 0; i < COUNT(names) && !set; i++)
    set = setlocale(LC_NUMERIC, names[i]) != NULL;
  check_number("1.5", true, 1.5);
  setlocale(LC_NUMERIC, "C");
  if (!set)
    skip();
}

static void test_iteration(void **state) {
  (void)state;
  sbx_json_doc *doc = must_parse(LIT("{\"b\":1,\"a\\u0000\":2,\"\":3}"));
  const sbx_json *root = sbx_json_root(doc);
  static const sbx_slice names[] = {BYTES("b"), BYTES("a\0"), BYTES("")};
  const sbx_json *item = NULL;
  sbx_slice name;
  for (size_t i = 0; i < COUNT(names); i++) {
    int64_t n;
    item = sbx_json_next(root, item, &name);
    assert_slice(name, names[i]);
    assert_true(sbx_json_int(item, 0, 9, &n));
    assert_int_equal(n, i + 1);
  }
  assert_null(sbx_json_next(root, item, &name));
  assert_int_equal(sbx_json_count(root), 3);
  sbx_json_free(doc, false);
  doc = must_parse(LIT("[[],0]"));
  item = sbx_json_next(sbx_json_root(doc), NULL, &name);
  assert_true(sbx_json_is_array(item));
  assert_int_equal(name.len, 0);
  assert_int_equal(sbx_json_count(sbx_json_root(doc)), 2);
  sbx_json_free(doc, false);
}

/* C186: the limit is kept while reading, so that no more is ever allocated. */
static void test_values_are_limited(void **state) {
  (void)state;
  sbx_json_doc *doc = NULL;
  sbx_err err;
  const char *text = "[[1,2],{\"a\":null},\"b\"]"; /* 7 values */
  assert_int_equal(sbx_json_parse_max(&doc, sbx_slice_str(text), 7, &err), SBX_OK);
  sbx_json_free(doc, false);
  for (size_t max = 0; max < 7; max++) {
    assert_int_equal(sbx_json_parse_max(&doc, sbx_slice_str(text), max, &err), SBX_EPROTO);
    assert_non_null(strstr(err.message, "too many values"));
  }
  sbx_buf zeros;
  sbx_buf_init(&zeros, SIZE_MAX);
  sbx_buf_append_str(&zeros, "[0");
  for (int i = 2; i < SBX_JSON_VALUES_DEFAULT; i++)
    sbx_buf_append_str(&zeros, ",0");
  size_t len = zeros.len;
  sbx_buf_append_str(&zeros, "]");
  assert_int_equal(sbx_json_parse(&doc, sbx_buf_slice(&zeros), &err), SBX_OK);
  sbx_json_free(doc, false);
  sbx_buf_truncate(&zeros, len);
  sbx_buf_append_str(&zeros, ",0]");
  assert_int_equal(sbx_json_parse(&doc, sbx_buf_slice(&zeros), &err), SBX_EPROTO);
  sbx_buf_deinit(&zeros);
}

/* Twins far apart in a large object are found, whatever their order. */
static void test_duplicates_in_a_large_object(void **state) {
  (void)state;
  for (int twin = 0; twin < 2; twin++) {
    sbx_buf text;
    sbx_json_out out;
    sbx_buf_init(&text, 1 << 20);
    sbx_json_out_init(&out, &text);
    sbx_json_begin_object(&out);
    for (int i = 0; i < 20000; i++) {
      char name[16];
      int n = i == 19000 && twin ? 3 : i;
      snprintf(name, sizeof name, "%d", (int)((unsigned)n * 2654435761u % 1000003));
      sbx_json_put_name(&out, sbx_slice_str(name));
      sbx_json_put_int(&out, i);
    }
    sbx_json_end_object(&out);
    sbx_json_doc *doc;
    assert_int_equal(sbx_json_parse_max(&doc, sbx_buf_slice(&text), 20001, NULL),
                     twin ? SBX_EPROTO : SBX_OK);
    if (!twin) {
      assert_int_equal(sbx_json_count(sbx_json_root(doc)), 20000);
      sbx_json_free(doc, false);
    }
    sbx_buf_deinit(&text);
  }
}

/* ---- allocation failure ---- */

static int parse_sample(void *arg) {
  (void)arg;
  sbx_json_doc *doc = NULL;
  sbx_err err = {0};
  int rc = sbx_json_parse(&doc, LIT(sample), &err);
  assert_int_equal(err.code, rc);
  assert_int_equal(doc != NULL, rc == SBX_OK);
  sbx_json_free(doc, false);
  return rc;
}

static void test_allocation_failure(void **state) {
  (void)state;
  /* Nodes are cJSON's allocations. */
  cJSON_InitHooks(&(cJSON_Hooks){sbx_malloc, sbx_free});
  assert_in_range(each_allocation_fails(parse_sample, NULL), 12, 40);
  cJSON_InitHooks(NULL);
}

/* ---- writing ---- */

static void test_writer(void **state) {
  (void)state;
  sbx_buf buf;
  sbx_json_out out;
  sbx_buf_init(&buf, 1000);
  sbx_json_out_init(&out, &buf);
  sbx_json_begin_object(&out);
  sbx_json_put_name(&out, LIT("a"));
  sbx_json_put_int(&out, INT64_MIN);
  sbx_json_put_name(&out, LIT("b\"\n"));
  sbx_json_begin_array(&out);
  sbx_json_put_bool(&out, true);
  sbx_json_put_bool(&out, false);
  sbx_json_put_null(&out);
  sbx_json_begin_object(&out);
  sbx_json_end_object(&out);
  sbx_json_begin_array(&out);
  sbx_json_end_array(&out);
  sbx_json_put_int(&out, INT64_MAX);
  sbx_json_end_array(&out);
  sbx_json_put_name(&out, LIT(""));
  sbx_json_put_string(&out, LIT("\xFF x\0\x1F\x7F\\/\xE2\x82\xAC\xE2\x82"));
  sbx_json_end_object(&out);
  assert_int_equal(buf.error, SBX_OK);
  assert_slice(sbx_buf_slice(&buf),
               LIT("{\"a\":-9223372036854775808,\"b\\\"\\n\":[true,false,null,{},[],"
                   "9223372036854775807],\"\":\"\xEF\xBF\xBD x\\u0000\\u001f\x7F\\\\/\xE2\x82\xAC"
                   "\xEF\xBF\xBD\"}"));
  sbx_json_free(must_parse(sbx_buf_slice(&buf)), false);
  sbx_buf_deinit(&buf);
}

static void test_writer_round_trip_of_every_byte(void **state) {
  (void)state;
  char ascii[128];
  for (size_t i = 0; i < sizeof ascii; i++)
    ascii[i] = (char)i;
  sbx_buf buf;
  sbx_json_out out;
  sbx_slice back;
  sbx_buf_init(&buf, 1000);
  sbx_json_out_init(&out, &buf);
  sbx_json_put_string(&out, sbx_slice_of(ascii, sizeof ascii));
  sbx_json_doc *doc = must_parse(sbx_buf_slice(&buf));
  assert_true(sbx_json_string(sbx_json_root(doc), &back));
  assert_slice(back, sbx_slice_of(ascii, sizeof ascii));
  sbx_json_free(doc, false);
  sbx_buf_deinit(&buf);
}

/* Strings are looked at in words: no byte may hide behind its neighbours. */
static void test_every_byte_at_every_place(void **state) {
  (void)state;
  enum { LEN = 19 };
  for (int c = 0; c < 256; c++) {
    for (size_t at = 0; at < LEN; at++) {
      char text[LEN + 2];
      sbx_buf buf;
      sbx_json_out out;
      sbx_slice back;
      sbx_json_doc *doc = NULL;
      sbx_err err;
      memset(text, at % 2 == 0 ? 0x7f : '!', sizeof text);
      text[0] = text[LEN + 1] = '"';
      text[at + 1] = (char)c;
      bool plain = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
      int code = sbx_json_parse(&doc, sbx_slice_of(text, sizeof text), &err);
      assert_int_equal(code, plain ? SBX_OK : SBX_EPROTO);
      if (plain) {
        assert_true(sbx_json_string(sbx_json_root(doc), &back));
        assert_slice(back, sbx_slice_of(text + 1, LEN));
      }
      sbx_json_free(doc, false);

      sbx_buf_init(&buf, 1000);
      sbx_json_out_init(&out, &buf);
      sbx_json_put_string(&out, sbx_slice_of(text + 1, LEN));
      doc = must_parse(sbx_buf_slice(&buf));
      assert_true(sbx_json_string(sbx_json_root(doc), &back));
      if (c < 0x80)
        assert_slice(back, sbx_slice_of(text + 1, LEN));
      else
        assert_true(back.len == LEN + 2 && memcmp(back.ptr + at, "\xEF\xBF\xBD", 3) == 0);
      sbx_json_free(doc, false);
      sbx_buf_deinit(&buf);
    }
  }
}

static void test_writer_error_is_sticky(void **state) {
  (void)state;
  for (size_t max = 0; max < 12; max++) {
    sbx_buf buf;
    sbx_json_out out;
    sbx_buf_init(&buf, max);
    sbx_json_out_init(&out, &buf);
    sbx_json_begin_array(&out);
    sbx_json_put_string(&out, LIT("a\n"));
    sbx_json_put_null(&out);
    sbx_json_end_array(&out); /* ["a\n",null] */
    assert_int_equal(buf.error, SBX_ETOOBIG);
    assert_true(buf.len <= max);
    sbx_buf_deinit(&buf);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(test_accepts, no_leaks),
      cmocka_unit_test_teardown(test_refuses, no_leaks),
      cmocka_unit_test_teardown(test_every_cut_and_every_byte, no_leaks),
      cmocka_unit_test_teardown(test_message_tells_no_content, no_leaks),
      cmocka_unit_test_teardown(test_depth, no_leaks),
      cmocka_unit_test_teardown(test_deep_text_on_a_small_stack, no_leaks),
      cmocka_unit_test_teardown(test_strings, no_leaks),
      cmocka_unit_test_teardown(test_long_and_many_strings, no_leaks),
      cmocka_unit_test_teardown(test_secrets_are_wiped, no_leaks),
      cmocka_unit_test_teardown(test_get, no_leaks),
      cmocka_unit_test_teardown(test_types_do_not_mix, no_leaks),
      cmocka_unit_test_teardown(test_integers, no_leaks),
      cmocka_unit_test_teardown(test_integer_range, no_leaks),
      cmocka_unit_test_teardown(test_integer_text, no_leaks),
      cmocka_unit_test_teardown(test_numbers, no_leaks),
      cmocka_unit_test_teardown(test_numbers_in_another_locale, no_leaks),
      cmocka_unit_test_teardown(test_iteration, no_leaks),
      cmocka_unit_test_teardown(test_values_are_limited, no_leaks),
      cmocka_unit_test_teardown(test_duplicates_in_a_large_object, no_leaks),
      cmocka_unit_test_teardown(test_allocation_failure, no_leaks),
      cmocka_unit_test_teardown(test_writer, no_leaks),
      cmocka_unit_test_teardown(test_writer_round_trip_of_every_byte, no_leaks),
      cmocka_unit_test_teardown(test_every_byte_at_every_place, no_leaks),
      cmocka_unit_test_teardown(test_writer_error_is_sticky, no_leaks),
  };
  return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
