/* life.c - creates a session or attaches to one, and asks it where its commands begin; deletes it;
 * and looks whether it lives.
 *
 * The protocol has no list and no names, so a session whose create was not answered cannot be
 * found: the error says so. */
#include "providers/http/service.h"

#include "core/alloc.h"
#include "core/err.h"
#include "providers/remote/identity.h"
#include "providers/remote/probe.h"
#include "providers/remote/tag.h"

#include <stdio.h>

/* ---- open ----------------------------------------------------------------------------------- */

static int take_dir(sbx_session *session, const sbx_json *answer, sbx_err *err) {
  sbx_slice dir = {NULL, 0};
  sbx_json_string(sbx_json_get(answer, "stdout"), &dir);
  while (dir.len > 1 && (dir.ptr[dir.len - 1] == '\n' || dir.ptr[dir.len - 1] == '/'))
    dir.len--;
  if (dir.len == 0 || dir.ptr[0] != '/' || sbx_slice_has_nul(dir)) {
    sbx_slice why = {NULL, 0};
    sbx_json_string(sbx_json_get(answer, "stderr"), &why);
    sbx_err_set(err, SBX_EPROVIDER,
                "http: the session was made, but no command runs in it; `/bin/sh -c 'pwd -P'` did "
                "not print a directory: ");
    sbx_err_append_remote(err, why);
    return err->code;
  }
  sbx_free(session->dir);
  session->dir = sbx_strndup(dir.ptr, dir.len);
  return session->dir != NULL ? SBX_OK : sbx_err_set(err, SBX_ENOMEM, NULL);
}

static void on_dir(sbx_steps *steps, sbx_http *reply) {
  sbx_json_doc *doc = NULL;
  sbx_err err = {0};
  int rc = sbx__hs_json(&doc, reply, "ask for the working directory", SBX__HS_SESSION, &err);
  if (rc == SBX_OK)
    take_dir(steps->session, sbx_json_root(doc), &err);
  err.no_effect = false; /* the create before it had one */
  sbx_json_free(doc, false);
  sbx_steps_finish(steps, &err);
}

static void ask_dir(sbx_steps *steps) {
  sbx__hs_ask(steps, "pwd -P", on_dir);
}

/* A number counts as its text. */
static int take_id(sbx_session *session, const sbx_json *said, sbx_err *err) {
  char text[24] = "";
  sbx_slice id = {text, 0};
  int64_t number;
  if (sbx_json_int(said, 0, INT64_MAX, &number))
    id.len = (size_t)snprintf(text, sizeof text, "%lld", (long long)number);
  sbx_json_string(said, &id);
  return sbx_remote_identity_take(&session->id, id, "http", err);
}

static void on_created(sbx_steps *steps, sbx_http *reply) {
  sbx_json_doc *doc = NULL;
  sbx_err err = {0};
  int rc = sbx__hs_json(&doc, reply, "create the session", SBX__HS_SERVICE, &err);
  if (rc == SBX_OK)
    rc = take_id(steps->session, sbx_json_get(sbx_json_root(doc), "session_id"), &err);
  sbx_json_free(doc, true);
  if (rc == SBX_OK) {
    ask_dir(steps);
    return;
  }
  if (err.status == 404)
    sbx_err_append(&err, "; is baseURL the address of a sandbox service?");
  if (!err.no_effect && reply->op.err.code != SBX_ECANCELED)
    sbx_err_append(&err, "; a session that was made all the same cannot be found by this protocol, "
                         "and ends by the service's own limit");
  sbx_steps_finish(steps, &err);
}

sbx_op *sbx__hs_open(sbx_session *session, sbx_op_done done, void *arg) {
  const char *attach = session->config->attach;
  sbx_steps *steps = sbx_steps_new(sizeof *steps, session, session->config->loop, done, arg);
  if (steps == NULL)
    return NULL;
  if (attach != NULL && session->id == NULL)
    session->id = sbx_strndup(attach, sbx_slice_str(attach).len);
  if (attach != NULL && session->id == NULL)
    sbx_steps_finish_code(steps, SBX_ENOMEM);
  else if (session->id != NULL)
    ask_dir(steps);
  else
    sbx__hs_create(steps, on_created);
  return &steps->op;
}

/* ---- close ---------------------------------------------------------------------------------- */

static int removed(const sbx_http *reply, sbx_err *err) {
  int rc = sbx__hs_check(err, reply, "delete the session", SBX__HS_SESSION);
  return rc == SBX_ELOST ? SBX_OK : rc;
}

static void gone(sbx_session *session) {
  sbx_free(session->dir);
  session->dir = NULL;
}

static const sbx_remote_tag_verbs verbs = {
    .remove = sbx__hs_delete, .removed = removed, .gone = gone};

sbx_op *sbx__hs_close(sbx_session *session, sbx_op_done done, void *arg) {
  return sbx_remote_tag_remove(session, session->config->loop, &verbs, session->id, false, done,
                               arg);
}

/* ---- probe ---------------------------------------------------------------------------------- */

static void on_probed(sbx_steps *steps, sbx_http *reply) {
  sbx_err err;
  int rc = sbx__hs_check(&err, reply, "look at the session", SBX__HS_SESSION);
  sbx_remote_probe_tell(steps, rc == SBX_OK      ? SBX_ALIVE
                               : rc == SBX_ELOST ? SBX_GONE
                                                 : SBX_LIVENESS_UNKNOWN);
  sbx_steps_finish(steps, NULL);
}

/* Nothing but a command tells. */
sbx_op *sbx__hs_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg) {
  sbx_steps *probe = sbx_remote_probe_new(session, session->config->loop, out, done, arg);
  if (probe == NULL)
    return NULL;
  sbx__hs_ask(probe, ":", on_probed);
  return &probe->op;
}
