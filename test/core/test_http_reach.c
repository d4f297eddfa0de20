/* Tests of how core/http reaches a service: HTTP/2, trusted certificates, proxies, and which
 * libcurl does it. The last test repeats all others with the GnuTLS flavour where it is installed.
 */
#include "support/http_fixture.h"

#include "core/http_int.h"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- HTTP/2 ---- */

/* Ten requests at once; how many connections they took. */
static int64_t ten_at_once(fixture *f, sbx_http_client *client, sbx_http_request request,
                           const char *listener) {
  char url[512];
  reply r[10] = {{0}};
  int pending = 10;
  memcpy(url, f->url, sizeof url); /* count() uses the fixture's */
  request.url = sbx_slice_str(url);
  request.body = sbx_slice_str("h2");
  int64_t before = count(f, "connections", listener);
  for (int i = 0; i < 10; i++) {
    r[i].countdown = &pending;
    assert_non_null(start(f, client, &request, &r[i]));
  }
  while (pending > 0)
    uv_run(&f->uv, UV_RUN_ONCE);
  for (int i = 0; i < 10; i++) {
    assert_ok(&r[i], 200);
    assert_has(&r[i], "\"version\":\"2.0\"");
    assert_has(&r[i], "\"text\":\"h2\"");
    drop(&r[i]);
  }
  return count(f, "connections", listener) - before;
}

static void test_http2_prior_knowledge(void **state) {
  fixture *f = *state;
  const sbx_http_options options = {.version = SBX_HTTP_2_PRIOR};
  const sbx_curl *curl = NULL;
  assert_int_equal(sbx_curl_get(&curl, NULL), SBX_OK);
  sbx_http_client *client = new_client(&options);
  for (int i = 0; i < 2; i++) {
    int64_t connections = ten_at_once(f, client, to(f, "POST", server.h2c, "/echo"), "h2c");
    int64_t first = curl->shares_http2 ? 1 : 10;
    assert_int_equal(connections, i == 0 || !sbx__http_can_share_prior(curl) ? first : 0);
  }
  sbx_http_client_free(client);
}

static void test_http2_over_tls(void **state) {
  fixture *f = *state;
  const sbx_curl *curl = NULL;
  assert_int_equal(sbx_curl_get(&curl, NULL), SBX_OK);
  sbx_http_client *client = client_with_ca(server.ca, SBX_HTTP_2);
  for (int i = 0; i < 2; i++) {
    sbx_http_request request = to_tls(f, "POST", server.https, "/echo");
    int64_t first = curl->shares_http2 ? 1 : 10;
    assert_int_equal(ten_at_once(f, client, request, "https"), i == 0 ? first : 0);
  }
  sbx_http_client_free(client);
}

static void test_http2_failures(void **state) {
  static const char *const paths[] = {"/goaway", "/rst"};
  fixture *f = *state;
  reply r = {0};
  sbx_http_client *client = client_with_ca(server.ca, SBX_HTTP_2);
  for (size_t i = 0; i < 2; i++) {
    int64_t before = count(f, "requests", paths[i]);
    sbx_http_request request = to_tls(f, "POST", server.https, paths[i]);
    run(f, client, &request, &r);
    assert_error(&r, SBX_ENET, true, "POST 127.0.0.1:");
    drop(&r);
    assert_int_equal(count(f, "requests", paths[i]), before + 1);
  }
  /* A stream that was not processed is sent again where that is allowed. */
  sbx_http_request request = to_tls(f, "GET", server.https, "/refuse-odd");
  run(f, client, &request, &r);
  assert_ok(&r, 200);
  drop(&r);
  request = to_tls(f, "POST", server.https, "/refuse-odd");
  run(f, client, &request, &r);
  assert_error(&r, SBX_ENET, true, "not sent again");
  drop(&r);
  sbx_http_client_free(client);
}

static void test_prior_knowledge_of_the_wrong_server(void **state) {
  fixture *f = *state;
  reply r = {0};
  const sbx_http_options options = {.version = SBX_HTTP_2_PRIOR};
  sbx_http_client *client = new_client(&options);
  sbx_http_request request = to(f, "GET", server.http, "/small");
  run(f, client, &request, &r);
  assert_error(&r, SBX_ENET, true, "GET 127.0.0.1:");
  drop(&r);
  sbx_http_client_free(client);
}

/* ---- certificates ---- */

/* To read the system's authorities takes seconds under valgrind, and is part of the connecting. */
static void get_tls(fixture *f, sbx_http_client *client, uint16_t port, reply *r) {
  sbx_http_request request = to_tls(f, "GET", port, "/small");
  request.connect_ms = 60000;
  run(f, client, &request, r);
}

static void test_private_ca_by_option(void **state) {
  fixture *f = *state;
  reply r = {0};
  sbx_http_client *client = client_with_ca(server.ca, SBX_HTTP_1_1);
  int64_t before = count(f, "connections", "https");
  for (int i = 0; i < 3; i++) {
    get_tls(f, client, server.https, &r);
    assert_ok(&r, 200);
    drop(&r);
  }
  assert_int_equal(count(f, "connections", "https"), before + 1);
  sbx_http_client_free(client);
}

static void test_untrusted_certificates(void **state) {
  fixture *f = *state;
  reply r = {0};
  get_tls(f, NULL, server.https, &r); /* not in the default bundle */
  assert_error(&r, SBX_ETLS, false, "not trusted");
  drop(&r);
  sbx_http_client *client = client_with_ca(server.other_ca, SBX_HTTP_1_1);
  get_tls(f, client, server.https, &r); /* of another CA */
  assert_error(&r, SBX_ETLS, false, "not trusted");
  drop(&r);
  get_tls(f, client, server.misnamed, &r); /* of the right CA, for another name */
  assert_error(&r, SBX_ETLS, false, "GET 127.0.0.1:");
  drop(&r);
  sbx_http_client_free(client);
  /* What other programs take for "do not check" changes nothing. */
  setenv("NODE_TLS_REJECT_UNAUTHORIZED", "0", 1);
  get_tls(f, NULL, server.https, &r);
  unsetenv("NODE_TLS_REJECT_UNAUTHORIZED");
  assert_error(&r, SBX_ETLS, false, "not trusted");
  drop(&r);
  get_tls(f, NULL, server.http, &r); /* no TLS on the other side at all */
  assert_error(&r, SBX_ETLS, false, "handshake");
  drop(&r);
  /* A connection that another client may use is not taken by one that does not trust it. */
  client = client_with_ca(server.ca, SBX_HTTP_1_1);
  get_tls(f, client, server.https, &r);
  assert_ok(&r, 200);
  drop(&r);
  sbx_http_client_free(client);
  get_tls(f, NULL, server.https, &r);
  assert_error(&r, SBX_ETLS, false, "not trusted");
  drop(&r);
}

/* The environment is read at a client's first exchange. */
static void get_tls_afresh(fixture *f, reply *r) {
  const sbx_http_options options = {0};
  sbx_http_client *client = new_client(&options);
  get_tls(f, client, server.https, r);
  sbx_http_client_free(client);
}

static void test_ca_by_environment(void **state) {
  static const char *const names[] = {"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"};
  fixture *f = *state;
  reply r = {0};
  for (size_t i = 0; i < 2; i++) {
    setenv(names[i], server.ca, 1);
    get_tls_afresh(f, &r);
    unsetenv(names[i]);
    assert_ok(&r, 200);
    drop(&r);
  }
  /* Both: the one as the base, the other in addition. */
  setenv("SSL_CERT_FILE", server.other_ca, 1);
  setenv("NODE_EXTRA_CA_CERTS", server.ca, 1);
  get_tls_afresh(f, &r);
  assert_ok(&r, 200);
  drop(&r);
  unsetenv("NODE_EXTRA_CA_CERTS");
  get_tls_afresh(f, &r);
  assert_error(&r, SBX_ETLS, false, "not trusted");
  drop(&r);
  setenv("SSL_CERT_FILE", "/nonexistent/ca.pem", 1);
  get_tls_afresh(f, &r);
  assert_error(&r, SBX_ETLS, false, "");
  drop(&r);
  unsetenv("SSL_CERT_FILE");
  setenv("NODE_EXTRA_CA_CERTS", "/nonexistent/ca.pem", 1);
  get_tls_afresh(f, &r);
  unsetenv("NODE_EXTRA_CA_CERTS");
  assert_error(&r, SBX_ETLS, false, "NODE_EXTRA_CA_CERTS names a file");
  drop(&r);
}

/* NODE_EXTRA_CA_CERTS adds to the default bundle; `ca_pem` stands alone. */
static void test_extra_certificates_keep_the_default(void **state) {
  fixture *f = *state;
  const sbx_curl *curl = NULL;
  sbx_trust trust;
  assert_int_equal(sbx_curl_get(&curl, NULL), SBX_OK);
  const char *bundle = curl->info->cainfo;
  if (access(bundle != NULL ? bundle : "/etc/ssl/certs/ca-certificates.crt", R_OK) != 0)
    skip();
  CURL *easy = curl->easy_init();
  assert_int_equal(sbx_trust_init(&trust, sbx_slice_of(NULL, 0), NULL, server.ca, NULL), SBX_OK);
  assert_int_equal(sbx_trust_apply(&trust, f->loop, curl, easy, NULL), SBX_OK);
  size_t certificates = 0;
  for (const char *at = trust.pem.ptr; (at = strstr(at, "-----BEGIN CERT")) != NULL; at++)
    certificates++;
  assert_true(certificates > 2);
  assert_false(trust.exclusive);
  curl->easy_cleanup(easy);
  sbx_trust_deinit(&trust);
}

/* What cannot be read for the lack of a descriptor is read by the next request. */
static void test_certificates_without_descriptors(void **state) {
  fixture *f = *state;
  const sbx_curl *curl = NULL;
  sbx_trust trust;
  sbx_err err;
  struct rlimit old, none;
  if (getenv("SBX_VALGRIND") != NULL)
    skip(); /* it keeps a limit of its own */
  assert_int_equal(sbx_curl_get(&curl, NULL), SBX_OK);
  CURL *easy = curl->easy_init();
  assert_int_equal(sbx_trust_init(&trust, sbx_slice_of(NULL, 0), NULL, server.ca, NULL), SBX_OK);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
  none = old;
  none.rlim_cur = 0;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  int code = sbx_trust_apply(&trust, f->loop, curl, easy, &err);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
  assert_int_equal(code, SBX_ENET);
  assert_non_null(strstr(err.message, "open files"));
  assert_int_equal(sbx_trust_apply(&trust, f->loop, curl, easy, &err), SBX_OK);
  assert_true(trust.pem.len > 0);
  assert_false(trust.extra_unreadable);
  curl->easy_cleanup(easy);
  sbx_trust_deinit(&trust);
}

/* A client that trusts `path` alone, in a bundle of `padding` further bytes. */
static sbx_http_client *padded_client(const char *path, size_t padding) {
  sbx_buf pem;
  char chunk[4096];
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  sbx_buf_init(&pem, SIZE_MAX);
  for (size_t i = 0; i < padding; i += 10)
    sbx_buf_append_str(&pem, "# padding\n");
  for (size_t len; (len = fread(chunk, 1, sizeof chunk, file)) > 0;)
    sbx_buf_append(&pem, chunk, len);
  fclose(file);
  assert_int_equal(pem.error, SBX_OK);
  sbx_http_options options = {.ca_pem = sbx_buf_slice(&pem)};
  sbx_http_client *client = new_client(&options);
  sbx_buf_deinit(&pem);
  return client;
}

/* C184: one client after the other, each freed before the next. Whatever was kept of one, a
 * connection, parsed certificates, a file, serves only who trusts the same certificates. */
static void test_trust_is_not_shared(void **state) {
  static const char *const orders[] = {"yn", "ny", "ynn", "nyny", "yyn"};
  static const size_t sizes[] = {0, 40000};
  fixture *f = *state;
  reply r = {0};
  for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
    for (size_t j = 0; j < 8; j++) {
      for (const char *turn = orders[i]; *turn != '\0'; turn++) {
        bool right = *turn == 'y';
        size_t padding = sizes[right ? j & 1 : j >> 1 & 1];
        sbx_http_client *client = padded_client(right ? server.ca : server.other_ca, padding);
        sbx_http_request request = to_tls(f, "GET", server.https, "/small");
        const sbx_header close = {sbx_slice_str("Connection"), sbx_slice_str("close")};
        sbx_headers headers;
        sbx_headers_init(&headers, 100);
        if (j & 4) /* only what is kept beside the connection */
          sbx_headers_add(&headers, close.name, close.value, NULL);
        request.headers = &headers;
        request.connect_ms = 60000;
        run(f, client, &request, &r);
        sbx_headers_deinit(&headers);
        if (right)
          assert_ok(&r, 200);
        else
          assert_error(&r, SBX_ETLS, false, "not trusted");
        drop(&r);
        sbx_http_client_free(client);
      }
    }
  }
}

/* The same by the name of a file whose content changes. */
static void test_replaced_bundle(void **state) {
  fixture *f = *state;
  reply r = {0};
  char path[] = "/tmp/sbx-bundle-XXXXXX", name[64];
  assert_non_null(mkdtemp(path));
  snprintf(name, sizeof name, "%s/ca.pem", path);
  setenv("SSL_CERT_FILE", name, 1);
  assert_int_equal(symlink(server.ca, name), 0);
  get_tls_afresh(f, &r);
  assert_ok(&r, 200);
  drop(&r);
  assert_int_equal(unlink(name), 0);
  assert_int_equal(symlink(server.other_ca, name), 0);
  get_tls_afresh(f, &r);
  unsetenv("SSL_CERT_FILE");
  assert_error(&r, SBX_ETLS, false, "not trusted");
  drop(&r);
  assert_int_equal(unlink(name), 0);
  assert_int_equal(rmdir(path), 0);
}

static void test_bad_ca_option(void **state) {
  (void)state;
  sbx_http_client *client = NULL;
  sbx_http_options options = {.ca_pem = sbx_slice_str("/etc/ssl/ca.pem")};
  sbx_err err;
  assert_int_equal(sbx_http_client_new(&client, &options, &err), SBX_EINVAL);
  assert_non_null(strstr(err.message, "PEM"));
}

/* ---- proxies ---- */

static void test_https_proxy_by_environment(void **state) {
  fixture *f = *state;
  reply r = {.want = "x-tunnel"};
  char proxy[128];
  snprintf(proxy, sizeof proxy, "http://user:secret@127.0.0.1:%u", (unsigned)server.proxy);
  int64_t tunnels = count(f, "tunnels", NULL);
  setenv("HTTPS_PROXY", proxy, 1);
  sbx_http_client *client = client_with_ca(server.ca, SBX_HTTP_1_1);
  get_tls(f, client, server.https, &r);
  assert_ok(&r, 200);
  assert_string_equal(r.header, ""); /* the proxy's header is not the reply's */
  drop(&r);
  assert_int_equal(count(f, "tunnels", NULL), tunnels + 1);
  sbx_http_client_free(client);
  setenv("NO_PROXY", "other.test,127.0.0.1", 1);
  client = client_with_ca(server.ca, SBX_HTTP_1_1);
  get_tls(f, client, server.https, &r);
  unsetenv("NO_PROXY");
  unsetenv("HTTPS_PROXY");
  assert_ok(&r, 200);
  drop(&r);
  assert_int_equal(count(f, "tunnels", NULL), tunnels + 1);
  sbx_http_client_free(client);
}

static void test_http_proxy_by_environment(void **state) {
  static const struct {
    const char *name;
    int forwarded; /* HTTP_PROXY in upper case is not to be trusted */
  } cases[] = {{"HTTP_PROXY", 0}, {"http_proxy", 1}, {"ALL_PROXY", 1}, {"https_proxy", 0}};
  fixture *f = *state;
  reply r = {0};
  char proxy[128];
  snprintf(proxy, sizeof proxy, "http://127.0.0.1:%u", (unsigned)server.proxy);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int64_t before = count(f, "forwards", NULL);
    setenv(cases[i].name, proxy, 1);
    get(f, server.http, "/small", &r);
    unsetenv(cases[i].name);
    assert_ok(&r, 200);
    drop(&r);
    assert_int_equal(count(f, "forwards", NULL) - before, cases[i].forwarded);
  }
}

/* Whoever needs no proxy is not bothered with a broken one. */
static void test_unusable_proxy_by_environment(void **state) {
  static const struct {
    const char *except;
    bool works;
  } cases[] = {{"", false},         {"other.test", false},           {"0.0.1", false},
               {"27.0.0.1", false}, {"other.test, 127.0.0.1", true}, {"*", true}};
  fixture *f = *state;
  reply r = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    setenv("http_proxy", "http://user:se@cret@127.0.0.1:1", 1);
    setenv("NO_PROXY", cases[i].except, 1);
    get(f, server.http, "/small", &r);
    unsetenv("NO_PROXY");
    unsetenv("http_proxy");
    if (cases[i].works)
      assert_ok(&r, 200);
    else
      assert_error(&r, SBX_EINVAL, false, "http_proxy");
    drop(&r);
  }
  /* By a domain. Not every libcurl knows the address of the name. */
  static const char *const domains[] = {"localhost", ".LocalHost"};
  for (size_t i = 0; i < sizeof domains / sizeof domains[0]; i++) {
    setenv("http_proxy", "http://user:se@cret@127.0.0.1:1", 1);
    setenv("NO_PROXY", domains[i], 1);
    sbx_http_request request = to(f, "GET", server.http, "/small");
    request.url = sbx_slice_str("http://x.localhost:1/");
    run(f, NULL, &request, &r);
    unsetenv("NO_PROXY");
    unsetenv("http_proxy");
    assert_error(&r, SBX_ENET, false, "");
    drop(&r);
  }
}

static void test_proxy_by_option(void **state) {
  fixture *f = *state;
  reply r = {0};
  char proxy[128];
  snprintf(proxy, sizeof proxy, "http://127.0.0.1:%u", (unsigned)server.proxy);
  const sbx_http_options options = {.proxy = sbx_slice_str(proxy)};
  sbx_http_client *client = new_client(&options);
  int64_t before = count(f, "forwards", NULL);
  setenv("NO_PROXY", "*", 1); /* concerns the environment's proxies */
  sbx_http_request request = to(f, "GET", server.http, "/small");
  run(f, client, &request, &r);
  unsetenv("NO_PROXY");
  assert_ok(&r, 200);
  drop(&r);
  assert_int_equal(count(f, "forwards", NULL), before + 1);
  /* The proxy refuses: nothing of the request has left. */
  request.url = sbx_slice_str("https://refused.test/small");
  run(f, client, &request, &r);
  assert_error(&r, SBX_ENET, false, "403");
  drop(&r);
  sbx_http_client_free(client);

  const sbx_http_options none = {.no_proxy = true};
  client = new_client(&none);
  setenv("http_proxy", proxy, 1);
  request = to(f, "GET", server.http, "/small");
  run(f, client, &request, &r);
  unsetenv("http_proxy");
  assert_ok(&r, 200);
  drop(&r);
  assert_int_equal(count(f, "forwards", NULL), before + 1);
  sbx_http_client_free(client);
}

static void test_unreachable_proxy(void **state) {
  static const struct {
    const char *proxy, *text;
  } cases[] = {
      {"http://user:secret@127.0.0.1:1", "GET somewhere.test:80: cannot connect"},
      /* No resolver takes a label of 64 characters: it fails without a query. */
      {"http://secretsecretsecretsecretsecretsecretsecretsecretsecretsecretaaaa.test:1", "resolve"},
  };
  fixture *f = *state;
  reply r = {0};
  for (size_t i = 0; i < 2; i++) {
    const sbx_http_options options = {.proxy = sbx_slice_str(cases[i].proxy)};
    sbx_http_request request = {.method = "GET", .url = sbx_slice_str("http://somewhere.test/")};
    sbx_http_client *client = new_client(&options);
    run(f, client, &request, &r);
    assert_error(&r, SBX_ENET, false, cases[i].text);
    assert_null(strstr(r.err.message, "user:"));
    drop(&r);
    sbx_http_client_free(client);
  }
  sbx_http_client *client = NULL;
  const sbx_http_options bad = {.proxy = sbx_slice_str("http://a\r\nb")};
  assert_int_equal(sbx_http_client_new(&client, &bad, NULL), SBX_EINVAL);
}

/* The last one gets as far as libcurl. */
static void test_unusable_proxy(void **state) {
  static const char *const urls[] = {"ftp://user:secret@x", "http://user:sec@ret@h:1",
                                     "http://user:secret@[secret]:1"};
  fixture *f = *state;
  reply r = {0};
  for (size_t i = 0; i < 3; i++) {
    const sbx_http_options none = {.version = SBX_HTTP_1_1};
    sbx_http_request request = {.method = "GET", .url = sbx_slice_str("http://somewhere.test/")};
    setenv("http_proxy", urls[i], 1);
    sbx_http_client *client = new_client(&none);
    run(f, client, &request, &r);
    unsetenv("http_proxy");
    assert_error(&r, SBX_EINVAL, false, "proxy's URL");
    assert_null(strstr(r.err.message, "sec"));
    drop(&r);
    sbx_http_client_free(client);
  }
  sbx_http_client *client = NULL;
  const sbx_http_options bad = {.proxy = sbx_slice_str(urls[0])};
  assert_int_equal(sbx_http_client_new(&client, &bad, NULL), SBX_EINVAL);
}

/* ---- libraries ---- */

/* Runs this program again with another library; its exit status. */
static int run_again(const char *library, const char *mode) {
  char self[4096];
  char argument[16];
  ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(len > 0);
  self[len] = '\0';
  snprintf(argument, sizeof argument, "%s", mode);
  char *argv[] = {self, argument, NULL};
  pid_t pid;
  int status = 0;
  setenv("SBX_LIBCURL", library, 1);
  int rc = posix_spawn(&pid, self, NULL, NULL, argv, environ);
  unsetenv("SBX_LIBCURL");
  assert_int_equal(rc, 0);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_missing_library(void **state) {
  (void)state;
  assert_int_equal(run_again("/nonexistent/libcurl.so.4", "missing"), 0);
  assert_int_equal(run_again("libm.so.6", "missing"), 0); /* a library, but another one */
}

static void test_other_flavour(void **state) {
  (void)state;
  int rc = run_again("libcurl-gnutls.so.4", "all");
  if (rc == 77)
    skip();
  assert_int_equal(rc, 0);
}

/* In the child: the first exchange says what is missing, and nothing else has happened. */
static int expect_missing(void) {
  void *state = NULL;
  reply r = {0};
  http_setup(&state);
  get(state, 1, "/", &r);
  bool right = r.err.code == SBX_ELIBRARY && !r.sent_maybe && strstr(r.err.message, "libcurl");
  drop(&r);
  http_teardown(&state);
  return right ? 0 : 1;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      HTTP_TEST(test_http2_prior_knowledge),
      HTTP_TEST(test_http2_over_tls),
      HTTP_TEST(test_http2_failures),
      HTTP_TEST(test_prior_knowledge_of_the_wrong_server),
      HTTP_TEST(test_private_ca_by_option),
      HTTP_TEST(test_untrusted_certificates),
      HTTP_TEST(test_ca_by_environment),
      HTTP_TEST(test_extra_certificates_keep_the_default),
      HTTP_TEST(test_certificates_without_descriptors),
      HTTP_TEST(test_trust_is_not_shared),
      HTTP_TEST(test_replaced_bundle),
      HTTP_TEST(test_bad_ca_option),
      HTTP_TEST(test_https_proxy_by_environment),
      HTTP_TEST(test_http_proxy_by_environment),
      HTTP_TEST(test_unusable_proxy_by_environment),
      HTTP_TEST(test_proxy_by_option),
      HTTP_TEST(test_unreachable_proxy),
      HTTP_TEST(test_unusable_proxy),
  };
  const struct CMUnitTest library_tests[] = {
      cmocka_unit_test(test_missing_library),
      cmocka_unit_test(test_other_flavour),
  };
  const char *library = getenv("SBX_LIBCURL");
  const sbx_curl *curl;
  clean_environment();
  if (argc > 1 && strcmp(argv[1], "missing") == 0)
    return expect_missing();
  if (argc > 1 && library != NULL && dlopen(library, RTLD_LAZY | RTLD_LOCAL) == NULL)
    return 77;
  if (sbx_curl_load(&curl, library, NULL) != SBX_OK)
    return 1;
  int failed = cmocka_run_group_tests(tests, http_group_setup, http_group_teardown);
  if (argc == 1)
    failed += cmocka_run_group_tests(library_tests, NULL, NULL);
  return failed;
}
