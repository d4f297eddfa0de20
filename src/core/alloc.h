/* alloc.h - the only way to memory in the core.
 *
 * Every allocation can be made to fail in test builds (SBX_TEST_ALLOC): the tests let the n-th
 * allocation fail for every n and require a clean error and no leak. */
#ifndef SBX_ALLOC_H
#define SBX_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* NULL on failure and for a zero size is never confused: a size of 0 allocates one byte. */
void *sbx_malloc(size_t size);
/* Zeroed; fails when count * size overflows. */
void *sbx_calloc(size_t count, size_t size);
/* As realloc(); the old block stays valid on failure. */
void *sbx_realloc(void *ptr, size_t size);
/* Room for one more item behind the `count` of an array that got all of its room here: `items`, or
 * at each power of two a larger block in its place. NULL on failure; `items` stays valid. */
void *sbx_grow(void *items, size_t count, size_t item_size);
/* NUL-terminated copy of `len` bytes. */
char *sbx_strndup(const char *ptr, size_t len);
void sbx_free(void *ptr);
/* Overwrites the bytes in a way that the compiler keeps; for secrets. */
void sbx_wipe(void *ptr, size_t len);
/* Wipes NUL-terminated text and frees it. NULL is fine. */
void sbx_free_secret(char *text);

/* *out = a + b, or a * b; false on overflow. */
bool sbx_size_add(size_t *out, size_t a, size_t b);
bool sbx_size_mul(size_t *out, size_t a, size_t b);

#ifdef SBX_TEST_ALLOC
/* Lets allocation number `nth` from now (1 = the next) fail, and all after it too when `sticky`.
 * 0 turns it off. */
void sbx_alloc_fail_at(size_t nth, bool sticky);
/* Whether the failure set by sbx_alloc_fail_at() has happened. */
bool sbx_alloc_failed(void);
/* Blocks allocated and not yet freed. */
size_t sbx_alloc_live(void);
/* `look` sees each block before it is freed; NULL turns it off. For one thread only. */
void sbx_alloc_on_free(void (*look)(const void *ptr));
#endif

#endif
