/* alloc.c - malloc and friends behind one door.
 *
 * Invariant: no other file of the core calls malloc(), so a test build sees every allocation. The
 * counters are atomic since work on libuv's pool threads allocates as well; which allocation is
 * "the n-th" is only exact while one thread runs. */
#include "core/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef SBX_TEST_ALLOC

#include <stdatomic.h>

static atomic_size_t live_blocks;
static atomic_size_t countdown; /* 0: off; 1: the next allocation fails */
static atomic_bool keeps_failing;
static atomic_bool has_failed;
static void (*look_before_free)(const void *ptr);

void sbx_alloc_fail_at(size_t nth, bool sticky) {
  atomic_store(&has_failed, false);
  atomic_store(&keeps_failing, sticky);
  atomic_store(&countdown, nth);
}

bool sbx_alloc_failed(void) {
  return atomic_load(&has_failed);
}

size_t sbx_alloc_live(void) {
  return atomic_load(&live_blocks);
}

void sbx_alloc_on_free(void (*look)(const void *ptr)) {
  look_before_free = look;
}

static bool must_fail(void) {
  size_t n = atomic_load(&countdown);
  while (n > 1 && !atomic_compare_exchange_weak(&countdown, &n, n - 1)) {
  }
  if (n != 1)
    return false;
  if (!atomic_load(&keeps_failing))
    atomic_store(&countdown, 0);
  atomic_store(&has_failed, true);
  return true;
}

static void count_block(const void *ptr, bool born) {
  if (!ptr)
    return;
  if (born) {
    atomic_fetch_add(&live_blocks, 1);
    return;
  }
  atomic_fetch_sub(&live_blocks, 1);
  if (look_before_free)
    look_before_free(ptr);
}

#else

static bool must_fail(void) {
  return false;
}

static void count_block(const void *ptr, bool born) {
  (void)ptr;
  (void)born;
}

#endif

void *sbx_malloc(size_t size) {
  if (must_fail())
    return NULL;
  void *ptr = malloc(size ? size : 1);
  count_block(ptr, true);
  return ptr;
}

void *sbx_calloc(size_t count, size_t size) {
  size_t total;
  if (!sbx_size_mul(&total, count, size))
    return NULL;
  void *ptr = sbx_malloc(total);
  if (ptr)
    memset(ptr, 0, total);
  return ptr;
}

void *sbx_realloc(void *ptr, size_t size) {
  if (must_fail())
    return NULL;
  void *moved = realloc(ptr, size ? size : 1);
  if (!ptr)
    count_block(moved, true);
  return moved;
}

void *sbx_grow(void *items, size_t count, size_t item_size) {
  size_t size;
  if ((count & (count - 1)) != 0)
    return items;
  if (!sbx_size_mul(&size, count > 0 ? count : 1, 2 * item_size))
    return NULL;
  return sbx_realloc(items, size);
}

char *sbx_strndup(const char *ptr, size_t len) {
  size_t size;
  if (!sbx_size_add(&size, len, 1))
    return NULL;
  char *copy = sbx_malloc(size);
  if (!copy)
    return NULL;
  if (len)
    memcpy(copy, ptr, len);
  copy[len] = '\0';
  return copy;
}

void sbx_free(void *ptr) {
  count_block(ptr, false);
  free(ptr);
}

void sbx_wipe(void *ptr, size_t len) {
  if (!len)
    return;
  memset(ptr, 0, len);
  /* The compiler must assume that this reads the bytes, so it cannot drop the memset. */
  __asm__ __volatile__("" : : "r"(ptr) : "memory");
}

void sbx_free_secret(char *text) {
  if (text != NULL)
    sbx_wipe(text, strlen(text));
  sbx_free(text);
}

bool sbx_size_add(size_t *out, size_t a, size_t b) {
  if (a > SIZE_MAX - b)
    return false;
  *out = a + b;
  return true;
}

bool sbx_size_mul(size_t *out, size_t a, size_t b) {
  if (b && a > SIZE_MAX / b)
    return false;
  *out = a * b;
  return true;
}
