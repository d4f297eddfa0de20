/* Tests of what deletes a sandbox, also one whose create was not answered. The service is a few
 * lines here. */
#include "providers/remote/tag.h"

#include "core/err.h"
#include "support/loop_fixture.h"

/* What the service has, and how it fails; each failure counts down. */
struct sbx_session {
  const char *id;      /* what the tag finds; NULL: nothing */
  unsigned appears_at; /* the first look that finds it */
  int find_fails, find_code, find_again;
  int remove_fails, remove_code;
  unsigned finds, removes, gones;
};

static sbx_session box;

static void answer(sbx_steps *steps, sbx_steps_reply on_reply) {
  sbx_http reply = {.status = 200};
  on_reply(steps, &reply);
}

static void find(sbx_steps *steps, sbx_steps_reply on_reply) {
  box.finds++;
  answer(steps, on_reply);
}

static int found(sbx_session *session, const sbx_http *reply, char **id, sbx_err *err) {
  assert_ptr_equal(session, &box);
  assert_int_equal(reply->status, 200);
  if (session->find_again-- > 0)
    return SBX_ENOTREADY;
  if (session->find_fails-- > 0)
    return sbx_err_set(err, session->find_code, "no");
  if (session->id != NULL && session->finds >= session->appears_at) {
    *id = sbx_strndup(session->id, strlen(session->id));
    return *id != NULL ? SBX_OK : sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  return SBX_OK;
}

static void remove_it(sbx_steps *steps, const char *id, sbx_steps_reply on_reply) {
  assert_string_equal(id, "it");
  box.removes++;
  answer(steps, on_reply);
}

static int removed(const sbx_http *reply, sbx_err *err) {
  (void)reply;
  return box.remove_fails-- > 0 ? sbx_err_set(err, box.remove_code, "no") : SBX_OK;
}

static void gone(sbx_session *session) {
  session->gones++;
}

static const sbx_remote_tag_verbs verbs = {20, find, found, remove_it, removed, gone};

typedef struct fixture {
  uv_loop_t uv;
  sbx_loop *loop;
} fixture;

static int setup(void **state) {
  static fixture f;
  loop_open(&f.uv, &f.loop);
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  loop_end(&f->uv, f->loop);
  return 0;
}

static void on_done(sbx_op *op, void *arg) {
  *(int *)arg = op->err.code;
}

static int run(fixture *f, sbx_session service, const char *id, bool made) {
  int code = 1;
  box = service;
  sbx_op *op = sbx_remote_tag_remove(&box, f->loop, &verbs, id, made, on_done, &code);
  assert_non_null(op);
  sbx_op_set_deadline(op, 900);
  assert_int_equal(uv_run(&f->uv, UV_RUN_DEFAULT), 0);
  return code;
}

static void test_what_has_an_id_is_deleted_by_it(void **state) {
  assert_int_equal(run(*state, (sbx_session){0}, "it", true), SBX_OK);
  assert_int_equal(box.finds, 0);
  assert_int_equal(box.removes, 1);
  assert_int_equal(box.gones, 1);
}

static void test_what_is_not_there_is_deleted(void **state) {
  sbx_session absent = {.remove_fails = 1, .remove_code = SBX_ENOTFOUND};
  assert_int_equal(run(*state, absent, "it", true), SBX_OK);
  assert_int_equal(box.removes, 1);
  assert_int_equal(box.gones, 1);
}

static void test_nothing_made_nothing_sent(void **state) {
  assert_int_equal(run(*state, (sbx_session){0}, NULL, false), SBX_OK);
  assert_int_equal(box.finds + box.removes, 0);
  assert_int_equal(box.gones, 1);
}

static void test_a_lost_create_is_found_and_deleted(void **state) {
  assert_int_equal(run(*state, (sbx_session){.id = "it"}, NULL, true), SBX_OK);
  assert_int_equal(box.finds, 1);
  assert_int_equal(box.removes, 1);
  /* It may come up late. */
  assert_int_equal(run(*state, (sbx_session){.id = "it", .appears_at = 2}, NULL, true), SBX_OK);
  assert_int_equal(box.finds, 2);
  assert_int_equal(box.removes, 1);
  /* Or not at all. */
  assert_int_equal(run(*state, (sbx_session){0}, NULL, true), SBX_OK);
  assert_int_equal(box.finds, 2);
  assert_int_equal(box.removes, 0);
  assert_int_equal(box.gones, 1);
}

static void test_another_way_of_asking_is_tried_at_once(void **state) {
  assert_int_equal(run(*state, (sbx_session){.id = "it", .find_again = 1}, NULL, true), SBX_OK);
  assert_int_equal(box.finds, 2);
  assert_int_equal(box.removes, 1);
}

static void test_what_passes_is_repeated(void **state) {
  sbx_session busy = {.id = "it",
                      .find_fails = 1,
                      .find_code = SBX_EPROVIDER,
                      .remove_fails = 1,
                      .remove_code = SBX_ECONFLICT};
  assert_int_equal(run(*state, busy, NULL, true), SBX_OK);
  assert_int_equal(box.finds, 2);
  assert_int_equal(box.removes, 2);
}

static void test_what_stays_is_told(void **state) {
  sbx_session refused = {.remove_fails = 9, .remove_code = SBX_EAUTH};
  assert_int_equal(run(*state, refused, "it", true), SBX_EAUTH);
  assert_int_equal(box.removes, 1);
  assert_int_equal(box.gones, 0);
  sbx_session blind = {.find_fails = 9, .find_code = SBX_EPROTO};
  assert_int_equal(run(*state, blind, NULL, true), SBX_EPROTO);
  assert_int_equal(box.finds, 1);
  sbx_session broken = {.remove_fails = 99, .remove_code = SBX_ENET};
  assert_int_equal(run(*state, broken, "it", true), SBX_ENET);
  assert_true(box.removes > 1);
  assert_int_equal(box.gones, 0);
}

static void test_tags(void **state) {
  char tag[SBX_REMOTE_TAG_LEN + 1] = "", first[sizeof tag], text[128];
  sbx_json_doc *doc;
  sbx_err err;
  (void)state;
  assert_int_equal(sbx_remote_tag_make(tag, &err), SBX_OK);
  assert_int_equal(strlen(tag), SBX_REMOTE_TAG_LEN);
  memcpy(first, tag, sizeof tag);
  assert_int_equal(sbx_remote_tag_make(tag, &err), SBX_OK);
  assert_string_equal(tag, first);
  snprintf(text, sizeof text, "{\"tag\":\"%s\",\"half\":\"%.16s\",\"none\":\"\",\"number\":1}", tag,
           tag);
  assert_int_equal(sbx_json_parse(&doc, sbx_slice_str(text), NULL), SBX_OK);
  const sbx_json *tags = sbx_json_root(doc);
  assert_true(sbx_remote_tag_is_in(tags, "tag", tag));
  assert_false(sbx_remote_tag_is_in(tags, "half", tag));
  assert_false(sbx_remote_tag_is_in(tags, "number", tag));
  assert_false(sbx_remote_tag_is_in(tags, "absent", tag));
  assert_false(sbx_remote_tag_is_in(tags, "none", "")); /* a session without a tag owns nothing */
  assert_false(sbx_remote_tag_is_in(NULL, "tag", tag));
  sbx_json_free(doc, false);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(test_what_has_an_id_is_deleted_by_it),
      T(test_what_is_not_there_is_deleted),
      T(test_nothing_made_nothing_sent),
      T(test_a_lost_create_is_found_and_deleted),
      T(test_another_way_of_asking_is_tried_at_once),
      T(test_what_passes_is_repeated),
      T(test_what_stays_is_told),
      cmocka_unit_test(test_tags),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
