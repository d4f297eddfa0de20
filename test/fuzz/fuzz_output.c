/* The collector fed in pieces keeps what the model keeps of the whole streams. The input is a cap,
 * flags, and then pieces: where to, how long, the bytes. */
#include "../core/support/output_model.h"
#include "core/output.h"
#include "fuzz.h"

enum { TAIL = 1, MERGED = 2, LISTEN = 4, VIEWS = 8 };

typedef struct streams {
  sbx_buf joined;
  sbx_buf each[2];
  size_t heard;
} streams;

static void hear(void *arg, sbx_stream stream, sbx_slice bytes) {
  (void)stream;
  ((streams *)arg)->heard += bytes.len;
}

static void check_between(sbx_output *out, const streams *all, bool merged) {
  sbx_kept joined, std_out, std_err;
  MUST(sbx_output_view(out, &joined, &std_out, &std_err) == SBX_OK);
  MUST(output_model_allows(sbx_buf_slice(&all->joined), &joined));
  if (!merged) {
    MUST(output_model_allows(sbx_buf_slice(&all->each[SBX_STDOUT]), &std_out));
    MUST(output_model_allows(sbx_buf_slice(&all->each[SBX_STDERR]), &std_err));
  }
}

static void check_end(sbx_output *out, const streams *all, size_t max, sbx_truncate truncate,
                      bool merged) {
  sbx_kept joined, std_out, std_err;
  sbx_slice none = sbx_slice_of(NULL, 0);
  sbx_slice first = merged ? none : sbx_buf_slice(&all->each[SBX_STDOUT]);
  sbx_slice second = merged ? none : sbx_buf_slice(&all->each[SBX_STDERR]);
  MUST(sbx_output_view(out, &joined, &std_out, &std_err) == SBX_OK);
  MUST(output_model_matches(sbx_buf_slice(&all->joined), max, truncate, &joined));
  MUST(output_model_matches(first, max, truncate, &std_out));
  MUST(output_model_matches(second, max, truncate, &std_err));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sbx_slice in = sbx_slice_of((const char *)data, size);
  size_t max = fuzz_take_byte(&in);
  unsigned flags = fuzz_take_byte(&in);
  bool merged = (flags & MERGED) != 0;
  bool listens = (flags & LISTEN) != 0;
  sbx_truncate truncate = flags & TAIL ? SBX_KEEP_HEAD_AND_TAIL : SBX_KEEP_HEAD;
  if (flags & 128)
    max *= 16;
  streams all = {0};
  sbx_buf_init(&all.joined, SIZE_MAX);
  sbx_buf_init(&all.each[SBX_STDOUT], SIZE_MAX);
  sbx_buf_init(&all.each[SBX_STDERR], SIZE_MAX);
  sbx_output *out = sbx_output_new(max, truncate, merged, listens ? hear : NULL, &all);
  MUST(out);
  while (in.len) {
    unsigned control = fuzz_take_byte(&in);
    sbx_stream stream = control & 1 ? SBX_STDERR : SBX_STDOUT;
    sbx_slice piece = fuzz_take(&in, control >> 1);
    sbx_buf_append_slice(&all.joined, piece);
    sbx_buf_append_slice(&all.each[stream], piece);
    if (sbx_output_is_full(out) && (control & 2))
      sbx_output_skip(out, stream, piece.len);
    else
      MUST(sbx_output_add(out, stream, piece) == SBX_OK);
    if (flags & VIEWS)
      check_between(out, &all, merged);
  }
  MUST(all.heard == (listens ? all.joined.len : 0));
  if (!(flags & VIEWS))
    check_end(out, &all, max, truncate, merged);
  sbx_output_free(out);
  sbx_buf_deinit(&all.joined);
  sbx_buf_deinit(&all.each[SBX_STDOUT]);
  sbx_buf_deinit(&all.each[SBX_STDERR]);
  return 0;
}
