/* exec.c - one command from its request to its report, and the kill.
 *
 * One request runs the command and brings its whole report. Beside it, when somebody listens to the
 * output, further requests fetch what has been printed so far; the report then only adds the rest.
 * The same requests bring what was too much for a report.
 *
 * That one request is silent for as long as the command is, which not everything on its way bears:
 * load balancers cut it off after a minute or so. The command runs on then, and its report is asked
 * for by further requests. So what a command leaves in the sandbox stays until its report is here;
 * the next command's request takes it away.
 *
 * Invariant: the request that runs the command is sent once; what is fetched is counted, so that
 * every byte reaches the collector once, in order. */
#include "providers/daytona/daytona.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/rand.h"

#include <string.h>

/* In a report come at most so many bytes of each stream; the rest is fetched. */
#define REPORT_MAX ((size_t)16 << 20)
#define FETCH_MOST ((size_t)1 << 20)
#define REPLY_ROOM ((size_t)1 << 20)

enum {
  FIRST_FETCH_MS = 200, /* a quick command needs none */
  FETCH_PAUSE_MS = 40,
  REPLY_TIME_MS = 60000,             /* for what takes the sandbox seconds at most */
  MANY_LEFT = SBX__DAYTONA_LEFT / 2, /* folders, which then go without a next command */
};

/* Of requests beside a command, which has run once: it is not given up for a hitch. */
static const sbx_repeat_rule beside_command = {
    .first_pause_ms = 250, .most_pause_ms = 4000, .most = 5, .timeouts = true};

typedef struct exec_op exec_op;

/* Fetches while the command runs. */
typedef struct follow_op {
  sbx_steps steps;
  exec_op *exec;
  sbx_repeat repeat;
} follow_op;

struct exec_op {
  sbx_steps steps;
  sbx_output *out;
  sbx_exec_status *status;
  char tag[SBX__DAYTONA_TAG + 1];
  sbx__daytona_share share;
  bool keep;
  bool leaves;      /* its folder may be in the sandbox, and goes on the list of those */
  uint64_t carried; /* so far the list of the session went along with its request */
  sbx_op *follow;
  uint64_t added[2]; /* bytes of each stream that reached the collector */
  sbx__daytona_report report;
  sbx_err broken;    /* why its own request brought no report */
  sbx_repeat repeat; /* of requests after it */
};

static exec_op *exec_of(sbx_steps *steps) {
  return (exec_op *)(void *)steps;
}

/* ---- folders that may go -------------------------------------------------------------------- */

static uint64_t last_left(const sbx__daytona_left *left) {
  return left->gone + left->count;
}

static void take_off(sbx__daytona_left *left, uint64_t until) {
  size_t off = until > left->gone ? (size_t)(until - left->gone) : 0;
  if (off > left->count)
    off = left->count;
  left->count -= off;
  left->gone += off;
  memmove(left->tags, left->tags + off, left->count * sizeof *left->tags);
}

/* A full list loses its oldest one, whose folder stays. */
static void put_on(sbx__daytona_left *left, const char *tag) {
  if (left->count == SBX__DAYTONA_LEFT)
    take_off(left, left->gone + 1);
  memcpy(left->tags[left->count++], tag, sizeof *left->tags);
}

/* ---- tags ----------------------------------------------------------------------------------- */

static int take_tag(sbx__daytona_spare *spare, char *tag, sbx_err *err) {
  if (spare->count == 0) {
    int rc = sbx_random_hex(spare->digits, sizeof spare->digits - 1, err);
    if (rc != SBX_OK)
      return rc;
    spare->count = SBX__DAYTONA_SPARE;
  }
  memcpy(tag, spare->digits + --spare->count * SBX__DAYTONA_TAG, SBX__DAYTONA_TAG);
  tag[SBX__DAYTONA_TAG] = '\0';
  return SBX_OK;
}

/* ---- output --------------------------------------------------------------------------------- */

/* Adds bytes that begin at `from`, less what is there already. */
static void add(exec_op *exec, int stream, uint64_t from, const sbx_buf *bytes) {
  uint64_t known = exec->added[stream] - from;
  sbx_slice fresh = sbx_buf_slice(bytes);
  if (from > exec->added[stream] || known >= fresh.len)
    return;
  fresh = sbx_slice_skip(fresh, (size_t)known);
  exec->added[stream] += fresh.len;
  sbx_output_add(exec->out, stream == 0 ? SBX_STDOUT : SBX_STDERR, fresh);
}

static void add_report(exec_op *exec, const sbx__daytona_report *report) {
  for (int i = 0; i < 2; i++) {
    add(exec, i, 0, &report->head[i]);
    uint64_t came = report->head[i].len + report->tail[i].len;
    if (exec->keep || came >= report->size[i])
      continue;
    sbx_output_gap(exec->out, i == 0 ? SBX_STDOUT : SBX_STDERR, report->size[i] - came);
    sbx_output_add(exec->out, i == 0 ? SBX_STDOUT : SBX_STDERR, sbx_buf_slice(&report->tail[i]));
  }
}

/* ---- scripts beside the command -------------------------------------------------------------- */

void sbx__daytona_send_script(sbx_steps *steps, sbx_buf *json, sbx__daytona_sending how,
                              sbx_steps_reply on_reply) {
  const sbx_session *session = steps->session;
  sbx_buf url;
  int rc = json->error;
  sbx_buf_init(&url, 0);
  if (rc == SBX_OK)
    rc = sbx__daytona_tool_url(&url, session, "/process/execute", sbx_slice_of(NULL, 0));
  if (rc == SBX_OK) {
    sbx_http_request request = {
        .method = "POST",
        .url = sbx_buf_slice(&url),
        .headers = &session->config->json_headers,
        .take_body = json,
        .repeatable = !how.once,
        .timeout_ms = how.timeout_ms,
        .max_bytes = how.max_bytes,
    };
    sbx_steps_send(steps, session->config->http, &request, on_reply);
  } else {
    sbx_steps_finish_code(steps, rc);
  }
  sbx_buf_deinit(&url);
  sbx_buf_deinit(json);
}

/* Room for a report. */
static size_t reply_room(const exec_op *exec) {
  return (exec->share.head + exec->share.tail) * 3 + REPLY_ROOM; /* base64 of two streams */
}

static void send_beside(exec_op *exec, sbx_steps *steps, sbx_buf *json, sbx_steps_reply on_reply) {
  sbx__daytona_sending how = {.timeout_ms = REPLY_TIME_MS, .max_bytes = reply_room(exec)};
  sbx__daytona_send_script(steps, json, how, on_reply);
}

int sbx__daytona_take_report(sbx__daytona_report *report, const sbx_http *reply, const char *tag,
                             const char *verb, sbx_err *err) {
  sbx_json_doc *doc = NULL;
  sbx_slice printed;
  sbx__daytona_report_init(report);
  int rc = sbx__daytona_check_tool(err, reply, verb);
  if (rc == SBX_OK)
    rc = sbx__daytona_read_reply(report, reply, tag, &printed, &doc, err);
  sbx_json_free(doc, false);
  return rc;
}

/* ---- fetching ------------------------------------------------------------------------------- */

static void send_fetch(sbx_steps *steps, exec_op *exec, bool over, sbx_steps_reply on_reply) {
  sbx_buf json;
  sbx__daytona_write_fetch(&json, exec->steps.session, exec->tag, exec->added, FETCH_MOST, over);
  send_beside(exec, steps, &json, on_reply);
}

/* Adds what a fetch has brought. */
static int take_fetched(exec_op *exec, const sbx_http *reply, sbx_err *err) {
  sbx__daytona_report report;
  int rc =
      sbx__daytona_take_report(&report, reply, exec->tag, "fetch the output of a command", err);
  uint64_t before[2] = {exec->added[0], exec->added[1]};
  for (int i = 0; i < 2 && rc == SBX_OK; i++)
    add(exec, i, before[i], &report.head[i]);
  sbx__daytona_report_deinit(&report);
  return rc;
}

static void follow_on(sbx_steps *steps);

static void on_followed(sbx_steps *steps, sbx_http *reply) {
  follow_op *follow = (follow_op *)(void *)steps;
  sbx_err err;
  /* What cannot be had now may come later, and comes with the report at the latest. */
  bool came = take_fetched(follow->exec, reply, &err) == SBX_OK;
  uint64_t pause_ms = FETCH_PAUSE_MS;
  if (came)
    follow->repeat = (sbx_repeat){0};
  else
    pause_ms = sbx_repeat_pause(&follow->repeat, &beside_command);
  sbx_steps_wait(steps, pause_ms, follow_on);
}

static void follow_on(sbx_steps *steps) {
  send_fetch(steps, ((follow_op *)(void *)steps)->exec, false, on_followed);
}

static void on_follow_done(sbx_op *op, void *arg) {
  exec_op *exec = arg;
  (void)op;
  exec->follow = NULL;
}

static void start_following(exec_op *exec) {
  sbx_session *session = exec->steps.session;
  follow_op *follow =
      sbx_steps_new(sizeof *follow, session, session->config->loop, on_follow_done, exec);
  if (follow == NULL)
    return; /* all of it comes with the report */
  exec->follow = &follow->steps.op;
  follow->exec = exec;
  sbx_steps_wait(&follow->steps, FIRST_FETCH_MS, follow_on);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void fetch_rest(exec_op *exec);
static void on_pause_in_rest(sbx_steps *steps);

static void on_forgotten(sbx_steps *steps, sbx_http *reply) {
  exec_op *exec = exec_of(steps);
  sbx__daytona_report report;
  sbx_err err;
  if (sbx__daytona_take_report(&report, reply, exec->tag, "forget commands", &err) == SBX_OK)
    take_off(&steps->session->left, exec->carried);
  sbx__daytona_report_deinit(&report);
  sbx_steps_finish(steps, NULL);
}

/* All is here. More than a report's worth should not wait in the sandbox for the next command, nor
 * should the folders of many commands. */
static void finish_command(exec_op *exec) {
  const sbx__daytona_report *report = &exec->report;
  sbx__daytona_left *left = &exec->steps.session->left;
  size_t share = exec->share.head + exec->share.tail;
  bool large = exec->keep && (report->size[0] > share || report->size[1] > share);
  sbx_buf json;
  uint64_t first = left->asked > left->gone ? left->asked : left->gone;
  if (!large && last_left(left) - first < MANY_LEFT) {
    sbx_steps_finish(&exec->steps, NULL);
    return;
  }
  put_on(left, exec->tag);
  exec->leaves = false;
  exec->carried = left->asked = last_left(left);
  sbx__daytona_write_forget(&json, exec->steps.session, exec->tag);
  send_beside(exec, &exec->steps, &json, on_forgotten);
}

static void on_rest(sbx_steps *steps, sbx_http *reply) {
  exec_op *exec = exec_of(steps);
  sbx_err err;
  uint64_t before = exec->added[0] + exec->added[1];
  int rc = take_fetched(exec, reply, &err);
  if (rc == SBX_OK && exec->added[0] + exec->added[1] == before)
    rc = sbx_err_set(&err, SBX_EPROTO, "daytona: the end of the command's output is missing");
  if (rc == SBX_OK) {
    exec->repeat = (sbx_repeat){0};
    fetch_rest(exec);
  } else if (!sbx_steps_repeat(steps, &exec->repeat, &beside_command, NULL, &err,
                               on_pause_in_rest)) {
    sbx_steps_finish(steps, &err);
  }
}

/* Nothing more is wanted. */
static void skip_rest(exec_op *exec) {
  for (int i = 0; i < 2; i++) {
    uint64_t rest = exec->report.size[i] - exec->added[i];
    if (exec->added[i] < exec->report.size[i])
      sbx_output_skip(exec->out, i == 0 ? SBX_STDOUT : SBX_STDERR, rest);
    exec->added[i] = exec->report.size[i];
  }
  finish_command(exec);
}

static void fetch_rest(exec_op *exec) {
  const sbx__daytona_report *report = &exec->report;
  bool more = exec->added[0] < report->size[0] || exec->added[1] < report->size[1];
  if (exec->keep && more && sbx_output_is_full(exec->out))
    skip_rest(exec);
  else if (exec->keep && more)
    send_fetch(&exec->steps, exec, true, on_rest);
  else
    finish_command(exec);
}

static void on_pause_in_rest(sbx_steps *steps) {
  fetch_rest(exec_of(steps));
}

static bool is_over(const sbx__daytona_report *report) {
  return report->end == SBX__DAYTONA_RAN || report->end == SBX__DAYTONA_LATE ||
         report->end == SBX__DAYTONA_STOPPED || report->end == SBX__DAYTONA_UNSTORED;
}

/* The report is one of a command that is over. */
static void take_end(exec_op *exec) {
  const sbx__daytona_report *report = &exec->report;
  sbx_err err;
  sbx_op_drop(&exec->follow, SBX_ECANCELED);
  take_off(&exec->steps.session->left, exec->carried);
  if (report->end == SBX__DAYTONA_UNSTORED) {
    exec->status->started = false;
    sbx_err_set(&err, SBX_EPROVIDER,
                "daytona: the sandbox cannot store the command in /tmp; is its disk full, or is "
                "the program base64 missing?");
    sbx_steps_finish(&exec->steps, &err);
    return;
  }
  exec->status->outcome = SBX_EXITED;
  exec->status->exit_code = report->exit_code;
  exec->status->limit_kept = report->end == SBX__DAYTONA_LATE;
  exec->status->tree_gone = report->tree_gone;
  add_report(exec, report);
  fetch_rest(exec);
}

/* There is no report: whatever took the text did not run our program to its end. */
static int explain(exec_op *exec, const sbx_json *root, sbx_slice printed, sbx_err *err) {
  int64_t code = 0;
  bool unstarted = (sbx_json_int(sbx_json_get(root, "exitCode"), -1, -1, &code) ||
                    sbx_json_int(sbx_json_get(root, "code"), -1, -1, &code)) &&
                   err->code == SBX_EPROTO;
  if (unstarted && sbx_slice_starts_with(printed, sbx_slice_str("chdir "))) {
    exec->status->started = false;
    sbx_err_set(err, SBX_EINVAL, "daytona: cannot run in this working directory: ");
    sbx_err_append_remote(err, printed);
    sbx_err_append(err, SBX__CWD_ADVICE);
  } else if (unstarted && (sbx_slice_starts_with(printed, sbx_slice_str("exec: ")) ||
                           sbx_slice_starts_with(printed, sbx_slice_str("fork/exec ")))) {
    exec->status->started = false;
    sbx_err_set(err, SBX_EPROVIDER, "daytona: the sandbox has no shell that runs: ");
    sbx_err_append_remote(err, printed);
  }
  return err->code;
}

/* The toolbox's own limit has passed, after the program's: it was kept from running, or killed. */
static void finish_late(exec_op *exec) {
  exec->status->outcome = SBX_EXITED;
  exec->status->exit_code = 124;
  exec->status->limit_kept = true;
  sbx_steps_finish(&exec->steps, NULL);
}

/* ---- a request that broke off ---------------------------------------------------------------- */

static void ask(sbx_steps *steps);

static void on_asked(sbx_steps *steps, sbx_http *reply) {
  exec_op *exec = exec_of(steps);
  const sbx__daytona_report *report = &exec->report;
  sbx_err err;
  sbx__daytona_report_deinit(&exec->report);
  int rc = sbx__daytona_take_report(&exec->report, reply, exec->tag, "ask for the end of a command",
                                    &err);
  if (rc == SBX_OK && report->end == SBX__DAYTONA_GOING) {
    exec->repeat = (sbx_repeat){0};
    sbx_steps_wait(steps, FETCH_PAUSE_MS, ask);
  } else if (rc == SBX_OK && report->end == SBX__DAYTONA_ENDED) {
    sbx_err_append(&exec->broken, "; what ran the command in the sandbox was killed");
    sbx_steps_finish(steps, &exec->broken);
  } else if (rc == SBX_OK && is_over(report)) {
    exec->repeat = (sbx_repeat){0};
    take_end(exec);
  } else if (rc == SBX_OK ||
             !sbx_steps_repeat(steps, &exec->repeat, &beside_command, NULL, &err, ask)) {
    /* It has not begun, or there is nobody to ask: whether the sandbox is gone is for others. */
    sbx_steps_finish(steps, &exec->broken);
  }
}

static void ask(sbx_steps *steps) {
  exec_op *exec = exec_of(steps);
  sbx_buf json;
  sbx__daytona_write_ask(&json, steps->session, exec->tag, exec->share);
  send_beside(exec, steps, &json, on_asked);
}

/* The command may run, or have run: its report is in the sandbox then. */
static void go_on(exec_op *exec, const sbx_err *why) {
  sbx_err_copy(&exec->broken, why);
  ask(&exec->steps);
}

/* ---- the answer ----------------------------------------------------------------------------- */

static void on_ran(sbx_steps *steps, sbx_http *reply) {
  exec_op *exec = exec_of(steps);
  sbx_json_doc *doc = NULL;
  sbx_slice printed;
  sbx_err err;
  int rc = sbx__daytona_check_tool(&err, reply, "run a command");
  if (reply->op.err.code != SBX_OK)
    exec->status->started = reply->sent_maybe;
  else
    exec->status->started = rc == SBX_OK || !err.no_effect;
  if (rc != SBX_OK && reply->op.err.code == SBX_OK && reply->status == 408) {
    finish_late(exec);
    return;
  }
  if (exec->status->started &&
      (reply->op.err.code == SBX_ENET || (reply->op.err.code == SBX_OK && reply->status >= 500))) {
    go_on(exec, &err);
    return;
  }
  if (rc == SBX_OK) {
    rc = sbx__daytona_read_reply(&exec->report, reply, exec->tag, &printed, &doc, &err);
    if (rc != SBX_OK) {
      rc = explain(exec, doc != NULL ? sbx_json_root(doc) : NULL, printed, &err);
      err.status = reply->status;
    }
  }
  sbx_json_free(doc, false);
  if (rc == SBX_OK && is_over(&exec->report)) {
    take_end(exec);
  } else if (rc == SBX_OK) {
    sbx_err_set(&err, SBX_ENET,
                "daytona: run a command: a connection behind the proxy broke, and the request was "
                "delivered twice; it was not run a second time");
    go_on(exec, &err);
  } else {
    sbx_steps_finish(steps, &err);
  }
}

/* ---- run ------------------------------------------------------------------------------------ */

static void end_early(sbx_steps *steps, int reason) {
  exec_op *exec = exec_of(steps);
  sbx_op_drop(&exec->follow, reason);
  if (reason == SBX_ECLOSED)
    exec->leaves = false; /* the session may be gone */
  else if (steps->request != NULL)
    exec->status->started = true; /* the request cannot be called back */
}

static void let_go(sbx_steps *steps) {
  exec_op *exec = exec_of(steps);
  sbx_op_drop(&exec->follow, SBX_ECANCELED);
  if (exec->leaves && exec->status->started)
    put_on(&steps->session->left, exec->tag);
}

static void release(sbx_steps *steps) {
  sbx__daytona_report_deinit(&exec_of(steps)->report);
}

static void choose_share(exec_op *exec, const sbx_exec_spec *spec) {
  size_t most = spec->max_output_bytes;
  exec->keep = sbx_output_is_watched(exec->out) || most > REPORT_MAX;
  if (exec->keep)
    exec->share = (sbx__daytona_share){FETCH_MOST, 0};
  else if (spec->truncate == SBX_KEEP_HEAD_AND_TAIL)
    exec->share = (sbx__daytona_share){most / 2, most - most / 2};
  else
    exec->share = (sbx__daytona_share){most, 0};
}

static void send_command(exec_op *exec, const sbx_exec_spec *spec) {
  const sbx_session *session = exec->steps.session;
  sbx__daytona_sending how = {
      .once = true, .timeout_ms = SBX_NO_TIMEOUT, .max_bytes = reply_room(exec)};
  sbx_buf json;
  sbx_err err;
  int rc = sbx__daytona_write_command(&json, session, spec, exec->tag, exec->share, exec->keep);
  if (rc == SBX_ETOOBIG) {
    sbx_buf_deinit(&json);
    sbx_err_set(&err, rc, "the command is too large; write what is large to a file");
    sbx_steps_finish(&exec->steps, &err);
    return;
  }
  exec->carried = last_left(&session->left);
  exec->leaves = true;
  sbx__daytona_send_script(&exec->steps, &json, how, on_ran);
}

sbx_op *sbx__daytona_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                          sbx_exec_status *status, sbx_op_done done, void *arg) {
  sbx_err err;
  exec_op *exec = sbx_steps_new(sizeof *exec, session, session->config->loop, done, arg);
  if (exec == NULL)
    return NULL;
  exec->out = out;
  exec->status = status;
  sbx__daytona_report_init(&exec->report);
  exec->steps.release = release;
  exec->steps.ending = end_early;
  exec->steps.let_go = let_go;
  choose_share(exec, spec);
  int rc = take_tag(&session->spare, exec->tag, &err);
  if (rc == SBX_OK)
    send_command(exec, spec);
  else
    sbx_steps_finish(&exec->steps, &err);
  if (exec->keep && sbx_output_is_watched(out) && !exec->steps.op.finished)
    start_following(exec);
  return &exec->steps.op;
}

/* ---- kill ----------------------------------------------------------------------------------- */

typedef struct kill_op {
  sbx_steps steps;
  char tag[SBX__DAYTONA_TAG + 1];
} kill_op;

static void on_killed(sbx_steps *steps, sbx_http *reply) {
  kill_op *kill = (kill_op *)(void *)steps;
  sbx__daytona_report report;
  sbx_err err;
  int rc = sbx__daytona_take_report(&report, reply, kill->tag, "end a command", &err);
  sbx__daytona_report_deinit(&report);
  sbx_steps_finish(steps, rc == SBX_OK ? NULL : &err);
}

sbx_op *sbx__daytona_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg) {
  sbx_buf json;
  kill_op *kill = sbx_steps_new(sizeof *kill, session, session->config->loop, done, arg);
  if (kill == NULL)
    return NULL;
  memcpy(kill->tag, ((exec_op *)(void *)exec)->tag, sizeof kill->tag);
  sbx__daytona_write_kill(&json, session, kill->tag);
  sbx__daytona_send_script(&kill->steps, &json,
                           (sbx__daytona_sending){.timeout_ms = SBX_NO_TIMEOUT}, on_killed);
  return &kill->steps.op;
}
