/* Tests of write, read and list. */
#include "support/sandbox_fixture.h"

static void test_write_read_list(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  begin_write(f, &a);
  settle(f);
  assert_seen(&a, SBX_OK);
  /* Copied, since the sandbox was not open yet. */
  assert_string_equal(fake.path, "dir/file");
  assert_string_equal(fake.bytes, "bytes");
  begin_read(f, &b);
  begin_list(f, &c);
  settle(f);
  assert_seen(&b, SBX_OK);
  assert_false(b.missing);
  assert_string_equal(b.text, "content");
  assert_seen(&c, SBX_OK);
  assert_int_equal(c.count, 1);
  assert_string_equal(c.text, "a/b.txt");
}

static void test_an_empty_file_is_not_a_missing_one(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  fake.content = "";
  begin_read(f, &a);
  settle(f);
  assert_seen(&a, SBX_OK);
  assert_false(a.missing);
  assert_string_equal(a.text, "");
  fake_next(FAKE_GET, (fake_plan){.code = SBX_ENOTFOUND});
  begin_read(f, &b);
  settle(f);
  assert_seen(&b, SBX_OK);
  assert_true(b.missing);
  /* The provider's clear word: nothing is asked. */
  assert_int_equal(fake.count[FAKE_PROBE], 0);
}

typedef struct taking {
  sbx_call *call;
  char *bytes;
} taking;

static void take(void *arg, const sbx_err *err, const sbx_slice *bytes) {
  taking *t = arg;
  assert_null(err);
  t->bytes = sbx_call_take_bytes(t->call);
  assert_ptr_equal(t->bytes, bytes->ptr);
  assert_null(sbx_call_take_bytes(t->call));
}

static void test_bytes_that_are_taken_over(void **state) {
  fixture *f = *state;
  taking t = {0};
  assert_int_equal(sbx_sandbox_read(f->sb, sbx_slice_str("file"), 0, take, &t, &t.call, NULL),
                   SBX_OK);
  settle(f);
  assert_non_null(t.bytes);
  assert_memory_equal(t.bytes, "content", 7);
  sbx_bytes_free(t.bytes);
}

static void test_failures_in_a_sandbox_that_lives(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0}, d = {0};
  open_now(f);
  fake_next(FAKE_PUT, (fake_plan){.code = SBX_ENET});
  fake_next(FAKE_PUT, (fake_plan){.code = SBX_EFORBIDDEN});
  fake_next(FAKE_GET, (fake_plan){.code = SBX_EPROVIDER});
  fake_next(FAKE_LIST, (fake_plan){.code = SBX_ENOTFOUND});
  begin_write(f, &a);
  begin_write(f, &b);
  begin_read(f, &c);
  begin_list(f, &d);
  settle(f);
  assert_seen(&a, SBX_ENET);
  assert_says(&a, "writing it again is safe");
  assert_false(a.err.may_have_run);
  assert_seen(&b, SBX_EFORBIDDEN);
  assert_string_equal(b.err.message, "fake put failed");
  assert_seen(&c, SBX_EPROVIDER);
  assert_string_equal(c.err.message, "fake get failed");
  assert_string_equal(c.err.provider, "fake");
  assert_seen(&d, SBX_ENOTFOUND);
  assert_int_equal(fake.count[FAKE_PROBE], 3);
}

static void test_failures_in_a_sandbox_that_is_gone(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  fake.liveness = SBX_GONE;
  fake_next(FAKE_PUT, (fake_plan){.code = SBX_ENET});
  begin_write(f, &a);
  settle(f);
  assert_seen(&a, SBX_ELOST);
  assert_null(strstr(a.err.message, "writing it again"));
  fake_next(FAKE_GET, (fake_plan){.code = SBX_EPROVIDER});
  begin_read(f, &b);
  settle(f);
  assert_seen(&b, SBX_ELOST);
  assert_says(&b, "the next call starts a new, empty sandbox");
  fake_next(FAKE_LIST, (fake_plan){.code = SBX_ENOTFOUND});
  begin_list(f, &c);
  settle(f);
  assert_seen(&c, SBX_ELOST);
  assert_log("open1 put1 probe1 open2 get2 probe2 open3 list3 probe3 ");
  assert_int_equal(fake.live_sessions, 0);
}

static void test_cancel(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  open_now(f);
  fake_next(FAKE_PUT, (fake_plan){.hang = true});
  fake_next(FAKE_GET, (fake_plan){.hang = true, .deaf = true});
  begin_write(f, &a);
  begin_read(f, &b);
  settle(f);
  sbx_call_cancel(a.call);
  sbx_call_cancel(b.call);
  settle(f);
  assert_seen(&a, SBX_ECANCELED);
  assert_says(&a, "may be incomplete");
  /* The provider could not stop it; what it then says counts. */
  assert_not_seen(&b);
  fake_release(FAKE_GET, SBX_OK);
  settle(f);
  assert_seen(&b, SBX_OK);
  assert_string_equal(b.text, "content");
}

static void test_a_service_that_does_not_answer(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  open_now(f);
  f->sb->file_timeout_ms = 10;
  f->sb->probe_timeout_ms = 10;
  fake_next(FAKE_PUT, (fake_plan){.hang = true});
  fake_next(FAKE_PROBE, (fake_plan){.hang = true});
  begin_write(f, &a);
  await(f, &a);
  assert_seen(&a, SBX_ETIMEOUT);
  assert_says(&a,
              "no answer of https://api.fake.test within 10 ms; the file may be incomplete, and "
              "writing it again is safe");
  assert_log("open1 put1 probe1 ");
  fake.liveness = SBX_GONE;
  fake_next(FAKE_GET, (fake_plan){.hang = true});
  begin_read(f, &b);
  await(f, &b);
  assert_seen(&b, SBX_ELOST);
}

static void test_the_time_for_files(void **state) {
  fixture *f = *state;
  assert_int_equal(f->sb->file_timeout_ms, 120000);
  fixture_options(f, "{\"defaultTimeoutMs\": 600000}");
  assert_int_equal(f->sb->file_timeout_ms, 600000);
}

static void test_what_does_not_fit(void **state) {
  fixture *f = *state;
  seen s = {0};
  fake.content = "content that passes the limit";
  fake_next(FAKE_GET, (fake_plan){.code = SBX_ETOOBIG});
  begin_read(f, &s);
  settle(f);
  assert_seen(&s, SBX_ETOOBIG);
  assert_int_equal(fake.count[FAKE_PROBE], 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(test_write_read_list),
      T(test_an_empty_file_is_not_a_missing_one),
      T(test_bytes_that_are_taken_over),
      T(test_failures_in_a_sandbox_that_lives),
      T(test_failures_in_a_sandbox_that_is_gone),
      T(test_cancel),
      T(test_a_service_that_does_not_answer),
      T(test_the_time_for_files),
      T(test_what_does_not_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
