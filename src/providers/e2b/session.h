/* session.h - the options, and what is known of one sandbox. */
#ifndef SBX_E2B_SESSION_H
#define SBX_E2B_SESSION_H

#include "core/http.h"
#include "providers/remote/runner/runner.h"

enum { SBX__E2B_TOKEN_LEN = 32, SBX__E2B_ENVD_PORT = 49983, SBX__E2B_CODE_PORT = 49999 };

#define SBX__E2B_DOMAIN "e2b.app"
/* In the metadata of everything that we create. */
#define SBX__E2B_TAG_NAME "cloudsandbox-tag"

/* ---- options -------------------------------------------------------------------------------- */

struct sbx_config {
  sbx_loop *loop;
  sbx_http_client *http;
  char *api_key; /* NULL: none was given */
  char *api_url;
  char *domain;        /* NULL: the service's own */
  char *sandbox_url;   /* for all sandboxes; NULL: made of the domain */
  char *attach_id;     /* an existing sandbox to use; NULL: create one */
  char *template;      /* NULL: the service's own */
  char *create_json;   /* a create request, up to the members of its `metadata` */
  char *env_names;     /* of the sandbox's own variables, with blanks between; NULL: none */
  sbx_headers headers; /* the user's own, for both hosts */
  uint32_t lifetime_s;
  bool debug;       /* everything is on this machine; nothing is created or deleted */
  bool late;        /* without a key it is the first use that fails */
  bool secure;      /* else: create by the first generation of the API, without a token */
  bool owned;       /* close deletes it */
  bool can_pause;   /* sandboxes may be paused by others than us */
  bool interpreter; /* code goes to the interpreter */
};

extern const char *const sbx__e2b_options[];
int sbx__e2b_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options, sbx_err *err);
void sbx__e2b_config_free(sbx_config *config);
int sbx__e2b_missing_key(sbx_err *err);
/* Whether addresses can be made of it. */
bool sbx__e2b_is_domain(sbx_slice text);
/* The same for an id, which is cut to what routes: old records have "<id>-<client>". */
bool sbx__e2b_cut_id(sbx_slice *id);

/* ---- one sandbox ---------------------------------------------------------------------------- */

typedef struct sbx__e2b_context sbx__e2b_context;

/* What an answer has said. */
typedef struct sbx__e2b_box {
  char *id;
  char *access_token;  /* NULL: the sandbox asks for none */
  char *traffic_token; /* NULL: the same */
  char *envd_url;
  char *code_url;
  uint32_t envd_version; /* as SBX__E2B_VERSION() */
} sbx__e2b_box;

struct sbx_session {
  sbx_config *config;
  char tag[SBX__E2B_TOKEN_LEN + 1]; /* "" until the first create */
  bool may_exist;                   /* a create request may have been executed */
  bool open;
  sbx__e2b_box box;
  bool can_pause; /* when it is not found it may be paused */

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
void sbx__e2b_box_free(sbx__e2b_box *box);
/* Appends the provider's name of a path: a relative one begins at the home directory, whatever its
 * first character is. */
void sbx__e2b_append_path(sbx_buf *out, sbx_slice path);

#endif
