/* egress_lookup.c - see the header. */
#include "providers/local/egress_lookup.h"

#include "core/alloc.h"
#include "core/err.h"

/* libuv gives lookups half of its pool; more than this would only wait there. */
enum { RUNNING_MAX = 2 };

/* Lives as long as the system looks, whatever becomes of who has asked. */
typedef struct sbx__egress_asked {
  sbx__egress_lookups *lookups;
  sbx__egress_lookup *lookup; /* NULL: dropped */
} asked;

struct sbx__egress_lookups {
  sbx_loop *loop;
  sbx__egress_lookup *first, **last;
  size_t running;
  bool freed; /* by its owner; it goes with the last that runs */
};

sbx__egress_lookups *sbx__egress_lookups_new(sbx_loop *loop) {
  sbx__egress_lookups *lookups = sbx_calloc(1, sizeof *lookups);
  if (lookups == NULL)
    return NULL;
  lookups->loop = loop;
  lookups->last = &lookups->first;
  return lookups;
}

void sbx__egress_lookups_free(sbx__egress_lookups *lookups) {
  if (lookups == NULL)
    return;
  lookups->freed = true;
  if (lookups->running == 0)
    sbx_free(lookups);
}

static sbx__egress_lookup *take_first(sbx__egress_lookups *lookups) {
  sbx__egress_lookup *lookup = lookups->first;
  lookups->first = lookup->next;
  if (lookups->first == NULL)
    lookups->last = &lookups->first;
  lookup->waits = false;
  return lookup;
}

static void run_waiting(sbx__egress_lookups *lookups);

static void on_found(void *arg, const struct addrinfo *found, const char *why) {
  asked *a = arg;
  sbx__egress_lookups *lookups = a->lookups;
  sbx__egress_lookup *lookup = a->lookup;
  sbx_free(a);
  if (lookup != NULL) {
    lookup->asked = NULL;
    lookup->done(lookup->arg, found, why);
  }
  lookups->running--;
  if (!lookups->freed)
    run_waiting(lookups);
  else if (lookups->running == 0)
    sbx_free(lookups);
}

static void run_waiting(sbx__egress_lookups *lookups) {
  while (lookups->first != NULL && lookups->running < RUNNING_MAX) {
    sbx__egress_lookup *lookup = take_first(lookups);
    asked *a = sbx_calloc(1, sizeof *a);
    sbx_err err;
    sbx_err_set(&err, SBX_ENOMEM, NULL);
    if (a != NULL) {
      *a = (asked){lookups, lookup};
      if (sbx_lookup_start(lookups->loop, lookup->host, on_found, a, &err) == SBX_OK) {
        lookup->asked = a;
        lookups->running++;
        continue;
      }
    }
    sbx_free(a);
    lookup->done(lookup->arg, NULL, err.message);
  }
}

void sbx__egress_lookup_start(sbx__egress_lookups *lookups, sbx__egress_lookup *lookup,
                              const char *host, sbx_lookup_fn done, void *arg) {
  *lookup = (sbx__egress_lookup){.host = host, .done = done, .arg = arg, .waits = true};
  *lookups->last = lookup;
  lookups->last = &lookup->next;
  run_waiting(lookups);
}

void sbx__egress_lookup_drop(sbx__egress_lookups *lookups, sbx__egress_lookup *lookup) {
  if (lookup->asked != NULL)
    lookup->asked->lookup = NULL;
  lookup->asked = NULL;
  if (!lookup->waits)
    return;
  sbx__egress_lookup **at = &lookups->first;
  while (*at != lookup)
    at = &(*at)->next;
  *at = lookup->next;
  if (*at == NULL)
    lookups->last = at;
  lookup->waits = false;
}
