/* The interpreter's lines as they may come: whatever is in them, the details of the output are one
 * JSON object, and only the line that says so ends the code. The input's lines are the reply's. */
#include "core/enc.h"
#include "fuzz.h"
#include "providers/e2b/cell.h"

enum { KEPT = 256 };

static void check_details(sbx_output *out) {
  sbx_slice details = sbx_buf_slice(sbx_output_details(out));
  sbx_json_doc *doc = NULL;
  MUST(sbx_utf8_valid(details));
  MUST(sbx_json_parse(&doc, details, NULL) == SBX_OK);
  MUST(sbx_json_is_object(sbx_json_root(doc)));
  MUST(sbx_json_get(sbx_json_root(doc), "results") != NULL);
  sbx_json_free(doc, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sbx_slice in = sbx_slice_of((const char *)data, size);
  sbx_output *out = sbx_output_new(KEPT, SBX_KEEP_HEAD, false, NULL, NULL);
  sbx__e2b_cell cell;
  sbx_kept joined, std_out, std_err;
  MUST(out != NULL);
  sbx__e2b_cell_init(&cell, out);
  while (in.len > 0) {
    sbx_err err = {0};
    bool ended = cell.ended, failed = cell.failed;
    sbx_slice line = fuzz_take(&in, sbx_slice_find(in, '\n'));
    fuzz_take(&in, 1);
    if (line.len == 0)
      continue;
    int rc = sbx__e2b_cell_line(&cell, line, &err);
    MUST(rc == SBX_OK || rc == SBX_EPROTO || rc == SBX_ETOOBIG);
    MUST(rc == SBX_OK || (err.code == rc && cell.ended == ended));
    MUST((cell.ended || !ended) && (cell.failed || !failed));
    MUST(!cell.kernel_lost || cell.failed);
  }
  MUST(sbx__e2b_cell_finish(&cell) == SBX_OK);
  check_details(out);
  MUST(sbx_output_view(out, &joined, &std_out, &std_err) == SBX_OK);
  MUST(std_out.bytes.len <= KEPT && std_err.bytes.len <= KEPT);
  sbx__e2b_cell_deinit(&cell);
  sbx_output_free(out);
  return 0;
}
