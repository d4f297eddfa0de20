/* archive.c - a file of a container by the engine's archive calls.
 *
 *   HEAD of each directory on the way, and of the file -> GET, a tar of one entry -> does it run?
 *
 * The engine reads as root, and follows every link. So what is read must be what anybody may read,
 * at the very place that was named: each directory may be searched by all, the file be read by all,
 * and none of them is a link. A container that does not run shows what its file systems in memory
 * hide; so it is asked for its state behind the file.
 *
 * Invariant: success means one whole regular file; nothing is guessed, and what is in doubt is
 * another way's to read. */
#include "providers/docker/archive.h"

#include "core/enc.h"
#include "core/err.h"
#include "core/url.h"
#include "core/ustar.h"
#include "providers/docker/wire.h"

#include <string.h>

enum {
  MAX_PATH = 4096,
  MAX_STAT = 16 * 1024,
  MAX_DIRS = 8, /* more looks than these cost as much as a process */
};

/* Bits of Go's os.FileMode: nine of the rights, three that a file may have besides, and one of a
 * directory. Any other one says that it is something else. */
enum { READ_ALL = 0444, SEARCH_ALL = 0111 };
#define MODE_RIGHTS ((int64_t)0777)
#define MODE_BESIDES ((int64_t)0x00d00000)
#define MODE_DIR ((int64_t)0x80000000)

typedef struct fetch {
  sbx_steps steps;
  sbx_buf path;  /* absolute, without what says nothing */
  size_t looked; /* how much of it has been asked for */
  sbx_buf *out;
  sbx_ustar tar;
  uint64_t size; /* as its stat says */
  bool entered;
} fetch;

static fetch *fetch_of(sbx_steps *steps) {
  return (fetch *)(void *)steps;
}

static void release(sbx_steps *steps) {
  fetch *f = fetch_of(steps);
  sbx_buf_deinit(&f->path);
  sbx_ustar_deinit(&f->tar);
}

static int not_this_way(sbx_err *err) {
  return sbx_err_set(err, SBX_EUNSUPPORTED, "docker: the archive calls do not tell");
}

static void give_up(fetch *f, sbx_err *err) {
  if (err->code != SBX_ETOOBIG && err->code != SBX_ENOMEM)
    not_this_way(err);
  sbx_buf_truncate(f->out, 0);
  sbx_steps_finish(&f->steps, err);
}

static void leave(fetch *f) {
  sbx_err err;
  not_this_way(&err);
  give_up(f, &err);
}

/* ---- the place ------------------------------------------------------------------------------ */

/* What the kernel makes up has no size that is true. */
static bool is_of_kernel(sbx_slice path) {
  static const char *const roots[] = {"/proc/", "/sys/", "/dev/"};
  for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
    if (sbx_slice_starts_with(path, sbx_slice_str(roots[i])))
      return true;
  }
  return false;
}

/* Podman takes a path for a pattern, and tells the size of one file and the bytes of another. */
static bool is_pattern(sbx_slice path) {
  for (size_t i = 0; i < path.len; i++) {
    if (path.ptr[i] != '\0' && strchr("*?[]\\", path.ptr[i]) != NULL)
      return true;
  }
  return false;
}

/* Engines clean a path as a text, and the kernel goes it: the same where there is no "..", and no
 * slash behind a file. */
static bool append_plain(sbx_buf *out, sbx_slice path) {
  size_t dirs = 0;
  while (path.len > 0) {
    sbx_slice part = sbx_slice_of(path.ptr, sbx_slice_find(path, '/'));
    bool is_last = part.len == path.len;
    if (sbx_slice_eq_str(part, "..") || (is_last && sbx_slice_eq_str(part, ".")))
      return false;
    if (part.len > 0 && !sbx_slice_eq_str(part, ".")) {
      sbx_buf_append_char(out, '/');
      sbx_buf_append_slice(out, part);
      dirs++;
    }
    path = sbx_slice_skip(path, part.len + 1);
    if (!is_last && path.len == 0)
      return false;
  }
  return dirs <= MAX_DIRS;
}

static bool read_place(fetch *f, sbx_slice path) {
  const sbx_config *config = f->steps.session->config;
  bool at_home = path.len > 0 && path.ptr[0] == '~' && (path.len == 1 || path.ptr[1] == '/');
  const char *dir = at_home ? config->home : config->dir;
  sbx_buf whole;
  if (dir[0] != '/') /* a home that the engine looks for itself */
    return false;
  sbx_buf_init(&whole, MAX_PATH);
  if (path.len == 0 || path.ptr[0] != '/') {
    sbx_buf_append_str(&whole, dir);
    sbx_buf_append_char(&whole, '/');
  }
  sbx_buf_append_slice(&whole, at_home ? sbx_slice_skip(path, 2) : path);
  sbx_slice text = sbx_buf_slice(&whole);
  bool plain = whole.error == SBX_OK && !sbx_slice_has_nul(text) && !is_pattern(text) &&
               append_plain(&f->path, text) && f->path.error == SBX_OK &&
               !is_of_kernel(sbx_buf_slice(&f->path));
  sbx_buf_deinit(&whole);
  return plain;
}

/* ---- what is there -------------------------------------------------------------------------- */

typedef struct stat_reply {
  int64_t mode;
  int64_t size;
} stat_reply;

/* A link has another place, or a bit of its own; so does what lies behind one, on some engines. */
static bool read_stat(const sbx_headers *headers, sbx_slice path, stat_reply *out) {
  sbx_slice header, place = {NULL, 0};
  sbx_json_doc *doc = NULL;
  sbx_buf text;
  if (!sbx_headers_get(headers, "x-docker-container-path-stat", &header))
    return false;
  sbx_buf_init(&text, MAX_STAT);
  bool ok = sbx_base64_decode(&text, header) == SBX_OK &&
            sbx_json_parse(&doc, sbx_buf_slice(&text), NULL) == SBX_OK;
  const sbx_json *root = ok ? sbx_json_root(doc) : NULL;
  sbx_json_string(sbx_json_get(root, "linkTarget"), &place);
  ok = ok && (place.len == 0 || sbx_slice_eq(place, path)) &&
       sbx_json_int(sbx_json_get(root, "mode"), 0, UINT32_MAX, &out->mode) &&
       sbx_json_int(sbx_json_get(root, "size"), 0, INT64_MAX, &out->size);
  sbx_json_free(doc, false);
  sbx_buf_deinit(&text);
  return ok;
}

static bool is_dir_for_all(const stat_reply *s) {
  return (s->mode & ~(MODE_RIGHTS | MODE_BESIDES)) == MODE_DIR &&
         (s->mode & SEARCH_ALL) == SEARCH_ALL;
}

/* An empty one may be the kernel's, wherever that is mounted. */
static bool is_file_for_all(const stat_reply *s) {
  return (s->mode & ~(MODE_RIGHTS | MODE_BESIDES)) == 0 && (s->mode & READ_ALL) == READ_ALL &&
         s->size > 0;
}

/* ---- does it run? --------------------------------------------------------------------------- */

static void on_state(sbx_steps *steps, sbx_http *reply) {
  fetch *f = fetch_of(steps);
  sbx_json_doc *doc = NULL;
  sbx_slice status = {NULL, 0};
  sbx_err err;
  if (sbx__docker_json(&doc, steps->session->config, &sbx__docker_container, reply,
                       "look at the container", &err) == SBX_OK)
    sbx_json_string(sbx_json_get(sbx_json_get(sbx_json_root(doc), "State"), "Status"), &status);
  bool runs = sbx_slice_eq_str(status, "running");
  sbx_json_free(doc, true);
  if (runs)
    sbx_steps_finish(steps, NULL);
  else
    leave(f);
}

static void ask_state(fetch *f) {
  sbx_buf url;
  sbx__docker_container_url(&url, f->steps.session->config, f->steps.session->id, "/json");
  sbx__docker_send(&f->steps, "GET", &url, NULL, true, on_state);
}

/* ---- the file ------------------------------------------------------------------------------- */

static int too_big(const fetch *f, sbx_err *err) {
  return sbx_err_set(err, SBX_ETOOBIG, "docker: the file has more than %zu bytes", f->out->max);
}

static int take_head(void *arg, int status, const sbx_headers *headers, sbx_err *err) {
  fetch *f = arg;
  stat_reply s;
  if (status != 200)
    return SBX_OK;
  if (!read_stat(headers, sbx_buf_slice(&f->path), &s) || !is_file_for_all(&s))
    return not_this_way(err); /* no longer */
  f->size = (uint64_t)s.size;
  return f->size > f->out->max ? too_big(f, err) : SBX_OK;
}

static int take_entry(void *arg, const sbx_ustar_entry *entry, sbx_err *err) {
  fetch *f = arg;
  sbx_slice path = sbx_buf_slice(&f->path);
  size_t begin = path.len;
  while (path.ptr[begin - 1] != '/')
    begin--;
  if (f->entered || entry->kind != SBX_USTAR_FILE ||
      !sbx_slice_eq(entry->name, sbx_slice_skip(path, begin)) ||
      (entry->mode & READ_ALL) != READ_ALL)
    return not_this_way(err);
  f->entered = true;
  if (entry->size > f->out->max)
    return too_big(f, err);
  if (entry->size != f->size) /* it is being written */
    return not_this_way(err);
  return sbx_buf_reserve(f->out, (size_t)entry->size) == SBX_OK
             ? SBX_OK
             : sbx_err_set(err, f->out->error, NULL);
}

static int take_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  fetch *f = arg;
  int rc = sbx_buf_append_slice(f->out, bytes);
  return rc == SBX_OK ? SBX_OK : sbx_err_set(err, rc, NULL);
}

static int take_chunk(void *arg, sbx_slice bytes, sbx_err *err) {
  return sbx_ustar_feed(&((fetch *)arg)->tar, bytes, err);
}

static void on_file(sbx_steps *steps, sbx_http *reply) {
  fetch *f = fetch_of(steps);
  sbx_err err = reply->op.err;
  if (err.code != SBX_OK)
    give_up(f, &err);
  else if (reply->status != 200 || !f->entered || sbx_ustar_finish(&f->tar, &err) != SBX_OK)
    leave(f); /* a file that grows or shrinks while it is read breaks its archive off */
  else
    ask_state(f);
}

/* ---- the way to it -------------------------------------------------------------------------- */

static void ask(fetch *f, sbx_slice path, bool for_bytes, sbx_steps_reply on_reply) {
  const sbx_session *session = f->steps.session;
  sbx_buf url;
  sbx_http_request request = {
      .method = for_bytes ? "GET" : "HEAD",
      .repeatable = true,
      .timeout_ms = SBX_NO_TIMEOUT,
      .on_head = for_bytes ? take_head : NULL,
      .on_bytes = for_bytes ? take_chunk : NULL,
      .consumer = f,
  };
  sbx__docker_container_url(&url, session->config, session->id, "/archive");
  sbx_url_append_query(&url, sbx_slice_str("path"), path);
  sbx_remote_exchange_send(&f->steps, session->config->http, &url, &request, NULL, on_reply);
}

static void look_further(fetch *f);

static sbx_slice looked_at(const fetch *f) {
  return sbx_slice_of(f->path.ptr, f->looked);
}

static void on_look(sbx_steps *steps, sbx_http *reply) {
  fetch *f = fetch_of(steps);
  stat_reply s;
  sbx_err err;
  bool told = reply->op.err.code == SBX_OK && reply->status == 200 &&
              read_stat(&reply->headers, looked_at(f), &s);
  bool is_file = f->looked == f->path.len;
  if (!told || !(is_file ? is_file_for_all(&s) : is_dir_for_all(&s))) {
    leave(f);
  } else if (!is_file) {
    look_further(f);
  } else if ((uint64_t)s.size > f->out->max) {
    too_big(f, &err);
    give_up(f, &err);
  } else {
    ask(f, sbx_buf_slice(&f->path), true, on_file);
  }
}

static void look_further(fetch *f) {
  size_t next = f->looked + 1;
  f->looked = next + sbx_slice_find(sbx_slice_skip(sbx_buf_slice(&f->path), next), '/');
  ask(f, looked_at(f), false, on_look);
}

sbx_op *sbx__docker_fetch(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                          void *arg) {
  fetch *f = sbx_steps_new(sizeof *f, session, session->config->loop, done, arg);
  if (f == NULL)
    return NULL;
  const sbx_ustar_consumer consumer = {take_entry, take_bytes, f};
  f->steps.release = release;
  f->out = out;
  sbx_buf_init(&f->path, MAX_PATH);
  sbx_ustar_init(&f->tar, &consumer);
  if (read_place(f, path))
    look_further(f);
  else
    leave(f);
  return &f->steps.op;
}
