/* place.c - where the engine is: a socket, or an address with or without TLS. */
#include "providers/docker/place.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/url.h"
#include "providers/remote/options.h"

#include <string.h>

#define SOCKET "/var/run/docker.sock"

enum { MAX_PATH = 4096 };

static int join(char **out, sbx_err *err, const char *first, sbx_slice rest) {
  sbx_buf text;
  size_t len;
  sbx_buf_init(&text, MAX_PATH);
  sbx_buf_append_str(&text, first);
  int rc = sbx_buf_append_slice(&text, rest);
  if (rc == SBX_OK)
    *out = sbx_buf_take(&text, &len);
  sbx_buf_deinit(&text);
  return rc == SBX_OK ? SBX_OK
                      : sbx_err_set(err, rc == SBX_ETOOBIG ? SBX_EINVAL : rc, "host is too long");
}

/* "tcp://h:1", "h:1", "http://h:1", "https://h:1": all but the scheme. */
static sbx_slice after_scheme(sbx_slice host, bool *https, bool *known) {
  static const struct {
    const char *scheme;
    bool https;
  } schemes[] = {{"tcp://", false}, {"http://", false}, {"https://", true}};
  *known = true;
  for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
    sbx_slice scheme = sbx_slice_str(schemes[i].scheme);
    if (!sbx_slice_starts_with(host, scheme))
      continue;
    *https = *https || schemes[i].https;
    return sbx_slice_skip(host, scheme.len);
  }
  for (size_t i = 0; i + 2 < host.len; i++)
    *known = *known && memcmp(host.ptr + i, "://", 3) != 0;
  return host;
}

static int read_tcp(sbx_config *config, sbx_slice host, bool tls, sbx_err *err) {
  bool known, https = tls;
  sbx_slice rest = after_scheme(host, &https, &known);
  sbx_url url;
  sbx_err why;
  if (!known || rest.len == 0)
    return sbx_err_set(err, SBX_EINVAL,
                       "host must be unix:///path, tcp://host:port, http://... or https://...; "
                       "npipe: and ssh: are not supported (for ssh, forward the socket: ssh -L "
                       "/path/docker.sock:/var/run/docker.sock)");
  static const char tls_port[] = ":2376";
  const size_t length = sizeof tls_port - 1;
  if (sbx_slice_starts_with(host, sbx_slice_str("tcp://")) && rest.len > length &&
      memcmp(rest.ptr + rest.len - length, tls_port, length) == 0)
    https = true;
  while (rest.len > 0 && rest.ptr[rest.len - 1] == '/')
    rest.len--;
  int rc = join(&config->base, err, https ? "https://" : "http://", rest);
  if (rc == SBX_OK && sbx_url_parse(&url, sbx_slice_str(config->base), &why) != SBX_OK)
    rc = sbx_err_set(err, SBX_EINVAL, "host: %s", why.message);
  config->https = https;
  return rc == SBX_OK ? join(&config->service, err, "", sbx_slice_str(config->base)) : rc;
}

static int read_version(sbx_config *config, const sbx_json *options, sbx_err *err) {
  sbx_slice text = {NULL, 0};
  const sbx_json *v = sbx_json_get(options, "apiVersion");
  if (v == NULL)
    return SBX_OK;
  config->given_version = true;
  sbx_json_string(v, &text);
  if (text.len == 4 && sbx_slice_starts_with(text, sbx_slice_str("1.")) &&
      sbx_is_digit(text.ptr[2]) && sbx_is_digit(text.ptr[3]))
    config->minor = (text.ptr[2] - '0') * 10 + (text.ptr[3] - '0');
  return config->minor >= SBX__DOCKER_MINOR_MIN
             ? SBX_OK
             : sbx_err_set(err, SBX_EINVAL, "apiVersion must be \"1.%d\" or newer",
                           SBX__DOCKER_MINOR_MIN);
}

static int make_client(sbx_config *config, const sbx_json *options, sbx_slice socket,
                       const char *cert_path, sbx_err *err) {
  sbx_http_options http = {.version = SBX_HTTP_1_1, .no_proxy = true, .unix_socket = socket};
  char *files[3] = {NULL, NULL, NULL};
  static const char *const names[3] = {"/ca.pem", "/cert.pem", "/key.pem"};
  int rc = sbx_remote_http_options(&http, options, err);
  for (size_t i = 0; i < 3 && rc == SBX_OK && cert_path != NULL && config->https; i++)
    rc = join(&files[i], err, cert_path, sbx_slice_str(names[i]));
  if (rc == SBX_OK && files[2] != NULL) {
    http.environment.cert_file = sbx_slice_str(files[0]);
    http.cert_path = sbx_slice_str(files[1]);
    http.key_path = sbx_slice_str(files[2]);
  }
  if (rc == SBX_OK)
    rc = config->loop != NULL ? sbx_http_client_get(&config->http, config->loop, &http, err)
                              : sbx_http_client_new(&config->http, &http, err);
  for (size_t i = 0; i < 3; i++)
    sbx_free(files[i]);
  return rc;
}

int sbx__docker_read_place(sbx_config *config, const sbx_json *options, const char *host,
                           sbx_slice *socket, sbx_err *err) {
  bool tls = false;
  char *cert_path = NULL;
  sbx_slice text = sbx_slice_str(host);
  static const char scheme[] = "unix://";
  int rc = sbx_remote_bool(&tls, options, "tls", err);
  if (rc == SBX_OK)
    rc = sbx_remote_text(&cert_path, options, "certPath", err);
  if (rc == SBX_OK)
    rc = read_version(config, options, err);
  if (rc == SBX_OK && sbx_slice_starts_with(text, sbx_slice_str(scheme))) {
    *socket = sbx_slice_skip(text, sizeof scheme - 1);
    if (socket->len == 0)
      *socket = sbx_slice_str(SOCKET);
    if (socket->ptr[0] != '/')
      rc = sbx_err_set(err, SBX_EINVAL, "host: the path of the socket must be absolute");
    if (rc == SBX_OK)
      rc = join(&config->base, err, "http://localhost", sbx_slice_of(NULL, 0));
    if (rc == SBX_OK)
      rc = join(&config->service, err, "", *socket);
  } else if (rc == SBX_OK) {
    rc = read_tcp(config, text, tls, err);
  }
  if (rc == SBX_OK)
    rc = make_client(config, options, *socket, cert_path, err);
  sbx_free(cert_path);
  return rc;
}
