/* Tests of core/output: the bytes kept do not depend on how they arrive, and all are counted. */
#include "core/output.h"

#include "support/core_test.h"
#include "support/output_model.h"

/* All lengths of UTF-8, NUL, and what is not UTF-8, so that each cut hits each of them. */
static const char sample[] = "ab\xC3\xA4\0\xE2\x82\xAC"
                             "c\xFF\xF0\x9F\x98\x80\xE2\x82"
                             "d\x80\x80\x80\x80\xED\xA0\x80\n\xF0\x9F\x98\x80\xC3\xA4z";

static const size_t caps[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 23, 31, 32, 33, 34, 35, 36, 100};

typedef struct expectation {
  sbx_slice joined, std_out, std_err;
  size_t max;
  sbx_truncate truncate;
  bool merged;
} expectation;

static void check(sbx_output *out, const expectation *e) {
  sbx_kept joined, std_out, std_err;
  for (int again = 0; again < 2; again++) { /* a view changes nothing for the next */
    assert_int_equal(sbx_output_view(out, &joined, &std_out, &std_err), SBX_OK);
    assert_true(output_model_matches(e->joined, e->max, e->truncate, &joined));
    sbx_slice none = {NULL, 0};
    assert_true(output_model_matches(e->merged ? none : e->std_out, e->max, e->truncate, &std_out));
    assert_true(output_model_matches(e->merged ? none : e->std_err, e->max, e->truncate, &std_err));
  }
}

/* Sends the sample in pieces that end at `first`, `second` and its end; the second one to stderr.
 */
static void check_split(size_t first, size_t second, const expectation *like) {
  sbx_slice all = LIT(sample);
  expectation e = *like;
  char std_out[sizeof sample];
  memcpy(std_out, sample, first);
  memcpy(std_out + first, sample + second, all.len - second);
  e.joined = all;
  e.std_out = sbx_slice_of(std_out, all.len - (second - first));
  e.std_err = sbx_slice_of(sample + first, second - first);
  sbx_output *out = sbx_output_new(e.max, e.truncate, e.merged, NULL, NULL);
  assert_non_null(out);
  assert_int_equal(sbx_output_add(out, SBX_STDOUT, sbx_slice_of(sample, first)), SBX_OK);
  assert_int_equal(sbx_output_add(out, SBX_STDERR, e.std_err), SBX_OK);
  assert_int_equal(sbx_output_add(out, SBX_STDOUT, sbx_slice_skip(all, second)), SBX_OK);
  check(out, &e);
  sbx_output_free(out);
}

static void test_all_splits(void **state) {
  (void)state;
  for (size_t c = 0; c < COUNT(caps); c++) {
    for (int kind = 0; kind < 4; kind++) {
      expectation e = {.max = caps[c],
                       .truncate = kind & 1 ? SBX_KEEP_HEAD_AND_TAIL : SBX_KEEP_HEAD,
                       .merged = (kind & 2) != 0};
      for (size_t first = 0; first < sizeof sample; first++) {
        for (size_t second = first; second < sizeof sample; second++)
          check_split(first, second, &e);
      }
    }
  }
}

/* Every length of stream, so that the ring stands at every offset when it is read. */
static void test_byte_by_byte(void **state) {
  (void)state;
  char stream[4 * sizeof sample];
  for (size_t i = 0; i < sizeof stream; i++)
    stream[i] = sample[i % (sizeof sample - 1)];
  for (size_t c = 0; c < COUNT(caps); c++) {
    for (int kind = 0; kind < 2; kind++) {
      for (size_t len = 0; len <= sizeof stream; len++) {
        expectation e = {.joined = {stream, len},
                         .std_out = {stream, len},
                         .max = caps[c],
                         .truncate = kind ? SBX_KEEP_HEAD_AND_TAIL : SBX_KEEP_HEAD};
        sbx_output *out = sbx_output_new(e.max, e.truncate, false, NULL, NULL);
        for (size_t i = 0; i < len; i++)
          assert_int_equal(sbx_output_add(out, SBX_STDOUT, sbx_slice_of(stream + i, 1)), SBX_OK);
        check(out, &e);
        sbx_output_free(out);
      }
    }
  }
}

/* A view after each piece: the cuts it makes stay, and what follows is still kept. */
static void test_views_between_pieces(void **state) {
  (void)state;
  for (size_t c = 0; c < COUNT(caps); c++) {
    for (size_t step = 1; step < 9; step++) {
      for (int kind = 0; kind < 2; kind++) {
        sbx_output *out = sbx_output_new(caps[c], kind ? SBX_KEEP_HEAD_AND_TAIL : SBX_KEEP_HEAD,
                                         false, NULL, NULL);
        sbx_slice all = LIT(sample);
        for (size_t at = 0; at < all.len; at += step) {
          size_t len = all.len - at < step ? all.len - at : step;
          sbx_kept joined, std_out, std_err;
          sbx_output_add(out, SBX_STDERR, sbx_slice_of(all.ptr + at, len));
          assert_int_equal(sbx_output_view(out, &joined, &std_out, &std_err), SBX_OK);
          assert_true(output_model_allows(sbx_slice_of(all.ptr, at + len), &joined));
          assert_true(output_model_allows(sbx_slice_of(all.ptr, at + len), &std_err));
          assert_int_equal(std_out.bytes.len, 0);
          assert_true(joined.bytes.len <= caps[c]);
        }
        sbx_output_free(out);
      }
    }
  }
}

static void test_cut_examples(void **state) {
  (void)state;
  sbx_kept joined, std_out, std_err;
  sbx_output *out = sbx_output_new(4, SBX_KEEP_HEAD, false, NULL, NULL);
  sbx_output_add(out, SBX_STDOUT, LIT("ab\xE2\x82\xAC"));
  sbx_output_view(out, &joined, &std_out, &std_err);
  assert_slice(joined.bytes, LIT("ab"));
  assert_int_equal(joined.dropped, 3);
  assert_int_equal(joined.tail_at, 2);
  sbx_output_free(out);
  /* Nothing was dropped: a stream that ends inside a character is kept as it is. */
  out = sbx_output_new(4, SBX_KEEP_HEAD, false, NULL, NULL);
  sbx_output_add(out, SBX_STDOUT, LIT("ab\xE2\x82"));
  sbx_output_view(out, &joined, &std_out, &std_err);
  assert_slice(joined.bytes, LIT("ab\xE2\x82"));
  assert_int_equal(joined.dropped, 0);
  sbx_output_free(out);
  out = sbx_output_new(9, SBX_KEEP_HEAD_AND_TAIL, true, NULL, NULL);
  sbx_output_add(out, SBX_STDOUT, LIT("abc\xC3\xA4 lost \xC3\xA4wxyz"));
  sbx_output_view(out, &joined, &std_out, &std_err);
  assert_slice(joined.bytes, LIT("abcwxyz"));
  assert_int_equal(joined.tail_at, 3);
  assert_int_equal(joined.dropped, 10);
  sbx_output_free(out);
}

/* ---- the listener ---- */

typedef struct heard {
  sbx_buf streams[2];
} heard;

static void hear(void *arg, sbx_stream stream, sbx_slice bytes) {
  sbx_buf_append_slice(&((heard *)arg)->streams[stream], bytes);
}

static void test_listener_hears_everything(void **state) {
  (void)state;
  for (int merged = 0; merged < 2; merged++) {
    heard h;
    sbx_buf_init(&h.streams[SBX_STDOUT], 1000);
    sbx_buf_init(&h.streams[SBX_STDERR], 1000);
    sbx_output *out = sbx_output_new(2, SBX_KEEP_HEAD, merged, hear, &h);
    sbx_output_add(out, SBX_STDOUT, LIT("abc\0"));
    sbx_output_add(out, SBX_STDERR, LIT("de"));
    sbx_output_add(out, SBX_STDERR, LIT(""));
    sbx_output_add(out, SBX_STDOUT, LIT("f"));
    assert_false(sbx_output_is_full(out));
    assert_slice(sbx_buf_slice(&h.streams[SBX_STDOUT]), LIT("abc\0f"));
    assert_slice(sbx_buf_slice(&h.streams[SBX_STDERR]), LIT("de"));
    sbx_buf_deinit(&h.streams[SBX_STDOUT]);
    sbx_buf_deinit(&h.streams[SBX_STDERR]);
    sbx_output_free(out);
  }
}

/* ---- full, skip ---- */

static void test_full(void **state) {
  (void)state;
  sbx_kept joined, std_out, std_err;
  sbx_output *out = sbx_output_new(3, SBX_KEEP_HEAD, false, NULL, NULL);
  assert_false(sbx_output_is_full(out));
  sbx_output_add(out, SBX_STDOUT, LIT("a\xC3\xA4 more"));
  assert_false(sbx_output_is_full(out)); /* stderr has room of its own */
  sbx_output_add(out, SBX_STDERR, LIT("xy"));
  assert_false(sbx_output_is_full(out));
  sbx_output_add(out, SBX_STDERR, LIT("z"));
  assert_true(sbx_output_is_full(out));
  sbx_output_skip(out, SBX_STDERR, UINT32_MAX);
  sbx_output_skip(out, SBX_STDOUT, 1);
  sbx_output_view(out, &joined, &std_out, &std_err);
  assert_slice(joined.bytes, LIT("a\xC3\xA4"));
  assert_slice(std_out.bytes, LIT("a\xC3\xA4"));
  assert_slice(std_err.bytes, LIT("xyz"));
  assert_true(joined.dropped == (uint64_t)UINT32_MAX + 5 + 3 + 1);
  assert_true(std_out.dropped == 6);
  assert_true(std_err.dropped == UINT32_MAX);
  assert_true(sbx_output_is_full(out));
  sbx_output_free(out);

  out = sbx_output_new(3, SBX_KEEP_HEAD, true, NULL, NULL);
  sbx_output_add(out, SBX_STDOUT, LIT("ab\xC3\xA4"));
  assert_true(sbx_output_is_full(out));
  sbx_output_view(out, &joined, &std_out, &std_err);
  assert_slice(joined.bytes, LIT("ab")); /* the cut must not make room again */
  assert_true(sbx_output_is_full(out));
  sbx_output_add(out, SBX_STDERR, LIT("z"));
  sbx_output_skip(out, SBX_STDERR, 10);
  sbx_output_view(out, &joined, &std_out, &std_err);
  assert_slice(joined.bytes, LIT("ab"));
  assert_true(joined.dropped == 13);
  assert_true(std_err.dropped == 0);
  sbx_output_free(out);

  out = sbx_output_new(3, SBX_KEEP_HEAD_AND_TAIL, true, NULL, NULL);
  sbx_output_add(out, SBX_STDOUT, LIT("abcdef"));
  assert_false(sbx_output_is_full(out)); /* the tail still changes */
  sbx_output_free(out);
}

/* ---- memory ---- */

/* Longer than the first block, so that blocks grow and rings of several kilobytes wrap. */
static void test_growth(void **state) {
  (void)state;
  static char stream[50000];
  for (size_t i = 0; i < sizeof stream; i++)
    stream[i] = sample[i % (sizeof sample - 1)];
  static const size_t maxima[] = {1000, 1024, 1025, 5000, 49999, 50000, SIZE_MAX};
  static const size_t steps[] = {1, 997, 4096, 30000, 50000};
  for (size_t m = 0; m < COUNT(maxima); m++) {
    for (size_t s = 0; s < COUNT(steps); s++) {
      for (int kind = 0; kind < 2; kind++) {
        expectation e = {.joined = {stream, sizeof stream},
                         .std_err = {stream, sizeof stream},
                         .max = maxima[m],
                         .truncate = kind ? SBX_KEEP_HEAD_AND_TAIL : SBX_KEEP_HEAD};
        sbx_output *out = sbx_output_new(e.max, e.truncate, false, NULL, NULL);
        for (size_t at = 0; at < sizeof stream; at += steps[s]) {
          size_t len = sizeof stream - at < steps[s] ? sizeof stream - at : steps[s];
          sbx_output_add(out, SBX_STDERR, sbx_slice_of(stream + at, len));
        }
        check(out, &e);
        sbx_output_free(out);
      }
    }
  }
}

/* After a failed allocation the collector goes on with what it has, and nothing is lost from the
 * count. */
static void test_allocation_failure(void **state) {
  (void)state;
  static char stream[40000];
  for (size_t i = 0; i < sizeof stream; i++)
    stream[i] = sample[i % (sizeof sample - 1)];
  for (size_t n = 1;; n++) {
    bool failed = false;
    for (int kind = 0; kind < 4; kind++) {
      sbx_alloc_fail_at(n, (kind & 2) != 0);
      sbx_output *out = sbx_output_new(30000, kind & 1 ? SBX_KEEP_HEAD_AND_TAIL : SBX_KEEP_HEAD,
                                       false, NULL, NULL);
      int failures = 0;
      for (size_t at = 0; out && at < sizeof stream; at += 1000)
        failures += sbx_output_add(out, SBX_STDOUT, sbx_slice_of(stream + at, 1000)) != SBX_OK;
      failed = sbx_alloc_failed();
      sbx_alloc_fail_at(0, false);
      assert_int_equal(failed, !out || failures > 0);
      if (!out)
        continue;
      sbx_kept joined, std_out, std_err;
      assert_int_equal(sbx_output_view(out, &joined, &std_out, &std_err), SBX_OK);
      assert_true(output_model_allows(sbx_slice_of(stream, sizeof stream), &joined));
      assert_true(output_model_allows(sbx_slice_of(stream, sizeof stream), &std_out));
      if (kind & 1) /* half of what memory there is holds the end */
        assert_true(joined.bytes.len == 0 || joined.tail_at < joined.bytes.len);
      sbx_output_free(out);
    }
    if (!failed)
      break;
    assert_in_range(n, 1, 30);
  }
}

static void test_free_null(void **state) {
  (void)state;
  sbx_output_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(test_all_splits, no_leaks),
      cmocka_unit_test_teardown(test_byte_by_byte, no_leaks),
      cmocka_unit_test_teardown(test_views_between_pieces, no_leaks),
      cmocka_unit_test_teardown(test_cut_examples, no_leaks),
      cmocka_unit_test_teardown(test_listener_hears_everything, no_leaks),
      cmocka_unit_test_teardown(test_full, no_leaks),
      cmocka_unit_test_teardown(test_growth, no_leaks),
      cmocka_unit_test_teardown(test_allocation_failure, no_leaks),
      cmocka_unit_test_teardown(test_free_null, no_leaks),
  };
  return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
