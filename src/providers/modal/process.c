/* process.c - one process in a sandbox of Modal.
 *
 *   (access) -> TaskExecStart -> TaskExecStdioRead, twice, and TaskExecStdinWrite, piece by piece
 *   -> TaskExecWait, unless the outputs have told the end
 *
 * The router keeps what a process prints, from its first byte on. So a stream that broke is asked
 * for again, from the byte behind the last that came; and input is sent with the place where it
 * belongs, so that a piece that comes twice is taken once.
 *
 * Invariants: the start is sent once, and a second time only where the router has refused the first
 * for its token, so that nothing ran. Every byte of a stream is handed on once, in order. An exit
 * code is what the router says, never a guess. */
#include "providers/modal/process.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/rand.h"
#include "providers/modal/access.h"
#include "providers/remote/runner/args.h"

#include <stdio.h>
#include <string.h>

enum {
  MAX_REQUEST = 64 * 1024 * 1024,
  MAX_TEXT = 32 * 1024, /* the vendor's client takes 64 KiB of words, and a program is one */
  MAX_WORDS = 512,
  PIECE = 256 * 1024,
  WAIT_MS = 60 * 1000,
  MOST_WAITS = 3,
  MOST_TRIES = 10,
  FIRST_PAUSE_MS = 10,
  EXEC_ID = 36,
};

typedef struct process process;

/* One of the three streams of a process. */
typedef struct channel {
  process *of;
  sbx_stream stream; /* of an output */
  sbx_op *call;      /* in flight */
  sbx_timer pause;   /* before it is tried again */
  sbx_envelope decoder;
  uint64_t offset; /* of the next byte */
  uint64_t piece;  /* input: how many bytes are on their way */
  unsigned tries;  /* in a row that brought nothing */
  bool ended;
} channel;

struct process {
  sbx_steps steps;
  sbx_process_end end;
  sbx_process_spec spec; /* without its request */
  sbx_buf request;
  char id[EXEC_ID + 1];
  channel outputs[2]; /* by sbx_stream */
  channel input;
  sbx_timer late; /* for an end that was decided inside of libcurl */
  sbx_buf words;
  unsigned waits;
  bool renewed; /* the router has refused a token once, and it was renewed */
  bool left;
};

static process *process_of(sbx_steps *steps) {
  return (process *)(void *)steps;
}

static void stop_channel(channel *c) {
  sbx_timer_stop(&c->pause);
  sbx_op_drop(&c->call, SBX_ECANCELED);
}

static void let_go(sbx_steps *steps) {
  process *p = process_of(steps);
  sbx_timer_stop(&p->late);
  stop_channel(&p->outputs[0]);
  stop_channel(&p->outputs[1]);
  stop_channel(&p->input);
}

static void release(sbx_steps *steps) {
  process *p = process_of(steps);
  if (p->request.ptr != NULL)
    sbx_wipe(p->request.ptr, p->request.len); /* variables may be secrets */
  sbx_buf_deinit(&p->request);
  sbx_buf_deinit(&p->words);
  sbx_envelope_deinit(&p->outputs[0].decoder);
  sbx_envelope_deinit(&p->outputs[1].decoder);
}

/* It ends while its start may be on its way. */
static void on_ending(sbx_steps *steps, int reason) {
  process *p = process_of(steps);
  sbx_op *http = steps->request;
  (void)reason;
  if (http == NULL || p->end.may_have_run || strcmp(http->cls->name, "http") != 0)
    return;
  sbx_op_drop(&steps->request, SBX_ECANCELED);
  p->end.may_have_run = sbx_http_of(http)->sent_maybe;
}

/* A call about this process. */
static void begin_message(sbx_buf *message, const process *p, size_t max) {
  sbx_buf_init(message, max);
  sbx_pb_put_str(message, 1, p->steps.session->task);
  sbx_pb_put_str(message, 2, p->id);
}

/* Whether a stream or a question that failed so is tried again. */
static bool may_pass(const sbx_err *err) {
  return err->code == SBX_ENET || err->code == SBX_EPROVIDER || err->code == SBX_ETIMEOUT ||
         err->code == SBX_ERATE;
}

/* ---- how it ended --------------------------------------------------------------------------- */

static void ask(sbx_steps *steps);

static int read_end(process *p, sbx_slice message, sbx_err *err) {
  sbx_pb_field code, signal;
  int has_code = sbx_pb_find(message, 1, SBX_PB_VARINT, &code);
  int has_signal = sbx_pb_find(message, 2, SBX_PB_VARINT, &signal);
  p->end.exited = has_code == SBX_OK || has_signal == SBX_OK;
  if (has_signal == SBX_OK && signal.value > 0 && signal.value < 128)
    p->end.exit_code = 128 + (int)signal.value;
  else if (has_code == SBX_OK)
    p->end.exit_code = (int)(int32_t)(uint32_t)code.value;
  if (p->end.exited)
    return SBX_OK;
  return sbx__modal_strange(err, "run a command", "the router does not say how the command ended");
}

static void on_end(sbx_steps *steps, sbx_http *reply) {
  process *p = process_of(steps);
  sbx_slice message;
  sbx_err err = {0};
  int rc =
      sbx__modal_message(&message, SBX__MODAL_ROUTER, reply, "ask how the command ended", &err);
  if (rc == SBX_OK)
    rc = read_end(p, message, &err);
  if (rc != SBX_OK && may_pass(&err) && ++p->waits < MOST_WAITS) {
    sbx_steps_wait(steps, 1000, ask);
    return;
  }
  err.no_effect = false; /* of this request; the command has run */
  sbx_steps_finish(steps, rc != SBX_OK ? &err : NULL);
}

static void ask(sbx_steps *steps) {
  sbx_buf message;
  begin_message(&message, process_of(steps), 1024);
  const sbx__modal_call call = {.plane = SBX__MODAL_ROUTER,
                                .method = "TaskExecWait",
                                .message = &message,
                                .repeatable = true,
                                .timeout_ms = WAIT_MS};
  sbx__modal_send(steps, &call, on_end);
  sbx_buf_deinit(&message);
}

static void fail(process *p, sbx_err *err) {
  err->no_effect = err->no_effect && !p->end.may_have_run;
  sbx_steps_finish(&p->steps, err);
}

static void outputs_ended(process *p) {
  p->end.words = sbx_buf_slice(&p->words);
  if (p->spec.is_told != NULL && p->spec.is_told(p->steps.op.arg))
    sbx_steps_finish(&p->steps, NULL);
  else
    ask(&p->steps);
}

/* ---- a token that was refused --------------------------------------------------------------- */

static void go_on(process *p);

static void on_access(sbx_op *op, void *arg) {
  process *p = arg;
  sbx_err err = op->err;
  p->steps.request = NULL;
  if (err.code != SBX_OK)
    fail(p, &err);
  else
    go_on(p);
}

static void renew(process *p) {
  if (p->steps.request == NULL)
    sbx_steps_wait_for(&p->steps, sbx__modal_get_access(p->steps.session, on_access, p));
}

/* Once for a process: who refuses a new one, too, has another reason. */
static bool may_renew(process *p, const sbx_err *err) {
  if (err->code != SBX_EAUTH || (p->renewed && p->steps.request == NULL))
    return false;
  p->renewed = true;
  return true;
}

/* ---- outputs -------------------------------------------------------------------------------- */

static int on_piece(void *arg, bool is_end, sbx_slice payload, sbx_err *err) {
  channel *c = arg;
  process *p = c->of;
  sbx_slice bytes;
  (void)is_end;
  if (p->left)
    return SBX_OK;
  if (sbx_pb_get_bytes(payload, 1, &bytes) != SBX_OK)
    return sbx_err_set(err, SBX_EPROTO, "a piece of the output is no message");
  size_t room = MAX_WORDS - p->words.len;
  sbx_buf_append(&p->words, bytes.ptr, bytes.len < room ? bytes.len : room);
  c->offset += bytes.len;
  if (bytes.len > 0)
    c->tries = 0;
  if (bytes.len > 0 && p->spec.on_output != NULL)
    p->spec.on_output(p->steps.op.arg, c->stream, bytes);
  return SBX_OK;
}

static int on_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  return sbx_envelope_feed(&((channel *)arg)->decoder, bytes, err);
}

/* What failed is tried again after a while, or with a new token; else the process has failed. */
static void try_again(channel *c, sbx_err *err) {
  process *p = c->of;
  if (may_renew(p, err)) {
    renew(p);
  } else if (may_pass(err) && c->tries < MOST_TRIES) {
    uint64_t pause = (uint64_t)FIRST_PAUSE_MS << c->tries++;
    sbx_timer_start(&c->pause, pause > err->retry_after_ms ? pause : err->retry_after_ms);
  } else {
    fail(p, err);
  }
}

static void on_read(sbx_op *op, void *arg) {
  channel *c = arg;
  process *p = c->of;
  sbx_err err = {0};
  c->call = NULL;
  int rc = sbx__modal_check(&err, SBX__MODAL_ROUTER, sbx_http_of(op), "read a command's output");
  /* A part of a piece is not handed on; it comes again. */
  if (rc == SBX_OK && sbx_envelope_finish(&c->decoder, NULL) != SBX_OK)
    rc = sbx_err_set(&err, SBX_ENET, "modal: a command's output broke off");
  if (rc != SBX_OK) {
    try_again(c, &err);
    return;
  }
  c->ended = true;
  if (p->outputs[0].ended && p->outputs[1].ended && p->steps.request == NULL)
    outputs_ended(p);
}

static void start_call(channel *c, const sbx__modal_call *call, sbx_op_done done) {
  sbx_err err;
  if (sbx__modal_start(&c->call, c->of->steps.session, call, done, c, &err) != SBX_OK)
    fail(c->of, &err);
}

static void read_on(channel *c) {
  sbx_buf message;
  begin_message(&message, c->of, 1024);
  sbx_pb_put_varint(&message, 3, c->offset);
  sbx_pb_put_varint(&message, 4, c->stream == SBX_STDERR ? 1 : 0);
  sbx_envelope_deinit(&c->decoder);
  sbx_envelope_init_plain(&c->decoder, SBX__MODAL_MESSAGE_MAX, on_piece, c);
  const sbx__modal_call call = {.plane = SBX__MODAL_ROUTER,
                                .method = "TaskExecStdioRead",
                                .message = &message,
                                .repeatable = true,
                                .on_bytes = on_bytes,
                                .consumer = c};
  start_call(c, &call, on_read);
  sbx_buf_deinit(&message);
}

/* ---- input ---------------------------------------------------------------------------------- */

static void write_on(channel *c);

static void on_written(sbx_op *op, void *arg) {
  channel *c = arg;
  sbx_slice message;
  sbx_err err = {0};
  c->call = NULL;
  int rc = sbx__modal_message(&message, SBX__MODAL_ROUTER, sbx_http_of(op),
                              "write to a command's input", &err);
  if (rc == SBX_ECONFLICT) { /* it has ended, or reads no more: its outputs tell the rest */
    c->ended = true;
  } else if (rc != SBX_OK) {
    try_again(c, &err);
  } else {
    c->tries = 0;
    c->offset += c->piece;
    c->ended = c->offset >= c->of->spec.input.len;
    if (!c->ended)
      write_on(c);
  }
}

static void write_on(channel *c) {
  sbx_slice rest = sbx_slice_skip(c->of->spec.input, (size_t)c->offset);
  sbx_buf message;
  begin_message(&message, c->of, PIECE + 1024);
  c->piece = rest.len < PIECE ? rest.len : PIECE;
  sbx_pb_put_varint(&message, 3, c->offset);
  sbx_pb_put_bytes(&message, 4, sbx_slice_of(rest.ptr, (size_t)c->piece));
  if (c->piece == rest.len)
    sbx_pb_put_varint(&message, 5, 1);
  const sbx__modal_call call = {.plane = SBX__MODAL_ROUTER,
                                .method = "TaskExecStdinWrite",
                                .message = &message,
                                .repeatable = true,
                                .timeout_ms = WAIT_MS};
  start_call(c, &call, on_written);
  sbx_buf_deinit(&message);
}

static void resume(channel *c) {
  if (c->of->steps.op.finished || c->ended || c->call != NULL || c->pause.armed)
    return;
  if (c == &c->of->input)
    write_on(c);
  else
    read_on(c);
}

static void on_pause(sbx_timer *timer) {
  resume((channel *)(void *)((char *)timer - offsetof(channel, pause)));
}

/* ---- start ---------------------------------------------------------------------------------- */

static void on_started(sbx_steps *steps, sbx_http *reply) {
  process *p = process_of(steps);
  sbx_slice message;
  sbx_err err = {0};
  int rc = sbx__modal_message(&message, SBX__MODAL_ROUTER, reply, "run a command", &err);
  if (rc == SBX_OK) {
    p->end.may_have_run = true;
    go_on(p);
  } else if (may_renew(p, &err)) {
    renew(p);
  } else {
    p->end.may_have_run = !err.no_effect;
    fail(p, &err);
  }
}

/* What is missing for the process to go on, whatever has been interrupted. */
static void go_on(process *p) {
  if (p->end.may_have_run) {
    resume(&p->outputs[0]);
    resume(&p->outputs[1]);
    resume(&p->input);
    if (!p->steps.op.finished && p->outputs[0].ended && p->outputs[1].ended)
      outputs_ended(p);
    return;
  }
  const sbx__modal_call call = {
      .plane = SBX__MODAL_ROUTER, .method = "TaskExecStart", .message = &p->request};
  sbx__modal_send(&p->steps, &call, on_started);
}

static void begin(sbx_process_request *request, const sbx_session *session, sbx_slice program,
                  bool input) {
  (void)session;
  (void)input;
  sbx_buf_init(&request->buf, MAX_REQUEST);
  sbx_pb_put_str(&request->buf, 3, "/bin/sh");
  sbx_pb_put_str(&request->buf, 3, "-c");
  sbx_pb_put_bytes(&request->buf, 3, program);
  sbx_pb_put_str(&request->buf, 3, "cloudsandbox");
}

static void put_word(sbx_process_request *request, sbx_slice word) {
  sbx_pb_put_bytes(&request->buf, 3, word);
}

static void end_request(sbx_process_request *request, const sbx_exec_spec *spec,
                        const char *token) {
  sbx_buf *buf = &request->buf;
  sbx_pb_put_varint(buf, 4, 1); /* both outputs are pipes */
  sbx_pb_put_varint(buf, 5, 1);
  for (size_t i = 0; spec != NULL && i < spec->env_count; i++) {
    if (!sbx_runner_args_is_set_again(spec, i))
      sbx_pb_put_pair(buf, 12, spec->env[i].name, spec->env[i].value);
  }
  if (spec != NULL)
    sbx_pb_put_pair(buf, 12, sbx_slice_str(SBX_RUNNER_MARK), sbx_slice_str(token));
}

static int name_process(process *p, sbx_err *err) {
  char hex[33];
  int rc = sbx_random_hex(hex, 32, err);
  if (rc != SBX_OK)
    return rc;
  snprintf(p->id, sizeof p->id, "%.8s-%.4s-4%.3s-a%.3s-%.12s", hex, hex + 8, hex + 13, hex + 17,
           hex + 20);
  sbx_pb_put_str(&p->request, 1, p->steps.session->task);
  sbx_pb_put_str(&p->request, 2, p->id);
  return SBX_OK;
}

static void init_channel(channel *c, process *p, sbx_stream stream) {
  c->of = p;
  c->stream = stream;
  sbx_timer_init(&c->pause, p->steps.op.loop, on_pause);
}

static void on_late(sbx_timer *timer) {
  process *p = (process *)(void *)((char *)timer - offsetof(process, late));
  sbx_steps_finish(&p->steps, NULL);
}

static sbx_op *start(sbx_session *session, const sbx_process_spec *spec, sbx_op_done done,
                     void *arg) {
  sbx_err err;
  process *p = sbx_steps_new(sizeof *p, session, session->config->loop, done, arg);
  if (p == NULL)
    return NULL;
  p->steps.ending = on_ending;
  p->steps.let_go = let_go;
  p->steps.release = release;
  p->spec = *spec;
  p->spec.request = NULL;
  p->request = spec->request->buf;
  sbx_buf_init(&spec->request->buf, MAX_REQUEST);
  init_channel(&p->outputs[0], p, SBX_STDOUT);
  init_channel(&p->outputs[1], p, SBX_STDERR);
  init_channel(&p->input, p, SBX_STDOUT);
  p->input.ended = spec->input.ptr == NULL;
  sbx_timer_init(&p->late, session->config->loop, on_late);
  sbx_buf_init(&p->words, MAX_WORDS);
  if (name_process(p, &err) != SBX_OK)
    sbx_steps_finish(&p->steps, &err);
  else if (sbx__modal_has_access(session))
    go_on(p);
  else
    renew(p);
  return &p->steps.op;
}

static const sbx_process_end *ended(const sbx_op *op) {
  return &((const process *)(const void *)op)->end;
}

/* It may be called from inside of a transfer, which cannot be ended there. */
static void leave(sbx_op *op) {
  process *p = (process *)(void *)op;
  if (op->finished || p->left)
    return;
  p->left = true;
  sbx_timer_start(&p->late, 0);
}

static bool closes_outputs(const sbx_session *session) {
  (void)session;
  return true;
}

/* The router starts the program itself, and says that there is none, or ends it with these. */
static bool has_no_shell(const sbx_session *session, const sbx_process_end *end, sbx_err *err) {
  (void)session;
  if (!end->exited || end->words.len > 0 || (end->exit_code != 126 && end->exit_code != 127))
    return false;
  sbx_err_set(err, SBX_EUNSUPPORTED,
              "modal: the image has no /bin/sh, which every command needs; take an image with a "
              "shell");
  err->provider = "modal";
  return true;
}

const sbx_processes sbx__modal_processes = {
    .provider = "modal",
    .max_text = MAX_TEXT,
    .no_room = "remove what is not needed",
    .begin = begin,
    .word = put_word,
    .end = end_request,
    .closes_outputs = closes_outputs,
    .start = start,
    .ended = ended,
    .leave = leave,
    .has_no_shell = has_no_shell,
};
