/* life.c - starts a session, or attaches to one, and asks where its commands begin; looks whether
 * it lives; stops it.
 *
 *   start or look up -> pwd
 *
 * A session whose start was not answered is looked for by its name, which ends in our tag.
 *
 * Invariant: from the moment a start may have left until it was refused, session->may_exist is set,
 * and close then looks for it. */
#include "core/alloc.h"
#include "core/err.h"
#include "providers/agentcore/agentcore.h"
#include "providers/agentcore/result.h"
#include "providers/remote/probe.h"

#include <string.h>

enum { MAX_PATH_BYTES = 4096, PAGE = 100 };

static const sbx_http_request question = {.method = "GET", .repeatable = true};

/* ---- session -------------------------------------------------------------------------------- */

sbx_session *sbx__ac_session_new(sbx_config *config) {
  sbx_session *session = sbx_calloc(1, sizeof *session);
  if (session != NULL)
    session->config = config;
  return session;
}

void sbx__ac_session_free(sbx_session *session) {
  if (session == NULL)
    return;
  sbx_headers_deinit(&session->headers);
  sbx_free(session->id);
  sbx_free(session->dir);
  sbx_free(session->next);
  sbx_free(session);
}

static int set_text(char **to, sbx_slice text, sbx_err *err) {
  char *copy = sbx_strndup(text.ptr, text.len);
  if (copy == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  sbx_free(*to);
  *to = copy;
  return SBX_OK;
}

/* The documents of the service say ACTIVE and STOPPED where its answers say READY and TERMINATED.
 */
static sbx_liveness liveness_of(const sbx_json *answer) {
  static const struct {
    const char *status;
    sbx_liveness means;
  } all[] = {{"READY", SBX_ALIVE},
             {"ACTIVE", SBX_ALIVE},
             {"TERMINATED", SBX_GONE},
             {"STOPPING", SBX_GONE},
             {"STOPPED", SBX_GONE}};
  sbx_slice status = {NULL, 0};
  sbx_json_string(sbx_json_get(answer, "status"), &status);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (sbx_slice_eq_str(status, all[i].status))
      return all[i].means;
  }
  return SBX_LIVENESS_UNKNOWN;
}

static sbx_slice id_in(const sbx_json *answer) {
  sbx_slice id = {NULL, 0};
  sbx_json_string(sbx_json_get(answer, "sessionId"), &id);
  return id;
}

/* ---- open ----------------------------------------------------------------------------------- */

static int take_dir(sbx_session *session, const sbx__ac_result *result, sbx_err *err) {
  sbx_slice dir = sbx_buf_slice(&result->printed);
  while (dir.len > 1 && (dir.ptr[dir.len - 1] == '\n' || dir.ptr[dir.len - 1] == '/'))
    dir.len--;
  if (dir.len > 0 && dir.len <= MAX_PATH_BYTES && dir.ptr[0] == '/' && !sbx_slice_has_nul(dir))
    return set_text(&session->dir, dir, err);
  sbx_err_set(err, SBX_EPROVIDER,
              "agentcore: the session was started, but no command runs in it; `pwd -P` did not "
              "print a directory: ");
  sbx_err_append_remote(err, sbx_buf_slice(&result->said));
  return err->code;
}

static void on_dir(sbx_steps *steps, sbx_http *reply) {
  static const char verb[] = "ask for the working directory";
  sbx__ac_result result;
  sbx_err err = {0}, why;
  sbx__ac_result_init(&result);
  int rc = sbx__ac_check_inside(&err, reply, verb);
  if (rc == SBX_OK &&
      (rc = sbx__ac_result_read(&result, sbx_buf_slice(&reply->body), &why)) == SBX_OK)
    rc = take_dir(steps->session, &result, &err);
  else if (rc != SBX_OK && err.code == SBX_OK)
    sbx_err_set(&err, rc, "agentcore: %s: %s", verb, why.message);
  if (rc != SBX_OK)
    err.provider = "agentcore";
  err.no_effect = false; /* the start before it had one */
  sbx__ac_result_deinit(&result);
  sbx_steps_finish(steps, &err);
}

static void ask_dir(sbx_steps *steps) {
  sbx_buf body;
  sbx_buf_init(&body, MAX_PATH_BYTES);
  sbx__ac_begin_line(&body);
  sbx_buf_append_str(&body, "pwd -P" SBX__AC_END_LINE);
  sbx__ac_invoke(steps, &(sbx_http_request){.take_body = &body, .repeatable = true}, on_dir);
}

static void fail_ended(sbx_steps *steps) {
  sbx_err err;
  sbx_err_set(&err, SBX_ENOTFOUND, "agentcore: the session has ended: ");
  sbx_err_append_remote(&err, sbx_slice_str(steps->session->id));
  err.provider = "agentcore";
  sbx_steps_finish(steps, &err);
}

static void on_found(sbx_steps *steps, sbx_http *reply) {
  sbx_json_doc *doc = NULL;
  sbx_err err;
  int rc = sbx__ac_json(&doc, reply, "look for the session", &err);
  const sbx_json *answer = rc == SBX_OK ? sbx_json_root(doc) : NULL;
  if (rc == SBX_OK)
    rc = sbx__ac_take_id(steps->session, id_in(answer), &err);
  if (rc != SBX_OK)
    sbx_steps_finish(steps, &err);
  else if (liveness_of(answer) == SBX_GONE)
    fail_ended(steps);
  else
    ask_dir(steps);
  sbx_json_free(doc, true);
}

static void on_created(sbx_steps *steps, sbx_http *reply) {
  static const char verb[] = "create the session";
  sbx_session *session = steps->session;
  sbx_json_doc *doc = NULL;
  sbx_err err;
  int rc = sbx__ac_json(&doc, reply, verb, &err);
  /* A web page in place of a success does not come from what starts sessions. */
  bool page = reply->status == 200 && sbx_remote_exchange_is_page(reply);
  session->may_exist = rc == SBX_OK || !(err.no_effect || page);
  if (rc == SBX_OK)
    rc = sbx__ac_take_id(session, id_in(sbx_json_root(doc)), &err);
  sbx_json_free(doc, true);
  if (rc == SBX_ENOTFOUND)
    sbx_err_append(&err, "; is there such a code interpreter in %s?", session->config->region);
  if (rc == SBX_OK)
    ask_dir(steps);
  else
    sbx_steps_finish(steps, &err);
}

/* The tag as a UUID: a start that was received twice makes one session. */
static void put_token(sbx_json_out *json, const char *tag) {
  char text[SBX_REMOTE_TAG_LEN + 5] = "";
  size_t n = 0;
  for (size_t i = 0; i < SBX_REMOTE_TAG_LEN; i++) {
    if (i == 8 || i == 12 || i == 16 || i == 20)
      text[n++] = '-';
    text[n++] = tag[i];
  }
  sbx_json_put_text(json, "clientToken", sbx_slice_of(text, n));
}

static void put_name(sbx_buf *name, const sbx_session *session) {
  const char *given = session->config->name;
  sbx_buf_init(name, MAX_PATH_BYTES);
  sbx_buf_appendf(name, "%s-%s", given != NULL ? given : "cloudsandbox", session->tag);
}

static void create(sbx_steps *steps) {
  sbx_session *session = steps->session;
  sbx_buf body, name;
  sbx_json_out json = {&body, true}; /* the prepared text has members already */
  sbx_buf_init(&body, MAX_PATH_BYTES);
  put_name(&name, session);
  sbx_buf_append_str(&body, session->config->create_body);
  sbx_json_put_text(&json, "name", sbx_buf_slice(&name));
  put_token(&json, session->tag);
  sbx_json_end_object(&json);
  body.error = body.error != SBX_OK ? body.error : name.error;
  sbx_buf_deinit(&name);
  session->may_exist = true;
  sbx__ac_to_sessions(steps, "start", false,
                      &(sbx_http_request){.method = "PUT", .take_body = &body}, on_created);
}

sbx_op *sbx__ac_open(sbx_session *session, sbx_op_done done, void *arg) {
  const char *attach = session->config->attach;
  sbx_steps *steps = sbx_steps_new(sizeof *steps, session, session->config->loop, done, arg);
  sbx_err err;
  if (steps == NULL)
    return NULL;
  int rc = sbx_remote_tag_make(session->tag, &err);
  if (rc == SBX_OK && attach != NULL)
    rc = sbx__ac_take_id(session, sbx_slice_str(attach), &err);
  if (rc != SBX_OK)
    sbx_steps_finish(steps, &err);
  else if (attach != NULL)
    sbx__ac_to_sessions(steps, "get", true, &question, on_found);
  else
    create(steps);
  return &steps->op;
}

/* ---- close ---------------------------------------------------------------------------------- */

static void find(sbx_steps *steps, sbx_steps_reply on_reply) {
  const sbx_session *session = steps->session;
  sbx_buf body;
  sbx_json_out json;
  sbx_buf_init(&body, SBX__AC_URL_MAX);
  sbx_json_out_init(&json, &body);
  sbx_json_begin_object(&json);
  sbx_json_put_name(&json, sbx_slice_str("maxResults"));
  sbx_json_put_int(&json, PAGE);
  sbx_json_put_text(&json, "status", sbx_slice_str("READY"));
  if (session->next != NULL)
    sbx_json_put_text(&json, "nextToken", sbx_slice_str(session->next));
  sbx_json_end_object(&json);
  sbx__ac_to_sessions(steps, "list", false,
                      &(sbx_http_request){.method = "POST", .take_body = &body, .repeatable = true},
                      on_reply);
}

static const sbx_json *item_named(const sbx_json *items, sbx_slice name) {
  const sbx_json *item = sbx_json_is_array(items) ? sbx_json_next(items, NULL, NULL) : NULL;
  sbx_slice said;
  while (item != NULL &&
         !(sbx_json_string(sbx_json_get(item, "name"), &said) && sbx_slice_eq(said, name)))
    item = sbx_json_next(items, item, NULL);
  return item;
}

/* The list comes in parts; SBX_ENOTREADY asks for the next one. */
static int found(sbx_session *session, const sbx_http *reply, char **id, sbx_err *err) {
  sbx_json_doc *doc = NULL;
  sbx_buf name;
  sbx_slice next;
  int rc = sbx__ac_json(&doc, reply, "look for a session whose start was not answered", err);
  const sbx_json *answer = rc == SBX_OK ? sbx_json_root(doc) : NULL;
  put_name(&name, session);
  const sbx_json *item = item_named(sbx_json_get(answer, "items"), sbx_buf_slice(&name));
  if (rc == SBX_OK && item != NULL)
    rc = sbx__ac_take_id(session, id_in(item), err);
  if (rc == SBX_OK && item != NULL)
    rc = set_text(id, sbx_slice_str(session->id), err);
  else if (rc == SBX_OK && sbx_json_string(sbx_json_get(answer, "nextToken"), &next) &&
           next.len > 0 && set_text(&session->next, next, err) == SBX_OK)
    rc = SBX_ENOTREADY;
  if (rc != SBX_ENOTREADY) {
    sbx_free(session->next);
    session->next = NULL;
  }
  sbx_buf_deinit(&name);
  sbx_json_free(doc, true);
  return rc;
}

static void remove_it(sbx_steps *steps, const char *id, sbx_steps_reply on_reply) {
  sbx_buf body;
  sbx_json_out json;
  (void)id; /* the session's */
  sbx_buf_init(&body, MAX_PATH_BYTES);
  sbx_json_out_init(&json, &body);
  sbx_json_begin_object(&json);
  put_token(&json, steps->session->tag);
  sbx_json_end_object(&json);
  sbx__ac_to_sessions(steps, "stop", true,
                      &(sbx_http_request){.method = "PUT", .take_body = &body, .repeatable = true},
                      on_reply);
}

static int removed(const sbx_http *reply, sbx_err *err) {
  int rc = sbx__ac_check(err, reply, "stop the session");
  return rc == SBX_EINVAL && sbx__ac_says_over(sbx_buf_slice(&reply->body)) ? SBX_OK : rc;
}

static void gone(sbx_session *session) {
  sbx_free(session->dir);
  session->dir = NULL;
}

static const sbx_remote_tag_verbs verbs = {
    .look_again_ms = 1000,
    .find = find,
    .found = found,
    .remove = remove_it,
    .removed = removed,
    .gone = gone,
};

sbx_op *sbx__ac_close(sbx_session *session, sbx_op_done done, void *arg) {
  return sbx_remote_tag_remove(session, session->config->loop, &verbs, session->id,
                               session->may_exist, done, arg);
}

/* ---- probe ---------------------------------------------------------------------------------- */

static void on_probed(sbx_steps *steps, sbx_http *reply) {
  sbx_json_doc *doc = NULL;
  sbx_err err;
  int rc = sbx__ac_json(&doc, reply, "look at the session", &err);
  sbx_liveness now = rc == SBX_ENOTFOUND ? SBX_GONE : SBX_LIVENESS_UNKNOWN;
  if (rc == SBX_OK && sbx__ac_take_id(steps->session, id_in(sbx_json_root(doc)), &err) == SBX_OK)
    now = liveness_of(sbx_json_root(doc));
  sbx_remote_probe_tell(steps, now);
  sbx_json_free(doc, true);
  sbx_steps_finish(steps, NULL);
}

sbx_op *sbx__ac_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg) {
  sbx_steps *probe = sbx_remote_probe_new(session, session->config->loop, out, done, arg);
  if (probe == NULL)
    return NULL;
  sbx__ac_to_sessions(probe, "get", true, &question, on_probed);
  return &probe->op;
}
