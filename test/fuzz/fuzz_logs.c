/* The lines of a command's answer at Vercel: fed in pieces they say what they say when fed at once.
 * The first byte of the input sets the size of the pieces. */
#include "providers/vercel/logs.h"

#include "fuzz.h"

enum { MOST = 512 };

static int run(sbx_slice in, size_t piece, sbx_buf *seen) {
  sbx__vercel_logs logs;
  sbx_err err;
  int rc = SBX_OK;
  sbx__vercel_logs_init(&logs, MOST);
  for (size_t at = 0; rc == SBX_OK && at < in.len; at += piece) {
    size_t n = in.len - at < piece ? in.len - at : piece;
    rc = sbx__vercel_logs_feed(&logs, sbx_slice_of(in.ptr + at, n), &err);
  }
  if (rc == SBX_OK)
    rc = sbx__vercel_logs_finish(&logs, &err);
  MUST(rc == SBX_OK || rc == SBX_ENET || rc == SBX_EPROTO || rc == SBX_ENOMEM);
  MUST(rc != SBX_OK || logs.ended);
  MUST(logs.printed.len <= MOST);
  sbx_buf_appendf(seen, "%s %d %lld ", logs.id, logs.ended,
                  logs.ended ? (long long)logs.exit_code : 0);
  sbx_buf_append_slice(seen, sbx_buf_slice(&logs.printed));
  sbx__vercel_logs_deinit(&logs);
  return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  fuzz_check_split(run, sbx_slice_of((const char *)data + 1, size - 1), (size_t)data[0] % 16 + 1);
  return 0;
}
