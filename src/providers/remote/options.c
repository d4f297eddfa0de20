/* options.c - readers of options.
 *
 * Invariant: a message names the member, never its value. */
#include "providers/remote/options.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/url.h"

static bool has_control(sbx_slice text) {
  for (size_t i = 0; i < text.len; i++) {
    unsigned char c = (unsigned char)text.ptr[i];
    if (c < 0x20 || c == 0x7f)
      return true;
  }
  return false;
}

int sbx_remote_text(char **out, const sbx_json *options, const char *name, sbx_err *err) {
  const sbx_json *v = sbx_json_get(options, name);
  sbx_slice text;
  if (v == NULL || err->code != SBX_OK)
    return err->code;
  if (!sbx_json_string(v, &text) || text.len == 0 || has_control(text))
    return sbx_err_set(err, SBX_EINVAL,
                       "%s must be a string that is not empty and has no control characters", name);
  char *copy = sbx_strndup(text.ptr, text.len);
  if (copy == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  sbx_free(*out);
  *out = copy;
  return SBX_OK;
}

int sbx_remote_bool(bool *out, const sbx_json *options, const char *name, sbx_err *err) {
  const sbx_json *v = sbx_json_get(options, name);
  if (v != NULL && err->code == SBX_OK && !sbx_json_bool(v, out))
    sbx_err_set(err, SBX_EINVAL, "%s must be true or false", name);
  return err->code;
}

int sbx_remote_int(int64_t *out, const sbx_json *options, const char *name, int64_t min,
                   int64_t max, sbx_err *err) {
  const sbx_json *v = sbx_json_get(options, name);
  if (v != NULL && err->code == SBX_OK && !sbx_json_int(v, min, max, out))
    sbx_err_set(err, SBX_EINVAL, "%s must be a whole number from %lld to %lld", name,
                (long long)min, (long long)max);
  return err->code;
}

int sbx_remote_url(char **out, const sbx_json *options, const char *name, sbx_err *err) {
  sbx_url url;
  sbx_err why;
  if (sbx_remote_text(out, options, name, err) != SBX_OK || sbx_json_get(options, name) == NULL)
    return err->code;
  sbx_slice text = sbx_slice_str(*out);
  if (sbx_url_parse(&url, text, &why) != SBX_OK)
    return sbx_err_set(err, SBX_EINVAL, "%s: %s", name, why.message);
  if (url.query.len > 0 || sbx_slice_find(text, '?') != text.len)
    return sbx_err_set(err, SBX_EINVAL, "%s must not have a query", name);
  while (text.len > 0 && text.ptr[text.len - 1] == '/')
    text.len--;
  (*out)[text.len] = '\0';
  return SBX_OK;
}

int sbx_remote_check_safe(const char *url, const char *base, const char *name, sbx_err *err) {
  sbx_url from, to;
  if (url == NULL || err->code != SBX_OK || sbx_url_parse(&to, sbx_slice_str(url), err) != SBX_OK ||
      sbx_url_parse(&from, sbx_slice_str(base), err) != SBX_OK || !sbx_url_is_weaker(&to, &from))
    return err->code;
  return sbx_err_set(err, SBX_EINVAL,
                     "%s is an http: address while the API's is https: credentials would be sent "
                     "in the clear; use https: there, too",
                     name);
}

int sbx_remote_map(const sbx_json **out, const sbx_json *options, const char *name, sbx_err *err) {
  const sbx_json *map = sbx_json_get(options, name);
  sbx_slice key, value;
  *out = map;
  if (map == NULL || err->code != SBX_OK)
    return err->code;
  if (!sbx_json_is_object(map))
    return sbx_err_set(err, SBX_EINVAL, "%s must be an object of strings", name);
  for (const sbx_json *v = sbx_json_next(map, NULL, &key); v != NULL;
       v = sbx_json_next(map, v, &key)) {
    if (sbx_json_string(v, &value) && !sbx_slice_has_nul(value) && !sbx_slice_has_nul(key))
      continue;
    sbx_err_set(err, SBX_EINVAL, "%s: the value of ", name);
    sbx_err_append_remote(err, key);
    sbx_err_append(err, " must be a string without NUL bytes");
    return SBX_EINVAL;
  }
  return SBX_OK;
}

void sbx_remote_begin_map(sbx_json_out *out, const sbx_json *map) {
  sbx_slice name, value = {NULL, 0};
  sbx_json_begin_object(out);
  for (const sbx_json *v = sbx_json_next(map, NULL, &name); v != NULL;
       v = sbx_json_next(map, v, &name)) {
    sbx_json_string(v, &value);
    sbx_json_put_name(out, name);
    sbx_json_put_string(out, value);
  }
}

static bool check_texts(const sbx_json *list, const char *name, sbx_err *err) {
  sbx_slice text;
  bool ok = sbx_json_is_array(list);
  for (const sbx_json *v = ok ? sbx_json_next(list, NULL, NULL) : NULL; ok && v != NULL;
       v = sbx_json_next(list, v, NULL))
    ok = sbx_json_string(v, &text) && text.len > 0 && !has_control(text);
  if (!ok)
    sbx_err_set(err, SBX_EINVAL,
                "%s must be an array of strings that are not empty and have no control characters",
                name);
  return ok;
}

static void check_member(const sbx_remote_member *m, const sbx_json *options, sbx_err *err) {
  char *text = NULL;
  bool flag;
  int64_t number;
  if (m->kind == SBX_REMOTE_TEXT)
    sbx_remote_text(&text, options, m->option, err);
  else if (m->kind == SBX_REMOTE_FLAG)
    sbx_remote_bool(&flag, options, m->option, err);
  else if (m->kind == SBX_REMOTE_NUMBER)
    sbx_remote_int(&number, options, m->option, m->min, m->max, err);
  else if (sbx_json_get(options, m->option) != NULL && err->code == SBX_OK)
    check_texts(sbx_json_get(options, m->option), m->option, err);
  sbx_free(text);
}

void sbx_remote_put_members(sbx_json_out *out, const sbx_remote_member *members, size_t count,
                            const sbx_json *options, sbx_err *err) {
  for (size_t i = 0; i < count; i++) {
    const sbx_remote_member *m = &members[i];
    const sbx_json *value = sbx_json_get(options, m->option);
    check_member(m, options, err);
    if (value == NULL && m->fallback == NULL)
      continue;
    sbx_json_put_name(out, sbx_slice_str(m->name));
    if (value != NULL) {
      sbx_json_put_value(out, value);
    } else {
      sbx_buf_append_str(out->buf, m->fallback);
      out->need_comma = true;
    }
  }
}

/* ---- headers -------------------------------------------------------------------------------- */

int sbx_remote_bearer(sbx_headers *headers, const char *secret, sbx_err *err) {
  sbx_buf value;
  if (err->code != SBX_OK)
    return err->code;
  sbx_buf_init(&value, SIZE_MAX);
  sbx_buf_append_str(&value, "Bearer ");
  int rc = sbx_buf_append_str(&value, secret);
  if (rc != SBX_OK)
    rc = sbx_err_set(err, rc, NULL);
  else
    rc = sbx_headers_add(headers, sbx_slice_str("Authorization"), sbx_buf_slice(&value), err);
  if (value.ptr != NULL)
    sbx_wipe(value.ptr, value.len);
  sbx_buf_deinit(&value);
  return rc;
}

static bool is_one_of(sbx_slice name, const char *const *names) {
  while (*names != NULL && !sbx_slice_eq_nocase(name, sbx_slice_str(*names)))
    names++;
  return *names != NULL;
}

int sbx_remote_headers(sbx_headers *headers, const sbx_json *options, const char *name,
                       const char *const *ours, sbx_err *err) {
  const sbx_json *map = NULL;
  sbx_slice field, value = {NULL, 0};
  sbx_err why;
  sbx_remote_map(&map, options, name, err);
  for (const sbx_json *v = sbx_json_next(map, NULL, &field); v != NULL && err->code == SBX_OK;
       v = sbx_json_next(map, v, &field)) {
    sbx_json_string(v, &value);
    int rc = is_one_of(field, ours) ? sbx_err_set(&why, SBX_EINVAL, "this package sets it itself")
                                    : sbx_headers_add(headers, field, value, &why);
    if (rc == SBX_OK)
      continue;
    sbx_err_set(err, rc, "%s: ", name);
    sbx_err_append_remote(err, field);
    sbx_err_append(err, ": %s", why.message);
  }
  return err->code;
}

/* ---- the client ----------------------------------------------------------------------------- */

/* The first of these variables that is set and not empty. */
static sbx_slice variable(const sbx_json *environment, const char *const names[]) {
  sbx_slice value;
  for (; *names != NULL; names++) {
    if (sbx_json_string(sbx_json_get(environment, *names), &value) && value.len > 0)
      return value;
  }
  return sbx_slice_of(NULL, 0);
}
#define VARIABLE(environment, ...) variable(environment, (const char *const[]){__VA_ARGS__, NULL})

/* HTTP_PROXY is not read: a CGI server sets it from a header that anybody may send. */
static sbx_http_environment read_environment(const sbx_json *v) {
  return (sbx_http_environment){
      .https_proxy = VARIABLE(v, "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
      .http_proxy = VARIABLE(v, "http_proxy", "all_proxy", "ALL_PROXY"),
      .no_proxy = VARIABLE(v, "no_proxy", "NO_PROXY"),
      .cert_file = VARIABLE(v, "SSL_CERT_FILE"),
      .extra_certs = VARIABLE(v, "NODE_EXTRA_CA_CERTS"),
      .library = VARIABLE(v, "SBX_LIBCURL"),
  };
}

int sbx_remote_http_options(sbx_http_options *http, const sbx_json *options, sbx_err *err) {
  const sbx_json *ca = sbx_json_get(options, "ca");
  http->environment = read_environment(sbx_json_get(options, "environment"));
  if (err->code == SBX_OK && ca != NULL &&
      (!sbx_json_string(ca, &http->ca_pem) || http->ca_pem.len == 0))
    return sbx_err_set(err, SBX_EINVAL, "ca must be one or more certificates in PEM");
  return err->code;
}

int sbx_remote_client(sbx_http_client **out, sbx_loop *loop, const sbx_json *options,
                      sbx_http_version version, sbx_err *err) {
  const sbx_json *proxy = sbx_json_get(options, "proxy");
  sbx_http_options http = {.version = version};
  if (err->code == SBX_OK && proxy != NULL && !sbx_json_string(proxy, &http.proxy))
    return sbx_err_set(err, SBX_EINVAL, "proxy must be a URL, or \"\" for none");
  http.no_proxy = proxy != NULL && http.proxy.len == 0;
  if (sbx_remote_http_options(&http, options, err) != SBX_OK)
    return err->code;
  return loop != NULL ? sbx_http_client_get(out, loop, &http, err)
                      : sbx_http_client_new(out, &http, err);
}
