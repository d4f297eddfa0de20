/* session.h - a sandbox of Daytona as it is known here, and what a Sandbox object says of it. */
#ifndef SBX_DAYTONA_SESSION_H
#define SBX_DAYTONA_SESSION_H

#include "core/http.h"
#include "core/json.h"
#include "providers/provider.h"
#include "providers/remote/runner/runner.h"
#include "providers/remote/tag.h"

/* ---- config --------------------------------------------------------------------------------- */

struct sbx_config {
  sbx_loop *loop;
  sbx_http_client *http;
  sbx_headers headers; /* of every request: credentials and names */
  char *api_url;
  char *toolbox_url;    /* in place of what the API says; NULL: none */
  char *attach;         /* id or name of an existing sandbox; NULL: make one */
  char *workspace;      /* name to give; NULL: one of ours */
  char *create_body;    /* JSON members of a create that are always the same, without braces */
  size_t most_of_reply; /* bytes of a Sandbox object, which repeats what a create has said */
  bool keyless;         /* there are no credentials: every start fails */
  bool owned;
  bool ephemeral; /* it is deleted as soon as it stops */
};

#define SBX__DAYTONA_NO_KEY "missing API key: give apiKey, or jwtToken with organizationId"

/* ---- session -------------------------------------------------------------------------------- */

struct sbx_session {
  sbx_config *config;
  char tag[SBX_REMOTE_TAG_LEN + 1]; /* label by which a create whose answer was lost is found */
  char *name;                       /* what it was created as */
  char *id;
  char *toolbox;  /* base URL of its toolbox, the id included */
  char *dir;      /* its working directory; NULL: not known */
  char *home;     /* its user's; NULL: nobody has asked for it yet */
  bool may_exist; /* a create was sent, and no refusal came */
  bool open;
  bool old_shell;    /* its daemon has no real shell for commands */
  bool old_env;      /* its daemon takes no variables with a command */
  sbx_runner runner; /* changed by commands, and by nothing else */
};

sbx_session *sbx__daytona_session_new(sbx_config *config);
void sbx__daytona_session_free(sbx_session *session);

/* Copies what a Sandbox object says into the session: id, where the toolbox is, and how old what
 * runs there. SBX_EPROTO, also when it is about another sandbox; SBX_ENOMEM. */
int sbx__daytona_take(sbx_session *session, const sbx_json *sandbox, sbx_err *err);
/* Whether the object is about what was asked for by this name, or by this id. */
bool sbx__daytona_is_named(const sbx_json *sandbox, const char *name);
/* The toolbox is at {base}{route}/{id}{route}. SBX_EPROTO for an address that is less safe than the
 * API's; SBX_ENOMEM, SBX_ETOOBIG. */
int sbx__daytona_set_toolbox(sbx_session *session, sbx_slice base, const char *route, sbx_err *err);
/* A copy of `text` in place of *to. SBX_ENOMEM. */
int sbx__daytona_set_text(char **to, sbx_slice text);

/* How a state counts while one waits for the start. */
typedef enum sbx__daytona_state {
  SBX__DAYTONA_STARTED,
  SBX__DAYTONA_HALTED,  /* stopped, archived, paused: can be started again */
  SBX__DAYTONA_HALTING, /* stopping, archiving, pausing: on the way there */
  SBX__DAYTONA_FAILED,  /* error, build_failed */
  SBX__DAYTONA_GONE,    /* destroyed, destroying */
  SBX__DAYTONA_CHANGING /* everything else, states of later servers too */
} sbx__daytona_state;

sbx__daytona_state sbx__daytona_state_of(const sbx_json *sandbox);

#endif
