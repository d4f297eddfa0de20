/* Tests of the docker provider: options, mounts, whose containers these are, and conversations with
 * an engine that answers as it was told. */
#include "providers/docker/config.h"
#include "providers/docker/mounts.h"
#include "providers/docker/owner.h"

#include "support/canned.h"
#include "support/config_test.h"

#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* ---- options ---- */

static void test_options(void **state) {
  (void)state;
  sbx_config *config = config_of(&sbx_docker_provider, "{}");
  assert_string_equal(config->base, "http://localhost");
  assert_string_equal(config->service, "/var/run/docker.sock");
  assert_string_equal(config->user, "65534:65534");
  assert_true(config->owned && config->lifetime_s == 3600 && !config->https);
  /* Safe, as long as nobody says otherwise. */
  assert_non_null(strstr(config->host_body, "\"NetworkMode\":\"none\""));
  assert_non_null(strstr(config->host_body, "\"CapDrop\":[\"ALL\"],\"CapAdd\":[]"));
  assert_non_null(strstr(config->host_body, "\"SecurityOpt\":[\"no-new-privileges\"]"));
  assert_non_null(strstr(config->host_body, "\"ReadonlyRootfs\":true,\"AutoRemove\":true"));
  assert_non_null(strstr(config->host_body, "\"PidsLimit\":256"));
  assert_non_null(strstr(config->host_body, "\"Memory\":1073741824,\"MemorySwap\":1073741824"));
  assert_non_null(strstr(config->create_body, "\"Env\":[\"HOME=/workspace\"]"));
  assert_string_equal(config->closed, "\"/run\":\"ro,nosuid,nodev,size=64m\","
                                      "\"/var/tmp\":\"ro,nosuid,nodev,size=64m\"");
  sbx__docker_config_free(config);
  config = config_of(&sbx_docker_provider,
                     "{\"workingDir\":\"/run\",\"mounts\":[{\"source\":\"/usr/share\","
                     "\"target\":\"/var/tmp\"}]}");
  assert_null(config->closed);
  sbx__docker_config_free(config);
  config = config_of(&sbx_docker_provider,
                     "{\"host\":\"tcp://h:2376\",\"apiVersion\":\"1.43\",\"cpus\":0.5,"
                     "\"network\":\"bridge\",\"env\":{\"HOME\":\"/h\",\"A\":\"b c\"},"
                     "\"capabilities\":[\"NET_BIND_SERVICE\"],\"readOnlyRoot\":false,"
                     "\"user\":\"0\",\"noNewPrivileges\":false,\"workingDir\":\"/tmp\"}");
  assert_string_equal(config->base, "https://h:2376");
  assert_true(config->https && config->minor == 43 && config->disk == NULL && config->asks_cpus);
  assert_non_null(strstr(config->host_body, "\"NanoCpus\":500000000"));
  assert_non_null(strstr(config->host_body, "\"CapAdd\":[\"NET_BIND_SERVICE\"]"));
  assert_non_null(strstr(config->host_body, "\"SecurityOpt\":[],\"ReadonlyRootfs\":false"));
  assert_non_null(strstr(config->create_body, "\"Env\":[\"HOME=/h\",\"A=b c\"]"));
  assert_null(config->closed);
  sbx__docker_config_free(config);
  config = config_of(&sbx_docker_provider, "{\"containerId\":\"web.1\",\"host\":\"h:2375\"}");
  assert_true(!config->owned && config->user == NULL && config->create_body == NULL);
  assert_string_equal(config->base, "http://h:2375");
  sbx__docker_config_free(config);
}

static void test_options_that_are_wrong(void **state) {
  static const wrong_options cases[] = {
      {BYTES("{\"imge\":\"canary\"}"), SBX_EINVAL, "unknown option"},
      {BYTES("{\"host\":\"npipe:////./canary\"}"), SBX_EINVAL, "npipe"},
      {BYTES("{\"host\":\"ssh://canary\"}"), SBX_EINVAL, "ssh"},
      {BYTES("{\"host\":\"unix://canary\"}"), SBX_EINVAL, "absolute"},
      {BYTES("{\"host\":\"tcp://h:canary\"}"), SBX_EINVAL, "host"},
      {BYTES("{\"apiVersion\":\"1.40\"}"), SBX_EINVAL, "1.41"},
      {BYTES("{\"apiVersion\":\"canary\"}"), SBX_EINVAL, "apiVersion"},
      {BYTES("{\"image\":\"a b\"}"), SBX_EINVAL, "image"},
      {BYTES("{\"pull\":\"canary\"}"), SBX_EINVAL, "pull"},
      {BYTES("{\"user\":\"canary\"}"), SBX_EINVAL, "number"},
      {BYTES("{\"user\":\"1:\"}"), SBX_EINVAL, "user"},
      {BYTES("{\"user\":\":1\"}"), SBX_EINVAL, "user"},
      {BYTES("{\"user\":\"1:2:3\"}"), SBX_EINVAL, "user"},
      {BYTES("{\"user\":\"12345678901\"}"), SBX_EINVAL, "user"},
      {BYTES("{\"workingDir\":\"/\"}"), SBX_EINVAL, "workingDir"},
      {BYTES("{\"workingDir\":\"canary\"}"), SBX_EINVAL, "workingDir"},
      {BYTES("{\"workingDir\":\"/a/../canary\"}"), SBX_EINVAL, "workingDir"},
      {BYTES("{\"network\":\"host\"}"), SBX_EINVAL, "network"},
      {BYTES("{\"network\":\"container:canary\"}"), SBX_EINVAL, "network"},
      {BYTES("{\"memoryMb\":5}"), SBX_EINVAL, "memoryMb"},
      {BYTES("{\"memoryMb\":-1}"), SBX_EINVAL, "memoryMb"},
      {BYTES("{\"cpus\":0}"), SBX_EINVAL, "cpus"},
      {BYTES("{\"cpus\":-1}"), SBX_EINVAL, "cpus"},
      {BYTES("{\"cpus\":\"1\"}"), SBX_EINVAL, "cpus"},
      {BYTES("{\"pids\":0}"), SBX_EINVAL, "pids"},
      {BYTES("{\"diskMb\":0}"), SBX_EINVAL, "diskMb"},
      {BYTES("{\"capabilities\":[\"ALL\"]}"), SBX_EINVAL, "capabilities"},
      {BYTES("{\"capabilities\":[\"CAP_SYS_ADMIN\"]}"), SBX_EINVAL, "capabilities"},
      {BYTES("{\"capabilities\":[\"canary\"]}"), SBX_EINVAL, "capabilities"},
      {BYTES("{\"capabilities\":\"ALL\"}"), SBX_EINVAL, "capabilities"},
      {BYTES("{\"env\":{\"A B\":\"canary\"}}"), SBX_EINVAL, "env"},
      {BYTES("{\"labels\":{\"cloudsandbox.tag\":\"canary\"}}"), SBX_EINVAL, "labels"},
      {BYTES("{\"lifetimeSeconds\":0}"), SBX_EINVAL, "lifetimeSeconds"},
      {BYTES("{\"owned\":false}"), SBX_EINVAL, "owned"},
      {BYTES("{\"containerId\":\"c\",\"memoryMb\":64}"), SBX_EINVAL, "memoryMb is for a new"},
      {BYTES("{\"mounts\":{}}"), SBX_EINVAL, "mounts"},
      {BYTES("{\"mounts\":[{\"source\":\"/a\",\"target\":\"/b\",\"mode\":1}]}"), SBX_EINVAL,
       "mounts"},
  };
  (void)state;
  assert_refused(&sbx_docker_provider, cases, COUNT_OF(cases));
}

static void test_options_without_memory(void **state) {
  config_run run = {&sbx_docker_provider,
                    BYTES("{\"host\":\"tcp://h:2376\",\"certPath\":\"/c\",\"image\":\"i\","
                          "\"env\":{\"A\":\"b\"},\"labels\":{\"c\":\"d\"},\"runtime\":\"r\","
                          "\"platform\":\"linux/amd64\","
                          "\"mounts\":[{\"source\":\"/srv/a\",\"target\":\"/b\"}]}")};
  (void)state;
  assert_true(each_allocation_fails(configure_once, &run) > 15);
}

/* ---- mounts ---- */

static void test_mounts(void **state) {
  static const struct {
    const char *source, *target;
    const char *why; /* NULL: it may be given */
  } cases[] = {
      {"/srv/data", "/data", NULL},
      {"/home/u/project", "/workspace", NULL},
      {"/opt/app/.config", "/config", NULL},
      {"/etcetera", "/e", NULL},
      {"/var/lib/app", "/a", NULL},
      {"/", "/host", "plain"},
      {"relative", "/r", "plain"},
      {"/srv/../etc", "/e", "plain"},
      {"/srv/./a", "/e", "plain"},
      {"/srv//a", "/e", "plain"},
      {"/srv/a/", "/e", "plain"},
      {"/srv/a:rw", "/e", "plain"},
      {"/etc", "/e", "system"},
      {"/etc/passwd", "/e", "system"},
      {"/proc/1", "/p", "system"},
      {"/sys", "/s", "system"},
      {"/dev", "/d", "system"},
      {"/run/docker.sock", "/s", "system"},
      {"/var/run/docker.sock", "/s", "system"},
      {"/var", "/v", "system"},
      {"/var/lib", "/v", "system"},
      {"/var/lib/docker/volumes", "/v", "system"},
      {"/home", "/h", "home"},
      {"/home/u", "/h", "home"},
      {"/root", "/h", "home"},
      {"/home/u/.ssh", "/h", "credentials"},
      {"/srv/.aws/credentials", "/h", "credentials"},
      {"/srv/engine", "/s", "socket"},
      {"/srv/engine/docker.sock", "/s", "socket"},
      {"/srv", "/s", "socket"},
      {"/opt/a", "relative", "no place"},
      {"/opt/a", "/proc/x", "no place"},
      {"/opt/a", "/tmp", "no place"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    char text[256];
    sbx_json_doc *doc = NULL;
    sbx_json_out out;
    sbx_buf buf;
    sbx_err err = {0};
    bool has_dir = false;
    snprintf(text, sizeof text, "[{\"source\":\"%s\",\"target\":\"%s\"}]", cases[i].source,
             cases[i].target);
    assert_int_equal(sbx_json_parse(&doc, sbx_slice_str(text), NULL), SBX_OK);
    sbx_buf_init(&buf, 4096);
    sbx_json_out_init(&out, &buf);
    int rc = sbx__docker_put_mounts(&out, sbx_json_root(doc), "/workspace",
                                    "/srv/engine/docker.sock", &has_dir, &err);
    if (cases[i].why == NULL ? rc != SBX_OK
                             : rc != SBX_EINVAL || strstr(err.message, cases[i].why) == NULL)
      fail_msg("%s: %d %s", text, rc, err.message);
    if (rc == SBX_OK)
      assert_non_null(strstr(buf.ptr, "\"ReadOnly\":true"));
    assert_int_equal(has_dir, rc == SBX_OK && strcmp(cases[i].target, "/workspace") == 0);
    sbx_buf_deinit(&buf);
    sbx_json_free(doc, false);
  }
}

/* ---- whose containers these are ---- */

static bool is_stale(const char *labels) {
  sbx_json_doc *doc = NULL;
  assert_int_equal(sbx_json_parse(&doc, sbx_slice_str(labels), NULL), SBX_OK);
  bool stale = sbx__docker_is_stale(sbx_json_root(doc));
  sbx_json_free(doc, false);
  return stale;
}

/* The labels of a container that this process makes now, with `value` in place of that of `name`.
 */
static const char *labels_with(const char *name, const char *value) {
  static char text[1024];
  sbx_config config = {.lifetime_s = 3600};
  sbx_session session = {.config = &config, .tag = "0123"};
  sbx_json_doc *doc = NULL;
  sbx_json_out out;
  sbx_buf buf;
  sbx_slice key, said;
  size_t len = 1;
  sbx_buf_init(&buf, 1000);
  sbx_json_out_init(&out, &buf);
  sbx_json_begin_object(&out);
  sbx__docker_put_owner(&out, &session);
  sbx_json_end_object(&out);
  assert_int_equal(sbx_json_parse(&doc, sbx_buf_slice(&buf), NULL), SBX_OK);
  text[0] = '{';
  for (const sbx_json *v = sbx_json_next(sbx_json_root(doc), NULL, &key); v != NULL;
       v = sbx_json_next(sbx_json_root(doc), v, &key)) {
    assert_true(sbx_json_string(v, &said));
    if (name != NULL && sbx_slice_eq_str(key, name))
      said = sbx_slice_str(value);
    len += (size_t)snprintf(text + len, sizeof text - len, "%s\"%.*s\":\"%.*s\"",
                            len > 1 ? "," : "", (int)key.len, key.ptr, (int)said.len, said.ptr);
  }
  snprintf(text + len, sizeof text - len, "}");
  sbx_json_free(doc, false);
  sbx_buf_deinit(&buf);
  return text;
}

static void test_what_is_stale(void **state) {
  char gone[32];
  (void)state;
  assert_false(is_stale(labels_with(NULL, NULL)));
  assert_true(is_stale(labels_with("cloudsandbox.lease", "1000000")));
  assert_false(is_stale(labels_with("cloudsandbox.lease", "never")));
  /* The number is used again, or by nobody. */
  snprintf(gone, sizeof gone, "%ld 1", (long)getpid());
  assert_true(is_stale(labels_with("cloudsandbox.process", gone)));
  assert_true(is_stale(labels_with("cloudsandbox.process", "99999999 7")));
  assert_false(is_stale(labels_with("cloudsandbox.process", "")));
  assert_false(is_stale(labels_with("cloudsandbox.process", "-1 7")));
  /* Of another machine's processes nothing is known. */
  snprintf(gone, sizeof gone, "elsewhere");
  assert_false(is_stale("{\"cloudsandbox.tag\":\"a\",\"cloudsandbox.host\":\"elsewhere\","
                        "\"cloudsandbox.process\":\"99999999 7\"}"));
  /* And others' containers are not ours. */
  assert_false(is_stale("{\"cloudsandbox.lease\":\"1000000\"}"));
  assert_false(is_stale("{}"));
}

/* ---- conversations ---- */

#define JSON(status, body) "HTTP/1.1 " status "\r\nContent-Length: auto\r\n\r\n" body
#define PING "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nOstype: linux\r\nContent-Length: 2\r\n\r\nOK"
#define SWITCH "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
#define CREATED JSON("201 Created", "{\"Id\":\"c1\",\"Warnings\":null}")
#define EXEC_CREATED JSON("201 Created", "{\"Id\":\"e1\"}")
#define NO_CONTENT "HTTP/1.1 204 No Content\r\n\r\n"
#define NOT_FOUND(text) JSON("404 Not Found", text)
#define GONE NOT_FOUND("{\"message\":\"No such container: c1\"}")

typedef struct talk {
  uv_loop_t uv;
  sbx_loop *loop;
  canned engine;
  sbx_sandbox *sb;
  int done;
  sbx_err err;
  sbx_exec_result result;
  char out[64], errors[64];
  char progress[512];
  size_t ids;
  char id[32];
} talk;

static talk *talk_of(void **state) {
  return *state;
}

/* The token of the last command. */
static const char *last_token(const canned *server) {
  const char *token = NULL;
  for (const char *at = server->bodies.ptr;
       at != NULL && (at = strstr(at, "CLOUDSANDBOX_CALL=")) != NULL; at++) {
    if (at[18] != '$')
      token = at + 18;
  }
  assert_non_null(token);
  return token;
}

/* In what follows a switch '~' stands for the record separator and the token of the last command,
 * and '|' begins a frame: a digit for its stream, '!' when it says that more comes than does, and
 * its text. */
static void fill(canned *server, sbx_buf *reply) {
  sbx_buf made, text;
  if (!sbx_slice_starts_with(sbx_buf_slice(reply), sbx_slice_str("HTTP/1.1 101")))
    return;
  sbx_buf_init(&made, 8192);
  sbx_buf_init(&text, 8192);
  sbx_slice rest = sbx_buf_slice(reply);
  sbx_slice plain = sbx_slice_of(rest.ptr, sbx_slice_find(rest, '|'));
  sbx_buf_append_slice(&made, plain);
  rest = sbx_slice_skip(rest, plain.len);
  while (rest.len > 0) {
    char head[8] = {(char)(rest.ptr[1] - '0')};
    bool lies = rest.ptr[2] == '!';
    rest = sbx_slice_skip(rest, lies ? 3 : 2);
    sbx_slice part = sbx_slice_of(rest.ptr, sbx_slice_find(rest, '|'));
    rest = sbx_slice_skip(rest, part.len);
    sbx_buf_truncate(&text, 0);
    for (size_t i = 0; i < part.len; i++) {
      sbx_buf_append_char(&text, part.ptr[i] == '~' ? '\x1e' : part.ptr[i]);
      if (part.ptr[i] == '~')
        sbx_buf_append(&text, last_token(server), 32);
    }
    head[7] = (char)(text.len + (lies ? 9 : 0));
    sbx_buf_append(&made, head, 8);
    sbx_buf_append_slice(&made, sbx_buf_slice(&text));
  }
  sbx_buf_deinit(&text);
  sbx_buf_deinit(reply);
  *reply = made;
}

static int setup(void **state) {
  talk *k = calloc(1, sizeof *k);
  loop_open(&k->uv, &k->loop);
  canned_open(&k->engine, &k->uv);
  k->engine.fill = fill;
  canned_add(&k->engine, "GET /_ping", PING);
  canned_last(&k->engine)->stays = true;
  *state = k;
  return 0;
}

static int teardown(void **state) {
  talk *k = *state;
  sbx_sandbox_free(k->sb);
  uv_run(&k->uv, UV_RUN_NOWAIT);
  sbx_loop_close(k->loop, on_loop_closed, NULL);
  uv_run(&k->uv, UV_RUN_NOWAIT);
  canned_close(&k->engine);
  loop_end(&k->uv, NULL);
  free(k);
  return 0;
}

#define TALK(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void make(talk *k, const char *more) {
  char options[512];
  snprintf(options, sizeof options, "{\"host\":\"unix://%s\"%s}", k->engine.path, more);
  if (sbx_sandbox_new(&k->sb, k->loop, "docker", sbx_slice_str(options), &k->err) != SBX_OK)
    fail_msg("%s", k->err.message);
}

static void wait_done(talk *k) {
  while (k->done == 0)
    uv_run(&k->uv, UV_RUN_ONCE);
  k->done = 0;
}

static void on_done(void *arg, const sbx_err *err) {
  talk *k = arg;
  k->done++;
  k->err = err != NULL ? *err : (sbx_err){0};
}

static int start(talk *k) {
  assert_int_equal(sbx_sandbox_start(k->sb, on_done, k, NULL, NULL), SBX_OK);
  wait_done(k);
  return k->err.code;
}

static int finish(talk *k) {
  assert_int_equal(sbx_sandbox_close(k->sb, 0, on_done, k, NULL), SBX_OK);
  wait_done(k);
  return k->err.code;
}

static void copy_kept(char out[64], const sbx_kept *kept) {
  snprintf(out, 64, "%.*s", (int)kept->bytes.len, kept->bytes.len > 0 ? kept->bytes.ptr : "");
}

static void on_exec(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  talk *k = arg;
  on_done(k, err);
  k->result = result != NULL ? *result : (sbx_exec_result){0};
  if (result == NULL)
    return;
  copy_kept(k->out, &result->out);
  copy_kept(k->errors, &result->err);
}

static int run_spec(talk *k, const sbx_exec_spec *spec) {
  k->out[0] = k->errors[0] = '\0';
  assert_int_equal(sbx_sandbox_exec(k->sb, spec, NULL, on_exec, k, NULL, NULL), SBX_OK);
  wait_done(k);
  return k->err.code;
}

static int run(talk *k, const char *command) {
  const sbx_exec_spec spec = {
      .kind = SBX_EXEC_SHELL, .text = sbx_slice_str(command), .timeout_ms = 20000};
  return run_spec(k, &spec);
}

static void assert_says(const talk *k, const char *text) {
  if (strstr(k->err.message, text) == NULL)
    fail_msg("no \"%s\" in: %s", text, k->err.message);
}

static void assert_asked(const talk *k, const char *requests) {
  assert_string_equal(k->engine.log.ptr, requests);
}

/* Up to the start of a container. */
static void add_start(talk *k) {
  canned_add(&k->engine, "POST /v1.41/containers/create", CREATED);
  canned_add(&k->engine, "POST /v1.41/containers/c1/start", NO_CONTENT);
}

/* A command whose stream is this, behind the head. */
static void add_exec(talk *k, const char *stream) {
  canned_add(&k->engine, "POST /v1.41/containers/c1/exec", EXEC_CREATED);
  canned_add(&k->engine, "POST /v1.41/exec/e1/start", stream);
  canned_last(&k->engine)->hang_up = true;
}

static void add_close(talk *k) {
  canned_add(&k->engine, "DELETE /v1.41/containers/c1?force=1&v=1", NO_CONTENT);
}

/* Behind a switch: how a command ended. */
#define LINES(code) "|2~ " code "\n|1~ " code "\n"

static void test_a_command_at_every_cut(void **state) {
  talk *k = talk_of(state);
  for (size_t piece = 1; piece < 12; piece += piece < 4 ? 1 : 7) {
    k->engine.piece = piece;
    k->engine.count = 1;
    make(k, "");
    add_start(k);
    add_exec(k, SWITCH "|1out|2err" LINES("0"));
    add_close(k);
    assert_int_equal(run(k, "true"), SBX_OK);
    assert_int_equal(k->result.outcome, SBX_EXITED);
    assert_int_equal(k->result.exit_code, 0);
    assert_string_equal(k->out, "out");
    assert_string_equal(k->errors, "err");
    assert_int_equal(finish(k), SBX_OK);
    sbx_sandbox_free(k->sb);
    k->sb = NULL;
  }
}

static void test_the_image_is_pulled_when_it_is_missing(void **state) {
  talk *k = talk_of(state);
  make(k, ",\"image\":\"reg:5000/a/b:1\"");
  canned_add(&k->engine, "POST /v1.41/containers/create",
             NOT_FOUND("{\"message\":\"No such image: a/b:1\"}"));
  canned_add(&k->engine, "POST /v1.41/images/create?fromImage=reg%3A5000%2Fa%2Fb&tag=1",
             JSON("200 OK", "{\"status\":\"Pulling\"}"));
  add_start(k);
  assert_int_equal(start(k), SBX_OK);
  add_close(k);
  assert_int_equal(finish(k), SBX_OK);
}

static void on_progress(void *arg, sbx_slice json) {
  talk *k = arg;
  size_t len = strlen(k->progress);
  snprintf(k->progress + len, sizeof k->progress - len, "%.*s\n", (int)json.len, json.ptr);
}

static void test_a_pull_that_fails_within_its_success(void **state) {
  static const char stream[] =
      "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
      "{\"status\":\"Downloading\",\"progressDetail\":{\"current\":1,\"total\":9},\"id\":\"abc\"}"
      "\r\n"
      "{\"errorDetail\":{\"message\":\"manifest unknown\"},\"error\":\"manifest unknown\"}\r\n";
  talk *k = talk_of(state);
  k->engine.piece = 7;
  make(k, ",\"pull\":\"always\",\"image\":\"b@sha256:12\"");
  sbx_sandbox_on_progress(k->sb, on_progress, k);
  canned_add(&k->engine, "POST /v1.41/images/create?fromImage=b%40sha256%3A12", stream);
  canned_last(&k->engine)->hang_up = true;
  assert_int_equal(start(k), SBX_ENOTFOUND);
  assert_says(k, "manifest unknown");
  assert_says(k, "b@sha256:12");
  assert_string_equal(k->progress,
                      "{\"status\":\"Downloading\",\"id\":\"abc\",\"current\":1,\"total\":9}\n");
  assert_int_equal(finish(k), SBX_OK);
}

static void test_an_image_that_must_not_be_pulled(void **state) {
  talk *k = talk_of(state);
  make(k, ",\"pull\":\"never\"");
  canned_add(&k->engine, "POST /v1.41/containers/create",
             NOT_FOUND("{\"message\":\"No such image: a/b:1\"}"));
  assert_int_equal(start(k), SBX_ENOTFOUND);
  assert_says(k, "python:3.12-slim");
  assert_says(k, "`pull` is \"never\"");
  assert_int_equal(finish(k), SBX_OK);
  assert_asked(k, "GET /_ping HTTP/1.1\nPOST /v1.41/containers/create HTTP/1.1\n");
}

/* What it has made is found by its label, and nothing else is. */
static void test_a_create_whose_answer_is_lost(void **state) {
  static char found[512];
  talk *k = talk_of(state);
  make(k, "");
  canned_add(&k->engine, "POST /v1.41/containers/create", NULL);
  canned_add(&k->engine, "GET /v1.41/containers/json?all=1&filters=", found);
  add_close(k);
  canned_last(&k->engine)->request = "DELETE /v1.41/containers/c9?force=1&v=1 ";
  assert_int_equal(sbx_sandbox_start(k->sb, on_done, k, NULL, NULL), SBX_OK);
  while (k->engine.bodies.len < 200)
    uv_run(&k->uv, UV_RUN_ONCE);
  const char *tag = strstr(k->engine.bodies.ptr, "\"cloudsandbox.tag\":\"");
  assert_non_null(tag);
  snprintf(found, sizeof found, JSON("200 OK", "[{\"Id\":\"c9\",\"Labels\":{%.53s}}]"), tag);
  wait_done(k);
  assert_int_equal(k->err.code, SBX_ENET);
  assert_int_equal(finish(k), SBX_OK);
  assert_true(k->engine.answers[3].used);
}

static void test_a_removal_that_is_under_way(void **state) {
  talk *k = talk_of(state);
  make(k, "");
  add_start(k);
  assert_int_equal(start(k), SBX_OK);
  canned_add(
      &k->engine, "DELETE /v1.41/containers/c1?force=1&v=1",
      JSON("409 Conflict", "{\"message\":\"removal of container c1 is already in progress\"}"));
  canned_last(&k->engine)->reply =
      JSON("409 Conflict", "{\"message\":\"removal of container c1 is already in progress\"}");
  canned_add(&k->engine, "DELETE /v1.41/containers/c1?force=1&v=1", GONE);
  assert_int_equal(finish(k), SBX_OK);
}

static void open_for_exec(talk *k) {
  make(k, ",\"lifetimeSeconds\":7");
  add_start(k);
  assert_int_equal(start(k), SBX_OK);
}

static void test_a_container_that_is_gone(void **state) {
  talk *k = talk_of(state);
  open_for_exec(k);
  canned_add(&k->engine, "POST /v1.41/containers/c1/exec", GONE);
  assert_int_equal(run(k, "true"), SBX_ELOST);
  assert_false(k->err.may_have_run);
  assert_int_equal(finish(k), SBX_OK);
}

static void test_a_container_that_is_paused(void **state) {
  talk *k = talk_of(state);
  open_for_exec(k);
  canned_add(&k->engine, "POST /v1.41/containers/c1/exec",
             JSON("409 Conflict",
                  "{\"message\":\"Container c1 is paused, unpause the container first\"}"));
  canned_add(&k->engine, "GET /v1.41/containers/c1/json",
             JSON("200 OK", "{\"Id\":\"c1\",\"State\":{\"Status\":\"paused\"}}"));
  assert_int_equal(run(k, "true"), SBX_ECONFLICT);
  assert_says(k, "unpause it first");
  assert_false(k->err.may_have_run);
  add_close(k);
  assert_int_equal(finish(k), SBX_OK);
}

/* The program was killed itself: then the engine is asked, until it no longer says that it runs. */
static void test_an_end_that_only_the_engine_tells(void **state) {
  talk *k = talk_of(state);
  open_for_exec(k);
  add_exec(k, SWITCH "|1out");
  canned_add(&k->engine, "GET /v1.41/exec/e1/json",
             JSON("200 OK", "{\"Running\":true,\"ExitCode\":null}"));
  canned_last(&k->engine)->reply = JSON("200 OK", "{\"Running\":true,\"ExitCode\":null}");
  canned_add(&k->engine, "GET /v1.41/exec/e1/json",
             JSON("200 OK", "{\"Running\":true,\"ExitCode\":0}"));
  canned_add(&k->engine, "GET /v1.41/exec/e1/json",
             JSON("200 OK", "{\"Running\":false,\"ExitCode\":137}"));
  assert_int_equal(run(k, "true"), SBX_OK);
  assert_int_equal(k->result.outcome, SBX_SIGNALLED);
  assert_string_equal(k->result.signal_name, "SIGKILL");
  assert_true(k->result.output_lost); /* as far as can be known */
  assert_string_equal(k->out, "out");
  add_close(k);
  assert_int_equal(finish(k), SBX_OK);
}

static void test_an_end_that_is_no_end(void **state) {
  static const char *const streams[] = {
      SWITCH "|1!cut off",       /* inside a frame */
      SWITCH "no frames at all", /* out of step */
  };
  talk *k = talk_of(state);
  open_for_exec(k);
  for (size_t i = 0; i < COUNT_OF(streams); i++) {
    add_exec(k, streams[i]);
    /* It may run on: so it is looked for and ended. */
    canned_add(&k->engine, "POST /v1.41/containers/c1/exec",
               JSON("201 Created", "{\"Id\":\"e2\"}"));
    canned_add(&k->engine, "POST /v1.41/exec/e2/start", SWITCH);
    canned_last(&k->engine)->hang_up = true;
    canned_add(&k->engine, "GET /v1.41/exec/e2/json",
               JSON("200 OK", "{\"Running\":false,\"ExitCode\":0}"));
    canned_add(&k->engine, "GET /v1.41/containers/c1/json",
               JSON("200 OK", "{\"Id\":\"c1\",\"State\":{\"Status\":\"running\"}}"));
    assert_int_equal(run(k, "true"), SBX_EPROTO);
    assert_true(k->err.may_have_run);
    assert_says(k, "what it had started was ended");
  }
  add_close(k);
  assert_int_equal(finish(k), SBX_OK);
}

static void test_what_the_lines_tell(void **state) {
  talk *k = talk_of(state);
  open_for_exec(k);
  add_exec(k, SWITCH LINES("137 1"));
  assert_int_equal(run(k, "true"), SBX_OK);
  assert_true(k->result.oom_killed && k->result.exit_code == 137);
  /* Another one was killed by something else. */
  add_exec(k, SWITCH LINES("137 0"));
  assert_int_equal(run(k, "true"), SBX_OK);
  assert_true(!k->result.oom_killed && k->result.exit_code == 137);
  add_exec(k, SWITCH LINES("998"));
  assert_int_equal(run(k, "true"), SBX_EINVAL);
  assert_says(k, "working directory");
  assert_false(k->err.may_have_run);
  add_exec(k, SWITCH LINES("999"));
  assert_int_equal(run(k, "true"), SBX_EINVAL);
  assert_says(k, "no shell");
  add_exec(k, SWITCH LINES("997"));
  assert_int_equal(run(k, "true"), SBX_OK);
  assert_int_equal(k->result.outcome, SBX_TIMED_OUT);
  assert_int_equal(k->result.termination, SBX_TERM_CONFIRMED);
  add_exec(k, SWITCH LINES("996"));
  assert_int_equal(run(k, "true"), SBX_OK);
  assert_int_equal(k->result.termination, SBX_TERM_REQUESTED);
  add_close(k);
  assert_int_equal(finish(k), SBX_OK);
}

static void test_a_container_without_a_shell(void **state) {
  talk *k = talk_of(state);
  open_for_exec(k);
  add_exec(k, SWITCH "|1OCI: stat /bin/sh: no such file or directory\r\n");
  canned_add(&k->engine, "GET /v1.41/exec/e1/json",
             JSON("200 OK", "{\"Running\":false,\"ExitCode\":127}"));
  assert_int_equal(run(k, "true"), SBX_EUNSUPPORTED);
  assert_says(k, "python:3.12-slim");
  assert_says(k, "has no /bin/sh");
  assert_false(k->err.may_have_run);
  add_close(k);
  assert_int_equal(finish(k), SBX_OK);
}

static void test_engines_that_are_none(void **state) {
  talk *k = talk_of(state);
  make(k, "");
  k->engine.answers[0].reply =
      "HTTP/1.1 200 OK\r\nApi-Version: 1.40\r\nContent-Length: 2\r\n\r\nOK";
  assert_int_equal(start(k), SBX_EUNSUPPORTED);
  assert_says(k, "1.40");
  k->engine.answers[0].reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK";
  assert_int_equal(start(k), SBX_EPROTO);
  assert_says(k, "no container engine");
}

static void test_no_engine(void **state) {
  talk *k = talk_of(state);
  sbx_err err;
  static const char nowhere[] = "{\"host\":\"unix:///nonexistent/engine.sock\"}";
  assert_int_equal(sbx_sandbox_new(&k->sb, k->loop, "docker", sbx_slice_str(nowhere), &err),
                   SBX_OK);
  assert_int_equal(start(k), SBX_ENOTREADY);
  assert_says(k, "no socket at /nonexistent/engine.sock. Install Docker or Podman");
  sbx_sandbox_free(k->sb);
  /* What is left of one that ended: bound, and not listening. */
  uv_pipe_t stale;
  char options[256], path[128];
  snprintf(path, sizeof path, "%s.stale", k->engine.path);
  uv_pipe_init(&k->uv, &stale, 0);
  unlink(path);
  assert_int_equal(uv_pipe_bind(&stale, path), 0);
  snprintf(options, sizeof options, "{\"host\":\"unix://%s\",\"startTimeoutMs\":400}", path);
  assert_int_equal(sbx_sandbox_new(&k->sb, k->loop, "docker", sbx_slice_str(options), &err),
                   SBX_OK);
  assert_int_equal(start(k), SBX_ENET);
  assert_says(k, "nobody listens at the socket");
  uv_close((uv_handle_t *)&stale, NULL);
  uv_run(&k->uv, UV_RUN_NOWAIT);
}

static void test_limits_that_an_engine_only_pretends_to_keep(void **state) {
  talk *k = talk_of(state);
  make(k, ",\"pids\":64");
  canned_add(&k->engine, "GET /v1.41/info",
             JSON("200 OK", "{\"PidsLimit\":true,\"CgroupVersion\":\"1\","
                            "\"SecurityOptions\":[\"name=rootless\"]}"));
  assert_int_equal(start(k), SBX_EUNSUPPORTED);
  assert_says(k, "`pids`");
  assert_int_equal(finish(k), SBX_OK);
  assert_asked(k, "GET /_ping HTTP/1.1\nGET /v1.41/info HTTP/1.1\n");
}

static void on_swept(void *arg, const sbx_err *err, const char *const *ids, size_t count) {
  talk *k = arg;
  on_done(k, err);
  k->ids = count;
  if (count > 0)
    snprintf(k->id, sizeof k->id, "%s", ids[0]);
}

static void test_sweep(void **state) {
  static char listed[2048];
  talk *k = talk_of(state);
  char options[256], body[1900];
  snprintf(body, sizeof body,
           "[{\"Id\":\"mine\",\"Labels\":%s},{\"Id\":\"c1\",\"Labels\":"
           "{\"cloudsandbox.tag\":\"x\",\"cloudsandbox.lease\":\"1000\"}},"
           "{\"Id\":\"other\",\"Labels\":{\"a\":\"b\"}}]",
           labels_with(NULL, NULL));
  snprintf(listed, sizeof listed, JSON("200 OK", "%s"), body);
  canned_add(&k->engine, "GET /v1.41/containers/json?all=1&filters=", listed);
  add_close(k);
  k->engine.piece = 11;
  snprintf(options, sizeof options, "{\"host\":\"unix://%s\"}", k->engine.path);
  assert_int_equal(sbx_sweep(k->loop, "docker", sbx_slice_str(options), on_swept, k, &k->err),
                   SBX_OK);
  wait_done(k);
  assert_int_equal(k->err.code, SBX_OK);
  assert_int_equal(k->ids, 1);
  assert_string_equal(k->id, "c1");
  assert_int_equal(sbx_sweep(k->loop, "e2b", LIT("{}"), on_swept, k, &k->err), SBX_EUNSUPPORTED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_options),
      cmocka_unit_test(test_options_that_are_wrong),
      cmocka_unit_test(test_options_without_memory),
      cmocka_unit_test(test_mounts),
      cmocka_unit_test(test_what_is_stale),
      TALK(test_a_command_at_every_cut),
      TALK(test_the_image_is_pulled_when_it_is_missing),
      TALK(test_a_pull_that_fails_within_its_success),
      TALK(test_an_image_that_must_not_be_pulled),
      TALK(test_a_create_whose_answer_is_lost),
      TALK(test_a_removal_that_is_under_way),
      TALK(test_a_container_that_is_gone),
      TALK(test_a_container_that_is_paused),
      TALK(test_an_end_that_only_the_engine_tells),
      TALK(test_an_end_that_is_no_end),
      TALK(test_what_the_lines_tell),
      TALK(test_a_container_without_a_shell),
      TALK(test_engines_that_are_none),
      TALK(test_no_engine),
      TALK(test_limits_that_an_engine_only_pretends_to_keep),
      TALK(test_sweep),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
