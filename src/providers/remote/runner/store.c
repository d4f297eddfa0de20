/* store.c - what is too large for a line is stored in the sandbox before it: by the wire's own
 * upload, or piece by piece. The programs find it beside the folder of its tag.
 *
 * Invariant: each file is whole, or the operation's line is not sent. */
#include "providers/remote/runner/store.h"

#include "core/alloc.h"
#include "core/err.h"

#include <stdio.h>

enum {
  /* Of a text, so that its base64 is well below the kernel's 128 KiB for one word. */
  MOST_IN_WORD = 64 * 1024,
  ROOM_FOR_REST = 24 * 1024, /* of a line: the program, and what is short */
};

typedef struct sbx__runner_store {
  struct {
    const char *name;
    sbx_buf bytes;
  } files[SBX_RUNNER_PARTS];
  size_t count;
  size_t done;
  size_t at;     /* how much of the next one is there */
  bool in_lines; /* an upload was refused */
  void (*then)(sbx_runner_op *op, sbx_err *err);
} store;

/* A line has room for three of these. */
size_t sbx__runner_most_in_line(const sbx_runner *runner) {
  size_t most = runner->max_line > ROOM_FOR_REST ? (runner->max_line - ROOM_FOR_REST) / 4 : 0;
  return runner->max_line > 0 && most < MOST_IN_WORD ? most : MOST_IN_WORD;
}

/* Half of a line for the piece, in base64 two thirds. */
static size_t most_of_piece(const sbx_runner *runner) {
  size_t most = runner->max_line / 2;
  return most > 0 && most < MOST_IN_WORD ? most : MOST_IN_WORD;
}

int sbx__runner_keep(sbx_runner_op *op, const char *name, sbx_slice bytes) {
  if (op->store == NULL)
    op->store = sbx_calloc(1, sizeof *op->store);
  if (op->store == NULL)
    return SBX_ENOMEM;
  sbx_buf *copy = &op->store->files[op->store->count].bytes;
  op->store->files[op->store->count++].name = name;
  sbx_buf_init(copy, SIZE_MAX);
  return sbx_buf_append_slice(copy, bytes);
}

void sbx__runner_store_free(sbx_runner_op *op) {
  store *s = op->store;
  op->store = NULL;
  for (size_t i = 0; s != NULL && i < s->count; i++) {
    if (s->files[i].bytes.ptr != NULL)
      sbx_wipe(s->files[i].bytes.ptr, s->files[i].bytes.len); /* variables may be secrets */
    sbx_buf_deinit(&s->files[i].bytes);
  }
  sbx_free(s);
}

int sbx__runner_unstored(const sbx_runner *runner, sbx_err *err) {
  return sbx_err_set(err, SBX_EQUOTA,
                     "%s: the sandbox cannot store the command: nothing can be written in /tmp, "
                     "/var/tmp, /dev/shm, $TMPDIR, the home or the working directory; is the disk "
                     "full, or is the program base64 or mkfifo missing?",
                     runner->wire->provider);
}

static void finish(sbx_runner_op *op, sbx_err *err) {
  void (*then)(sbx_runner_op *, sbx_err *) = op->store->then;
  sbx__runner_store_free(op);
  then(op, err);
}

static void store_next(sbx_steps *steps);

/* So much more of the file is there. */
static void go_on(sbx_runner_op *op, size_t more) {
  store *s = op->store;
  s->at += more;
  if (s->at >= s->files[s->done].bytes.len) {
    s->done++;
    s->at = 0;
  }
  store_next(&op->steps);
}

static sbx_slice next_piece(const sbx_runner_op *op) {
  const store *s = op->store;
  sbx_slice rest = sbx_slice_skip(sbx_buf_slice(&s->files[s->done].bytes), s->at);
  size_t most = most_of_piece(op->runner);
  return sbx_slice_of(rest.ptr != NULL ? rest.ptr : "", rest.len < most ? rest.len : most);
}

static void on_piece(sbx_runner_op *op, sbx_runner_report *report, sbx_err *err) {
  if (err->code == SBX_OK && report->end != SBX_RUNNER_RAN)
    sbx__runner_unstored(op->runner, err);
  if (err->code == SBX_OK)
    go_on(op, next_piece(op).len);
  else if (!sbx__runner_again(op, err, store_next))
    finish(op, err);
}

void sbx_runner_uploaded(sbx_runner_op *op, sbx_err *err) {
  store *s = op->store;
  if (err->code == SBX_OK) {
    op->repeat = (sbx_repeat){0};
    go_on(op, s->files[s->done].bytes.len);
  } else if (err->status != 0) {
    /* Lines may know another place, or are refused for the same reason. */
    s->in_lines = true;
    store_next(&op->steps);
  } else if (!sbx__runner_again(op, err, store_next)) {
    finish(op, err);
  }
}

static void store_next(sbx_steps *steps) {
  sbx_runner_op *op = (sbx_runner_op *)(void *)steps;
  store *s = op->store;
  const sbx_runner_wire *wire = op->runner->wire;
  char text[80];
  sbx_err fine = {0};
  if (s->done == s->count) {
    finish(op, &fine);
    return;
  }
  const char *name = s->files[s->done].name;
  op->verb = "store what a command needs";
  if (wire->upload != NULL && !s->in_lines) {
    snprintf(text, sizeof text, "/tmp/.cloudsandbox-%s.%s", op->tag, name);
    wire->upload(op, text, sbx_buf_slice(&s->files[s->done].bytes));
    return;
  }
  snprintf(text, sizeof text, " %s %zu", name, s->at);
  sbx__runner_ask(
      op,
      &(sbx__runner_question){
          .program = SBX_RUNNER_STORE, .verb = op->verb, .text = next_piece(op), .words = text},
      on_piece);
}

void sbx__runner_store(sbx_runner_op *op, void (*then)(sbx_runner_op *op, sbx_err *err)) {
  op->store->then = then;
  store_next(&op->steps);
}
