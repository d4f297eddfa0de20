/* session.h - the options of the Modal provider, and what is known of one sandbox. */
#ifndef SBX_MODAL_SESSION_H
#define SBX_MODAL_SESSION_H

#include "core/http.h"
#include "core/protobuf.h"
#include "providers/provider.h"
#include "providers/remote/runner/runner.h"
#include "providers/remote/tag.h"

#define SBX__MODAL_NO_KEY "missing token: give tokenId and tokenSecret"

struct sbx_config {
  sbx_loop *loop;
  sbx_http_client *http;
  sbx_headers headers; /* of every call of the control plane, but for what changes */
  char *server_url;
  char *app;
  char *environment;  /* NULL: the server's default */
  char *image;        /* a registry's */
  char *image_id;     /* one that is built already; NULL: `image` */
  char *builder;      /* version of the image builder; NULL: the server's */
  char *attach;       /* id of an existing sandbox; NULL: make one */
  sbx_buf definition; /* fields of a Sandbox, but for its image */
  sbx_buf tags;       /* fields of a SandboxCreateV2Request: tags of the user, and variables */
  bool keyless;       /* there are no credentials: every start fails */
  bool owned;
};

struct sbx_session {
  sbx_config *config;
  char tag[SBX_REMOTE_TAG_LEN + 1]; /* by which a create whose answer was lost is found */
  char *app_id;
  char *id;
  char *task; /* what runs in it */
  char *auth; /* token of the control plane; NULL: none yet */
  uint64_t auth_until_ms;
  char *jwt; /* of the command router */
  uint64_t jwt_until_ms;
  char *router_url;
  char *router_secret; /* "Bearer " and the jwt */
  bool may_exist;      /* a create was sent, and no refusal came */
  bool open;
  bool finished; /* the service has said that it is over */
  /* Of the close in flight: what its request is, once there is a token. */
  const char *closing_id;
  sbx_steps_reply closing;
  sbx_runner runner; /* of lists */
};

#endif
