/* The reader of tar archives: fed in pieces it gives what it gives when fed at once, hands on no
 * more than a header has said, and reads what was written of what it has read. The first byte of
 * the input sets the size of the pieces; then come blocks, of which each begins with a byte:
 * whether the next one's checksum is set right, so that the rest is reached, and how many of its
 * bytes follow. */
#include "core/ustar.h"
#include "fuzz.h"

#include <string.h>

typedef struct seen {
  sbx_buf *text;
  sbx_buf *again; /* the same archive, as the writer makes it; NULL: not wanted */
  uint64_t left;
  uint64_t size;
} seen;

static void end_entry(seen *s) {
  if (s->again != NULL && s->left == 0)
    sbx_ustar_pad(s->again, s->size);
}

static int on_entry(void *arg, const sbx_ustar_entry *entry, sbx_err *err) {
  seen *s = arg;
  (void)err;
  MUST(s->left == 0);
  MUST(entry->name.len > 0 && entry->name.len <= SBX_USTAR_NAME_MAX);
  MUST(!sbx_slice_has_nul(entry->name) && !sbx_slice_has_nul(entry->link));
  MUST(entry->link.len <= SBX_USTAR_NAME_MAX && entry->mode <= 07777);
  MUST(entry->size <= INT64_MAX && (entry->kind == SBX_USTAR_FILE || entry->size == 0));
  s->left = s->size = entry->size;
  sbx_buf_appendf(s->text, "%d %o %llu %llu %llu %llu ", (int)entry->kind, (unsigned)entry->mode,
                  (unsigned long long)entry->uid, (unsigned long long)entry->gid,
                  (unsigned long long)(entry->mtime_s <= 077777777777 ? entry->mtime_s : 0),
                  (unsigned long long)entry->size);
  sbx_buf_append_slice(s->text, entry->name);
  sbx_buf_append_char(s->text, '>');
  sbx_buf_append_slice(s->text, entry->link);
  bool is_link = entry->kind == SBX_USTAR_SYMLINK || entry->kind == SBX_USTAR_HARDLINK;
  if (s->again != NULL && entry->kind != SBX_USTAR_SPECIAL && (!is_link || entry->link.len > 0)) {
    sbx_ustar_entry copy = *entry;
    if (copy.mtime_s > 077777777777)
      copy.mtime_s = 0;
    MUST(sbx_ustar_put_entry(s->again, &copy) == SBX_OK);
    end_entry(s);
  } else {
    s->again = NULL;
  }
  return SBX_OK;
}

static int on_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  seen *s = arg;
  (void)err;
  MUST(bytes.len > 0 && bytes.len <= s->left);
  s->left -= bytes.len;
  if (s->again != NULL)
    sbx_buf_append_slice(s->again, bytes);
  end_entry(s);
  return sbx_buf_append_slice(s->text, bytes);
}

static int run(sbx_slice in, size_t piece, seen *s) {
  const sbx_ustar_consumer consumer = {on_entry, on_bytes, s};
  sbx_ustar reader;
  sbx_err err;
  int rc = SBX_OK;
  sbx_ustar_init(&reader, &consumer);
  for (size_t at = 0; rc == SBX_OK && at < in.len; at += piece) {
    size_t n = in.len - at < piece ? in.len - at : piece;
    rc = sbx_ustar_feed(&reader, sbx_slice_of(in.ptr + at, n), &err);
  }
  if (rc == SBX_OK)
    rc = sbx_ustar_finish(&reader, &err);
  MUST(rc != SBX_OK || s->left == 0);
  sbx_ustar_deinit(&reader);
  return rc;
}

static int decode(sbx_slice in, size_t piece, sbx_buf *text) {
  seen s = {.text = text};
  return run(in, piece, &s);
}

/* What could be read whole, written and read once more. */
static void check_writer(sbx_slice in) {
  sbx_buf text, again, text_again;
  sbx_buf_init(&text, SIZE_MAX);
  sbx_buf_init(&again, SIZE_MAX);
  sbx_buf_init(&text_again, SIZE_MAX);
  seen s = {.text = &text, .again = &again};
  if (run(in, SIZE_MAX / 2, &s) == SBX_OK && s.again != NULL) {
    MUST(sbx_ustar_end(&again) == SBX_OK);
    MUST(decode(sbx_buf_slice(&again), SIZE_MAX / 2, &text_again) == SBX_OK);
    MUST(sbx_slice_eq(sbx_buf_slice(&text), sbx_buf_slice(&text_again)));
  }
  sbx_buf_deinit(&text);
  sbx_buf_deinit(&again);
  sbx_buf_deinit(&text_again);
}

static void set_sum(unsigned char *block) {
  unsigned sum = 0;
  memset(block + 148, ' ', 8);
  for (size_t i = 0; i < SBX_USTAR_BLOCK; i++)
    sum += block[i];
  snprintf((char *)block + 148, 7, "%06o", sum);
}

/* Blocks of the input, filled up with zeros. */
static void build(sbx_slice in, sbx_buf *out) {
  while (in.len > 0) {
    unsigned char block[SBX_USTAR_BLOCK] = {0};
    unsigned how = fuzz_take_byte(&in);
    sbx_slice part = fuzz_take(&in, how % 2 == 0 ? SBX_USTAR_BLOCK : how * 2);
    if (part.len > 0)
      memcpy(block, part.ptr, part.len);
    if (how < 128 && part.len > 0)
      set_sum(block);
    sbx_buf_append(out, (const char *)block, sizeof block);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sbx_buf archive;
  if (size == 0)
    return 0;
  sbx_slice in = sbx_slice_of((const char *)data + 1, size - 1);
  sbx_buf_init(&archive, SIZE_MAX);
  build(in, &archive);
  fuzz_check_split(decode, sbx_buf_slice(&archive), (size_t)data[0] * 3 + 1);
  fuzz_check_split(decode, in, (size_t)data[0] * 3 + 1);
  check_writer(sbx_buf_slice(&archive));
  check_writer(in);
  sbx_buf_deinit(&archive);
  return 0;
}
