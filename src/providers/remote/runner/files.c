/* files.c - put, get and list through lines alone.
 *
 * Invariant: a file or a list that is not whole is an error. */
#include "core/alloc.h"
#include "core/err.h"
#include "providers/remote/runner/store.h"

#include <stdio.h>

/* For an entry of a list, with a long path. */
#define ENTRY_BYTES ((size_t)256)

/* ---- list ----------------------------------------------------------------------------------- */

typedef struct list_op {
  sbx_runner_op op;
  sbx_listing *out;
  size_t max_entries;
} list_op;

static int too_many(const list_op *list, sbx_err *err) {
  return sbx_err_set(err, SBX_ETOOBIG, "there are more than %zu files" SBX__LIST_ADVICE,
                     list->max_entries);
}

/* `item`: "<size> ./<path>" */
static int add_entry(list_op *list, sbx_slice item, sbx_err *err) {
  uint64_t size;
  if (!sbx_runner_take_number(&item, UINT64_MAX, &size) ||
      !sbx_slice_starts_with(item, sbx_slice_str("./")))
    return sbx_err_set(err, SBX_EPROTO, "%s: list files: unexpected output of find",
                       list->op.runner->wire->provider);
  if (list->out->count == list->max_entries)
    return too_many(list, err);
  item = sbx_slice_skip(item, 2);
  return sbx_listing_add(list->out, sbx_strndup(item.ptr, item.len), size, err);
}

static int add_all(list_op *list, sbx_slice rest, sbx_err *err) {
  int rc = SBX_OK;
  while (rc == SBX_OK && rest.len > 0) {
    size_t end = sbx_slice_find(rest, '\0');
    if (end == rest.len) /* it was cut off at the most bytes */
      return too_many(list, err);
    rc = add_entry(list, sbx_slice_of(rest.ptr, end), err);
    rest = sbx_slice_skip(rest, end + 1);
  }
  return rc;
}

static void on_listed(sbx_runner_op *op, sbx_runner_report *report, sbx_err *err) {
  if (err->code == SBX_OK && report->end != SBX_RUNNER_RAN)
    sbx_err_set(err, SBX_ENOTFOUND, "%s: list files: there is no such directory",
                op->runner->wire->provider);
  if (err->code == SBX_OK)
    add_all((list_op *)(void *)op, sbx_buf_slice(&report->head[0]), err);
  sbx_steps_finish(&op->steps, err);
}

/* A program that does something with a path; `most` bytes of something are wanted. */
static void ask(sbx_runner_op *op, sbx_runner_program program, const char *verb, sbx_slice path,
                size_t most, sbx__runner_on_report on_report) {
  char words[24];
  snprintf(words, sizeof words, " %zu", most);
  sbx__runner_ask(op,
                  &(sbx__runner_question){.program = program,
                                          .verb = verb,
                                          .text = path.len > 0 ? path : sbx_slice_str(""),
                                          .words = words,
                                          .max_bytes = most / 3 * 4,
                                          .slow = true},
                  on_report);
}

sbx_op *sbx_runner_list(sbx_runner *runner, sbx_session *session, sbx_slice dir, size_t max_entries,
                        sbx_listing *out, sbx_op_done done, void *arg) {
  list_op *list = sbx__runner_op_new(sizeof *list, runner, session, NULL, done, arg);
  if (list == NULL)
    return NULL;
  list->out = out;
  list->max_entries = max_entries;
  ask(&list->op, SBX_RUNNER_LIST, "list files", dir, sbx__runner_most(max_entries, ENTRY_BYTES),
      on_listed);
  return &list->op.steps.op;
}

/* ---- put and get ---------------------------------------------------------------------------- */

typedef struct file_op {
  sbx_runner_op op;
  sbx_buf path;
  sbx_buf *out;
} file_op;

/* The path is added to an error's words. */
static void finish_file(sbx_runner_op *op, sbx_err *err) {
  if (err->code != SBX_OK && err->code != SBX_ENOMEM) {
    sbx_err_append(err, "; the path was ");
    sbx_err_append_remote(err, sbx_buf_slice(&((file_op *)(void *)op)->path));
  }
  sbx_steps_finish(&op->steps, err);
}

static void release(sbx_steps *steps) {
  sbx__runner_store_free((sbx_runner_op *)(void *)steps);
  sbx_buf_deinit(&((file_op *)(void *)steps)->path);
}

static file_op *file_new(sbx_runner *runner, sbx_session *session, sbx_slice path, sbx_op_done done,
                         void *arg) {
  file_op *file = sbx__runner_op_new(sizeof *file, runner, session, NULL, done, arg);
  if (file == NULL)
    return NULL;
  file->op.steps.release = release;
  sbx_buf_init(&file->path, SIZE_MAX);
  if (sbx_buf_append_slice(&file->path, path) != SBX_OK)
    sbx_steps_finish_code(&file->op.steps, SBX_ENOMEM);
  return file;
}

static void on_put(sbx_runner_op *op, sbx_runner_report *report, sbx_err *err) {
  const char *provider = op->runner->wire->provider;
  if (err->code == SBX_OK && report->end == SBX_RUNNER_NODIR)
    sbx_err_set(err, SBX_EINVAL,
                "%s: write a file: the path is a directory, lies below a file, or must not be "
                "written to",
                provider);
  else if (err->code == SBX_OK && report->end != SBX_RUNNER_RAN)
    sbx_err_set(err, SBX_EQUOTA, "%s: write a file: the sandbox's disk is full", provider);
  finish_file(op, err);
}

static void on_stored(sbx_runner_op *op, sbx_err *err) {
  if (err->code == SBX_OK)
    ask(op, SBX_RUNNER_PUT, "write a file", sbx_buf_slice(&((file_op *)(void *)op)->path), 0,
        on_put);
  else
    finish_file(op, err);
}

sbx_op *sbx_runner_put(sbx_runner *runner, sbx_session *session, sbx_slice path, sbx_slice bytes,
                       sbx_op_done done, void *arg) {
  file_op *put = file_new(runner, session, path, done, arg);
  if (put == NULL)
    return NULL;
  if (sbx__runner_keep(&put->op, "input", bytes) == SBX_OK)
    sbx__runner_store(&put->op, on_stored);
  else
    sbx_steps_finish_code(&put->op.steps, SBX_ENOMEM);
  return &put->op.steps.op;
}

/* Why there is no file, or SBX_OK. */
static int read_end(const file_op *get, const sbx_runner_report *report, sbx_err *err) {
  const char *provider = get->op.runner->wire->provider;
  if (report->end == SBX_RUNNER_ABSENT)
    return sbx_err_set(err, SBX_ENOTFOUND, "%s: read a file: there is none", provider);
  if (report->end == SBX_RUNNER_GOING)
    return sbx_err_set(err, SBX_ETOOBIG, "the file has more than %zu bytes", get->out->max);
  if (report->end == SBX_RUNNER_NODIR)
    return sbx_err_set(err, SBX_EINVAL,
                       "%s: read a file: it is no regular file, lies below a file, or must not be "
                       "read",
                       provider);
  if (report->end != SBX_RUNNER_RAN)
    return sbx_err_set(err, SBX_EPROTO, "%s: read a file: unexpected report", provider);
  if (report->head[0].len != report->size[0])
    return sbx_err_set(err, SBX_EPROTO, "%s: read a file: it changed meanwhile", provider);
  return SBX_OK;
}

static void on_got(sbx_runner_op *op, sbx_runner_report *report, sbx_err *err) {
  const file_op *get = (file_op *)(void *)op;
  if (err->code == SBX_OK && read_end(get, report, err) == SBX_OK &&
      sbx_buf_append_slice(get->out, sbx_buf_slice(&report->head[0])) != SBX_OK)
    sbx_err_set(err, get->out->error, NULL);
  finish_file(op, err);
}

sbx_op *sbx_runner_get(sbx_runner *runner, sbx_session *session, sbx_slice path, sbx_buf *out,
                       sbx_op_done done, void *arg) {
  file_op *get = file_new(runner, session, path, done, arg);
  if (get == NULL)
    return NULL;
  get->out = out;
  ask(&get->op, SBX_RUNNER_GET, "read a file", path, out->max, on_got);
  return &get->op.steps.op;
}
