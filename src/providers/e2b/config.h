/* config.h - the options of the E2B provider. */
#ifndef SBX_E2B_CONFIG_H
#define SBX_E2B_CONFIG_H

#include "core/http.h"
#include "providers/provider.h"

enum { SBX__E2B_TOKEN_LEN = 32 };

/* In the metadata of everything that we create. */
#define SBX__E2B_TAG_NAME "cloudsandbox-tag"

struct sbx_config {
  sbx_loop *loop;
  sbx_http_client *http;
  char *api_key; /* NULL: none was given */
  char *api_url;
  char *domain;
  char *sandbox_url;   /* for all sandboxes; NULL: made of the domain */
  char *attach_id;     /* an existing sandbox to use; NULL: create one */
  char *create_json;   /* the members of a create request, but for those that a session adds */
  char *env_names;     /* of the sandbox's own variables, with blanks between; NULL: none */
  char *metadata_json; /* the members of its `metadata`; NULL: none */
  sbx_headers headers; /* the user's own, for both hosts */
  uint32_t lifetime_s;
  bool debug;       /* everything is on this machine; nothing is created or deleted */
  bool first_api;   /* create by the first generation of the API, without a token */
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

#endif
