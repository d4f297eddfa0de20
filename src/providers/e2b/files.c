/* files.c - put, remove, get, list; what the daemon's own services cannot do is a line of the
 * runner's, which is run as a process.
 *
 * Invariants: "no such file" is the daemon's own word about the path; a 404 of anything else is not
 * taken for it. A file counts as written only when the daemon names it. */
#include "providers/e2b/process.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/items.h"
#include "core/url.h"
#include "providers/remote/files.h"

enum {
  MAX_URL = 64 * 1024,
  LIST_DEPTH = 1000000,
  REMOVE_MS = 5000,
  MAX_LIST_BYTES = 256 * 1024 * 1024,
  MIN_LIST_BYTES = 1024 * 1024,
  ENTRY_BYTES = 2 * 1024, /* on average; it has its path in it twice */
  LONGEST_ENTRY = 64 * 1024
};

/* ---- lines of the runner -------------------------------------------------------------------- */

static void on_line(sbx_op *line, void *arg) {
  sbx_runner_op *op = arg;
  const sbx_runner_answer answer = {
      .err = line->err.code != SBX_OK ? &line->err : NULL,
      .printed = sbx__e2b_line_printed(line),
      .started = true,
      .broken = line->err.code == SBX_ENET,
  };
  op->steps.request = NULL;
  sbx_runner_answered(op, &answer);
}

/* A line stands inside the request, as JSON has it. */
static void begin_line(sbx_session *session, sbx_buf *body, const sbx_runner_sending *how) {
  (void)session;
  (void)how;
  sbx_buf_append_str(body, "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"");
}

static void send_line(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how) {
  sbx_buf_append_str(body, "\"],\"cwd\":\"./\"},\"stdin\":false}");
  sbx_steps_wait_for(&op->steps, sbx__e2b_line(op->steps.session, body, how->limit_s * 1000,
                                               how->max_bytes, on_line, op));
}

static const sbx_runner_wire process_service = {
    .provider = "e2b", .begin = begin_line, .send = send_line};

/* NULL on out of memory. */
static sbx_runner *runner_of(sbx_session *session) {
  if (session->runner == NULL)
    session->runner = sbx_calloc(1, sizeof *session->runner);
  if (session->runner == NULL)
    return NULL;
  session->runner->wire = &process_service;
  session->runner->loop = session->config->loop;
  session->runner->json = true;
  return session->runner;
}

static sbx_op *get_by_line(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                           void *arg) {
  sbx_buf name;
  sbx_buf_init(&name, MAX_URL);
  sbx__e2b_append_path(&name, path);
  sbx_runner *runner = runner_of(session);
  sbx_op *op = runner != NULL && name.error == SBX_OK
                   ? sbx_runner_get(runner, session, sbx_buf_slice(&name), out, done, arg)
                   : NULL;
  sbx_buf_deinit(&name);
  return op;
}

/* ---- how files are reached ------------------------------------------------------------------ */

/* The daemon answers 500 also where the path is what is wrong. */
static const sbx_remote_meaning meanings[] = {
    {404, "does not exist", SBX_ENOTFOUND, NULL, SBX_REMOTE_EFFECT_NONE},
    {404, NULL, SBX_EPROTO, NULL, SBX_REMOTE_EFFECT_NONE}, /* something else is missing */
    {500, "not a directory", SBX_EINVAL, NULL, SBX_REMOTE_EFFECT_BY_STATUS},
    {500, "path is a file", SBX_EINVAL, NULL, SBX_REMOTE_EFFECT_BY_STATUS},
    {500, "symbolic links", SBX_EINVAL, NULL, SBX_REMOTE_EFFECT_BY_STATUS},
    {500, "no such file or directory", SBX_EINVAL, NULL, SBX_REMOTE_EFFECT_BY_STATUS},
    {500, "file name too long", SBX_EINVAL, NULL, SBX_REMOTE_EFFECT_BY_STATUS},
    {500, "permission denied", SBX_EFORBIDDEN, NULL, SBX_REMOTE_EFFECT_BY_STATUS},
    {500, "operation not permitted", SBX_EFORBIDDEN, NULL, SBX_REMOTE_EFFECT_BY_STATUS},
    {500, "read-only file system", SBX_EFORBIDDEN, NULL, SBX_REMOTE_EFFECT_BY_STATUS},
    {500, "no space left on device", SBX_EQUOTA, NULL, SBX_REMOTE_EFFECT_BY_STATUS},
    {507, NULL, SBX_EQUOTA, NULL, SBX_REMOTE_EFFECT_POSSIBLE},
    {0},
};

static int check(sbx_err *err, const sbx_session *session, const sbx_http *reply,
                 const char *verb) {
  return sbx__e2b_check(err, session, meanings, reply, verb);
}

static void look(sbx_steps *steps, sbx_slice path, sbx_steps_reply on_reply) {
  sbx__e2b_call_path(steps, "/filesystem.Filesystem/Stat", path, on_reply);
}

static bool find_mode(const sbx_json *answer, sbx_slice *mode) {
  return sbx_json_string(sbx_json_get(sbx_json_get(answer, "entry"), "permissions"), mode);
}

static const sbx_remote_files daemon_files = {
    .provider = "e2b",
    .check = check,
    .read = get_by_line,
    .look = look,
    .mode = find_mode,
};

/* Sends `request` to "/files?path=...". */
static void send_request(sbx_remote_file *file, sbx__e2b_request *request,
                         sbx_steps_reply on_reply) {
  sbx_buf name, address;
  sbx_buf_init(&name, MAX_URL);
  sbx_buf_init(&address, MAX_URL);
  sbx__e2b_append_path(&name, sbx_buf_slice(&file->path));
  sbx_buf_append_str(&address, "/files");
  sbx_url_append_query(&address, sbx_slice_str("path"), sbx_buf_slice(&name));
  if (file->steps.session->box.envd_version < SBX__E2B_VERSION(0, 4, 0))
    sbx_url_append_query(&address, sbx_slice_str("username"), sbx_slice_str("user"));
  request->path = sbx_buf_slice(&address);
  if (name.error == SBX_OK && address.error == SBX_OK) {
    sbx__e2b_to_sandbox(&file->steps, request, on_reply);
    sbx_remote_files_watch(file);
  } else {
    sbx_steps_finish_code(&file->steps, SBX_ENOMEM);
  }
  sbx_buf_deinit(&address);
  sbx_buf_deinit(&name);
}

/* ---- put ------------------------------------------------------------------------------------ */

/* The reply lists what was written. Its type says text, whatever it is. */
static void on_put(sbx_steps *steps, sbx_http *reply) {
  sbx_remote_file *file = sbx_remote_files_of(steps);
  sbx_json_doc *doc = NULL;
  sbx_err err;
  if (reply->op.err.code != SBX_OK || reply->status != 200) {
    sbx_remote_files_on_put(steps, reply);
    return;
  }
  int rc = sbx_json_parse(&doc, sbx_buf_slice(&reply->body), &err);
  const sbx_json *list = rc == SBX_OK ? sbx_json_root(doc) : NULL;
  if (rc != SBX_ENOMEM && (!sbx_json_is_array(list) || sbx_json_count(list) == 0))
    rc = sbx_err_set(&err, SBX_EPROTO, "e2b: %s: the service did not confirm it", file->verb);
  sbx_json_free(doc, false);
  if (rc == SBX_OK)
    sbx_steps_finish(steps, NULL);
  else
    sbx_remote_files_fail(file, &err);
}

/* As a form, always: the daemon reads one to its end before it refuses it. A body without a frame
 * it refuses unread, and of that the proxies before it make "port is not open". */
static sbx_op *put(sbx_session *session, sbx_slice path, sbx_slice prefix, sbx_slice bytes,
                   sbx_op_done done, void *arg) {
  sbx_remote_file *file =
      sbx_remote_files_put(session, session->config->loop, &daemon_files, path, prefix, done, arg);
  if (file == NULL || file->steps.op.finished)
    return file != NULL ? &file->steps.op : NULL;
  if (sbx_buf_append_slice(&file->bytes, bytes) != SBX_OK) {
    sbx_steps_finish_code(&file->steps, file->bytes.error);
    return &file->steps.op;
  }
  const sbx_http_part part = sbx_remote_files_part("file", sbx_buf_slice(&file->bytes));
  sbx__e2b_request request = {.http.method = "POST",
                              .http.repeatable = true,
                              .http.timeout_ms = SBX_NO_TIMEOUT,
                              .http.parts = &part,
                              .http.part_count = 1};
  send_request(file, &request, on_put);
  return &file->steps.op;
}

sbx_op *sbx__e2b_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                     void *arg) {
  return put(session, path, sbx_slice_of(NULL, 0), bytes, done, arg);
}

sbx_op *sbx__e2b_upload_file(sbx_session *session, const sbx__e2b_upload *upload, sbx_op_done done,
                             void *arg) {
  return put(session, sbx_slice_str(upload->path), upload->prefix, upload->bytes, done, arg);
}

/* ---- remove --------------------------------------------------------------------------------- */

static void on_removed(sbx_steps *steps, sbx_http *reply) {
  (void)reply;
  sbx_steps_finish(steps, NULL);
}

sbx_op *sbx__e2b_remove_file(sbx_session *session, sbx_slice path, sbx_op_done done, void *arg) {
  sbx_steps *steps = sbx_steps_new(sizeof *steps, session, session->config->loop, done, arg);
  if (steps == NULL)
    return NULL;
  sbx_op_set_deadline(&steps->op, REMOVE_MS);
  sbx__e2b_call_path(steps, "/filesystem.Filesystem/Remove", path, on_removed);
  return &steps->op;
}

/* ---- get ------------------------------------------------------------------------------------ */

/* The daemon asks a file for its size by going to its end, which some of the kernel's refuse. */
static void on_got(sbx_steps *steps, sbx_http *reply) {
  if (reply->op.err.code == SBX_OK && reply->status == 500 &&
      sbx_remote_exchange_says(sbx_buf_slice(&reply->body), "can't seek"))
    sbx_remote_files_read(sbx_remote_files_of(steps));
  else
    sbx_remote_files_on_got(steps, reply);
}

sbx_op *sbx__e2b_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                     void *arg) {
  sbx_remote_file *file =
      sbx_remote_files_get(session, session->config->loop, &daemon_files, path, out, done, arg);
  if (file == NULL || file->steps.op.finished)
    return file != NULL ? &file->steps.op : NULL;
  if (sbx_remote_files_is_of_kernel(file)) {
    sbx_remote_files_read(file);
  } else {
    sbx__e2b_request request = {.http = sbx_remote_files_download(file)};
    send_request(file, &request, on_got);
  }
  return &file->steps.op;
}

/* ---- list ----------------------------------------------------------------------------------- */

typedef struct list_op {
  sbx_steps steps;
  size_t max_entries;
  sbx_listing *out;
  sbx_items items;
  sbx_buf base; /* the directory itself, with its '/' */
} list_op;

static list_op *list_of(sbx_steps *steps) {
  return (list_op *)(void *)steps;
}

static void release_list(sbx_steps *steps) {
  sbx_items_deinit(&list_of(steps)->items);
  sbx_buf_deinit(&list_of(steps)->base);
}

static int add_entry(list_op *l, sbx_slice path, uint64_t size, sbx_err *err) {
  if (l->out->count == l->max_entries)
    return sbx_err_set(err, SBX_ETOOBIG,
                       "e2b: list: there are more than %zu files" SBX__LIST_ADVICE, l->max_entries);
  return sbx_listing_add(l->out, sbx_strndup(path.ptr, path.len), size, err);
}

static int no_list(sbx_err *err, const char *what) {
  return sbx_err_set(err, SBX_EPROTO, "e2b: list: unexpected answer: %s", what);
}

/* A file that code stands in while it runs. */
static bool is_ours(sbx_slice path) {
  size_t slash = path.len;
  while (slash > 0 && path.ptr[slash - 1] != '/')
    slash--;
  return sbx_slice_starts_with(sbx_slice_skip(path, slash), sbx_slice_str(SBX__E2B_OURS));
}

/* Zeros are left out of the message. A link has the type of what it leads to. */
static int take_entry(list_op *l, const sbx_json *entry, sbx_err *err) {
  sbx_slice path, type = {NULL, 0}, base = sbx_buf_slice(&l->base);
  int64_t size = 0;
  const sbx_json *v = sbx_json_get(entry, "size");
  if (!sbx_json_string(sbx_json_get(entry, "path"), &path) || sbx_slice_has_nul(path) ||
      !sbx_slice_starts_with(path, base))
    return no_list(err, "an entry has no path below the directory");
  if (v != NULL && !sbx_json_int_or_text(v, 0, INT64_MAX, &size))
    return no_list(err, "a size is no number");
  sbx_json_string(sbx_json_get(entry, "type"), &type);
  if (is_ours(path))
    return SBX_OK;
  if (!sbx_slice_eq_str(type, "FILE_TYPE_FILE") || sbx_json_get(entry, "symlinkTarget") != NULL)
    return SBX_OK;
  return add_entry(l, sbx_slice_skip(path, base.len), (uint64_t)size, err);
}

/* What stands before the name of the first entry, which is one directly in the directory. */
static int find_base(list_op *l, const sbx_json *first, sbx_err *err) {
  sbx_slice path, name;
  if (!sbx_json_string(sbx_json_get(first, "path"), &path) ||
      !sbx_json_string(sbx_json_get(first, "name"), &name) || name.len >= path.len)
    return no_list(err, "an entry has no path below the directory");
  sbx_slice base = sbx_slice_of(path.ptr, path.len - name.len);
  if (base.ptr[base.len - 1] != '/' || !sbx_slice_eq(sbx_slice_skip(path, base.len), name))
    return no_list(err, "an entry has no path below the directory");
  int rc = sbx_buf_append_slice(&l->base, base);
  return rc == SBX_OK ? rc : sbx_err_set(err, rc, NULL);
}

static int on_entry(void *arg, const sbx_json *entry, sbx_err *err) {
  list_op *l = arg;
  int rc = l->base.len == 0 ? find_base(l, entry, err) : SBX_OK;
  return rc == SBX_OK ? take_entry(l, entry, err) : rc;
}

static int on_list_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  list_op *l = arg;
  return sbx_items_feed(&l->items, bytes, err);
}

static void on_listed_by_line(sbx_op *op, void *arg) {
  list_op *l = arg;
  l->steps.request = NULL;
  sbx_steps_finish(&l->steps, op->err.code != SBX_OK ? &op->err : NULL);
}

/* One name that is no UTF-8, and the daemon lists nothing. */
static void on_listed(sbx_steps *steps, sbx_http *reply) {
  sbx_err err;
  if (reply->op.err.code == SBX_OK && reply->status == 500 &&
      sbx_remote_exchange_says(sbx_buf_slice(&reply->body), "invalid UTF-8")) {
    list_op *l = list_of(steps);
    sbx_runner *runner = runner_of(steps->session);
    sbx_steps_wait_for(steps, runner != NULL
                                  ? sbx_runner_list(runner, steps->session, sbx_slice_of(NULL, 0),
                                                    l->max_entries, l->out, on_listed_by_line, l)
                                  : NULL);
    return;
  }
  if (!sbx__e2b_answered(steps, reply, "list"))
    return;
  int rc = sbx_items_finish(&list_of(steps)->items, &err);
  sbx_steps_finish(steps, rc == SBX_OK ? NULL : &err);
}

/* A reply that cannot be so large for so few files is not taken. */
static size_t most_bytes(size_t max_entries) {
  size_t most =
      MAX_LIST_BYTES / ENTRY_BYTES < max_entries ? MAX_LIST_BYTES : max_entries * ENTRY_BYTES;
  return most > MIN_LIST_BYTES ? most : MIN_LIST_BYTES;
}

sbx_op *sbx__e2b_list(sbx_session *session, size_t max_entries, sbx_listing *out, sbx_op_done done,
                      void *arg) {
  sbx_buf body;
  list_op *l = sbx_steps_new(sizeof *l, session, session->config->loop, done, arg);
  if (l == NULL)
    return NULL;
  l->steps.release = release_list;
  l->max_entries = max_entries;
  l->out = out;
  sbx_items_init(&l->items, "entries", LONGEST_ENTRY, on_entry, l);
  sbx_buf_init(&l->base, LONGEST_ENTRY);
  sbx_buf_init(&body, 64);
  sbx_buf_appendf(&body, "{\"path\":\"./\",\"depth\":%d}", LIST_DEPTH);
  sbx__e2b_request request = {.http.method = "POST",
                              .path = sbx_slice_str("/filesystem.Filesystem/ListDir"),
                              .http.take_body = &body,
                              .http.repeatable = true,
                              .http.timeout_ms = SBX_NO_TIMEOUT,
                              .http.max_bytes = most_bytes(max_entries),
                              .http.on_bytes = on_list_bytes,
                              .http.consumer = l,
                              .rpc = true};
  sbx__e2b_to_sandbox(&l->steps, &request, on_listed);
  return &l->steps.op;
}

/* ---- what is at a path ------------------------------------------------------------------------
 */

/* A line runs where relative paths begin. */
sbx_op *sbx__e2b_at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                         sbx_op_done done, void *arg) {
  sbx_runner *runner = runner_of(session);
  return runner != NULL ? sbx_runner_at_path(runner, session, request, NULL, out, done, arg) : NULL;
}
