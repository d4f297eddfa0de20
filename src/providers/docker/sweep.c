/* sweep.c - deletes what other processes have left: containers with our labels that are stale.
 *
 * Invariant: of what is listed only what owner.h calls stale is deleted. */
#include "core/alloc.h"
#include "core/err.h"
#include "core/items.h"
#include "core/url.h"
#include "providers/docker/docker.h"
#include "providers/docker/engine.h"
#include "providers/docker/owner.h"
#include "providers/remote/identity.h"

enum { MAX_ITEM = 1024 * 1024 };

typedef struct sweep_op {
  sbx_steps steps;
  sbx_session session; /* none of the engine's: where requests go */
  sbx_items items;
  sbx_listing stale;
  size_t next;      /* of them */
  sbx_listing *out; /* what was deleted */
  sbx_err failure;  /* the first of a delete */
} sweep_op;

static sweep_op *sweep_of(sbx_steps *steps) {
  return (sweep_op *)(void *)steps;
}

static void release(sbx_steps *steps) {
  sbx_items_deinit(&sweep_of(steps)->items);
  sbx_listing_free(&sweep_of(steps)->stale);
}

static void delete_next(sbx_steps *steps);

static void on_deleted(sbx_steps *steps, sbx_http *reply) {
  sweep_op *s = sweep_of(steps);
  sbx_entry *entry = &s->stale.entries[s->next++];
  sbx_err err;
  int rc = sbx__docker_check(&err, s->session.config, &sbx__docker_engine, reply,
                             "delete the container");
  if (rc == SBX_OK) {
    char *id = (char *)(uintptr_t)entry->path;
    entry->path = NULL;
    rc = sbx_listing_add(s->out, id, 0, &err);
  }
  /* Another one is deleting it, or it has ended by itself. */
  if (rc != SBX_OK && rc != SBX_ENOTFOUND && rc != SBX_ECONFLICT && s->failure.code == SBX_OK)
    sbx_err_copy(&s->failure, &err);
  delete_next(steps);
}

static void delete_next(sbx_steps *steps) {
  sweep_op *s = sweep_of(steps);
  sbx_buf url;
  if (s->next == s->stale.count) {
    sbx_steps_finish(steps, s->failure.code != SBX_OK ? &s->failure : NULL);
    return;
  }
  sbx__docker_container_url(&url, s->session.config, s->stale.entries[s->next].path,
                            "?force=1&v=1");
  sbx__docker_send(steps, "DELETE", &url, NULL, true, on_deleted);
}

static int on_item(void *arg, const sbx_json *item, sbx_err *err) {
  sweep_op *s = arg;
  sbx_slice id;
  if (!sbx_json_string(sbx_json_get(item, "Id"), &id) || !sbx_remote_identity_is_id(id) ||
      !sbx__docker_is_stale(sbx_json_get(item, "Labels")))
    return SBX_OK;
  return sbx_listing_add(&s->stale, sbx_strndup(id.ptr, id.len), 0, err);
}

static int on_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  return sbx_items_feed(&((sweep_op *)arg)->items, bytes, err);
}

static void on_listed(sbx_steps *steps, sbx_http *reply) {
  sweep_op *s = sweep_of(steps);
  sbx_err err;
  int rc =
      sbx__docker_check(&err, s->session.config, &sbx__docker_engine, reply, "list the containers");
  if (rc == SBX_OK)
    rc = sbx_items_finish(&s->items, &err);
  if (rc == SBX_OK)
    delete_next(steps);
  else
    sbx_steps_finish(steps, &err);
}

static void list(sbx_steps *steps) {
  sweep_op *s = sweep_of(steps);
  sbx_buf url;
  sbx_http_request request = {.method = "GET",
                              .repeatable = true,
                              .timeout_ms = SBX_NO_TIMEOUT,
                              .on_bytes = on_bytes,
                              .consumer = s};
  sbx__docker_url(&url, s->session.config, "/containers/json?all=1");
  sbx_url_append_query(&url, sbx_slice_str("filters"),
                       sbx_slice_str("{\"label\":[\"" SBX__DOCKER_TAG "\"]}"));
  sbx_remote_exchange_send(steps, s->session.config->http, &url, &request, NULL, on_listed);
}

sbx_op *sbx__docker_sweep(sbx_config *config, sbx_listing *out, sbx_op_done done, void *arg) {
  sweep_op *s = sbx_steps_new(sizeof *s, NULL, config->loop, done, arg);
  if (s == NULL)
    return NULL;
  s->session.config = config;
  s->steps.session = &s->session;
  s->steps.release = release;
  s->out = out;
  sbx_items_init(&s->items, NULL, MAX_ITEM, on_item, s);
  sbx__docker_agree(&s->steps, list);
  return &s->steps.op;
}
