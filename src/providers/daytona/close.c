/* close.c - deletes a sandbox.
 *
 * One whose create was not answered is looked for by its name, and deleted only when it carries our
 * tag: with a name of the user's choice it may be somebody else's. */
#include "providers/daytona/daytona.h"

#include "core/alloc.h"
#include "core/err.h"
#include "providers/remote/identity.h"

static void find(sbx_steps *steps, sbx_steps_reply on_reply) {
  sbx__daytona_to_api(steps, "GET", steps->session->name, "", on_reply);
}

static int found(sbx_session *session, const sbx_http *reply, char **id, sbx_err *err) {
  sbx_json_doc *doc = NULL;
  sbx_slice said = {NULL, 0};
  int rc = sbx_remote_exchange_json(&doc, &sbx__daytona_api, reply,
                                    "look for a sandbox whose creation was not answered", err);
  const sbx_json *sandbox = rc == SBX_OK ? sbx_json_root(doc) : NULL;
  if (sbx_remote_tag_is_in(sbx_json_get(sandbox, "labels"), "cloudsandbox", session->tag)) {
    sbx_json_string(sbx_json_get(sandbox, "id"), &said);
    rc = sbx_remote_identity_take(id, said, "daytona", err);
  }
  sbx_json_free(doc, true);
  return rc == SBX_ENOTFOUND ? SBX_OK : rc;
}

static void remove_it(sbx_steps *steps, const char *id, sbx_steps_reply on_reply) {
  sbx__daytona_to_api(steps, "DELETE", id, "", on_reply);
}

static int removed(const sbx_http *reply, sbx_err *err) {
  int rc = sbx_remote_exchange_check(err, &sbx__daytona_api, reply, "delete the sandbox");
  return rc == SBX_ENOTFOUND ? SBX_OK : rc;
}

static void gone(sbx_session *session) {
  session->open = false;
}

static const sbx_remote_tag_verbs verbs = {
    .look_again_ms = 1000,
    .find = find,
    .found = found,
    .remove = remove_it,
    .removed = removed,
    .gone = gone,
};

sbx_op *sbx__daytona_close(sbx_session *session, sbx_op_done done, void *arg) {
  return sbx_remote_tag_remove(session, session->config->loop, &verbs, session->id,
                               session->may_exist, done, arg);
}
