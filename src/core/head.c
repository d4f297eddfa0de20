/* head.c - the head of an HTTP/1.1 answer.
 *
 * Invariant: what is held is one line at most, and all lines together are no longer than `max`. */
#include "core/head.h"

#include "core/err.h"

void sbx_head_init(sbx_head *head, size_t max) {
  *head = (sbx_head){.left = max};
  sbx_headers_init(&head->headers, max);
  sbx_buf_init(&head->line, max);
}

void sbx_head_deinit(sbx_head *head) {
  sbx_headers_deinit(&head->headers);
  sbx_buf_deinit(&head->line);
}

/* "HTTP/1.1 200 OK", the reason left out or not. */
static bool is_status_line(sbx_slice line) {
  return line.len >= 12 && sbx_slice_starts_with(line, sbx_slice_str("HTTP/1.")) &&
         sbx_is_digit(line.ptr[7]) && line.ptr[8] == ' ' && line.ptr[9] >= '1' &&
         line.ptr[9] <= '9' && sbx_is_digit(line.ptr[10]) && sbx_is_digit(line.ptr[11]) &&
         (line.len == 12 || line.ptr[12] == ' ');
}

static int take_status(sbx_head *head, sbx_slice line, sbx_err *err) {
  if (!is_status_line(line))
    return sbx_err_set(err, SBX_EPROTO, "the answer is not proper HTTP");
  for (size_t i = 9; i < 12; i++)
    head->status = head->status * 10 + (line.ptr[i] - '0');
  return SBX_OK;
}

static int take_line(sbx_head *head, sbx_err *err) {
  sbx_slice line = sbx_buf_slice(&head->line);
  int rc = SBX_OK;
  if (line.len > 0 && line.ptr[line.len - 1] == '\r')
    line.len--;
  if (head->status == 0)
    rc = take_status(head, line, err);
  else if (line.len > 0)
    rc = sbx_headers_add_line(&head->headers, line, err);
  else if (head->status >= 200 || head->status == 101)
    head->done = true;
  else { /* the final one comes later */
    sbx_headers_deinit(&head->headers);
    head->status = 0;
  }
  sbx_buf_truncate(&head->line, 0);
  return rc;
}

int sbx_head_feed(sbx_head *head, sbx_slice bytes, size_t *used, sbx_err *err) {
  *used = 0;
  while (*used < bytes.len && !head->done) {
    sbx_slice rest = sbx_slice_skip(bytes, *used);
    size_t end = sbx_slice_find(rest, '\n');
    size_t taken = end < rest.len ? end + 1 : rest.len;
    if (taken > head->left)
      return sbx_err_set(err, SBX_EPROTO, "the answer is all heads");
    head->left -= taken;
    *used += taken;
    if (sbx_buf_append(&head->line, rest.ptr, end) != SBX_OK)
      return sbx_err_set(err, head->line.error, NULL);
    int rc = end < rest.len ? take_line(head, err) : SBX_OK;
    if (rc == SBX_ETOOBIG)
      return sbx_err_set(err, SBX_EPROTO, "the answer has too many header fields");
    if (rc != SBX_OK)
      return rc;
  }
  return SBX_OK;
}
