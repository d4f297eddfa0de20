/* egress.h - the way out of an isolated sandbox: an HTTP proxy that lets listed hosts through.
 *
 * The sandbox has a network of its own with nothing in it but a loopback interface. There somebody
 * has opened a listening socket, which this process has got: accepting on it is the only way in
 * either direction. The proxy speaks CONNECT and whole http URLs; it looks for the host's address
 * itself, once, and connects to what it has checked. A TLS client must name the host that it has
 * asked the proxy for.
 *
 * What it cannot see: what is said inside an allowed connection. A host that stores what it is sent
 * is a way out for data; a server behind many names (a CDN) may serve another one than the one that
 * TLS or Host named. On ports other than 443 a tunnel may carry any protocol.
 *
 * All of it is for the loop's thread. Nothing here keeps the loop alive. */
#ifndef SBX_EGRESS_H
#define SBX_EGRESS_H

#include "core/loop.h"
#include "providers/local/egress_reply.h"

typedef struct sbx__egress sbx__egress;

/* In milliseconds but for the first; 0 stands for what is said behind it. */
typedef struct sbx__egress_limits {
  size_t connections;  /* at once; further ones wait to be accepted (256) */
  uint64_t head_ms;    /* for the whole head of a request (10,000) */
  uint64_t connect_ms; /* to find the host's address and to connect, each (15,000) */
  uint64_t idle_ms;    /* without a byte in either direction (300,000) */
} sbx__egress_limits;

/* What went through for one host and port. */
typedef struct sbx__egress_count {
  sbx__egress_target target; /* an empty name: all that had no room in the table */
  uint64_t connections;      /* that were made */
  uint64_t sent, received;   /* bytes, by the sandbox's side */
} sbx__egress_count;

typedef struct sbx__egress_totals {
  size_t open;
  uint64_t accepted;
  uint64_t refused; /* by the rules, or by what TLS said */
  uint64_t failed;  /* allowed, and not reached */
} sbx__egress_totals;

/* Hosts that are counted each. */
enum { SBX__EGRESS_COUNTS_MAX = 64 };

/* Accepts on `listener`, a listening TCP socket, which it makes non-blocking. On success it owns
 * the descriptor, and has moved the rules out of `rules`. `limits` may be NULL. Errors: SBX_EINVAL
 * when the descriptor cannot be watched, SBX_ENOMEM. */
int sbx__egress_start(sbx__egress **out, sbx_loop *loop, int listener, sbx__egress_rules *rules,
                      const sbx__egress_limits *limits, sbx_err *err);
/* Ends all connections at once. NULL is fine. Before the loop's end. */
void sbx__egress_stop(sbx__egress *egress);

/* The table of what went through; valid until the next turn of the loop. */
const sbx__egress_count *sbx__egress_counts(const sbx__egress *egress, size_t *count);
sbx__egress_totals sbx__egress_get_totals(const sbx__egress *egress);

#endif
