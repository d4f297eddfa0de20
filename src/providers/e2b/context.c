/* context.c - the interpreter's contexts: each is a kernel that keeps its state.
 *
 * The service has one default context per language. A context of the user's is known to the user by
 * its name, and made at its first use; so is one for each other working directory, which only a new
 * context can have.
 *
 * Invariant: of calls that need the same new context, one request makes it, and none of the calls
 * owns that request: each may be cancelled without the others. */
#include "providers/e2b/context.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/url.h"
#include "providers/e2b/wire.h"

#include <string.h>

enum { MAX_PATH = 1024, MAX_BODY = 64 * 1024, MAX_ID = 256, CREATE_MS = 60 * 1000 };

/* Where the interpreter's templates keep the user's files, and where default contexts begin. */
#define HOME "/home/user/"

typedef struct wait_op {
  sbx_steps steps;
  char **id;
  struct wait_op *next;
} wait_op;

struct sbx__e2b_context {
  sbx__e2b_context *next;
  sbx_session *session;
  sbx_language language;
  char *name;
  char *cwd;
  char *id;       /* NULL: it is being made */
  sbx_op *making; /* the operation that makes it */
  wait_op *waiters;
};

const char *sbx__e2b_language(sbx_language language) {
  return language == SBX_LANG_PYTHON ? "python" : "javascript";
}

bool sbx__e2b_needs_context(const sbx_exec_spec *spec) {
  return spec->context.len > 0 || spec->cwd.len > 0;
}

/* ---- the list ------------------------------------------------------------------------------- */

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

void sbx__e2b_context_forget(sbx_session *session, const char *id) {
  for (sbx__e2b_context *c = session->contexts; c != NULL; c = c->next) {
    if (c->id == NULL || strcmp(c->id, id) != 0)
      continue;
    remove_context(c);
    return;
  }
}

/* ---- make ----------------------------------------------------------------------------------- */

/* The waiter gets its own copy: the context may be forgotten before the waiter has used it. */
static void finish_wait(wait_op *w, const sbx__e2b_context *c) {
  sbx_err err;
  *w->id = sbx_strndup(c->id, strlen(c->id));
  if (*w->id == NULL)
    sbx_err_set(&err, SBX_ENOMEM, NULL);
  sbx_steps_finish(&w->steps, *w->id == NULL ? &err : NULL);
}

/* `err` NULL: it has its id now. */
static void release_waiters(sbx__e2b_context *c, const sbx_err *err) {
  while (c->waiters != NULL) {
    wait_op *w = c->waiters;
    c->waiters = w->next;
    if (err == NULL)
      finish_wait(w, c);
    else
      sbx_steps_finish(&w->steps, err);
  }
}

static int take_id(sbx__e2b_context *c, sbx_slice body, sbx_err *err) {
  sbx_json_doc *doc = NULL;
  sbx_slice id = {NULL, 0};
  int rc = sbx_json_parse(&doc, body, err);
  if (rc == SBX_OK)
    sbx_json_string(sbx_json_get(sbx_json_root(doc), "id"), &id);
  if (rc == SBX_OK && (id.len == 0 || id.len > MAX_ID || sbx_slice_has_nul(id)))
    rc = sbx_err_set(err, SBX_EPROTO, "e2b: new context: unexpected answer: it has no id");
  if (rc == SBX_OK && (c->id = sbx_strndup(id.ptr, id.len)) == NULL)
    rc = sbx_err_set(err, SBX_ENOMEM, NULL);
  sbx_json_free(doc, false);
  return rc;
}

typedef struct make_op {
  sbx_steps steps;
  sbx__e2b_context *context;
} make_op;

static void on_make_reply(sbx_steps *steps, sbx_http *reply) {
  make_op *m = (make_op *)(void *)steps;
  sbx_err err;
  if (!sbx__e2b_answered(steps, reply, "new context"))
    return;
  int rc = take_id(m->context, sbx_buf_slice(&reply->body), &err);
  sbx_steps_finish(steps, rc == SBX_OK ? NULL : &err);
}

static void on_made(sbx_op *op, void *arg) {
  sbx__e2b_context *c = arg;
  bool made = op->err.code == SBX_OK;
  c->making = NULL;
  release_waiters(c, made ? NULL : &op->err);
  if (!made)
    remove_context(c);
}

static void put_cwd(sbx_json_out *out, const sbx__e2b_context *c) {
  sbx_slice cwd = sbx_slice_str(c->cwd);
  sbx_buf path;
  if (cwd.len == 0)
    return;
  sbx_buf_init(&path, MAX_BODY);
  if (sbx_slice_starts_with(cwd, sbx_slice_str("~/")))
    cwd = sbx_slice_skip(cwd, 2);
  else if (sbx_slice_eq_str(cwd, "~"))
    cwd = sbx_slice_skip(cwd, 1);
  if (cwd.len == 0 || cwd.ptr[0] != '/')
    sbx_buf_append_str(&path, HOME);
  sbx_buf_append_slice(&path, cwd);
  if (path.error != SBX_OK)
    out->buf->error = path.error;
  sbx_json_put_name(out, sbx_slice_str("cwd"));
  sbx_json_put_string(out, sbx_buf_slice(&path));
  sbx_buf_deinit(&path);
}

static void send_make(make_op *m) {
  const sbx__e2b_context *c = m->context;
  sbx_buf body;
  sbx_json_out out;
  sbx_buf_init(&body, MAX_BODY);
  sbx_json_out_init(&out, &body);
  sbx_json_begin_object(&out);
  sbx_json_put_name(&out, sbx_slice_str("language"));
  sbx_json_put_string(&out, sbx_slice_str(sbx__e2b_language(c->language)));
  put_cwd(&out, c);
  sbx_json_end_object(&out);
  sbx__e2b_request request = {.http.method = "POST",
                              .path = sbx_slice_str("/contexts"),
                              .content_type = "application/json",
                              .http.take_body = &body,
                              .http.timeout_ms = CREATE_MS,
                              .port = SBX__E2B_CODE_PORT};
  sbx__e2b_to_sandbox(&m->steps, &request, on_make_reply);
  sbx_buf_deinit(&body);
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
  if (!sbx_steps_arrived(steps, reply))
    return;
  if (reply->status == 200 && sbx_json_parse(&doc, sbx_buf_slice(&reply->body), NULL) == SBX_OK)
    sbx_json_string(sbx_json_get(sbx_json_get(sbx_json_root(doc), "entry"), "type"), &type);
  bool is_directory = sbx_slice_eq_str(type, "FILE_TYPE_DIRECTORY");
  sbx_json_free(doc, false);
  if (reply->status != 200)
    sbx__e2b_sandbox_error(steps->session, reply, "look at the working directory", &err);
  if (is_directory)
    send_make(m);
  else if (reply->status == 200)
    refuse_cwd(m, "is no directory");
  else if (reply->status == 404 || reply->status == 400 || reply->status == 500)
    refuse_cwd(m, "is not there");
  else
    sbx_steps_finish(steps, &err);
}

/* The interpreter takes a directory that is none for granted, and runs the code at home. */
static void check_cwd(make_op *m) {
  sbx_slice cwd = sbx_slice_str(m->context->cwd);
  sbx_buf body, path;
  sbx_json_out out;
  if (sbx_slice_find(cwd, '\'') < cwd.len) {
    refuse_cwd(m, "has a quote in its name, with which the interpreter does not find it");
    return;
  }
  sbx_buf_init(&body, MAX_BODY);
  sbx_buf_init(&path, MAX_BODY);
  sbx__e2b_append_path(&path, cwd);
  sbx_json_out_init(&out, &body);
  sbx_json_begin_object(&out);
  sbx_json_put_name(&out, sbx_slice_str("path"));
  sbx_json_put_string(&out, sbx_buf_slice(&path));
  sbx_json_end_object(&out);
  if (path.error != SBX_OK)
    body.error = path.error;
  sbx__e2b_request request = {.http.method = "POST",
                              .path = sbx_slice_str("/filesystem.Filesystem/Stat"),
                              .content_type = "application/json",
                              .http.take_body = &body,
                              .http.repeatable = true,
                              .rpc = true};
  sbx__e2b_to_sandbox(&m->steps, &request, on_cwd);
  sbx_buf_deinit(&path);
  sbx_buf_deinit(&body);
}

static void make(sbx__e2b_context *c) {
  make_op *m = sbx_steps_new(sizeof *m, c->session, c->session->config->loop, on_made, c);
  if (m == NULL)
    return;
  c->making = &m->steps.op;
  m->context = c;
  if (c->cwd[0] != '\0')
    check_cwd(m);
  else
    send_make(m);
}

/* ---- wait ----------------------------------------------------------------------------------- */

static void on_wait_ending(sbx_steps *steps, int reason) {
  wait_op *w = (wait_op *)(void *)steps;
  (void)reason;
  for (sbx__e2b_context *c = w->steps.session->contexts; c != NULL; c = c->next) {
    wait_op **at = &c->waiters;
    while (*at != NULL && *at != w)
      at = &(*at)->next;
    if (*at == w)
      *at = w->next;
  }
}

/* The context for `spec`, in the making or made; NULL: out of memory. */
static sbx__e2b_context *find_or_make(sbx_session *session, const sbx_exec_spec *spec) {
  sbx__e2b_context *c = find(session, spec);
  if (c != NULL)
    return c;
  c = new_context(session, spec);
  if (c != NULL)
    make(c);
  if (c == NULL || c->making != NULL)
    return c;
  remove_context(c);
  return NULL;
}

sbx_op *sbx__e2b_context_wait(sbx_session *session, const sbx_exec_spec *spec, char **id,
                              sbx_op_done done, void *arg) {
  wait_op *w = sbx_steps_new(sizeof *w, session, session->config->loop, done, arg);
  if (w == NULL)
    return NULL;
  w->steps.ending = on_wait_ending;
  w->id = id;
  sbx__e2b_context *c = find_or_make(session, spec);
  if (c == NULL) {
    sbx_steps_finish_code(&w->steps, SBX_ENOMEM);
  } else if (c->id != NULL) {
    finish_wait(w, c);
  } else {
    w->next = c->waiters;
    c->waiters = w;
  }
  return &w->steps.op;
}

/* ---- restart -------------------------------------------------------------------------------- */

typedef struct restart_op {
  sbx_steps steps;
  const char *language;
} restart_op;

static void on_restarted(sbx_steps *steps, sbx_http *http) {
  if (sbx__e2b_answered(steps, http, "restart the context"))
    sbx_steps_finish(steps, NULL);
}

static void send_restart(restart_op *r, sbx_slice id) {
  sbx_buf path;
  sbx_buf_init(&path, MAX_PATH);
  sbx_buf_append_str(&path, "/contexts");
  sbx_url_append_segment(&path, id);
  sbx_buf_append_str(&path, "/restart");
  sbx__e2b_request request = {.http.method = "POST",
                              .path = sbx_buf_slice(&path),
                              .http.repeatable = true,
                              .port = SBX__E2B_CODE_PORT};
  if (path.error == SBX_OK)
    sbx__e2b_to_sandbox(&r->steps, &request, on_restarted);
  else
    sbx_steps_finish_code(&r->steps, path.error);
  sbx_buf_deinit(&path);
}

static bool is_ours(const sbx_session *session, sbx_slice id) {
  for (const sbx__e2b_context *c = session->contexts; c != NULL; c = c->next) {
    if (c->id != NULL && sbx_slice_eq_str(id, c->id))
      return true;
  }
  return false;
}

/* The default context of a language is the first one that we did not make. */
static bool find_default(const restart_op *r, const sbx_json *list, sbx_slice *id) {
  sbx_slice language;
  for (const sbx_json *v = sbx_json_next(list, NULL, NULL); v != NULL;
       v = sbx_json_next(list, v, NULL)) {
    if (sbx_json_string(sbx_json_get(v, "language"), &language) &&
        sbx_slice_eq_str(language, r->language) && sbx_json_string(sbx_json_get(v, "id"), id) &&
        !is_ours(r->steps.session, *id))
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
    send_restart(r, id);
  } else {
    sbx_err_set(&err, SBX_EPROTO, "e2b: list the contexts: the default one is not among them");
    sbx_steps_finish(steps, &err);
  }
  sbx_json_free(doc, false);
}

sbx_op *sbx__e2b_context_restart(sbx_session *session, const char *id, sbx_language language,
                                 sbx_op_done done, void *arg) {
  restart_op *r = sbx_steps_new(sizeof *r, session, session->config->loop, done, arg);
  if (r == NULL)
    return NULL;
  r->language = sbx__e2b_language(language);
  if (id != NULL) {
    send_restart(r, sbx_slice_str(id));
    return &r->steps.op;
  }
  sbx__e2b_request request = {.http.method = "GET",
                              .path = sbx_slice_str("/contexts"),
                              .http.repeatable = true,
                              .port = SBX__E2B_CODE_PORT};
  sbx__e2b_to_sandbox(&r->steps, &request, on_contexts);
  return &r->steps.op;
}
