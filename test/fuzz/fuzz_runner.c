/* What the runner's programs print, as any sandbox might print it. */
#include "providers/remote/runner/report.h"

#include "fuzz.h"

#define TAG "0123456789abcdef0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sbx_slice input = sbx_slice_of((const char *)data, size);
  sbx_runner_report report;
  sbx_err err;
  sbx_runner_report_init(&report);
  int rc = sbx_runner_report_read(&report, input, TAG, "fuzz", &err);
  MUST(rc == SBX_OK || rc == SBX_EPROTO || rc == SBX_ENOMEM);
  for (int i = 0; rc == SBX_OK && i < 2; i++) {
    MUST(report.head[i].len + report.tail[i].len <= report.size[i]);
    MUST(report.head[i].len + report.tail[i].len <= size);
  }
  if (rc == SBX_OK)
    MUST(report.exit_code >= 0 && report.exit_code <= 255);
  sbx_runner_report_deinit(&report);
  return 0;
}
