/* Tests of reading a file by an engine's archive calls, against an engine that answers as it was
 * told, in pieces of every size. */
#include "core/enc.h"
#include "core/ustar.h"
#include "providers/docker/archive.h"

#include "support/canned.h"
#include "support/config_test.h"

#define DIR_STAT "{\"name\":\"d\",\"size\":60,\"mode\":2148532735,\"linkTarget\":\"/workspace\"}"
#define STAT "{\"name\":\"f\",\"size\":5,\"mode\":420,\"linkTarget\":\"/workspace/f\"}"
#define STATE(status) "{\"State\":{\"Status\":\"" status "\"}}"

typedef struct talk {
  uv_loop_t uv;
  sbx_loop *loop;
  canned engine;
  sbx_config *config;
  sbx_session *session;
  sbx_buf replies[4]; /* two looks, file, state: as long as the server has them */
  sbx_buf out;
  int done;
  int code;
} talk;

static int setup(void **state) {
  talk *k = calloc(1, sizeof *k);
  char options[256];
  sbx_json_doc *doc = NULL;
  sbx_err err;
  loop_open(&k->uv, &k->loop);
  canned_open(&k->engine, &k->uv);
  snprintf(options, sizeof options, "{\"host\":\"unix://%s\",\"apiVersion\":\"1.41\"}",
           k->engine.path);
  assert_int_equal(sbx_json_parse(&doc, sbx_slice_str(options), NULL), SBX_OK);
  assert_int_equal(
      sbx_provider_configure(&k->config, &sbx_docker_provider, k->loop, sbx_json_root(doc), &err),
      SBX_OK);
  sbx_json_free(doc, false);
  k->session = sbx_docker_provider.session_new(k->config);
  k->session->id = sbx_strndup("c1", 2);
  k->session->is_podman = true;
  for (size_t i = 0; i < COUNT(k->replies); i++)
    sbx_buf_init(&k->replies[i], 64 * 1024);
  *state = k;
  return 0;
}

static int teardown(void **state) {
  talk *k = *state;
  for (size_t i = 0; i < COUNT(k->replies); i++)
    sbx_buf_deinit(&k->replies[i]);
  sbx_docker_provider.session_free(k->session);
  sbx_docker_provider.config_free(k->config);
  uv_run(&k->uv, UV_RUN_NOWAIT);
  sbx_loop_close(k->loop, on_loop_closed, NULL);
  uv_run(&k->uv, UV_RUN_NOWAIT);
  canned_close(&k->engine);
  loop_end(&k->uv, NULL);
  free(k);
  return 0;
}

static void write_reply(sbx_buf *out, const char *stat, sbx_slice body) {
  sbx_buf_truncate(out, 0);
  sbx_buf_append_str(out, "HTTP/1.1 200 OK\r\nX-Docker-Container-Path-Stat: ");
  sbx_base64_encode(out, sbx_slice_str(stat));
  sbx_buf_append_str(out, "\r\nContent-Length: auto\r\n\r\n");
  sbx_buf_append_slice(out, body);
}

static void add(talk *k, const char *request, const sbx_buf *reply) {
  canned_add(&k->engine, request, reply->ptr);
  canned_last(&k->engine)->len = reply->len;
}

static void on_done(sbx_op *op, void *arg) {
  talk *k = arg;
  k->done++;
  k->code = op->err.code;
}

/* "/workspace/f" of these answers, into a buffer that may have `max` bytes. */
static int fetch(talk *k, const char *dir, const char *look, const char *stat, sbx_slice tar,
                 const char *state, size_t max) {
  k->engine.count = 0;
  sbx_buf_truncate(&k->engine.log, 0);
  write_reply(&k->replies[0], dir, sbx_slice_of(NULL, 0));
  write_reply(&k->replies[1], stat, tar);
  write_reply(&k->replies[2], "", sbx_slice_str(state));
  write_reply(&k->replies[3], look, sbx_slice_of(NULL, 0));
  add(k, "HEAD /v1.41/containers/c1/archive?path=%2Fworkspace ", &k->replies[0]);
  add(k, "HEAD /v1.41/containers/c1/archive?path=%2Fworkspace%2Ff ", &k->replies[3]);
  add(k, "GET /v1.41/containers/c1/archive?path=%2Fworkspace%2Ff ", &k->replies[1]);
  add(k, "GET /v1.41/containers/c1/json ", &k->replies[2]);
  sbx_buf_init(&k->out, max);
  k->done = 0;
  assert_non_null(sbx__docker_fetch(k->session, LIT("f"), &k->out, on_done, k));
  while (k->done == 0)
    uv_run(&k->uv, UV_RUN_ONCE);
  assert_int_equal(k->done, 1);
  return k->code;
}

static void assert_nothing(talk *k) {
  assert_int_equal(k->out.len, 0);
  sbx_buf_deinit(&k->out);
}

static void write_tar(sbx_buf *out, const char *name, const char *bytes) {
  const sbx_ustar_entry entry = {.name = sbx_slice_str(name), .mode = 0644, .size = strlen(bytes)};
  sbx_buf_init(out, 64 * 1024);
  assert_int_equal(sbx_ustar_put_entry(out, &entry), SBX_OK);
  sbx_buf_append_str(out, bytes);
  sbx_ustar_pad(out, entry.size);
  sbx_ustar_end(out);
}

static void test_a_file_in_pieces(void **state) {
  talk *k = *state;
  sbx_buf tar;
  write_tar(&tar, "f", "he\xffio");
  for (size_t piece = 0; piece < 600; piece += piece < 4 ? 1 : 97) {
    k->engine.piece = piece;
    assert_int_equal(fetch(k, DIR_STAT, STAT, STAT, sbx_buf_slice(&tar), STATE("running"), 5),
                     SBX_OK);
    assert_slice(sbx_buf_slice(&k->out), LIT("he\xffio"));
    sbx_buf_deinit(&k->out);
  }
  sbx_buf_deinit(&tar);
}

static void test_what_is_in_doubt(void **state) {
  static const struct {
    const char *dir, *look, *stat, *state;
  } cases[] = {
      {STAT, STAT, STAT, STATE("running")},
      {"{}", STAT, STAT, STATE("running")},
      {DIR_STAT, DIR_STAT, STAT, STATE("running")},
      {DIR_STAT, "", STAT, STATE("running")},
      {DIR_STAT, STAT, DIR_STAT, STATE("running")},
      {DIR_STAT, STAT, "", STATE("running")},
      {DIR_STAT, STAT, STAT, STATE("paused")},
      {DIR_STAT, STAT, STAT, "{\"State\":{}}"},
      {DIR_STAT, STAT, STAT, "no"},
      {DIR_STAT, STAT, "{\"size\":6,\"mode\":420}", STATE("running")},
      {DIR_STAT, STAT, "{\"size\":5,\"mode\":432}", STATE("running")},
      {DIR_STAT, "{\"size\":5,\"mode\":432}", STAT, STATE("running")},
  };
  talk *k = *state;
  sbx_buf tar;
  write_tar(&tar, "f", "hello");
  for (size_t i = 0; i < COUNT(cases); i++) {
    assert_int_equal(fetch(k, cases[i].dir, cases[i].look, cases[i].stat, sbx_buf_slice(&tar),
                           cases[i].state, 100),
                     SBX_EUNSUPPORTED);
    assert_nothing(k);
  }
  for (size_t len = 0; len < tar.len; len += len < 520 ? 13 : 128) {
    sbx_slice cut = sbx_slice_of(tar.ptr, len);
    assert_int_equal(fetch(k, DIR_STAT, STAT, STAT, cut, STATE("running"), 100), SBX_EUNSUPPORTED);
    assert_nothing(k);
  }
  assert_int_equal(fetch(k, DIR_STAT, STAT, STAT, sbx_buf_slice(&tar), STATE("running"), 4),
                   SBX_ETOOBIG);
  assert_nothing(k);
  sbx_buf_deinit(&tar);
  write_tar(&tar, "g", "hello");
  assert_int_equal(fetch(k, DIR_STAT, STAT, STAT, sbx_buf_slice(&tar), STATE("running"), 100),
                   SBX_EUNSUPPORTED);
  assert_nothing(k);
  sbx_buf_deinit(&tar);
}

/* Nothing is asked for these. */
static void test_paths_that_engines_may_take_for_others(void **state) {
  static const sbx_slice paths[] = {
      BYTES(""),     BYTES("/"),    BYTES("."),          BYTES("f/"),
      BYTES("f/."),  BYTES("../f"), BYTES("d/../f"),     BYTES("/proc/self/status"),
      BYTES("~"),    BYTES("~/"),   BYTES("/dev/null"),  BYTES("/sys/power/state"),
      BYTES("a?/f"), BYTES("*"),    BYTES("[f]"),        BYTES("a\\f"),
      BYTES("a\0b"), BYTES(".."),   BYTES("//proc/./x"), BYTES("/1/2/3/4/5/6/7/8/9")};
  talk *k = *state;
  for (size_t i = 0; i < COUNT(paths); i++) {
    sbx_buf_init(&k->out, 100);
    k->done = 0;
    assert_non_null(sbx__docker_fetch(k->session, paths[i], &k->out, on_done, k));
    while (k->done == 0)
      uv_run(&k->uv, UV_RUN_ONCE);
    assert_int_equal(k->code, SBX_EUNSUPPORTED);
    assert_int_equal(k->engine.connections, 0);
    assert_nothing(k);
  }
}

#define TALK(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TALK(test_a_file_in_pieces),
      TALK(test_what_is_in_doubt),
      TALK(test_paths_that_engines_may_take_for_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
