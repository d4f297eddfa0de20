/* http_client.c - how to reach a service: proxy, socket, HTTP version, trusted certificates.
 *
 * Invariant: a client lives as long as its owner or an exchange needs it, since libcurl borrows its
 * certificates. */
#include "core/http_int.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/err.h"
#include "core/secrets.h"
#include "core/url.h"

#include <limits.h>
#include <string.h>
#include <sys/un.h>

static int copy_text(char **out, sbx_slice text, const char *what, sbx_err *err) {
  if (text.len == 0)
    return SBX_OK;
  for (size_t i = 0; i < text.len; i++) {
    unsigned char c = (unsigned char)text.ptr[i];
    if (c < 0x20 || c == 0x7f)
      return sbx_err_set(err, SBX_EINVAL, "the %s has a control character", what);
  }
  *out = sbx_strndup(text.ptr, text.len);
  return *out != NULL ? SBX_OK : sbx_err_set(err, SBX_ENOMEM, NULL);
}

static void list_environment(sbx_slice list[SBX_HTTP_VARIABLES],
                             const sbx_http_environment *environment) {
  list[HTTPS_PROXY] = environment->https_proxy;
  list[HTTP_PROXY] = environment->http_proxy;
  list[NO_PROXY] = environment->no_proxy;
  list[CERT_FILE] = environment->cert_file;
  list[EXTRA_CERTS] = environment->extra_certs;
  list[LIBRARY] = environment->library;
}

static int copy_environment(sbx_http_client *client, const sbx_http_environment *environment,
                            sbx_err *err) {
  sbx_slice list[SBX_HTTP_VARIABLES];
  list_environment(list, environment);
  for (size_t i = 0; i < SBX_HTTP_VARIABLES; i++) {
    if (list[i].len == 0)
      continue;
    client->environment[i] = sbx_strndup(list[i].ptr, list[i].len);
    if (client->environment[i] == NULL)
      return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  return SBX_OK;
}

int sbx_http_client_new(sbx_http_client **out, const sbx_http_options *options, sbx_err *err) {
  int code = SBX_OK;
  if (options->unix_socket.len >= sizeof((struct sockaddr_un *)NULL)->sun_path)
    return sbx_err_set(err, SBX_EINVAL, "the unix socket's path is too long");
  sbx_http_client *client = sbx_calloc(1, sizeof *client);
  if (client == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  client->users = 1;
  client->version = options->version;
  client->no_proxy = options->no_proxy;
  client->has_ca = options->ca_pem.len > 0;
  code = copy_environment(client, &options->environment, err);
  if (code == SBX_OK)
    code = sbx_trust_init(&client->trust, options->ca_pem, client->environment[CERT_FILE],
                          client->environment[EXTRA_CERTS], err);
  if (code == SBX_OK)
    code = copy_text(&client->proxy, options->proxy, "proxy URL", err);
  if (code == SBX_OK && client->proxy != NULL)
    code = sbx_url_check_proxy(options->proxy, err);
  if (code == SBX_OK)
    code = copy_text(&client->unix_socket, options->unix_socket, "unix socket's path", err);
  if (code == SBX_OK)
    code = copy_text(&client->cert_path, options->cert_path, "certificate's path", err);
  if (code == SBX_OK)
    code = copy_text(&client->key_path, options->key_path, "key's path", err);
  if (code != SBX_OK) {
    sbx_http_client_free(client);
    return code;
  }
  *out = client;
  return SBX_OK;
}

/* ---- shared clients ---- */

typedef struct shared_clients {
  sbx_loop_state state; /* first */
  sbx_http_client *first;
} shared_clients;

static const char shared_key;

static void unlink_shared(sbx_http_client *client) {
  if (client->previous == NULL)
    return;
  *client->previous = client->next;
  if (client->next != NULL)
    client->next->previous = client->previous;
  client->previous = NULL;
}

static void free_shared(sbx_loop_state *state) {
  shared_clients *shared = (shared_clients *)(void *)state;
  while (shared->first != NULL)
    unlink_shared(shared->first);
  sbx_free(shared);
}

static shared_clients *find_shared(sbx_loop *loop) {
  shared_clients *shared = (shared_clients *)(void *)sbx_loop_find_state(loop, &shared_key);
  if (shared != NULL)
    return shared;
  shared = sbx_calloc(1, sizeof *shared);
  if (shared == NULL)
    return NULL;
  shared->state.key = &shared_key;
  shared->state.end = free_shared;
  sbx_loop_add_state(loop, &shared->state);
  return shared;
}

static bool same_text(const char *text, sbx_slice other) {
  return text != NULL ? sbx_slice_eq_str(other, text) : other.len == 0;
}

static bool has_environment(const sbx_http_client *client,
                            const sbx_http_environment *environment) {
  sbx_slice list[SBX_HTTP_VARIABLES];
  bool same = true;
  list_environment(list, environment);
  for (size_t i = 0; same && i < SBX_HTTP_VARIABLES; i++)
    same = same_text(client->environment[i], list[i]);
  return same;
}

static bool has_options(const sbx_http_client *client, const sbx_http_options *options) {
  bool with_ca = options->ca_pem.len > 0;
  return client->version == options->version && client->no_proxy == options->no_proxy &&
         same_text(client->proxy, options->proxy) &&
         same_text(client->unix_socket, options->unix_socket) &&
         same_text(client->cert_path, options->cert_path) &&
         same_text(client->key_path, options->key_path) && client->has_ca == with_ca &&
         has_environment(client, &options->environment) &&
         (!with_ca || sbx_slice_eq(sbx_buf_slice(&client->trust.pem), options->ca_pem));
}

int sbx_http_client_get(sbx_http_client **out, sbx_loop *loop, const sbx_http_options *options,
                        sbx_err *err) {
  shared_clients *shared = find_shared(loop);
  if (shared == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  sbx_http_client *client = shared->first;
  while (client != NULL && !has_options(client, options))
    client = client->next;
  if (client != NULL) {
    client->users++;
    *out = client;
    return SBX_OK;
  }
  int code = sbx_http_client_new(&client, options, err);
  if (client == NULL)
    return code;
  client->next = shared->first;
  if (client->next != NULL)
    client->next->previous = &client->next;
  client->previous = &shared->first;
  shared->first = client;
  *out = client;
  return SBX_OK;
}

/* "http://user:password@host": the two are percent-encoded there and not in what is sent. */
static void hide_login(const char *proxy, sbx_err *err) {
  sbx_slice rest = proxy != NULL ? sbx_slice_str(proxy) : sbx_slice_of(NULL, 0);
  const char *scheme = rest.len > 0 ? strstr(rest.ptr, "://") : NULL;
  if (scheme != NULL)
    rest = sbx_slice_skip(rest, (size_t)(scheme - rest.ptr) + 3);
  size_t at = sbx_slice_find(rest, '@');
  if (at == rest.len)
    return;
  sbx_slice login = sbx_slice_of(rest.ptr, at);
  sbx_slice password = sbx_slice_skip(login, sbx_slice_find(login, ':') + 1);
  sbx_buf plain, sent;
  sbx_buf_init(&plain, 4096);
  sbx_buf_init(&sent, 8192);
  if (sbx_percent_decode(&plain, login) == SBX_OK &&
      sbx_base64_encode(&sent, sbx_buf_slice(&plain)) == SBX_OK) {
    sbx_slice decoded = sbx_buf_slice(&plain);
    sbx_secret_hide(err, sbx_buf_slice(&sent));
    sbx_secret_hide(err, sbx_slice_skip(decoded, sbx_slice_find(decoded, ':') + 1));
  }
  sbx_secret_hide(err, password);
  if (plain.ptr != NULL)
    sbx_wipe(plain.ptr, plain.len);
  if (sent.ptr != NULL)
    sbx_wipe(sent.ptr, sent.len);
  sbx_buf_deinit(&plain);
  sbx_buf_deinit(&sent);
}

void sbx_http_client_hide(const sbx_http_client *client, sbx_err *err) {
  if (client == NULL)
    return;
  hide_login(client->proxy, err);
  hide_login(client->environment[HTTPS_PROXY], err);
  hide_login(client->environment[HTTP_PROXY], err);
}

/* ---- use ---- */

void sbx__http_client_use(sbx_http_client *client) {
  client->users++;
}

void sbx__http_client_drop(sbx_http_client *client) {
  if (--client->users > 0)
    return;
  unlink_shared(client);
  if (client->proxy != NULL)
    sbx_wipe(client->proxy, strlen(client->proxy));
  sbx_free(client->proxy);
  sbx_free(client->unix_socket);
  sbx_free(client->cert_path);
  sbx_free(client->key_path);
  for (size_t i = 0; i < SBX_HTTP_VARIABLES; i++)
    sbx_free_secret(client->environment[i]); /* proxies may have passwords */
  sbx_trust_deinit(&client->trust);
  sbx_free(client);
}

void sbx_http_client_free(sbx_http_client *client) {
  if (client != NULL)
    sbx__http_client_drop(client);
}

static bool is_in_domain(sbx_slice host, sbx_slice domain) {
  while (domain.len > 0 && domain.ptr[0] == '.')
    domain = sbx_slice_skip(domain, 1);
  if (domain.len == 0 || domain.len > host.len)
    return false;
  size_t before = host.len - domain.len;
  bool has_letter = false;
  for (size_t i = 0; i < domain.len; i++)
    has_letter = has_letter || sbx_is_letter(domain.ptr[i]);
  return sbx_slice_eq_nocase(sbx_slice_skip(host, before), domain) &&
         (before == 0 || (has_letter && host.ptr[before - 1] == '.'));
}

/* Whether the list surely names the host. What libcurl finds besides, such as networks, is asked of
 * it only when there is a proxy that can be used. */
static bool is_excepted(const char *list, sbx_slice host) {
  static const char between[] = ", ";
  if (strcmp(list, "*") == 0)
    return true;
  while (*list != '\0') {
    size_t len = strcspn(list, between);
    if (is_in_domain(host, sbx_slice_of(list, len)))
      return true;
    list += len;
    list += strspn(list, between);
  }
  return false;
}

static int apply_proxy(const sbx_http_client *client, const sbx_curl *curl, CURL *easy,
                       const sbx_url *url, sbx_err *err) {
  const char *proxy = "";
  const char *except = "";
  if (client->no_proxy || client->unix_socket != NULL) {
    proxy = "";
  } else if (client->proxy != NULL) {
    proxy = client->proxy;
  } else {
    const char *found = client->environment[url->https ? HTTPS_PROXY : HTTP_PROXY];
    proxy = found != NULL ? found : "";
    except = client->environment[NO_PROXY] != NULL ? client->environment[NO_PROXY] : "";
    if (is_excepted(except, url->host))
      proxy = "";
    if (proxy[0] != '\0' && sbx_url_check_proxy(sbx_slice_str(proxy), err) != SBX_OK) {
      sbx_err_append(err, "; it comes from %s or ALL_PROXY",
                     url->https ? "HTTPS_PROXY" : "http_proxy");
      return SBX_EINVAL;
    }
  }
  /* Set even when empty: without a value libcurl reads the environment by its own rules. */
  CURLcode rc = curl->easy_setopt(easy, CURLOPT_PROXY, proxy);
  if (rc == CURLE_OK)
    rc = curl->easy_setopt(easy, CURLOPT_NOPROXY, except);
  return rc == CURLE_OK ? SBX_OK : sbx_err_set(err, SBX_EINVAL, "the proxy's URL cannot be used");
}

/* libcurl 7.87 and 7.88 start HTTP/2 a second time on a connection that already speaks it by prior
 * knowledge, which ends every further request on it with a framing error. */
bool sbx__http_can_share_prior(const sbx_curl *curl) {
  return curl->info->version_num < 0x075700 || curl->info->version_num >= 0x080000;
}

static int apply_version(const sbx_http_client *client, const sbx_curl *curl, CURL *easy,
                         bool https, sbx_err *err) {
  long version = CURL_HTTP_VERSION_1_1;
  bool needed = client->version == SBX_HTTP_2_NEEDED;
  if ((client->version == SBX_HTTP_2_PRIOR || needed) && !curl->has_http2)
    return sbx_err_set(err, SBX_ELIBRARY, "this service needs a libcurl with HTTP/2");
  if (client->version == SBX_HTTP_2_PRIOR || (needed && !https))
    version = CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
  else if (client->version != SBX_HTTP_1_1 && curl->has_http2 && https)
    version = CURL_HTTP_VERSION_2TLS;
  curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, version);
  /* Requests that start together wait for the first one's connection and share it. Not without TLS:
   * there the first answer would have to tell which version it is, and it may never come. */
  if (version != CURL_HTTP_VERSION_1_1 && curl->shares_http2)
    curl->easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
  if (version == CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE && !sbx__http_can_share_prior(curl)) {
    curl->easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl->easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
  }
  return SBX_OK;
}

int sbx__http_client_apply(sbx_http_client *client, sbx_loop *loop, const sbx_curl *curl,
                           CURL *easy, const sbx_url *url, sbx_err *err) {
  int code = apply_proxy(client, curl, easy, url, err);
  if (code == SBX_OK)
    code = apply_version(client, curl, easy, url->https, err);
  if (code != SBX_OK)
    return code;
  if (client->unix_socket != NULL &&
      curl->easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, client->unix_socket) != CURLE_OK)
    return sbx_err_set(err, SBX_ELIBRARY, "this libcurl cannot connect to unix sockets");
  if ((client->cert_path != NULL &&
       curl->easy_setopt(easy, CURLOPT_SSLCERT, client->cert_path) != CURLE_OK) ||
      (client->key_path != NULL &&
       curl->easy_setopt(easy, CURLOPT_SSLKEY, client->key_path) != CURLE_OK))
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  curl->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  curl->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  curl->easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
  return sbx_trust_apply(&client->trust, loop, curl, easy, err);
}
