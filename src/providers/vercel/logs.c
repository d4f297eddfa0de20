/* logs.c - reads the lines of a command's answer.
 *
 * Invariant: a command has ended when a line says so with a number; the end of the answer says
 * nothing. */
#include "providers/vercel/logs.h"

#include "core/err.h"
#include "core/json.h"
#include "providers/remote/identity.h"

#include <string.h>

#define MAX_LINE ((size_t)8 << 20)

/* The bytes of an array of strings up to its end, "]" left out; `rest` begins behind its "[". All
 * of `rest` when it is none. */
static size_t end_of_strings(sbx_slice rest) {
  size_t at = 0;
  while (at < rest.len && rest.ptr[at] != ']') {
    if (rest.ptr[at++] != '"')
      continue;
    while (at < rest.len && rest.ptr[at] != '"')
      at += rest.ptr[at] == '\\' ? 2 : 1;
    at++;
  }
  return at < rest.len ? at : rest.len;
}

/* The line without the words of the command, which is most of it: 10 KB of ours, told twice. A
 * quote inside of a string has a backslash before it, so what is found is the member itself. */
static int shorten(sbx_buf *out, sbx_slice line) {
  static const char name[] = ",\"args\":[";
  const char *found = memmem(line.ptr, line.len, name, sizeof name - 1);
  size_t begin = found != NULL ? (size_t)(found - line.ptr) + sizeof name - 1 : line.len;
  sbx_slice rest = sbx_slice_skip(line, begin);
  sbx_buf_append(out, line.ptr, begin);
  return sbx_buf_append_slice(out, sbx_slice_skip(rest, end_of_strings(rest)));
}

static void take_command(sbx__vercel_logs *logs, const sbx_json *command) {
  sbx_slice id;
  if (logs->id[0] == '\0' && sbx_json_string(sbx_json_get(command, "id"), &id) &&
      sbx_remote_identity_is_id(id))
    memcpy(logs->id, id.ptr, id.len);
  logs->ended =
      sbx_json_int(sbx_json_get(command, "exitCode"), INT32_MIN, INT32_MAX, &logs->exit_code);
}

static int fail(const sbx_json *data, sbx_err *err) {
  sbx_slice code = {NULL, 0}, message = {NULL, 0};
  sbx_json_string(sbx_json_get(data, "code"), &code);
  sbx_json_string(sbx_json_get(data, "message"), &message);
  sbx_err_set(err, SBX_ENET, "the stream of the command failed: ");
  sbx_err_append_remote(err, code);
  sbx_err_append(err, ": ");
  sbx_err_append_remote(err, message);
  return SBX_ENET;
}

static int take_log(sbx__vercel_logs *logs, sbx_slice stream, const sbx_json *data, sbx_err *err) {
  sbx_slice text;
  if (sbx_slice_eq_str(stream, "error"))
    return fail(data, err);
  bool known = sbx_slice_eq_str(stream, "stdout") || sbx_slice_eq_str(stream, "stderr");
  if (!known || !sbx_json_string(data, &text))
    return SBX_OK;
  int rc = sbx_buf_append_slice(&logs->printed, text);
  if (rc == SBX_ETOOBIG)
    return sbx_err_set(err, SBX_EPROTO, "more came than was asked for");
  return rc == SBX_OK ? SBX_OK : sbx_err_set(err, rc, NULL);
}

static int on_line(void *arg, sbx_slice line, sbx_err *err) {
  sbx__vercel_logs *logs = arg;
  sbx_json_doc *doc = NULL;
  sbx_slice stream;
  sbx_buf brief;
  if (logs->ended)
    return SBX_OK;
  sbx_buf_init(&brief, line.len);
  if (sbx_slice_starts_with(line, sbx_slice_str("{\"command\":")) &&
      shorten(&brief, line) == SBX_OK)
    line = sbx_buf_slice(&brief);
  int rc =
      brief.error != SBX_OK ? sbx_err_set(err, brief.error, NULL) : sbx_json_parse(&doc, line, err);
  sbx_buf_deinit(&brief);
  if (rc != SBX_OK)
    return rc;
  const sbx_json *root = sbx_json_root(doc);
  if (sbx_json_string(sbx_json_get(root, "stream"), &stream))
    rc = take_log(logs, stream, sbx_json_get(root, "data"), err);
  else if (sbx_json_is_object(sbx_json_get(root, "command")))
    take_command(logs, sbx_json_get(root, "command"));
  sbx_json_free(doc, false);
  return rc;
}

void sbx__vercel_logs_init(sbx__vercel_logs *logs, size_t most_printed) {
  *logs = (sbx__vercel_logs){0};
  sbx_lines_init(&logs->lines, MAX_LINE, on_line, logs);
  sbx_buf_init(&logs->printed, most_printed);
}

void sbx__vercel_logs_deinit(sbx__vercel_logs *logs) {
  sbx_lines_deinit(&logs->lines);
  sbx_buf_deinit(&logs->printed);
}

int sbx__vercel_logs_feed(sbx__vercel_logs *logs, sbx_slice bytes, sbx_err *err) {
  int rc = sbx_lines_feed(&logs->lines, bytes, err);
  return rc == SBX_ETOOBIG ? sbx_err_set(err, SBX_EPROTO, "a line is too long") : rc;
}

int sbx__vercel_logs_finish(sbx__vercel_logs *logs, sbx_err *err) {
  int rc = sbx_lines_finish(&logs->lines, err);
  /* The last line may be the half of one. */
  if (rc == SBX_EPROTO || (rc == SBX_OK && !logs->ended))
    rc = sbx_err_set(err, SBX_ENET, "the answer broke off before the command's end");
  return rc;
}
