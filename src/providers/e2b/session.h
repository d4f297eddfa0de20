/* session.h - what is known of one sandbox. */
#ifndef SBX_E2B_SESSION_H
#define SBX_E2B_SESSION_H

#include "core/op.h"
#include "providers/e2b/config.h"
#include "providers/remote/runner/runner.h"

enum { SBX__E2B_ENVD_PORT = 49983, SBX__E2B_CODE_PORT = 49999 };

typedef struct sbx__e2b_context sbx__e2b_context;

struct sbx_session {
  sbx_config *config;
  char tag[SBX__E2B_TOKEN_LEN + 1]; /* "" until the first create */
  bool may_exist;                   /* a create request may have been executed */
  bool open;
  char *id;
  char *access_token;  /* NULL: the sandbox asks for none */
  char *traffic_token; /* NULL: the same */
  char *envd_url;
  char *code_url;
  uint32_t envd_version; /* as SBX__E2B_VERSION() */
  bool can_pause;        /* when it is not found it may be paused */

  size_t execs;           /* in flight */
  uint64_t busy_until_ms; /* how long they may take, at most */
  uint32_t lifetime_s;    /* what it was set to last */
  uint64_t ends_at_ms;
  sbx_timer keep_alive;
  sbx_op *refresh;     /* the request that prolongs it */
  bool cannot_refresh; /* it was refused */

  sbx__e2b_context *contexts; /* of the interpreter, that we made */
  sbx_runner *runner;         /* NULL: none was needed yet */
};

#define SBX__E2B_VERSION(major, minor, patch)                                                      \
  ((uint32_t)(major) << 24 | (uint32_t)(minor) << 12 | (uint32_t)(patch))

/* Takes what a create or a connect has answered; `id` is the sandbox that was asked for, NULL: a
 * new one. SBX_EPROTO, also when it is another sandbox; SBX_ENOMEM; the session is then as it was.
 */
int sbx__e2b_take_sandbox(sbx_session *session, char *id, sbx_slice reply, sbx_err *err);
/* The sandbox of debug mode. SBX_ENOMEM, SBX_EPROTO. */
int sbx__e2b_take_debug(sbx_session *session, sbx_err *err);
/* Frees what an answer gave it. */
void sbx__e2b_session_clear(sbx_session *session);
/* Appends the provider's name of a path: a relative one begins at the home directory, whatever its
 * first character is. */
void sbx__e2b_append_path(sbx_buf *out, sbx_slice path);

#endif
