/* Tests of the egress proxy's rules: which hosts, which ports, which addresses. */
#include "providers/local/egress_rules.h"

#include "support/core_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static sbx__egress_rules rules_of(const char *const *texts) {
  sbx__egress_rules rules;
  sbx_err err;
  sbx__egress_rules_init(&rules);
  for (; *texts != NULL; texts++) {
    if (sbx__egress_rules_add(&rules, sbx_slice_str(*texts), &err) != SBX_OK)
      fail_msg("%s: %s", *texts, err.message);
  }
  return rules;
}

static sbx__egress_target target_of(const char *text) {
  sbx__egress_target target;
  if (!sbx__egress_target_parse(&target, sbx_slice_str(text), 443))
    fail_msg("%s", text);
  return target;
}

static void test_hosts_and_ports(void **state) {
  static const char *const listed[] = {
      "Example.com",    "*.deep.example.org",  "api.test:8443", "10.1.2.3",
      "[fd00::1]:9000", "192.168.0.0/16:5432", "2001:db8::/32", NULL};
  static const struct {
    const char *target;
    sbx__egress_verdict verdict;
  } cases[] = {
      {"example.com", SBX__EGRESS_ALLOWED},
      {"EXAMPLE.COM.:443", SBX__EGRESS_ALLOWED},
      {"example.com:80", SBX__EGRESS_ALLOWED},
      {"example.com:22", SBX__EGRESS_OTHER_PORT},
      {"www.example.com", SBX__EGRESS_NOT_LISTED},
      {"notexample.com", SBX__EGRESS_NOT_LISTED},
      {"example.com.evil.test", SBX__EGRESS_NOT_LISTED},
      {"example.co", SBX__EGRESS_NOT_LISTED},
      {"a.deep.example.org", SBX__EGRESS_ALLOWED},
      {"a.b.deep.example.org", SBX__EGRESS_ALLOWED},
      {"deep.example.org", SBX__EGRESS_NOT_LISTED},
      {"xdeep.example.org", SBX__EGRESS_NOT_LISTED},
      {"api.test:8443", SBX__EGRESS_ALLOWED},
      {"api.test", SBX__EGRESS_OTHER_PORT},
      {"10.1.2.3", SBX__EGRESS_ALLOWED},
      {"10.1.2.4", SBX__EGRESS_LITERAL},
      {"10.1.2.3:81", SBX__EGRESS_OTHER_PORT},
      {"[fd00::1]:9000", SBX__EGRESS_ALLOWED},
      {"[fd00::1]", SBX__EGRESS_OTHER_PORT},
      {"[fd00::2]:9000", SBX__EGRESS_LITERAL},
      {"192.168.7.7:5432", SBX__EGRESS_ALLOWED},
      {"192.169.7.7:5432", SBX__EGRESS_LITERAL},
      {"[2001:db8:1::1]", SBX__EGRESS_ALLOWED},
      {"93.184.216.34", SBX__EGRESS_LITERAL},
      {"[::ffff:10.1.2.3]", SBX__EGRESS_LITERAL},
  };
  (void)state;
  sbx__egress_rules rules = rules_of(listed);
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx__egress_target target = target_of(cases[i].target);
    if (sbx__egress_check(&rules, &target) != cases[i].verdict)
      fail_msg("%s", cases[i].target);
  }
  sbx__egress_rules_deinit(&rules);
}

static void test_what_is_no_target(void **state) {
  static const char *const cases[] = {
      "",
      ".",
      ":443",
      "example.com:",
      "example.com:0",
      "example.com:080",
      "example.com:65536",
      "example.com:4 3",
      "example.com:443:443",
      "exa mple.com",
      "ex\tample.com",
      "user@example.com",
      "a..b",
      ".example.com",
      "example.com..",
      ("b\xc3\xbc"
       "cher.test"),
      "*.example.com",
      "a/b",
      /* what inet_aton() takes for an address */
      "127.1",
      "2130706433",
      "0x7f000001",
      "0x7f.0.0.1",
      "0177.0.0.1",
      "127.0.0.01",
      "127.0.0.1.",
      "1.2.3.4.5",
      "foo.0x1",
      "foo.127",
      "0x",
      "256.1.1.1",
      "[::1",
      "[::1]443",
      "[fe80::1%eth0]",
      "[127.0.0.1]",
      "[example.com]",
      "::1",
      "[]",
      "[::1]:",
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.test",
  };
  sbx__egress_target target;
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    if (sbx__egress_target_parse(&target, sbx_slice_str(cases[i]), 443))
      fail_msg("%s", cases[i]);
  }
  assert_false(sbx__egress_target_parse(&target, LIT("a\0b.test"), 443));
  assert_false(sbx__egress_target_parse(&target, LIT("127.0.0.1\0.test"), 443));
  assert_false(sbx__egress_target_parse(&target, LIT("example.com"), 0));
  char text[300];
  memset(text, 'a', sizeof text);
  for (size_t i = 50; i < sizeof text; i += 50)
    text[i] = '.';
  assert_true(sbx__egress_target_parse(&target, sbx_slice_of(text, 253), 443));
  assert_false(sbx__egress_target_parse(&target, sbx_slice_of(text, 254), 443));
}

static void test_what_is_no_rule(void **state) {
  static const char *const cases[] = {"",
                                      "*",
                                      "*.",
                                      "https://example.com",
                                      "a.test/x",
                                      "*.*.test",
                                      "a.*.test",
                                      "a.test:0",
                                      "a.test:*",
                                      "10.0.0.0/33",
                                      "10.0.0.0/",
                                      "10.0.0.0/x",
                                      "127.1",
                                      "::1/129",
                                      "[10.0.0.1]",
                                      "canary key=secret",
                                      ("b\xc3\xbc"
                                       "cher.test"),
                                      "fd00::1:2:3:4:5:6:7:8"};
  sbx__egress_rules rules;
  sbx_err err;
  (void)state;
  sbx__egress_rules_init(&rules);
  for (size_t i = 0; i < COUNT(cases); i++) {
    if (sbx__egress_rules_add(&rules, sbx_slice_str(cases[i]), &err) != SBX_EINVAL)
      fail_msg("%s", cases[i]);
    assert_non_null(strstr(err.message, "*.example.com"));
  }
  assert_int_equal(rules.count, 0);
  for (size_t i = 0; i < SBX__EGRESS_RULES_MAX; i++)
    assert_int_equal(sbx__egress_rules_add(&rules, LIT("a.test"), &err), SBX_OK);
  assert_int_equal(sbx__egress_rules_add(&rules, LIT("a.test"), &err), SBX_ETOOBIG);
  sbx__egress_rules_deinit(&rules);
}

static sbx__egress_addr addr_of(const char *text) {
  struct sockaddr_in v4 = {.sin_family = AF_INET};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
  sbx__egress_addr addr;
  if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
    assert_true(sbx__egress_addr_of(&addr, (struct sockaddr *)&v4));
  } else {
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    assert_true(sbx__egress_addr_of(&addr, (struct sockaddr *)&v6));
  }
  return addr;
}

static void test_kinds_of_addresses(void **state) {
  static const struct {
    const char *addr, *kind;
  } cases[] = {
      {"0.0.0.0", "unspecified"},
      {"0.1.2.3", "unspecified"},
      {"10.255.0.1", "private"},
      {"100.63.255.255", NULL},
      {"100.64.0.1", "carrier-grade NAT"},
      {"100.100.100.200", "carrier-grade NAT"},
      {"100.127.255.255", "carrier-grade NAT"},
      {"100.128.0.0", NULL},
      {"127.0.0.1", "loopback"},
      {"127.255.255.254", "loopback"},
      {"128.0.0.1", NULL},
      {"168.63.129.16", "cloud metadata"},
      {"169.254.169.254", "link-local"},
      {"172.15.255.255", NULL},
      {"172.16.0.1", "private"},
      {"172.31.255.255", "private"},
      {"172.32.0.1", NULL},
      {"192.0.0.192", "reserved"},
      {"192.0.2.1", "documentation"},
      {"192.168.1.1", "private"},
      {"198.19.0.1", "benchmark"},
      {"198.20.0.1", NULL},
      {"203.0.113.9", "documentation"},
      {"223.255.255.255", NULL},
      {"224.0.0.1", "multicast"},
      {"240.0.0.1", "reserved"},
      {"255.255.255.255", "reserved"},
      {"93.184.216.34", NULL},
      {"::", "unspecified"},
      {"::1", "loopback"},
      {"::2", "IPv4-compatible"},
      {"::127.0.0.1", "IPv4-compatible"},
      {"::ffff:127.0.0.1", "IPv4-mapped"},
      {"::ffff:93.184.216.34", "IPv4-mapped"},
      {"64:ff9b::7f00:1", "NAT64"},
      {"64:ff9b:1::1", "NAT64"},
      {"64:ff9c::1", "reserved"},
      {"100::1", "reserved"},
      {"1fff::1", "reserved"},
      {"2001:0:1::1", "Teredo"},
      {"2001:db8::1", "documentation"},
      {"2001:1ff::1", "reserved"},
      {"2001:200::1", NULL},
      {"2001:4860:4860::8888", NULL},
      {"2002:7f00:1::", "6to4"},
      {"2606:2800:220:1:248:1893:25c8:1946", NULL},
      {"3fff::1", "documentation"},
      {"4000::1", "reserved"},
      {"fc00::1", "unique local"},
      {"fd00:ec2::254", "unique local"},
      {"fe80::1", "link-local"},
      {"fec0::1", "site-local"},
      {"ff02::1", "multicast"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx__egress_addr addr = addr_of(cases[i].addr);
    char text[SBX__EGRESS_ADDR_TEXT];
    const char *kind = sbx__egress_addr_kind(&addr);
    if ((kind == NULL) != (cases[i].kind == NULL) || (kind && strcmp(kind, cases[i].kind) != 0))
      fail_msg("%s: %s", cases[i].addr, kind ? kind : "NULL");
    sbx__egress_addr_text(text, &addr);
    assert_string_equal(text, cases[i].addr);
  }
  sbx__egress_addr addr;
  struct sockaddr other = {.sa_family = AF_UNIX};
  assert_false(sbx__egress_addr_of(&addr, &other));
}

/* That a name is listed says nothing of where it may lead. */
static void test_addresses_behind_names(void **state) {
  static const char *const listed[] = {"internal.test", "10.1.0.0/16", "127.0.0.1:8080", NULL};
  static const struct {
    const char *addr;
    uint16_t port;
    bool allowed;
  } cases[] = {
      {"93.184.216.34", 443, true},    {"93.184.216.34", 9999, true},
      {"10.1.2.3", 443, true},         {"10.1.2.3", 8080, false},
      {"10.2.2.3", 443, false},        {"127.0.0.1", 8080, true},
      {"127.0.0.1", 443, false},       {"::1", 443, false},
      {"::ffff:10.1.2.3", 443, false}, {"169.254.169.254", 80, false},
  };
  (void)state;
  sbx__egress_rules rules = rules_of(listed);
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx__egress_addr addr = addr_of(cases[i].addr);
    if (sbx__egress_check_addr(&rules, &addr, cases[i].port) != cases[i].allowed)
      fail_msg("%s", cases[i].addr);
  }
  sbx__egress_rules_deinit(&rules);
}

static void test_targets_as_text(void **state) {
  (void)state;
  static const char *const cases[][2] = {{"Example.COM.", "example.com:443"},
                                         {"[FD00:0::1]:80", "[fd00::1]:80"},
                                         {"10.0.0.1", "10.0.0.1:443"}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx__egress_target target = target_of(cases[i][0]);
    sbx_buf text;
    sbx_buf_init(&text, 512);
    assert_int_equal(sbx__egress_target_write(&text, &target), SBX_OK);
    assert_string_equal(text.ptr, cases[i][1]);
    sbx_buf_deinit(&text);
  }
  sbx__egress_target target = target_of("example.com");
  assert_true(sbx__egress_target_is(&target, LIT("EXAMPLE.com.")));
  assert_false(sbx__egress_target_is(&target, LIT("example.com\0")));
  assert_false(sbx__egress_target_is(&target, LIT("")));
  target = target_of("10.0.0.1");
  assert_false(sbx__egress_target_is(&target, LIT("10.0.0.1")));
}

static int add_once(void *arg) {
  sbx__egress_rules rules;
  sbx__egress_rules_init(&rules);
  int rc = SBX_OK;
  for (int i = 0; rc == SBX_OK && i < 5; i++)
    rc = sbx__egress_rules_add(&rules, *(sbx_slice *)arg, NULL);
  sbx__egress_rules_deinit(&rules);
  return rc;
}

static void test_no_memory(void **state) {
  sbx_slice text = LIT("*.example.com");
  (void)state;
  assert_true(each_allocation_fails(add_once, &text) > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(test_hosts_and_ports, no_leaks),
      cmocka_unit_test_teardown(test_what_is_no_target, no_leaks),
      cmocka_unit_test_teardown(test_what_is_no_rule, no_leaks),
      cmocka_unit_test_teardown(test_kinds_of_addresses, no_leaks),
      cmocka_unit_test_teardown(test_addresses_behind_names, no_leaks),
      cmocka_unit_test_teardown(test_targets_as_text, no_leaks),
      cmocka_unit_test_teardown(test_no_memory, no_leaks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
