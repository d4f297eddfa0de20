/* process.c - one process from its start event to its end, as the process service streams it.
 *
 * The reply is a stream of envelopes: the start, output, signs of life, the end of the process, and
 * an end of the stream that may hold an error.
 *
 * The process lives on when its stream breaks: then it is taken up again by a second request, which
 * starts nothing and which may be sent again. It gives the rest of the output and the end, also one
 * that was a moment ago; what the process wrote meanwhile is lost.
 *
 * Invariants: the end of a process is what an end event says. The end of the stream without one is
 * an error, whatever came before; an end event, and an error that the stream tells at its end,
 * stand, whatever comes after them. The start is sent once. */
#include "providers/e2b/process.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/envelope.h"
#include "core/err.h"

#include <stdio.h>
#include <string.h>

enum {
  MAX_REQUEST = 64 * 1024 * 1024,
  MAX_EVENT = 256 * 1024,  /* the service sends 44 KiB at most */
  SILENCE_MS = 120 * 1000, /* a living stream gives a sign every 50 s */
  AFTER_END_MS = 1000,     /* for the connection's end after the last that matters */
  ATTACH_MS = 5000,        /* for the first sign of a stream that is taken up again */
  MOST_TRIES = 4,          /* of that, one after the other */
  LITTLE_TEXT = 512,       /* of a usual request, beside its program */
  /* The service ends a program at its limit, also when nobody waits for it any more: one that was
   * ended in its work would leave a tree that is stopped, and not dead. */
  KILLER_LIMIT_MS = 60 * 1000,
  KILLER_DEADLINE_MS = 4500, /* for its answer */
  KILL_AGAIN_MS = 300,
  MOST_KILLS = 3 /* after each other's loss */
};

typedef struct process {
  sbx_steps steps;
  sbx__e2b_process_spec spec; /* but for its request */
  sbx__e2b_end end;
  sbx_envelope envelope;
  sbx_buf bytes;   /* decoded output */
  sbx_timer timer; /* of silence */
  bool said_end;   /* the stream has told its end: no more is to come */
  sbx_err refusal; /* what that says */
  unsigned tries;  /* to take the stream up again, since the last sign of life */
  bool attached;   /* this is not the first stream */
  sbx_err cut;     /* what became of that one */
} process;

static process *process_of(sbx_steps *steps) {
  return (process *)(void *)steps;
}

/* ---- the end of the op ---------------------------------------------------------------------- */

static void let_go(sbx_steps *steps) {
  sbx_timer_stop(&process_of(steps)->timer);
}

/* Closes the stream; nothing of it comes any more. */
static void drop_stream(process *p) {
  sbx_op *http = p->steps.request;
  sbx_op_drop(&p->steps.request, SBX_ECANCELED);
  if (http != NULL)
    p->end.may_have_run = p->end.may_have_run || sbx_http_of(http)->sent_maybe;
}

static void on_ending(sbx_steps *steps, int reason) {
  (void)reason;
  drop_stream(process_of(steps));
}

static void release(sbx_steps *steps) {
  process *p = process_of(steps);
  sbx_envelope_deinit(&p->envelope);
  sbx_buf_deinit(&p->bytes);
}

static void fail(process *p, const sbx_err *err) {
  drop_stream(p);
  sbx_steps_finish(&p->steps, err);
}

/* ---- events --------------------------------------------------------------------------------- */

static int broken(sbx_err *err, const char *what) {
  return sbx_err_set(err, SBX_EPROTO, "e2b: the command's stream makes no sense: %s", what);
}

/* By their numbers; as Go names them, and as everybody does. */
static const char *const signals[][2] = {
    {"", NULL},
    {"hangup", "SIGHUP"},
    {"interrupt", "SIGINT"},
    {"quit", "SIGQUIT"},
    {"illegal instruction", "SIGILL"},
    {"trace/breakpoint trap", "SIGTRAP"},
    {"aborted", "SIGABRT"},
    {"bus error", "SIGBUS"},
    {"floating point exception", "SIGFPE"},
    {"killed", "SIGKILL"},
    {"user defined signal 1", "SIGUSR1"},
    {"segmentation fault", "SIGSEGV"},
    {"user defined signal 2", "SIGUSR2"},
    {"broken pipe", "SIGPIPE"},
    {"alarm clock", "SIGALRM"},
    {"terminated", "SIGTERM"},
};

/* "signal: killed", perhaps with " (core dumped)". */
static void read_signal(sbx__e2b_end *end, sbx_slice status) {
  status = sbx_slice_skip(status, strlen("signal: "));
  for (int i = 1; i < (int)(sizeof signals / sizeof *signals); i++) {
    if (sbx_slice_starts_with(status, sbx_slice_str(signals[i][0]))) {
      end->signal_number = i;
      end->signal_name = signals[i][1];
    }
  }
}

/* What is zero or false is left out of the message. */
static int take_end(process *p, const sbx_json *event, sbx_err *err) {
  sbx__e2b_end *end = &p->end;
  sbx_slice status = {NULL, 0};
  bool exited = false;
  int64_t code = 0;
  sbx_json_bool(sbx_json_get(event, "exited"), &exited);
  sbx_json_string(sbx_json_get(event, "status"), &status);
  const sbx_json *v = sbx_json_get(event, "exitCode");
  if (v != NULL && !sbx_json_int_or_text(v, INT32_MIN, INT32_MAX, &code))
    return broken(err, "the exit code is no number");
  exited = exited || sbx_slice_starts_with(status, sbx_slice_str("exit status "));
  bool signalled = sbx_slice_starts_with(status, sbx_slice_str("signal: ")) || code < 0;
  if (exited ? code < 0 || code > 255 : !signalled)
    return broken(err, "it does not say how the command ended");
  end->ended = true;
  end->exited = exited;
  end->exit_code = (int)code;
  if (!exited && status.len > 0)
    read_signal(end, status);
  sbx_timer_start(&p->timer, AFTER_END_MS);
  return SBX_OK;
}

static int take_data(process *p, const sbx_json *data, sbx_err *err) {
  sbx_slice text;
  bool is_stdout = sbx_json_string(sbx_json_get(data, "stdout"), &text);
  if (!is_stdout && !sbx_json_string(sbx_json_get(data, "stderr"), &text))
    return SBX_OK; /* of a kind that we did not ask for */
  sbx_buf_truncate(&p->bytes, 0);
  int rc = sbx_base64_decode(&p->bytes, text);
  if (rc == SBX_EINVAL)
    return broken(err, "output is not base64");
  if (rc != SBX_OK)
    return sbx_err_set(err, rc, NULL);
  if (p->spec.on_output != NULL && p->bytes.len > 0)
    p->spec.on_output(p->steps.op.arg, is_stdout ? SBX_STDOUT : SBX_STDERR,
                      sbx_buf_slice(&p->bytes));
  return SBX_OK;
}

static int take_event(process *p, const sbx_json *event, sbx_err *err) {
  const sbx_json *start = sbx_json_get(event, "start");
  const sbx_json *data = sbx_json_get(event, "data");
  const sbx_json *end = sbx_json_get(event, "end");
  p->end.may_have_run = true;
  p->tries =
      start != NULL ? p->tries : 0; /* one that breaks each time after its start is no life */
  if (start != NULL)
    sbx_json_int_or_text(sbx_json_get(start, "pid"), 1, UINT32_MAX, &p->end.pid);
  if (data != NULL)
    return take_data(p, data, err);
  return end != NULL ? take_end(p, end, err) : SBX_OK;
}

/* ---- the end of the stream ------------------------------------------------------------------ */

typedef struct refusal {
  const char *name;
  int code;
  bool ran; /* said before the start, the process may run all the same */
} refusal;

static const refusal refusals[] = {
    {"invalid_argument", SBX_EINVAL, false},       {"out_of_range", SBX_EINVAL, false},
    {"not_found", SBX_ENOTFOUND, false},           {"already_exists", SBX_ECONFLICT, false},
    {"failed_precondition", SBX_ECONFLICT, false}, {"aborted", SBX_ECONFLICT, true},
    {"unauthenticated", SBX_EAUTH, false},         {"permission_denied", SBX_EFORBIDDEN, false},
    {"resource_exhausted", SBX_ERATE, false},      {"unimplemented", SBX_EUNSUPPORTED, false},
    {"deadline_exceeded", SBX_ETIMEOUT, true},
};

/* What the text of a start that failed says behind the command and all its arguments; without a
 * pointer: it is another text. */
static sbx_slice why_not_started(sbx_slice message) {
  static const char mark[] = "': fork/exec /bin/sh: ";
  const size_t length = sizeof mark - 1;
  for (size_t at = message.len; at >= length; at--) {
    if (memcmp(message.ptr + at - length, mark, length) == 0)
      return sbx_slice_skip(message, at);
  }
  return (sbx_slice){NULL, 0};
}

static void refuse_start(process *p, sbx_slice reason) {
  bool too_long = sbx_slice_eq_str(reason, "argument list too long");
  sbx_err_set(&p->refusal, too_long ? SBX_ETOOBIG : SBX_EINVAL, "e2b: command: ");
  if (!too_long) {
    sbx_err_append(&p->refusal, "the working directory ");
    sbx_err_append_remote(&p->refusal, sbx_slice_str(p->spec.cwd != NULL ? p->spec.cwd : ""));
    sbx_err_append(&p->refusal, " cannot be entered: ");
  }
  sbx_err_append_remote(&p->refusal, reason);
  sbx_err_append(&p->refusal, "%s",
                 too_long ? "; pass what is long through stdin or a file" : SBX__CWD_ADVICE);
}

static int take_stream_end(process *p, const sbx_json *root, sbx_err *err) {
  const sbx_json *error = sbx_json_get(root, "error");
  refusal what = {"", SBX_EPROVIDER, true};
  sbx_slice name = {NULL, 0}, message = {NULL, 0};
  if (!sbx_json_is_object(root))
    return broken(err, "its end is no object");
  p->said_end = true;
  sbx_timer_start(&p->timer, AFTER_END_MS);
  if (error == NULL)
    return SBX_OK;
  sbx_json_string(sbx_json_get(error, "code"), &name);
  sbx_json_string(sbx_json_get(error, "message"), &message);
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    if (sbx_slice_eq_str(name, refusals[i].name))
      what = refusals[i];
  }
  p->end.may_have_run = p->end.may_have_run || what.ran;
  p->end.limit_passed = what.code == SBX_ETIMEOUT && p->spec.limit_ms > 0;
  sbx_slice reason = why_not_started(message);
  if (reason.ptr != NULL) {
    refuse_start(p, reason);
    return SBX_OK;
  }
  sbx_err_set(&p->refusal, what.code, "e2b: command: ");
  sbx_err_append_remote(&p->refusal, name.len > 0 ? name : sbx_slice_str("unknown error"));
  sbx_err_append(&p->refusal, ": ");
  sbx_err_append_remote(&p->refusal, message);
  if (what.code == SBX_EINVAL && sbx_slice_starts_with(message, sbx_slice_str("cwd ")))
    sbx_err_append(&p->refusal, SBX__CWD_ADVICE);
  return SBX_OK;
}

static int on_envelope(void *arg, bool is_end, sbx_slice payload, sbx_err *err) {
  process *p = arg;
  sbx_json_doc *doc = NULL;
  int rc = sbx_json_parse(&doc, payload, err);
  if (rc == SBX_EPROTO)
    return broken(err, "a message is not JSON");
  if (rc != SBX_OK)
    return rc;
  const sbx_json *root = sbx_json_root(doc);
  rc = is_end ? take_stream_end(p, root, err) : take_event(p, sbx_json_get(root, "event"), err);
  sbx_json_free(doc, false);
  return rc;
}

/* ---- the exchange --------------------------------------------------------------------------- */

/* Inside libcurl: what goes on from here to the user waits for the ready list there. */
static int on_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  process *p = arg;
  if (!p->end.ended && !p->said_end)
    sbx_timer_start(&p->timer, SILENCE_MS);
  int rc = sbx_envelope_feed(&p->envelope, bytes, err);
  return rc == SBX_ETOOBIG ? broken(err, "a message is too long") : rc;
}

/* Only a service inside of the sandbox, or what stands before it, answers with a status. */
static bool may_have_run(const sbx_http *http, const sbx_err *err) {
  return http->status >= 500 && !err->no_effect;
}

/* As the stream said it. What a stream that was taken up again refuses is no news of the process.
 */
static void finish_as_told(process *p) {
  sbx_err err;
  if (p->end.ended) {
    sbx_steps_finish(&p->steps, NULL);
  } else if (p->refusal.code != SBX_OK) {
    sbx_steps_finish(&p->steps, p->attached && !p->end.limit_passed ? &p->cut : &p->refusal);
  } else {
    p->end.may_have_run = true;
    broken(&err, "it does not say how the command ended");
    sbx_steps_finish(&p->steps, &err);
  }
}

static void attach(sbx_steps *steps);

/* The stream is gone, but perhaps not the process. */
static void lose_stream(process *p, const sbx_err *err) {
  drop_stream(p);
  if (!p->attached)
    sbx_err_copy(&p->cut, err);
  if (p->end.pid == 0 || p->tries == MOST_TRIES) {
    sbx_steps_finish(&p->steps, &p->cut);
    return;
  }
  if (p->spec.on_gap != NULL)
    p->spec.on_gap(p->steps.op.arg);
  p->attached = true;
  sbx_timer_stop(&p->timer);
  /* 0, 100, 400, 1600 ms */
  sbx_steps_wait(&p->steps, p->tries == 0 ? 0 : (uint64_t)25 << (2 * p->tries), attach);
  p->tries++;
}

static void take_status(process *p, const sbx_http *reply) {
  sbx_err err;
  sbx__e2b_check(&err, p->steps.session, NULL, reply, "command");
  if (!p->attached) {
    p->end.may_have_run = may_have_run(reply, &err);
    sbx_steps_finish(&p->steps, &err);
    return;
  }
  err.no_effect = false; /* of this request; the command has run */
  if (err.code == SBX_ELOST || err.code == SBX_ECONFLICT)
    sbx_steps_finish(&p->steps, &err);
  else if (reply->status >= 500 || reply->status == 429)
    lose_stream(p, &err);
  else
    sbx_steps_finish(&p->steps, &p->cut);
}

static void on_stream_end(sbx_steps *steps, sbx_http *reply) {
  process *p = process_of(steps);
  int code = reply->op.err.code;
  sbx_err err;
  if (p->end.ended || p->said_end) {
    finish_as_told(p);
  } else if (code != SBX_OK) {
    p->end.may_have_run = p->end.may_have_run || reply->sent_maybe;
    if (code == SBX_ENET || code == SBX_ETIMEOUT)
      lose_stream(p, &reply->op.err);
    else
      sbx_steps_finish(steps, &reply->op.err);
  } else if (reply->status < 200 || reply->status >= 300) {
    take_status(p, reply);
  } else {
    p->end.may_have_run = true;
    if (sbx_envelope_finish(&p->envelope, &err) == SBX_OK)
      broken(&err, "it does not say how the command ended");
    lose_stream(p, &err);
  }
}

static void on_silence(sbx_timer *timer) {
  process *p = (process *)(void *)((char *)timer - offsetof(process, timer));
  sbx_err err;
  if (p->end.ended || p->said_end) {
    /* Nothing is taken back by what did not come any more. */
    sbx_op_drop(&p->steps.request, SBX_ECANCELED);
    finish_as_told(p);
    return;
  }
  sbx_err_set(&err, SBX_ENET, "e2b: the command's stream gave no sign of life for %d s",
              SILENCE_MS / 1000);
  lose_stream(p, &err);
}

static void send_request(process *p, const char *path, sbx_slice message, uint64_t limit_ms) {
  sbx_buf body;
  sbx_buf_init(&body, MAX_REQUEST);
  sbx_envelope_append(&body, 0, message);
  sbx_envelope_deinit(&p->envelope);
  sbx_envelope_init(&p->envelope, MAX_EVENT, on_envelope, p);
  const sbx__e2b_request request = {.http = {.method = "POST",
                                             .take_body = &body,
                                             .timeout_ms = SBX_NO_TIMEOUT,
                                             .on_bytes = on_bytes,
                                             .consumer = p},
                                    .path = sbx_slice_str(path),
                                    .as_root = p->spec.as_root,
                                    .stream = true,
                                    .limit_ms = limit_ms};
  sbx__e2b_to_sandbox(&p->steps, &request, on_stream_end);
  if (!p->steps.op.finished)
    sbx_timer_start(&p->timer, p->attached ? ATTACH_MS : SILENCE_MS);
}

/* The limit is the start's, and the service keeps it without a stream too. */
static void attach(sbx_steps *steps) {
  process *p = process_of(steps);
  char message[64];
  snprintf(message, sizeof message, "{\"process\":{\"pid\":%lld}}", (long long)p->end.pid);
  send_request(p, "/process.Process/Connect", sbx_slice_str(message), 0);
}

sbx_op *sbx__e2b_process(sbx_session *session, const sbx__e2b_process_spec *spec, sbx_op_done done,
                         void *arg) {
  process *p = sbx_steps_new(sizeof *p, session, session->config->loop, done, arg);
  if (p == NULL)
    return NULL;
  p->steps.ending = on_ending;
  p->steps.let_go = let_go;
  p->steps.release = release;
  p->spec = *spec;
  if (spec->limit_ms == SBX_NO_TIMEOUT)
    p->spec.limit_ms = 0;
  sbx_buf_init(&p->bytes, MAX_EVENT);
  sbx_timer_init(&p->timer, session->config->loop, on_silence);
  send_request(p, "/process.Process/Start", spec->request, p->spec.limit_ms);
  return &p->steps.op;
}

const sbx__e2b_end *sbx__e2b_process_end(const sbx_op *op) {
  return &((const process *)(const void *)op)->end;
}

void sbx__e2b_process_leave(sbx_op *op) {
  if (!op->finished)
    fail((process *)(void *)op, NULL);
}

/* ---- the request ---------------------------------------------------------------------------- */

void sbx__e2b_request_begin(sbx_json_out *out, sbx_buf *request, sbx_slice program) {
  sbx_buf_init(request, MAX_REQUEST);
  sbx_buf_reserve(request, program.len + LITTLE_TEXT);
  sbx_buf_append_str(request, "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\"");
  *out = (sbx_json_out){.buf = request, .need_comma = true};
  sbx_json_put_escaped(out, program);
  sbx_json_put_string(out, sbx_slice_str("cloudsandbox"));
}

/* Without `stdin` false the service would keep a pipe open that nobody writes to. */
void sbx__e2b_request_end(sbx_json_out *out, sbx_slice cwd) {
  sbx_buf path;
  sbx_buf_init(&path, MAX_REQUEST);
  sbx__e2b_append_path(&path, cwd);
  sbx_json_put_name(out, sbx_slice_str("cwd"));
  sbx_json_put_string(out, sbx_buf_slice(&path));
  sbx_buf_append_str(out->buf, "},\"stdin\":false}");
  if (path.error != SBX_OK)
    out->buf->error = path.error;
  sbx_buf_deinit(&path);
}

/* ---- programs of ours ----------------------------------------------------------------------- */

typedef struct program {
  sbx_steps steps;
  sbx_buf request;
  sbx_buf printed;
  uint64_t limit_ms;
  bool gap;
  bool kills; /* as root, and again when the connection breaks: what is dead stays so */
  unsigned tries;
} program;

static void release_program(sbx_steps *steps) {
  sbx_buf_deinit(&((program *)(void *)steps)->request);
  sbx_buf_deinit(&((program *)(void *)steps)->printed);
}

static void on_printed(void *arg, sbx_stream stream, sbx_slice bytes) {
  program *g = arg;
  if (stream == SBX_STDOUT && sbx_buf_append_slice(&g->printed, bytes) != SBX_OK)
    sbx__e2b_process_leave(g->steps.request);
}

static void on_gap(void *arg) {
  ((program *)arg)->gap = true;
}

static void start_program(sbx_steps *steps);

static void on_program_done(sbx_op *op, void *arg) {
  program *g = arg;
  const sbx__e2b_end *end = sbx__e2b_process_end(op);
  sbx_err err = op->err;
  g->steps.request = NULL;
  if (g->kills && err.code == SBX_ENET && g->tries < MOST_KILLS) {
    sbx_steps_wait(&g->steps, KILL_AGAIN_MS, start_program);
    return;
  }
  if (err.code == SBX_OK && g->printed.error != SBX_OK)
    sbx_err_set(&err, g->printed.error, NULL);
  else if (err.code == SBX_OK && g->kills && (!end->exited || end->exit_code != 0))
    sbx_err_set(&err, SBX_EPROVIDER, "e2b: kill: some processes of the command could not be ended");
  else if (err.code == SBX_OK && !g->kills && g->gap)
    sbx_err_set(&err, SBX_ENET, "e2b: a part of what a program printed was lost on the way");
  sbx_steps_finish(&g->steps, &err);
}

static void start_program(sbx_steps *steps) {
  program *g = (program *)(void *)steps;
  const sbx__e2b_process_spec spec = {.request = sbx_buf_slice(&g->request),
                                      .as_root = g->kills,
                                      .limit_ms = g->limit_ms,
                                      .on_output = g->kills ? NULL : on_printed,
                                      .on_gap = on_gap};
  sbx_op *op = sbx__e2b_process(steps->session, &spec, on_program_done, g);
  g->tries++;
  if (op != NULL && g->kills)
    sbx_op_set_deadline(op, KILLER_DEADLINE_MS);
  sbx_steps_wait_for(steps, op);
}

static sbx_op *run_program(sbx_session *session, sbx_buf *request, const program *how,
                           sbx_op_done done, void *arg) {
  program *g = sbx_steps_new(sizeof *g, session, session->config->loop, done, arg);
  if (g == NULL) {
    sbx_buf_deinit(request);
    return NULL;
  }
  g->steps.release = release_program;
  g->request = *request;
  g->printed = how->printed;
  g->limit_ms = how->limit_ms;
  g->kills = how->kills;
  if (request->error == SBX_OK)
    start_program(&g->steps);
  else
    sbx_steps_finish_code(&g->steps, request->error);
  return &g->steps.op;
}

sbx_op *sbx__e2b_line(sbx_session *session, sbx_buf *request, uint64_t limit_ms, size_t max_bytes,
                      sbx_op_done done, void *arg) {
  program how = {.limit_ms = limit_ms};
  sbx_buf_init(&how.printed, max_bytes);
  return run_program(session, request, &how, done, arg);
}

sbx_slice sbx__e2b_line_printed(const sbx_op *line) {
  return sbx_buf_slice(&((const program *)(const void *)line)->printed);
}

sbx_op *sbx__e2b_killer(sbx_session *session, sbx_runner_program text, const char *const *words,
                        sbx_op_done done, void *arg) {
  sbx_json_out out;
  sbx_buf request;
  sbx__e2b_request_begin(&out, &request, sbx_runner_json(text));
  for (; *words != NULL; words++)
    sbx_json_put_string(&out, sbx_slice_str(*words));
  sbx_json_end_array(&out);
  sbx__e2b_request_end(&out, sbx_slice_str("/"));
  const program how = {.limit_ms = KILLER_LIMIT_MS, .kills = true};
  return run_program(session, &request, &how, done, arg);
}
