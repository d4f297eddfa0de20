/* output.c - keeps a bounded part of what a command writes.
 *
 * Each part is one block that fills from the front up to its cap. With SBX_KEEP_HEAD_AND_TAIL the
 * block's second half then becomes a ring that holds the newest bytes. Invariant: the bytes kept
 * plus `dropped` are all bytes that came, and `start` is 0 until the block is full. */
#include "core/output.h"

#include "core/alloc.h"
#include "core/enc.h"

#include <assert.h>
#include <string.h>

#define FIRST_CAP 1024

typedef struct part {
  char *data;
  size_t len;
  size_t cap;   /* allocated */
  size_t max;   /* most bytes ever kept */
  size_t base;  /* the ring is data[base, max); base == max: no ring */
  size_t start; /* offset of the ring's oldest byte from base */
  uint64_t dropped;
  bool head_is_cut; /* the head ends at its final place */
} part;

struct sbx_output {
  sbx_truncate truncate;
  bool merged;
  sbx_output_cb on_bytes;
  void *arg;
  part joined;
  part streams[2]; /* by sbx_stream */
  sbx_buf details;
};

static void part_set_max(part *p, size_t max, sbx_truncate truncate) {
  p->max = max;
  p->base = truncate == SBX_KEEP_HEAD_AND_TAIL ? max / 2 : max;
}

sbx_output *sbx_output_new(size_t max, sbx_truncate truncate, bool merged, sbx_output_cb on_bytes,
                           void *arg) {
  sbx_output *out = sbx_calloc(1, sizeof *out);
  if (!out)
    return NULL;
  out->truncate = truncate;
  out->merged = merged;
  out->on_bytes = on_bytes;
  out->arg = arg;
  sbx_buf_init(&out->details, SBX_OUTPUT_DETAILS_MAX);
  part_set_max(&out->joined, max, truncate);
  part_set_max(&out->streams[SBX_STDOUT], merged ? 0 : max, truncate);
  part_set_max(&out->streams[SBX_STDERR], merged ? 0 : max, truncate);
  return out;
}

void sbx_output_free(sbx_output *out) {
  if (!out)
    return;
  sbx_free(out->joined.data);
  sbx_free(out->streams[SBX_STDOUT].data);
  sbx_free(out->streams[SBX_STDERR].data);
  sbx_buf_deinit(&out->details);
  sbx_free(out);
}

static int part_reserve(part *p, size_t need) {
  if (need <= p->cap)
    return SBX_OK;
  size_t cap = p->cap > p->max / 2 ? p->max : p->cap * 2;
  if (cap < FIRST_CAP)
    cap = FIRST_CAP;
  if (cap < need)
    cap = need;
  if (cap > p->max)
    cap = p->max;
  char *data = sbx_realloc(p->data, cap);
  if (!data)
    return SBX_ENOMEM;
  p->data = data;
  p->cap = cap;
  return SBX_OK;
}

/* The block is full: the newest bytes replace the oldest ones of the ring. */
static void part_overwrite(part *p, sbx_slice bytes) {
  size_t ring = p->max - p->base;
  p->dropped += bytes.len;
  if (ring == 0)
    return;
  if (bytes.len > ring)
    bytes = sbx_slice_skip(bytes, bytes.len - ring);
  size_t first = ring - p->start < bytes.len ? ring - p->start : bytes.len;
  memcpy(p->data + p->base + p->start, bytes.ptr, first);
  memcpy(p->data + p->base, bytes.ptr + first, bytes.len - first);
  p->start = (p->start + bytes.len) % ring;
}

static int part_add(part *p, sbx_slice bytes, sbx_truncate truncate) {
  int rc = SBX_OK;
  size_t n = bytes.len < p->max - p->len ? bytes.len : p->max - p->len;
  if (n && part_reserve(p, p->len + n) != SBX_OK) {
    /* What was kept must stay one piece: go on with the memory that there is. */
    rc = SBX_ENOMEM;
    part_set_max(p, p->cap, truncate);
    n = bytes.len < p->max - p->len ? bytes.len : p->max - p->len;
  }
  if (n) {
    memcpy(p->data + p->len, bytes.ptr, n);
    p->len += n;
  }
  if (n < bytes.len)
    part_overwrite(p, sbx_slice_skip(bytes, n));
  return rc;
}

int sbx_output_add(sbx_output *out, sbx_stream stream, sbx_slice bytes) {
  if (bytes.len == 0)
    return SBX_OK;
  int rc = part_add(&out->joined, bytes, out->truncate);
  if (!out->merged) {
    int stream_rc = part_add(&out->streams[stream], bytes, out->truncate);
    rc = rc ? rc : stream_rc;
  }
  if (out->on_bytes)
    out->on_bytes(out->arg, stream, bytes);
  return rc;
}

static bool part_is_full(const part *p) {
  return p->len == p->max && p->base == p->max;
}

bool sbx_output_is_full(const sbx_output *out) {
  return !out->on_bytes && part_is_full(&out->joined) && part_is_full(&out->streams[SBX_STDOUT]) &&
         part_is_full(&out->streams[SBX_STDERR]);
}

void sbx_output_skip(sbx_output *out, sbx_stream stream, uint64_t bytes) {
  assert(sbx_output_is_full(out));
  out->joined.dropped += bytes;
  if (!out->merged)
    out->streams[stream].dropped += bytes;
}

void sbx_output_gap(sbx_output *out, sbx_stream stream, uint64_t bytes) {
  assert(!out->on_bytes);
  out->joined.dropped += bytes;
  if (!out->merged)
    out->streams[stream].dropped += bytes;
}

bool sbx_output_is_watched(const sbx_output *out) {
  return out->on_bytes != NULL;
}

sbx_buf *sbx_output_details(sbx_output *out) {
  return &out->details;
}

static void reverse(char *bytes, size_t len) {
  for (size_t i = 0; i < len / 2; i++) {
    char c = bytes[i];
    bytes[i] = bytes[len - 1 - i];
    bytes[len - 1 - i] = c;
  }
}

/* Moves what stands behind `from` + `count` down by `count`, which drops those bytes. */
static void part_cut(part *p, size_t from, size_t count) {
  if (count == 0)
    return;
  memmove(p->data + from, p->data + from + count, p->len - from - count);
  p->len -= count;
  p->dropped += count;
}

/* Cuts the end of the head at a UTF-8 boundary, once: a second cut could take more. */
static void part_cut_head(part *p) {
  if (p->head_is_cut)
    return;
  size_t end = sbx_utf8_floor(sbx_slice_of(p->data, p->base));
  part_cut(p, end, p->base - end);
  if (p->base == p->max)
    p->max = end;
  p->base = end;
  p->head_is_cut = true;
}

/* Puts the ring in order and cuts its start at a UTF-8 boundary. */
static void part_cut_tail(part *p) {
  char *ring = p->data + p->base;
  size_t len = p->len - p->base;
  reverse(ring, p->start);
  reverse(ring + p->start, len - p->start);
  reverse(ring, len);
  p->start = 0;
  part_cut(p, p->base, sbx_utf8_skip_continuation(sbx_slice_of(ring, len)));
}

/* What is cut at the gap is dropped for good: the head can never be continued, and the tail's first
 * bytes are the next to go anyway. So the view needs no memory, and the block stays as it is used.
 */
static void part_view(part *p, sbx_kept *kept) {
  if (p->dropped && p->data) {
    part_cut_tail(p);
    part_cut_head(p);
  }
  size_t tail_at = p->dropped ? p->base : p->len;
  *kept = (sbx_kept){sbx_slice_of(p->data, p->len), p->dropped, tail_at};
}

int sbx_output_view(sbx_output *out, sbx_kept *joined, sbx_kept *std_out, sbx_kept *std_err) {
  part_view(&out->joined, joined);
  part_view(&out->streams[SBX_STDOUT], std_out);
  part_view(&out->streams[SBX_STDERR], std_err);
  return SBX_OK;
}
