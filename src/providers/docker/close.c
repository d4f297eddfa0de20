/* close.c - deletes a container, with what it has in volumes of its own. */
#include "core/url.h"
#include "providers/docker/docker.h"
#include "providers/docker/owner.h"
#include "providers/remote/identity.h"

static void find(sbx_steps *steps, sbx_steps_reply on_reply) {
  const sbx_session *session = steps->session;
  sbx_buf url, filter;
  sbx_buf_init(&filter, 256);
  sbx_buf_appendf(&filter, "{\"label\":[\"" SBX__DOCKER_TAG "=%s\"]}", session->tag);
  sbx__docker_url(&url, session->config, "/containers/json?all=1");
  sbx_url_append_query(&url, sbx_slice_str("filters"), sbx_buf_slice(&filter));
  sbx_buf_deinit(&filter);
  sbx__docker_send(steps, "GET", &url, NULL, true, on_reply);
}

static int found(sbx_session *session, const sbx_http *reply, char **id, sbx_err *err) {
  sbx_json_doc *doc = NULL;
  sbx_slice said = {NULL, 0};
  int rc = sbx__docker_json(&doc, session->config, &sbx__docker_engine, reply,
                            "look for a container whose creation was not answered", err);
  const sbx_json *item = rc == SBX_OK ? sbx_json_next(sbx_json_root(doc), NULL, NULL) : NULL;
  if (sbx_remote_tag_is_in(sbx_json_get(item, "Labels"), SBX__DOCKER_TAG, session->tag)) {
    sbx_json_string(sbx_json_get(item, "Id"), &said);
    rc = sbx_remote_identity_take(id, said, "docker", err);
  }
  sbx_json_free(doc, true);
  return rc;
}

static void remove_it(sbx_steps *steps, const char *id, sbx_steps_reply on_reply) {
  sbx_buf url;
  sbx__docker_container_url(&url, steps->session->config, id, "?force=1&v=1");
  sbx__docker_send(steps, "DELETE", &url, NULL, true, on_reply);
}

/* One that is being removed already is asked for again, until it is gone. */
static int removed(const sbx_http *reply, sbx_err *err) {
  return sbx_remote_exchange_check(err, &sbx__docker_engine, reply, "delete the container");
}

static void gone(sbx_session *session) {
  session->open = false;
}

static const sbx_remote_tag_verbs verbs = {
    .look_again_ms = 500,
    .find = find,
    .found = found,
    .remove = remove_it,
    .removed = removed,
    .gone = gone,
};

sbx_op *sbx__docker_close(sbx_session *session, sbx_op_done done, void *arg) {
  return sbx_remote_tag_remove(session, session->config->loop, &verbs, session->id,
                               session->may_exist, done, arg);
}
