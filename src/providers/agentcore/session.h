/* session.h - a session of AgentCore's Code Interpreter as it is known here. */
#ifndef SBX_AGENTCORE_SESSION_H
#define SBX_AGENTCORE_SESSION_H

#include "core/json.h"
#include "providers/agentcore/keys.h"
#include "providers/agentcore/sigv4.h"
#include "providers/remote/runner/runner.h"
#include "providers/remote/tag.h"

enum { SBX__AC_URL_MAX = 16 * 1024 };

struct sbx_config {
  sbx_loop *loop;
  sbx_http_client *http;
  sbx_headers headers; /* of every request, unsigned */
  sbx__ac_keys keys;
  sbx__sigv4_alike alike;
  int64_t skew; /* how far the service's clock is ahead of ours, in seconds */
  char *region;
  char *url;             /* of the code interpreter */
  char *attach;          /* id of an existing session; NULL: make one */
  char *name;            /* what a session's name begins with */
  char *create_body;     /* a create's JSON, up to its name */
  sbx_json_doc *env_doc; /* owns the texts of `env` */
  sbx_env_var *env;      /* of every command */
  size_t env_count;
  bool owned;
};

struct sbx_session {
  sbx_config *config;
  char tag[SBX_REMOTE_TAG_LEN + 1]; /* by which a create whose answer was lost is found */
  char *id;
  char *dir;           /* where commands begin; NULL: it is not open */
  char *next;          /* the rest of a list, while it is searched */
  sbx_headers headers; /* of what is done in the session */
  bool may_exist;      /* a create was sent, and no refusal came */
  sbx_runner runner;   /* changed by commands, and by nothing else */
};

#endif
