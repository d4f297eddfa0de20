/* Tests of files in parts. */
#include "support/sandbox_fixture.h"

#include <string.h>

#define TOKEN "0123456789abcdef0123456789abcdef"
#define ALL "d/.cloudsandbox-" TOKEN ".part"
#define PIECE "d/.cloudsandbox-" TOKEN ".piece"

static void on_written(void *arg, const sbx_err *err) {
  seen *s = arg;
  s->times++;
  s->code = err != NULL ? err->code : SBX_OK;
  if (err != NULL)
    s->err = *err;
}

static int write_part(fixture *f, seen *s, uint64_t offset, const char *bytes, sbx_part_step step) {
  return sbx_sandbox_write_part(f->sb, sbx_slice_str("d/f"), sbx_slice_str(TOKEN), offset,
                                sbx_slice_str(bytes), step, on_written, s, &s->call, &s->err);
}

static void write_now(fixture *f, seen *s, uint64_t offset, const char *bytes, sbx_part_step step) {
  assert_int_equal(write_part(f, s, offset, bytes, step), SBX_OK);
  settle(f);
}

static void on_part(void *arg, const sbx_err *err, const sbx_part *part) {
  seen *s = arg;
  on_written(arg, err);
  s->missing = err == NULL && part == NULL;
  if (part == NULL)
    return;
  s->count = part->last;
  snprintf(s->text, sizeof s->text, "%.*s %s %llu", (int)part->bytes.len, part->bytes.ptr,
           part->stamp, (unsigned long long)part->size);
}

static void read_now(fixture *f, seen *s, uint64_t offset, const char *stamp) {
  assert_int_equal(sbx_sandbox_read_part(f->sb, sbx_slice_str("d/f"), offset, 100,
                                         sbx_slice_str(stamp), on_part, s, &s->call, &s->err),
                   SBX_OK);
  settle(f);
}

static void test_writes_a_file(void **state) {
  fixture *f = *state;
  seen s[4] = {0};
  write_now(f, &s[0], 0, "one", SBX_PART_MORE);
  assert_seen(&s[0], SBX_OK);
  assert_string_equal(fake.path, ALL);
  assert_string_equal(fake.bytes, "one");
  write_now(f, &s[1], 3, "four", SBX_PART_MORE);
  assert_seen(&s[1], SBX_OK);
  assert_string_equal(fake.path, PIECE);
  write_now(f, &s[2], 7, "x", SBX_PART_LAST);
  assert_seen(&s[2], SBX_OK);
  assert_string_equal(fake.paths, "join " PIECE " " ALL " 3 4;join " PIECE " " ALL " 7 1;take " ALL
                                  " d/f 7 1;");
  fake.paths[0] = '\0';
  write_now(f, &s[3], 8, "", SBX_PART_LAST);
  assert_seen(&s[3], SBX_OK);
  assert_string_equal(fake.paths, "take " ALL " d/f 8 0;");
  assert_int_equal(fake.count[FAKE_PUT], 3);
}

static void test_one_part_is_a_write(void **state) {
  fixture *f = *state;
  seen a = {0};
  write_now(f, &a, 0, "all", SBX_PART_LAST);
  assert_seen(&a, SBX_OK);
  assert_string_equal(fake.path, "d/f");
  assert_int_equal(fake.count[FAKE_PATH], 0);
}

static void test_drops_what_is_there(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  fake_next(FAKE_PATH, (fake_plan){.code = SBX_ENOTFOUND});
  fake_next(FAKE_PATH, (fake_plan){.code = SBX_ENOTFOUND});
  write_now(f, &a, 0, "", SBX_PART_DROP);
  assert_seen(&a, SBX_OK);
  assert_string_equal(fake.paths, "remove " PIECE "  0 0;remove " ALL "  0 0;");
  fake_next(FAKE_PATH, (fake_plan){.code = SBX_EFORBIDDEN});
  write_now(f, &b, 0, "", SBX_PART_DROP);
  assert_seen(&b, SBX_EFORBIDDEN);
}

static void test_a_step_that_fails_ends_it(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  fake_next(FAKE_PUT, (fake_plan){.code = SBX_EQUOTA});
  write_now(f, &a, 3, "four", SBX_PART_LAST);
  assert_seen(&a, SBX_EQUOTA);
  assert_int_equal(fake.count[FAKE_PATH], 0);
  fake_next(FAKE_PATH, (fake_plan){.code = SBX_ECONFLICT});
  write_now(f, &b, 3, "four", SBX_PART_LAST);
  assert_seen(&b, SBX_ECONFLICT);
  assert_says(&b, "the file is as it was before");
  assert_int_equal(fake.count[FAKE_PATH], 1);
  fake_next(FAKE_PATH, (fake_plan){.code = SBX_OK});
  fake_next(FAKE_PATH, (fake_plan){.code = SBX_ENET});
  write_now(f, &c, 3, "four", SBX_PART_LAST);
  assert_seen(&c, SBX_ENET);
  assert_says(&c, "writing it again is safe");
}

static void test_a_cancel_ends_it_between_steps(void **state) {
  fixture *f = *state;
  seen a = {0};
  open_now(f);
  fake_next(FAKE_PUT, (fake_plan){.hang = true, .deaf = true});
  write_now(f, &a, 3, "four", SBX_PART_LAST);
  sbx_call_cancel(a.call);
  fake_release(FAKE_PUT, SBX_OK);
  settle(f);
  assert_seen(&a, SBX_ECANCELED);
  assert_int_equal(fake.count[FAKE_PATH], 0);
}

static void test_reads_a_file(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0};
  read_now(f, &a, 0, "");
  assert_seen(&a, SBX_OK);
  assert_string_equal(a.text, "content stamp 7");
  assert_int_equal(a.count, 1);
  fake.size = 15;
  read_now(f, &b, 7, "stamp");
  assert_seen(&b, SBX_OK);
  assert_int_equal(b.count, 0);
  fake.size = 0;
  read_now(f, &c, 7, "stamp");
  assert_seen(&c, SBX_OK);
  assert_int_equal(c.count, 1);
  assert_string_equal(fake.paths, "part d/f  0 100;part d/f  7 100;part d/f  7 100;");
}

static void test_another_file_is_a_conflict(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0}, c = {0}, d = {0};
  read_now(f, &a, 7, "other");
  assert_seen(&a, SBX_ECONFLICT);
  assert_says(&a, "copy it first");
  fake_next(FAKE_PATH, (fake_plan){.code = SBX_ENOTFOUND});
  read_now(f, &b, 7, "stamp");
  assert_seen(&b, SBX_ECONFLICT);
  fake_next(FAKE_PATH, (fake_plan){.code = SBX_ENOTFOUND});
  read_now(f, &c, 0, "");
  assert_seen(&c, SBX_OK);
  assert_true(c.missing);
  fake.content = "";
  read_now(f, &d, 3, "stamp");
  assert_seen(&d, SBX_ECONFLICT);
}

/* Some of the kernel's files say that they have a page. */
static void test_a_file_may_end_before_its_size(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  fake.size = 4096;
  read_now(f, &a, 0, "");
  assert_seen(&a, SBX_OK);
  assert_int_equal(a.count, 0);
  fake.content = "";
  read_now(f, &b, 7, "stamp");
  assert_seen(&b, SBX_OK);
  assert_int_equal(b.count, 1);
}

static void test_refuses_at_once(void **state) {
  fixture *f = *state;
  seen s = {0};
  static const char *const paths[] = {"", "d/", ".", "d/..", "~", "~other"};
  static const char *const tokens[] = {"", "0123", TOKEN "0", "0123456789ABCDEF0123456789ABCDEF"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
    assert_int_equal(sbx_sandbox_write_part(f->sb, sbx_slice_str(paths[i]), sbx_slice_str(TOKEN), 0,
                                            sbx_slice_str("x"), SBX_PART_MORE, on_written, &s, NULL,
                                            NULL),
                     SBX_EINVAL);
  for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
    assert_int_equal(sbx_sandbox_write_part(f->sb, sbx_slice_str("f"), sbx_slice_str(tokens[i]), 0,
                                            sbx_slice_str("x"), SBX_PART_MORE, on_written, &s, NULL,
                                            NULL),
                     SBX_EINVAL);
  assert_int_equal(write_part(f, &s, 0, "", SBX_PART_MORE), SBX_EINVAL);
  assert_int_equal(write_part(f, &s, UINT64_MAX, "x", SBX_PART_MORE), SBX_EINVAL);
  sbx_slice name = sbx_slice_str("f"), none = sbx_slice_str("");
  assert_int_equal(sbx_sandbox_read_part(f->sb, name, 0, 0, none, on_part, &s, NULL, NULL),
                   SBX_EINVAL);
  assert_int_equal(
      sbx_sandbox_read_part(f->sb, name, 0, SBX_PART_MAX + 1, none, on_part, &s, NULL, NULL),
      SBX_EINVAL);
  assert_int_equal(sbx_sandbox_read_part(f->sb, name, UINT64_MAX, 1, none, on_part, &s, NULL, NULL),
                   SBX_EINVAL);
  fake_provider.caps &= ~(uint32_t)SBX_CAP_PARTS;
  assert_int_equal(write_part(f, &s, 0, "x", SBX_PART_LAST), SBX_EUNSUPPORTED);
  assert_not_seen(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
      TEST(test_writes_a_file),
      TEST(test_a_file_may_end_before_its_size),
      TEST(test_one_part_is_a_write),
      TEST(test_drops_what_is_there),
      TEST(test_a_step_that_fails_ends_it),
      TEST(test_a_cancel_ends_it_between_steps),
      TEST(test_reads_a_file),
      TEST(test_another_file_is_a_conflict),
      TEST(test_refuses_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
