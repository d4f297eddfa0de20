/* url.c - strict URLs.
 *
 * Invariant: what passes sbx_url_parse() has no byte that ends a request line or a header line and
 * reads the same to every other URL parser: no userinfo, no dot segments, no odd numeric hosts. A
 * proxy's URL is not for requests and may have a userinfo. */
#include "core/url.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/err.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define MAX_HOST 253

/* ---- host ---- */

static bool is_address(int family, sbx_slice s) {
  char text[INET6_ADDRSTRLEN];
  struct in6_addr address;
  if (s.len >= sizeof text || sbx_slice_has_nul(s))
    return false;
  if (s.len)
    memcpy(text, s.ptr, s.len);
  text[s.len] = '\0';
  return inet_pton(family, text, &address) == 1;
}

/* "10", "0x7f": resolvers take a host that ends so for an address, in forms nobody expects. */
static bool is_number(sbx_slice label) {
  bool hex = label.len > 1 && label.ptr[0] == '0' && (label.ptr[1] == 'x' || label.ptr[1] == 'X');
  for (size_t i = hex ? 2 : 0; i < label.len; i++) {
    if (hex ? sbx_hex_value(label.ptr[i]) < 0 : !sbx_is_digit(label.ptr[i]))
      return false;
  }
  return true;
}

static bool is_host_name(sbx_slice s) {
  if (s.len > MAX_HOST)
    return false;
  sbx_slice label = s;
  for (;;) {
    size_t len = sbx_slice_find(label, '.');
    if (len == 0 || len > 63)
      return false;
    for (size_t i = 0; i < len; i++) {
      char c = label.ptr[i];
      if (!sbx_is_letter(c) && !sbx_is_digit(c) && c != '_' && (c != '-' || i == 0 || i == len - 1))
        return false;
    }
    if (len + 1 >= label.len) { /* the last one; a dot may end it */
      label.len = len;
      break;
    }
    label = sbx_slice_skip(label, len + 1);
  }
  return !is_number(label) || is_address(AF_INET, s);
}

/* ---- path and query ---- */

/* RFC 3986 `pchar` and '/'; a query may have '?' too. */
static bool is_url_text(sbx_slice s, bool is_query) {
  for (size_t i = 0; i < s.len; i++) {
    char c = s.ptr[i];
    if (c == '%') {
      if (s.len - i < 3 || sbx_hex_value(s.ptr[i + 1]) < 0 || sbx_hex_value(s.ptr[i + 2]) < 0)
        return false;
      i += 2;
    } else if (c == '\0' || (!sbx_is_letter(c) && !sbx_is_digit(c) &&
                             !strchr("-._~!$&'()*+,;=:@/", c) && !(is_query && c == '?'))) {
      return false;
    }
  }
  return true;
}

/* Also as "%2e", which servers and proxies decode before they look. */
static bool is_dot_segment(sbx_slice s) {
  size_t dots = 0;
  while (s.len) {
    bool encoded =
        sbx_slice_eq_nocase(sbx_slice_of(s.ptr, s.len < 3 ? 0 : 3), sbx_slice_str("%2e"));
    if (s.ptr[0] != '.' && !encoded)
      return false;
    s = sbx_slice_skip(s, encoded ? 3 : 1);
    dots++;
  }
  return dots == 1 || dots == 2;
}

static bool is_path(sbx_slice s) {
  if (s.len == 0)
    return true;
  if (s.ptr[0] != '/' || !is_url_text(s, false))
    return false;
  while (s.len) {
    s = sbx_slice_skip(s, 1);
    size_t len = sbx_slice_find(s, '/');
    if (is_dot_segment(sbx_slice_of(s.ptr, len)))
      return false;
    s = sbx_slice_skip(s, len);
  }
  return true;
}

/* ---- parsing ---- */

/* Takes the scheme off `text`. */
static bool parse_scheme(sbx_url *url, sbx_slice *text) {
  static const char *const schemes[] = {"http://", "https://"};
  for (size_t i = 0; i < 2; i++) {
    sbx_slice scheme = sbx_slice_str(schemes[i]);
    if (text->len >= scheme.len &&
        sbx_slice_eq_nocase(sbx_slice_of(text->ptr, scheme.len), scheme)) {
      url->https = i == 1;
      *text = sbx_slice_skip(*text, scheme.len);
      return true;
    }
  }
  return false;
}

static bool parse_port(sbx_url *url, sbx_slice s) {
  unsigned port = 0;
  if (s.len == 0 || s.len > 5)
    return false;
  for (size_t i = 0; i < s.len; i++) {
    if (!sbx_is_digit(s.ptr[i]))
      return false;
    port = port * 10 + (unsigned)(s.ptr[i] - '0');
  }
  if (port == 0 || port > UINT16_MAX)
    return false;
  url->port = (uint16_t)port;
  return true;
}

/* Reads "host", "host:port" or "[address]:port"; returns what is wrong, NULL when nothing is. */
static const char *parse_authority(sbx_url *url, sbx_slice s) {
  size_t host_len;
  if (sbx_slice_find(s, '@') < s.len)
    return "a user name or password must not stand in it";
  url->ipv6 = s.len > 0 && s.ptr[0] == '[';
  if (url->ipv6) {
    size_t end = sbx_slice_find(s, ']');
    if (end == s.len || !is_address(AF_INET6, sbx_slice_of(s.ptr + 1, end - 1)))
      return "the IPv6 address is malformed";
    url->host = sbx_slice_of(s.ptr + 1, end - 1);
    host_len = end + 1;
  } else {
    host_len = sbx_slice_find(s, ':');
    url->host = sbx_slice_of(s.ptr, host_len);
    if (!is_host_name(url->host))
      return "the host is missing or malformed (international names in their xn-- form)";
  }
  sbx_slice rest = sbx_slice_skip(s, host_len);
  url->port = url->https ? 443 : 80;
  if (rest.len && (rest.ptr[0] != ':' || !parse_port(url, sbx_slice_skip(rest, 1))))
    return "the port is not a number from 1 to 65535";
  return NULL;
}

static size_t authority_length(sbx_slice s) {
  size_t n = 0;
  while (n < s.len && s.ptr[n] != '/' && s.ptr[n] != '?' && s.ptr[n] != '#')
    n++;
  return n;
}

int sbx_url_parse(sbx_url *out, sbx_slice text, sbx_err *err) {
  sbx_url url = {0};
  if (!parse_scheme(&url, &text))
    return sbx_err_set(err, SBX_EINVAL, "the URL must begin with http:// or https://");
  size_t len = authority_length(text);
  const char *wrong = parse_authority(&url, sbx_slice_of(text.ptr, len));
  if (wrong)
    return sbx_err_set(err, SBX_EINVAL, "the URL is not usable: %s", wrong);
  text = sbx_slice_skip(text, len);
  if (sbx_slice_find(text, '#') < text.len)
    return sbx_err_set(err, SBX_EINVAL, "the URL is not usable: it must not have a '#' part");
  len = sbx_slice_find(text, '?');
  url.path = sbx_slice_of(text.ptr, len);
  url.query = sbx_slice_skip(text, len + 1);
  if (!is_path(url.path) || !is_url_text(url.query, true))
    return sbx_err_set(err, SBX_EINVAL,
                       "the URL is not usable: its path or query has characters that must be "
                       "percent-encoded, or '.' or '..' as a part of the path");
  *out = url;
  return SBX_OK;
}

/* ---- proxies ---- */

static bool is_proxy_scheme(sbx_slice scheme) {
  static const char *const names[] = {"http",    "https",  "socks",  "socks4",
                                      "socks4a", "socks5", "socks5h"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (sbx_slice_eq_nocase(scheme, sbx_slice_str(names[i])))
      return true;
  }
  return false;
}

/* libcurl forgets the proxy, and goes there directly, when a control character comes out of it. */
static bool is_login(sbx_slice s) {
  for (size_t i = 0; i < s.len; i++) {
    unsigned char c = (unsigned char)s.ptr[i];
    int high = c == '%' && s.len - i > 2 ? sbx_hex_value(s.ptr[i + 1]) : -1;
    int low = high >= 0 ? sbx_hex_value(s.ptr[i + 2]) : -1;
    if (c <= ' ' || c == 0x7F || c == '@' || (low >= 0 && (high < 2 || high * 16 + low == 0x7F)))
      return false;
  }
  return true;
}

static bool is_proxy_host(sbx_slice s) {
  size_t end = s.len > 0 && s.ptr[0] == '[' ? sbx_slice_find(s, ']') + 1 : sbx_slice_find(s, ':');
  sbx_url url;
  for (size_t i = 0; i < end && i < s.len; i++) {
    if (!sbx_is_letter(s.ptr[i]) && !sbx_is_digit(s.ptr[i]) &&
        (s.ptr[i] == '\0' || !strchr(s.ptr[0] == '[' ? "[]:.%-_~" : "-._", s.ptr[i])))
      return false;
  }
  if (end == 0 || end > s.len)
    return false;
  s = sbx_slice_skip(s, end);
  return s.len == 0 || (s.ptr[0] == ':' && (s.len == 1 || parse_port(&url, sbx_slice_skip(s, 1))));
}

static const char *proxy_fault(sbx_slice text) {
  static const char mark[] = "://";
  const char *at = text.len > 0 ? memmem(text.ptr, text.len, mark, sizeof mark - 1) : NULL;
  if (at != NULL) {
    size_t len = (size_t)(at - text.ptr);
    if (!is_proxy_scheme(sbx_slice_of(text.ptr, len)))
      return "it must begin with http://, https://, socks4://, socks4a://, socks5:// or socks5h://";
    text = sbx_slice_skip(text, len + sizeof mark - 1);
  }
  size_t len = authority_length(text);
  sbx_slice path = sbx_slice_skip(text, len);
  text.len = len;
  size_t login = sbx_slice_find(text, '@');
  if (login < text.len) {
    if (sbx_slice_find(sbx_slice_skip(text, login + 1), '@') < text.len - login - 1 ||
        !is_login(sbx_slice_of(text.ptr, login)))
      return "'@' and blanks of its password must be percent-encoded, and it has no control "
             "characters";
    text = sbx_slice_skip(text, login + 1);
  }
  if (!is_proxy_host(text) || !is_url_text(path, true))
    return "it must be [scheme://][user:password@]host[:port], with '/', '?', '#' and '@' of a "
           "password percent-encoded";
  return NULL;
}

int sbx_url_check_proxy(sbx_slice text, sbx_err *err) {
  const char *fault = proxy_fault(text);
  return fault == NULL ? SBX_OK
                       : sbx_err_set(err, SBX_EINVAL, "the proxy's URL is not usable: %s", fault);
}

/* By its name or address; 127.0.0.0/8 and ::1 never leave it. */
static bool is_this_machine(const sbx_url *url) {
  static const char name[] = "localhost";
  if (url->ipv6)
    return sbx_slice_eq_str(url->host, "::1");
  if (url->host.len == sizeof name - 1 && strncasecmp(url->host.ptr, name, url->host.len) == 0)
    return true;
  for (size_t i = 0; i < url->host.len; i++) {
    if (!sbx_is_digit(url->host.ptr[i]) && url->host.ptr[i] != '.')
      return false;
  }
  return sbx_slice_starts_with(url->host, sbx_slice_str("127."));
}

bool sbx_url_is_weaker(const sbx_url *other, const sbx_url *base) {
  return base->https && !other->https && !is_this_machine(other);
}

/* ---- building ---- */

static void append_base(sbx_buf *out, const sbx_url *base) {
  sbx_buf_append_str(out, base->https ? "https://" : "http://");
  sbx_buf_append_str(out, base->ipv6 ? "[" : "");
  sbx_buf_append_slice(out, base->host);
  sbx_buf_append_str(out, base->ipv6 ? "]" : "");
  if (base->port != (base->https ? 443 : 80))
    sbx_buf_appendf(out, ":%u", (unsigned)base->port);
  sbx_slice prefix = base->path;
  while (prefix.len && prefix.ptr[prefix.len - 1] == '/')
    prefix.len--;
  sbx_buf_append_slice(out, prefix);
}

int sbx_url_join(sbx_buf *out, const sbx_url *base, sbx_slice path, sbx_err *err) {
  size_t len = sbx_slice_find(path, '?');
  if (base->query.len)
    return sbx_err_set(err, SBX_EINVAL, "a base URL must not have a query");
  if (!is_path(sbx_slice_of(path.ptr, len)) || !is_url_text(sbx_slice_skip(path, len + 1), true))
    return sbx_err_set(err, SBX_EINVAL, "malformed URL path");
  append_base(out, base);
  sbx_buf_append_slice(out, path);
  return out->error ? sbx_err_set(err, out->error, NULL) : SBX_OK;
}

int sbx_url_append_segment(sbx_buf *out, sbx_slice segment) {
  if (!out->error && (segment.len == 0 || is_dot_segment(segment)))
    out->error = SBX_EINVAL;
  sbx_buf_append_char(out, '/');
  return sbx_percent_encode(out, segment);
}

int sbx_url_append_query(sbx_buf *out, sbx_slice name, sbx_slice value) {
  sbx_slice so_far = sbx_buf_slice(out);
  sbx_buf_append_char(out, sbx_slice_find(so_far, '?') < so_far.len ? '&' : '?');
  sbx_percent_encode(out, name);
  sbx_buf_append_char(out, '=');
  return sbx_percent_encode(out, value);
}
