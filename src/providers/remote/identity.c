/* identity.c - whose answers these are.
 *
 * Invariant: an id changes from "not known" to known, and then never again. */
#include "providers/remote/identity.h"

#include "core/alloc.h"
#include "core/err.h"

enum { MAX_ID = 128 };

bool sbx_remote_identity_is_id(sbx_slice id) {
  for (size_t i = 0; i < id.len; i++) {
    char c = id.ptr[i];
    if (!sbx_is_letter(c) && !sbx_is_digit(c) && c != '-' && c != '_' && c != '.' && c != '~')
      return false;
  }
  return id.len > 0 && id.len <= MAX_ID && id.ptr[0] != '.';
}

int sbx_remote_identity_take(char **id, sbx_slice said, const char *provider, sbx_err *err) {
  int rc = SBX_OK;
  if (!sbx_remote_identity_is_id(said)) {
    rc = sbx_err_set(err, SBX_EPROTO, "%s: the answer has no id of a sandbox", provider);
  } else if (*id == NULL) {
    *id = sbx_strndup(said.ptr, said.len);
    rc = *id != NULL ? SBX_OK : sbx_err_set(err, SBX_ENOMEM, NULL);
  } else if (!sbx_slice_eq_str(said, *id)) {
    rc = sbx_err_set(err, SBX_EPROTO, "%s: the answer is about another sandbox (", provider);
    sbx_err_append_remote(err, said);
    sbx_err_append(err, ") than the one that was asked for (%s); it is not used", *id);
  }
  if (rc == SBX_EPROTO && err != NULL)
    err->provider = provider;
  return rc;
}
