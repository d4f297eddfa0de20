/* Tests of core/envelope: what comes out does not depend on where the stream is cut. */
#include "core/envelope.h"

#include "support/core_test.h"

typedef struct seen {
  sbx_buf text; /* each payload in angle brackets, the end's in square ones */
  int refuse;
} seen;

static int collect(void *arg, bool is_end, sbx_slice payload, sbx_err *err) {
  seen *s = arg;
  if (s->refuse != SBX_OK) {
    err->code = s->refuse;
    return s->refuse;
  }
  sbx_buf_append_char(&s->text, is_end ? '[' : '<');
  sbx_buf_append_slice(&s->text, payload);
  return sbx_buf_append_char(&s->text, is_end ? ']' : '>');
}

static void stream_of(sbx_buf *out) {
  sbx_buf_init(out, 4096);
  sbx_envelope_append(out, 0, LIT("{\"a\":1}"));
  sbx_envelope_append(out, 0, LIT(""));
  sbx_envelope_append(out, 0, LIT("x\0y"));
  assert_int_equal(sbx_envelope_append(out, SBX_ENVELOPE_END, LIT("{}")), SBX_OK);
}

static int feed_split(sbx_envelope *d, sbx_slice all, size_t first, size_t second, sbx_err *err) {
  int rc = sbx_envelope_feed(d, sbx_slice_of(all.ptr, first), err);
  if (rc == SBX_OK)
    rc = sbx_envelope_feed(d, sbx_slice_of(all.ptr + first, second - first), err);
  return rc == SBX_OK ? sbx_envelope_feed(d, sbx_slice_skip(all, second), err) : rc;
}

static void test_every_split(void **state) {
  (void)state;
  sbx_buf stream;
  sbx_err err;
  stream_of(&stream);
  for (size_t first = 0; first <= stream.len; first++) {
    for (size_t second = first; second <= stream.len; second++) {
      seen s = {0};
      sbx_envelope d;
      sbx_buf_init(&s.text, 4096);
      sbx_envelope_init(&d, 16, collect, &s);
      assert_int_equal(feed_split(&d, sbx_buf_slice(&stream), first, second, &err), SBX_OK);
      assert_int_equal(sbx_envelope_finish(&d, &err), SBX_OK);
      assert_true(sbx_slice_eq(sbx_buf_slice(&s.text), LIT("<{\"a\":1}><><x\0y>[{}]")));
      sbx_envelope_deinit(&d);
      sbx_buf_deinit(&s.text);
    }
  }
  sbx_buf_deinit(&stream);
}

static int feed_all(sbx_slice bytes, size_t max, int refuse, bool *whole) {
  seen s = {.refuse = refuse};
  sbx_envelope d;
  sbx_err err;
  sbx_buf_init(&s.text, 4096);
  sbx_envelope_init(&d, max, collect, &s);
  int rc = sbx_envelope_feed(&d, bytes, &err);
  *whole = rc == SBX_OK && sbx_envelope_finish(&d, &err) == SBX_OK;
  sbx_envelope_deinit(&d);
  sbx_buf_deinit(&s.text);
  return rc;
}

static void test_refused(void **state) {
  (void)state;
  bool whole;
  assert_int_equal(feed_all(LIT("\x01\0\0\0\x01x"), 16, 0, &whole), SBX_EPROTO);
  assert_int_equal(feed_all(LIT("\x04\0\0\0\x01x"), 16, 0, &whole), SBX_EPROTO);
  assert_int_equal(feed_all(LIT("\0\xFF\xFF\xFF\xFF"), 1 << 20, 0, &whole), SBX_ETOOBIG);
  assert_int_equal(feed_all(LIT("\0\0\0\0\x11"), 16, 0, &whole), SBX_ETOOBIG);
  assert_int_equal(feed_all(LIT("\x02\0\0\0\0\0"), 16, 0, &whole), SBX_EPROTO);
  assert_int_equal(feed_all(LIT("\0\0\0\0\x01x"), 16, SBX_EQUOTA, &whole), SBX_EQUOTA);
}

/* gRPC's have no last one, and may end behind each. */
static void test_plain(void **state) {
  (void)state;
  const sbx_slice stream = LIT("\0\0\0\0\2ab\0\0\0\0\0\0\0\0\0\1c");
  for (size_t len = 0; len <= stream.len; len++) {
    for (size_t first = 0; first <= len; first++) {
      seen s = {0};
      sbx_envelope d;
      sbx_err err;
      sbx_buf_init(&s.text, 4096);
      sbx_envelope_init_plain(&d, 16, collect, &s);
      assert_int_equal(feed_split(&d, sbx_slice_of(stream.ptr, len), first, first, &err), SBX_OK);
      bool whole = len == 0 || len == 7 || len == 12 || len == 18;
      assert_int_equal(sbx_envelope_finish(&d, &err), whole ? SBX_OK : SBX_EPROTO);
      if (len == stream.len)
        assert_true(sbx_slice_eq(sbx_buf_slice(&s.text), LIT("<ab><><c>")));
      sbx_envelope_deinit(&d);
      sbx_buf_deinit(&s.text);
    }
  }
  for (char flag = 1; flag < 4; flag++) {
    const char head[5] = {flag, 0, 0, 0, 0};
    seen s = {0};
    sbx_envelope d;
    sbx_err err;
    sbx_envelope_init_plain(&d, 16, collect, &s);
    assert_int_equal(sbx_envelope_feed(&d, sbx_slice_of(head, 5), &err), SBX_EPROTO);
    sbx_envelope_deinit(&d);
  }
}

static void test_end_is_needed(void **state) {
  (void)state;
  sbx_buf stream;
  bool whole;
  stream_of(&stream);
  for (size_t len = 0; len <= stream.len; len++) {
    assert_int_equal(feed_all(sbx_slice_of(stream.ptr, len), 16, 0, &whole), SBX_OK);
    assert_int_equal(whole, len == stream.len);
  }
  sbx_buf_deinit(&stream);
}

static void test_out_of_memory(void **state) {
  (void)state;
  seen s = {.refuse = SBX_OK};
  sbx_envelope d;
  sbx_err err;
  sbx_buf_init(&s.text, 64);
  sbx_envelope_init(&d, 16, collect, &s);
  sbx_alloc_fail_at(1, false);
  assert_int_equal(sbx_envelope_feed(&d,
                                     LIT("\0\0\0\0\x05"
                                         "ab"),
                                     &err),
                   SBX_ENOMEM);
  sbx_alloc_fail_at(0, false);
  sbx_envelope_deinit(&d);
  sbx_buf_deinit(&s.text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_split),   cmocka_unit_test(test_refused),
      cmocka_unit_test(test_plain),         cmocka_unit_test(test_end_is_needed),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
