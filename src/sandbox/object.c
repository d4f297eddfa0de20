/* object.c - the object: options, start, close, free.
 *
 * Invariant: at most one start and one round of deletions are under way, whoever asked; the
 * object's memory goes only when its last call has been reported and its last place is freed. */
#include "sandbox/object.h"

#include "core/alloc.h"
#include "core/buf.h"
#include "sandbox/call.h"
#include "sandbox/life.h"
#include "sandbox/spec.h"

#include <string.h>

enum {
  DEFAULT_EXEC_TIMEOUT_MS = 30 * 1000,
  DEFAULT_START_TIMEOUT_MS = 60 * 1000,
  LATE_TIMEOUT_MS = 20 * 1000,
  HURRY_TIMEOUT_MS = 5 * 1000,
  MIN_FILE_TIMEOUT_MS = 120 * 1000, /* a long limit for commands is one for files, too */
  PROBE_TIMEOUT_MS = 5 * 1000,
  DELETE_TIMEOUT_MS = 60 * 1000,
  SEARCH_TIMEOUT_MS = 15 * 1000,
};

typedef struct done_call {
  sbx_call call;
  sbx_done_cb cb;
} done_call;

/* ---- calls that only report that they are done: start and close ---- */

static void report_done(sbx_call *call, const sbx_err *err) {
  ((done_call *)(void *)call)->cb(call->arg, err);
}

static void run_start(sbx_call *call) {
  sbx__call_finish(call, NULL);
}

/* A start has finished when it runs, and a close never runs: there is nothing to stop. */
static const sbx__call_kind start_kind = {run_start, NULL, report_done, NULL, NULL};
static const sbx__call_kind close_kind = {NULL, NULL, report_done, NULL, NULL};

static done_call *done_call_new(sbx_sandbox *sb, const sbx__call_kind *kind, sbx_done_cb cb,
                                void *arg) {
  done_call *done = sbx_calloc(1, sizeof *done);
  if (done == NULL)
    return NULL;
  done->cb = cb;
  sbx__call_init(&done->call, sb, kind, arg);
  return done;
}

int sbx_sandbox_start(sbx_sandbox *sb, sbx_done_cb cb, void *arg, sbx_call **out, sbx_err *err) {
  int rc = sbx__sandbox_check(sb, err);
  if (rc != SBX_OK)
    return rc;
  done_call *start = done_call_new(sb, &start_kind, cb, arg);
  if (start == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  sbx__call_begin(&start->call);
  if (out != NULL)
    *out = &start->call;
  return SBX_OK;
}

/* ---- going on with a close or a free ---- */

static void finish_closers(sbx_sandbox *sb, const sbx_err *cause) {
  sbx_err err;
  if (cause != NULL) {
    sbx_err_set(&err, cause->code,
                "the sandbox could not be deleted and may still exist: %s; close it again to retry",
                cause->message);
    err.status = cause->status;
    err.provider = cause->provider;
  }
  for (sbx_call *call = sb->first_call; call != NULL; call = call->next) {
    if (call->state == SBX__CALL_CLOSES)
      sbx__call_finish(call, cause != NULL ? &err : NULL);
  }
}

/* The calls have ended: deletes everything that is left, each place once. */
static void delete_all(sbx_sandbox *sb) {
  sb->deleting = true;
  for (sbx__place *place = sb->places.first; place != NULL; place = place->next) {
    if (sbx__place_is_busy(place))
      sbx__place_hurry(place);
    else
      sbx__place_delete(place);
  }
}

static void step_close(sbx_sandbox *sb) {
  const sbx_err *cause = NULL;
  if (sb->closers == 0 || sb->active > 0)
    return;
  sbx_timer_stop(&sb->grace);
  if (!sb->deleting) {
    /* A start whose callers were all cancelled may be under way. */
    if (sb->places.current != NULL && sb->places.current->state == SBX__PLACE_OPENING)
      return;
    delete_all(sb);
  }
  for (const sbx__place *place = sb->places.first; place != NULL; place = place->next) {
    if (sbx__place_is_busy(place))
      return;
    if (place->failure != NULL)
      cause = place->failure;
  }
  sb->deleting = false;
  finish_closers(sb, cause);
}

static void step(sbx_sandbox *sb) {
  if (!sb->places.freed) {
    step_close(sb);
  } else if (sb->first_call == NULL && sb->places.first == NULL) {
    sb->provider->config_free(sb->places.config);
    sbx_task_cancel(&sb->news_task);
    sbx__relay_deinit(&sb->news);
    sbx_free(sb->shell);
    sbx_free(sb);
  }
}

/* ---- close ---- */

/* Ends the calls that a close does not wait for. */
static void shut_calls(sbx_sandbox *sb, bool endless_only) {
  for (sbx_call *call = sb->first_call; call != NULL; call = call->next) {
    if (call->endless || !endless_only)
      sbx__call_shut(call);
  }
}

static void on_grace_over(sbx_timer *timer) {
  shut_calls((sbx_sandbox *)(void *)((char *)timer - offsetof(sbx_sandbox, grace)), false);
}

/* The shortest grace of all closes counts. */
static void give_grace(sbx_sandbox *sb, uint64_t grace_ms) {
  shut_calls(sb, grace_ms > 0);
  bool shorter = !sb->grace.armed || sbx_now_ms() + grace_ms < sb->grace.due_ms;
  if (grace_ms > 0 && sb->active > 0 && shorter)
    sbx_timer_start(&sb->grace, grace_ms);
}

int sbx_sandbox_close(sbx_sandbox *sb, uint64_t grace_ms, sbx_done_cb cb, void *arg, sbx_err *err) {
  if (grace_ms > SBX_CLOSE_GRACE_MAX_MS)
    return sbx_err_set(err, SBX_EINVAL, "the grace of a close is at most %d ms",
                       SBX_CLOSE_GRACE_MAX_MS);
  if (sbx_loop_is_closing(sb->loop))
    return sbx_err_set(err, SBX_ECLOSED, "the event loop is ending; nothing can be deleted");
  done_call *close = done_call_new(sb, &close_kind, cb, arg);
  if (close == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  close->call.state = SBX__CALL_CLOSES;
  sb->closers++;
  sb->closed = true;
  give_grace(sb, grace_ms);
  step(sb);
  return SBX_OK;
}

/* ---- free ---- */

void sbx_sandbox_free(sbx_sandbox *sb) {
  sbx__place *next;
  if (sb == NULL)
    return;
  sb->closed = true;
  sb->places.freed = true;
  sbx_timer_stop(&sb->grace);
  for (sbx_call *call = sb->first_call; call != NULL; call = call->next)
    sbx_op_abort(&call->op, SBX_ECLOSED);
  for (sbx__place *place = sb->places.first; place != NULL; place = next) {
    next = place->next;
    sbx__place_abandon(place);
  }
  step(sb);
}

/* ---- what the places tell ---- */

static sbx_sandbox *sandbox_of(sbx__places *set) {
  return (sbx_sandbox *)(void *)((char *)set - offsetof(sbx_sandbox, places));
}

static void on_started(sbx__places *set, const sbx_err *err) {
  sbx__calls_started(sandbox_of(set), err);
}

static void on_gone(sbx__places *set, const sbx__place *place) {
  sbx__calls_gone(sandbox_of(set), place);
}

static void on_changed(sbx__places *set) {
  step(sandbox_of(set));
}

/* What the relay's two streams are here. */
enum { PROGRESS = SBX_STDOUT, LIFE = SBX_STDERR };

/* When there is no memory for it, it is not told; nothing else depends on it. */
static void add_news(sbx_sandbox *sb, sbx_stream stream, sbx_slice json) {
  if (!sb->places.freed && sbx__relay_add(&sb->news, stream, json))
    sbx_loop_defer(sb->loop, &sb->news_task);
}

static void on_progress(sbx__places *set, sbx_slice json) {
  sbx_sandbox *sb = sandbox_of(set);
  if (sb->on_progress != NULL)
    add_news(sb, (sbx_stream)PROGRESS, json);
}

static void on_life(sbx__places *set, const sbx__place *place, sbx__life what, const sbx_err *err) {
  sbx_sandbox *sb = sandbox_of(set);
  if (sb->on_life == NULL)
    return;
  sbx_buf buf;
  sbx_buf_init(&buf, SBX__LIFE_MAX);
  sbx__life_write(&buf, place, what, err);
  if (buf.error == SBX_OK)
    add_news(sb, (sbx_stream)LIFE, sbx_buf_slice(&buf));
  sbx_buf_deinit(&buf);
}

static void tell_news(void *arg, sbx_stream stream, sbx_slice json) {
  sbx_sandbox *sb = arg;
  if (sb->places.freed)
    return;
  if (stream == (sbx_stream)LIFE && sb->on_life != NULL)
    sb->on_life(sb->life_arg, json);
  else if (stream == (sbx_stream)PROGRESS && sb->on_progress != NULL)
    sb->on_progress(sb->progress_arg, json);
}

static void on_news_task(sbx_task *task) {
  sbx__relay_flush(
      &((sbx_sandbox *)(void *)((char *)task - offsetof(sbx_sandbox, news_task)))->news);
}

void sbx_sandbox_on_progress(sbx_sandbox *sb, sbx_progress_cb cb, void *arg) {
  sb->on_progress = cb;
  sb->progress_arg = arg;
}

void sbx_sandbox_on_life(sbx_sandbox *sb, sbx_life_cb cb, void *arg) {
  sb->on_life = cb;
  sb->life_arg = arg;
}

static const sbx__place_events place_events = {on_started, on_gone, on_progress, on_life,
                                               on_changed};

/* ---- options ---- */

static int read_limit(uint64_t *out, const sbx_json *options, const char *name, sbx_err *err) {
  const sbx_json *v = sbx_json_get(options, name);
  int64_t ms;
  if (v == NULL)
    return SBX_OK;
  if (!sbx_json_int(v, 1, SBX__MAX_TIMEOUT_MS, &ms))
    return sbx_err_set(err, SBX_EINVAL, "%s must be a whole number of milliseconds from 1 to %d",
                       name, SBX__MAX_TIMEOUT_MS);
  *out = (uint64_t)ms;
  return SBX_OK;
}

static int read_shell(sbx_sandbox *sb, const sbx_json *options, sbx_err *err) {
  const sbx_json *v = sbx_json_get(options, "shell");
  sbx_slice shell = {NULL, 0};
  if (v == NULL)
    return SBX_OK;
  if (!sbx_json_string(v, &shell) || shell.len == 0)
    return sbx_err_set(err, SBX_EINVAL, "shell must be \"bash\", \"sh\" or an absolute path");
  int rc = sbx__check_shell(shell, err);
  if (rc != SBX_OK)
    return rc;
  sb->shell = sbx_strndup(shell.ptr, shell.len);
  return sb->shell != NULL ? SBX_OK : sbx_err_set(err, SBX_ENOMEM, NULL);
}

static int read_common(sbx_sandbox *sb, const sbx_json *options, sbx_err *err) {
  const sbx_json *v = sbx_json_get(options, "onLost");
  sbx_slice on_lost = sbx_slice_str("recreate");
  int rc = read_limit(&sb->exec_timeout_ms, options, "defaultTimeoutMs", err);
  if (rc == SBX_OK)
    rc = read_limit(&sb->places.start_timeout_ms, options, "startTimeoutMs", err);
  if (rc == SBX_OK)
    rc = read_shell(sb, options, err);
  if (rc != SBX_OK)
    return rc;
  if (sb->file_timeout_ms < sb->exec_timeout_ms)
    sb->file_timeout_ms = sb->exec_timeout_ms;
  bool is_text = v == NULL || sbx_json_string(v, &on_lost);
  sb->places.recreate = is_text && sbx_slice_eq_str(on_lost, "recreate");
  if (!sb->places.recreate && !(is_text && sbx_slice_eq_str(on_lost, "reject")))
    return sbx_err_set(err, SBX_EINVAL, "onLost must be \"recreate\" or \"reject\"");
  return SBX_OK;
}

static int configure(sbx_sandbox *sb, sbx_slice options_json, sbx_err *err) {
  sbx_json_doc *doc = NULL;
  sbx_err why;
  int rc = sbx_json_parse_max(&doc, options_json, SIZE_MAX, &why);
  if (rc == SBX_EPROTO)
    return sbx_err_set(err, SBX_EINVAL, "the options are not JSON: %s", why.message);
  if (rc != SBX_OK) {
    sbx_err_copy(err, &why);
    return rc;
  }
  const sbx_json *options = sbx_json_root(doc);
  if (!sbx_json_is_object(options))
    rc = sbx_err_set(err, SBX_EINVAL, "the options must be one JSON object");
  if (rc == SBX_OK)
    rc = read_common(sb, options, err);
  if (rc == SBX_OK)
    rc = sbx_provider_configure(&sb->places.config, sb->provider, sb->loop, options, err);
  sbx_json_free(doc, true);
  return rc;
}

/* ---- new ---- */

int sbx__sandbox_new_with(sbx_sandbox **out, sbx_loop *loop, const sbx_provider *provider,
                          sbx_slice options_json, sbx_err *err) {
  sbx_sandbox *sb = sbx_calloc(1, sizeof *sb);
  if (sb == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  sb->loop = loop;
  sb->provider = provider;
  sb->step = step;
  sb->places.loop = loop;
  sb->places.provider = provider;
  sb->places.events = &place_events;
  sb->exec_timeout_ms = DEFAULT_EXEC_TIMEOUT_MS;
  sb->places.start_timeout_ms = DEFAULT_START_TIMEOUT_MS;
  sb->places.late_timeout_ms = LATE_TIMEOUT_MS;
  sb->places.hurry_timeout_ms = HURRY_TIMEOUT_MS;
  sb->file_timeout_ms = MIN_FILE_TIMEOUT_MS;
  sb->probe_timeout_ms = PROBE_TIMEOUT_MS;
  sb->places.delete_timeout_ms = DELETE_TIMEOUT_MS;
  sb->places.search_timeout_ms = SEARCH_TIMEOUT_MS;
  sbx_timer_init(&sb->grace, loop, on_grace_over);
  sbx__relay_init(&sb->news, loop, tell_news, sb);
  sbx_task_init(&sb->news_task, on_news_task);
  int rc = configure(sb, options_json, err);
  if (rc != SBX_OK) {
    if (err != NULL && err->provider == NULL)
      err->provider = provider->id;
    sbx_free(sb->shell);
    sbx_free(sb);
    return rc;
  }
  *out = sb;
  return SBX_OK;
}

int sbx_sandbox_new(sbx_sandbox **out, sbx_loop *loop, const char *provider, sbx_slice options_json,
                    sbx_err *err) {
  const sbx_provider *found = sbx_provider_find(provider);
  if (found != NULL)
    return sbx__sandbox_new_with(out, loop, found, options_json, err);
  sbx_err_set(err, SBX_EUNSUPPORTED, "no such provider: ");
  sbx_err_append_remote(err, sbx_slice_str(provider));
  return SBX_EUNSUPPORTED;
}

uint32_t sbx_sandbox_capabilities(const sbx_sandbox *sb) {
  return sbx_provider_caps(sb->provider, sb->places.config);
}

size_t sbx_sandbox_isolation(const sbx_sandbox *sb, char *out, size_t room) {
  size_t len = 0;
  sbx_buf buf;
  if (sb->places.current == NULL || sb->provider->session_isolation == NULL ||
      room < SBX_ISOLATION_MAX)
    return 0;
  sbx_buf_init(&buf, SBX_ISOLATION_MAX);
  sb->provider->session_isolation(sb->places.current->session, &buf);
  if (buf.error == SBX_OK && buf.len > 0) {
    len = buf.len;
    memcpy(out, buf.ptr, len);
  }
  sbx_buf_deinit(&buf);
  return len;
}

const char *sbx_sandbox_id(const sbx_sandbox *sb) {
  return sb->places.current != NULL ? sb->provider->session_id(sb->places.current->session) : NULL;
}
