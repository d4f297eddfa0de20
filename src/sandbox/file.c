/* file.c - write, read and list files.
 *
 * Invariant: "no such file" is an answer, and only the provider's clear word for it; every other
 * failure is an error. */
#include "sandbox/call.h"

#include "core/alloc.h"
#include "sandbox/spec.h"

/* A larger file is not held twice for the rare case that the sandbox has stopped; its write is then
 * refused, and can be repeated. */
enum { MAX_KEPT_BYTES = 1 << 20 };
#define MAX_READ_BYTES ((size_t)1 << 31)

typedef struct file_call {
  sbx_call call;
  sbx_slice path;  /* borrowed from the user for the run, or pointing into `copy` */
  sbx_slice bytes; /* the same */
  char *copy;
  sbx_done_cb on_written;
  sbx_read_cb on_read;
  sbx_list_cb on_listed;
  sbx_buf data;
  bool missing;
  size_t max_entries;
  sbx_listing listing;
} file_call;

static file_call *file_of(sbx_call *call) {
  return (file_call *)(void *)call;
}

/* ---- what the three have in common ---- */

static void release_file(sbx_call *call) {
  file_call *file = file_of(call);
  sbx_listing_free(&file->listing);
  sbx_buf_deinit(&file->data);
  sbx_free(file->copy);
}

/* `child` was started, or could not be. */
static void started(sbx_call *call, sbx_op *child) {
  file_call *file = file_of(call);
  if (!call->keeps_arguments) {
    sbx_free(file->copy);
    file->copy = NULL;
  }
  sbx__call_await(call, child, call->sb->file_timeout_ms);
}

/* Starts a call that is like `model`. */
static int begin(sbx_sandbox *sb, const file_call *model, const sbx__call_kind *kind, void *arg,
                 sbx_call **out, sbx_err *err) {
  file_call *file = sbx_calloc(1, sizeof *file);
  if (file == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  *file = *model;
  file->call.keeps_arguments = sb->provider->restarts && model->bytes.len <= MAX_KEPT_BYTES;
  bool copies = !sbx__places_are_open(&sb->places) || file->call.keeps_arguments;
  if (copies && sbx_slices_copy(&file->copy, &file->path, &file->bytes) != SBX_OK) {
    sbx_free(file);
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  sbx__call_init(&file->call, sb, kind, arg);
  file->call.data = model->on_read != NULL ? &file->data : NULL;
  sbx__call_begin(&file->call);
  if (out != NULL)
    *out = &file->call;
  return SBX_OK;
}

/* ---- write ---- */

static void run_write(sbx_call *call) {
  file_call *file = file_of(call);
  started(call, call->sb->provider->put(call->place->session, file->path, file->bytes,
                                        sbx__call_child_done, call));
}

static void report_write(sbx_call *call, const sbx_err *err) {
  file_of(call)->on_written(call->arg, err);
}

static const char *write_effects(const sbx_call *call) {
  bool cut_off = sbx__is_doubtful(call->cause.code) || call->cause.code == SBX_ECANCELED;
  if (!cut_off || call->place->state == SBX__PLACE_GONE)
    return NULL;
  return "the file may be incomplete, and writing it again is safe";
}

static const sbx__call_kind write_kind = {run_write, sbx__call_stop_child, report_write,
                                          release_file, write_effects};

int sbx_sandbox_write(sbx_sandbox *sb, sbx_slice path, sbx_slice bytes, sbx_done_cb cb, void *arg,
                      sbx_call **out, sbx_err *err) {
  int rc = sbx__sandbox_check(sb, err);
  if (rc == SBX_OK)
    rc = sbx__check_path(path, err);
  if (rc != SBX_OK)
    return rc;
  file_call model = {.path = path, .bytes = bytes, .on_written = cb};
  return begin(sb, &model, &write_kind, arg, out, err);
}

/* ---- read ---- */

static void on_read_done(sbx_op *op, void *arg) {
  file_call *file = arg;
  file->missing = op->err.code == SBX_ENOTFOUND;
  if (!file->missing) {
    sbx__call_child_done(op, &file->call);
    return;
  }
  file->call.child = NULL;
  sbx__call_finish(&file->call, NULL);
}

static void run_read(sbx_call *call) {
  file_call *file = file_of(call);
  started(call, call->sb->provider->get(call->place->session, file->path, &file->data, on_read_done,
                                        file));
}

static void report_read(sbx_call *call, const sbx_err *err) {
  file_call *file = file_of(call);
  sbx_slice bytes = sbx_buf_slice(&file->data);
  bool has_bytes = err == NULL && !file->missing;
  file->on_read(call->arg, err, has_bytes ? &bytes : NULL);
}

static const sbx__call_kind read_kind = {run_read, sbx__call_stop_child, report_read, release_file,
                                         NULL};

int sbx_sandbox_read(sbx_sandbox *sb, sbx_slice path, size_t max_bytes, sbx_read_cb cb, void *arg,
                     sbx_call **out, sbx_err *err) {
  int rc = sbx__sandbox_check(sb, err);
  if (rc == SBX_OK)
    rc = sbx__check_path(path, err);
  if (rc == SBX_OK && max_bytes > MAX_READ_BYTES)
    rc = sbx_err_set(err, SBX_EINVAL, "max_bytes is %zu; give at most %zu (2 GiB)", max_bytes,
                     MAX_READ_BYTES);
  if (rc != SBX_OK)
    return rc;
  file_call model = {.path = path, .on_read = cb};
  sbx_buf_init(&model.data, max_bytes > 0 ? max_bytes : MAX_READ_BYTES);
  return begin(sb, &model, &read_kind, arg, out, err);
}

/* ---- list ---- */

static void run_list(sbx_call *call) {
  file_call *file = file_of(call);
  started(call, call->sb->provider->list(call->place->session, file->max_entries, &file->listing,
                                         sbx__call_child_done, call));
}

static void report_list(sbx_call *call, const sbx_err *err) {
  file_call *file = file_of(call);
  bool ok = err == NULL;
  file->on_listed(call->arg, err, ok ? file->listing.entries : NULL, ok ? file->listing.count : 0);
}

static const sbx__call_kind list_kind = {run_list, sbx__call_stop_child, report_list, release_file,
                                         NULL};

int sbx_sandbox_list(sbx_sandbox *sb, size_t max_entries, sbx_list_cb cb, void *arg, sbx_call **out,
                     sbx_err *err) {
  int rc = sbx__sandbox_check(sb, err);
  if (rc != SBX_OK)
    return rc;
  if (!(sbx_provider_caps(sb->provider, sb->places.config) & SBX_CAP_LIST))
    return sbx_err_set(err, SBX_EUNSUPPORTED,
                       "this provider cannot list files; run a command such as find");
  if (max_entries == 0)
    return sbx_err_set(err, SBX_EINVAL, "max_entries must be at least 1");
  file_call model = {.max_entries = max_entries, .on_listed = cb};
  return begin(sb, &model, &list_kind, arg, out, err);
}
