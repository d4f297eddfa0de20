/* Tests of the http provider's parts that need no server: options, the manifest, and where a path
 * leads. */
#include "core/alloc.h"
#include "providers/http/service.h"

#include "support/config_test.h"
#include "support/loop_fixture.h"

/* ---- options ---- */

static void test_options(void **state) {
  (void)state;
  sbx_config *config = config_of(&sbx_http_provider, "{\"baseURL\":\"http://h:1/api//\"}");
  assert_string_equal(config->url, "http://h:1/api");
  assert_string_equal(config->dir, "/workspace");
  assert_true(config->owned && config->attach == NULL);
  assert_string_equal(
      config->create_body,
      "{\"manifest\":{\"image\":null,\"working_dir\":\"/workspace\",\"environment\":{},"
      "\"network\":{\"default\":\"deny\",\"allowed_hosts\":[],\"denied_hosts\":[]},"
      "\"resources\":{\"cpu\":null,\"memory\":null,\"gpu\":false}}}");
  assert_int_equal(config->headers.count, 0);
  sbx__hs_config_free(config);
  config =
      config_of(&sbx_http_provider, "{\"baseURL\":\"http://h\",\"sandboxId\":\"s\",\"token\":\"t\","
                                    "\"headers\":{\"X-A\":\"b\"},\"network\":\"allow\","
                                    "\"deniedHosts\":[\"a.b\"],\"cpu\":\"2\",\"gpu\":true}");
  assert_true(!config->owned && config->dir == NULL);
  assert_non_null(strstr(config->create_body, "\"default\":\"allow\",\"allowed_hosts\":[],"
                                              "\"denied_hosts\":[\"a.b\"]"));
  assert_non_null(strstr(config->create_body, "{\"cpu\":\"2\",\"memory\":null,\"gpu\":true}"));
  assert_int_equal(config->headers.count, 2);
  sbx__hs_config_free(config);
}

static void test_options_that_are_wrong(void **state) {
#define URL "{\"baseURL\":\"http://h\","
  static const wrong_options cases[] = {
      {BYTES("{}"), SBX_EINVAL, "baseURL"},
      {BYTES("{\"baseURL\":\"canary\"}"), SBX_EINVAL, "baseURL"},
      {BYTES("{\"baseURL\":\"http://h/?canary\"}"), SBX_EINVAL, "baseURL"},
      {BYTES(URL "\"token\":\"canary\\n\"}"), SBX_EINVAL, "token"},
      {BYTES(URL "\"headers\":{\"Content-Type\":\"canary\"}}"), SBX_EINVAL, "sets it itself"},
      {BYTES(URL "\"token\":\"t\",\"headers\":{\"authorization\":\"canary\"}}"), SBX_EINVAL,
       "sets it itself"},
      {BYTES(URL "\"headers\":{\"a b\":\"canary\"}}"), SBX_EINVAL, "headers"},
      {BYTES(URL "\"workingDir\":\"canary\"}"), SBX_EINVAL, "workingDir"},
      {BYTES(URL "\"workingDir\":\"/a/../canary\"}"), SBX_EINVAL, "workingDir"},
      {BYTES(URL "\"workingDir\":\"/\"}"), SBX_EINVAL, "workingDir"},
      {BYTES(URL "\"env\":{\"A\":1}}"), SBX_EINVAL, "env"},
      {BYTES(URL "\"network\":\"canary\"}"), SBX_EINVAL, "network"},
      {BYTES(URL "\"network\":7}"), SBX_EINVAL, "network"},
      {BYTES(URL "\"allowedHosts\":\"canary\"}"), SBX_EINVAL, "allowedHosts"},
      {BYTES(URL "\"deniedHosts\":[\"a\",7]}"), SBX_EINVAL, "deniedHosts"},
      {BYTES(URL "\"cpu\":2}"), SBX_EINVAL, "cpu"},
      {BYTES(URL "\"memory\":\"\"}"), SBX_EINVAL, "memory"},
      {BYTES(URL "\"gpu\":\"canary\"}"), SBX_EINVAL, "gpu"},
      {BYTES(URL "\"lifetimeSeconds\":1}"), SBX_EINVAL, "unknown option"},
  };
  (void)state;
  assert_refused(&sbx_http_provider, cases, COUNT(cases));
}

static void test_options_without_memory(void **state) {
  config_run run = {&sbx_http_provider,
                    BYTES(URL "\"token\":\"t\",\"headers\":{\"a\":\"b\"},\"image\":\"i\","
                              "\"workingDir\":\"/w/\",\"env\":{\"A\":\"b\"},\"network\":\"allow\","
                              "\"allowedHosts\":[\"a\"],\"cpu\":\"1\",\"proxy\":\"\"}")};
  (void)state;
  assert_true(each_allocation_fails(configure_once, &run) > 15);
}

/* ---- paths ---- */

/* The service calls it /workspace, commands /real/w. */
static void test_where_a_path_leads(void **state) {
  static const struct {
    const char *path;
    const char *seen;  /* by commands */
    const char *below; /* what the file routes are asked for; NULL: they are not */
  } cases[] = {
      {"", "/real/w", NULL},
      {"f", "/real/w/f", "f"},
      {"a/b", "/real/w/a/b", "a/b"},
      {"...", "/real/w/...", "..."},
      {"a~", "/real/w/a~", "a~"},
      {"a/../b", "/real/w/a/../b", NULL},
      {"..", "/real/w/..", NULL},
      {"./f", "/real/w/./f", NULL},
      {"a//b", "/real/w/a//b", NULL},
      {"a/", "/real/w/a/", NULL},
      {"/workspace", "/real/w", NULL},
      {"/workspace/", "/real/w", NULL},
      {"/workspace/f", "/real/w/f", "f"},
      {"/workspace/../f", "/real/w/../f", NULL},
      {"/workspacex/f", "/workspacex/f", NULL},
      {"/real/w/f", "/real/w/f", "f"},
      {"/real", "/real", NULL},
      {"/etc/hosts", "/etc/hosts", NULL},
      {"/", "/", NULL},
      {"~", "~", NULL},
      {"~/f", "~/f", NULL},
  };
  (void)state;
  sbx_config *config = config_of(&sbx_http_provider, "{\"baseURL\":\"http://h\"}");
  sbx_session *session = sbx_http_provider.session_new(config);
  assert_null(sbx_http_provider.session_id(session));
  session->dir = sbx_strndup("/real/w", 7);
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_slice rest = sbx_slice_str(cases[i].path);
    sbx_buf seen;
    sbx_buf_init(&seen, 100);
    assert_int_equal(sbx__hs_absolute(&seen, session, rest), SBX_OK);
    assert_true(sbx_slice_eq_str(sbx_buf_slice(&seen), cases[i].seen));
    bool direct = sbx__hs_below(session, &rest) && sbx__hs_is_plain(rest);
    assert_int_equal(direct, cases[i].below != NULL);
    if (direct)
      assert_true(sbx_slice_eq_str(rest, cases[i].below));
    sbx_buf_deinit(&seen);
  }
  sbx_http_provider.session_free(session);
  sbx__hs_config_free(config);
}

/* ---- verbs ---- */

typedef struct run {
  sbx_session *session;
  sbx_output *output;
  sbx_exec_status status;
  sbx_liveness alive;
  sbx_buf bytes;
  bool ended;
  int code;
} run;

static void on_run_done(sbx_op *op, void *arg) {
  run *r = arg;
  r->ended = true;
  r->code = op->err.code;
}

static sbx_op *start_open(run *r) {
  return sbx__hs_open(r->session, on_run_done, r);
}

static sbx_op *start_exec(run *r) {
  static const sbx_env_var env = {BYTES("A"), BYTES("b")};
  const sbx_exec_spec spec = {.kind = SBX_EXEC_SHELL,
                              .text = BYTES("true"),
                              .env = &env,
                              .env_count = 1,
                              .timeout_ms = 1500};
  return sbx__hs_exec(r->session, &spec, r->output, &r->status, on_run_done, r);
}

static sbx_op *start_put(run *r) {
  return sbx__hs_put(r->session, sbx_slice_str("a/b"), sbx_slice_str("bytes"), on_run_done, r);
}

static sbx_op *start_get(run *r) {
  return sbx__hs_get(r->session, sbx_slice_str("a/b"), &r->bytes, on_run_done, r);
}

/* By a command. */
static sbx_op *start_far_get(run *r) {
  return sbx__hs_get(r->session, sbx_slice_str("/etc/hosts"), &r->bytes, on_run_done, r);
}

/* Nobody listens at the port: with all the memory that it needs, each fails there. */
static void test_verbs_without_memory(void **state) {
  static sbx_op *(*const verbs[])(run *) = {start_open, start_exec, start_put, start_get,
                                            start_far_get};
  uv_loop_t uv;
  sbx_loop *loop;
  (void)state;
  loop_open(&uv, &loop);
  sbx_config *config = NULL;
  sbx_json_doc *doc = NULL;
  assert_int_equal(sbx_json_parse(&doc, LIT("{\"baseURL\":\"http://127.0.0.1:1\"}"), NULL), SBX_OK);
  assert_int_equal(
      sbx_provider_configure(&config, &sbx_http_provider, loop, sbx_json_root(doc), NULL), SBX_OK);
  sbx_json_free(doc, true);
  for (size_t i = 0; i < COUNT(verbs); i++) {
    int code = SBX_ENOMEM;
    for (size_t nth = 1; code == SBX_ENOMEM; nth++) {
      run r = {.session = sbx_http_provider.session_new(config), .code = SBX_ENOMEM};
      if (i > 0) {
        r.session->id = sbx_strndup("s", 1);
        r.session->dir = sbx_strndup("/w", 2);
      }
      r.output = sbx_output_new(1000, SBX_KEEP_HEAD, false, NULL, NULL);
      sbx_buf_init(&r.bytes, 1000);
      sbx_alloc_fail_at(nth, false);
      sbx_op *op = verbs[i](&r);
      bool failed = sbx_alloc_failed();
      sbx_alloc_fail_at(0, false);
      while (op != NULL && !r.ended)
        uv_run(&uv, UV_RUN_ONCE);
      assert_false(r.status.started);
      assert_int_equal(uv_run(&uv, UV_RUN_DEFAULT), 0);
      sbx_output_free(r.output);
      sbx_buf_deinit(&r.bytes);
      sbx_http_provider.session_free(r.session);
      code = failed ? SBX_ENOMEM : r.code;
    }
    assert_int_equal(code, SBX_ENET);
  }
  sbx__hs_config_free(config);
  loop_end(&uv, loop);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_options),
      cmocka_unit_test(test_options_that_are_wrong),
      cmocka_unit_test(test_options_without_memory),
      cmocka_unit_test(test_where_a_path_leads),
      cmocka_unit_test(test_verbs_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
