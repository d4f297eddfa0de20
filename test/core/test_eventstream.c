/* Tests of the decoder for AWS's event streams, at every split. */
#include "core/err.h"
#include "core/eventstream.h"

#include "support/core_test.h"
#include "support/event_model.h"

enum { MOST = 4096, SMALL = 60 };

/* What is told: "kind/name/message/payload;" of each. */
typedef struct seen {
  sbx_buf text;
  bool stops;
} seen;

static int on_event(void *arg, const sbx_event *event, sbx_err *err) {
  seen *s = arg;
  const sbx_slice parts[] = {event->kind, event->name, event->message, event->payload};
  for (size_t i = 0; i < COUNT(parts); i++) {
    sbx_buf_append_slice(&s->text, parts[i]);
    sbx_buf_append_char(&s->text, i + 1 < COUNT(parts) ? '/' : ';');
  }
  return s->stops ? sbx_err_set(err, SBX_EQUOTA, NULL) : SBX_OK;
}

static int feed(sbx_slice in, size_t first, size_t second, size_t most, seen *s) {
  sbx_eventstream stream;
  sbx_err err = {0};
  const size_t ends[] = {first, second, in.len};
  size_t at = 0;
  int rc = SBX_OK;
  sbx_buf_init(&s->text, MOST);
  sbx_eventstream_init(&stream, most, on_event, s);
  for (size_t i = 0; i < COUNT(ends) && rc == SBX_OK; i++) {
    sbx_slice piece = tight_copy(sbx_slice_of(in.ptr + at, ends[i] - at));
    rc = sbx_eventstream_feed(&stream, piece, &err);
    tight_free(piece);
    at = ends[i];
  }
  if (rc == SBX_OK)
    rc = sbx_eventstream_finish(&stream, &err);
  assert_int_equal(err.code, rc);
  sbx_eventstream_deinit(&stream);
  return rc;
}

static void check(sbx_slice in, const char *text, size_t most, int code) {
  for (size_t first = 0; first <= in.len; first++) {
    for (size_t second = first; second <= in.len; second += 1 + in.len / 40) {
      seen s = {.stops = code == SBX_EQUOTA};
      assert_int_equal(feed(in, first, second, most, &s), code);
      assert_slice(sbx_buf_slice(&s.text), sbx_slice_str(text));
      sbx_buf_deinit(&s.text);
    }
  }
}

/* Written by another program. */
static const char no_payload[] =
    "\x00\x00\x00\x26\x00\x00\x00\x16\xdf\x77\xb0\x9c\x0d:message-type\x07\x00\x05"
    "event\x08\x07\xc7\x04";
static const char with_payload[] =
    "\x00\x00\x00\x6a\x00\x00\x00\x4c\xc9\xca\xbd\x3e\x0d:message-type\x07\x00\x05"
    "event\x0b:event-type\x07\x00\x06result\x0d:content-type\x07\x00\x10"
    "application/json{\"content\":[]}\x47\x16\xbd\x4f";

static void test_at_every_split(void **state) {
  sbx_buf all;
  (void)state;
  check(LIT(""), "", MOST, SBX_OK);
  check(LIT(no_payload), "event///;", MOST, SBX_OK);
  check(LIT(with_payload), "event/result//{\"content\":[]};", MOST, SBX_OK);
  sbx_buf_init(&all, MOST);
  sbx_buf_append_slice(&all, LIT(no_payload));
  event_put_message(&all, LIT(""), LIT(""));
  event_put(&all, "exception", ":exception-type", "x", "{}");
  event_put(&all, "error", ":error-message", "m", "");
  check(sbx_buf_slice(&all), "event///;///;exception/x//{};error//m/;", MOST, SBX_OK);
  check(sbx_buf_slice(&all), "event///;", MOST, SBX_EQUOTA);
  sbx_buf_deinit(&all);
}

static void test_every_wrong_bit(void **state) {
  char copy[sizeof with_payload - 1];
  (void)state;
  for (size_t bit = 0; bit < 8 * sizeof copy; bit++) {
    seen s = {0};
    memcpy(copy, with_payload, sizeof copy);
    copy[bit / 8] = (char)(copy[bit / 8] ^ 1 << bit % 8);
    int rc = feed(sbx_slice_of(copy, sizeof copy), 13, 50, MOST, &s);
    assert_int_equal(rc, SBX_EPROTO);
    assert_int_equal(s.text.len, 0);
    sbx_buf_deinit(&s.text);
  }
}

static void test_what_is_cut_or_too_long(void **state) {
  (void)state;
  for (size_t len = 1; len < sizeof no_payload - 1; len++)
    check(sbx_slice_of(no_payload, len), "", MOST, SBX_ENET);
  check(LIT(no_payload), "event///;", SMALL, SBX_OK);
  check(LIT(with_payload), "", SMALL, SBX_ETOOBIG);
}

static void test_headers(void **state) {
  static const struct {
    sbx_slice headers;
    int code;
  } cases[] = {
      {BYTES("\1a\0\1b\1\1c\2x\1d\3xx\1e\4xxxx\1f\5xxxxxxxx\1g\6\0\2xx\1h\7\0\0\1i\x8xxxxxxxx"
             "\1j\x9xxxxxxxxxxxxxxxx"),
       SBX_OK},
      {BYTES("\0\0"), SBX_OK},
      {BYTES("\1"), SBX_EPROTO},
      {BYTES("\1a"), SBX_EPROTO},
      {BYTES("\1a\2"), SBX_EPROTO},
      {BYTES("\1a\7\0"), SBX_EPROTO},
      {BYTES("\1a\7\0\2x"), SBX_EPROTO},
      {BYTES("\1a\x9xxxxxxxxxxxxxxx"), SBX_EPROTO},
      {BYTES("\1a\xa"), SBX_EPROTO},
      {BYTES("\1a\xff"), SBX_EPROTO},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_buf message;
    sbx_buf_init(&message, MOST);
    event_put_message(&message, cases[i].headers, LIT("p"));
    check(sbx_buf_slice(&message), cases[i].code == SBX_OK ? "///p;" : "", MOST, cases[i].code);
    sbx_buf_deinit(&message);
  }
}

/* Checked lengths that make no sense: less than a message has, and headers that reach behind it. */
static void test_lengths(void **state) {
  static const size_t cases[][2] = {{0, 0}, {15, 0}, {16, 1}, {38, 23}, {38, 0xffffffff}};
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_buf message;
    sbx_buf_init(&message, MOST);
    event_put_number(&message, cases[i][0], 4);
    event_put_number(&message, cases[i][1], 4);
    event_put_number(&message, sbx_crc32(0, sbx_buf_slice(&message)), 4);
    sbx_buf_append_str(&message, "more that comes behind it");
    check(sbx_buf_slice(&message), "", MOST, SBX_EPROTO);
    sbx_buf_deinit(&message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_at_every_split),
      cmocka_unit_test(test_every_wrong_bit),
      cmocka_unit_test(test_what_is_cut_or_too_long),
      cmocka_unit_test(test_headers),
      cmocka_unit_test(test_lengths),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
