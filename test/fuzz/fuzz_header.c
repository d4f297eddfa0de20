/* Header lines as they may come: what is accepted can be written as one line and is read the same
 * again. Each line of the input is one field; its value is tried as a Retry-After too. */
#include "core/header.h"
#include "fuzz.h"

static void check_again(const sbx_header *field) {
  sbx_headers list;
  sbx_buf line;
  sbx_headers_init(&list, SIZE_MAX);
  sbx_buf_init(&line, SIZE_MAX);
  sbx_buf_append_slice(&line, field->name);
  sbx_buf_append_str(&line, ": ");
  sbx_buf_append_slice(&line, field->value);
  MUST(sbx_slice_find(sbx_buf_slice(&line), '\n') == line.len);
  MUST(sbx_slice_find(sbx_buf_slice(&line), '\r') == line.len);
  MUST(!sbx_slice_has_nul(sbx_buf_slice(&line)));
  sbx_buf_append_str(&line, "\r\n");
  MUST(sbx_headers_add_line(&list, sbx_buf_slice(&line), NULL) == SBX_OK);
  MUST(sbx_slice_eq(list.items[0].name, field->name));
  MUST(sbx_slice_eq(list.items[0].value, field->value));
  /* To send is stricter than to receive. */
  int rc = sbx_headers_add(&list, field->name, field->value, NULL);
  MUST(rc == SBX_EINVAL || (rc == SBX_OK && sbx_slice_eq(list.items[1].value, field->value)));
  sbx_headers_deinit(&list);
  sbx_buf_deinit(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sbx_slice in = sbx_slice_of((const char *)data, size);
  sbx_headers list;
  sbx_headers_init(&list, 2000);
  while (in.len) {
    sbx_err err = {0};
    size_t before = list.count;
    sbx_slice line = fuzz_take(&in, sbx_slice_find(in, '\n') + 1);
    int rc = sbx_headers_add_line(&list, line, &err);
    MUST(rc == SBX_OK || rc == SBX_EPROTO || rc == SBX_ETOOBIG);
    MUST(rc == err.code && list.count == before + (rc == SBX_OK));
    if (rc == SBX_OK) {
      const sbx_header *field = &list.items[before];
      sbx_slice value;
      uint64_t delay;
      check_again(field);
      MUST(sbx_headers_get(&list, field->name.ptr, &value));
      if (sbx_retry_after(field->value, 784111777, &delay))
        MUST(delay <= (uint64_t)UINT32_MAX * 1000);
    }
    MUST(list.bytes <= list.max && list.count <= SBX_HEADERS_MAX_COUNT);
  }
  sbx_headers_deinit(&list);
  return 0;
}
