/* path.c - what is at a path, and changes of names: stat, list, remove, move, make.
 *
 * Invariant: "there is nothing" is an answer of stat and remove, and only the provider's clear word
 * for it; every other failure is an error. */
#include "sandbox/call.h"

#include "core/alloc.h"
#include "core/err.h"
#include "sandbox/spec.h"

#include <stdlib.h>
#include <string.h>

typedef struct path_call {
  sbx_call call;
  sbx_path_request request; /* its paths are borrowed from the user for the run, or in `copy` */
  char *copy;
  union {
    sbx_stat_cb stat;
    sbx_dir_cb list;
    sbx_remove_cb remove;
    sbx_done_cb done;
  } on;
  sbx_stats stats;
  bool missing;
} path_call;

static path_call *path_of(sbx_call *call) {
  return (path_call *)(void *)call;
}

/* ---- what all have in common ---- */

static void release_path(sbx_call *call) {
  path_call *path = path_of(call);
  sbx_stats_free(&path->stats);
  sbx_free(path->copy);
}

static bool may_be_missing(const path_call *path) {
  return path->request.verb == SBX_PATH_STAT || path->request.verb == SBX_PATH_REMOVE;
}

static void on_done(sbx_op *op, void *arg) {
  path_call *path = arg;
  path->missing = op->err.code == SBX_ENOTFOUND && may_be_missing(path);
  if (!path->missing) {
    sbx__call_child_done(op, &path->call);
    return;
  }
  path->call.child = NULL;
  sbx__call_finish(&path->call, NULL);
}

static void run_path(sbx_call *call) {
  path_call *path = path_of(call);
  sbx_op *child = call->sb->provider->at_path(call->place->session, &path->request, &path->stats,
                                              on_done, path);
  if (!call->keeps_arguments) {
    sbx_free(path->copy);
    path->copy = NULL;
  }
  sbx__call_await(call, child, call->sb->file_timeout_ms);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const sbx_stat *)a)->name, ((const sbx_stat *)b)->name);
}

static void report_list(path_call *path, const sbx_err *err) {
  sbx_stats *stats = &path->stats;
  if (err == NULL && stats->count > 0)
    qsort(stats->items, stats->count, sizeof *stats->items, by_name);
  path->on.list(path->call.arg, err, err == NULL ? stats->items : NULL,
                err == NULL ? stats->count : 0);
}

static void report_path(sbx_call *call, const sbx_err *err) {
  path_call *path = path_of(call);
  switch (path->request.verb) {
  case SBX_PATH_STAT:
    path->on.stat(call->arg, err, err == NULL && path->stats.count > 0 ? path->stats.items : NULL);
    break;
  case SBX_PATH_LIST:
    report_list(path, err);
    break;
  case SBX_PATH_REMOVE:
    path->on.remove(call->arg, err, err == NULL && !path->missing);
    break;
  case SBX_PATH_MOVE:
  case SBX_PATH_MAKE:
  case SBX_PATH_PART:
  case SBX_PATH_JOIN:
  case SBX_PATH_TAKE:
    path->on.done(call->arg, err);
    break;
  }
}

static const char *path_effects(const sbx_call *call) {
  sbx_path_verb verb = ((const path_call *)(const void *)call)->request.verb;
  int code = call->cause.code;
  bool cut_off = (sbx__is_doubtful(code) && code != SBX_ENOTFOUND) || code == SBX_ECANCELED;
  if (!cut_off || call->place->state == SBX__PLACE_GONE)
    return NULL;
  switch (verb) {
  case SBX_PATH_REMOVE:
    return "something may have been removed, and doing it again is safe";
  case SBX_PATH_MOVE:
    return "it may have been moved all the same: look at both paths before you do it again";
  case SBX_PATH_MAKE:
    return "the directory may have been made, and doing it again is safe";
  case SBX_PATH_STAT:
  case SBX_PATH_LIST:
  case SBX_PATH_PART:
  case SBX_PATH_JOIN:
  case SBX_PATH_TAKE:
    break;
  }
  return NULL;
}

static const sbx__call_kind path_kind = {run_path, sbx__call_stop_child, report_path, release_path,
                                         path_effects};

/* ---- paths ---- */

static int check(sbx_slice *path, sbx_err *err) {
  int rc = sbx__check_path(*path, err);
  while (rc == SBX_OK && path->len > 1 && path->ptr[path->len - 1] == '/')
    path->len--;
  return rc;
}

/* A name that can be taken away: not the root, the home, the base directory or one above. */
static int check_name(sbx_slice *path, sbx_err *err) {
  int rc = check(path, err);
  if (rc != SBX_OK)
    return rc;
  size_t start = path->len;
  while (start > 0 && path->ptr[start - 1] != '/')
    start--;
  sbx_slice last = sbx_slice_skip(*path, start);
  bool is_home = start == 0 && sbx_slice_eq_str(last, "~");
  if (last.len > 0 && !is_home && !sbx_slice_eq_str(last, ".") && !sbx_slice_eq_str(last, ".."))
    return SBX_OK;
  sbx_err_set(err, SBX_EINVAL, "the path \"");
  sbx_err_append_remote(err, *path);
  sbx_err_append(err, "\" has no name at its end that could be removed or moved; name the file or "
                      "the directory itself, such as \"dir/file\"");
  return SBX_EINVAL;
}

static int begin(sbx_sandbox *sb, const path_call *model, void *arg, sbx_call **out, sbx_err *err) {
  path_call *path;
  if (!(sbx_provider_caps(sb->provider, sb->places.config) & SBX_CAP_PATHS))
    return sbx_err_set(err, SBX_EUNSUPPORTED,
                       "this provider cannot %s what is at a path; run a command such as ls, rm, "
                       "mv or mkdir",
                       sbx_path_verb_text(model->request.verb));
  if ((path = sbx_calloc(1, sizeof *path)) == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  *path = *model;
  path->call.keeps_arguments = sb->provider->restarts;
  bool copies = !sbx__places_are_open(&sb->places) || path->call.keeps_arguments;
  if (copies && sbx_slices_copy(&path->copy, &path->request.path, &path->request.to) != SBX_OK) {
    sbx_free(path);
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  sbx__call_init(&path->call, sb, &path_kind, arg);
  sbx__call_begin(&path->call);
  if (out != NULL)
    *out = &path->call;
  return SBX_OK;
}

/* ---- the five ---- */

int sbx_sandbox_stat(sbx_sandbox *sb, sbx_slice path, sbx_stat_cb cb, void *arg, sbx_call **out,
                     sbx_err *err) {
  path_call model = {.request = {.verb = SBX_PATH_STAT, .path = path}, .on = {.stat = cb}};
  int rc = sbx__sandbox_check(sb, err);
  if (rc == SBX_OK)
    rc = check(&model.request.path, err);
  return rc == SBX_OK ? begin(sb, &model, arg, out, err) : rc;
}

int sbx_sandbox_list_dir(sbx_sandbox *sb, sbx_slice path, size_t max_entries, sbx_dir_cb cb,
                         void *arg, sbx_call **out, sbx_err *err) {
  path_call model = {.request = {.verb = SBX_PATH_LIST, .path = path, .max_entries = max_entries},
                     .on = {.list = cb}};
  int rc = sbx__sandbox_check(sb, err);
  if (rc == SBX_OK)
    rc = check(&model.request.path, err);
  if (rc == SBX_OK && max_entries == 0)
    rc = sbx_err_set(err, SBX_EINVAL, "max_entries must be at least 1");
  return rc == SBX_OK ? begin(sb, &model, arg, out, err) : rc;
}

int sbx_sandbox_remove(sbx_sandbox *sb, sbx_slice path, bool recursive, sbx_remove_cb cb, void *arg,
                       sbx_call **out, sbx_err *err) {
  path_call model = {.request = {.verb = SBX_PATH_REMOVE, .path = path, .recursive = recursive},
                     .on = {.remove = cb}};
  int rc = sbx__sandbox_check(sb, err);
  if (rc == SBX_OK)
    rc = check_name(&model.request.path, err);
  return rc == SBX_OK ? begin(sb, &model, arg, out, err) : rc;
}

int sbx_sandbox_move(sbx_sandbox *sb, sbx_slice from, sbx_slice to, sbx_done_cb cb, void *arg,
                     sbx_call **out, sbx_err *err) {
  path_call model = {.request = {.verb = SBX_PATH_MOVE, .path = from, .to = to},
                     .on = {.done = cb}};
  int rc = sbx__sandbox_check(sb, err);
  if (rc == SBX_OK)
    rc = check_name(&model.request.path, err);
  if (rc == SBX_OK)
    rc = check_name(&model.request.to, err);
  return rc == SBX_OK ? begin(sb, &model, arg, out, err) : rc;
}

int sbx_sandbox_make_dir(sbx_sandbox *sb, sbx_slice path, sbx_done_cb cb, void *arg, sbx_call **out,
                         sbx_err *err) {
  path_call model = {.request = {.verb = SBX_PATH_MAKE, .path = path}, .on = {.done = cb}};
  int rc = sbx__sandbox_check(sb, err);
  if (rc == SBX_OK)
    rc = check(&model.request.path, err);
  return rc == SBX_OK ? begin(sb, &model, arg, out, err) : rc;
}
