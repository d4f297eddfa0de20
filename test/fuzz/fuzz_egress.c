/* What the egress proxy reads of a sandbox. The first byte chooses what, the second the size of
 * pieces.
 *  - A ClientHello: pieces change nothing; its name is in the input, apart from its records.
 *  - A head: what is forwarded is read again, as itself, and has one Host.
 *  - A body: pieces change nothing, and the end lies inside the input.
 *  - A rule, a target: what is read is written, and read again, alike; no name looks like an
 * address. */
#include "fuzz.h"
#include "providers/local/egress_head.h"
#include "providers/local/egress_tls.h"

#include <arpa/inet.h>
#include <string.h>

static int hello_in_pieces(sbx_slice in, size_t piece, sbx_buf *seen) {
  sbx__egress_hello hello;
  const char *why = NULL;
  int rc = SBX_OK;
  sbx__egress_hello_init(&hello);
  while (rc == SBX_OK && in.len > 0 && !hello.done)
    rc = sbx__egress_hello_feed(&hello, fuzz_take(&in, piece), &why);
  MUST(rc == SBX_OK || (rc == SBX_EPROTO && why != NULL));
  MUST(hello.message.len <= SBX__EGRESS_HELLO_MAX);
  if (rc == SBX_OK && hello.done)
    sbx_buf_append_slice(seen, hello.name);
  sbx__egress_hello_deinit(&hello);
  return rc;
}

static int body_in_pieces(sbx_slice in, size_t piece, sbx_buf *seen) {
  sbx__egress_body body = {.state = SBX__EGRESS_BODY_SIZE};
  bool good = true;
  while (good && in.len > 0 && !body.done) {
    size_t used;
    sbx_slice part = fuzz_take(&in, piece);
    good = sbx__egress_body_feed(&body, part, &used);
    MUST(used <= part.len && (used == part.len || body.done || !good));
    if (good)
      sbx_buf_append(seen, part.ptr, used);
  }
  if (!good)
    sbx_buf_truncate(seen, 0);
  return good ? SBX_OK : SBX_EPROTO;
}

static size_t count_of(sbx_slice text, const char *part) {
  size_t count = 0, len = strlen(part);
  for (size_t i = 0; i + len <= text.len; i++)
    count += sbx_slice_eq_nocase(sbx_slice_of(text.ptr + i, len), sbx_slice_str(part));
  return count;
}

static void check_target(const sbx__egress_target *target) {
  struct in_addr out;
  sbx__egress_target again;
  sbx_buf text;
  MUST(target->port > 0 && target->name_len == strlen(target->name));
  MUST(target->is_addr || inet_aton(target->name, &out) == 0);
  sbx_buf_init(&text, SIZE_MAX);
  sbx__egress_target_write(&text, target);
  MUST(sbx__egress_target_parse(&again, sbx_buf_slice(&text), 0));
  MUST(strcmp(again.name, target->name) == 0 && again.port == target->port);
  MUST(again.is_addr == target->is_addr);
  sbx_buf_deinit(&text);
}

static void check_head(sbx_slice in) {
  sbx__egress_request request, again;
  sbx__egress_fault fault = {0};
  size_t end = sbx__egress_head_end(in, 0);
  if (end == 0)
    return;
  sbx__egress_request_init(&request);
  int rc = sbx__egress_request_parse(&request, sbx_slice_of(in.ptr, end), &fault);
  MUST(rc == SBX_OK || (rc == SBX_EINVAL && fault.status >= 400 && fault.why != NULL));
  if (rc == SBX_OK)
    check_target(&request.target);
  if (rc == SBX_OK && !request.connect) {
    sbx_slice out = sbx_buf_slice(&request.forward);
    MUST(sbx__egress_head_end(out, 0) == out.len);
    MUST(count_of(out, "\r\nhost:") == 1 && count_of(out, "\r\nconnection:") == 1);
    MUST(count_of(out, "\r\nproxy-authorization:") == 0);
    /* Read as a request to a proxy once more it comes to the same. */
    sbx_buf text;
    size_t blank = sbx_slice_find(out, ' ');
    sbx_buf_init(&text, SIZE_MAX);
    sbx_buf_append(&text, out.ptr, blank + 1);
    sbx_buf_append_str(&text, "http://");
    sbx__egress_target_write(&text, &request.target);
    sbx_buf_append_slice(&text, sbx_slice_skip(out, blank + 1));
    sbx__egress_request_init(&again);
    rc = sbx__egress_request_parse(&again, sbx_buf_slice(&text), &fault);
    /* The two fields of the proxy's own may be the ones too many. */
    MUST(rc == SBX_OK || fault.status == 431);
    if (rc == SBX_OK) {
      MUST(again.body.state == request.body.state && again.body.left == request.body.left);
      MUST(sbx_slice_eq(sbx_buf_slice(&again.forward), out));
    }
    sbx__egress_request_deinit(&again);
    sbx_buf_deinit(&text);
  }
  sbx__egress_request_deinit(&request);
}

static void check_rules(sbx_slice in) {
  sbx__egress_rules rules;
  sbx__egress_target target;
  sbx_err err;
  sbx__egress_rules_init(&rules);
  sbx_slice text = fuzz_take(&in, sbx_slice_find(in, '\n'));
  fuzz_take(&in, 1);
  int rc = sbx__egress_rules_add(&rules, text, &err);
  MUST(rc == SBX_OK || rc == SBX_EINVAL);
  if (sbx__egress_target_parse(&target, in, 443)) {
    check_target(&target);
    sbx__egress_verdict verdict = sbx__egress_check(&rules, &target);
    MUST(rc == SBX_OK || verdict != SBX__EGRESS_ALLOWED);
    /* A name is allowed by its own text alone, whatever its case. */
    if (verdict == SBX__EGRESS_ALLOWED && rules.items[0].kind != SBX__EGRESS_NET)
      MUST(target.name_len >= rules.items[0].name_len &&
           strcmp(target.name + target.name_len - rules.items[0].name_len, rules.items[0].name) ==
               0);
  }
  sbx__egress_rules_deinit(&rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sbx_slice in = sbx_slice_of((const char *)data, size);
  unsigned what = fuzz_take_byte(&in);
  size_t piece = 1 + fuzz_take_byte(&in);
  switch (what % 4) {
  case 0:
    fuzz_check_split(hello_in_pieces, in, piece);
    break;
  case 1:
    check_head(in);
    break;
  case 2:
    fuzz_check_split(body_in_pieces, in, piece);
    break;
  default:
    check_rules(in);
  }
  return 0;
}
