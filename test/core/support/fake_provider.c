/* fake_provider.c - see the header.
 *
 * Invariant: it is strict where a real provider may crash: a session that is freed under a live
 * operation, a kill of one that has ended, and a stop inside of the feeding of output fail the
 * test. */
#include "fake_provider.h"

#include "core/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct sbx_config {
  int unused;
};

struct sbx_session {
  int number;
  int live_ops;
  bool open;
  char id[24];
};

typedef struct fake_op {
  sbx_op op;
  fake_verb verb;
  fake_plan plan;
  sbx_session *session;
  sbx_task task;
  bool feeding; /* inside of sbx_output_add() */
  struct fake_op *older, *newer;
  sbx_op *victim; /* kill */
  sbx_output *output;
  sbx_exec_status *status;
  sbx_liveness *liveness;
  sbx_buf *buf;
  sbx_listing *listing;
  sbx_stats *stats; /* of a part */
} fake_op;

fake_state fake;
static fake_op *newest;

static const char *const verb_names[FAKE_VERBS] = {"open", "close", "probe", "exec", "kill",
                                                   "put",  "get",   "list",  "path", "control"};

/* ---- the end of an operation ---- */

static int write_listing(sbx_listing *listing) {
  listing->entries = sbx_calloc(1, sizeof *listing->entries);
  if (listing->entries == NULL)
    return SBX_ENOMEM;
  listing->count = 1;
  listing->entries[0].size = 7;
  listing->entries[0].path = sbx_strndup("a/b.txt", 7);
  return listing->entries[0].path != NULL ? SBX_OK : SBX_ENOMEM;
}

static int write_part(sbx_stats *stats) {
  sbx_err err;
  sbx_stat stat = {.size = fake.size};
  sbx_buf_init(&stats->part, SIZE_MAX);
  int rc = sbx_buf_append_str(&stats->part, fake.content);
  return rc == SBX_OK ? sbx_stats_add(stats, &stat, sbx_slice_str(fake.stamp), &err) : rc;
}

static void finish(fake_op *f, int code) {
  sbx_err err;
  if (f->verb == FAKE_EXEC)
    *f->status = fake.status;
  if (code == SBX_OK && f->verb == FAKE_OPEN)
    f->session->open = true;
  if (code == SBX_OK && f->verb == FAKE_PROBE)
    *f->liveness = fake.liveness;
  if (code == SBX_OK && f->verb == FAKE_GET)
    code = sbx_buf_append_str(f->buf, fake.content);
  if (code == SBX_OK && f->verb == FAKE_LIST)
    code = write_listing(f->listing);
  if (code == SBX_OK && f->stats != NULL)
    code = write_part(f->stats);
  sbx_err_set(&err, code, "fake %s failed", verb_names[f->verb]);
  err.no_effect = f->plan.no_effect;
  err.retry_after_ms = f->plan.retry_after_ms;
  sbx_op_finish(&f->op, code != SBX_OK ? &err : NULL);
}

static fake_op *find_live(const sbx_op *op) {
  fake_op *f = newest;
  while (f != NULL && &f->op != op)
    f = f->older;
  return f != NULL && !f->op.finished ? f : NULL;
}

static void succeed_kill(fake_op *f) {
  fake_op *victim = find_live(f->victim);
  finish(f, SBX_OK);
  if (victim == NULL || fake.kill_is_ignored)
    return;
  fake.status.outcome = SBX_SIGNALLED;
  fake.status.signal_number = 9;
  fake.status.signal_name = "SIGKILL";
  finish(victim, SBX_OK);
}

static void end(fake_op *f, int code) {
  if (f->verb == FAKE_KILL && code == SBX_OK)
    succeed_kill(f);
  else
    finish(f, code);
}

static void feed(fake_op *f) {
  f->feeding = true;
  sbx_output_add(f->output, SBX_STDOUT, sbx_slice_str(fake.output));
  f->feeding = false;
}

static void act(sbx_task *task) {
  fake_op *f = (fake_op *)(void *)((char *)task - offsetof(fake_op, task));
  if (f->verb == FAKE_EXEC && fake.output != NULL)
    feed(f);
  if (!f->plan.hang)
    end(f, f->plan.code);
}

static fake_op *oldest_of(fake_verb verb) {
  fake_op *oldest = NULL;
  for (fake_op *f = newest; f != NULL; f = f->older) {
    if (f->verb == verb && !f->op.finished)
      oldest = f;
  }
  return oldest;
}

bool fake_lives(fake_verb verb) {
  return oldest_of(verb) != NULL;
}

void fake_release(fake_verb verb, int code) {
  fake_op *oldest = oldest_of(verb);
  assert_non_null(oldest);
  end(oldest, code);
}

/* ---- the class ---- */

static void abort_op(sbx_op *op, int reason) {
  fake_op *f = (fake_op *)(void *)op;
  assert_false(f->feeding);
  if (!f->plan.deaf || reason == SBX_ECLOSED)
    finish(f, reason);
}

static void destroy_op(sbx_op *op) {
  fake_op *f = (fake_op *)(void *)op;
  sbx_task_cancel(&f->task);
  if (f->newer != NULL)
    f->newer->older = f->older;
  else
    newest = f->older;
  if (f->older != NULL)
    f->older->newer = f->newer;
  f->session->live_ops--;
  fake.live_ops--;
  sbx_free(f);
}

static const sbx_op_class fake_class = {"fake", abort_op, destroy_op};

static sbx_loop *fake_loop;

static fake_op *start(fake_verb verb, sbx_session *session, sbx_op_done done, void *arg) {
  fake_op *f = sbx_calloc(1, sizeof *f);
  if (f == NULL)
    return NULL;
  f->verb = verb;
  f->session = session;
  f->older = newest;
  if (newest != NULL)
    newest->newer = f;
  newest = f;
  if (fake.planned[verb] > 0) {
    f->plan = fake.plans[verb][0];
    memmove(fake.plans[verb], fake.plans[verb] + 1, sizeof fake.plans[verb] - sizeof f->plan);
    fake.planned[verb]--;
  }
  fake.count[verb]++;
  fake.live_ops++;
  session->live_ops++;
  size_t at = strlen(fake.log);
  snprintf(fake.log + at, sizeof fake.log - at, "%s%d ", verb_names[verb], session->number);
  sbx_op_init(&f->op, &fake_class, fake_loop, done, arg);
  sbx_task_init(&f->task, act);
  sbx_loop_defer(fake_loop, &f->task);
  return f;
}

/* ---- the table ---- */

static const char *const options[] = {"flavour", NULL};

static int configure(sbx_config *config, sbx_loop *loop, const sbx_json *json, sbx_err *err) {
  (void)config, (void)json, (void)err;
  fake_loop = loop;
  fake.live_configs++;
  return SBX_OK;
}

static void config_free(sbx_config *config) {
  fake.live_configs--;
  sbx_free(config);
}

static sbx_session *session_new(sbx_config *config) {
  sbx_session *session = sbx_calloc(1, sizeof *session);
  assert_non_null(config);
  if (session == NULL)
    return NULL;
  session->number = ++fake.sessions;
  snprintf(session->id, sizeof session->id, "fake-%d", session->number);
  fake.live_sessions++;
  return session;
}

static void session_free(sbx_session *session) {
  assert_int_equal(session->live_ops, 0);
  fake.live_sessions--;
  sbx_free(session);
}

static const char *session_id(const sbx_session *session) {
  return session->open ? session->id : NULL;
}

static const char *service(const sbx_config *config) {
  (void)config;
  return "https://api.fake.test";
}

static bool session_owned(const sbx_session *session) {
  (void)session;
  return !fake.attached;
}

static sbx_op *start_open(sbx_session *session, sbx_op_done done, void *arg) {
  fake_op *f = start(FAKE_OPEN, session, done, arg);
  return f != NULL ? &f->op : NULL;
}

static sbx_op *start_close(sbx_session *session, sbx_op_done done, void *arg) {
  fake_op *f = start(FAKE_CLOSE, session, done, arg);
  return f != NULL ? &f->op : NULL;
}

static sbx_op *start_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg) {
  fake_op *f = start(FAKE_PROBE, session, done, arg);
  if (f == NULL)
    return NULL;
  f->liveness = out;
  return &f->op;
}

static void keep(char *to, sbx_slice from) {
  snprintf(to, 64, "%.*s", (int)from.len, from.len > 0 ? from.ptr : "");
}

static sbx_op *start_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                          sbx_exec_status *status, sbx_op_done done, void *arg) {
  fake_op *f = start(FAKE_EXEC, session, done, arg);
  if (f == NULL)
    return NULL;
  f->output = out;
  f->status = status;
  keep(fake.text, spec->text);
  keep(fake.cwd, spec->cwd);
  keep(fake.stdin_bytes, spec->stdin_bytes);
  if (spec->argc > 0)
    keep(fake.argv, spec->argv[spec->argc - 1]);
  if (spec->env_count > 0)
    keep(fake.env, spec->env[spec->env_count - 1].value);
  fake.timeout_ms = spec->timeout_ms;
  fake.max_output_bytes = spec->max_output_bytes;
  return &f->op;
}

static sbx_op *start_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg) {
  assert_non_null(find_live(exec));
  assert_false(find_live(exec)->feeding);
  fake_op *f = start(FAKE_KILL, session, done, arg);
  if (f == NULL)
    return NULL;
  f->victim = exec;
  return &f->op;
}

static sbx_op *start_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                         void *arg) {
  fake_op *f = start(FAKE_PUT, session, done, arg);
  if (f == NULL)
    return NULL;
  keep(fake.path, path);
  keep(fake.bytes, bytes);
  return &f->op;
}

static sbx_op *start_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                         void *arg) {
  fake_op *f = start(FAKE_GET, session, done, arg);
  if (f == NULL)
    return NULL;
  keep(fake.path, path);
  f->buf = out;
  return &f->op;
}

static sbx_op *start_list(sbx_session *session, size_t max_entries, sbx_listing *out,
                          sbx_op_done done, void *arg) {
  fake_op *f = start(FAKE_LIST, session, done, arg);
  (void)max_entries;
  if (f == NULL)
    return NULL;
  f->listing = out;
  return &f->op;
}

static sbx_op *start_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                          sbx_op_done done, void *arg) {
  static const char *const verbs[] = {"stat", "list", "remove", "move",
                                      "make", "part", "join",   "take"};
  fake_op *f = start(FAKE_PATH, session, done, arg);
  if (f == NULL)
    return NULL;
  size_t at = strlen(fake.paths);
  snprintf(fake.paths + at, sizeof fake.paths - at, "%s %.*s %.*s %llu %zu;", verbs[request->verb],
           (int)request->path.len, request->path.ptr, (int)request->to.len,
           request->to.len > 0 ? request->to.ptr : "", (unsigned long long)request->offset,
           request->length);
  f->stats = request->verb == SBX_PATH_PART ? out : NULL;
  return &f->op;
}

static sbx_op *start_control(sbx_session *session, sbx_control control, uint64_t seconds,
                             sbx_op_done done, void *arg) {
  fake_op *f = start(FAKE_CONTROL, session, done, arg);
  if (f == NULL)
    return NULL;
  fake.control = control;
  fake.seconds = seconds;
  return &f->op;
}

static const sbx_provider fresh = {
    .id = "fake",
    .caps = SBX_CAP_SEPARATE_STREAMS | SBX_CAP_STDIN | SBX_CAP_CWD | SBX_CAP_KILL | SBX_CAP_LIST |
            SBX_CAP_PATHS | SBX_CAP_PARTS | SBX_CAP_LIFETIME | SBX_CAP_PAUSE,
    .limit_margin_ms = 0,
    .kill_budget_ms = 10000,
    .options = options,
    .config_size = sizeof(sbx_config),
    .configure = configure,
    .config_free = config_free,
    .session_new = session_new,
    .session_free = session_free,
    .session_id = session_id,
    .service = service,
    .session_owned = session_owned,
    .open = start_open,
    .close = start_close,
    .probe = start_probe,
    .exec = start_exec,
    .kill = start_kill,
    .put = start_put,
    .get = start_get,
    .list = start_list,
    .at_path = start_path,
    .control = start_control,
};

sbx_provider fake_provider;

void fake_reset(void) {
  fake_provider = fresh;
  fake = (fake_state){
      .status = {.outcome = SBX_EXITED, .started = true, .tree_gone = true},
      .content = "content",
      .stamp = "stamp",
      .size = 7,
      .liveness = SBX_ALIVE,
  };
}

void fake_next(fake_verb verb, fake_plan plan) {
  assert_true(fake.planned[verb] < sizeof fake.plans[verb] / sizeof *fake.plans[verb]);
  fake.plans[verb][fake.planned[verb]++] = plan;
}
