/* code.c - code in the interpreter of templates that have one.
 *
 *   context, where it is not the default one --> the reply, line by line --> finish
 *                                                     \--> restart of the context --> finish
 *
 * The service runs code in a context, a kernel that keeps its state, and streams what comes of it.
 * It has one default context per language. A context of the user's is known to the user by its
 * name, and made at its first use; so is one for each other working directory, which only a new
 * context can have.
 *
 * The service keeps no limit: the clock here does. Code that has to be stopped is stopped by a
 * restart of its context; a mere end of the stream would let it go on, and everything after it
 * wait. A restart reaches what is in the kernel's process group, so the kernel is ended first with
 * all that it has started.
 *
 * Invariants: code has run to its end only when the reply has said so; the stream's end does not.
 * Of calls that need the same new context, one request makes it, and none of the calls owns that
 * request: each may be cancelled without the others. */
#include "providers/e2b/cell.h"
#include "providers/e2b/process.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/err.h"
#include "core/lines.h"
#include "core/url.h"

#include <string.h>

enum {
  MAX_REQUEST = 64 * 1024 * 1024,
  MAX_LINE = 16 * 1024 * 1024, /* as much as may be kept of output; one is held and parsed whole */
  MAX_PATH = 1024,
  MAX_BODY = 64 * 1024,
  MAX_ID = 256,
  RESTART_MS = 5000,
  /* For the connection's end after that of the code; less than the port's clock waits for us beyond
   * the limit, which the code may have kept by a hair. */
  AFTER_END_MS = 500,
};

/* Where the interpreter's templates keep the user's files, and where default contexts begin. */
#define HOME "/home/user/"

typedef struct code_op code_op;
typedef struct restart_op restart_op;

struct code_op {
  sbx_steps steps; /* it waits for the context, the reply, or the restart */
  sbx_exec_status *status;
  sbx_language language;
  sbx__e2b_context *waits_for;
  code_op *next;   /* that waits for the same */
  char *context;   /* id; NULL: the default one */
  sbx_buf request; /* JSON, but for its end */
  sbx__e2b_cell cell;
  sbx_lines lines;
  sbx_timer limit;
  sbx_timer drain;    /* after the end of the code */
  bool sent;          /* the code may run */
  restart_op *killer; /* it ends this op with itself */
  bool began;         /* the sandbox's life knows of it */
};

/* Ends the kernel of a context, and restarts it. */
struct restart_op {
  sbx_steps steps;
  code_op *code; /* that ends with it; NULL: none */
  const char *language;
  sbx_buf id;
  bool tree_gone; /* nothing is left of what its code had started */
};

struct sbx__e2b_context {
  sbx__e2b_context *next;
  sbx_session *session;
  sbx_language language;
  char *name;
  char *cwd;
  char *id;       /* NULL: it is being made */
  sbx_op *making; /* the operation that makes it */
  code_op *waiters;
};

static const char *language_name(sbx_language language) {
  return language == SBX_LANG_PYTHON ? "python" : "javascript";
}

static sbx__e2b_request to_interpreter(const char *method, const char *path) {
  return (sbx__e2b_request){.http = {.method = method}, .path = sbx_slice_str(path), .code = true};
}

/* ---- the list of contexts ------------------------------------------------------------------- */

static void free_context(sbx__e2b_context *c) {
  sbx_op_drop(&c->making, SBX_ECANCELED);
  sbx_free(c->name);
  sbx_free(c->cwd);
  sbx_free(c->id);
  sbx_free(c);
}

void sbx__e2b_contexts_free(sbx_session *session) {
  while (session->contexts != NULL) {
    sbx__e2b_context *c = session->contexts;
    session->contexts = c->next;
    free_context(c);
  }
}

static void remove_context(sbx__e2b_context *gone) {
  sbx__e2b_context **at = &gone->session->contexts;
  while (*at != gone)
    at = &(*at)->next;
  *at = gone->next;
  free_context(gone);
}

static sbx__e2b_context *find(const sbx_session *session, const sbx_exec_spec *spec) {
  sbx__e2b_context *c = session->contexts;
  while (c != NULL && (c->language != spec->language || !sbx_slice_eq_str(spec->context, c->name) ||
                       !sbx_slice_eq_str(spec->cwd, c->cwd)))
    c = c->next;
  return c;
}

static sbx__e2b_context *find_by_id(const sbx_session *session, sbx_slice id) {
  sbx__e2b_context *c = session->contexts;
  while (c != NULL && (c->id == NULL || !sbx_slice_eq_str(id, c->id)))
    c = c->next;
  return c;
}

static sbx__e2b_context *new_context(sbx_session *session, const sbx_exec_spec *spec) {
  sbx__e2b_context *c = sbx_calloc(1, sizeof *c);
  if (c == NULL)
    return NULL;
  c->session = session;
  c->language = spec->language;
  c->name = sbx_strndup(spec->context.ptr, spec->context.len);
  c->cwd = sbx_strndup(spec->cwd.ptr, spec->cwd.len);
  if (c->name == NULL || c->cwd == NULL) {
    free_context(c);
    return NULL;
  }
  c->next = session->contexts;
  session->contexts = c;
  return c;
}

/* ---- the end of code ------------------------------------------------------------------------ */

static void leave_waiters(code_op *x) {
  code_op **at = &x->waits_for->waiters;
  while (*at != x)
    at = &(*at)->next;
  *at = x->next;
  x->waits_for = NULL;
}

static void let_go(sbx_steps *steps) {
  code_op *x = (code_op *)(void *)steps;
  sbx_timer_stop(&x->limit);
  sbx_timer_stop(&x->drain);
  if (x->waits_for != NULL)
    leave_waiters(x);
  if (x->killer != NULL)
    x->killer->code = NULL;
  x->killer = NULL;
  if (x->began)
    sbx__e2b_life_leave(x->steps.session);
  x->began = false;
}

/* What has come is kept in any case. */
static void finish(code_op *x, const sbx_err *err) {
  sbx__e2b_cell_finish(&x->cell);
  sbx_steps_finish(&x->steps, err);
}

static void fail(code_op *x, int code, const char *text) {
  sbx_err err;
  sbx_err_set(&err, code, "%s", text);
  finish(x, &err);
}

static void release(sbx_steps *steps) {
  code_op *x = (code_op *)(void *)steps;
  sbx_lines_deinit(&x->lines);
  sbx__e2b_cell_deinit(&x->cell);
  sbx_buf_deinit(&x->request);
  sbx_free(x->context);
}

bool sbx__e2b_is_code(const sbx_op *op) {
  return ((const sbx_steps *)(const void *)op)->release == release;
}

static bool is_running(const code_op *x) {
  return !x->cell.ended && !x->steps.op.finished;
}

/* ---- restart of a context ------------------------------------------------------------------- */

static void let_restart_go(sbx_steps *steps) {
  restart_op *r = (restart_op *)(void *)steps;
  code_op *x = r->code;
  if (x == NULL)
    return;
  x->status->kill_is_partial = !r->tree_gone;
  finish(x, NULL);
}

static void release_restart(sbx_steps *steps) {
  sbx_buf_deinit(&((restart_op *)(void *)steps)->id);
}

static void on_restarted(sbx_steps *steps, sbx_http *http) {
  if (sbx__e2b_answered(steps, http, "restart the context"))
    sbx_steps_finish(steps, NULL);
}

static void on_kernel_ended(sbx_op *op, void *arg) {
  restart_op *r = arg;
  sbx_buf path;
  r->steps.request = NULL;
  r->tree_gone = op->err.code == SBX_OK;
  sbx_buf_init(&path, MAX_PATH);
  sbx_buf_append_str(&path, "/contexts");
  sbx_url_append_segment(&path, sbx_buf_slice(&r->id));
  sbx_buf_append_str(&path, "/restart");
  if (path.error == SBX_OK) {
    sbx__e2b_request request = to_interpreter("POST", path.ptr);
    request.http.repeatable = true;
    sbx__e2b_to_sandbox(&r->steps, &request, on_restarted);
  } else {
    sbx_steps_finish_code(&r->steps, path.error);
  }
  sbx_buf_deinit(&path);
}

static void end_kernel(restart_op *r, sbx_slice id) {
  sbx_buf_append_slice(&r->id, id);
  const char *const words[] = {r->id.ptr, NULL};
  sbx_steps_wait_for(&r->steps, r->id.error == SBX_OK
                                    ? sbx__e2b_killer(r->steps.session, SBX_RUNNER_KERNEL, words,
                                                      on_kernel_ended, r)
                                    : NULL);
}

/* The default context of a language is the first one that we did not make. */
static bool find_default(const restart_op *r, const sbx_json *list, sbx_slice *id) {
  sbx_slice language;
  for (const sbx_json *v = sbx_json_next(list, NULL, NULL); v != NULL;
       v = sbx_json_next(list, v, NULL)) {
    if (sbx_json_string(sbx_json_get(v, "language"), &language) &&
        sbx_slice_eq_str(language, r->language) && sbx_json_string(sbx_json_get(v, "id"), id) &&
        find_by_id(r->steps.session, *id) == NULL)
      return true;
  }
  return false;
}

static void on_contexts(sbx_steps *steps, sbx_http *http) {
  restart_op *r = (restart_op *)(void *)steps;
  sbx_json_doc *doc = NULL;
  sbx_slice id;
  sbx_err err;
  if (!sbx__e2b_answered(steps, http, "list the contexts"))
    return;
  if (sbx_json_parse(&doc, sbx_buf_slice(&http->body), &err) == SBX_OK &&
      find_default(r, sbx_json_root(doc), &id)) {
    end_kernel(r, id);
  } else {
    sbx_err_set(&err, SBX_EPROTO, "e2b: list the contexts: the default one is not among them");
    sbx_steps_finish(steps, &err);
  }
  sbx_json_free(doc, false);
}

/* Its state is lost. */
static restart_op *restart(const code_op *x, sbx_op_done done, void *arg) {
  sbx_session *session = x->steps.session;
  restart_op *r = sbx_steps_new(sizeof *r, session, session->config->loop, done, arg);
  sbx__e2b_request request = to_interpreter("GET", "/contexts");
  if (r == NULL)
    return NULL;
  r->steps.let_go = let_restart_go;
  r->steps.release = release_restart;
  sbx_buf_init(&r->id, MAX_ID);
  r->language = language_name(x->language);
  request.http.repeatable = true;
  if (!x->sent || !is_running(x))
    sbx_steps_finish(&r->steps, NULL); /* nothing runs that would have to be killed */
  else if (x->context != NULL)
    end_kernel(r, sbx_slice_str(x->context));
  else
    sbx__e2b_to_sandbox(&r->steps, &request, on_contexts);
  return r;
}

/* ---- limit and kill ------------------------------------------------------------------------- */

static void on_limit_restarted(sbx_op *op, void *arg) {
  code_op *x = arg;
  x->steps.request = NULL;
  x->status->tree_gone = op->err.code == SBX_OK && ((restart_op *)(void *)op)->tree_gone;
  finish(x, NULL);
}

static void on_limit(sbx_timer *timer) {
  code_op *x = (code_op *)(void *)((char *)timer - offsetof(code_op, limit));
  sbx_op_drop(&x->steps.request, SBX_ECANCELED);
  x->status->limit_kept = true;
  if (!x->sent) {
    x->status->tree_gone = true;
    finish(x, NULL);
    return;
  }
  restart_op *r = restart(x, on_limit_restarted, x);
  if (r != NULL)
    sbx_op_set_deadline(&r->steps.op, RESTART_MS);
  sbx_steps_wait_for(&x->steps, r != NULL ? &r->steps.op : NULL);
}

/* The stream ends now; the op ends with the restart, which says whether the code did. */
sbx_op *sbx__e2b_code_kill(sbx_session *session, sbx_op *op, sbx_op_done done, void *arg) {
  code_op *x = (code_op *)(void *)op;
  restart_op *r = restart(x, done, arg);
  (void)session;
  if (r == NULL || !is_running(x))
    return r != NULL ? &r->steps.op : NULL;
  sbx_op_drop(&x->steps.request, SBX_ECANCELED);
  sbx_timer_stop(&x->limit);
  x->status->outcome = SBX_SIGNALLED;
  x->status->signal_number = 9;
  x->status->signal_name = "SIGKILL";
  if (r->steps.op.finished) {
    finish(x, NULL);
  } else {
    r->code = x;
    x->killer = r;
  }
  return &r->steps.op;
}

/* ---- the reply ------------------------------------------------------------------------------ */

/* Nothing of interest follows the line of the end, and the limit is of the code only. */
static int on_line(void *arg, sbx_slice line, sbx_err *err) {
  code_op *x = arg;
  if (x->cell.ended)
    return SBX_OK;
  int rc = sbx__e2b_cell_line(&x->cell, line, err);
  if (x->cell.ended) {
    sbx_timer_stop(&x->limit);
    sbx_timer_start(&x->drain, AFTER_END_MS);
  }
  return rc;
}

/* Inside libcurl: what goes on from here to the user waits for the ready list there. */
static int on_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  code_op *x = arg;
  int rc = sbx_lines_feed(&x->lines, bytes, err);
  if (rc == SBX_ETOOBIG)
    sbx_err_append(err, "; have the code write large results to a file, and read that");
  return rc;
}

static void take_status(code_op *x, const sbx_http *http) {
  sbx_session *session = x->steps.session;
  sbx__e2b_context *c = x->context != NULL ? find_by_id(session, sbx_slice_str(x->context)) : NULL;
  sbx_err err;
  sbx__e2b_check(&err, session, NULL, http, "code");
  x->status->started = http->status >= 500 && !err.no_effect;
  if (http->status == 404 && c != NULL)
    remove_context(c); /* the service does not know it any more: the next use makes a new one */
  if (http->status == 502 && sbx__e2b_read_502(sbx_buf_slice(&http->body)) == SBX__E2B_NO_PORT)
    sbx_err_append(&err, "; if the template has no interpreter, say interpreter: false");
  finish(x, &err);
}

static void finish_ended(code_op *x) {
  x->status->started = true;
  x->status->exit_code = x->cell.failed ? 1 : 0;
  if (x->cell.kernel_lost)
    fail(x, SBX_EPROVIDER, "e2b: code: the interpreter lost the connection to its kernel");
  else
    finish(x, NULL);
}

static void on_drain(sbx_timer *timer) {
  code_op *x = (code_op *)(void *)((char *)timer - offsetof(code_op, drain));
  sbx_op_drop(&x->steps.request, SBX_ECANCELED);
  finish_ended(x);
}

static void on_reply_end(sbx_steps *steps, sbx_http *http) {
  code_op *x = (code_op *)(void *)steps;
  bool cut = http->op.err.code != SBX_OK;
  x->status->started = !cut || http->sent_maybe;
  if (x->cell.ended)
    finish_ended(x);
  else if (cut)
    finish(x, &http->op.err);
  else if (http->status < 200 || http->status >= 300)
    take_status(x, http);
  else
    fail(x, SBX_EPROTO, "e2b: code: the reply broke off: its end is missing");
}

/* ---- the request ---------------------------------------------------------------------------- */

/* The service pastes values into source text between quotes. */
static int check_env(const sbx_exec_spec *spec, sbx_err *err) {
  for (size_t i = 0; i < spec->env_count; i++) {
    sbx_slice value = spec->env[i].value;
    size_t at = 0;
    while (at < value.len && strchr("'\\\r\n", value.ptr[at]) == NULL)
      at++;
    if (at == value.len)
      continue;
    sbx_err_set(err, SBX_EINVAL, "the interpreter cannot take the value of the variable ");
    sbx_err_append_remote(err, spec->env[i].name);
    sbx_err_append(err, ": it has a ', a backslash or a line end; put it into a file, or set it in "
                        "the code");
    return SBX_EINVAL;
  }
  return SBX_OK;
}

static int check(const sbx_exec_spec *spec, sbx_err *err) {
  bool ok =
      sbx_utf8_valid(spec->text) && sbx_utf8_valid(spec->cwd) && sbx_utf8_valid(spec->context);
  for (size_t i = 0; ok && i < spec->env_count; i++)
    ok = sbx_utf8_valid(spec->env[i].value);
  if (!ok)
    return sbx_err_set(err, SBX_EINVAL, "code, its directory and its variables must be UTF-8");
  if (spec->stdin_bytes.len > 0)
    return sbx_err_set(err, SBX_EUNSUPPORTED,
                       "code in the interpreter has no stdin; write a file and read that");
  return check_env(spec, err);
}

static int begin_request(sbx_buf *request, const sbx_exec_spec *spec, sbx_err *err) {
  sbx_json_out out;
  sbx_json_out_init(&out, request);
  sbx_json_begin_object(&out);
  sbx_json_put_text(&out, "code", spec->text);
  if (spec->env_count > 0) {
    sbx_json_put_name(&out, sbx_slice_str("env_vars"));
    sbx_json_begin_object(&out);
    for (size_t i = 0; i < spec->env_count; i++) {
      sbx_json_put_name(&out, spec->env[i].name);
      sbx_json_put_string(&out, spec->env[i].value);
    }
    sbx_json_end_object(&out);
  }
  if (request->error == SBX_OK)
    return SBX_OK;
  return sbx_err_set(err, request->error,
                     request->error == SBX_ETOOBIG
                         ? "the code is too large; write it to a file and run that"
                         : NULL);
}

/* The service takes one of the two. */
static void send_code(code_op *x) {
  sbx_json_out out = {.buf = &x->request, .need_comma = true};
  const char *value = x->context != NULL ? x->context : language_name(x->language);
  sbx_json_put_text(&out, x->context != NULL ? "context_id" : "language", sbx_slice_str(value));
  sbx_json_end_object(&out);
  sbx__e2b_request request = to_interpreter("POST", "/execute");
  request.http.take_body = &x->request;
  request.http.timeout_ms = SBX_NO_TIMEOUT;
  request.http.on_bytes = on_bytes;
  request.http.consumer = x;
  x->sent = true;
  sbx__e2b_to_sandbox(&x->steps, &request, on_reply_end);
}

/* ---- a new context -------------------------------------------------------------------------- */

/* Each gets its own copy: the context may be forgotten before the code has ended. */
static void go_on(code_op *x, const sbx__e2b_context *c) {
  x->context = sbx_strndup(c->id, strlen(c->id));
  if (x->context != NULL)
    send_code(x);
  else
    sbx_steps_finish_code(&x->steps, SBX_ENOMEM);
}

static void on_made(sbx_op *op, void *arg) {
  sbx__e2b_context *c = arg;
  c->making = NULL;
  while (c->waiters != NULL) {
    code_op *x = c->waiters;
    leave_waiters(x);
    if (op->err.code == SBX_OK)
      go_on(x, c);
    else
      finish(x, &op->err);
  }
  if (op->err.code != SBX_OK)
    remove_context(c);
}

typedef struct make_op {
  sbx_steps steps;
  sbx__e2b_context *context;
} make_op;

static void on_make_reply(sbx_steps *steps, sbx_http *reply) {
  sbx__e2b_context *c = ((make_op *)(void *)steps)->context;
  sbx_json_doc *doc = NULL;
  sbx_slice id = {NULL, 0};
  sbx_err err;
  if (!sbx__e2b_answered(steps, reply, "new context"))
    return;
  int rc = sbx_json_parse(&doc, sbx_buf_slice(&reply->body), &err);
  if (rc == SBX_OK)
    sbx_json_string(sbx_json_get(sbx_json_root(doc), "id"), &id);
  if (rc == SBX_OK && (id.len == 0 || id.len > MAX_ID || sbx_slice_has_nul(id)))
    rc = sbx_err_set(&err, SBX_EPROTO, "e2b: new context: unexpected answer: it has no id");
  if (rc == SBX_OK && (c->id = sbx_strndup(id.ptr, id.len)) == NULL)
    rc = sbx_err_set(&err, SBX_ENOMEM, NULL);
  sbx_json_free(doc, false);
  sbx_steps_finish(steps, rc == SBX_OK ? NULL : &err);
}

static void put_cwd(sbx_json_out *out, sbx_slice cwd) {
  bool is_home = sbx_slice_eq_str(cwd, "~") || sbx_slice_starts_with(cwd, sbx_slice_str("~/"));
  sbx_buf path;
  sbx_buf_init(&path, MAX_BODY);
  if (is_home)
    cwd = sbx_slice_skip(cwd, 2);
  if (cwd.len == 0 || cwd.ptr[0] != '/')
    sbx_buf_append_str(&path, HOME);
  sbx_buf_append_slice(&path, cwd);
  if (path.error != SBX_OK)
    out->buf->error = path.error;
  sbx_json_put_text(out, "cwd", sbx_buf_slice(&path));
  sbx_buf_deinit(&path);
}

static void send_make(make_op *m) {
  const sbx__e2b_context *c = m->context;
  sbx_buf body;
  sbx_json_out out = {.buf = &body};
  sbx_buf_init(&body, MAX_BODY);
  sbx_json_begin_object(&out);
  sbx_json_put_text(&out, "language", sbx_slice_str(language_name(c->language)));
  if (c->cwd[0] != '\0')
    put_cwd(&out, sbx_slice_str(c->cwd));
  sbx_json_end_object(&out);
  sbx__e2b_request request = to_interpreter("POST", "/contexts");
  request.http.take_body = &body;
  sbx__e2b_to_sandbox(&m->steps, &request, on_make_reply);
}

static void refuse_cwd(make_op *m, const char *why) {
  sbx_err err;
  sbx_err_set(&err, SBX_EINVAL, "e2b: code: the working directory ");
  sbx_err_append_remote(&err, sbx_slice_str(m->context->cwd));
  sbx_err_append(&err, " %s" SBX__CWD_ADVICE, why);
  sbx_steps_finish(&m->steps, &err);
}

static void on_cwd(sbx_steps *steps, sbx_http *reply) {
  make_op *m = (make_op *)(void *)steps;
  sbx_json_doc *doc = NULL;
  sbx_slice type = {NULL, 0};
  sbx_err err;
  bool missing = reply->status == 404 || reply->status == 400 || reply->status == 500;
  int rc = sbx__e2b_check(&err, steps->session, NULL, reply, "look at the working directory");
  if (rc == SBX_OK && sbx_json_parse(&doc, sbx_buf_slice(&reply->body), NULL) == SBX_OK)
    sbx_json_string(sbx_json_get(sbx_json_get(sbx_json_root(doc), "entry"), "type"), &type);
  bool is_directory = sbx_slice_eq_str(type, "FILE_TYPE_DIRECTORY");
  sbx_json_free(doc, false);
  if (is_directory)
    send_make(m);
  else if (rc == SBX_OK)
    refuse_cwd(m, "is no directory");
  else if (reply->op.err.code == SBX_OK && missing)
    refuse_cwd(m, "is not there");
  else
    sbx_steps_finish(steps, &err);
}

/* The interpreter takes a directory that is none for granted, and runs the code at home. Without
 * memory for it nothing is made. */
static void make(sbx__e2b_context *c) {
  make_op *m = sbx_steps_new(sizeof *m, c->session, c->session->config->loop, on_made, c);
  if (m == NULL)
    return;
  c->making = &m->steps.op;
  m->context = c;
  if (c->cwd[0] == '\0')
    send_make(m);
  else if (strchr(c->cwd, '\'') != NULL)
    refuse_cwd(m, "has a quote in its name, with which the interpreter does not find it");
  else
    sbx__e2b_call_path(&m->steps, "/filesystem.Filesystem/Stat", sbx_slice_str(c->cwd), on_cwd);
}

static void go_on_in_context(code_op *x, const sbx_exec_spec *spec) {
  sbx__e2b_context *c = find(x->steps.session, spec);
  if (c == NULL && (c = new_context(x->steps.session, spec)) != NULL)
    make(c);
  if (c != NULL && c->id != NULL) {
    go_on(x, c);
  } else if (c != NULL && c->making != NULL) {
    x->waits_for = c;
    x->next = c->waiters;
    c->waiters = x;
  } else {
    if (c != NULL)
      remove_context(c);
    sbx_steps_finish_code(&x->steps, SBX_ENOMEM);
  }
}

/* ---- start ---------------------------------------------------------------------------------- */

static void begin(code_op *x, const sbx_exec_spec *spec) {
  sbx__e2b_life_enter(x->steps.session, spec->timeout_ms);
  x->began = true;
  if (spec->timeout_ms != SBX_NO_TIMEOUT)
    sbx_timer_start(&x->limit, spec->timeout_ms);
  if (spec->context.len > 0 || spec->cwd.len > 0)
    go_on_in_context(x, spec);
  else
    send_code(x);
}

sbx_op *sbx__e2b_code(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                      sbx_exec_status *status, sbx_op_done done, void *arg) {
  sbx_err err;
  code_op *x = sbx_steps_new(sizeof *x, session, session->config->loop, done, arg);
  if (x == NULL)
    return NULL;
  x->steps.let_go = let_go;
  x->steps.release = release;
  x->status = status;
  x->language = spec->language;
  sbx_buf_init(&x->request, MAX_REQUEST);
  sbx__e2b_cell_init(&x->cell, out);
  sbx_lines_init(&x->lines, MAX_LINE, on_line, x);
  sbx_timer_init(&x->limit, session->config->loop, on_limit);
  sbx_timer_init(&x->drain, session->config->loop, on_drain);
  int rc = check(spec, &err);
  if (rc == SBX_OK)
    rc = begin_request(&x->request, spec, &err);
  if (rc == SBX_OK)
    begin(x, spec);
  else
    sbx_steps_finish(&x->steps, &err);
  return &x->steps.op;
}
