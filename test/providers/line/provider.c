/* provider.c - "line": sandboxes of a service whose only verb is "run this line with sh, and give
 * me what it prints". It exists in the tests alone, and shows what the next provider costs:
 * commands, their kill, files and lists all come from the runner.
 *
 *   PUT /{id}       makes a sandbox with the body's variables; the answer is its directory
 *   GET /{id}       200 or 404
 *   POST /{id}      runs the body as a line; the answer is what it prints
 *   DELETE /{id}
 *
 * The id is ours, so that a create which is not answered can be deleted like any other. */
#include "core/alloc.h"
#include "core/err.h"
#include "core/rand.h"
#include "providers/remote/exchange.h"
#include "providers/remote/options.h"
#include "providers/remote/probe.h"
#include "providers/remote/runner/runner.h"

#include <string.h>

enum { ID_LEN = 32, MAX_URL = 4096, MAX_LINE = 100 * 1024 };

struct sbx_config {
  sbx_loop *loop;
  sbx_http_client *http;
  sbx_headers headers;
  char *url;
  char *env; /* JSON of the variables that every command has */
};

struct sbx_session {
  sbx_config *config;
  char id[ID_LEN + 1]; /* empty: nothing was asked for */
  char *dir;           /* NULL: it is not open */
  sbx_runner runner;
};

static const sbx_remote_service service_of_lines = {
    .provider = "line",
    .meanings = (const sbx_remote_meaning[]){{0}},
};

/* ---- options -------------------------------------------------------------------------------- */

static const char *const options_of_lines[] = {"url", "token", "env", "proxy", "ca", NULL};

static void config_free(sbx_config *config) {
  sbx_http_client_free(config->http);
  sbx_headers_deinit(&config->headers);
  sbx_free(config->url);
  sbx_free_secret(config->env);
  sbx_free(config);
}

static int read_env(sbx_config *config, const sbx_json *options, sbx_err *err) {
  const sbx_json *env = NULL;
  sbx_buf text;
  size_t len;
  int rc = sbx_remote_map(&env, options, "env", err);
  sbx_buf_init(&text, (size_t)1 << 20);
  sbx_json_out json;
  sbx_json_out_init(&json, &text);
  sbx_remote_begin_map(&json, env);
  sbx_json_end_object(&json);
  if (rc == SBX_OK && text.error != SBX_OK)
    rc = sbx_err_set(err, text.error, NULL);
  config->env = sbx_buf_take(&text, &len);
  return rc;
}

static int configure(sbx_config *config, sbx_loop *loop, const sbx_json *options, sbx_err *err) {
  char *token = NULL;
  config->loop = loop;
  sbx_headers_init(&config->headers, MAX_URL);
  sbx_remote_url(&config->url, options, "url", err);
  sbx_remote_text(&token, options, "token", err);
  if (err->code == SBX_OK && (config->url == NULL || token == NULL))
    sbx_err_set(err, SBX_EINVAL, "url and token must be given");
  if (err->code == SBX_OK)
    sbx_headers_add(&config->headers, sbx_slice_str("authorization"), sbx_slice_str(token), err);
  if (err->code == SBX_OK)
    read_env(config, options, err);
  sbx_free_secret(token);
  return sbx_remote_client(&config->http, loop, options, SBX_HTTP_1_1, err);
}

static const char *service(const sbx_config *config) {
  return config->url;
}

/* ---- session -------------------------------------------------------------------------------- */

static sbx_session *session_new(sbx_config *config) {
  sbx_session *session = sbx_calloc(1, sizeof *session);
  if (session != NULL)
    session->config = config;
  return session;
}

static void session_free(sbx_session *session) {
  sbx_free(session->dir);
  sbx_free(session);
}

static const char *session_id(const sbx_session *session) {
  return session->dir != NULL ? session->id : NULL;
}

static bool session_owned(const sbx_session *session) {
  (void)session;
  return true;
}

static void send_to(sbx_steps *steps, const sbx_http_request *request, sbx_steps_reply on_reply) {
  const sbx_session *session = steps->session;
  sbx_buf url;
  sbx_http_request whole = *request;
  whole.headers = &session->config->headers;
  sbx_buf_init(&url, MAX_URL);
  sbx_buf_append_str(&url, session->config->url);
  sbx_buf_append_char(&url, '/');
  sbx_buf_append_str(&url, session->id);
  sbx_remote_exchange_send(steps, session->config->http, &url, &whole, NULL, on_reply);
}

static void ask(sbx_steps *steps, const char *method, sbx_steps_reply on_reply) {
  send_to(steps,
          &(sbx_http_request){.method = method, .repeatable = true, .timeout_ms = SBX_NO_TIMEOUT},
          on_reply);
}

static void on_made(sbx_steps *steps, sbx_http *reply) {
  sbx_session *session = steps->session;
  sbx_err err;
  int rc = sbx_remote_exchange_check(&err, &service_of_lines, reply, "make a sandbox");
  if (rc == SBX_OK) {
    session->dir = sbx_strndup(reply->body.ptr, reply->body.len);
    rc = session->dir != NULL ? SBX_OK : sbx_err_set(&err, SBX_ENOMEM, NULL);
  }
  sbx_steps_finish(steps, rc == SBX_OK ? NULL : &err);
}

static sbx_op *open_session(sbx_session *session, sbx_op_done done, void *arg) {
  sbx_err err;
  sbx_steps *steps = sbx_steps_new(sizeof *steps, session, session->config->loop, done, arg);
  if (steps == NULL)
    return NULL;
  if (session->id[0] == '\0' && sbx_random_hex(session->id, ID_LEN, &err) != SBX_OK)
    sbx_steps_finish(steps, &err);
  else
    send_to(steps,
            &(sbx_http_request){.method = "PUT",
                                .body = sbx_slice_str(session->config->env),
                                .repeatable = true,
                                .timeout_ms = SBX_NO_TIMEOUT},
            on_made);
  return &steps->op;
}

static void on_deleted(sbx_steps *steps, sbx_http *reply) {
  sbx_err err;
  int rc = sbx_remote_exchange_check(&err, &service_of_lines, reply, "delete the sandbox");
  sbx_steps_finish(steps, rc == SBX_OK || rc == SBX_ENOTFOUND ? NULL : &err);
}

static sbx_op *close_session(sbx_session *session, sbx_op_done done, void *arg) {
  sbx_steps *steps = sbx_steps_new(sizeof *steps, session, session->config->loop, done, arg);
  if (steps == NULL)
    return NULL;
  if (session->id[0] == '\0')
    sbx_steps_finish(steps, NULL);
  else
    ask(steps, "DELETE", on_deleted);
  return &steps->op;
}

static void on_probed(sbx_steps *steps, sbx_http *reply) {
  sbx_err err;
  int rc = sbx_remote_exchange_check(&err, &service_of_lines, reply, "look at the sandbox");
  sbx_remote_probe_tell(steps, rc == SBX_OK          ? SBX_ALIVE
                               : rc == SBX_ENOTFOUND ? SBX_GONE
                                                     : SBX_LIVENESS_UNKNOWN);
  sbx_steps_finish(steps, NULL);
}

static sbx_op *probe_session(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg) {
  sbx_steps *probe = sbx_remote_probe_new(session, session->config->loop, out, done, arg);
  if (probe == NULL)
    return NULL;
  ask(probe, "GET", on_probed);
  return &probe->op;
}

/* ---- the wire ------------------------------------------------------------------------------- */

static void on_printed(sbx_steps *steps, sbx_http *reply) {
  sbx_runner_op *op = (sbx_runner_op *)(void *)steps;
  sbx_err err = {0};
  bool arrived = reply->op.err.code == SBX_OK;
  int rc = sbx_remote_exchange_check(&err, &service_of_lines, reply, op->verb);
  sbx_runner_answer answer = {
      .err = rc == SBX_OK ? NULL : &err,
      .printed = sbx_buf_slice(&reply->body),
      .started = arrived ? rc == SBX_OK || !err.no_effect : reply->sent_maybe,
      .broken = arrived ? reply->status >= 500 : reply->op.err.code == SBX_ENET,
  };
  if (rc == SBX_ENOTFOUND)
    err.code = SBX_ELOST; /* there is no other thing that could be missing */
  sbx_runner_answered(op, &answer);
}

static void send_line(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how) {
  send_to(&op->steps,
          &(sbx_http_request){.method = "POST",
                              .take_body = body,
                              .repeatable = !how->once,
                              .timeout_ms = how->timeout_ms,
                              .max_bytes = how->max_bytes},
          on_printed);
}

static const sbx_runner_wire wire = {.provider = "line", .send = send_line};

static sbx_runner *runner_of(sbx_session *session) {
  session->runner.wire = &wire;
  session->runner.loop = session->config->loop;
  session->runner.env = true;
  session->runner.max_line = MAX_LINE;
  return &session->runner;
}

/* ---- verbs ---------------------------------------------------------------------------------- */

/* Absolute, or "~" and what is below it. */
static int append_absolute(sbx_buf *out, const sbx_session *session, sbx_slice path) {
  bool home = path.len > 0 && path.ptr[0] == '~' && (path.len == 1 || path.ptr[1] == '/');
  if (!home && (path.len == 0 || path.ptr[0] != '/')) {
    sbx_buf_append_str(out, session->dir);
    sbx_buf_append_str(out, path.len > 0 ? "/" : "");
  }
  return sbx_buf_append_slice(out, path);
}

static sbx_slice absolute(sbx_buf *out, const sbx_session *session, sbx_slice path) {
  sbx_buf_init(out, (size_t)64 << 10);
  append_absolute(out, session, path);
  return sbx_buf_slice(out);
}

static sbx_op *exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                    sbx_exec_status *status, sbx_op_done done, void *arg) {
  sbx_buf dir;
  sbx_slice where = absolute(&dir, session, spec->cwd);
  sbx_op *op = sbx_runner_exec(runner_of(session), session, spec, where, out, status, done, arg);
  sbx_buf_deinit(&dir);
  return op;
}

static sbx_op *end(sbx_session *session, sbx_op *running, sbx_op_done done, void *arg) {
  return sbx_runner_kill(runner_of(session), session, running, done, arg);
}

static sbx_op *put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                   void *arg) {
  sbx_buf whole;
  sbx_slice where = absolute(&whole, session, path);
  sbx_op *op = sbx_runner_put(runner_of(session), session, where, bytes, done, arg);
  sbx_buf_deinit(&whole);
  return op;
}

static sbx_op *get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                   void *arg) {
  sbx_buf whole;
  sbx_slice where = absolute(&whole, session, path);
  sbx_op *op = sbx_runner_get(runner_of(session), session, where, out, done, arg);
  sbx_buf_deinit(&whole);
  return op;
}

static sbx_op *list(sbx_session *session, size_t max_entries, sbx_listing *out, sbx_op_done done,
                    void *arg) {
  return sbx_runner_list(runner_of(session), session, sbx_slice_str(session->dir), max_entries, out,
                         done, arg);
}

static sbx_op *at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                       sbx_op_done done, void *arg) {
  return sbx_runner_at_path(runner_of(session), session, request, append_absolute, out, done, arg);
}

extern const sbx_provider sbx_line_provider;
const sbx_provider sbx_line_provider = {
    .id = "line",
    .caps = SBX_CAP_SEPARATE_STREAMS | SBX_CAP_TRUE_ORDER | SBX_CAP_STDIN | SBX_CAP_CWD |
            SBX_CAP_KILL | SBX_CAP_LIST | SBX_CAP_PATHS | SBX_CAP_PARTS,
    .limit_margin_ms = 2500,
    .kill_budget_ms = 5000,
    .options = options_of_lines,
    .config_size = sizeof(sbx_config),
    .configure = configure,
    .config_free = config_free,
    .service = service,
    .session_new = session_new,
    .session_free = session_free,
    .session_id = session_id,
    .session_owned = session_owned,
    .open = open_session,
    .close = close_session,
    .probe = probe_session,
    .exec = exec,
    .kill = end,
    .put = put,
    .get = get,
    .list = list,
    .at_path = at_path,
};
