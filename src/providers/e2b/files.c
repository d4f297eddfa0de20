/* files.c - put, remove, get, list.
 *
 * Invariant: "no such file" is the daemon's own word about the path; a 404 of anything else is not
 * taken for it. A file counts as written only when the daemon names it. */
#include "providers/e2b/files.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/err.h"
#include "core/items.h"
#include "core/url.h"
#include "providers/e2b/wire.h"

#include <string.h>

enum { MAX_URL = 48 * 1024, LIST_DEPTH = 1000000, REMOVE_MS = 5000 };

/* ---- what the three have in common ---------------------------------------------------------- */

/* Appends "/files?path=..." */
static void append_address(sbx_buf *out, const sbx_session *session, sbx_slice path) {
  sbx_buf name;
  sbx_buf_init(&name, MAX_URL);
  sbx__e2b_append_path(&name, path);
  sbx_buf_append_str(out, "/files");
  sbx_url_append_query(out, sbx_slice_str("path"), sbx_buf_slice(&name));
  if (session->envd_version < SBX__E2B_VERSION(0, 4, 0))
    sbx_url_append_query(out, sbx_slice_str("username"), sbx_slice_str("user"));
  if (name.error != SBX_OK)
    out->error = name.error;
  sbx_buf_deinit(&name);
}

static bool says(const sbx_err *err, const char *text) {
  return strstr(err->message, text) != NULL;
}

/* The daemon answers 500 also where the path is what is wrong. */
static const struct {
  const char *text;
  int code;
} refusals[] = {
    {"not a directory", SBX_EINVAL},
    {"path is a file", SBX_EINVAL},
    {"symbolic links", SBX_EINVAL},
    {"no such file or directory", SBX_EINVAL},
    {"file name too long", SBX_EINVAL},
    {"permission denied", SBX_EFORBIDDEN},
    {"operation not permitted", SBX_EFORBIDDEN},
    {"read-only file system", SBX_EFORBIDDEN},
    {"no space left on device", SBX_EQUOTA},
    {"can't seek", SBX_EUNSUPPORTED},
};

static int file_error(const sbx_session *session, const sbx_http *http, const char *verb,
                      sbx_slice path, sbx_err *err) {
  sbx__e2b_sandbox_error(session, http, verb, err);
  if (http->status == 404 && !says(err, "does not exist"))
    err->code = SBX_EPROTO;
  for (size_t i = 0; http->status == 500 && i < sizeof refusals / sizeof *refusals; i++) {
    if (says(err, refusals[i].text)) {
      err->code = refusals[i].code;
      break;
    }
  }
  if (err->code == SBX_EUNSUPPORTED)
    sbx_err_append(err, "; read what is no ordinary file by a command such as cat");
  sbx_err_append(err, " (path ");
  sbx_err_append_remote(err, path);
  sbx_err_append(err, ")");
  return err->code;
}

/* An op that remembers its path, for messages. */
typedef struct file_op {
  sbx_steps steps;
  char *path;
  sbx_buf content; /* put; borrowed by the upload */
  sbx_buf *out;    /* get */
} file_op;

static void release_file(sbx_steps *steps) {
  file_op *f = (file_op *)(void *)steps;
  sbx_buf_deinit(&f->content);
  sbx_free(f->path);
}

static file_op *file_new(sbx_session *session, sbx_slice path, sbx_op_done done, void *arg) {
  char *copy = sbx_strndup(path.ptr, path.len);
  file_op *f =
      copy != NULL ? sbx_steps_new(sizeof *f, session, session->config->loop, done, arg) : NULL;
  if (f == NULL) {
    sbx_free(copy);
    return NULL;
  }
  f->steps.release = release_file;
  f->path = copy;
  sbx_buf_init(&f->content, SIZE_MAX / 2);
  return f;
}

static sbx_slice path_of(const file_op *f) {
  return sbx_slice_str(f->path);
}

static void finish_badly(file_op *f, const sbx_http *reply, const char *verb) {
  sbx_err err;
  file_error(f->steps.session, reply, verb, path_of(f), &err);
  sbx_steps_finish(&f->steps, &err);
}

/* Sends `request` to the address of the file. */
static void send_request(file_op *f, sbx__e2b_request *request, sbx_steps_reply on_reply) {
  sbx_buf address;
  sbx_err err;
  sbx_buf_init(&address, MAX_URL);
  append_address(&address, f->steps.session, path_of(f));
  request->path = sbx_buf_slice(&address);
  if (address.error == SBX_OK) {
    sbx__e2b_to_sandbox(&f->steps, request, on_reply);
  } else if (address.error == SBX_ETOOBIG) {
    sbx_err_set(&err, SBX_EINVAL, "e2b: the path is too long");
    sbx_steps_finish(&f->steps, &err);
  } else {
    sbx_steps_finish_code(&f->steps, address.error);
  }
  sbx_buf_deinit(&address);
}

/* ---- put ------------------------------------------------------------------------------------ */

/* The reply lists what was written. Its type says text, whatever it is. */
static int check_written(const file_op *f, sbx_slice body, sbx_err *err) {
  sbx_json_doc *doc = NULL;
  int rc = sbx_json_parse(&doc, body, err);
  const sbx_json *list = rc == SBX_OK ? sbx_json_root(doc) : NULL;
  if (rc != SBX_ENOMEM && (!sbx_json_is_array(list) || sbx_json_count(list) == 0)) {
    rc = sbx_err_set(err, SBX_EPROTO, "e2b: write: the service did not confirm the file (path ");
    sbx_err_append_remote(err, path_of(f));
    sbx_err_append(err, ")");
  }
  sbx_json_free(doc, false);
  return rc;
}

static void on_put(sbx_steps *steps, sbx_http *reply) {
  file_op *f = (file_op *)(void *)steps;
  sbx_err err;
  if (!sbx_steps_arrived(steps, reply))
    return;
  if (reply->status != 200)
    finish_badly(f, reply, "write");
  else if (check_written(f, sbx_buf_slice(&reply->body), &err) == SBX_OK)
    sbx_steps_finish(steps, NULL);
  else
    sbx_steps_finish(steps, &err);
}

/* As a form, always: the daemon reads one to its end before it refuses it. A body without a frame
 * it refuses unread, and of that the proxies before it make "port is not open". */
static void send_put(file_op *f) {
  const sbx_http_part part = {.name = sbx_slice_str("file"),
                              .filename = sbx_slice_str("file"),
                              .content_type = sbx_slice_str("application/octet-stream"),
                              .content = sbx_buf_slice(&f->content),
                              .borrowed = true};
  sbx__e2b_request request = {.http.method = "POST",
                              .http.repeatable = true,
                              .http.timeout_ms = SBX_NO_TIMEOUT,
                              .http.parts = &part,
                              .http.part_count = 1};
  send_request(f, &request, on_put);
}

static sbx_op *put(sbx_session *session, sbx_slice path, sbx_slice prefix, sbx_slice bytes,
                   sbx_op_done done, void *arg) {
  file_op *f = file_new(session, path, done, arg);
  if (f == NULL)
    return NULL;
  sbx_buf_reserve(&f->content, prefix.len + bytes.len);
  sbx_buf_append_slice(&f->content, prefix);
  if (sbx_buf_append_slice(&f->content, bytes) == SBX_OK)
    send_put(f);
  else
    sbx_steps_finish_code(&f->steps, f->content.error);
  return &f->steps.op;
}

sbx_op *sbx__e2b_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                     void *arg) {
  return put(session, path, sbx_slice_of(NULL, 0), bytes, done, arg);
}

sbx_op *sbx__e2b_upload_file(sbx_session *session, const sbx__e2b_upload *upload, sbx_op_done done,
                             void *arg) {
  sbx_slice path = sbx_slice_str(upload->path);
  return put(session, path, upload->prefix, upload->bytes, done, arg);
}

/* ---- remove --------------------------------------------------------------------------------- */

static void on_removed(sbx_steps *steps, sbx_http *reply) {
  (void)reply;
  sbx_steps_finish(steps, NULL);
}

sbx_op *sbx__e2b_remove_file(sbx_session *session, sbx_slice path, sbx_op_done done, void *arg) {
  sbx_buf body;
  sbx_json_out out;
  sbx_steps *steps = sbx_steps_new(sizeof *steps, session, session->config->loop, done, arg);
  if (steps == NULL)
    return NULL;
  sbx_buf_init(&body, MAX_URL);
  sbx_json_out_init(&out, &body);
  sbx_json_begin_object(&out);
  sbx_json_put_name(&out, sbx_slice_str("path"));
  sbx_json_put_string(&out, path);
  sbx_json_end_object(&out);
  sbx__e2b_request request = {.http.method = "POST",
                              .path = sbx_slice_str("/filesystem.Filesystem/Remove"),
                              .content_type = "application/json",
                              .http.take_body = &body,
                              .http.repeatable = true,
                              .http.timeout_ms = REMOVE_MS,
                              .rpc = true};
  sbx__e2b_to_sandbox(steps, &request, on_removed);
  sbx_buf_deinit(&body);
  return &steps->op;
}

/* ---- get ------------------------------------------------------------------------------------ */

/* Inside libcurl. */
static int on_get_head(void *arg, int status, const sbx_headers *headers, sbx_err *err) {
  file_op *f = arg;
  sbx_slice length;
  (void)err;
  if (status != 200 || !sbx_headers_get(headers, "content-length", &length))
    return SBX_OK;
  size_t size = 0;
  for (size_t i = 0; i < length.len && sbx_is_digit(length.ptr[i]) && size < f->out->max; i++)
    size = size * 10 + (size_t)(length.ptr[i] - '0');
  /* Only a hint: what it says too much, or what memory is missing, shows with the bytes. */
  if (size > 0 && size <= f->out->max && sbx_buf_reserve(f->out, size) != SBX_OK)
    f->out->error = SBX_OK;
  return SBX_OK;
}

static int on_get_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  file_op *f = arg;
  int rc = sbx_buf_append_slice(f->out, bytes);
  if (rc == SBX_ETOOBIG)
    return sbx_err_set(err, rc, "e2b: read: the file has more than %zu bytes", f->out->max);
  return rc == SBX_OK ? SBX_OK : sbx_err_set(err, rc, NULL);
}

static void on_got(sbx_steps *steps, sbx_http *reply) {
  file_op *f = (file_op *)(void *)steps;
  if (!sbx_steps_arrived(steps, reply))
    return;
  if (reply->status == 200)
    sbx_steps_finish(steps, NULL);
  else
    finish_badly(f, reply, "read");
}

sbx_op *sbx__e2b_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                     void *arg) {
  file_op *f = file_new(session, path, done, arg);
  if (f == NULL)
    return NULL;
  f->out = out;
  sbx__e2b_request request = {.http.method = "GET",
                              .http.repeatable = true,
                              .http.timeout_ms = SBX_NO_TIMEOUT,
                              .http.on_head = on_get_head,
                              .http.on_bytes = on_get_bytes,
                              .http.consumer = f};
  send_request(f, &request, on_got);
  return &f->steps.op;
}

/* ---- list ----------------------------------------------------------------------------------- */

enum {
  MAX_LIST_BYTES = 256 * 1024 * 1024,
  MIN_LIST_BYTES = 1024 * 1024,
  ENTRY_BYTES = 2 * 1024, /* on average; it has its path in it twice */
  LONGEST_ENTRY = 64 * 1024
};

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

static void on_listed(sbx_steps *steps, sbx_http *reply) {
  sbx_err err;
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
                              .content_type = "application/json",
                              .http.take_body = &body,
                              .http.repeatable = true,
                              .http.timeout_ms = SBX_NO_TIMEOUT,
                              .http.max_bytes = most_bytes(max_entries),
                              .http.on_bytes = on_list_bytes,
                              .http.consumer = l,
                              .rpc = true};
  sbx__e2b_to_sandbox(&l->steps, &request, on_listed);
  sbx_buf_deinit(&body);
  return &l->steps.op;
}
