/* Tests of what is told of a sandbox's life: everything that was created is accounted for. */
#include "support/sandbox_fixture.h"

static struct {
  char text[1024];
  sbx_sandbox *free_me; /* freed inside the callback */
} told;

/* Durations depend on the machine. */
static void on_life(void *arg, sbx_slice json) {
  assert_ptr_equal(arg, &told);
  char text[256];
  assert_true(json.len < sizeof text);
  snprintf(text, sizeof text, "%.*s", (int)json.len, json.ptr);
  char *duration = strstr(text, "\"durationMs\":");
  if (duration != NULL) {
    char *end = duration + strlen("\"durationMs\":");
    strtoull(end, &end, 10);
    memmove(duration, end + (*end == ','), strlen(end + (*end == ',')) + 1);
  }
  size_t used = strlen(told.text);
  assert_true(used + strlen(text) + 2 < sizeof told.text);
  snprintf(told.text + used, sizeof told.text - used, "%s\n", text);
  if (told.free_me != NULL)
    sbx_sandbox_free(told.free_me);
}

static void tell_me(fixture *f) {
  memset(&told, 0, sizeof told);
  sbx_sandbox_on_life(f->sb, on_life, &told);
}

static void assert_told(const char *text) {
  assert_string_equal(told.text, text);
  told.text[0] = '\0';
}

#define CREATED(id) "{\"event\":\"created\",\"id\":\"" id "\",\"owned\":true}\n"
#define STARTED(id) "{\"event\":\"started\",\"id\":\"" id "\",\"owned\":true,}\n"
#define DELETED(id) "{\"event\":\"deleted\",\"id\":\"" id "\",\"owned\":true,}\n"
#define LOST(id) "{\"event\":\"lost\",\"id\":\"" id "\",\"owned\":true}\n"

static void test_created_started_deleted(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  tell_me(f);
  run_exec(f, &a, "true", 0);
  assert_seen(&a, SBX_OK);
  assert_told(CREATED("fake-1") STARTED("fake-1"));
  begin_close(f, &b);
  settle(f);
  assert_seen(&b, SBX_OK);
  assert_told(DELETED("fake-1"));
}

static void test_a_lost_one_and_the_next(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  open_now(f);
  tell_me(f);
  fake_next(FAKE_EXEC, (fake_plan){.code = SBX_ELOST});
  run_exec(f, &a, "true", 0);
  assert_seen(&a, SBX_ELOST);
  assert_told(LOST("fake-1"));
  run_exec(f, &b, "true", 0);
  assert_seen(&b, SBX_OK);
  assert_told(CREATED("fake-2") STARTED("fake-2"));
}

static void test_a_failed_start_is_told_without_its_words(void **state) {
  fixture *f = *state;
  seen a = {0};
  tell_me(f);
  fake_next(FAKE_OPEN, (fake_plan){.code = SBX_EPROVIDER});
  begin_start(f, &a);
  settle(f);
  assert_seen(&a, SBX_EPROVIDER);
  assert_told("{\"event\":\"failed\",\"owned\":true,\"what\":\"start\",\"code\":\"PROVIDER\","
              "\"status\":0}\n");
}

static void test_a_failed_delete_and_its_repeat(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  open_now(f);
  tell_me(f);
  fake_next(FAKE_CLOSE, (fake_plan){.code = SBX_EPROVIDER});
  begin_close(f, &a);
  settle(f);
  assert_seen(&a, SBX_EPROVIDER);
  assert_told("{\"event\":\"failed\",\"id\":\"fake-1\",\"owned\":true,\"what\":\"delete\","
              "\"code\":\"PROVIDER\",\"status\":0}\n");
  begin_close(f, &b);
  settle(f);
  assert_seen(&b, SBX_OK);
  assert_told(DELETED("fake-1"));
}

static void test_one_that_comes_too_late(void **state) {
  fixture *f = *state;
  seen a = {0};
  fixture_options(f, "{\"startTimeoutMs\": 10}");
  tell_me(f);
  fake_next(FAKE_OPEN, (fake_plan){.hang = true});
  begin_start(f, &a);
  await(f, &a);
  assert_seen(&a, SBX_ETIMEOUT);
  assert_told("{\"event\":\"failed\",\"owned\":true,\"what\":\"start\",\"code\":\"TIMEOUT\","
              "\"status\":0}\n");
  fake_release(FAKE_OPEN, SBX_OK);
  settle(f);
  assert_told(CREATED("fake-1") DELETED("fake-1"));
}

static void test_one_of_somebody_else(void **state) {
  fixture *f = *state;
  seen a = {0}, b = {0};
  fake.attached = true;
  tell_me(f);
  begin_start(f, &a);
  settle(f);
  assert_seen(&a, SBX_OK);
  assert_told("{\"event\":\"started\",\"id\":\"fake-1\",\"owned\":false,}\n");
  begin_close(f, &b);
  settle(f);
  assert_seen(&b, SBX_OK);
  assert_told("");
}

static void test_it_is_told_before_the_close_has_ended(void **state) {
  fixture *f = *state;
  seen a = {0};
  open_now(f);
  tell_me(f);
  fake_next(FAKE_CLOSE, (fake_plan){.hang = true});
  begin_close(f, &a);
  settle(f);
  assert_told("");
  fake_release(FAKE_CLOSE, SBX_OK);
  while (told.text[0] == '\0')
    uv_run(&f->uv, UV_RUN_ONCE);
  assert_told(DELETED("fake-1"));
  settle(f);
  assert_seen(&a, SBX_OK);
}

static void test_free_inside_the_callback(void **state) {
  fixture *f = *state;
  seen a = {0};
  tell_me(f);
  told.free_me = f->sb;
  begin_start(f, &a);
  f->sb = NULL;
  settle(f);
  assert_told(CREATED("fake-1"));
  assert_int_equal(a.times, 1);
}

static void test_nobody_listens_any_more(void **state) {
  fixture *f = *state;
  seen a = {0};
  tell_me(f);
  begin_start(f, &a);
  sbx_sandbox_on_life(f->sb, NULL, NULL);
  settle(f);
  assert_seen(&a, SBX_OK);
  assert_told("");
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(test_created_started_deleted),
      T(test_a_lost_one_and_the_next),
      T(test_a_failed_start_is_told_without_its_words),
      T(test_a_failed_delete_and_its_repeat),
      T(test_one_that_comes_too_late),
      T(test_one_of_somebody_else),
      T(test_it_is_told_before_the_close_has_ended),
      T(test_free_inside_the_callback),
      T(test_nobody_listens_any_more),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
