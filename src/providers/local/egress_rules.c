/* egress_rules.c - see the header.
 *
 * Invariant: a text that the resolver could take for an address never passes for a name. */
#include "providers/local/egress_rules.h"

#include "core/alloc.h"
#include "core/err.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

enum { PORT_TLS = 443, PORT_PLAIN = 80 };

/* ---- addresses ------------------------------------------------------------------------------ */

typedef struct block {
  uint8_t len, bits;
  uint8_t bytes[16];
  const char *kind;
} block;

/* The first that fits counts. Of IPv6 only 2000::/3 is in use, and not all of it. */
static const block blocks[] = {
    {4, 8, {0}, "unspecified"},
    {4, 8, {10}, "private"},
    {4, 10, {100, 64}, "carrier-grade NAT"},
    {4, 8, {127}, "loopback"},
    {4, 32, {168, 63, 129, 16}, "cloud metadata"},
    {4, 16, {169, 254}, "link-local"},
    {4, 12, {172, 16}, "private"},
    {4, 24, {192, 0, 0}, "reserved"},
    {4, 24, {192, 0, 2}, "documentation"},
    {4, 24, {192, 88, 99}, "6to4 relay"},
    {4, 16, {192, 168}, "private"},
    {4, 15, {198, 18}, "benchmark"},
    {4, 24, {198, 51, 100}, "documentation"},
    {4, 24, {203, 0, 113}, "documentation"},
    {4, 4, {224}, "multicast"},
    {4, 4, {240}, "reserved"},
    {16, 128, {0}, "unspecified"},
    {16, 128, {[15] = 1}, "loopback"},
    {16, 96, {[10] = 0xff, [11] = 0xff}, "IPv4-mapped"},
    {16, 96, {0}, "IPv4-compatible"},
    {16, 96, {0, 0x64, 0xff, 0x9b}, "NAT64"},
    {16, 48, {0, 0x64, 0xff, 0x9b, 0, 1}, "NAT64"},
    {16, 7, {0xfc}, "unique local"},
    {16, 10, {0xfe, 0x80}, "link-local"},
    {16, 10, {0xfe, 0xc0}, "site-local"},
    {16, 8, {0xff}, "multicast"},
    {16, 32, {0x20, 0x01}, "Teredo"},
    {16, 23, {0x20, 0x01}, "reserved"},
    {16, 32, {0x20, 0x01, 0x0d, 0xb8}, "documentation"},
    {16, 16, {0x20, 0x02}, "6to4"},
    {16, 20, {0x3f, 0xff}, "documentation"},
};

static bool has_prefix(const uint8_t *bytes, const uint8_t *prefix, unsigned bits) {
  unsigned whole = bits / 8, rest = bits % 8;
  if (memcmp(bytes, prefix, whole) != 0)
    return false;
  return rest == 0 || ((bytes[whole] ^ prefix[whole]) >> (8 - rest)) == 0;
}

const char *sbx__egress_addr_kind(const sbx__egress_addr *addr) {
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
    if (addr->len == blocks[i].len && has_prefix(addr->bytes, blocks[i].bytes, blocks[i].bits))
      return blocks[i].kind;
  }
  return addr->len == 16 && addr->bytes[0] >> 5 != 1 ? "reserved" : NULL;
}

bool sbx__egress_addr_of(sbx__egress_addr *out, const struct sockaddr *sa) {
  *out = (sbx__egress_addr){0};
  if (sa->sa_family == AF_INET) {
    out->len = 4;
    memcpy(out->bytes, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
  } else if (sa->sa_family == AF_INET6) {
    out->len = 16;
    memcpy(out->bytes, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
  }
  return out->len != 0;
}

void sbx__egress_addr_text(char *out, const sbx__egress_addr *addr) {
  if (inet_ntop(addr->len == 4 ? AF_INET : AF_INET6, addr->bytes, out, SBX__EGRESS_ADDR_TEXT) ==
      NULL)
    *out = '\0';
}

/* The plain forms alone: no zone, no leading zeros, no short or hexadecimal IPv4. */
static bool read_addr(sbx__egress_addr *out, sbx_slice text, int family) {
  char copy[SBX__EGRESS_ADDR_TEXT];
  if (text.len == 0 || text.len >= sizeof copy || sbx_slice_has_nul(text))
    return false;
  memcpy(copy, text.ptr, text.len);
  copy[text.len] = '\0';
  *out = (sbx__egress_addr){.len = family == AF_INET ? 4 : 16};
  return inet_pton(family, copy, out->bytes) == 1;
}

/* ---- names ---------------------------------------------------------------------------------- */

static char lower(char c) {
  if (c >= 'A' && c <= 'Z')
    return (char)(c | 0x20);
  return c;
}

static bool is_hex(char c) {
  return sbx_is_digit(c) || (c >= 'a' && c <= 'f');
}

/* What inet_aton() reads as a number: digits, or 0x and hexadecimal digits, or none. */
static bool is_number(const char *label, size_t len) {
  size_t i = 0;
  if (len >= 2 && label[0] == '0' && label[1] == 'x') {
    for (i = 2; i < len && is_hex(label[i]);)
      i++;
    return i == len;
  }
  while (i < len && sbx_is_digit(label[i]))
    i++;
  return i == len;
}

/* Into lower case, without a last dot. The last label of a name is never a number: such a text is
 * an address, or tries to look like none. */
static bool read_name(char *out, size_t *out_len, sbx_slice text) {
  size_t label = 0;
  if (text.len > 0 && text.ptr[text.len - 1] == '.')
    text.len--;
  if (text.len == 0 || text.len > SBX__EGRESS_NAME_MAX)
    return false;
  for (size_t i = 0; i < text.len; i++) {
    char c = lower(text.ptr[i]);
    out[i] = c;
    if (c == '.' ? i == label : !(sbx_is_letter(c) || sbx_is_digit(c) || c == '-' || c == '_'))
      return false;
    if (c != '.' && i - label >= 63)
      return false;
    if (c == '.')
      label = i + 1;
  }
  out[text.len] = '\0';
  *out_len = text.len;
  return label < text.len && !is_number(out + label, text.len - label);
}

static bool read_port(uint16_t *out, sbx_slice text) {
  unsigned port = 0;
  if (text.len == 0 || text.len > 5 || text.ptr[0] == '0')
    return false;
  for (size_t i = 0; i < text.len; i++) {
    if (!sbx_is_digit(text.ptr[i]))
      return false;
    port = port * 10 + (unsigned)(text.ptr[i] - '0');
  }
  *out = (uint16_t)port;
  return port <= UINT16_MAX;
}

/* Splits HOST[:PORT] and [HOST][:PORT]; `has_port` is false without one. */
static bool split(sbx_slice text, sbx_slice *host, bool *bracketed, sbx_slice *port,
                  bool *has_port) {
  size_t end;
  *bracketed = text.len > 0 && text.ptr[0] == '[';
  if (*bracketed) {
    end = sbx_slice_find(text, ']');
    if (end == text.len)
      return false;
    *host = sbx_slice_of(text.ptr + 1, end - 1);
    end++;
  } else {
    end = sbx_slice_find(text, ':');
    *host = sbx_slice_of(text.ptr, end);
  }
  *has_port = end < text.len;
  if (*has_port && text.ptr[end] != ':')
    return false;
  *port = sbx_slice_skip(text, end + 1);
  return true;
}

bool sbx__egress_target_parse(sbx__egress_target *out, sbx_slice text, uint16_t port) {
  sbx_slice host, port_text;
  bool bracketed, has_port;
  *out = (sbx__egress_target){.port = port};
  if (!split(text, &host, &bracketed, &port_text, &has_port))
    return false;
  if (has_port ? !read_port(&out->port, port_text) : port == 0)
    return false;
  out->is_addr = read_addr(&out->addr, host, bracketed ? AF_INET6 : AF_INET);
  if (!out->is_addr)
    return !bracketed && read_name(out->name, &out->name_len, host);
  sbx__egress_addr_text(out->name, &out->addr);
  out->name_len = strlen(out->name);
  return true;
}

bool sbx__egress_target_is(const sbx__egress_target *target, sbx_slice name) {
  char copy[SBX__EGRESS_NAME_MAX + 1];
  size_t len;
  return !target->is_addr && read_name(copy, &len, name) && len == target->name_len &&
         memcmp(copy, target->name, len) == 0;
}

int sbx__egress_target_write(sbx_buf *out, const sbx__egress_target *target) {
  bool v6 = target->is_addr && target->addr.len == 16;
  return sbx_buf_appendf(out, "%s%s%s:%u", v6 ? "[" : "", target->name, v6 ? "]" : "",
                         (unsigned)target->port);
}

/* ---- rules ---------------------------------------------------------------------------------- */

void sbx__egress_rules_init(sbx__egress_rules *rules) {
  *rules = (sbx__egress_rules){0};
}

void sbx__egress_rules_deinit(sbx__egress_rules *rules) {
  sbx_free(rules->items);
  sbx__egress_rules_init(rules);
}

int sbx__egress_rules_copy(sbx__egress_rules *to, const sbx__egress_rules *from) {
  if (from->count == 0)
    return SBX_OK;
  to->items = sbx_calloc(from->count, sizeof *to->items);
  if (to->items == NULL)
    return SBX_ENOMEM;
  memcpy(to->items, from->items, from->count * sizeof *to->items);
  to->count = from->count;
  return SBX_OK;
}

/* ADDRESS or ADDRESS/BITS. */
static bool read_net(sbx__egress_rule *rule, sbx_slice text) {
  size_t slash = sbx_slice_find(text, '/');
  sbx_slice addr = sbx_slice_of(text.ptr, slash), bits = sbx_slice_skip(text, slash + 1);
  bool v6 = sbx_slice_find(addr, ':') < addr.len;
  unsigned most = v6 ? 128 : 32;
  if (!read_addr(&rule->addr, addr, v6 ? AF_INET6 : AF_INET))
    return false;
  rule->kind = SBX__EGRESS_NET;
  rule->bits = most;
  if (slash == text.len)
    return true;
  if (bits.len == 0 || bits.len > 3)
    return false;
  rule->bits = 0;
  for (size_t i = 0; i < bits.len; i++) {
    if (!sbx_is_digit(bits.ptr[i]))
      return false;
    rule->bits = rule->bits * 10 + (unsigned)(bits.ptr[i] - '0');
  }
  return rule->bits <= most;
}

static bool read_rule(sbx__egress_rule *rule, sbx_slice text) {
  sbx_slice host, port;
  bool bracketed, has_port;
  size_t colon = sbx_slice_find(text, ':');
  bool bare_v6 = text.len > 0 && text.ptr[0] != '[' && colon < text.len &&
                 sbx_slice_find(sbx_slice_skip(text, colon + 1), ':') < text.len - colon - 1;
  if (bare_v6)
    return read_net(rule, text);
  if (!split(text, &host, &bracketed, &port, &has_port) ||
      (has_port && !read_port(&rule->port, port)))
    return false;
  if (read_net(rule, host))
    return bracketed == (rule->addr.len == 16);
  if (bracketed)
    return false;
  rule->kind = SBX__EGRESS_HOST;
  if (sbx_slice_starts_with(host, sbx_slice_str("*."))) {
    rule->kind = SBX__EGRESS_BELOW;
    host = sbx_slice_skip(host, 2);
  }
  return read_name(rule->name, &rule->name_len, host);
}

int sbx__egress_rules_add(sbx__egress_rules *rules, sbx_slice text, sbx_err *err) {
  sbx__egress_rule rule = {0};
  if (!read_rule(&rule, text)) {
    sbx_err_set(err, SBX_EINVAL, "allowedHosts: \"");
    sbx_err_append_remote(err, text);
    sbx_err_append(err, "\" is no host; write \"example.com\", \"*.example.com\", "
                        "\"example.com:8443\" or an address, without scheme and path, and names "
                        "with other letters in their xn-- form");
    return SBX_EINVAL;
  }
  if (rules->count >= SBX__EGRESS_RULES_MAX)
    return sbx_err_set(err, SBX_ETOOBIG, "allowedHosts has more than %d entries",
                       (int)SBX__EGRESS_RULES_MAX);
  sbx__egress_rule *items = sbx_grow(rules->items, rules->count, sizeof *items);
  if (items == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  items[rules->count++] = rule;
  rules->items = items;
  return SBX_OK;
}

static bool fits_port(const sbx__egress_rule *rule, uint16_t port) {
  return rule->port != 0 ? port == rule->port : port == PORT_TLS || port == PORT_PLAIN;
}

static bool fits_addr(const sbx__egress_rule *rule, const sbx__egress_addr *addr) {
  return rule->kind == SBX__EGRESS_NET && rule->addr.len == addr->len &&
         has_prefix(addr->bytes, rule->addr.bytes, rule->bits);
}

static bool fits(const sbx__egress_rule *rule, const sbx__egress_target *target) {
  if (target->is_addr)
    return fits_addr(rule, &target->addr);
  if (rule->kind == SBX__EGRESS_HOST)
    return rule->name_len == target->name_len &&
           memcmp(rule->name, target->name, rule->name_len) == 0;
  return rule->kind == SBX__EGRESS_BELOW && target->name_len > rule->name_len + 1 &&
         target->name[target->name_len - rule->name_len - 1] == '.' &&
         memcmp(target->name + target->name_len - rule->name_len, rule->name, rule->name_len) == 0;
}

sbx__egress_verdict sbx__egress_check(const sbx__egress_rules *rules,
                                      const sbx__egress_target *target) {
  sbx__egress_verdict verdict = target->is_addr ? SBX__EGRESS_LITERAL : SBX__EGRESS_NOT_LISTED;
  for (size_t i = 0; i < rules->count; i++) {
    if (!fits(&rules->items[i], target))
      continue;
    if (fits_port(&rules->items[i], target->port))
      return SBX__EGRESS_ALLOWED;
    verdict = SBX__EGRESS_OTHER_PORT;
  }
  return verdict;
}

bool sbx__egress_check_addr(const sbx__egress_rules *rules, const sbx__egress_addr *addr,
                            uint16_t port) {
  bool listed = sbx__egress_addr_kind(addr) == NULL;
  for (size_t i = 0; !listed && i < rules->count; i++)
    listed = fits_addr(&rules->items[i], addr) && fits_port(&rules->items[i], port);
  return listed;
}
