/* session.h - the options of the docker provider, and what is known of one container. */
#ifndef SBX_DOCKER_SESSION_H
#define SBX_DOCKER_SESSION_H

#include "core/http.h"
#include "core/json.h"
#include "providers/provider.h"
#include "providers/remote/runner/runner.h"
#include "providers/remote/tag.h"

typedef enum sbx__docker_pull {
  SBX__DOCKER_PULL_MISSING,
  SBX__DOCKER_PULL_ALWAYS,
  SBX__DOCKER_PULL_NEVER,
} sbx__docker_pull;

/* The newest version of the engine's API that is asked for; older ones down to 1.41 will do. */
enum { SBX__DOCKER_MINOR_MAX = 51, SBX__DOCKER_MINOR_MIN = 41 };

/* How old a client's process is tells it from a later one of the same number. */
enum { SBX__DOCKER_OWNER_MAX = 160 };

struct sbx_config {
  sbx_loop *loop;
  sbx_http_client *http;
  sbx_headers headers; /* of a request with a JSON body */
  char *base;          /* scheme and host, without '/' at its end */
  char *service;       /* the same for messages; a socket's path */
  bool https;
  bool given_version;
  int minor;    /* of the API's version; 0: not agreed upon yet */
  char *attach; /* name or id of a container; NULL: make one */
  bool owned;   /* close deletes it */
  char *image;  /* with a tag or a digest */
  sbx__docker_pull pull;
  char *platform; /* NULL: the engine's own */
  char *user;     /* of commands; NULL: the container's */
  char *dir;      /* where they run */
  char *home;     /* theirs, of a container that is made */
  bool has_mounts;
  char *memory; /* options of the two file systems in memory */
  char *disk;
  char *closed; /* members of Tmpfs for Podman; NULL: none */
  /* JSON of a create, each without its last bracket. */
  char *create_body;
  char *host_body;
  char *label_body;
  uint32_t lifetime_s;
  bool asks_memory; /* limits that are no defaults */
  bool asks_cpus;
  bool asks_pids;
  char owner[SBX__DOCKER_OWNER_MAX]; /* this process, on this machine */
};

struct sbx_session {
  sbx_config *config;
  char tag[SBX_REMOTE_TAG_LEN + 1]; /* label by which a create whose answer was lost is found */
  char *id;
  bool may_exist; /* a create was sent, and no refusal came */
  bool open;
  bool is_podman;
  void (*on_progress)(void *arg, sbx_slice json); /* NULL: nobody listens */
  void *progress_arg;
  sbx_runner runner;
};

#endif
