/* Tests of core/items: the items of a list, at every split, and what is no list. */
#include "core/items.h"

#include "core/err.h"
#include "support/core_test.h"

typedef struct seen {
  sbx_buf text; /* of the items, with a ';' behind each */
  int fail_at;  /* 0: never */
  int count;
} seen;

static void write_item(sbx_buf *out, const sbx_json *item) {
  sbx_slice text;
  int64_t number;
  if (sbx_json_string(item, &text))
    sbx_buf_append_slice(out, text);
  else if (sbx_json_int(item, INT64_MIN, INT64_MAX, &number))
    sbx_buf_appendf(out, "%lld", (long long)number);
  else if (sbx_json_is_array(item) || sbx_json_is_object(item))
    sbx_buf_appendf(out, "%c%zu", sbx_json_is_array(item) ? 'a' : 'o', sbx_json_count(item));
  else
    sbx_buf_append_str(out, "-");
  sbx_buf_append_char(out, ';');
}

static int on_item(void *arg, const sbx_json *item, sbx_err *err) {
  seen *s = arg;
  write_item(&s->text, item);
  return ++s->count == s->fail_at ? sbx_err_set(err, SBX_EQUOTA, "enough") : SBX_OK;
}

/* Feeds `text` in pieces of `step` bytes; `at` is where the first one ends. */
static int take(seen *s, const char *member, sbx_slice text, size_t at, size_t step) {
  sbx_items items;
  sbx_err err;
  int rc = SBX_OK;
  sbx_buf_init(&s->text, 4096);
  sbx_items_init(&items, member, 64, on_item, s);
  for (size_t n = at; rc == SBX_OK && text.len > 0; n = step) {
    sbx_slice piece = sbx_slice_of(text.ptr, n < text.len ? n : text.len);
    /* A copy of its own, so that a byte too far is seen. */
    char *copy = malloc(piece.len > 0 ? piece.len : 1);
    memcpy(copy, piece.ptr, piece.len);
    rc = sbx_items_feed(&items, sbx_slice_of(copy, piece.len), &err);
    free(copy);
    text = sbx_slice_skip(text, piece.len);
  }
  if (rc == SBX_OK)
    rc = sbx_items_finish(&items, &err);
  sbx_items_deinit(&items);
  return rc;
}

static void check(const char *member, const char *text, int expected, const char *items) {
  sbx_slice whole = sbx_slice_str(text);
  for (size_t at = 0; at <= whole.len; at++) {
    for (size_t step = 1; step <= whole.len; step += whole.len - 1 > 0 ? whole.len - 1 : 1) {
      seen s = {.fail_at = 0};
      int rc = take(&s, member, whole, at > 0 ? at : 1, step);
      sbx_buf_append_char(&s.text, '\0');
      if (rc != expected || (items != NULL && strcmp(s.text.ptr, items) != 0))
        fail_msg("%s, split at %zu and %zu: %d, %s", text, at, step, rc, s.text.ptr);
      sbx_buf_deinit(&s.text);
    }
  }
}

static void test_arrays(void **state) {
  (void)state;
  check(NULL, "[]", SBX_OK, "");
  check(NULL, " [ ] \n", SBX_OK, "");
  check(NULL, "[1,\"a\",null,[],[1,[2]],{\"x\":{\"y\":[]}},-7]", SBX_OK, "1;a;-;a0;a2;o1;-7;");
  check(NULL, " [ 1 , \"]\" ,\"\\\"\\\\\" , [\"[\",\"\\\"]\"] ]", SBX_OK, "1;];\"\\;a2;");
  check(NULL, "[\"\\u0041\\u00e4\"]", SBX_OK, "A\xc3\xa4;");
}

static void test_members(void **state) {
  (void)state;
  check("e", "{}", SBX_OK, "");
  check("e", "{\"e\":[]}", SBX_OK, "");
  check("e", "{\"e\":null,\"a\":1}", SBX_OK, "");
  check("e", "{\"a\":[1,2],\"e\":[1,{\"e\":[3]},2],\"z\":{\"e\":[4]}}", SBX_OK, "1;o1;2;");
  check("e", " { \"a\" : \"e\" , \"e\" : [ 1 , 2 ] } ", SBX_OK, "1;2;");
  check("e", "{\"\\u0065\":[1]}", SBX_OK, "1;");
}

static void test_what_is_no_list(void **state) {
  (void)state;
  static const char *const arrays[] = {"",     "{}",    "1",     "[1",        "[1,]",
                                       "[,1]", "[1 2]", "[1]]",  "[1]x",      "[}",
                                       "[1}",  "[{]}]", "[tru]", "[\"a]",     "[\"\x01\"]",
                                       "[01]", "[1],",  "[[1]",  "[\"\\q\"]", "[\xff]"};
  static const char *const objects[] = {"",
                                        "[]",
                                        "{\"e\":1}",
                                        "{\"e\":{}}",
                                        "{\"e\":[1]",
                                        "{\"e\":[1],}",
                                        "{e:[1]}",
                                        "{\"e\" [1]}",
                                        "{\"e\":[1],\"e\":[2]}",
                                        "{\"e\":}",
                                        "{,}",
                                        "{\"a\":1 \"e\":[]}",
                                        "{\"e\":[1]}}"};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
    check(NULL, arrays[i], SBX_EPROTO, NULL);
  for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++)
    check("e", objects[i], SBX_EPROTO, NULL);
}

static void test_limits(void **state) {
  (void)state;
  char text[256];
  /* An item of 64 bytes, and one of 65; the same of another member. */
  snprintf(text, sizeof text, "[\"%062d\"]", 0);
  seen s = {.fail_at = 0};
  assert_int_equal(take(&s, NULL, sbx_slice_str(text), 1, 1), SBX_OK);
  sbx_buf_deinit(&s.text);
  for (size_t at = 1; at < 70; at++) {
    snprintf(text, sizeof text, at % 2 ? "[\"%063d\"]" : "{\"a\":\"%063d\"}", 0);
    assert_int_equal(take(&s, at % 2 ? NULL : "e", sbx_slice_str(text), at, 100), SBX_ETOOBIG);
    sbx_buf_deinit(&s.text);
  }
}

static void test_consumer_ends_it(void **state) {
  (void)state;
  seen s = {.fail_at = 2};
  assert_int_equal(take(&s, NULL, sbx_slice_str("[1,2,3]"), 100, 1), SBX_EQUOTA);
  assert_int_equal(s.count, 2);
  sbx_buf_deinit(&s.text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(test_arrays, no_leaks),
      cmocka_unit_test_teardown(test_members, no_leaks),
      cmocka_unit_test_teardown(test_what_is_no_list, no_leaks),
      cmocka_unit_test_teardown(test_limits, no_leaks),
      cmocka_unit_test_teardown(test_consumer_ends_it, no_leaks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
