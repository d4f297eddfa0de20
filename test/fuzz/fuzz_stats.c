/* What is said of files, as any sandbox might print it. */
#include "providers/remote/runner/stats.h"

#include "fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  enum { MOST = 8 };
  sbx_stats stats = {0};
  int rc = sbx_runner_stats_read(&stats, sbx_slice_of((const char *)data, size), MOST);
  MUST(rc == SBX_OK || rc == SBX_EPROTO || rc == SBX_ENOMEM || rc == SBX_ETOOBIG);
  MUST(stats.count <= MOST);
  for (size_t i = 0; i < stats.count; i++) {
    const sbx_stat *stat = &stats.items[i];
    MUST(strlen(stat->name) < size);
    MUST(stat->mode >= -1 && stat->mode <= 07777);
    MUST(stat->kind == SBX_KIND_FILE || stat->size == 0);
  }
  sbx_stats_free(&stats);
  return 0;
}
