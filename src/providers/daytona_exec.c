/* daytona_exec.c - one command from its request to its report, and the kill.
 *
 * One request runs the command and brings its whole report. Beside it, when somebody listens to the
 * output, further requests fetch what has been printed so far; the report then only adds the rest.
 * The same requests bring what was too much for a report.
 *
 * Invariant: the request that runs the command is sent once; what is fetched is counted, so that
 * every byte reaches the collector once, in order. */
#include "providers/daytona.h"

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
};

typedef struct exec_op exec_op;

/* Fetches while the command runs. */
typedef struct follow_op {
  sbx_steps steps;
  exec_op *exec;
} follow_op;

struct exec_op {
  sbx_steps steps;
  sbx_output *out;
  sbx_exec_status *status;
  char tag[SBX__DAYTONA_TAG + 1];
  sbx__daytona_share share;
  bool keep;
  sbx_op *follow;
  uint64_t added[2]; /* bytes of each stream that reached the collector */
  sbx__daytona_report report;
};

static exec_op *exec_of(sbx_steps *steps) {
  return (exec_op *)(void *)steps;
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

void sbx__daytona_send_script(sbx_steps *steps, sbx_buf *json, sbx_steps_reply on_reply) {
  sbx_buf url;
  sbx__daytona_tool_url(&url, steps->session, "/process/execute", sbx_slice_of(NULL, 0));
  sbx__daytona_send(steps, "POST", &url, json, true, on_reply);
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

static void send_fetch(sbx_steps *steps, exec_op *exec, bool last, sbx_steps_reply on_reply) {
  sbx_buf json;
  sbx__daytona_write_fetch(&json, steps->session, exec->tag, exec->added, FETCH_MOST, last);
  sbx__daytona_send_script(steps, &json, on_reply);
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
  /* What could not be had now comes with the report. */
  if (take_fetched(follow->exec, reply, &err) == SBX_OK)
    sbx_steps_wait(steps, FETCH_PAUSE_MS, follow_on);
  else
    sbx_steps_finish(steps, NULL);
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

static void on_skipped(sbx_steps *steps, sbx_http *reply) {
  (void)reply;
  sbx_steps_finish(steps, NULL);
}

static void on_rest(sbx_steps *steps, sbx_http *reply) {
  exec_op *exec = exec_of(steps);
  sbx_err err;
  uint64_t before = exec->added[0] + exec->added[1];
  int rc = take_fetched(exec, reply, &err);
  if (rc == SBX_OK && exec->added[0] + exec->added[1] == before)
    rc = sbx_err_set(&err, SBX_EPROTO, "daytona: the end of the command's output is missing");
  if (rc == SBX_OK)
    fetch_rest(exec);
  else
    sbx_steps_finish(steps, &err);
}

/* Nothing more is wanted; the last request only takes the folder away. */
static void skip_rest(exec_op *exec) {
  for (int i = 0; i < 2; i++) {
    uint64_t rest = exec->report.size[i] - exec->added[i];
    if (exec->added[i] < exec->report.size[i])
      sbx_output_skip(exec->out, i == 0 ? SBX_STDOUT : SBX_STDERR, rest);
    exec->added[i] = exec->report.size[i];
  }
  send_fetch(&exec->steps, exec, true, on_skipped);
}

static void fetch_rest(exec_op *exec) {
  const sbx__daytona_report *report = &exec->report;
  bool more = exec->added[0] < report->size[0] || exec->added[1] < report->size[1];
  if (exec->keep && more && sbx_output_is_full(exec->out))
    skip_rest(exec);
  else if (exec->keep && more)
    send_fetch(&exec->steps, exec, true, on_rest);
  else
    sbx_steps_finish(&exec->steps, NULL);
}

static void take_end(exec_op *exec) {
  const sbx__daytona_report *report = &exec->report;
  sbx_err err;
  if (report->end == SBX__DAYTONA_UNSTORED) {
    exec->status->started = false;
    sbx_err_set(&err, SBX_EPROVIDER,
                "daytona: the sandbox cannot store the command in /tmp; is its disk full, or is "
                "the program base64 missing?");
    sbx_steps_finish(&exec->steps, &err);
    return;
  }
  if (report->end == SBX__DAYTONA_AGAIN) {
    sbx_err_set(&err, SBX_ENET,
                "daytona: run a command: a connection behind the proxy broke, and the request was "
                "delivered twice; it was not run a second time");
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

static void on_ran(sbx_steps *steps, sbx_http *reply) {
  exec_op *exec = exec_of(steps);
  sbx_json_doc *doc = NULL;
  sbx_slice printed;
  sbx_err err;
  sbx_op_drop(&exec->follow, SBX_ECANCELED);
  int rc = sbx__daytona_check_tool(&err, reply, "run a command");
  if (reply->op.err.code != SBX_OK)
    exec->status->started = reply->sent_maybe;
  else
    exec->status->started = rc == SBX_OK || !err.no_effect;
  if (rc != SBX_OK && reply->op.err.code == SBX_OK && reply->status == 408) {
    finish_late(exec);
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
  if (rc == SBX_OK)
    take_end(exec);
  else
    sbx_steps_finish(steps, &err);
}

/* ---- run ------------------------------------------------------------------------------------ */

static void end_early(sbx_steps *steps, int reason) {
  exec_op *exec = exec_of(steps);
  sbx_op_drop(&exec->follow, reason);
  /* The request cannot be called back. */
  if (steps->request != NULL && reason != SBX_ECLOSED)
    exec->status->started = true;
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

static int send_command(exec_op *exec, const sbx_exec_spec *spec, sbx_err *err) {
  const sbx_session *session = exec->steps.session;
  sbx_buf url, json;
  int rc = sbx__daytona_write_command(&json, session, spec, exec->tag, exec->share, exec->keep);
  if (rc == SBX_OK)
    rc = sbx__daytona_tool_url(&url, session, "/process/execute", sbx_slice_of(NULL, 0));
  else
    sbx_buf_init(&url, 0);
  if (rc == SBX_OK) {
    size_t share = exec->share.head + exec->share.tail;
    sbx_http_request request = {
        .method = "POST",
        .url = sbx_buf_slice(&url),
        .headers = &session->config->json_headers,
        .take_body = &json,
        .timeout_ms = SBX_NO_TIMEOUT,
        .max_bytes = share * 3 + REPLY_ROOM, /* base64 of two streams */
    };
    sbx_steps_send(&exec->steps, session->config->http, &request, on_ran);
  } else {
    sbx_err_set(err, rc,
                rc == SBX_ETOOBIG ? "the command is too large; write what is large to a file"
                                  : NULL);
  }
  sbx_buf_deinit(&url);
  sbx_buf_deinit(&json);
  return rc;
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
  choose_share(exec, spec);
  int rc = sbx_random_hex(exec->tag, SBX__DAYTONA_TAG, &err);
  if (rc == SBX_OK)
    rc = send_command(exec, spec, &err);
  if (rc != SBX_OK)
    sbx_steps_finish(&exec->steps, &err);
  else if (exec->keep && sbx_output_is_watched(out))
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
  sbx__daytona_send_script(&kill->steps, &json, on_killed);
  return &kill->steps.op;
}
