/* at.c - what is at a path, and changes of names, by one line of at.sh; files in parts, by one of
 * part.sh.
 *
 * Invariant: a list that is not whole is an error; what cannot be done twice is sent once. */
#include "core/enc.h"
#include "core/err.h"
#include "providers/remote/runner/stats.h"
#include "providers/remote/runner/wire.h"

/* For an entry with a long name. */
#define ENTRY_BYTES ((size_t)320)

enum { STAMP = 96 };

/* Exit codes of both. */
enum { DONE, NOT_DIR, IS_DIR, FORBIDDEN, NO_ROOM, INTO_ITSELF, NOT_AS_BEFORE, IN_PART };

typedef struct at_op {
  sbx_runner_op op;
  sbx_path_verb verb;
  size_t max_entries;
  size_t length; /* of a part */
  sbx_stats *out;
  sbx_buf path; /* for messages */
} at_op;

static const char *provider_of(const at_op *at) {
  return at->op.runner->wire->provider;
}

/* ---- what is there --------------------------------------------------------------------------- */

static int too_many(const at_op *at, sbx_err *err) {
  return sbx_err_set(err, SBX_ETOOBIG, "the directory has more than %zu entries" SBX__LIST_ADVICE,
                     at->max_entries);
}

static int add_all(at_op *at, sbx_slice text, sbx_err *err) {
  bool is_list = at->verb == SBX_PATH_LIST;
  size_t expected = at->verb == SBX_PATH_STAT ? 1 : 0;
  int rc = sbx_runner_stats_read(at->out, text, is_list ? at->max_entries : expected);
  if (rc == SBX_OK && (is_list || at->out->count == expected))
    return SBX_OK;
  if (rc == SBX_ETOOBIG && is_list)
    return too_many(at, err);
  if (rc == SBX_ENOMEM)
    return sbx_err_set(err, rc, NULL);
  return sbx_err_set(err, SBX_EPROTO, "%s: cannot %s: unexpected output of find or stat",
                     provider_of(at), sbx_path_verb_text(at->verb));
}

/* ---- the line -------------------------------------------------------------------------------- */

static int refuse(const at_op *at, int code, const char *why, sbx_err *err) {
  return sbx_err_set(err, code, "%s: cannot %s: %s", provider_of(at), sbx_path_verb_text(at->verb),
                     why);
}

/* The part's bytes, and from before and after them how the file was. */
static int take_part(at_op *at, sbx_runner_report *report, sbx_err *err) {
  sbx_slice stamp = sbx_buf_slice(&report->head[1]), rest = stamp;
  sbx_stat stat = {.kind = SBX_KIND_FILE};
  if (stamp.len == 0 || stamp.len >= STAMP || report->head[0].len > at->length ||
      (!sbx_slice_eq_str(stamp, "0") && !sbx_runner_take_number(&rest, UINT64_MAX, &stat.size)))
    return refuse(at, SBX_EPROTO, "unexpected report", err);
  if (!sbx_slice_eq(stamp, sbx_buf_slice(&report->tail[1])))
    return sbx_err_set(err, SBX_ECONFLICT, "%s: " SBX__PART_CHANGED, provider_of(at));
  sbx_buf_deinit(&at->out->part);
  at->out->part = report->head[0];
  sbx_buf_init(&report->head[0], 0);
  return sbx_stats_add(at->out, &stat, stamp, err);
}

static const char *why_no_file(const at_op *at) {
  if (at->verb == SBX_PATH_REMOVE)
    return "it is a directory" SBX__REMOVE_ADVICE;
  if (at->verb == SBX_PATH_MOVE)
    return "there is a directory at the new path";
  return "it is no regular file";
}

static int read_end(at_op *at, sbx_runner_report *report, sbx_err *err) {
  if (report->end == SBX_RUNNER_ABSENT)
    return refuse(at, SBX_ENOTFOUND, "it does not exist", err);
  if (report->end != SBX_RUNNER_RAN)
    return refuse(at, SBX_EPROTO, "unexpected report", err);
  switch (report->exit_code) {
  case DONE:
    if (at->verb == SBX_PATH_PART)
      return take_part(at, report, err);
    return add_all(at, sbx_buf_slice(&report->head[0]), err);
  case NOT_DIR:
    return refuse(at, SBX_EINVAL, "a file stands where a directory is needed", err);
  case IS_DIR:
    return refuse(at, SBX_EINVAL, why_no_file(at), err);
  case FORBIDDEN:
    return refuse(at, SBX_EFORBIDDEN, "it is not permitted, or the file system is read-only", err);
  case NO_ROOM:
    return refuse(at, SBX_EQUOTA, "the sandbox's disk is full, or the name is too long", err);
  case INTO_ITSELF:
    return refuse(at, SBX_EINVAL, "a directory cannot be moved into itself", err);
  case NOT_AS_BEFORE:
    return sbx_err_set(err, SBX_ECONFLICT, "%s: " SBX__PART_GONE, provider_of(at));
  case IN_PART:
    sbx_buf_append_str(&at->path, ".whole");
    return refuse(at, SBX_EQUOTA,
                  "the sandbox's disk is full or failing, and the file has been written over in "
                  "part; its new content is whole in a file beside it, move it from there",
                  err);
  default:
    return refuse(at, SBX_EPROTO, "unexpected report", err);
  }
}

static void on_report(sbx_runner_op *op, sbx_runner_report *report, sbx_err *err) {
  at_op *at = (at_op *)(void *)op;
  if (err->code == SBX_OK)
    read_end(at, report, err);
  if (err->code != SBX_OK && err->code != SBX_ENOMEM) {
    sbx_err_append(err, "; the path was ");
    sbx_err_append_remote(err, sbx_buf_slice(&at->path));
  }
  sbx_steps_finish(&op->steps, err);
}

static void release(sbx_steps *steps) {
  sbx_buf_deinit(&((at_op *)(void *)steps)->path);
}

static size_t most_bytes(const sbx_path_request *request) {
  if (request->verb == SBX_PATH_PART)
    return request->length + SBX__RUNNER_LEAST;
  return sbx__runner_most(request->verb == SBX_PATH_LIST ? request->max_entries : 0, ENTRY_BYTES);
}

static const char *word_of(const sbx_path_request *request) {
  switch (request->verb) {
  case SBX_PATH_STAT:
    return "stat";
  case SBX_PATH_LIST:
    return "list";
  case SBX_PATH_REMOVE:
    return request->recursive ? "clear" : "remove";
  case SBX_PATH_MOVE:
    return "move";
  case SBX_PATH_PART:
    return "cut";
  case SBX_PATH_JOIN:
    return "join";
  case SBX_PATH_TAKE:
    return "take";
  case SBX_PATH_MAKE:
    break;
  }
  return "make";
}

/* As a command has it, in base64 when it goes among the words. */
static int put_path(sbx_buf *out, const sbx_session *session, sbx_slice path,
                    int (*absolute)(sbx_buf *out, const sbx_session *session, sbx_slice path)) {
  return absolute != NULL ? absolute(out, session, path) : sbx_buf_append_slice(out, path);
}

static bool is_of_parts(sbx_path_verb verb) {
  return verb == SBX_PATH_PART || verb == SBX_PATH_JOIN || verb == SBX_PATH_TAKE;
}

static void send_line(at_op *at, const sbx_path_request *request, sbx_slice path, sbx_slice to) {
  sbx_path_verb verb = request->verb;
  bool parts = is_of_parts(verb);
  sbx_buf words;
  size_t most = most_bytes(request);
  sbx_buf_init(&words, SIZE_MAX);
  sbx_buf_appendf(&words, " %zu %s ", most, word_of(request));
  if (parts)
    sbx_buf_appendf(&words, "%llu %zu ", (unsigned long long)request->offset, request->length);
  if (to.len > 0)
    sbx_base64_encode(&words, to);
  if (words.error != SBX_OK || sbx_buf_append(&words, "", 1) != SBX_OK)
    sbx_steps_finish_code(&at->op.steps, SBX_ENOMEM);
  else
    sbx__runner_ask(&at->op,
                    &(sbx__runner_question){.program = parts ? SBX_RUNNER_PART : SBX_RUNNER_AT,
                                            .verb = sbx_path_verb_text(verb),
                                            .text = path,
                                            .words = words.ptr,
                                            .max_bytes = most / 3 * 4,
                                            .slow = true,
                                            .once = verb == SBX_PATH_MOVE ||
                                                    verb == SBX_PATH_REMOVE ||
                                                    verb == SBX_PATH_TAKE},
                    on_report);
  sbx_buf_deinit(&words);
}

sbx_op *
sbx_runner_at_path(sbx_runner *runner, sbx_session *session, const sbx_path_request *request,
                   int (*absolute)(sbx_buf *out, const sbx_session *session, sbx_slice path),
                   sbx_stats *out, sbx_op_done done, void *arg) {
  sbx_buf path, to;
  at_op *at = sbx__runner_op_new(sizeof *at, runner, session, NULL, done, arg);
  if (at == NULL)
    return NULL;
  at->op.steps.release = release;
  at->verb = request->verb;
  at->max_entries = request->max_entries;
  at->length = request->length;
  at->out = out;
  sbx_buf_init(&at->path, SIZE_MAX);
  sbx_buf_init(&path, SIZE_MAX);
  sbx_buf_init(&to, SIZE_MAX);
  if (sbx_buf_append_slice(&at->path, request->path) != SBX_OK ||
      put_path(&path, session, request->path, absolute) != SBX_OK ||
      (request->to.len > 0 && put_path(&to, session, request->to, absolute) != SBX_OK))
    sbx_steps_finish_code(&at->op.steps, SBX_ENOMEM);
  else
    send_line(at, request, sbx_buf_slice(&path), sbx_buf_slice(&to));
  sbx_buf_deinit(&path);
  sbx_buf_deinit(&to);
  return &at->op.steps.op;
}
