/* Tests of what in the E2B provider needs no server: options, answers, addresses, the line at a
 * command's end, requests, and the interpreter's lines. */
#include "core/err.h"
#include "providers/e2b/cell.h"
#include "providers/e2b/command.h"
#include "providers/e2b/wire.h"
#include "support/config_test.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

/* ---- options -------------------------------------------------------------------------------- */

static void test_defaults(void **state) {
  (void)state;
  sbx_config *config = config_of(&sbx_e2b_provider, "{\"apiKey\":\"e2b_1\"}");
  assert_string_equal(config->api_url, "https://api.e2b.app");
  assert_string_equal(config->create_json,
                      "{\"templateID\":\"base\",\"timeout\":300,\"metadata\":{");
  assert_null(config->sandbox_url);
  assert_int_equal(config->lifetime_s, 300);
  assert_true(config->owned);
  assert_false(config->interpreter || config->can_pause || config->debug);
  assert_true(config->secure);
  sbx__e2b_config_free(config);
}

static void test_options(void **state) {
  static const struct {
    const char *options;
    const char *create;
  } creates[] = {
      {"{\"apiKey\":\"k\",\"template\":\"a/b:c\",\"lifetimeSeconds\":7}",
       "{\"templateID\":\"a/b:c\",\"timeout\":7,\"metadata\":{"},
      {"{\"apiKey\":\"k\",\"env\":{\"A\":\"\\\"\"},\"autoResume\":true,\"autoPause\":false}",
       "{\"templateID\":\"base\",\"timeout\":300,\"envVars\":{\"A\":\"\\\"\"},\"autoPause\":false,"
       "\"autoResume\":{\"enabled\":true},\"metadata\":{"},
      {"{\"apiKey\":\"k\",\"allowInternetAccess\":false,\"network\":{\"a\":[1,null,{\"b\":true}]}}",
       "{\"templateID\":\"base\",\"timeout\":300,\"network\":{\"a\":[1,null,{\"b\":true}]},"
       "\"allow_internet_access\":false,\"metadata\":{"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(creates); i++) {
    sbx_config *config = config_of(&sbx_e2b_provider, creates[i].options);
    assert_string_equal(config->create_json, creates[i].create);
    sbx__e2b_config_free(config);
  }
  sbx_config *config =
      config_of(&sbx_e2b_provider, "{\"lateAuth\":true,\"domain\":\"e.example\",\"secure\":false,"
                                   "\"sandboxId\":\"iabc-6532\",\"metadata\":{\"a\":\"b\"}}");
  assert_string_equal(config->api_url, "https://api.e.example");
  assert_string_equal(config->attach_id, "iabc");
  assert_string_equal(config->create_json, "{\"templateID\":\"base\",\"timeout\":300,"
                                           "\"metadata\":{\"a\":\"b\"");
  assert_true(!config->secure && config->can_pause && !config->owned);
  sbx__e2b_config_free(config);
  config = config_of(&sbx_e2b_provider, "{\"debug\":true,\"template\":\"code-interpreter-v1\"}");
  assert_string_equal(config->api_url, "http://localhost:3000");
  assert_true(config->interpreter);
  sbx__e2b_config_free(config);
}

static void test_options_that_are_wrong(void **state) {
  static const wrong_options cases[] = {
      {BYTES("{}"), SBX_EKEY, "missing API key"},
      {BYTES("{\"apiKey\":\"canary 1\"}"), SBX_EINVAL, "blank"},
      {BYTES("{\"apiKey\":\"canary\\n\"}"), SBX_EINVAL, "apiKey"},
      {BYTES("{\"apiKey\":\"k\",\"baseUrl\":\"canary\"}"), SBX_EINVAL, "unknown option"},
      {BYTES("{\"apiKey\":\"k\",\"baseURL\":\"canary\"}"), SBX_EINVAL, "baseURL"},
      {BYTES("{\"apiKey\":\"k\",\"sandboxUrl\":\"http://h/?canary\"}"), SBX_EINVAL, "sandboxUrl"},
      {BYTES("{\"apiKey\":\"k\",\"sandboxUrl\":\"http://h\"}"), SBX_EINVAL, "in the clear"},
      {BYTES("{\"apiKey\":\"k\",\"domain\":\"canary/x\"}"), SBX_EINVAL, "domain"},
      {BYTES("{\"apiKey\":\"k\",\"sandboxId\":\"-x\"}"), SBX_EINVAL, "sandboxId"},
      {BYTES("{\"apiKey\":\"k\",\"sandboxId\":\"Canary\"}"), SBX_EINVAL, "sandboxId"},
      {BYTES("{\"apiKey\":\"k\",\"lifetimeSeconds\":0}"), SBX_EINVAL, "lifetimeSeconds"},
      {BYTES("{\"apiKey\":\"k\",\"env\":{\"A\":1}}"), SBX_EINVAL, "env"},
      {BYTES("{\"apiKey\":\"k\",\"network\":{\"A\":1.5}}"), SBX_EINVAL, "network"},
      {BYTES("{\"apiKey\":\"k\",\"network\":[]}"), SBX_EINVAL, "network"},
      {BYTES("{\"apiKey\":\"k\",\"metadata\":{\"cloudsandbox-tag\":\"x\"}}"), SBX_EINVAL, "taken"},
      {BYTES("{\"apiKey\":\"k\",\"headers\":{\"Authorization\":\"canary\"}}"), SBX_EINVAL,
       "Authorization"},
      {BYTES("{\"apiKey\":\"k\",\"headers\":{\"a\":\"canary\\r\\nb: c\"}}"), SBX_EINVAL, "headers"},
      {BYTES("{\"apiKey\":\"k\",\"autoPause\":1}"), SBX_EINVAL, "autoPause"},
      {BYTES("{\"apiKey\":\"k\",\"ca\":\"canary\"}"), SBX_EINVAL, "certificate"},
  };
  (void)state;
  assert_refused(&sbx_e2b_provider, cases, COUNT(cases));
}

static void test_options_without_memory(void **state) {
  config_run run = {&sbx_e2b_provider,
                    BYTES("{\"apiKey\":\"k\",\"env\":{\"A\":\"1\"},\"metadata\":{\"a\":\"b\"},"
                          "\"headers\":{\"x\":\"y\"},\"domain\":\"d.example\",\"sandboxUrl\":"
                          "\"https://h:1\",\"sandboxId\":\"i1\",\"template\":\"t\"}")};
  (void)state;
  assert_true(each_allocation_fails(configure_once, &run) > 15);
}

static void test_secrets_are_wiped(void **state) {
  (void)state;
  sbx_config *config =
      config_of(&sbx_e2b_provider, "{\"apiKey\":\"e2b_canary\",\"env\":{\"A\":\"canary\"}}");
  watch_secret(sbx_slice_of(config->api_key, 10));
  sbx__e2b_config_free(config);
  assert_true(secret_was_wiped());
  config = config_of(&sbx_e2b_provider, "{\"apiKey\":\"e2b_canary\",\"env\":{\"A\":\"canary\"}}");
  watch_secret(sbx_slice_str(config->create_json));
  sbx__e2b_config_free(config);
  assert_true(secret_was_wiped());
}

/* ---- the answer to a create ----------------------------------------------------------------- */

/* A session without a loop can take answers and be freed. */
static sbx_session *session_of(const char *options) {
  sbx_session *session = sbx_e2b_provider.session_new(config_of(&sbx_e2b_provider, options));
  assert_non_null(session);
  return session;
}

static void free_session(sbx_session *session) {
  sbx_config *config = session->config;
  sbx_e2b_provider.session_free(session);
  sbx__e2b_config_free(config);
}

static void test_addresses_of_a_sandbox(void **state) {
  static const struct {
    const char *options, *domain, *envd, *code;
  } cases[] = {
      {"{\"apiKey\":\"k\"}", "null", "https://sandbox.e2b.app", "https://49999-i1.e2b.app"},
      {"{\"apiKey\":\"k\"}", "\"\"", "https://sandbox.e2b.app", "https://49999-i1.e2b.app"},
      {"{\"apiKey\":\"k\"}", "\"own.example\"", "https://49983-i1.own.example",
       "https://49999-i1.own.example"},
      {"{\"apiKey\":\"k\",\"domain\":\"E2B.dev\"}", "null", "https://sandbox.E2B.dev",
       "https://49999-i1.E2B.dev"},
      {"{\"apiKey\":\"k\",\"domain\":\"x.example\"}", "null", "https://49983-i1.x.example",
       "https://49999-i1.x.example"},
      {"{\"apiKey\":\"k\",\"sandboxUrl\":\"https://h:1/p/\"}", "\"own.example\"", "https://h:1/p",
       "https://h:1/p"},
      {"{\"debug\":true}", "null", "http://localhost:49983", "http://localhost:49999"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    char reply[256];
    sbx_err err;
    sbx_session *session = session_of(cases[i].options);
    snprintf(reply, sizeof reply,
             "{\"sandboxID\":\"i1-client\",\"envdVersion\":\"0.6.13\",\"domain\":%s,"
             "\"envdAccessToken\":\"t\",\"more\":[]}",
             cases[i].domain);
    assert_int_equal(sbx__e2b_take_sandbox(session, NULL, sbx_slice_str(reply), &err), SBX_OK);
    assert_string_equal(session->box.id, "i1");
    assert_string_equal(session->box.access_token, "t");
    assert_null(session->box.traffic_token);
    assert_string_equal(session->box.envd_url, cases[i].envd);
    assert_string_equal(session->box.code_url, cases[i].code);
    free_session(session);
  }
}

static void test_answers_that_make_no_sense(void **state) {
  static const char *const replies[] = {
      "",
      "null",
      "[]",
      "{}",
      "{\"sandboxID\":\"i1\"",
      "{\"sandboxID\":\"i1\"}",
      "{\"sandboxID\":\"\",\"envdVersion\":\"1.0.0\"}",
      "{\"sandboxID\":\"-i1\",\"envdVersion\":\"1.0.0\"}",
      "{\"sandboxID\":\"I1\",\"envdVersion\":\"1.0.0\"}",
      "{\"sandboxID\":\"i1/..\",\"envdVersion\":\"1.0.0\"}",
      "{\"sandboxID\":1,\"envdVersion\":\"1.0.0\"}",
      "{\"sandboxID\":\"i1\",\"envdVersion\":1}",
      "{\"sandboxID\":\"i1\",\"envdVersion\":\"1.0.0\",\"envdAccessToken\":7}",
      "{\"sandboxID\":\"i1\",\"envdVersion\":\"1.0.0\",\"envdAccessToken\":\"a\\r\\nb: c\"}",
      "{\"sandboxID\":\"i1\",\"envdVersion\":\"1.0.0\",\"trafficAccessToken\":\"a b\"}",
      "{\"sandboxID\":\"i1\",\"envdVersion\":\"1.0.0\",\"domain\":\"a/b@c\"}",
      "{\"sandboxID\":\"i1\",\"envdVersion\":\"1.0.0\",\"domain\":\"a b\"}",
      "{\"sandboxID\":\"i1\",\"envdVersion\":\"1.0.0\",\"domain\":7}",
  };
  (void)state;
  sbx_session *session = session_of("{\"apiKey\":\"k\"}");
  for (size_t i = 0; i < COUNT(replies); i++) {
    sbx_err err;
    int rc = sbx__e2b_take_sandbox(session, NULL, sbx_slice_str(replies[i]), &err);
    if (rc != SBX_EPROTO || strstr(err.message, "unexpected answer") == NULL)
      fail_msg("%s: %d %s", replies[i], rc, err.message);
    assert_null(session->box.id);
  }
  free_session(session);
}

static void test_versions(void **state) {
  static const struct {
    const char *text;
    uint32_t version;
  } cases[] = {
      {"0.5.7", SBX__E2B_VERSION(0, 5, 7)},
      {"0.5.14", SBX__E2B_VERSION(0, 5, 14)},
      {"0.6.13-rc1", SBX__E2B_VERSION(0, 6, 13)},
      {"99.99.99", SBX__E2B_VERSION(99, 99, 99)},
      {"1.2", 0},
      {"v1.2.3", 0},
      {"", 0},
      {"1.2.", 0},
      {"1234.1.1", 0},
      {"999.1.1", 0},
  };
  (void)state;
  assert_true(SBX__E2B_VERSION(0, 5, 14) > SBX__E2B_VERSION(0, 5, 7));
  assert_true(SBX__E2B_VERSION(1, 0, 0) > SBX__E2B_VERSION(0, 999, 999));
  sbx_session *session = session_of("{\"apiKey\":\"k\"}");
  for (size_t i = 0; i < COUNT(cases); i++) {
    char reply[128];
    snprintf(reply, sizeof reply, "{\"sandboxID\":\"i1\",\"envdVersion\":\"%s\"}", cases[i].text);
    assert_int_equal(sbx__e2b_take_sandbox(session, NULL, sbx_slice_str(reply), NULL), SBX_OK);
    assert_int_equal(session->box.envd_version, cases[i].version);
  }
  free_session(session);
}

static int take_once(void *arg) {
  return sbx__e2b_take_sandbox(
      arg, NULL,
      LIT("{\"sandboxID\":\"i1\",\"envdVersion\":\"1.0.0\",\"envdAccessToken\":\"t\","
          "\"trafficAccessToken\":\"u\",\"domain\":\"d.example\"}"),
      NULL);
}

static void test_answers_without_memory(void **state) {
  (void)state;
  sbx_session *session = session_of("{\"apiKey\":\"k\"}");
  assert_int_equal(take_once(session), SBX_OK);
  assert_true(each_allocation_fails(take_once, session) > 5);
  free_session(session);
}

static void test_bad_gateways(void **state) {
  (void)state;
  assert_int_equal(
      sbx__e2b_read_502(LIT("{\"sandboxId\":\"i1\",\"message\":\"The sandbox was not found\"}")),
      SBX__E2B_NO_SANDBOX);
  assert_int_equal(
      sbx__e2b_read_502(LIT("{\"sandboxId\":\"i1\",\"message\":\"not open\",\"port\":49999}")),
      SBX__E2B_NO_PORT);
  const sbx_slice unclear[] = {LIT(""),
                               LIT("Failed to route request to sandbox"),
                               LIT("[]"),
                               LIT("{\"message\":\"not found\"}"),
                               LIT("{\"sandboxId\":\"i1\",\"message\":7}"),
                               LIT("<html>")};
  for (size_t i = 0; i < COUNT(unclear); i++)
    assert_int_equal(sbx__e2b_read_502(unclear[i]), SBX__E2B_UNCLEAR);
}

static void test_paths(void **state) {
  static const char *const cases[][2] = {
      {"a", "./a"},         {"", "./"},     {"/a", "/a"},       {"~", "~"},
      {"~user", "./~user"}, {"~/a", "~/a"}, {"../a", "./../a"}, {"-rf", "./-rf"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_buf buf;
    sbx_buf_init(&buf, 64);
    sbx__e2b_append_path(&buf, sbx_slice_str(cases[i][0]));
    assert_slice(sbx_buf_slice(&buf), sbx_slice_str(cases[i][1]));
    sbx_buf_deinit(&buf);
  }
}

/* ---- the start request ---------------------------------------------------------------------- */

static const sbx_config no_options;

static void check_made(const sbx_exec_spec *spec, const char *part) {
  sbx__e2b_command command;
  sbx_err err;
  if (sbx__e2b_command_make(&command, spec, &no_options, TOKEN, &err) != SBX_OK)
    fail_msg("%s", err.message);
  if (strstr(command.request.ptr, part) == NULL)
    fail_msg("no %s in %s", part, command.request.ptr);
  assert_non_null(strstr(command.request.ptr, "\"stdin\":false"));
  assert_non_null(strstr(command.request.ptr, "\"CLOUDSANDBOX_CALL\":\"" TOKEN "\""));
  sbx__e2b_command_free(&command);
}

static void test_start_requests(void **state) {
  const sbx_slice argv[] = {LIT("printf"), LIT("%s"), LIT("")};
  const sbx_env_var env[] = {
      {LIT("A"), LIT("1")}, {LIT("CLOUDSANDBOX_CALL"), LIT("mine")}, {LIT("A"), LIT("2")}};
  sbx_exec_spec spec = {.text = LIT("--version")};
  (void)state;
  check_made(&spec, "\"\",\"\",\"\",\"\",\"shell\",\"\",\"--version\"]");
  check_made(&spec, "\"cwd\":\"./\"");
  spec.merge_streams = true;
  check_made(&spec, "\"j\",\"\",\"\",\"\",\"shell\"");
  spec = (sbx_exec_spec){.kind = SBX_EXEC_CODE, .text = LIT("-1"), .cwd = LIT("~/x")};
  check_made(&spec, "\"python\",\"-1\"]");
  check_made(&spec, "\"cwd\":\"~/x\"");
  spec.language = SBX_LANG_NODE;
  check_made(&spec, "\"node\",\"-1\"]");
  spec =
      (sbx_exec_spec){.kind = SBX_EXEC_ARGV, .argv = argv, .argc = 3, .env = env, .env_count = 3};
  check_made(&spec, "\"argv\",\"printf\",\"%s\",\"\"]");
  check_made(&spec, "\"envs\":{\"A\":\"2\",\"CLOUDSANDBOX_CALL\":\"" TOKEN "\"}");
}

static void test_uploads(void **state) {
  sbx__e2b_command command;
  static char text[200 * 1024];
  sbx_exec_spec spec = {.text = LIT("cat"), .stdin_bytes = LIT("in\0put")};
  (void)state;
  memset(text, 'x', sizeof text);
  assert_int_equal(sbx__e2b_command_make(&command, &spec, &no_options, TOKEN, NULL), SBX_OK);
  assert_string_equal(command.uploads[0].path, "/tmp/cloudsandbox-" TOKEN "-in");
  assert_slice(command.uploads[0].bytes, LIT("in\0put"));
  assert_string_equal(command.uploads[1].path, "");
  assert_non_null(strstr(command.request.ptr, command.uploads[0].path));
  sbx__e2b_command_free(&command);

  spec.text = sbx_slice_of(text, sizeof text);
  assert_int_equal(sbx__e2b_command_make(&command, &spec, &no_options, TOKEN, NULL), SBX_OK);
  assert_string_equal(command.uploads[1].path, "/tmp/cloudsandbox-" TOKEN "-text");
  assert_int_equal(command.uploads[1].bytes.len, sizeof text);
  assert_true(command.request.len < 16 * 1024);
  sbx__e2b_command_free(&command);

  spec.kind = SBX_EXEC_CODE;
  assert_int_equal(sbx__e2b_command_make(&command, &spec, &no_options, TOKEN, NULL), SBX_OK);
  assert_slice(command.uploads[0].bytes, LIT("in\0put"));
  assert_int_equal(command.uploads[1].prefix.len, 0);
  sbx__e2b_command_free(&command);
}

static void test_commands_that_cannot_be_sent(void **state) {
  const sbx_slice argv[] = {LIT("a"), LIT("\xff")};
  const sbx_env_var env[] = {{LIT("A"), LIT("\xff")}};
  const sbx_exec_spec specs[] = {
      {.text = LIT("\xff")},
      {.text = LIT("a"), .cwd = LIT("\xff")},
      {.kind = SBX_EXEC_CODE, .text = LIT("\xc3")},
      {.kind = SBX_EXEC_ARGV, .argv = argv, .argc = 2},
      {.text = LIT("a"), .env = env, .env_count = 1},
  };
  sbx__e2b_command command;
  sbx_err err;
  (void)state;
  for (size_t i = 0; i < COUNT(specs); i++) {
    assert_int_equal(sbx__e2b_command_make(&command, &specs[i], &no_options, TOKEN, &err),
                     SBX_EINVAL);
    assert_non_null(strstr(err.message, "UTF-8"));
    sbx__e2b_command_free(&command);
  }
}

static int make_once(void *arg) {
  sbx__e2b_command command;
  int rc = sbx__e2b_command_make(&command, arg, &no_options, TOKEN, NULL);
  sbx__e2b_command_free(&command);
  return rc;
}

static void test_requests_without_memory(void **state) {
  /* More than there is room for at once. */
  static char text[4000];
  sbx_exec_spec spec = {
      .kind = SBX_EXEC_CODE, .language = SBX_LANG_NODE, .text = sbx_slice_of(text, sizeof text)};
  (void)state;
  memset(text, '1', sizeof text);
  assert_true(each_allocation_fails(make_once, &spec) > 2);
}

/* ---- the interpreter's lines ---------------------------------------------------------------- */

typedef struct cell_fixture {
  sbx_output *out;
  sbx__e2b_cell cell;
} cell_fixture;

static void cell_begin(cell_fixture *f) {
  f->out = sbx_output_new(4096, SBX_KEEP_HEAD, false, NULL, NULL);
  assert_non_null(f->out);
  sbx__e2b_cell_init(&f->cell, f->out);
}

static void cell_end(cell_fixture *f) {
  sbx__e2b_cell_deinit(&f->cell);
  sbx_output_free(f->out);
}

static void assert_cell(cell_fixture *f, const char *std_out, const char *std_err,
                        const char *details) {
  sbx_kept joined, out, err;
  assert_int_equal(sbx__e2b_cell_finish(&f->cell), SBX_OK);
  assert_int_equal(sbx_output_view(f->out, &joined, &out, &err), SBX_OK);
  assert_slice(out.bytes, sbx_slice_str(std_out));
  assert_slice(err.bytes, sbx_slice_str(std_err));
  assert_slice(sbx_buf_slice(sbx_output_details(f->out)), sbx_slice_str(details));
}

static void take_lines(cell_fixture *f, const sbx_slice *lines, size_t count) {
  for (size_t i = 0; i < count; i++) {
    sbx_err err;
    sbx_slice copy = tight_copy(lines[i]);
    if (sbx__e2b_cell_line(&f->cell, copy, &err) != SBX_OK)
      fail_msg("%s", err.message);
    tight_free(copy);
  }
}

static void test_cell(void **state) {
  const sbx_slice lines[] = {
      LIT("{\"type\":\"number_of_executions\",\"execution_count\":1}"),
      LIT("{\"type\":\"stdout\",\"text\":\"a\"}"),
      LIT("{\"type\":\"keepalive\"}"),
      LIT("{\"type\":\"stderr\",\"text\":\"b\\n\"}"),
      LIT("{\"type\":\"stdout\",\"text\":\"c\"}"),
      LIT("{\"type\":\"result\",\"text\":\"2\"}"),
      LIT("{\"type\":\"result\",\"data\":[NaN,-Infinity,\"NaN\\\"\\ud83d\"]}"),
      LIT("{\"type\":\"end_of_execution\"}"),
  };
  cell_fixture f;
  (void)state;
  cell_begin(&f);
  take_lines(&f, lines, COUNT(lines));
  assert_true(f.cell.ended && !f.cell.failed && !f.cell.kernel_lost);
  assert_cell(&f, "ac", "b\n",
              "{\"results\":[{\"type\":\"result\",\"text\":\"2\"},{\"type\":\"result\",\"data\":"
              "[null,null,\"NaN\\\"\\ufffd\"]}],\"droppedResults\":0}");
  cell_end(&f);
}

static void test_cell_with_an_error(void **state) {
  const sbx_slice lines[] = {
      LIT("{\"type\":\"error\",\"name\":\"E\",\"value\":\"v\","
          "\"traceback\":\"\\u001b[0;31mE\\u001b[0m: v\\u001b\"}"),
      LIT("{\"type\":\"end_of_execution\"}"),
  };
  cell_fixture f;
  (void)state;
  cell_begin(&f);
  take_lines(&f, lines, COUNT(lines));
  assert_true(f.cell.failed && !f.cell.kernel_lost);
  assert_cell(&f, "", "E: v\x1b\n",
              "{\"results\":[],\"droppedResults\":0,\"error\":{\"name\":\"E\",\"value\":\"v\","
              "\"traceback\":\"\\u001b[0;31mE\\u001b[0m: v\\u001b\"}}");
  cell_end(&f);
}

static void test_cell_whose_service_failed(void **state) {
  const sbx_slice ours[] = {
      LIT("{\"type\":\"error\",\"name\":\"WebSocketError\",\"value\":\"v\",\"traceback\":\"\"}")};
  const sbx_slice of_the_code[] = {
      LIT("{\"type\":\"error\",\"name\":\"WebSocketError\",\"value\":\"v\",\"traceback\":\"t\"}")};
  cell_fixture f;
  (void)state;
  cell_begin(&f);
  take_lines(&f, of_the_code, 1);
  assert_false(f.cell.kernel_lost);
  take_lines(&f, ours, 1);
  assert_true(f.cell.kernel_lost);
  cell_end(&f);
}

static void test_lines_that_make_no_sense(void **state) {
  static const sbx_slice lines[] = {
      BYTES("nonsense"), BYTES("{\"type\":\"stdout\""),     BYTES("{}"),      BYTES("[]"),
      BYTES("7"),        BYTES("{\"type\":\"stdout\"}"),    BYTES("NaN"),     BYTES("\"\\ud83d\""),
      BYTES("\"\\"),     BYTES("{\"type\":\"x\",\"y\":N}"), BYTES("\"\\ud8"),
  };
  (void)state;
  for (size_t i = 0; i < COUNT(lines); i++) {
    cell_fixture f;
    cell_begin(&f);
    sbx_slice copy = tight_copy(lines[i]);
    assert_int_equal(sbx__e2b_cell_line(&f.cell, copy, NULL), SBX_EPROTO);
    tight_free(copy);
    cell_end(&f);
  }
}

static void test_too_many_results(void **state) {
  cell_fixture f;
  (void)state;
  cell_begin(&f);
  f.cell.results.max = 40;
  const sbx_slice lines[] = {LIT("{\"type\":\"result\",\"text\":\"1\"}"),
                             LIT("{\"type\":\"result\",\"text\":\"2\"}"),
                             LIT("{\"type\":\"result\",\"text\":\"3\"}")};
  take_lines(&f, lines, COUNT(lines));
  assert_cell(&f, "", "",
              "{\"results\":[{\"type\":\"result\",\"text\":\"1\"}],\"droppedResults\":2}");
  cell_end(&f);
}

static int cell_once(void *arg) {
  const sbx_slice *lines = arg;
  cell_fixture f;
  f.out = sbx_output_new(4096, SBX_KEEP_HEAD, false, NULL, NULL);
  if (f.out == NULL)
    return SBX_ENOMEM;
  sbx__e2b_cell_init(&f.cell, f.out);
  int rc = SBX_OK;
  for (size_t i = 0; rc == SBX_OK && lines[i].len > 0; i++)
    rc = sbx__e2b_cell_line(&f.cell, lines[i], NULL);
  if (rc == SBX_OK)
    rc = sbx__e2b_cell_finish(&f.cell);
  cell_end(&f);
  return rc;
}

static void test_cell_without_memory(void **state) {
  sbx_slice lines[] = {LIT("{\"type\":\"result\",\"text\":NaN}"),
                       LIT("{\"type\":\"error\",\"name\":\"\",\"value\":\"\",\"traceback\":\"\"}"),
                       LIT("{\"type\":\"end_of_execution\"}"),
                       {NULL, 0}};
  (void)state;
  /* The text of the error goes to the output, which counts what it has no memory for. */
  size_t live = sbx_alloc_live();
  bool failed = true;
  for (size_t n = 1; failed; n++) {
    sbx_alloc_fail_at(n, false);
    int rc = cell_once(lines);
    failed = sbx_alloc_failed();
    sbx_alloc_fail_at(0, false);
    assert_true(rc == SBX_OK || (failed && rc == SBX_ENOMEM));
    assert_int_equal(sbx_alloc_live(), live);
  }
}

#define T(name) cmocka_unit_test_teardown(name, no_leaks)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(test_defaults),
      T(test_options),
      T(test_options_that_are_wrong),
      T(test_options_without_memory),
      T(test_secrets_are_wiped),
      T(test_addresses_of_a_sandbox),
      T(test_answers_that_make_no_sense),
      T(test_versions),
      T(test_answers_without_memory),
      T(test_bad_gateways),
      T(test_paths),
      T(test_start_requests),
      T(test_uploads),
      T(test_commands_that_cannot_be_sent),
      T(test_requests_without_memory),
      T(test_cell),
      T(test_cell_with_an_error),
      T(test_cell_whose_service_failed),
      T(test_lines_that_make_no_sense),
      T(test_too_many_results),
      T(test_cell_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
