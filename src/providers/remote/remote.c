/* remote.c - what providers that are reached over HTTP share.
 *
 * Invariant: at any time an operation waits for one request or for one pause, so that whoever ends
 * it has one thing to end. */
#include "providers/remote/remote.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/rand.h"
#include "core/url.h"

/* ---- options -------------------------------------------------------------------------------- */

static bool has_control(sbx_slice text) {
  for (size_t i = 0; i < text.len; i++) {
    unsigned char c = (unsigned char)text.ptr[i];
    if (c < 0x20 || c == 0x7f)
      return true;
  }
  return false;
}

int sbx_remote_text(char **out, const sbx_json *options, const char *name, sbx_err *err) {
  const sbx_json *v = sbx_json_get(options, name);
  sbx_slice text;
  if (v == NULL)
    return SBX_OK;
  if (!sbx_json_string(v, &text) || text.len == 0 || has_control(text))
    return sbx_err_set(err, SBX_EINVAL,
                       "%s must be a string that is not empty and has no control characters", name);
  char *copy = sbx_strndup(text.ptr, text.len);
  if (copy == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  sbx_free(*out);
  *out = copy;
  return SBX_OK;
}

int sbx_remote_bool(bool *out, const sbx_json *options, const char *name, sbx_err *err) {
  const sbx_json *v = sbx_json_get(options, name);
  if (v != NULL && !sbx_json_bool(v, out))
    return sbx_err_set(err, SBX_EINVAL, "%s must be true or false", name);
  return SBX_OK;
}

int sbx_remote_int(int64_t *out, const sbx_json *options, const char *name, int64_t min,
                   int64_t max, sbx_err *err) {
  const sbx_json *v = sbx_json_get(options, name);
  if (v != NULL && !sbx_json_int(v, min, max, out))
    return sbx_err_set(err, SBX_EINVAL, "%s must be a whole number from %lld to %lld", name,
                       (long long)min, (long long)max);
  return SBX_OK;
}

int sbx_remote_url(char **out, const sbx_json *options, const char *name, sbx_err *err) {
  sbx_url url;
  sbx_err why;
  int rc = sbx_remote_text(out, options, name, err);
  if (rc != SBX_OK || sbx_json_get(options, name) == NULL)
    return rc;
  sbx_slice text = sbx_slice_str(*out);
  rc = sbx_url_parse(&url, text, &why);
  if (rc != SBX_OK)
    return sbx_err_set(err, SBX_EINVAL, "%s: %s", name, why.message);
  if (url.query.len > 0 || sbx_slice_find(text, '?') != text.len)
    return sbx_err_set(err, SBX_EINVAL, "%s must not have a query", name);
  while (text.len > 0 && text.ptr[text.len - 1] == '/')
    text.len--;
  (*out)[text.len] = '\0';
  return SBX_OK;
}

int sbx_remote_map(const sbx_json **out, const sbx_json *options, const char *name, sbx_err *err) {
  const sbx_json *map = sbx_json_get(options, name);
  sbx_slice key, value;
  *out = map;
  if (map != NULL && !sbx_json_is_object(map))
    return sbx_err_set(err, SBX_EINVAL, "%s must be an object of strings", name);
  for (const sbx_json *v = sbx_json_next(map, NULL, &key); v != NULL;
       v = sbx_json_next(map, v, &key)) {
    if (sbx_json_string(v, &value) && !sbx_slice_has_nul(value) && !sbx_slice_has_nul(key))
      continue;
    sbx_err_set(err, SBX_EINVAL, "%s: the value of ", name);
    sbx_err_append_remote(err, key);
    sbx_err_append(err, " must be a string without NUL bytes");
    return SBX_EINVAL;
  }
  return SBX_OK;
}

void sbx_remote_begin_map(sbx_json_out *out, const sbx_json *map) {
  sbx_slice name, value = {NULL, 0};
  sbx_json_begin_object(out);
  for (const sbx_json *v = sbx_json_next(map, NULL, &name); v != NULL;
       v = sbx_json_next(map, v, &name)) {
    sbx_json_string(v, &value);
    sbx_json_put_name(out, name);
    sbx_json_put_string(out, value);
  }
}

int sbx_remote_client(sbx_http_client **out, sbx_loop *loop, const sbx_json *options,
                      sbx_http_version version, sbx_err *err) {
  const sbx_json *proxy = sbx_json_get(options, "proxy");
  const sbx_json *ca = sbx_json_get(options, "ca");
  sbx_http_options http = {.version = version};
  if (proxy != NULL && !sbx_json_string(proxy, &http.proxy))
    return sbx_err_set(err, SBX_EINVAL, "proxy must be a URL, or \"\" for none");
  http.no_proxy = proxy != NULL && http.proxy.len == 0;
  if (ca != NULL && (!sbx_json_string(ca, &http.ca_pem) || http.ca_pem.len == 0))
    return sbx_err_set(err, SBX_EINVAL, "ca must be one or more certificates in PEM");
  return loop != NULL ? sbx_http_client_get(out, loop, &http, err)
                      : sbx_http_client_new(out, &http, err);
}

/* ---- operations of several requests --------------------------------------------------------- */

static sbx_steps *steps_of(sbx_op *op) {
  return (sbx_steps *)(void *)op;
}

static void abort_steps(sbx_op *op, int reason) {
  sbx_steps *steps = steps_of(op);
  if (steps->ending != NULL)
    steps->ending(steps, reason);
  sbx_op_drop(&steps->request, reason);
  sbx_steps_finish_code(steps, reason);
}

static void destroy_steps(sbx_op *op) {
  sbx_steps *steps = steps_of(op);
  if (steps->release != NULL)
    steps->release(steps);
  sbx_free(steps);
}

static const sbx_op_class steps_class = {"remote", abort_steps, destroy_steps};

static void on_pause(sbx_timer *timer) {
  sbx_steps *steps = (sbx_steps *)(void *)((char *)timer - offsetof(sbx_steps, pause));
  steps->on_time(steps);
}

void *sbx_steps_new(size_t size, sbx_session *session, sbx_loop *loop, sbx_op_done done,
                    void *arg) {
  sbx_steps *steps = sbx_calloc(1, size);
  if (steps == NULL)
    return NULL;
  steps->session = session;
  sbx_timer_init(&steps->pause, loop, on_pause);
  sbx_op_init(&steps->op, &steps_class, loop, done, arg);
  return steps;
}

static void on_done(sbx_op *op, void *arg) {
  sbx_steps *steps = arg;
  steps->request = NULL;
  steps->on_reply(steps, sbx_http_of(op));
}

void sbx_steps_send(sbx_steps *steps, sbx_http_client *client, const sbx_http_request *request,
                    sbx_steps_reply on_reply) {
  if (steps->op.finished)
    return;
  steps->on_reply = on_reply;
  steps->request = sbx_http_start(client, steps->op.loop, request, on_done, steps);
  if (steps->request == NULL)
    sbx_steps_finish_code(steps, SBX_ENOMEM);
}

bool sbx_steps_arrived(sbx_steps *steps, const sbx_http *reply) {
  if (reply->op.err.code == SBX_OK)
    return true;
  sbx_steps_finish(steps, &reply->op.err);
  return false;
}

void sbx_steps_wait(sbx_steps *steps, uint64_t ms, sbx_steps_time on_time) {
  if (steps->op.finished)
    return;
  steps->on_time = on_time;
  sbx_timer_start(&steps->pause, ms);
}

void sbx_steps_wait_for(sbx_steps *steps, sbx_op *child) {
  steps->request = child;
  if (child == NULL)
    sbx_steps_finish_code(steps, SBX_ENOMEM);
}

const sbx_repeat_rule sbx_repeat_delete = {
    .first_pause_ms = 150, .most_pause_ms = 2000, .most = 4, .conflicts = true};

uint64_t sbx_repeat_pause(sbx_repeat *repeat, const sbx_repeat_rule *rule) {
  uint64_t pause = repeat->pause_ms > 0 ? repeat->pause_ms : rule->first_pause_ms;
  repeat->pause_ms = pause * 2 < rule->most_pause_ms ? pause * 2 : rule->most_pause_ms;
  return pause;
}

static bool may_pass(const sbx_repeat *repeat, const sbx_repeat_rule *rule, int code) {
  if (code == SBX_ECONFLICT)
    return rule->conflicts;
  return (code == SBX_ENET || code == SBX_ERATE || code == SBX_EPROVIDER ||
          (code == SBX_ETIMEOUT && rule->timeouts)) &&
         repeat->failures < rule->most;
}

/* What the reply or the error asks for; 0: nothing. */
static uint64_t asked_pause(const sbx_http *reply, const sbx_err *err) {
  uint64_t ms = 0;
  if (reply != NULL && reply->op.err.code == SBX_OK)
    sbx_http_retry_after(reply, &ms);
  if (ms < err->retry_after_ms)
    ms = err->retry_after_ms;
  /* Others were told the same moment. */
  return ms < UINT32_MAX ? ms + sbx_random_upto(ms / 4) : ms;
}

static bool is_in_time(const sbx_steps *steps, uint64_t pause_ms) {
  const sbx_timer *deadline = &steps->op.deadline;
  uint64_t now = sbx_now_ms();
  return !deadline->armed || (now < deadline->due_ms && pause_ms < deadline->due_ms - now);
}

bool sbx_steps_repeat(sbx_steps *steps, sbx_repeat *repeat, const sbx_repeat_rule *rule,
                      const sbx_http *reply, const sbx_err *err, sbx_steps_time on_time) {
  uint64_t pause = sbx_repeat_pause(repeat, rule);
  uint64_t asked = asked_pause(reply, err);
  if (pause < asked)
    pause = asked;
  if (!may_pass(repeat, rule, err->code) || !is_in_time(steps, pause))
    return false;
  if (err->code != SBX_ECONFLICT)
    repeat->failures++;
  sbx_steps_wait(steps, pause, on_time);
  return true;
}

void sbx_steps_finish(sbx_steps *steps, const sbx_err *err) {
  if (steps->let_go != NULL && !steps->op.finished)
    steps->let_go(steps);
  sbx_timer_stop(&steps->pause);
  sbx_op_finish(&steps->op, err);
}

void sbx_steps_finish_code(sbx_steps *steps, int code) {
  sbx_err err;
  if (code != SBX_OK)
    sbx_err_set(&err, code, NULL);
  sbx_steps_finish(steps, code != SBX_OK ? &err : NULL);
}
