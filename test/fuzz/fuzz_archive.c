/* Archives of any names and bytes: what is written is read back. */
#include "core/gzip.h"
#include "core/ustar.h"

#include "../core/support/archive_model.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sbx_slice in = sbx_slice_of((const char *)data, size), names[8], files[8], rest;
  sbx_buf archive, file, out;
  model_entry entry;
  size_t count = 0;
  sbx_buf_init(&archive, 1 << 20);
  sbx_buf_init(&file, 1 << 20);
  sbx_buf_init(&out, 1 << 20);
  for (; count < 8 && in.len > 1; count++) {
    names[count] = fuzz_take(&in, fuzz_take_byte(&in) * 2);
    files[count] = fuzz_take(&in, fuzz_take_byte(&in) * 8);
    if (names[count].len == 0 || sbx_slice_has_nul(names[count]))
      break;
    MUST(sbx_ustar_file(&archive, names[count], 0644, files[count]) == SBX_OK);
  }
  MUST(sbx_ustar_end(&archive) == SBX_OK);
  MUST(sbx_gzip_store(&file, sbx_buf_slice(&archive)) == SBX_OK);
  MUST(model_gunzip(&out, sbx_buf_slice(&file)));
  rest = sbx_buf_slice(&out);
  for (size_t i = 0; i < count; i++) {
    MUST(model_untar(&rest, &entry));
    MUST(sbx_slice_eq(entry.name, names[i]) && sbx_slice_eq(entry.bytes, files[i]));
  }
  MUST(model_is_end(rest));
  sbx_buf_deinit(&archive);
  sbx_buf_deinit(&file);
  sbx_buf_deinit(&out);
  return 0;
}
