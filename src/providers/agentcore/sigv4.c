/* sigv4.c - AWS's Signature Version 4 of a request.
 *
 *   canonical request -> its hash, in a text with the date and the scope -> HMAC of that, by a key
 *   that is made for the day, the region and the service
 *
 * Invariant: what is signed is what libcurl sends. */
#include "providers/agentcore/sigv4.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/err.h"
#include "core/url.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define ALGORITHM "AWS4-HMAC-SHA256"

enum {
  MOST_FIELDS = 32,
  MOST_PARAMETERS = 16,
  DAY = 8,             /* digits of a date without its time */
  MAX_TEXT = 64 * 1024 /* of a canonical request */
};

typedef struct pair {
  sbx_slice name, value;
} pair;

/* By the bytes of the names, then of the values. */
static int compare(const pair *a, const pair *b) {
  const sbx_slice left[] = {a->name, a->value}, right[] = {b->name, b->value};
  for (size_t part = 0; part < 2; part++) {
    sbx_slice x = left[part], y = right[part];
    size_t n = x.len < y.len ? x.len : y.len;
    int order = n > 0 ? memcmp(x.ptr, y.ptr, n) : 0;
    if (order != 0 || x.len != y.len)
      return order != 0 ? order : x.len < y.len ? -1 : 1;
  }
  return 0;
}

static void sort(pair *pairs, size_t count) {
  for (size_t i = 1; i < count; i++) {
    for (size_t k = i; k > 0 && compare(&pairs[k - 1], &pairs[k]) > 0; k--) {
      pair moved = pairs[k];
      pairs[k] = pairs[k - 1];
      pairs[k - 1] = moved;
    }
  }
}

/* ---- the canonical request ------------------------------------------------------------------ */

static void put_query(sbx_buf *out, sbx_slice query) {
  pair pairs[MOST_PARAMETERS];
  size_t count = 0;
  while (query.len > 0) {
    sbx_slice one = sbx_slice_of(query.ptr, sbx_slice_find(query, '&'));
    size_t name = sbx_slice_find(one, '=');
    if (count == MOST_PARAMETERS) {
      out->error = SBX_ETOOBIG;
      return;
    }
    pairs[count++] = (pair){sbx_slice_of(one.ptr, name), sbx_slice_skip(one, name + 1)};
    query = sbx_slice_skip(query, one.len + 1);
  }
  sort(pairs, count);
  for (size_t i = 0; i < count; i++) {
    sbx_buf_append_str(out, i > 0 ? "&" : "");
    sbx_buf_append_slice(out, pairs[i].name);
    sbx_buf_append_char(out, '=');
    sbx_buf_append_slice(out, pairs[i].value);
  }
}

static sbx_slice put_lower(sbx_buf *names, sbx_slice name) {
  size_t begin = names->len;
  for (size_t i = 0; i < name.len; i++) {
    char c = name.ptr[i];
    if (c >= 'A' && c <= 'Z')
      c = (char)(unsigned char)((unsigned char)c | 0x20U);
    sbx_buf_append_char(names, c);
  }
  return names->error == SBX_OK ? sbx_slice_of(names->ptr + begin, name.len) : name;
}

/* Runs of blanks count as one. */
static void put_value(sbx_buf *out, sbx_slice value) {
  for (size_t i = 0; i < value.len; i++) {
    if (value.ptr[i] != ' ' || i == 0 || value.ptr[i - 1] != ' ')
      sbx_buf_append_char(out, value.ptr[i]);
  }
}

/* The fields that are signed, their names in small letters and sorted; `names` holds those. */
static size_t collect(pair pairs[MOST_FIELDS], sbx_buf *names, sbx_slice host,
                      const sbx_http_request *request, const sbx_headers *headers) {
  size_t count = 0;
  sbx_slice type;
  sbx_buf_reserve(names, headers->bytes + 1); /* so that it does not move */
  pairs[count++] = (pair){sbx_slice_str("host"), host};
  if (request->content_type != NULL && !sbx_headers_get(headers, "content-type", &type))
    pairs[count++] = (pair){sbx_slice_str("content-type"), sbx_slice_str(request->content_type)};
  for (size_t i = 0; i < headers->count; i++) {
    sbx_slice name = headers->items[i].name;
    if (sbx_slice_eq_nocase(name, sbx_slice_str("user-agent")))
      continue;
    if (count == MOST_FIELDS) {
      names->error = SBX_ETOOBIG;
      break;
    }
    pairs[count++] = (pair){put_lower(names, name), headers->items[i].value};
  }
  sort(pairs, count);
  return count;
}

static void put_names(sbx_buf *out, const pair *pairs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    sbx_buf_append_str(out, i > 0 ? ";" : "");
    sbx_buf_append_slice(out, pairs[i].name);
  }
}

static void put_hash(sbx_buf *out, sbx_slice bytes) {
  unsigned char digest[SBX_SHA256_BYTES];
  sbx_sha256 hash;
  sbx_sha256_init(&hash);
  sbx_sha256_feed(&hash, bytes);
  sbx_sha256_end(&hash, digest);
  sbx_sha256_put_hex(out, digest);
}

static void put_body_hash(sbx_buf *out, sbx__sigv4_alike *alike, sbx_slice body) {
  unsigned char digest[SBX_SHA256_BYTES];
  if (alike == NULL || body.len < sizeof alike->bytes) {
    put_hash(out, body);
    return;
  }
  if (!alike->known || memcmp(alike->bytes, body.ptr, sizeof alike->bytes) != 0) {
    memcpy(alike->bytes, body.ptr, sizeof alike->bytes);
    sbx_sha256_init(&alike->hash);
    sbx_sha256_feed(&alike->hash, sbx_slice_of(alike->bytes, sizeof alike->bytes));
    alike->known = true;
  }
  sbx_sha256 hash = alike->hash;
  sbx_sha256_feed(&hash, sbx_slice_skip(body, sizeof alike->bytes));
  sbx_sha256_end(&hash, digest);
  sbx_sha256_put_hex(out, digest);
}

/* The path is encoded once more than it is sent. */
static void put_request(sbx_buf *out, sbx__sigv4_alike *alike, const sbx_http_request *request,
                        const sbx_url *url, const pair *pairs, size_t count) {
  sbx_buf_appendf(out, "%s\n", request->method);
  sbx_buf_append_str(out, url->path.len == 0 ? "/" : "");
  sbx_percent_encode_path(out, url->path);
  sbx_buf_append_char(out, '\n');
  put_query(out, url->query);
  sbx_buf_append_char(out, '\n');
  for (size_t i = 0; i < count; i++) {
    sbx_buf_append_slice(out, pairs[i].name);
    sbx_buf_append_char(out, ':');
    put_value(out, pairs[i].value);
    sbx_buf_append_char(out, '\n');
  }
  sbx_buf_append_char(out, '\n');
  put_names(out, pairs, count);
  sbx_buf_append_char(out, '\n');
  put_body_hash(out, alike,
                request->take_body != NULL ? sbx_buf_slice(request->take_body) : request->body);
}

/* ---- the signature -------------------------------------------------------------------------- */

static void put_scope(sbx_buf *out, const sbx__sigv4 *how, const char *stamp) {
  sbx_buf_appendf(out, "%.*s/", DAY, stamp);
  sbx_buf_append_slice(out, how->region);
  sbx_buf_append_char(out, '/');
  sbx_buf_append_slice(out, how->service);
  sbx_buf_append_str(out, "/aws4_request");
}

static int make_key(unsigned char key[SBX_SHA256_BYTES], const sbx__sigv4 *how, const char *stamp) {
  const sbx_slice parts[] = {sbx_slice_of(stamp, DAY), how->region, how->service,
                             sbx_slice_str("aws4_request")};
  sbx_buf secret;
  sbx_slice before;
  sbx_buf_init(&secret, MAX_TEXT);
  sbx_buf_append_str(&secret, "AWS4");
  sbx_buf_append_slice(&secret, how->secret);
  before = sbx_buf_slice(&secret);
  int rc = secret.error;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    sbx_hmac_sha256(key, before, parts[i]);
    before = sbx_slice_of((const char *)key, SBX_SHA256_BYTES);
  }
  if (secret.len > 0)
    sbx_wipe(secret.ptr, secret.len);
  sbx_buf_deinit(&secret);
  return rc;
}

static void put_signature(sbx_buf *out, const sbx__sigv4 *how, const char *stamp,
                          sbx_slice request) {
  unsigned char key[SBX_SHA256_BYTES];
  sbx_buf text;
  sbx_buf_init(&text, MAX_TEXT);
  sbx_buf_appendf(&text, ALGORITHM "\n%s\n", stamp);
  put_scope(&text, how, stamp);
  sbx_buf_append_char(&text, '\n');
  put_hash(&text, request);
  int rc = make_key(key, how, stamp);
  sbx_hmac_sha256(key, sbx_slice_of((const char *)key, sizeof key), sbx_buf_slice(&text));
  sbx_sha256_put_hex(out, key);
  if (out->error == SBX_OK)
    out->error = rc != SBX_OK ? rc : text.error;
  sbx_wipe(key, sizeof key);
  sbx_buf_deinit(&text);
}

static void put_host(sbx_buf *out, const sbx_url *url) {
  sbx_buf_append_str(out, url->ipv6 ? "[" : "");
  sbx_buf_append_slice(out, url->host);
  sbx_buf_append_str(out, url->ipv6 ? "]" : "");
  if (url->port != (url->https ? 443 : 80))
    sbx_buf_appendf(out, ":%u", (unsigned)url->port);
}

static int add_signature(const sbx__sigv4 *how, const sbx_http_request *request, const sbx_url *url,
                         const char *stamp, sbx_headers *headers, sbx_err *err) {
  pair pairs[MOST_FIELDS];
  sbx_buf names, host, canonical, value;
  sbx_buf_init(&names, MAX_TEXT);
  sbx_buf_init(&host, MAX_TEXT);
  sbx_buf_init(&canonical, MAX_TEXT);
  sbx_buf_init(&value, MAX_TEXT);
  put_host(&host, url);
  size_t count = collect(pairs, &names, sbx_buf_slice(&host), request, headers);
  put_request(&canonical, how->alike, request, url, pairs, count);
  sbx_buf_append_str(&value, ALGORITHM " Credential=");
  sbx_buf_append_slice(&value, how->id);
  sbx_buf_append_char(&value, '/');
  put_scope(&value, how, stamp);
  sbx_buf_append_str(&value, ", SignedHeaders=");
  put_names(&value, pairs, count);
  sbx_buf_append_str(&value, ", Signature=");
  put_signature(&value, how, stamp, sbx_buf_slice(&canonical));
  const int errors[] = {names.error, host.error, canonical.error, value.error};
  int rc = SBX_OK;
  for (size_t i = 0; rc == SBX_OK && i < sizeof errors / sizeof *errors; i++)
    rc = errors[i];
  rc = rc != SBX_OK
           ? sbx_err_set(err, rc, NULL)
           : sbx_headers_add(headers, sbx_slice_str("Authorization"), sbx_buf_slice(&value), err);
  sbx_buf_deinit(&names);
  sbx_buf_deinit(&host);
  sbx_buf_deinit(&canonical);
  sbx_buf_deinit(&value);
  return rc;
}

int sbx__sigv4_sign(const sbx__sigv4 *how, const sbx_http_request *request, sbx_headers *headers,
                    sbx_err *err) {
  char stamp[32] = "";
  time_t now = (time_t)how->now;
  struct tm utc;
  sbx_url url;
  if (gmtime_r(&now, &utc) == NULL || strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc) == 0)
    return sbx_err_set(err, SBX_EINVAL, "the time of day cannot be written");
  int rc = sbx_url_parse(&url, request->url, err);
  if (rc == SBX_OK)
    rc = sbx_headers_add(headers, sbx_slice_str("X-Amz-Date"), sbx_slice_str(stamp), err);
  if (rc == SBX_OK && how->token.len > 0)
    rc = sbx_headers_add(headers, sbx_slice_str("X-Amz-Security-Token"), how->token, err);
  return rc == SBX_OK ? add_signature(how, request, &url, stamp, headers, err) : rc;
}
