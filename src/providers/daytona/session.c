/* session.c - a sandbox of Daytona as it is known here, and what a Sandbox object says of it.
 *
 * Invariant: a session's fields change only in open, which may come again beside other operations;
 * these read them whenever they send, and keep none, so that any number may run at once. The
 * exception is the list of folders that commands have left, which each of them takes from. */
#include "providers/daytona/session.h"

#include "core/alloc.h"
#include "core/err.h"
#include "providers/remote/identity.h"
#include "providers/remote/options.h"

#include <limits.h>

enum { MAX_URL = 16 * 1024 };

/* ---- session -------------------------------------------------------------------------------- */

sbx_session *sbx__daytona_session_new(sbx_config *config) {
  sbx_session *session = sbx_calloc(1, sizeof *session);
  if (session == NULL)
    return NULL;
  session->config = config;
  return session;
}

void sbx__daytona_session_free(sbx_session *session) {
  if (session == NULL)
    return;
  sbx_free(session->name);
  sbx_free(session->id);
  sbx_free(session->toolbox);
  sbx_free(session->dir);
  sbx_free(session->home);
  sbx_free(session);
}

int sbx__daytona_set_text(char **to, sbx_slice text) {
  char *copy = sbx_strndup(text.ptr, text.len);
  if (copy == NULL)
    return SBX_ENOMEM;
  sbx_free(*to);
  *to = copy;
  return SBX_OK;
}

int sbx__daytona_set_toolbox(sbx_session *session, sbx_slice base, const char *route,
                             sbx_err *err) {
  sbx_err why = {0};
  sbx_buf url;
  size_t len;
  sbx_buf_init(&url, MAX_URL);
  while (base.len > 0 && base.ptr[base.len - 1] == '/')
    base.len--;
  sbx_buf_append_slice(&url, base);
  sbx_buf_appendf(&url, "%s/%s%s", route, session->id, route);
  int rc = url.error != SBX_OK ? sbx_err_set(err, url.error, NULL) : SBX_OK;
  if (rc == SBX_OK &&
      sbx_remote_check_safe(url.ptr, session->config->api_url, "toolbox", &why) != SBX_OK)
    rc =
        sbx_err_set(err, SBX_EPROTO,
                    "daytona: unexpected answer: the toolbox's address: %s; nothing was sent there",
                    why.message);
  if (rc == SBX_OK) {
    sbx_free(session->toolbox);
    session->toolbox = sbx_buf_take(&url, &len);
  }
  sbx_buf_deinit(&url);
  return rc;
}

/* ---- what a Sandbox object says ------------------------------------------------------------- */

/* The minor version of a daemon, as "v0.190.0" or "0.201.0-b24aa9b": each had one major version so
 * far. INT_MAX, a new one, when it is not told, or told by a build of no version. */
static int minor_version(sbx_slice text) {
  if (text.len > 0 && (text.ptr[0] == 'v' || text.ptr[0] == 'V'))
    text = sbx_slice_skip(text, 1);
  if (!sbx_slice_starts_with(text, sbx_slice_str("0.")))
    return INT_MAX;
  int minor = 0;
  text = sbx_slice_skip(text, 2);
  for (size_t i = 0; i < text.len && sbx_is_digit(text.ptr[i]) && minor < 100000; i++)
    minor = minor * 10 + (text.ptr[i] - '0');
  return minor > 0 ? minor : INT_MAX;
}

static void take_version(sbx_session *session, const sbx_json *sandbox) {
  sbx_slice version;
  if (!sbx_json_string(sbx_json_get(sandbox, "daemonVersion"), &version))
    return;
  int minor = minor_version(version);
  session->old_shell = minor < 156;
  session->old_env = minor < 167;
}

int sbx__daytona_take(sbx_session *session, const sbx_json *sandbox, sbx_err *err) {
  const sbx_config *config = session->config;
  sbx_slice id = {NULL, 0}, base;
  sbx_json_string(sbx_json_get(sandbox, "id"), &id);
  if (sbx_remote_identity_take(&session->id, id, "daytona", err) != SBX_OK)
    return err->code;
  int rc = SBX_OK;
  take_version(session, sandbox);
  if (config->toolbox_url != NULL)
    rc = sbx__daytona_set_toolbox(session, sbx_slice_str(config->toolbox_url), "", err);
  else if (sbx_json_string(sbx_json_get(sandbox, "toolboxProxyUrl"), &base) && base.len > 0)
    rc = sbx__daytona_set_toolbox(session, base, "", err);
  return rc;
}

bool sbx__daytona_is_named(const sbx_json *sandbox, const char *name) {
  sbx_slice said;
  return (sbx_json_string(sbx_json_get(sandbox, "name"), &said) && sbx_slice_eq_str(said, name)) ||
         (sbx_json_string(sbx_json_get(sandbox, "id"), &said) && sbx_slice_eq_str(said, name));
}

sbx__daytona_state sbx__daytona_state_of(const sbx_json *sandbox) {
  static const struct {
    const char *name;
    sbx__daytona_state state;
  } states[] = {
      {"started", SBX__DAYTONA_STARTED},  {"stopped", SBX__DAYTONA_HALTED},
      {"archived", SBX__DAYTONA_HALTED},  {"paused", SBX__DAYTONA_HALTED},
      {"error", SBX__DAYTONA_FAILED},     {"build_failed", SBX__DAYTONA_FAILED},
      {"destroyed", SBX__DAYTONA_GONE},   {"destroying", SBX__DAYTONA_GONE},
      {"stopping", SBX__DAYTONA_HALTING}, {"archiving", SBX__DAYTONA_HALTING},
      {"pausing", SBX__DAYTONA_HALTING},
  };
  sbx_slice name;
  if (!sbx_json_string(sbx_json_get(sandbox, "state"), &name))
    return SBX__DAYTONA_CHANGING;
  for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
    if (sbx_slice_eq_str(name, states[i].name))
      return states[i].state;
  }
  return SBX__DAYTONA_CHANGING;
}
