/* core_test.h - what the tests of the sans-I/O modules share. */
#ifndef SBX_CORE_TEST_H
#define SBX_CORE_TEST_H

#include "core/alloc.h"
#include "core/buf.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A slice of a literal that may have NUL bytes; BYTES is its form for initializers of tables. */
#define BYTES(text)                                                                                \
  { (text), sizeof(text) - 1 }
#define LIT(text) sbx_slice_of((text), sizeof(text) - 1)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define assert_slice(actual, expected)                                                             \
  do {                                                                                             \
    sbx_slice actual_ = (actual), expected_ = (expected);                                          \
    assert_int_equal(actual_.len, expected_.len);                                                  \
    if (expected_.len)                                                                             \
      assert_memory_equal(actual_.ptr, expected_.ptr, expected_.len);                              \
  } while (0)

/* A copy that ends where its block ends, so that the sanitizer sees a read behind it. */
static inline sbx_slice tight_copy(sbx_slice s) {
  char *copy = malloc(s.len ? s.len : 1);
  assert_non_null(copy);
  if (s.len)
    memcpy(copy, s.ptr, s.len);
  return sbx_slice_of(copy, s.len);
}

static inline void tight_free(sbx_slice s) {
  free((void *)(uintptr_t)s.ptr);
}

/* Watches that `secret`, bytes inside a block, is no longer there when the block is freed. */
static struct {
  sbx_slice secret;
  bool freed, wiped;
} watched;

static inline void look_at_block(const void *ptr) {
  const char *block = ptr;
  const char *secret = watched.secret.ptr;
  if (watched.freed || secret < block ||
      secret >= block + malloc_usable_size((void *)(uintptr_t)ptr))
    return;
  watched.freed = true;
  watched.wiped = true;
  for (size_t i = 0; i < watched.secret.len; i++)
    watched.wiped = watched.wiped && secret[i] == 0;
}

static inline void watch_secret(sbx_slice secret) {
  watched.secret = secret;
  watched.freed = watched.wiped = false;
  sbx_alloc_on_free(look_at_block);
}

static inline bool secret_was_wiped(void) {
  sbx_alloc_on_free(NULL);
  assert_true(watched.freed);
  return watched.wiped;
}

/* Teardown of every test. */
static inline int no_leaks(void **state) {
  (void)state;
  sbx_alloc_fail_at(0, false);
  assert_int_equal(sbx_alloc_live(), 0);
  return 0;
}

/* Calls `run` with the first, the second, ... allocation failing until none fails any more. It must
 * report SBX_ENOMEM each time and leave no memory behind. Returns how many failures there were. */
static inline size_t each_allocation_fails(int (*run)(void *arg), void *arg) {
  size_t live = sbx_alloc_live();
  for (size_t n = 1;; n++) {
    for (int sticky = 0; sticky < 2; sticky++) {
      sbx_alloc_fail_at(n, sticky != 0);
      int rc = run(arg);
      bool failed = sbx_alloc_failed();
      sbx_alloc_fail_at(0, false);
      assert_int_equal(sbx_alloc_live(), live);
      assert_int_equal(rc, failed ? SBX_ENOMEM : SBX_OK);
      if (!failed)
        return n - 1;
    }
  }
}

#endif
