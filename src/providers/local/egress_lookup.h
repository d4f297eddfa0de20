/* egress_lookup.h - the addresses of names, a few at a time: a sandbox must not fill the thread
 * pool that it shares with the host. */
#ifndef SBX_EGRESS_LOOKUP_H
#define SBX_EGRESS_LOOKUP_H

#include "core/loop.h"

typedef struct sbx__egress_lookups sbx__egress_lookups;

/* Embedded in its owner. */
typedef struct sbx__egress_lookup {
  struct sbx__egress_lookup *next; /* of those that wait */
  struct sbx__egress_asked *asked; /* what runs for it */
  bool waits;
  const char *host;
  sbx_lookup_fn done;
  void *arg;
} sbx__egress_lookup;

/* NULL: no memory. */
sbx__egress_lookups *sbx__egress_lookups_new(sbx_loop *loop);
/* All lookups must have been dropped or be done. What still runs ends unseen. */
void sbx__egress_lookups_free(sbx__egress_lookups *lookups);

/* Calls `done` once, maybe at once. `host` must stay valid until then. */
void sbx__egress_lookup_start(sbx__egress_lookups *lookups, sbx__egress_lookup *lookup,
                              const char *host, sbx_lookup_fn done, void *arg);
/* `done` is not called any more. */
void sbx__egress_lookup_drop(sbx__egress_lookups *lookups, sbx__egress_lookup *lookup);

#endif
