/* files.c - put, get and list through lines alone.
 *
 * Invariant: a file or a list that is not whole is an error. */
#include "providers/remote/runner/wire.h"

#include "core/alloc.h"
#include "core/err.h"

/* For an entry of a list, with a long path; and for all of them. */
#define ENTRY_BYTES ((size_t)256)
#define MIN_BYTES ((size_t)64 << 10)
#define MAX_BYTES ((size_t)8 << 20)
#define LIST_LIMIT_S 120

/* ---- list ----------------------------------------------------------------------------------- */

typedef struct list_op {
  sbx_runner_op op;
  sbx_listing *out;
  size_t max_entries;
  char tag[SBX_RUNNER_TAG + 1];
} list_op;

static int too_many(const list_op *list, sbx_err *err) {
  return sbx_err_set(err, SBX_ETOOBIG, "there are more than %zu files" SBX__LIST_ADVICE,
                     list->max_entries);
}

static bool take_size(sbx_slice *item, uint64_t *size) {
  size_t blank = sbx_slice_find(*item, ' ');
  *size = 0;
  for (size_t i = 0; i < blank; i++) {
    if (!sbx_is_digit(item->ptr[i]) || blank > 18)
      return false;
    *size = *size * 10 + (uint64_t)(item->ptr[i] - '0');
  }
  *item = sbx_slice_skip(*item, blank + 1);
  return blank > 0;
}

/* `item`: "<size> ./<path>" */
static int add_entry(list_op *list, sbx_slice item, sbx_err *err) {
  uint64_t size;
  if (!take_size(&item, &size) || !sbx_slice_starts_with(item, sbx_slice_str("./")))
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

static void on_listed(sbx_runner_op *op, const sbx_runner_answer *answer) {
  list_op *list = (list_op *)(void *)op;
  sbx_runner_report report;
  sbx_err err;
  int rc = sbx__runner_read(op, &report, answer, list->tag, &err);
  if (rc == SBX_OK && report.end != SBX_RUNNER_RAN)
    rc = sbx_err_set(&err, SBX_ENOTFOUND, "%s: list files: there is no such directory",
                     op->runner->wire->provider);
  if (rc == SBX_OK)
    rc = add_all(list, sbx_buf_slice(&report.head[0]), &err);
  sbx_runner_report_deinit(&report);
  sbx_steps_finish(&op->steps, rc == SBX_OK ? NULL : &err);
}

static size_t most_bytes(size_t max_entries) {
  if (max_entries < MIN_BYTES / ENTRY_BYTES)
    return MIN_BYTES;
  return max_entries < MAX_BYTES / ENTRY_BYTES ? max_entries * ENTRY_BYTES : MAX_BYTES;
}

sbx_op *sbx_runner_list(sbx_runner *runner, sbx_session *session, sbx_slice dir, size_t max_entries,
                        sbx_listing *out, sbx_op_done done, void *arg) {
  sbx_buf body;
  sbx_err err;
  size_t most = most_bytes(max_entries);
  list_op *list = sbx__runner_op_new(sizeof *list, runner, session, done, arg);
  if (list == NULL)
    return NULL;
  list->out = out;
  list->max_entries = max_entries;
  if (sbx__runner_take_tag(runner, list->tag, &err) != SBX_OK) {
    sbx_steps_finish(&list->op.steps, &err);
    return &list->op.steps.op;
  }
  sbx_runner_line line = sbx__runner_begin(&list->op, &body);
  sbx_runner_sending how = {.verb = "list files",
                            .limit_s = LIST_LIMIT_S,
                            .timeout_ms = SBX_NO_TIMEOUT,
                            .max_bytes = most * 2 + SBX__RUNNER_ROOM};
  sbx_runner_line_list(&line, list->tag, dir, most);
  sbx__runner_send(&list->op, &body, &how, on_listed);
  return &list->op.steps.op;
}

/* ---- put ------------------------------------------------------------------------------------ */

/* Ends with an error, the path added to its words. */
static void fail_file(sbx_runner_op *op, const sbx_buf *path, sbx_err *err) {
  if (err->code != SBX_ENOMEM) {
    sbx_err_append(err, "; the path was ");
    sbx_err_append_remote(err, sbx_buf_slice(path));
  }
  sbx_steps_finish(&op->steps, err);
}

typedef struct put_op {
  sbx_runner_op op;
  sbx_buf path, bytes;
  size_t at; /* how many are in the sandbox */
  sbx_repeat repeat;
  char tag[SBX_RUNNER_TAG + 1];
} put_op;

static void store_on(sbx_steps *steps);

static void on_put(sbx_runner_op *op, const sbx_runner_answer *answer) {
  put_op *put = (put_op *)(void *)op;
  sbx_runner_report report;
  sbx_err err;
  int rc = sbx__runner_read(op, &report, answer, put->tag, &err);
  if (rc == SBX_OK && report.end == SBX_RUNNER_NODIR)
    rc = sbx_err_set(&err, SBX_EINVAL,
                     "%s: write a file: the path is a directory, lies below a file, or must not be "
                     "written to",
                     op->runner->wire->provider);
  else if (rc == SBX_OK && report.end != SBX_RUNNER_RAN)
    rc = sbx_err_set(&err, SBX_EQUOTA, "%s: write a file: the sandbox's disk is full",
                     op->runner->wire->provider);
  sbx_runner_report_deinit(&report);
  if (rc == SBX_OK)
    sbx_steps_finish(&op->steps, NULL);
  else
    fail_file(op, &put->path, &err);
}

static void on_piece(sbx_runner_op *op, const sbx_runner_answer *answer) {
  put_op *put = (put_op *)(void *)op;
  sbx_err err;
  int rc = sbx__runner_stored(op, put->tag, sbx_buf_slice(&put->bytes), &put->at, answer, &err);
  if (rc == SBX_OK) {
    put->repeat = (sbx_repeat){0};
    store_on(&op->steps);
  } else if (!sbx_steps_repeat(&op->steps, &put->repeat, &sbx__runner_beside, NULL, &err,
                               store_on)) {
    fail_file(op, &put->path, &err);
  }
}

static void store_on(sbx_steps *steps) {
  put_op *put = (put_op *)(void *)steps;
  sbx_buf body;
  if (sbx__runner_store(&put->op, put->tag, "input", sbx_buf_slice(&put->bytes), &put->at,
                        on_piece))
    return;
  sbx_runner_line line = sbx__runner_begin(&put->op, &body);
  sbx_runner_sending how = {.verb = "write a file",
                            .limit_s = LIST_LIMIT_S,
                            .timeout_ms = SBX_NO_TIMEOUT,
                            .max_bytes = SBX__RUNNER_ROOM};
  sbx_runner_line_put(&line, put->tag, sbx_buf_slice(&put->path));
  sbx__runner_send(&put->op, &body, &how, on_put);
}

static void release_put(sbx_steps *steps) {
  put_op *put = (put_op *)(void *)steps;
  sbx_buf_deinit(&put->path);
  sbx_buf_deinit(&put->bytes);
}

sbx_op *sbx_runner_put(sbx_runner *runner, sbx_session *session, sbx_slice path, sbx_slice bytes,
                       sbx_op_done done, void *arg) {
  sbx_err err;
  put_op *put = sbx__runner_op_new(sizeof *put, runner, session, done, arg);
  if (put == NULL)
    return NULL;
  put->op.steps.release = release_put;
  sbx_buf_init(&put->path, SIZE_MAX);
  sbx_buf_init(&put->bytes, SIZE_MAX);
  sbx_buf_append_slice(&put->path, path);
  sbx_buf_append_slice(&put->bytes, bytes);
  if (put->path.error != SBX_OK || put->bytes.error != SBX_OK)
    sbx_steps_finish_code(&put->op.steps, SBX_ENOMEM);
  else if (sbx__runner_take_tag(runner, put->tag, &err) != SBX_OK)
    sbx_steps_finish(&put->op.steps, &err);
  else
    store_on(&put->op.steps);
  return &put->op.steps.op;
}

/* ---- get ------------------------------------------------------------------------------------ */

typedef struct get_op {
  sbx_runner_op op;
  sbx_buf path;
  sbx_buf *out;
  char tag[SBX_RUNNER_TAG + 1];
} get_op;

static int take_file(const get_op *get, const sbx_runner_report *report, sbx_err *err) {
  const char *provider = get->op.runner->wire->provider;
  switch (report->end) {
  case SBX_RUNNER_RAN:
    if (report->head[0].len != report->size[0])
      return sbx_err_set(err, SBX_EPROTO, "%s: read a file: it changed meanwhile", provider);
    if (sbx_buf_append_slice(get->out, sbx_buf_slice(&report->head[0])) == SBX_OK)
      return SBX_OK;
    return sbx_err_set(err, get->out->error, NULL);
  case SBX_RUNNER_ABSENT:
    return sbx_err_set(err, SBX_ENOTFOUND, "%s: read a file: there is none", provider);
  case SBX_RUNNER_GOING:
    return sbx_err_set(err, SBX_ETOOBIG, "the file has more than %zu bytes", get->out->max);
  case SBX_RUNNER_NODIR:
    return sbx_err_set(err, SBX_EINVAL,
                       "%s: read a file: it is no regular file, lies below a file, or must not be "
                       "read",
                       provider);
  case SBX_RUNNER_LATE:
  case SBX_RUNNER_STOPPED:
  case SBX_RUNNER_UNSTORED:
  case SBX_RUNNER_NOSHELL:
  case SBX_RUNNER_AGAIN:
  case SBX_RUNNER_ENDED:
    break;
  }
  return sbx_err_set(err, SBX_EPROTO, "%s: read a file: unexpected report", provider);
}

static void on_got(sbx_runner_op *op, const sbx_runner_answer *answer) {
  get_op *get = (get_op *)(void *)op;
  sbx_runner_report report;
  sbx_err err;
  int rc = sbx__runner_read(op, &report, answer, get->tag, &err);
  if (rc == SBX_OK)
    rc = take_file(get, &report, &err);
  sbx_runner_report_deinit(&report);
  if (rc == SBX_OK)
    sbx_steps_finish(&op->steps, NULL);
  else
    fail_file(op, &get->path, &err);
}

static void release_get(sbx_steps *steps) {
  sbx_buf_deinit(&((get_op *)(void *)steps)->path);
}

sbx_op *sbx_runner_get(sbx_runner *runner, sbx_session *session, sbx_slice path, sbx_buf *out,
                       sbx_op_done done, void *arg) {
  sbx_buf body;
  sbx_err err;
  get_op *get = sbx__runner_op_new(sizeof *get, runner, session, done, arg);
  if (get == NULL)
    return NULL;
  get->out = out;
  get->op.steps.release = release_get;
  sbx_buf_init(&get->path, SIZE_MAX);
  if (sbx_buf_append_slice(&get->path, path) != SBX_OK) {
    sbx_steps_finish_code(&get->op.steps, SBX_ENOMEM);
    return &get->op.steps.op;
  }
  if (sbx__runner_take_tag(runner, get->tag, &err) != SBX_OK) {
    sbx_steps_finish(&get->op.steps, &err);
    return &get->op.steps.op;
  }
  sbx_runner_line line = sbx__runner_begin(&get->op, &body);
  sbx_runner_sending how = {.verb = "read a file",
                            .limit_s = LIST_LIMIT_S,
                            .timeout_ms = SBX_NO_TIMEOUT,
                            .max_bytes = out->max / 3 * 4 + SBX__RUNNER_ROOM};
  sbx_runner_line_get(&line, get->tag, path, out->max);
  sbx__runner_send(&get->op, &body, &how, on_got);
  return &get->op.steps.op;
}
