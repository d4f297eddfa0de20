/* egress_rules.h - which hosts the proxy of an isolated sandbox lets through, and which addresses
 * they may have. Sans-I/O; knows nothing of the proxy.
 *
 * A rule is one of these, in any case of letters:
 *
 *   example.com        this host, on ports 443 and 80
 *   *.example.com      every host below it, however deep; not example.com itself
 *   example.com:8443   on this port alone
 *   10.1.2.3           an address, or a network: 10.0.0.0/8, fd00::/8, [fd00::1]:8443. It may be
 *                      asked for as such, and a listed host's name may lead to it
 *
 * Addresses that are nobody's on the internet (this machine, private networks, a cloud's metadata)
 * are refused unless a rule lists the address itself: a name's owner decides where it leads. */
#ifndef SBX_EGRESS_RULES_H
#define SBX_EGRESS_RULES_H

#include "core/buf.h"

#include <sys/socket.h>

/* In network order; `len` is 4 or 16. An IPv4 address inside an IPv6 one stays an IPv6 address. */
typedef struct sbx__egress_addr {
  uint8_t len;
  uint8_t bytes[16];
} sbx__egress_addr;

enum { SBX__EGRESS_NAME_MAX = 253 };

/* Where a connection is to go. */
typedef struct sbx__egress_target {
  char name[SBX__EGRESS_NAME_MAX + 1]; /* lower case, without a last dot; of an address: its text */
  size_t name_len;
  bool is_addr;
  sbx__egress_addr addr; /* when `is_addr` */
  uint16_t port;
} sbx__egress_target;

typedef struct sbx__egress_rule {
  enum { SBX__EGRESS_HOST, SBX__EGRESS_BELOW, SBX__EGRESS_NET } kind;
  char name[SBX__EGRESS_NAME_MAX + 1];
  size_t name_len;
  sbx__egress_addr addr;
  unsigned bits;
  uint16_t port; /* 0: 443 and 80 */
} sbx__egress_rule;

typedef struct sbx__egress_rules {
  sbx__egress_rule *items;
  size_t count;
} sbx__egress_rules;

/* More rules than this are SBX_ETOOBIG. */
enum { SBX__EGRESS_RULES_MAX = 1024 };

/* Allocates nothing. */
void sbx__egress_rules_init(sbx__egress_rules *rules);
void sbx__egress_rules_deinit(sbx__egress_rules *rules);
/* Into one that was initialized. SBX_ENOMEM. */
int sbx__egress_rules_copy(sbx__egress_rules *to, const sbx__egress_rules *from);
/* SBX_EINVAL says what is wrong with the text and how to write it; SBX_ETOOBIG, SBX_ENOMEM. */
int sbx__egress_rules_add(sbx__egress_rules *rules, sbx_slice text, sbx_err *err);

/* Reads HOST, HOST:PORT, ADDRESS:PORT or [ADDRESS]:PORT; `port` stands for an absent one, and 0
 * makes an absent one a mistake. False when it is none of that: also for a number that some
 * programs take for an address (127.1, 0x7f000001). */
bool sbx__egress_target_parse(sbx__egress_target *out, sbx_slice text, uint16_t port);
/* The same name: case and a last dot do not count. */
bool sbx__egress_target_is(const sbx__egress_target *target, sbx_slice name);
/* Appends HOST:PORT, an IPv6 address in brackets. */
int sbx__egress_target_write(sbx_buf *out, const sbx__egress_target *target);

typedef enum sbx__egress_verdict {
  SBX__EGRESS_ALLOWED,
  SBX__EGRESS_NOT_LISTED,
  SBX__EGRESS_OTHER_PORT, /* listed, with another port */
  SBX__EGRESS_LITERAL     /* an address that is not listed */
} sbx__egress_verdict;

/* Whether a command may ask for it. */
sbx__egress_verdict sbx__egress_check(const sbx__egress_rules *rules,
                                      const sbx__egress_target *target);

/* False for families other than IPv4 and IPv6. */
bool sbx__egress_addr_of(sbx__egress_addr *out, const struct sockaddr *sa);
/* "loopback", "private", ...: what kind of address it is; NULL: one of the internet's. */
const char *sbx__egress_addr_kind(const sbx__egress_addr *addr);
/* Whether the proxy may connect to what a listed name leads to. */
bool sbx__egress_check_addr(const sbx__egress_rules *rules, const sbx__egress_addr *addr,
                            uint16_t port);
/* As text; `out` has room for SBX__EGRESS_ADDR_TEXT bytes. */
enum { SBX__EGRESS_ADDR_TEXT = 46 };
void sbx__egress_addr_text(char *out, const sbx__egress_addr *addr);

#endif
