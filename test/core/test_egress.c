/* Tests of the egress proxy with real sockets: a client and a host in threads of their own, the
 * proxy on the loop between them. A rule that lists 127.0.0.1 lets it reach the host. */
#include "providers/local/egress.h"

#include "core/err.h"
#include "support/hello.h"
#include "support/loop_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the host does with each connection. */
typedef enum host_kind {
  REPEAT, /* sends back what comes, until the end, and then "bye" */
  ANSWER, /* reads a head and `body` bytes, keeps them, and answers */
  GREET,  /* speaks first */
  MUTE,   /* neither reads nor writes */
  FLOOD,  /* sends 32 MiB */
  RESET,  /* answers a part, and breaks off */
  HURRY   /* answers, and breaks off at once: both before the proxy has looked */
} host_kind;

typedef struct fixture {
  uv_loop_t uv;
  sbx_loop *loop;
  sbx__egress *egress;
  uint16_t port; /* the proxy's */
  int host_fd;
  uint16_t host_port;
  host_kind kind;
  size_t body;
  char seen[65536]; /* what ANSWER has read */
  size_t seen_len;
  int served; /* connections */
  pthread_t host;
  int stop[2], done[2];
  bool finished;
  void (*run)(struct fixture *f);
  char text[65536]; /* what a client has got */
  size_t len;
} fixture;

static int listen_on_loopback(uint16_t *port) {
  struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof sa;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
  assert_int_equal(listen(fd, 64), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
  *port = ntohs(sa.sin_port);
  return fd;
}

/* ---- the host ------------------------------------------------------------------------------- */

static void send_all(int fd, const char *bytes, size_t len) {
  while (len > 0) {
    ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
    if (n <= 0)
      return;
    bytes += n;
    len -= (size_t)n;
  }
}

static void send_text(int fd, const char *text) {
  send_all(fd, text, strlen(text));
}

static void echo(int fd) {
  static char bytes[65536];
  ssize_t n;
  while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0)
    send_all(fd, bytes, (size_t)n);
  send_text(fd, "bye");
}

static void answer(fixture *f, int fd) {
  size_t need = SIZE_MAX;
  for (f->seen_len = 0; f->seen_len < need;) {
    ssize_t n = recv(fd, f->seen + f->seen_len, sizeof f->seen - 1 - f->seen_len, 0);
    if (n <= 0)
      return;
    f->seen_len += (size_t)n;
    f->seen[f->seen_len] = '\0';
    const char *end = strstr(f->seen, "\r\n\r\n");
    if (end != NULL)
      need = (size_t)(end - f->seen) + 4 + f->body;
  }
  send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
}

/* The loop waits while the host answers and breaks off. */
static void hurry(fixture *f, int fd) {
  struct linger reset = {.l_onoff = 1};
  char byte;
  recv(fd, &byte, 1, MSG_PEEK); /* the request is there */
  send_all(f->done[1], "p", 1);
  assert_int_equal(recv(f->done[1], &byte, 1, 0), 1);
  answer(f, fd);
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  close(fd);
  send_all(f->done[1], "g", 1);
}

static void serve(fixture *f, int fd) {
  static char zeros[65536];
  struct linger reset = {.l_onoff = 1};
  struct pollfd stop = {.fd = f->stop[0], .events = POLLIN};
  switch (f->kind) {
  case REPEAT:
    echo(fd);
    break;
  case ANSWER:
    answer(f, fd);
    break;
  case GREET:
    send_text(fd, "220 ready\r\n");
    echo(fd);
    break;
  case MUTE:
    poll(&stop, 1, -1);
    break;
  case FLOOD:
    for (int i = 0; i < 512; i++)
      send_all(fd, zeros, sizeof zeros);
    break;
  case RESET:
    send_text(fd, "HTTP/1.1 200 OK\r\n\r\npart");
    usleep(50000);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    break;
  case HURRY:
    hurry(f, fd);
    return;
  }
  close(fd);
}

static void *run_host(void *arg) {
  fixture *f = arg;
  for (;;) {
    struct pollfd both[] = {{.fd = f->host_fd, .events = POLLIN},
                            {.fd = f->stop[0], .events = POLLIN}};
    poll(both, 2, -1);
    if (both[1].revents != 0)
      return NULL;
    int fd = accept(f->host_fd, NULL, NULL);
    f->served++;
    serve(f, fd);
  }
}

/* ---- fixture -------------------------------------------------------------------------------- */

static void *run_client(void *arg) {
  fixture *f = arg;
  f->run(f);
  send_all(f->done[1], "x", 1);
  return NULL;
}

static void on_done(void *arg, int events) {
  char byte;
  fixture *f = arg;
  (void)events;
  assert_int_equal(recv(f->done[0], &byte, 1, 0), 1);
  f->finished = byte == 'x';
  if (byte == 'p') { /* the host asks for a pause */
    struct pollfd done = {.fd = f->done[0], .events = POLLIN};
    send_all(f->done[0], "k", 1);
    poll(&done, 1, -1);
    assert_int_equal(recv(f->done[0], &byte, 1, 0), 1);
  }
}

/* Starts the proxy: each rule may have one %u, the host's port. */
static void begin(fixture *f, const char *const *texts, const sbx__egress_limits *limits) {
  sbx__egress_rules rules;
  sbx_err err;
  char text[128];
  sbx__egress_rules_init(&rules);
  for (; *texts != NULL; texts++) {
    const char *mark = strstr(*texts, "%u");
    int before = mark != NULL ? (int)(mark - *texts) : (int)strlen(*texts);
    snprintf(text, sizeof text, "%.*s", before, *texts);
    if (mark != NULL)
      snprintf(text + before, sizeof text - (size_t)before, "%u", (unsigned)f->host_port);
    assert_int_equal(sbx__egress_rules_add(&rules, sbx_slice_str(text), &err), SBX_OK);
  }
  int fd = listen_on_loopback(&f->port);
  assert_int_equal(sbx__egress_start(&f->egress, f->loop, fd, &rules, limits, &err), SBX_OK);
}

/* Runs the loop while `run` is the client, in a thread of its own. */
static void play(fixture *f, void (*run)(fixture *f)) {
  pthread_t client;
  sbx_watch *watch;
  f->run = run;
  f->finished = false;
  sbx_loop_hold(f->loop);
  assert_int_equal(sbx_watch_start(&watch, f->loop, f->done[0], SBX_READABLE, on_done, f, NULL), 0);
  assert_int_equal(pthread_create(&client, NULL, run_client, f), 0);
  while (!f->finished)
    uv_run(&f->uv, UV_RUN_ONCE);
  pthread_join(client, NULL);
  sbx_watch_stop(watch);
  sbx_loop_release(f->loop);
}

/* Until the proxy has nothing open any more. */
static void settle(fixture *f) {
  uint64_t until = sbx_now_ms() + 10000;
  sbx_loop_hold(f->loop); /* else it would not even look */
  while (sbx__egress_get_totals(f->egress).open > 0 && sbx_now_ms() < until) {
    uv_run(&f->uv, UV_RUN_NOWAIT);
    usleep(1000);
  }
  sbx_loop_release(f->loop);
  assert_int_equal(sbx__egress_get_totals(f->egress).open, 0);
}

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  loop_open(&f->uv, &f->loop);
  f->host_fd = listen_on_loopback(&f->host_port);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, f->stop), 0);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, f->done), 0);
  assert_int_equal(pthread_create(&f->host, NULL, run_host, f), 0);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  sbx__egress_stop(f->egress);
  send_all(f->stop[1], "x", 1);
  pthread_join(f->host, NULL);
  loop_end(&f->uv, f->loop);
  for (int i = 0; i < 2; i++) {
    close(f->stop[i]);
    close(f->done[i]);
  }
  close(f->host_fd);
  free(f);
  return 0;
}

/* ---- the client ----------------------------------------------------------------------------- */

static int dial(const fixture *f) {
  struct sockaddr_in sa = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(f->port)};
  struct timeval limit = {.tv_sec = 20};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
  return fd;
}

/* Reads to the end, or until `enough` has come. Returns recv()'s last value. */
static ssize_t get(fixture *f, int fd, const char *enough) {
  ssize_t n = 1;
  f->text[f->len] = '\0';
  while ((enough == NULL || strstr(f->text, enough) == NULL) &&
         (n = recv(fd, f->text + f->len, sizeof f->text - 1 - f->len, 0)) > 0) {
    f->len += (size_t)n;
    f->text[f->len] = '\0';
  }
  return n;
}

/* Sends a request and reads the whole answer. `%u` in it: the host's port. */
static void ask(fixture *f, const char *request) {
  char text[1024];
  const char *mark = strstr(request, "%u");
  int before = mark != NULL ? (int)(mark - request) : (int)strlen(request);
  snprintf(text, sizeof text, "%.*s", before, request);
  if (mark != NULL)
    snprintf(text + before, sizeof text - (size_t)before, "%u%s", (unsigned)f->host_port, mark + 2);
  int fd = dial(f);
  send_text(fd, text);
  f->len = 0;
  get(f, fd, NULL);
  close(fd);
}

static int open_tunnel(fixture *f) {
  char text[128];
  int fd = dial(f);
  snprintf(text, sizeof text, "CONNECT localhost:%u HTTP/1.1\r\n\r\n", (unsigned)f->host_port);
  send_text(fd, text);
  f->len = 0;
  get(f, fd, "\r\n\r\n");
  assert_int_equal(strncmp(f->text, "HTTP/1.1 200 ", 13), 0);
  const char *rest = strstr(f->text, "\r\n\r\n") + 4;
  f->len -= (size_t)(rest - f->text);
  memmove(f->text, rest, f->len + 1);
  return fd;
}

static const char *const local[] = {"localhost:%u", "127.0.0.1:%u", NULL};

/* ---- tunnels -------------------------------------------------------------------------------- */

static void client_half_close(fixture *f) {
  int fd = open_tunnel(f);
  send_text(fd, "some words");
  get(f, fd, "some words");
  shutdown(fd, SHUT_WR);
  get(f, fd, NULL);
  close(fd);
}

static void test_tunnel_and_half_close(void **state) {
  fixture *f = *state;
  begin(f, local, NULL);
  play(f, client_half_close);
  assert_string_equal(f->text, "some wordsbye");
  settle(f);
  size_t count;
  const sbx__egress_count *counts = sbx__egress_counts(f->egress, &count);
  assert_int_equal(count, 1);
  assert_string_equal(counts[0].target.name, "localhost");
  assert_int_equal(counts[0].connections, 1);
  assert_int_equal(counts[0].sent, 10);
  assert_int_equal(counts[0].received, 13);
}

static void client_early(fixture *f) {
  ask(f, "CONNECT 127.0.0.1:%u HTTP/1.1\r\n\r\nearly words");
}

/* What comes with the head of a CONNECT goes on; the client waits for the end in vain. */
static void test_bytes_behind_the_head(void **state) {
  fixture *f = *state;
  sbx__egress_limits limits = {.idle_ms = 300};
  begin(f, local, &limits);
  play(f, client_early);
  assert_non_null(strstr(f->text, "\r\n\r\nearly words"));
  settle(f);
}

static void client_listens_first(fixture *f) {
  int fd = open_tunnel(f);
  get(f, fd, "ready\r\n");
  send_text(fd, "hello");
  get(f, fd, "hello");
  close(fd);
}

static void test_host_that_speaks_first(void **state) {
  fixture *f = *state;
  f->kind = GREET;
  begin(f, local, NULL);
  play(f, client_listens_first);
  assert_string_equal(f->text, "220 ready\r\nhello");
  settle(f);
}

static const char *hello_name;
static size_t hello_piece;

/* A ClientHello, slowly, in records of 30 bytes. */
static void client_tls(fixture *f) {
  sbx_buf text;
  int fd = open_tunnel(f), on = 1;
  setsockopt(fd, IPPROTO_TCP, 1, &on, sizeof on);
  sbx_buf_init(&text, 1 << 16);
  hello_write(&text, hello_name, 30);
  for (size_t at = 0; at < text.len; at += hello_piece)
    send_all(fd, text.ptr + at, text.len - at < hello_piece ? text.len - at : hello_piece);
  shutdown(fd, SHUT_WR);
  get(f, fd, NULL);
  close(fd);
  sbx_buf_deinit(&text);
}

static void test_tls_with_the_right_name(void **state) {
  fixture *f = *state;
  begin(f, local, NULL);
  for (hello_piece = 1; hello_piece < 500; hello_piece = hello_piece * 3 + 1) {
    hello_name = "LocalHost";
    play(f, client_tls);
    assert_int_equal(f->text[0], 0x16);
    assert_int_equal(memcmp(f->text + f->len - 3, "bye", 3), 0);
  }
  settle(f);
  assert_int_equal(sbx__egress_get_totals(f->egress).refused, 0);
}

/* The host never sees a byte of it, and the client an alert. */
static void test_tls_with_another_name(void **state) {
  static const char *const names[] = {"evil.test", "localhost.evil.test", NULL};
  fixture *f = *state;
  begin(f, local, NULL);
  for (size_t i = 0; i < COUNT(names); i++) {
    hello_name = names[i];
    hello_piece = 7;
    play(f, client_tls);
    assert_int_equal(f->len, 7);
    assert_int_equal(memcmp(f->text, "\x15\x03\x01\x00\x02\x02\x70", 7), 0);
  }
  settle(f);
  size_t count;
  const sbx__egress_count *counts = sbx__egress_counts(f->egress, &count);
  assert_int_equal(counts[0].sent, 0);
  assert_int_equal(sbx__egress_get_totals(f->egress).refused, COUNT(names));
}

/* ---- requests ------------------------------------------------------------------------------- */

static void client_post(fixture *f) {
  ask(f, "POST http://localhost:%u/path?q HTTP/1.1\r\nProxy-Authorization: Basic canary\r\n"
         "Content-Length: 4\r\n\r\nbodyGET http://evil.test/ HTTP/1.1\r\n\r\n");
}

/* A second request behind the first does not reach the host. */
static void test_one_request(void **state) {
  fixture *f = *state;
  char expected[256];
  f->kind = ANSWER;
  f->body = 4;
  begin(f, local, NULL);
  play(f, client_post);
  snprintf(expected, sizeof expected,
           "POST /path?q HTTP/1.1\r\nHost: localhost:%u\r\nConnection: close\r\n"
           "Content-Length: 4\r\n\r\nbody",
           (unsigned)f->host_port);
  assert_string_equal(f->seen, expected);
  assert_non_null(strstr(f->text, "\r\n\r\nhello"));
  settle(f);
  size_t count;
  assert_int_equal(sbx__egress_counts(f->egress, &count)[0].sent, strlen(expected));
}

static void client_chunks(fixture *f) {
  ask(f, "POST http://localhost:%u/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
         "4\r\nbody\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n");
}

static void test_chunks(void **state) {
  fixture *f = *state;
  f->kind = ANSWER;
  f->body = strlen("4\r\nbody\r\n0\r\n\r\n");
  begin(f, local, NULL);
  play(f, client_chunks);
  assert_non_null(strstr(f->seen, "\r\n\r\n4\r\nbody\r\n0\r\n\r\n"));
  assert_null(strstr(f->seen, "smuggled"));
  assert_non_null(strstr(f->text, "\r\n\r\nhello"));
  settle(f);
}

static void client_bad_chunks(fixture *f) {
  ask(f, "POST http://localhost:%u/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\nbody");
}

static void client_broken_answer(fixture *f) {
  int fd = dial(f);
  char text[128];
  snprintf(text, sizeof text, "GET http://localhost:%u/ HTTP/1.1\r\n\r\n", (unsigned)f->host_port);
  send_text(fd, text);
  f->len = 0;
  ssize_t last = get(f, fd, NULL);
  assert_true(last < 0 && errno == ECONNRESET);
  close(fd);
}

/* Never an end that looks like the answer's own. */
static void test_what_breaks_is_seen_to_break(void **state) {
  fixture *f = *state;
  f->kind = RESET;
  begin(f, local, NULL);
  play(f, client_broken_answer);
  settle(f);
  f->kind = ANSWER;
  play(f, client_bad_chunks);
  assert_int_equal(f->len, 0);
  settle(f);
}

static void client_get(fixture *f) {
  ask(f, "GET http://localhost:%u/ HTTP/1.1\r\n\r\n");
}

/* What a host has said before it broke off still arrives, as when it refuses a request of which it
 * has not read all. */
static void test_answer_before_a_reset(void **state) {
  fixture *f = *state;
  f->kind = HURRY;
  begin(f, local, NULL);
  play(f, client_get);
  assert_non_null(strstr(f->text, "\r\n\r\nhello"));
  settle(f);
}

/* ---- refusals ------------------------------------------------------------------------------- */

static const char *refused_request;

static void client_ask(fixture *f) {
  ask(f, refused_request);
}

static void test_refusals(void **state) {
  static const struct {
    const char *request, *line;
  } cases[] = {
      {"CONNECT evil.test:443 HTTP/1.1\r\n\r\n",
       "HTTP/1.1 403 evil.test:443 is not in allowedHosts of this sandbox\r\n"},
      {"GET http://evil.test/?key=canary HTTP/1.1\r\n\r\n",
       "HTTP/1.1 403 evil.test:80 is not in allowedHosts of this sandbox\r\n"},
      {"CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n",
       "HTTP/1.1 403 169.254.169.254:80 is an address and not in allowedHosts\r\n"},
      {"CONNECT localhost:1 HTTP/1.1\r\n\r\n",
       "HTTP/1.1 403 localhost:1 is in allowedHosts with other ports only\r\n"},
      {"CONNECT 2130706433:443 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
      {"CONNECT [::ffff:127.0.0.1]:%u HTTP/1.1\r\n\r\n", "HTTP/1.1 403 [::ffff:127.0.0.1]:"},
      {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 this is the proxy of a sandbox"},
      {"\x16\x03\x01", "HTTP/1.1 400 the connection to the proxy itself is plain HTTP\r\n"},
  };
  fixture *f = *state;
  begin(f, local, NULL);
  for (size_t i = 0; i < COUNT(cases); i++) {
    refused_request = cases[i].request;
    play(f, client_ask);
    if (strncmp(f->text, cases[i].line, strlen(cases[i].line)) != 0)
      fail_msg("%s", f->text);
    assert_null(strstr(f->text, "canary"));
  }
  assert_int_equal(f->served, 0);
  settle(f);
  assert_int_equal(sbx__egress_get_totals(f->egress).refused, COUNT(cases));
}

static void client_connect(fixture *f) {
  ask(f, "CONNECT localhost:%u HTTP/1.1\r\n\r\n");
}

/* The name is listed; where it leads is not. */
static void test_name_that_leads_to_loopback(void **state) {
  static const char *const names[] = {"localhost:%u", "10.0.0.0/8:%u", NULL};
  fixture *f = *state;
  begin(f, names, NULL);
  play(f, client_connect);
  assert_int_equal(strncmp(f->text, "HTTP/1.1 403 localhost:", 23), 0);
  assert_non_null(strstr(f->text, "a loopback address\r\n"));
  assert_int_equal(f->served, 0);
  settle(f);
}

static void client_unreachable(fixture *f) {
  ask(f, "CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n");
}

static void client_no_such_name(fixture *f) {
  ask(f, "GET http://nothing.invalid/ HTTP/1.1\r\n\r\n");
}

static void test_hosts_that_cannot_be_reached(void **state) {
  static const char *const names[] = {"127.0.0.1:1", "*.invalid", NULL};
  fixture *f = *state;
  begin(f, names, NULL);
  play(f, client_unreachable);
  if (strncmp(f->text, "HTTP/1.1 502 cannot reach 127.0.0.1:1: ", 39) != 0)
    fail_msg("%s", f->text);
  play(f, client_no_such_name);
  if (strncmp(f->text, "HTTP/1.1 50", 11) != 0 || strstr(f->text, "nothing.invalid:80") == NULL)
    fail_msg("%s", f->text);
  settle(f);
  assert_int_equal(sbx__egress_get_totals(f->egress).failed, 2);
}

/* ---- real clients --------------------------------------------------------------------------- */

static char shell_line[512];
static int shell_status;

/* What a program prints; it has no variables but those of the proxy. */
static void client_shell(fixture *f) {
  char line[1024];
  snprintf(line, sizeof line,
           "exec 2>&1; for n in http_proxy https_proxy; do export $n=http://127.0.0.1:%u; done; "
           "unset no_proxy NO_PROXY; %s",
           (unsigned)f->port, shell_line);
  FILE *out = popen(line, "r");
  assert_non_null(out);
  f->len = fread(f->text, 1, sizeof f->text - 1, out);
  f->text[f->len] = '\0';
  shell_status = pclose(out);
}

/* False: the program is not installed. %u is the host's port. */
static bool shell(fixture *f, const char *program, const char *format) {
  char look[64];
  snprintf(look, sizeof look, "command -v %s >/dev/null", program);
  if (system(look) != 0) {
    printf("not installed here, so not tried: %s\n", program);
    return false;
  }
  const char *mark = strstr(format, "%u");
  int before = mark != NULL ? (int)(mark - format) : (int)strlen(format);
  snprintf(shell_line, sizeof shell_line, "%s %.*s", program, before, format);
  if (mark != NULL) {
    size_t len = strlen(shell_line);
    snprintf(shell_line + len, sizeof shell_line - len, "%u%s", (unsigned)f->host_port, mark + 2);
  }
  play(f, client_shell);
  return true;
}

static void assert_printed(const fixture *f, const char *text) {
  if (strstr(f->text, text) == NULL)
    fail_msg("no \"%s\" in: %s", text, f->text);
}

static void test_curl(void **state) {
  fixture *f = *state;
  f->kind = ANSWER;
  begin(f, local, NULL);
  if (!shell(f, "curl", "-sS http://localhost:%u/"))
    skip();
  assert_string_equal(f->text, "hello");
  shell(f, "curl", "-sS -p http://localhost:%u/"); /* a tunnel */
  assert_string_equal(f->text, "hello");
  shell(f, "curl", "-sS http://evil.test/");
  assert_printed(f, "evil.test:80 is not in allowedHosts of this sandbox; nothing was sent.");
  shell(f, "curl", "-sS https://evil.test/");
  assert_printed(f, "403");
  /* A real ClientHello: the right name goes on, to a host that understands none; another does not.
   */
  f->kind = REPEAT;
  int served = f->served;
  shell(f, "curl", "-sSk https://localhost:%u/");
  assert_int_not_equal(shell_status, 0);
  assert_int_equal(f->served, served + 1);
  settle(f);
  uint64_t refused = sbx__egress_get_totals(f->egress).refused;
  shell(f, "curl", "-sSk --connect-to evil.test:443:localhost:%u https://evil.test/");
  assert_printed(f, "unrecognized name");
  settle(f);
  assert_int_equal(sbx__egress_get_totals(f->egress).refused, refused + 1);
}

static void test_python(void **state) {
  fixture *f = *state;
  f->kind = ANSWER;
  begin(f, local, NULL);
  if (!shell(f, "python3",
             "-c 'import urllib.request as u; "
             "print(u.urlopen(\"http://localhost:%u/\").read().decode())'"))
    skip();
  assert_string_equal(f->text, "hello\n");
  shell(f, "python3", "-c 'import urllib.request as u; u.urlopen(\"https://evil.test/\")'");
  assert_printed(f, "403 evil.test:443 is not in allowedHosts of this sandbox");
  settle(f);
}

/* ---- bounds --------------------------------------------------------------------------------- */

static void client_long_head(fixture *f) {
  int fd = dial(f);
  char line[1024];
  memset(line, 'a', sizeof line);
  send_text(fd, "GET http://localhost/ HTTP/1.1\r\nX: ");
  for (int i = 0; i < 64; i++)
    send_all(fd, line, sizeof line);
  f->len = 0;
  get(f, fd, NULL);
  close(fd);
}

static void test_long_head(void **state) {
  fixture *f = *state;
  begin(f, local, NULL);
  play(f, client_long_head);
  assert_int_equal(strncmp(f->text, "HTTP/1.1 431 ", 13), 0);
  settle(f);
}

static void client_slow_head(fixture *f) {
  int fd = dial(f);
  send_text(fd, "GET http://loc");
  f->len = 0;
  get(f, fd, NULL);
  close(fd);
}

static void client_silent(fixture *f) {
  int fd = dial(f);
  f->len = 0;
  get(f, fd, NULL);
  close(fd);
}

static void client_idle_tunnel(fixture *f) {
  int fd = open_tunnel(f);
  get(f, fd, NULL);
  close(fd);
}

static void test_time_limits(void **state) {
  fixture *f = *state;
  sbx__egress_limits limits = {.head_ms = 100, .idle_ms = 150};
  f->kind = MUTE;
  begin(f, local, &limits);
  play(f, client_slow_head);
  assert_int_equal(strncmp(f->text, "HTTP/1.1 408 ", 13), 0);
  play(f, client_silent);
  assert_int_equal(f->len, 0);
  play(f, client_idle_tunnel);
  assert_int_equal(f->len, 0);
  settle(f);
}

/* Twice as many as may be open: those in excess wait for a place, and get it. */
static void client_many(fixture *f) {
  enum { MANY = 16 };
  int fds[MANY];
  for (int i = 0; i < MANY; i++)
    fds[i] = dial(f);
  usleep(50000);
  for (int i = 0; i < MANY; i++) {
    send_text(fds[i], "GET / HTTP/1.1\r\n\r\n");
    f->len = 0;
    get(f, fds[i], NULL);
    assert_int_equal(strncmp(f->text, "HTTP/1.1 400 ", 13), 0);
    close(fds[i]);
  }
}

static void test_bound_on_connections(void **state) {
  fixture *f = *state;
  sbx__egress_limits limits = {.connections = 8};
  begin(f, local, &limits);
  play(f, client_many);
  settle(f);
  assert_int_equal(sbx__egress_get_totals(f->egress).accepted, 16);
}

/* A client that does not read: the proxy stops reading, too. Then all of it arrives. */
static void client_slow_reader(fixture *f) {
  int fd = open_tunnel(f);
  usleep(200000);
  size_t count = f->len;
  static char bytes[65536];
  ssize_t n;
  while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0)
    count += (size_t)n;
  assert_int_equal(n, 0);
  f->len = count;
  close(fd);
}

static void test_flood_to_a_slow_reader(void **state) {
  fixture *f = *state;
  f->kind = FLOOD;
  begin(f, local, NULL);
  play(f, client_slow_reader);
  assert_int_equal(f->len, 32u << 20);
  settle(f);
  size_t count;
  assert_int_equal(sbx__egress_counts(f->egress, &count)[0].received, 32u << 20);
}

/* Connections that begin, talk, stop, end and break off at any time. */
static void client_chaos(fixture *f) {
  enum { OPEN = 24, STEPS = 3000 };
  static const char *const texts[] = {"CONNECT localhost:%u HTTP/1.1\r\n\r\n",
                                      "GET http://localhost:%u/ HTTP/1.1\r\n\r\n",
                                      "CONNECT evil.test:443 HTTP/1.1\r\n\r\n",
                                      "\x16\x03\x01\x02",
                                      ("POST http://localhost:%u/ HTTP/1.1\r\n"
                                       "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
                                      "\r\n",
                                      "words"};
  struct linger reset = {.l_onoff = 1};
  int fds[OPEN];
  char text[256];
  unsigned seed = 1;
  for (int i = 0; i < OPEN; i++)
    fds[i] = dial(f);
  for (int i = 0; i < STEPS; i++) {
    int *fd = &fds[rand_r(&seed) % OPEN];
    const char *format = texts[(unsigned)rand_r(&seed) % COUNT(texts)],
               *mark = strstr(format, "%u");
    size_t len = mark != NULL ? (size_t)(mark - format) : strlen(format);
    memcpy(text, format, len);
    if (mark != NULL)
      len +=
          (size_t)snprintf(text + len, sizeof text - len, "%u%s", (unsigned)f->host_port, mark + 2);
    int what = rand_r(&seed) % 16;
    if (what < 10)
      send(*fd, text, what < 3 ? (size_t)rand_r(&seed) % len : len, MSG_NOSIGNAL | MSG_DONTWAIT);
    else if (what == 10)
      shutdown(*fd, SHUT_WR);
    else if (what == 11)
      recv(*fd, f->text, 100, MSG_DONTWAIT);
    if (what < 12)
      continue;
    if (what == 15)
      setsockopt(*fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(*fd);
    *fd = dial(f);
  }
  for (int i = 0; i < OPEN; i++)
    close(fds[i]);
}

static void test_chaos(void **state) {
  static const host_kind kinds[] = {REPEAT, FLOOD, RESET};
  fixture *f = *state;
  sbx__egress_limits limits = {.idle_ms = 500, .connections = 16};
  begin(f, local, &limits);
  for (size_t i = 0; i < COUNT(kinds); i++) {
    f->kind = kinds[i];
    play(f, client_chaos);
    settle(f);
  }
  f->kind = REPEAT;
  play(f, client_half_close);
  assert_string_equal(f->text, "some wordsbye");
}

/* ---- the end -------------------------------------------------------------------------------- */

static void client_leaves_open(fixture *f) {
  open_tunnel(f);
  dial(f);
  int fd = dial(f);
  send_text(fd, "CONNECT nothing.invalid:443 HTTP/1.1\r\n\r\n");
  usleep(20000);
}

/* In the middle of everything, a lookup too; the fixture checks that nothing is left. */
static void test_stop_ends_all(void **state) {
  static const char *const names[] = {"localhost:%u", "127.0.0.1:%u", "*.invalid", NULL};
  fixture *f = *state;
  begin(f, names, NULL);
  play(f, client_leaves_open);
  sbx__egress_stop(f->egress);
  f->egress = NULL;
}

static void test_bad_listener(void **state) {
  fixture *f = *state;
  sbx__egress_rules rules;
  sbx__egress *egress = NULL;
  sbx_err err;
  sbx__egress_rules_init(&rules);
  assert_int_equal(sbx__egress_start(&egress, f->loop, -1, &rules, NULL, &err), SBX_EINVAL);
  assert_null(egress);
  sbx__egress_stop(NULL);
}

static int start_once(void *arg) {
  fixture *f = arg;
  sbx__egress *egress = NULL;
  sbx__egress_rules rules;
  uint16_t port;
  int fd = listen_on_loopback(&port);
  sbx__egress_rules_init(&rules);
  int rc = sbx__egress_start(&egress, f->loop, fd, &rules, NULL, NULL);
  sbx__egress_stop(egress);
  if (rc != SBX_OK)
    close(fd);
  uv_run(&f->uv, UV_RUN_NOWAIT); /* frees the watch */
  return rc;
}

static size_t fail_at;
static bool failed;

/* What comes of it may be an answer or a connection that is broken off. */
static void client_without_memory(fixture *f) {
  sbx_alloc_fail_at(fail_at, false);
  client_get(f);
  failed = sbx_alloc_failed();
  sbx_alloc_fail_at(0, false);
}

/* Each allocation of a request fails once; the next request is served. */
static void test_no_memory_on_the_way(void **state) {
  fixture *f = *state;
  f->kind = ANSWER;
  begin(f, local, NULL);
  failed = true;
  for (fail_at = 1; failed; fail_at++) {
    play(f, client_without_memory);
    settle(f);
    play(f, client_get);
    assert_non_null(strstr(f->text, "\r\n\r\nhello"));
    settle(f);
  }
  assert_true(fail_at > 5);
}

static void test_no_memory(void **state) {
  assert_true(each_allocation_fails(start_once, *state) > 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(test_tunnel_and_half_close),
      T(test_bytes_behind_the_head),
      T(test_host_that_speaks_first),
      T(test_tls_with_the_right_name),
      T(test_tls_with_another_name),
      T(test_one_request),
      T(test_chunks),
      T(test_what_breaks_is_seen_to_break),
      T(test_answer_before_a_reset),
      T(test_refusals),
      T(test_name_that_leads_to_loopback),
      T(test_hosts_that_cannot_be_reached),
      T(test_curl),
      T(test_python),
      T(test_long_head),
      T(test_time_limits),
      T(test_bound_on_connections),
      T(test_flood_to_a_slow_reader),
      T(test_chaos),
      T(test_stop_ends_all),
      T(test_bad_listener),
      T(test_no_memory_on_the_way),
      T(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
