/* keys.h - the access keys that requests are signed with, and where they come from. */
#ifndef SBX_AGENTCORE_KEYS_H
#define SBX_AGENTCORE_KEYS_H

#include "providers/remote/steps.h"

typedef enum sbx__ac_source {
  SBX__AC_NONE,      /* there are none: every start fails */
  SBX__AC_GIVEN,     /* as the options say, for ever */
  SBX__AC_CONTAINER, /* an address inside of the container gives them */
  SBX__AC_INSTANCE,  /* the metadata service of an instance does */
} sbx__ac_source;

typedef struct sbx__ac_keys {
  sbx__ac_source source;
  sbx_http_client *http; /* without a proxy: what it asks is on this machine, or next to it */
  char *url;             /* CONTAINER: what is asked; INSTANCE: base of its addresses */
  char *pass;            /* CONTAINER: value of the header Authorization, or NULL */
  char *id, *secret, *token;
  int64_t expires; /* seconds since 1970; 0: never */
  int64_t renew;   /* from when on others are asked for */
} sbx__ac_keys;

#define SBX__AC_NO_KEY                                                                             \
  "missing API key: no AWS credentials; give accessKeyId and secretAccessKey, or set "             \
  "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"

void sbx__ac_keys_free(sbx__ac_keys *keys);
/* Whether a request may be signed with what there is, without asking first. While others are asked
 * for, those that are valid for some time to come still serve everybody else. */
bool sbx__ac_keys_are_fresh(const sbx__ac_keys *keys, int64_t now);
bool sbx__ac_keys_are_valid(const sbx__ac_keys *keys, int64_t now);
/* Asks for others. */
sbx_op *sbx__ac_keys_fetch(sbx__ac_keys *keys, sbx_loop *loop, sbx_op_done done, void *arg);

#endif
