/* Tests of the decoder for a container engine's frames, and of the head of an answer: both at every
 * split. */
#include "core/frames.h"
#include "core/head.h"

#include "support/core_test.h"

/* ---- frames ---- */

/* Appends one letter and the bytes per call, but joins what belongs together. */
typedef struct seen {
  sbx_buf text;
  int last;
  int stop_at; /* a stream whose bytes end it; -1: none */
} seen;

static int on_frame(void *arg, sbx_frame frame, sbx_slice bytes, sbx_err *err) {
  seen *s = arg;
  (void)err;
  assert_true(bytes.len > 0);
  if ((int)frame != s->last)
    sbx_buf_append_char(&s->text, (char)('0' + (int)frame));
  s->last = (int)frame;
  sbx_buf_append_slice(&s->text, bytes);
  return (int)frame == s->stop_at ? SBX_EQUOTA : SBX_OK;
}

static int feed_frames(sbx_slice in, size_t first, size_t second, int stop_at, seen *s) {
  sbx_frames d;
  sbx_err err;
  const size_t ends[] = {first, second, in.len};
  size_t at = 0;
  int rc = SBX_OK;
  *s = (seen){.last = -1, .stop_at = stop_at};
  sbx_buf_init(&s->text, 4096);
  sbx_frames_init(&d, on_frame, s);
  for (size_t i = 0; i < 3 && rc == SBX_OK; i++) {
    sbx_slice piece = tight_copy(sbx_slice_of(in.ptr + at, ends[i] - at));
    rc = sbx_frames_feed(&d, piece, &err);
    tight_free(piece);
    at = ends[i];
  }
  return rc == SBX_OK ? sbx_frames_finish(&d, &err) : rc;
}

static void check_frames(sbx_slice in, const char *text, int stop_at, int code) {
  for (size_t first = 0; first <= in.len; first++) {
    for (size_t second = first; second <= in.len; second++) {
      seen s;
      assert_int_equal(feed_frames(in, first, second, stop_at, &s), code);
      assert_slice(sbx_buf_slice(&s.text), sbx_slice_str(text));
      sbx_buf_deinit(&s.text);
    }
  }
}

#define FRAME(kind, length) kind "\0\0\0\0\0\0" length

static void test_frames_at_every_split(void **state) {
  (void)state;
  check_frames(LIT(""), "", -1, SBX_OK);
  check_frames(LIT(FRAME("\1", "\3") "out" FRAME("\2", "\2") "er"), "1out2er", -1, SBX_OK);
  check_frames(LIT(FRAME("\1", "\0") FRAME("\0", "\1") "i" FRAME("\3", "\1") "x"), "0i3x", -1,
               SBX_OK);
  check_frames(LIT(FRAME("\1", "\3") "out" FRAME("\2", "\1") "e" FRAME("\1", "\1") "n"), "1out2e1n",
               -1, SBX_OK);
}

static void test_frames_that_are_wrong(void **state) {
  (void)state;
  check_frames(LIT(FRAME("\1", "\3") "ou"), "1ou", -1, SBX_EPROTO);
  check_frames(LIT(FRAME("\1", "\1") "o\1\0\0"), "1o", -1, SBX_EPROTO);
  check_frames(LIT(FRAME("\4", "\1") "o"), "", -1, SBX_EPROTO);
  check_frames(LIT("HTTP/1.1 200 OK"), "", -1, SBX_EPROTO);
  check_frames(LIT("\1\0\1\0\0\0\0\1x"), "", -1, SBX_EPROTO);
}

static void test_a_consumer_stops_the_frames(void **state) {
  seen s;
  (void)state;
  sbx_slice in = LIT(FRAME("\1", "\1") "o" FRAME("\2", "\1") "e" FRAME("\1", "\1") "n");
  assert_int_equal(feed_frames(in, 0, 0, 2, &s), SBX_EQUOTA);
  assert_slice(sbx_buf_slice(&s.text), LIT("1o2e"));
  sbx_buf_deinit(&s.text);
}

/* ---- head ---- */

static int feed_head(sbx_head *head, sbx_slice in, size_t first, size_t *used) {
  sbx_err err;
  size_t n = 0;
  sbx_slice piece = tight_copy(sbx_slice_of(in.ptr, first));
  int rc = sbx_head_feed(head, piece, &n, &err);
  tight_free(piece);
  *used = n;
  if (rc != SBX_OK || head->done)
    return rc;
  assert_int_equal(n, first);
  piece = tight_copy(sbx_slice_skip(in, first));
  rc = sbx_head_feed(head, piece, &n, &err);
  tight_free(piece);
  *used += n;
  return rc;
}

static void test_a_head_at_every_split(void **state) {
  static const sbx_slice in =
      BYTES("HTTP/1.1 100 Continue\r\nX: no\r\n\r\nHTTP/1.1 101 UPGRADED\r\n"
            "Upgrade: tcp\r\nEmpty:\n\r\nrest");
  (void)state;
  for (size_t first = 0; first <= in.len; first++) {
    sbx_head head;
    size_t used;
    sbx_slice value;
    sbx_head_init(&head, 1000);
    assert_int_equal(feed_head(&head, in, first, &used), SBX_OK);
    assert_true(head.done && head.status == 101 && used == in.len - 4 && head.headers.count == 2);
    assert_true(sbx_headers_get(&head.headers, "upgrade", &value));
    assert_slice(value, LIT("tcp"));
    sbx_head_deinit(&head);
  }
}

static void test_heads_that_are_wrong(void **state) {
  static const sbx_slice cases[] = {
      BYTES("\nHTTP/1.1 200 OK\n\n"),
      BYTES("HTTP/2 200\r\n\r\n"),
      BYTES("HTTP/1.1 20\r\n\r\n"),
      BYTES("HTTP/1.1 2000 OK\r\n\r\n"),
      BYTES("HTTP/1.1 099 OK\r\n\r\n"),
      BYTES("\r\nHTTP/1.1 200 OK\r\n"),
      BYTES("HTTP/1.1 200 OK\r\n folded: 1\r\n"),
      BYTES("HTTP/1.1 200 OK\r\nnone\r\n"),
      BYTES("\1\0\0\0\0\0\0\4text\n"),
      BYTES(
          "HTTP/1.1 200 OK\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (size_t first = 0; first <= cases[i].len; first++) {
      sbx_head head;
      size_t used;
      sbx_head_init(&head, 64);
      if (feed_head(&head, cases[i], first, &used) != SBX_EPROTO)
        fail_msg("%s", cases[i].ptr);
      sbx_head_deinit(&head);
    }
  }
}

typedef struct head_run {
  sbx_slice in;
} head_run;

static int head_once(void *arg) {
  const head_run *run = arg;
  sbx_head head;
  size_t used;
  sbx_err err;
  sbx_head_init(&head, 1000);
  int rc = sbx_head_feed(&head, run->in, &used, &err);
  sbx_head_deinit(&head);
  return rc;
}

static void test_a_head_without_memory(void **state) {
  head_run run = {BYTES("HTTP/1.1 200 OK\r\nA: b\r\nC: d\r\n\r\n")};
  (void)state;
  assert_true(each_allocation_fails(head_once, &run) > 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_frames_at_every_split),
      cmocka_unit_test(test_frames_that_are_wrong),
      cmocka_unit_test(test_a_consumer_stops_the_frames),
      cmocka_unit_test(test_a_head_at_every_split),
      cmocka_unit_test(test_heads_that_are_wrong),
      cmocka_unit_test(test_a_head_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
