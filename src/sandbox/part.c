/* part.c - files in parts: one call reads, or writes, one of them.
 *
 * What is written goes to the provider's `put`, which every wire has for bytes, as a file beside
 * the path; the provider then joins it to what was written before, and the last call puts that in
 * the path's place.
 *
 * Invariant: the parts that a reader gets are of one and the same file; the file that is written
 * stays as it was until the last part has come. */
#include "sandbox/call.h"

#include "core/alloc.h"
#include "core/err.h"
#include "sandbox/spec.h"

#include <string.h>

/* As for whole files; see file.c. */
enum { MAX_KEPT_BYTES = 1 << 20, MAX_STAMP = 256 };

static int check_caps(const sbx_sandbox *sb, sbx_err *err) {
  int rc = sbx__sandbox_check(sb, err);
  if (rc == SBX_OK && !(sbx_provider_caps(sb->provider, sb->places.config) & SBX_CAP_PARTS))
    rc = sbx_err_set(err, SBX_EUNSUPPORTED,
                     "this provider has no files in parts; read and write them as a whole");
  return rc;
}

/* ---- read ---- */

typedef struct read_call {
  sbx_call call;
  sbx_path_request request; /* its path is in `copy`, behind it the stamp */
  sbx_slice stamp;
  char *copy;
  sbx_part_cb cb;
  sbx_stats stats;
  bool missing;
} read_call;

static read_call *read_of(sbx_call *call) {
  return (read_call *)(void *)call;
}

static void release_read(sbx_call *call) {
  sbx_stats_free(&read_of(call)->stats);
  sbx_free(read_of(call)->copy);
}

/* Files of the kernel's have no size, or that of a page, whatever is in them. */
static bool has_true_size(const sbx_stat *file) {
  return file->size != 0 && file->size != 4096 && file->size != 16384 && file->size != 65536;
}

/* Of the same file as the parts before; none of one that surely has more is empty. */
static bool is_same(const read_call *r) {
  const sbx_stat *file = r->stats.items;
  bool cut_off = has_true_size(file) && file->size > r->request.offset && r->stats.part.len == 0;
  return !cut_off && (r->stamp.len == 0 || sbx_slice_eq_str(r->stamp, file->name));
}

static void on_read(sbx_op *op, void *arg) {
  read_call *r = arg;
  sbx_call *call = &r->call;
  bool absent = op->err.code == SBX_ENOTFOUND;
  r->missing = absent && r->stamp.len == 0;
  if (!r->missing && !absent && (op->err.code != SBX_OK || is_same(r))) {
    sbx__call_child_done(op, call);
    return;
  }
  call->child = NULL;
  if (r->missing) {
    sbx__call_finish(call, NULL);
    return;
  }
  sbx_op_set_deadline(&call->op, SBX_NO_TIMEOUT);
  sbx_err_set(&call->cause, SBX_ECONFLICT, SBX__PART_CHANGED);
  sbx__call_fail(call);
}

static void run_read(sbx_call *call) {
  read_call *r = read_of(call);
  sbx_stats_free(&r->stats);
  sbx__call_await(
      call, call->sb->provider->at_path(call->place->session, &r->request, &r->stats, on_read, r),
      call->sb->file_timeout_ms);
}

static void report_read(sbx_call *call, const sbx_err *err) {
  read_call *r = read_of(call);
  if (err != NULL || r->missing) {
    r->cb(call->arg, err, NULL);
    return;
  }
  sbx_part part = {.bytes = sbx_buf_slice(&r->stats.part),
                   .size = r->stats.items->size,
                   .stamp = r->stats.items->name};
  part.last = part.size > 0 ? part.bytes.len == 0 || r->request.offset + part.bytes.len >= part.size
                            : part.bytes.len < r->request.length;
  r->cb(call->arg, NULL, &part);
}

static const sbx__call_kind read_kind = {run_read, sbx__call_stop_child, report_read, release_read,
                                         NULL};

static int check_read(const sbx_sandbox *sb, sbx_slice path, uint64_t offset, size_t max_bytes,
                      sbx_slice stamp, sbx_err *err) {
  int rc = check_caps(sb, err);
  if (rc == SBX_OK)
    rc = sbx__check_path(path, err);
  if (rc == SBX_OK && (max_bytes == 0 || max_bytes > SBX_PART_MAX))
    rc = sbx_err_set(err, SBX_EINVAL, "max_bytes is %zu; give 1 to %zu", max_bytes, SBX_PART_MAX);
  if (rc == SBX_OK && offset > INT64_MAX - SBX_PART_MAX)
    rc = sbx_err_set(err, SBX_EINVAL, "no file is so long as the offset says");
  if (rc == SBX_OK && stamp.len > MAX_STAMP)
    rc = sbx_err_set(err, SBX_EINVAL, "the stamp is none that a part has had");
  return rc;
}

int sbx_sandbox_read_part(sbx_sandbox *sb, sbx_slice path, uint64_t offset, size_t max_bytes,
                          sbx_slice stamp, sbx_part_cb cb, void *arg, sbx_call **out,
                          sbx_err *err) {
  int rc = check_read(sb, path, offset, max_bytes, stamp, err);
  if (rc != SBX_OK)
    return rc;
  read_call *r = sbx_calloc(1, sizeof *r);
  if (r == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  r->request = (sbx_path_request){
      .verb = SBX_PATH_PART, .path = path, .offset = offset, .length = max_bytes};
  r->stamp = stamp;
  r->cb = cb;
  if (sbx_slices_copy(&r->copy, &r->request.path, &r->stamp) != SBX_OK) {
    sbx_free(r);
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  r->call.keeps_arguments = sb->provider->restarts;
  sbx__call_init(&r->call, sb, &read_kind, arg);
  r->call.data = &r->stats.part;
  sbx__call_begin(&r->call);
  if (out != NULL)
    *out = &r->call;
  return SBX_OK;
}

/* ---- write ---- */

typedef enum step { PUT_FILE, PUT_ALL, PUT_PIECE, JOIN, TAKE, REMOVE_PIECE, REMOVE_ALL, END } step;

static const step whole[] = {PUT_FILE, END};
static const step first[] = {PUT_ALL, END};
static const step further[] = {PUT_PIECE, JOIN, END};
static const step last[] = {PUT_PIECE, JOIN, TAKE, END};
static const step only_end[] = {TAKE, END};
static const step drop[] = {REMOVE_PIECE, REMOVE_ALL, END};

typedef struct write_call {
  sbx_call call;
  sbx_slice path, all, piece; /* in `names` */
  sbx_buf names;
  sbx_slice bytes; /* borrowed from the user for the run, or in `copy` */
  char *copy;
  size_t length; /* of the bytes */
  uint64_t offset;
  const step *plan; /* what is still to be done */
  const step *whole_plan;
  sbx_stats stats; /* empty */
  sbx_done_cb cb;
} write_call;

static write_call *write_of(sbx_call *call) {
  return (write_call *)(void *)call;
}

static void release_write(sbx_call *call) {
  write_call *w = write_of(call);
  sbx_stats_free(&w->stats);
  sbx_buf_deinit(&w->names);
  sbx_free(w->copy);
}

static void go_on(write_call *w);

static void on_step(sbx_op *op, void *arg) {
  write_call *w = arg;
  sbx_call *call = &w->call;
  bool removes = *w->plan == REMOVE_PIECE || *w->plan == REMOVE_ALL;
  bool done = op->err.code == SBX_OK || (op->err.code == SBX_ENOTFOUND && removes);
  bool stopped = call->cancelled || call->shut || call->torn_down;
  if (!done) {
    sbx__call_child_done(op, call);
    return;
  }
  call->child = NULL;
  w->plan++;
  if (*w->plan == END) {
    sbx__call_finish(call, NULL);
  } else if (stopped) {
    sbx_err_set(&call->cause, SBX_ECANCELED, NULL);
    sbx__call_finish(call, &call->cause);
  } else {
    go_on(w);
  }
}

static sbx_op *begin_path(write_call *w, sbx_path_verb verb, sbx_slice path, sbx_slice to) {
  const sbx_path_request request = {
      .verb = verb, .path = path, .to = to, .offset = w->offset, .length = w->length};
  return w->call.sb->provider->at_path(w->call.place->session, &request, &w->stats, on_step, w);
}

static sbx_op *begin_put(write_call *w, sbx_slice path) {
  return w->call.sb->provider->put(w->call.place->session, path, w->bytes, on_step, w);
}

static sbx_op *begin_step(write_call *w) {
  const sbx_slice none = {NULL, 0};
  switch (*w->plan) {
  case PUT_FILE:
    return begin_put(w, w->path);
  case PUT_ALL:
    return begin_put(w, w->all);
  case PUT_PIECE:
    return begin_put(w, w->piece);
  case JOIN:
    return begin_path(w, SBX_PATH_JOIN, w->piece, w->all);
  case TAKE:
    return begin_path(w, SBX_PATH_TAKE, w->all, w->path);
  case REMOVE_PIECE:
    return begin_path(w, SBX_PATH_REMOVE, w->piece, none);
  case REMOVE_ALL:
  case END:
    break;
  }
  return begin_path(w, SBX_PATH_REMOVE, w->all, none);
}

static void go_on(write_call *w) {
  sbx__call_await(&w->call, begin_step(w), w->call.sb->file_timeout_ms);
}

static void run_write(sbx_call *call) {
  write_call *w = write_of(call);
  w->plan = w->whole_plan;
  go_on(w);
  if (!call->keeps_arguments) {
    sbx_free(w->copy);
    w->copy = NULL;
  }
}

static void report_write(sbx_call *call, const sbx_err *err) {
  write_of(call)->cb(call->arg, err);
}

static const char *write_effects(const sbx_call *call) {
  const step *plan = ((const write_call *)(const void *)call)->plan;
  bool cut_off = sbx__is_doubtful(call->cause.code) || call->cause.code == SBX_ECANCELED;
  if (!cut_off || call->place->state == SBX__PLACE_GONE || plan == NULL)
    return NULL;
  if (*plan == PUT_FILE || *plan == TAKE)
    return "the file may be incomplete, and writing it again is safe";
  return "the file is as it was before";
}

static const sbx__call_kind write_kind = {run_write, sbx__call_stop_child, report_write,
                                          release_write, write_effects};

static bool is_token(sbx_slice token) {
  for (size_t i = 0; i < token.len; i++) {
    if (!sbx_is_digit(token.ptr[i]) && !(token.ptr[i] >= 'a' && token.ptr[i] <= 'f'))
      return false;
  }
  return token.len == SBX_TOKEN_LENGTH;
}

/* Where the name begins that the path ends with. */
static size_t name_at(sbx_slice path) {
  size_t start = path.len;
  while (start > 0 && path.ptr[start - 1] != '/')
    start--;
  return start;
}

static int check_name(sbx_slice path, sbx_err *err) {
  sbx_slice name = sbx_slice_skip(path, name_at(path));
  bool is_home = name.len == path.len && sbx_slice_eq_str(name, "~");
  if (name.len > 0 && !is_home && !sbx_slice_eq_str(name, ".") && !sbx_slice_eq_str(name, ".."))
    return SBX_OK;
  sbx_err_set(err, SBX_EINVAL, "the path \"");
  sbx_err_append_remote(err, path);
  sbx_err_append(err, "\" names a directory; give the name of a file");
  return SBX_EINVAL;
}

static int check_write(const sbx_sandbox *sb, const write_call *w, sbx_slice token,
                       sbx_part_step what, sbx_err *err) {
  int rc = check_caps(sb, err);
  if (rc == SBX_OK)
    rc = sbx__check_path(w->path, err);
  if (rc == SBX_OK)
    rc = check_name(w->path, err);
  if (rc == SBX_OK && !is_token(token))
    rc = sbx_err_set(err, SBX_EINVAL, "the token must be %d digits, 0 to 9 and a to f",
                     SBX_TOKEN_LENGTH);
  if (rc == SBX_OK && w->length > SBX_PART_MAX)
    rc = sbx_err_set(err, SBX_EINVAL, "a part has at most %zu bytes", SBX_PART_MAX);
  if (rc == SBX_OK && w->offset > INT64_MAX - SBX_PART_MAX)
    rc = sbx_err_set(err, SBX_EINVAL, "no file is so long as the offset says");
  if (rc == SBX_OK && what == SBX_PART_MORE && w->length == 0)
    rc = sbx_err_set(err, SBX_EINVAL, "only the last part may be empty");
  return rc;
}

static const step *plan_of(const write_call *w, sbx_part_step what) {
  if (what == SBX_PART_DROP)
    return drop;
  if (what == SBX_PART_MORE)
    return w->offset == 0 ? first : further;
  if (w->offset == 0)
    return whole;
  return w->length > 0 ? last : only_end;
}

/* The three paths in one block. */
static int set_names(write_call *w, sbx_slice path, sbx_slice token) {
  static const char *const ends[] = {SBX__PART_ALL, SBX__PART_PIECE};
  sbx_slice dir = sbx_slice_of(path.ptr, name_at(path));
  size_t at[3] = {0};
  sbx_buf_init(&w->names, SIZE_MAX);
  sbx_buf_append_slice(&w->names, path);
  for (size_t i = 0; i < 2; i++) {
    at[i] = w->names.len;
    sbx_buf_append_slice(&w->names, dir);
    sbx_buf_append_str(&w->names, SBX__PART_NAME);
    sbx_buf_append_slice(&w->names, token);
    sbx_buf_append_str(&w->names, ends[i]);
  }
  at[2] = w->names.len;
  w->path = sbx_slice_of(w->names.ptr, path.len);
  if (w->names.error == SBX_OK) {
    w->all = sbx_slice_of(w->names.ptr + at[0], at[1] - at[0]);
    w->piece = sbx_slice_of(w->names.ptr + at[1], at[2] - at[1]);
  }
  return w->names.error;
}

int sbx_sandbox_write_part(sbx_sandbox *sb, sbx_slice path, sbx_slice token, uint64_t offset,
                           sbx_slice bytes, sbx_part_step what, sbx_done_cb cb, void *arg,
                           sbx_call **out, sbx_err *err) {
  write_call model = {
      .path = path, .offset = offset, .bytes = bytes, .length = bytes.len, .cb = cb};
  sbx_slice none = {NULL, 0};
  int rc = check_write(sb, &model, token, what, err);
  if (rc != SBX_OK)
    return rc;
  write_call *w = sbx_calloc(1, sizeof *w);
  if (w == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  *w = model;
  w->whole_plan = plan_of(w, what);
  w->call.keeps_arguments = sb->provider->restarts && bytes.len <= MAX_KEPT_BYTES;
  bool copies = bytes.len > 0 && (!sbx__places_are_open(&sb->places) || w->call.keeps_arguments);
  if (set_names(w, path, token) != SBX_OK ||
      (copies && sbx_slices_copy(&w->copy, &w->bytes, &none) != SBX_OK)) {
    sbx_buf_deinit(&w->names);
    sbx_free(w);
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  sbx__call_init(&w->call, sb, &write_kind, arg);
  sbx__call_begin(&w->call);
  if (out != NULL)
    *out = &w->call;
  return SBX_OK;
}
