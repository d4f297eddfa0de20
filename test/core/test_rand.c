/* Tests of core/rand, and of the state that others keep with a loop. */
#include "core/rand.h"

#include "support/loop_fixture.h"

static void test_random_names(void **state) {
  char a[201], b[201], none[1];
  (void)state;
  assert_int_equal(sbx_random_hex(a, 200, NULL), SBX_OK);
  assert_int_equal(sbx_random_hex(b, 200, NULL), SBX_OK);
  assert_int_equal(strspn(a, "0123456789abcdef"), 200);
  assert_int_equal(strlen(a), 200);
  assert_string_not_equal(a, b);
  bool own = false; /* two digits that are made of one byte */
  for (size_t i = 0; i < 200; i += 2)
    own = own || a[i] != a[i + 1];
  assert_true(own);
  assert_int_equal(sbx_random_hex(none, 0, NULL), SBX_OK);
  assert_string_equal(none, "");
}

static void test_random_numbers(void **state) {
  bool seen[4] = {false};
  (void)state;
  for (int i = 0; i < 1000; i++) {
    uint64_t n = sbx_random_upto(3);
    assert_true(n <= 3);
    seen[n] = true;
  }
  assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
  assert_int_equal(sbx_random_upto(0), 0);
}

typedef struct note {
  sbx_loop_state state;
  int ended;
} note;

static void on_end(sbx_loop_state *state) {
  ((note *)(void *)state)->ended++;
}

static void test_state_is_found_and_ended_with_the_loop(void **state) {
  static const char key_a, key_b, key_c;
  note a = {.state = {.key = &key_a, .end = on_end}};
  note b = {.state = {.key = &key_b, .end = on_end}};
  uv_loop_t uv;
  sbx_loop *loop;
  (void)state;
  loop_open(&uv, &loop);
  assert_null(sbx_loop_find_state(loop, &key_a));
  sbx_loop_add_state(loop, &a.state);
  sbx_loop_add_state(loop, &b.state);
  assert_ptr_equal(sbx_loop_find_state(loop, &key_a), &a);
  assert_ptr_equal(sbx_loop_find_state(loop, &key_b), &b);
  assert_null(sbx_loop_find_state(loop, &key_c));
  loop_end(&uv, loop);
  assert_int_equal(a.ended, 1);
  assert_int_equal(b.ended, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_names),
      cmocka_unit_test(test_random_numbers),
      cmocka_unit_test(test_state_is_found_and_ended_with_the_loop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
