/* Tests of core/spool, core/rand and the state that others keep with a loop. */
#include "core/spool.h"

#include "core/alloc.h"
#include "core/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
  uv_loop_t uv;
  sbx_loop *loop;
  sbx_spool spool;
  char seen[64];
  int calls;
  bool add_inside;
  bool deinit_inside;
} fixture;

static void on_bytes(void *arg, sbx_slice bytes) {
  fixture *f = arg;
  f->calls++;
  strncat(f->seen, bytes.ptr, bytes.len);
  if (f->add_inside) {
    f->add_inside = false;
    assert_int_equal(sbx_spool_add(&f->spool, sbx_slice_str("+")), SBX_OK);
  }
  if (f->deinit_inside)
    sbx_spool_deinit(&f->spool);
}

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  sbx_err err;
  assert_int_equal(uv_loop_init(&f->uv), 0);
  assert_int_equal(sbx_loop_new(&f->loop, &f->uv, &err), SBX_OK);
  sbx_spool_init(&f->spool, f->loop, on_bytes, f);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  sbx_spool_deinit(&f->spool);
  if (f->loop != NULL)
    sbx_loop_close(f->loop, NULL, NULL);
  uv_run(&f->uv, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&f->uv), 0);
  free(f);
  assert_int_equal(sbx_alloc_live(), 0);
  return 0;
}

static void run(fixture *f) {
  for (int i = 0; i < 4; i++)
    uv_run(&f->uv, UV_RUN_NOWAIT);
}

static void test_bytes_wait_for_the_ready_list(void **state) {
  fixture *f = *state;
  sbx_spool_add(&f->spool, sbx_slice_str("ab"));
  sbx_spool_add(&f->spool, sbx_slice_str("c"));
  assert_int_equal(f->calls, 0);
  run(f);
  assert_string_equal(f->seen, "abc");
  assert_int_equal(f->calls, 1);
  f->add_inside = true;
  sbx_spool_add(&f->spool, sbx_slice_str("d"));
  run(f);
  assert_string_equal(f->seen, "abcd+");
  assert_int_equal(f->calls, 3);
}

static void test_a_flush_hands_on_at_once(void **state) {
  fixture *f = *state;
  sbx_spool_flush(&f->spool);
  assert_int_equal(f->calls, 0);
  sbx_spool_add(&f->spool, sbx_slice_str("x"));
  sbx_spool_flush(&f->spool);
  assert_string_equal(f->seen, "x");
  run(f);
  assert_int_equal(f->calls, 1);
}

static void test_what_is_dropped_is_not_handed_on(void **state) {
  fixture *f = *state;
  sbx_spool_add(&f->spool, sbx_slice_str("x"));
  sbx_spool_deinit(&f->spool);
  run(f);
  assert_int_equal(f->calls, 0);
  f->deinit_inside = true;
  sbx_spool_add(&f->spool, sbx_slice_str("y"));
  run(f);
  assert_string_equal(f->seen, "y");
}

static void test_out_of_memory(void **state) {
  fixture *f = *state;
  sbx_alloc_fail_at(1, false);
  assert_int_equal(sbx_spool_add(&f->spool, sbx_slice_str("x")), SBX_ENOMEM);
  sbx_alloc_fail_at(0, false);
  run(f);
  assert_int_equal(f->calls, 0);
}

static void test_random_names(void **state) {
  char a[201], b[201], none[1];
  (void)state;
  assert_int_equal(sbx_random_hex(a, 200, NULL), SBX_OK);
  assert_int_equal(sbx_random_hex(b, 200, NULL), SBX_OK);
  assert_int_equal(strspn(a, "0123456789abcdef"), 200);
  assert_int_equal(strlen(a), 200);
  assert_string_not_equal(a, b);
  assert_int_equal(sbx_random_hex(none, 0, NULL), SBX_OK);
  assert_string_equal(none, "");
  for (int i = 0; i < 100; i++)
    assert_true(sbx_random_upto(3) <= 3);
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
  fixture *f = *state;
  static const char key_a, key_b, key_c;
  note a = {.state = {.key = &key_a, .end = on_end}};
  note b = {.state = {.key = &key_b, .end = on_end}};
  assert_null(sbx_loop_find_state(f->loop, &key_a));
  sbx_loop_add_state(f->loop, &a.state);
  sbx_loop_add_state(f->loop, &b.state);
  assert_ptr_equal(sbx_loop_find_state(f->loop, &key_a), &a);
  assert_ptr_equal(sbx_loop_find_state(f->loop, &key_b), &b);
  assert_null(sbx_loop_find_state(f->loop, &key_c));
  sbx_loop_close(f->loop, NULL, NULL);
  f->loop = NULL;
  uv_run(&f->uv, UV_RUN_DEFAULT);
  assert_int_equal(a.ended, 1);
  assert_int_equal(b.ended, 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(test_bytes_wait_for_the_ready_list),    T(test_a_flush_hands_on_at_once),
      T(test_what_is_dropped_is_not_handed_on), T(test_out_of_memory),
      cmocka_unit_test(test_random_names),      T(test_state_is_found_and_ended_with_the_loop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
