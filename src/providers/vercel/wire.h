/* wire.h - a sandbox of Vercel as it is known here, requests to Vercel's API, and what their
 * refusals mean.
 *
 * A sandbox has a name; what runs are its sessions, one after the other. Here one of them is used,
 * and no other: what replaces it would have none of its files. */
#ifndef SBX_VERCEL_WIRE_H
#define SBX_VERCEL_WIRE_H

#include "providers/remote/exchange.h"
#include "providers/remote/runner/runner.h"
#include "providers/remote/tag.h"

/* ---- config and session --------------------------------------------------------------------- */

struct sbx_config {
  sbx_loop *loop;
  sbx_http_client *http;
  sbx_headers headers;         /* of every request */
  sbx_headers archive_headers; /* the same, and which directory an archive is of */
  char *api_url;
  char *team;
  char *project;
  char *attach;      /* name of an existing sandbox; NULL: make one */
  char *name;        /* to give; NULL: one of ours */
  char *create_body; /* a create's JSON, up to the tags and the name */
  bool old_route;    /* a create with `runtime` has a route of its own */
  bool keyless;      /* there are no credentials: every start fails */
  bool owned;
};

#define SBX__VERCEL_NO_KEY "missing API key: give token, teamId and projectId"

struct sbx_session {
  sbx_config *config;
  char tag[SBX_REMOTE_TAG_LEN + 1]; /* by which a create whose answer was lost is found */
  char *name;                       /* the sandbox's */
  char *id;                         /* the session's */
  char *dir;                        /* its working directory */
  bool may_exist;                   /* a create was sent, and no refusal came */
  bool open;
  bool no_sudo;            /* commands of root were refused */
  sbx_steps_reply removed; /* of the close in flight */
  sbx_runner runner;       /* changed by commands, and by nothing else */
};

/* ---- requests ------------------------------------------------------------------------------- */

enum { SBX__VERCEL_URL_MAX = 16 * 1024 };

/* A GET that asks for something. */
extern const sbx_http_request sbx__vercel_question;

/* Each sends one request, which is given without URL and, but for an archive, headers. The whole
 * operation has a deadline, so the request has none. */
/* POST {base}/v3/sandboxes, or /v2 */
void sbx__vercel_create(sbx_steps *steps, sbx_buf *body, sbx_steps_reply on_reply);
/* {base}/v2/sandboxes/{name}; `resume`: "true" starts a new session when there is none, "false"
 * does not; NULL: nothing is said. */
void sbx__vercel_to_sandbox(sbx_steps *steps, const char *method, const char *name,
                            const char *resume, sbx_steps_reply on_reply);
/* {base}/v2/sandboxes/sessions/{id}{rest} */
void sbx__vercel_to_session(sbx_steps *steps, const char *rest, const sbx_http_request *request,
                            sbx_steps_reply on_reply);
/* The file at an absolute path, in an archive. It may be sent again. */
void sbx__vercel_upload(sbx_steps *steps, sbx_slice path, unsigned mode, sbx_slice bytes,
                        sbx_steps_reply on_reply);

/* The path as it is sent: relative ones begin at the working directory; "~" and "~/x" stay, and
 * only programs of ours know them. */
int sbx__vercel_absolute(sbx_buf *out, const sbx_session *session, sbx_slice path);
bool sbx__vercel_is_at_home(sbx_slice path);
/* Appends the absolute path as a name in an archive of the root: "." and ".." resolved, no slash at
 * its front. */
int sbx__vercel_archive_name(sbx_buf *out, sbx_slice path);

/* ---- refusals ------------------------------------------------------------------------------- */

/* Sandboxes by name, and the look at a session. SBX_ENOTFOUND is its own word; somebody else's 404
 * is SBX_EPROTO. */
extern const sbx_remote_service sbx__vercel_api;
/* What is done in a session, where a refusal may mean that it is over: such ones are
 * SBX_ECONFLICT, which leads to a look at it. */
extern const sbx_remote_service sbx__vercel_inside;

#endif
