/* list.c - the regular files below the working directory.
 *
 * The toolbox's own listing is one folder deep, in old versions; find is everywhere.
 *
 * Invariant: a list that is not whole is an error. */
#include "providers/daytona/daytona.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/rand.h"

/* For an entry, with a long path; and for all of them. */
#define ENTRY_BYTES ((size_t)256)
#define MIN_BYTES ((size_t)64 << 10)
#define MAX_BYTES ((size_t)8 << 20)

typedef struct list_op {
  sbx_steps steps;
  sbx_listing *out;
  size_t max_entries;
  char tag[SBX__DAYTONA_TAG + 1];
} list_op;

static int too_many(const list_op *list, sbx_err *err) {
  return sbx_err_set(err, SBX_ETOOBIG, "there are more than %zu files" SBX__LIST_ADVICE,
                     list->max_entries);
}

static bool take_size(sbx_slice *item, uint64_t *size) {
  size_t blank = sbx_slice_find(*item, ' ');
  *size = 0;
  for (size_t i = 0; i < blank; i++) {
    if (!sbx_is_digit(item->ptr[i]) || blank > 18)
      return false;
    *size = *size * 10 + (uint64_t)(item->ptr[i] - '0');
  }
  *item = sbx_slice_skip(*item, blank + 1);
  return blank > 0;
}

/* `item`: "<size> ./<path>" */
static int add_entry(list_op *list, sbx_slice item, sbx_err *err) {
  uint64_t size;
  if (!take_size(&item, &size) || !sbx_slice_starts_with(item, sbx_slice_str("./")))
    return sbx_err_set(err, SBX_EPROTO, "daytona: list files: unexpected output of find");
  if (list->out->count == list->max_entries)
    return too_many(list, err);
  item = sbx_slice_skip(item, 2);
  return sbx_listing_add(list->out, sbx_strndup(item.ptr, item.len), size, err);
}

static int add_all(list_op *list, sbx_slice rest, sbx_err *err) {
  int rc = SBX_OK;
  while (rc == SBX_OK && rest.len > 0) {
    size_t end = sbx_slice_find(rest, '\0');
    if (end == rest.len) /* it was cut off at the most bytes */
      return too_many(list, err);
    rc = add_entry(list, sbx_slice_of(rest.ptr, end), err);
    rest = sbx_slice_skip(rest, end + 1);
  }
  return rc;
}

static void on_listed(sbx_steps *steps, sbx_http *reply) {
  list_op *list = (list_op *)(void *)steps;
  sbx__daytona_report report;
  sbx_err err;
  int rc = sbx__daytona_take_report(&report, reply, list->tag, "list files", &err);
  if (rc == SBX_OK)
    rc = add_all(list, sbx_buf_slice(&report.head[0]), &err);
  sbx__daytona_report_deinit(&report);
  sbx_steps_finish(steps, rc == SBX_OK ? NULL : &err);
}

static size_t most_bytes(size_t max_entries) {
  if (max_entries < MIN_BYTES / ENTRY_BYTES)
    return MIN_BYTES;
  return max_entries < MAX_BYTES / ENTRY_BYTES ? max_entries * ENTRY_BYTES : MAX_BYTES;
}

sbx_op *sbx__daytona_list(sbx_session *session, size_t max_entries, sbx_listing *out,
                          sbx_op_done done, void *arg) {
  sbx_buf json;
  sbx_err err;
  list_op *list = sbx_steps_new(sizeof *list, session, session->config->loop, done, arg);
  if (list == NULL)
    return NULL;
  list->out = out;
  list->max_entries = max_entries;
  if (sbx_random_hex(list->tag, SBX__DAYTONA_TAG, &err) != SBX_OK) {
    sbx_steps_finish(&list->steps, &err);
    return &list->steps.op;
  }
  sbx__daytona_write_list(&json, session, list->tag, most_bytes(max_entries));
  sbx__daytona_send_script(&list->steps, &json,
                           (sbx__daytona_sending){.timeout_ms = SBX_NO_TIMEOUT}, on_listed);
  return &list->steps.op;
}
