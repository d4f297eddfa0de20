/* What is accepted as a URL has no byte that could end a line and joins to a URL on the same host,
 * whatever the segments and parameters are. The input is a URL, a path and any text, with line ends
 * between them. */
#include "core/enc.h"
#include "core/url.h"
#include "fuzz.h"

#include <string.h>

static sbx_slice take_line(sbx_slice *in) {
  sbx_slice line = fuzz_take(in, sbx_slice_find(*in, '\n'));
  fuzz_take(in, 1);
  return line;
}

static void check_bytes(sbx_slice text) {
  for (size_t i = 0; i < text.len; i++) {
    unsigned char c = (unsigned char)text.ptr[i];
    MUST(c > 0x20 && c < 0x7F && !strchr("\"#<>\\^`{|}", c));
  }
}

static void check_joined(const sbx_url *base, sbx_slice joined) {
  sbx_url url;
  check_bytes(joined);
  MUST(sbx_url_parse(&url, joined, NULL) == SBX_OK);
  MUST(url.https == base->https && url.port == base->port && url.ipv6 == base->ipv6);
  MUST(sbx_slice_eq(url.host, base->host));
  size_t prefix = base->path.len;
  while (prefix && base->path.ptr[prefix - 1] == '/')
    prefix--;
  MUST(sbx_slice_starts_with(url.path, sbx_slice_of(base->path.ptr, prefix)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sbx_slice in = sbx_slice_of((const char *)data, size);
  sbx_slice text = take_line(&in);
  sbx_slice path = take_line(&in);
  sbx_url base;
  sbx_err err = {0};
  if (sbx_url_parse(&base, text, &err) != SBX_OK) {
    MUST(err.code == SBX_EINVAL);
    return 0;
  }
  check_bytes(text);
  MUST(sbx_slice_find(text, '@') >= (size_t)(base.path.ptr - text.ptr));
  MUST(base.host.len && base.port);

  sbx_buf out, built;
  sbx_buf_init(&out, SIZE_MAX);
  sbx_buf_init(&built, SIZE_MAX);
  int rc = sbx_url_join(&out, &base, path, &err);
  if (rc == SBX_OK)
    check_joined(&base, sbx_buf_slice(&out));
  else
    MUST(rc == SBX_EINVAL && out.len == 0);

  sbx_buf_truncate(&out, 0);
  if (sbx_url_append_segment(&built, in) == SBX_OK) {
    MUST(sbx_slice_find(sbx_slice_skip(sbx_buf_slice(&built), 1), '/') == built.len - 1);
    MUST(sbx_url_append_query(&built, in, path) == SBX_OK);
    MUST(sbx_url_append_query(&built, path, in) == SBX_OK);
    rc = sbx_url_join(&out, &base, sbx_buf_slice(&built), &err);
    MUST(rc == (base.query.len ? SBX_EINVAL : SBX_OK));
    if (rc == SBX_OK)
      check_joined(&base, sbx_buf_slice(&out));
  }
  sbx_buf_deinit(&out);
  sbx_buf_deinit(&built);
  return 0;
}
