/* Any bytes as a file of gzip: they are read back. */
#include "core/gzip.h"

#include "../core/support/gzip_model.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sbx_slice in = sbx_slice_of((const char *)data, size);
  sbx_buf bytes, file, out;
  sbx_buf_init(&bytes, 1 << 20);
  sbx_buf_init(&file, 1 << 20);
  sbx_buf_init(&out, 1 << 20);
  /* Several blocks of it now and then. */
  for (unsigned times = fuzz_take_byte(&in) % 40; times > 0; times--)
    sbx_buf_append_slice(&bytes, in);
  MUST(sbx_gzip_store(&file, sbx_buf_slice(&bytes)) == SBX_OK);
  MUST(model_gunzip(&out, sbx_buf_slice(&file)));
  MUST(sbx_slice_eq(sbx_buf_slice(&bytes), sbx_buf_slice(&out)));
  sbx_buf_deinit(&bytes);
  sbx_buf_deinit(&file);
  sbx_buf_deinit(&out);
  return 0;
}
