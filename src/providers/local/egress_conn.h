/* egress_conn.h - one connection through the proxy, from its first byte to its end. */
#ifndef SBX_EGRESS_CONN_H
#define SBX_EGRESS_CONN_H

#include "providers/local/egress.h"
#include "providers/local/egress_lookup.h"

typedef struct sbx__egress_conn sbx__egress_conn;

/* What all connections of a proxy share; outlives them. */
typedef struct sbx__egress_shared {
  sbx_loop *loop;
  sbx__egress_rules rules;
  sbx__egress_limits limits;
  sbx__egress_lookups *lookups;
  sbx__egress_totals totals;
  sbx__egress_count *counts; /* room for SBX__EGRESS_COUNTS_MAX and one for all others */
  sbx__egress_conn *conns;
  void (*ended)(struct sbx__egress_shared *shared); /* one connection less */
} sbx__egress_shared;

/* Takes over `fd`, an accepted, non-blocking connection; without memory it is closed. */
void sbx__egress_conn_start(sbx__egress_shared *shared, int fd);
/* Ends all at once; `ended` is not called. */
void sbx__egress_conns_end(sbx__egress_shared *shared);

#endif
