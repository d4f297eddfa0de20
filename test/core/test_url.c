/* Tests of core/url: what is a base URL, what is refused, and what is built from it. */
#include "core/url.h"

#include "support/core_test.h"

static void test_parts(void **state) {
  (void)state;
  static const struct {
    const char *text;
    bool https;
    const char *host;
    unsigned port;
    bool ipv6;
    const char *path, *query;
  } cases[] = {
      {"https://api.example.com", true, "api.example.com", 443, false, "", ""},
      {"http://api.example.com/", false, "api.example.com", 80, false, "/", ""},
      {"HTTPS://Api.Example.COM:8443/v1/", true, "Api.Example.COM", 8443, false, "/v1/", ""},
      {"http://localhost:1", false, "localhost", 1, false, "", ""},
      {"http://h:65535", false, "h", 65535, false, "", ""},
      {"http://h:00080", false, "h", 80, false, "", ""},
      {"http://127.0.0.1:8080/a/b?c=d&e", false, "127.0.0.1", 8080, false, "/a/b", "c=d&e"},
      {"http://h?q", false, "h", 80, false, "", "q"},
      {"http://h/?", false, "h", 80, false, "/", ""},
      {"http://h/p?q?r/s", false, "h", 80, false, "/p", "q?r/s"},
      {"http://[::1]", false, "::1", 80, true, "", ""},
      {"https://[2001:db8::A]:444/x", true, "2001:db8::A", 444, true, "/x", ""},
      {"http://[::ffff:127.0.0.1]/", false, "::ffff:127.0.0.1", 80, true, "/", ""},
      {"http://xn--bcher-kva.example/", false, "xn--bcher-kva.example", 80, false, "/", ""},
      {"http://a_b-c.d1./", false, "a_b-c.d1.", 80, false, "/", ""},
      {"http://1host/", false, "1host", 80, false, "/", ""},
      {"http://3.example.c0m/", false, "3.example.c0m", 80, false, "/", ""},
      {"http://h/a%20b;c=1,2/@:!$&'()*+~", false, "h", 80, false, "/a%20b;c=1,2/@:!$&'()*+~", ""},
      {"http://h//a///b/.../..x/.y", false, "h", 80, false, "//a///b/.../..x/.y", ""},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_slice text = tight_copy(sbx_slice_str(cases[i].text));
    sbx_url url;
    sbx_err err = {0};
    if (sbx_url_parse(&url, text, &err) != SBX_OK)
      fail_msg("%s: %s", cases[i].text, err.message);
    assert_int_equal(url.https, cases[i].https);
    assert_slice(url.host, sbx_slice_str(cases[i].host));
    assert_int_equal(url.port, cases[i].port);
    assert_int_equal(url.ipv6, cases[i].ipv6);
    assert_slice(url.path, sbx_slice_str(cases[i].path));
    assert_slice(url.query, sbx_slice_str(cases[i].query));
    tight_free(text);
  }
}

static void test_refusals(void **state) {
  (void)state;
  static const sbx_slice bad[] = {
      BYTES(""),
      BYTES("http"),
      BYTES("http:"),
      BYTES("http:/h"),
      BYTES("http:h"),
      BYTES("//h"),
      BYTES("h"),
      BYTES("/p"),
      BYTES("ftp://h"),
      BYTES("file:///p"),
      BYTES("httpx://h"),
      BYTES(" http://h"),
      BYTES("http ://h"),
      BYTES("http://"),
      BYTES("http:///p"),
      BYTES("http://?q"),
      BYTES("http://:80"),
      BYTES("http://."),
      BYTES("http://.h"),
      BYTES("http://a..b"),
      BYTES("http://-a"),
      BYTES("http://a-"),
      BYTES("http://a-.b"),
      BYTES("http://a b"),
      BYTES("http://a%41"),
      BYTES("http://a\\b"),
      BYTES("http://a,b"),
      BYTES("http://b\xC3\xBC"
            "cher.example"),
      /* user and password, also where another parser would find them */
      BYTES("http://u@h"),
      BYTES("http://u:p@h"),
      BYTES("http://@h"),
      BYTES("http://h:80@evil.example/"),
      BYTES("http://h\\@evil.example/"),
      /* ports */
      BYTES("http://h:"),
      BYTES("http://h:/"),
      BYTES("http://h:0"),
      BYTES("http://h:65536"),
      BYTES("http://h:99999"),
      BYTES("http://h:000080"),
      BYTES("http://h:80a"),
      BYTES("http://h:-1"),
      BYTES("http://h:+1"),
      BYTES("http://h: 80"),
      BYTES("http://h:80:80"),
      BYTES("http://::1/"),
      /* numbers that a resolver would take for an address */
      BYTES("http://1"),
      BYTES("http://2130706433/"),
      BYTES("http://127.1/"),
      BYTES("http://0x7f.1/"),
      BYTES("http://0x7f000001/"),
      BYTES("http://127.0.0.0x1/"),
      BYTES("http://0x/"),
      BYTES("http://127.0.0.1./"),
      BYTES("http://127.0.0.256/"),
      BYTES("http://127.0.0.01/"),
      BYTES("http://1.2.3.4.5/"),
      /* IPv6 */
      BYTES("http://["),
      BYTES("http://[]"),
      BYTES("http://[::1"),
      BYTES("http://[::1]x"),
      BYTES("http://[::1]80"),
      BYTES("http://[::1]:"),
      BYTES("http://[::g]"),
      BYTES("http://[::1%25eth0]"),
      BYTES("http://[fe80::1%eth0]"),
      BYTES("http://[127.0.0.1]"),
      BYTES("http://[v1.x]"),
      BYTES("http://[:::]"),
      BYTES("http://[::1\0]"),
      BYTES("http://[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc]"),
      /* bytes that end a line, hide or need encoding */
      BYTES("http://h/a\r\nX: y"),
      BYTES("http://h/a\n"),
      BYTES("http://h/\0"),
      BYTES("http://h\0.evil.example"),
      BYTES("http://h/a b"),
      BYTES("http://h/\t"),
      BYTES("http://h/\x7F"),
      BYTES("http://h/\xC3\xA4"),
      BYTES("http://h/\""),
      BYTES("http://h/<a>"),
      BYTES("http://h/{a}"),
      BYTES("http://h/a|b"),
      BYTES("http://h/a\\b"),
      BYTES("http://h/^"),
      BYTES("http://h/`"),
      BYTES("http://h/[a]"),
      BYTES("http://h/?a b"),
      BYTES("http://h/?\xC3\xA4"),
      BYTES("http://h/?a\r\n"),
      BYTES("http://h/%"),
      BYTES("http://h/%4"),
      BYTES("http://h/%GG"),
      BYTES("http://h/?%"),
      BYTES("http://h/%%41"),
      BYTES("http://h/#"),
      BYTES("http://h/#f"),
      BYTES("http://h#f"),
      BYTES("http://h/?q#f"),
      /* dot segments, in each spelling */
      BYTES("http://h/."),
      BYTES("http://h/.."),
      BYTES("http://h/a/../b"),
      BYTES("http://h/a/./b"),
      BYTES("http://h/%2e"),
      BYTES("http://h/%2E%2e/b"),
      BYTES("http://h/.%2e/b"),
      BYTES("http://h/a/%2e."),
  };
  for (size_t i = 0; i < COUNT(bad); i++) {
    sbx_slice text = tight_copy(bad[i]);
    sbx_url url = {.port = 7};
    sbx_err err = {0};
    if (sbx_url_parse(&url, text, &err) != SBX_EINVAL)
      fail_msg("taken: %.*s", (int)bad[i].len, bad[i].ptr);
    assert_int_equal(err.code, SBX_EINVAL);
    assert_int_equal(url.port, 7);
    assert_int_equal(sbx_url_parse(&url, text, NULL), SBX_EINVAL);
    tight_free(text);
  }
}

static void test_message_tells_no_secret(void **state) {
  (void)state;
  sbx_url url;
  sbx_err err;
  assert_int_equal(sbx_url_parse(&url, LIT("https://user:sk-canary@h/sk-canary"), &err),
                   SBX_EINVAL);
  assert_null(strstr(err.message, "canary"));
  assert_null(strstr(err.message, "user:"));
  assert_int_equal(sbx_url_parse(&url, LIT("https://h/sk canary?sk-canary"), &err), SBX_EINVAL);
  assert_null(strstr(err.message, "canary"));
}

static void test_host_lengths(void **state) {
  (void)state;
  char text[400];
  sbx_url url;
  for (size_t label = 62; label <= 64; label++) {
    memcpy(text, "http://", 7);
    memset(text + 7, 'a', label);
    assert_int_equal(sbx_url_parse(&url, sbx_slice_of(text, 7 + label), NULL),
                     label <= 63 ? SBX_OK : SBX_EINVAL);
  }
  for (size_t host = 252; host <= 254; host++) {
    for (size_t i = 0; i < host; i++)
      text[7 + i] = i % 32 == 31 ? '.' : 'a';
    assert_int_equal(sbx_url_parse(&url, sbx_slice_of(text, 7 + host), NULL),
                     host <= 253 ? SBX_OK : SBX_EINVAL);
  }
}

static void test_join(void **state) {
  (void)state;
  static const struct {
    const char *base, *path, *joined;
  } cases[] = {
      {"https://h", "/a", "https://h/a"},
      {"https://h/", "/a", "https://h/a"},
      {"https://h/", "", "https://h"},
      {"https://h:443/p/", "/a/b?c=d", "https://h/p/a/b?c=d"},
      {"http://h:80/p//", "/a/", "http://h/p/a/"},
      {"http://h:443/p/q", "/a", "http://h:443/p/q/a"},
      {"https://h:80", "/a", "https://h:80/a"},
      {"http://[::1]:8080/x", "/a%2Fb", "http://[::1]:8080/x/a%2Fb"},
      {"http://[::1]", "/", "http://[::1]/"},
      {"HTTP://Host", "?q=1", "http://Host?q=1"},
      {"http://h/?", "/a", "http://h/a"},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_url base, again;
    sbx_buf out;
    sbx_buf_init(&out, 200);
    assert_int_equal(sbx_url_parse(&base, sbx_slice_str(cases[i].base), NULL), SBX_OK);
    assert_int_equal(sbx_url_join(&out, &base, sbx_slice_str(cases[i].path), NULL), SBX_OK);
    assert_slice(sbx_buf_slice(&out), sbx_slice_str(cases[i].joined));
    assert_int_equal(sbx_url_parse(&again, sbx_buf_slice(&out), NULL), SBX_OK);
    sbx_buf_deinit(&out);
  }
}

static void test_join_refusals(void **state) {
  (void)state;
  static const sbx_slice bad[] = {BYTES("a"),    BYTES("//h/../a"), BYTES("/a b"),  BYTES("/.."),
                                  BYTES("/a\r"), BYTES("/a#b"),     BYTES("/a?b#"), BYTES("/%"),
                                  BYTES("/\0"),  BYTES("@evil"),    BYTES(":1/a"),  BYTES(".evil")};
  sbx_url base;
  sbx_err err;
  sbx_buf out;
  sbx_buf_init(&out, 200);
  assert_int_equal(sbx_url_parse(&base, LIT("https://h/p"), NULL), SBX_OK);
  for (size_t i = 0; i < COUNT(bad); i++) {
    assert_int_equal(sbx_url_join(&out, &base, bad[i], &err), SBX_EINVAL);
    assert_int_equal(out.len, 0);
  }
  assert_int_equal(sbx_url_parse(&base, LIT("https://h/p?q"), NULL), SBX_OK);
  assert_int_equal(sbx_url_join(&out, &base, LIT("/a"), &err), SBX_EINVAL);
  assert_int_equal(sbx_url_parse(&base, LIT("https://h/p"), NULL), SBX_OK);
  sbx_buf_init(&out, 10);
  assert_int_equal(sbx_url_join(&out, &base, LIT("/abc"), &err), SBX_ETOOBIG);
  assert_int_equal(err.code, SBX_ETOOBIG);
  sbx_buf_deinit(&out);
}

static void test_segments_and_query(void **state) {
  (void)state;
  sbx_buf out;
  sbx_buf_init(&out, 200);
  sbx_buf_append_str(&out, "/sandboxes");
  sbx_url_append_segment(&out, LIT("a/b ?#%\xC3\xA4\r\n\0"));
  sbx_url_append_segment(&out, LIT("..."));
  sbx_url_append_query(&out, LIT("path"), LIT("/x y&z=1"));
  sbx_url_append_query(&out, LIT("a&b"), LIT(""));
  assert_int_equal(out.error, SBX_OK);
  assert_slice(sbx_buf_slice(&out), LIT("/sandboxes/a%2Fb%20%3F%23%25%C3%A4%0D%0A%00/..."
                                        "?path=%2Fx%20y%26z%3D1&a%26b="));
  sbx_buf_deinit(&out);
}

static void test_proxies(void **state) {
  (void)state;
  static const char *const good[] = {
      "proxy",
      "proxy:3128",
      "http://proxy:3128/",
      "HTTPS://user:pass@proxy.example.com:8443",
      "socks5h://127.0.0.1:1080",
      "socks4a://u@h",
      "http://user:p%40ss%20word@[::1]:3128",
      "http://dom%5Cuser:100%@10.0.0.1:1",
      "user:secret@proxy:1",
      "http://user:sec:ret!$&'()*+,;=@p_x-y.test:80",
      "socks://127.0.0.1:1080/", /* as GNOME writes it; SOCKS4 to libcurl */
      "http://proxy:",
      "http://proxy:/",
      "http://[fe80::1%25br-0a1b_2c~d]:3128",
  };
  static const sbx_slice bad[] = {
      BYTES(""),
      BYTES("http://"),
      BYTES("ftp://user:secret@x"),
      BYTES("://x"),
      BYTES("http://user:secret@bad host"),
      BYTES("http://user:se@cret@h:1"),
      BYTES("http://user:sec/ret@h:1"),
      BYTES("http://user:sec#ret@h:1"),
      BYTES("http://user:secret @h"),
      BYTES("http://user:secret%00@h"),
      BYTES("http://user:secret%0a@h"),
      BYTES("http://user:secret%7F@h"),
      BYTES("http://user:secret@h:99999"),
      BYTES("http://user:secret@h:0"),
      BYTES("http://user:secret@h:secret"),
      BYTES("http://user:secret@"),
      BYTES("http://user:secret@[::1"),
      BYTES("http://user:secret@h\0x"),
      BYTES("http://h/a b"),
  };
  for (size_t i = 0; i < COUNT(good); i++) {
    sbx_err err = {0};
    assert_int_equal(sbx_url_check_proxy(sbx_slice_str(good[i]), &err), SBX_OK);
  }
  for (size_t i = 0; i < COUNT(bad); i++) {
    sbx_err err = {0};
    assert_int_equal(sbx_url_check_proxy(bad[i], &err), SBX_EINVAL);
    assert_non_null(strstr(err.message, "proxy's URL"));
    assert_null(strstr(err.message, "secret"));
  }
}

static void test_weaker(void **state) {
  static const struct {
    const char *other;
    bool weaker;
  } cases[] = {{"https://h", false},         {"http://h", true},
               {"http://10.0.0.1", true},    {"http://127.1.2.3:80/x", false},
               {"http://127.0.0.1.h", true}, {"http://LOCALHOST", false},
               {"http://localhost.h", true}, {"http://[::1]:1", false},
               {"http://[::2]", true}};
  (void)state;
  sbx_url safe, plain, other;
  assert_int_equal(sbx_url_parse(&safe, LIT("https://api"), NULL), SBX_OK);
  assert_int_equal(sbx_url_parse(&plain, LIT("http://api"), NULL), SBX_OK);
  for (size_t i = 0; i < COUNT(cases); i++) {
    assert_int_equal(sbx_url_parse(&other, sbx_slice_str(cases[i].other), NULL), SBX_OK);
    assert_true(sbx_url_is_weaker(&other, &safe) == cases[i].weaker);
    assert_false(sbx_url_is_weaker(&other, &plain));
  }
}

/* An id from the network must not name another resource. */
static void test_segment_refusals(void **state) {
  (void)state;
  static const sbx_slice bad[] = {BYTES(""), BYTES("."), BYTES("..")};
  for (size_t i = 0; i < COUNT(bad); i++) {
    sbx_buf out;
    sbx_buf_init(&out, 200);
    sbx_buf_append_str(&out, "/x");
    assert_int_equal(sbx_url_append_segment(&out, bad[i]), SBX_EINVAL);
    assert_int_equal(sbx_url_append_query(&out, LIT("a"), LIT("b")), SBX_EINVAL);
    assert_slice(sbx_buf_slice(&out), LIT("/x"));
    sbx_buf_deinit(&out);
  }
}

static int build(void *arg) {
  const sbx_url *base = arg;
  sbx_err err = {0};
  sbx_buf path, out;
  sbx_buf_init(&path, 1000);
  sbx_buf_init(&out, 1000);
  sbx_url_append_segment(&path, LIT("a segment that is longer than the first block of a buffer"));
  int rc = sbx_url_append_query(&path, LIT("name"), LIT("value"));
  if (rc == SBX_OK) {
    rc = sbx_url_join(&out, base, sbx_buf_slice(&path), &err);
    assert_int_equal(err.code, rc);
  }
  sbx_buf_deinit(&path);
  sbx_buf_deinit(&out);
  return rc;
}

static void test_allocation_failure(void **state) {
  (void)state;
  sbx_url base;
  assert_int_equal(sbx_url_parse(&base, LIT("https://api.example.com:8443/prefix"), NULL), SBX_OK);
  assert_in_range(each_allocation_fails(build, &base), 3, 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(test_parts, no_leaks),
      cmocka_unit_test_teardown(test_refusals, no_leaks),
      cmocka_unit_test_teardown(test_message_tells_no_secret, no_leaks),
      cmocka_unit_test_teardown(test_host_lengths, no_leaks),
      cmocka_unit_test_teardown(test_join, no_leaks),
      cmocka_unit_test_teardown(test_join_refusals, no_leaks),
      cmocka_unit_test_teardown(test_segments_and_query, no_leaks),
      cmocka_unit_test_teardown(test_proxies, no_leaks),
      cmocka_unit_test_teardown(test_weaker, no_leaks),
      cmocka_unit_test_teardown(test_segment_refusals, no_leaks),
      cmocka_unit_test_teardown(test_allocation_failure, no_leaks),
  };
  return cmocka_run_group_tests_name("url", tests, NULL, NULL);
}
