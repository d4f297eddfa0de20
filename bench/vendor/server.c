/* server.c - answers requests of the services' protocols with replies made beforehand: no process
 * runs, no file is stored. In C, so that the clients are what takes the time. HTTP/1.1 on loopback;
 * prints its URL and serves until its standard input ends.
 *
 * Requests come from the clients that are measured, one at a time on a connection: what is not
 * understood ends the server, with a word about it. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILE_BYTES ((size_t)64 << 20)
/* Of hexadecimal digits: what marks a command. */
#define TAG_LEN 32
#define ZEROS "00000000000000000000000000000000"
/* The name that a client gives its sandbox ends in such a tag, too. */
#define NAME "\"name\":\"cloudsandbox-"
#define E2B_ID "ibench0000000000000001"
#define DAYTONA_ID "6a0b1c9e-0000-4000-8000-000000000001"

enum { MAX_EVENTS = 64, IN_SIZE = 512 * 1024, KEPT = 32 * 1024 };

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "bench server: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void *must(void *memory) {
  if (memory == NULL)
    fail("no memory");
  return memory;
}

/* ---- replies -------------------------------------------------------------------------------- */

typedef struct reply {
  const char *method, *path;
  char *bytes;
  size_t len;
  size_t name_at; /* where the tag of the sandbox's name belongs; 0: nowhere */
} reply;

static reply replies[32];
static size_t reply_count;
/* What a command's line gets: our program prints a report that bears the request's tag; the
 * vendors' clients take any text, and so do other lines. */
static struct {
  const reply *plain, *report;
  size_t places[2]; /* where the tag belongs in the report */
  size_t event_at;  /* where a message of an event stream begins in it; 0: it is none */
} lines[4];
static size_t line_count;
/* The tag of the last sandbox. */
static char named[] = ZEROS;

static reply *add(const char *method, const char *path, const char *head, const char *body,
                  size_t len) {
  reply *r = &replies[reply_count++];
  char line[512];
  int n = snprintf(line, sizeof line, "HTTP/1.1 %s\r\ncontent-length: %zu\r\n\r\n", head, len);
  r->method = method;
  r->path = path;
  r->len = (size_t)n + len;
  r->bytes = must(malloc(r->len));
  memcpy(r->bytes, line, (size_t)n);
  memcpy(r->bytes + n, body, len);
  return r;
}

static reply *add_json(const char *method, const char *path, const char *status, const char *json) {
  char head[128];
  snprintf(head, sizeof head, "%s\r\ncontent-type: application/json", status);
  return add(method, path, head, json, strlen(json));
}

/* One of the Connect protocol's envelopes. */
static size_t envelope(char *out, char flags, const char *json) {
  size_t len = strlen(json);
  char head[5] = {flags, 0, 0, (char)(len >> 8), (char)len};
  memcpy(out, head, sizeof head);
  memcpy(out + sizeof head, json, len);
  return sizeof head + len;
}

/* A stream is one chunk of a chunked body. */
static void add_stream(const char *path) {
  char body[512];
  size_t n = envelope(body, 0, "{\"event\":{\"start\":{\"pid\":42}}}");
  n +=
      envelope(body + n, 0, "{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}");
  n += envelope(body + n, 2, "{}");
  reply *r = &replies[reply_count++];
  r->method = "POST";
  r->path = path;
  r->bytes = must(malloc(1024));
  r->len = (size_t)snprintf(r->bytes, 1024,
                            "HTTP/1.1 200 OK\r\ncontent-type: application/connect+json\r\n"
                            "transfer-encoding: chunked\r\n\r\n%zx\r\n",
                            n);
  memcpy(r->bytes + r->len, body, n);
  r->len += n;
  memcpy(r->bytes + r->len, "\r\n0\r\n\r\n", 7);
  r->len += 7;
}

static void add_none(const char *method, const char *path) {
  static char none[] = "HTTP/1.1 204 No Content\r\n\r\n";
  replies[reply_count++] = (reply){method, path, none, sizeof none - 1, 0};
}

static void make_e2b(void) {
  char *file = must(malloc(FILE_BYTES));
  for (size_t i = 0; i < FILE_BYTES; i++)
    file[i] = "0123456789abcdef"[i % 16];
  add_json("POST", "/v2/sandboxes", "201 Created",
           "{\"sandboxID\":\"" E2B_ID "\",\"templateID\":\"base\",\"clientID\":\"6532622b\","
           "\"envdVersion\":\"0.6.13\",\"envdAccessToken\":\"token\"}");
  add_none("DELETE", "/sandboxes/" E2B_ID);
  add_stream("/process.Process/Start");
  add("GET", "/files", "200 OK\r\ncontent-type: application/octet-stream", file, FILE_BYTES);
  add_json("POST", "/files", "200 OK",
           "[{\"name\":\"big\",\"path\":\"/home/user/big\",\"type\":\"file\"}]");
  add_none("GET", "/health");
  free(file);
}

#define DAYTONA_SANDBOX(state)                                                                     \
  "{\"id\":\"" DAYTONA_ID                                                                          \
  "\",\"organizationId\":\"6a0b1c9e-0000-4000-8000-000000000002\"," NAME ZEROS                     \
  "\",\"user\":\"daytona\",\"env\":{},\"labels\":{},\"public\":false,"                             \
  "\"networkBlockAll\":false,\"target\":\"us\",\"cpu\":1,\"gpu\":0,\"memory\":1,\"disk\":3,"       \
  "\"state\":\"" state "\",\"desiredState\":\"" state "\",\"daemonVersion\":\"v0.218.0\","         \
  "\"createdAt\":\"2026-01-01T00:00:00.000Z\",\"updatedAt\":\"2026-01-01T00:00:00.000Z\","         \
  "\"toolboxProxyUrl\":\"http://127.0.0.1:%d/toolbox\"}"

static void add_named(const char *method, const char *path, const char *json) {
  reply *r = add_json(method, path, "200 OK", json);
  char *mark = memmem(r->bytes, r->len, NAME, strlen(NAME));
  r->name_at = (size_t)(mark - r->bytes) + strlen(NAME);
}

#define REPORT "\\n" ZEROS " ran 0 1 0 0 0 0 0\\n\\n\\n\\n\\n" ZEROS " end\\n"

static void add_line_of(const char *path, const char *type, const char *plain, size_t plain_len,
                        const char *report, size_t report_len) {
  size_t n = line_count++;
  char head[128];
  snprintf(head, sizeof head, "200 OK\r\ncontent-type: application/%s", type);
  lines[n].plain = add("POST", path, head, plain, plain_len);
  const reply *r = lines[n].report = add("", "", head, report, report_len);
  const char *first = memmem(r->bytes, r->len, ZEROS, TAG_LEN);
  size_t rest = r->len - (size_t)(first + 1 - r->bytes);
  const char *last = memmem(first + 1, rest, ZEROS " end", TAG_LEN + 4);
  lines[n].places[0] = (size_t)(first - r->bytes);
  lines[n].places[1] = (size_t)(last - r->bytes);
}

static void add_line(const char *path, const char *type, const char *plain, const char *report) {
  add_line_of(path, type, plain, strlen(plain), report, strlen(report));
}

static void make_daytona(int port) {
  char sandbox[1024];
  snprintf(sandbox, sizeof sandbox, DAYTONA_SANDBOX("started"), port);
  add_named("POST", "/api/sandbox", sandbox);
  add_named("GET", "/api/sandbox/" DAYTONA_ID, sandbox);
  snprintf(sandbox, sizeof sandbox, DAYTONA_SANDBOX("destroyed"), port);
  add_named("DELETE", "/api/sandbox/" DAYTONA_ID, sandbox);
  add_json("GET", "/toolbox/" DAYTONA_ID "/work-dir", "200 OK", "{\"dir\":\"/home/daytona\"}");
  add_line("/toolbox/" DAYTONA_ID "/process/execute", "json", "{\"exitCode\":0,\"result\":\"\"}",
           "{\"exitCode\":0,\"result\":\"" REPORT "\"}");
}

static void make_http(void) {
  static const char end[] = "\",\"stderr\":\"\",\"timed_out\":false}";
  char plain[256], report[512];
  snprintf(plain, sizeof plain, "{\"exit_code\":0,\"stdout\":\"/workspace\\n%s", end);
  snprintf(report, sizeof report, "{\"exit_code\":0,\"stdout\":\"" REPORT "%s", end);
  add_json("POST", "/sessions", "201 Created", "{\"session_id\":\"bench\"}");
  add_line("/sessions/bench/exec", "json", plain, report);
  add_none("DELETE", "/sessions/bench");
}

#define VERCEL "/api/v2/sandboxes"
#define VERCEL_SESSION                                                                             \
  "\"session\":{\"id\":\"sess_bench\",\"memory\":4096,\"vcpus\":2,\"region\":\"iad1\","            \
  "\"timeout\":300000,"                                                                            \
  "\"status\":\"running\",\"requestedAt\":1767323045000,\"startedAt\":1767323046000,"              \
  "\"createdAt\":1767323045000,\"updatedAt\":1767323046000,\"cwd\":\"/vercel/sandbox\"}"
#define VERCEL_SANDBOX                                                                             \
  "\"sandbox\":{\"name\":\"bench\",\"persistent\":false,\"createdAt\":1767323045000,"              \
  "\"updatedAt\":1767323046000,\"currentSessionId\":\"sess_bench\",\"status\":\"running\"}"

/* A line that says the command, with its argument. */
static size_t vercel_command(char *out, size_t size, const char *argument, const char *end) {
  return (size_t)snprintf(
      out, size,
      "{\"command\":{\"id\":\"cmd_bench\",\"name\":\"/bin/sh\",\"args\":[\"-c\",\"%s\"],"
      "\"cwd\":\"/\",\"sessionId\":\"sess_bench\",\"exitCode\":%s,\"startedAt\":1767323050000}}\n",
      argument, end);
}

/* The service says the command's words twice: to ours, which sends a program, as many as it
 * sends. */
static void make_vercel(void) {
  static char program[10 * 1024], plain[1024], report[KEPT];
  static const char line[] = "[ \\\"$_cs_v\\\" ] || _cs_v=1\\n";
  for (size_t at = 0; at + sizeof line < sizeof program; at += sizeof line - 1)
    memcpy(program + at, line, sizeof line);
  size_t n = vercel_command(plain, sizeof plain, "true", "null");
  vercel_command(plain + n, sizeof plain - n, "true", "0,\"durationMs\":3");
  n = vercel_command(report, sizeof report, program, "null");
  n += (size_t)snprintf(report + n, sizeof report - n,
                        "{\"stream\":\"stdout\",\"data\":\"" REPORT "\"}\n");
  vercel_command(report + n, sizeof report - n, program, "0,\"durationMs\":3");
  add_json("POST", "/api/v3/sandboxes", "200 OK",
           "{" VERCEL_SANDBOX "," VERCEL_SESSION ",\"routes\":[],\"resumed\":false}");
  add_json("DELETE", VERCEL "/bench", "200 OK", "{" VERCEL_SANDBOX "}");
  add_json("POST", VERCEL "/sessions/sess_bench/stop", "200 OK", "{" VERCEL_SESSION "}");
  add_line(VERCEL "/sessions/sess_bench/cmd", "x-ndjson", plain, report);
}

static uint32_t crc32_of(const char *bytes, size_t len) {
  uint32_t crc = UINT32_MAX;
  for (size_t i = 0; i < len; i++) {
    crc ^= (unsigned char)bytes[i];
    for (int bit = 0; bit < 8; bit++)
      crc = (crc >> 1) ^ (0xedb88320U & (0U - (crc & 1U)));
  }
  return ~crc;
}

static void put_number(char *out, uint32_t value) {
  for (size_t i = 0; i < 4; i++)
    out[i] = (char)(value >> (24 - 8 * i) & 0xff);
}

/* The checksum at the end of a message that has `len` bytes. */
static void seal(char *message, size_t len) {
  put_number(message + len - 4, crc32_of(message, len - 4));
}

/* One message of an event stream: a result that has printed this. */
static size_t agentcore_result(char *out, size_t size, const char *printed) {
  static const char headers[] = "\x0d:message-type\x07\0\x05"
                                "event\x0b:event-type\x07\0\x06result\x0d:content-type\x07\0\x10"
                                "application/json";
  char *payload = out + 12 + sizeof headers - 1;
  int n = snprintf(payload, size - (size_t)(payload - out),
                   "{\"content\":[{\"type\":\"text\",\"text\":\"\"}],\"structuredContent\":{"
                   "\"stdout\":\"%s\",\"stderr\":\"\",\"exitCode\":0,\"executionTime\":3.5},"
                   "\"isError\":false}",
                   printed);
  size_t len = 12 + sizeof headers - 1 + (size_t)n + 4;
  put_number(out, (uint32_t)len);
  put_number(out + 4, sizeof headers - 1);
  put_number(out + 8, crc32_of(out, 8));
  memcpy(out + 12, headers, sizeof headers - 1);
  seal(out, len);
  return len;
}

#define AGENTCORE "/code-interpreters/aws.codeinterpreter.v1"
#define AGENTCORE_SESSION                                                                          \
  "{\"codeInterpreterIdentifier\":\"aws.codeinterpreter.v1\",\"sessionId\":\"01J0BENCH\","         \
  "\"createdAt\":\"2026-01-02T03:04:05.678Z\"}"

static void make_agentcore(void) {
  char plain[1024], report[1024];
  size_t plain_len = agentcore_result(plain, sizeof plain, "/workspace\\n");
  size_t report_len = agentcore_result(report, sizeof report, REPORT);
  add_json("PUT", AGENTCORE "/sessions/start", "200 OK", AGENTCORE_SESSION);
  add_json("PUT", AGENTCORE "/sessions/stop", "200 OK", AGENTCORE_SESSION);
  add_line_of(AGENTCORE "/tools/invoke", "vnd.amazon.eventstream", plain, plain_len, report,
              report_len);
  lines[line_count - 1].event_at = lines[line_count - 1].report->len - report_len;
}

/* ---- connections ---------------------------------------------------------------------------- */

typedef struct connection {
  int fd;
  bool in_chunks;
  size_t missing; /* bytes of the body, or of the present chunk and the line end behind it */
  const reply *reply;
  char text[KEPT + 1]; /* a head or a chunk's line, then the beginning of a body */
  size_t text_len;
  size_t body_at; /* where in `text` the body begins; 0: its head is not complete */
  const char *out;
  size_t out_len;
  char filled[KEPT];
} connection;

static const reply *find(const char *head) {
  for (size_t i = 0; i < reply_count; i++) {
    const reply *r = &replies[i];
    size_t m = strlen(r->method), p = strlen(r->path);
    if (m > 0 && strncmp(head, r->method, m) == 0 && head[m] == ' ' &&
        strncmp(head + m + 1, r->path, p) == 0 && strchr(" ?", head[m + 1 + p]) != NULL)
      return r;
  }
  fprintf(stderr, "bench server: no reply for: %.*s\n", (int)strcspn(head, "\r\n"), head);
  exit(1);
}

static const char *field(const char *head, const char *name) {
  for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
    line += 2;
    if (strncasecmp(line, name, strlen(name)) == 0)
      return line + strlen(name) + strspn(line + strlen(name), " ");
  }
  return NULL;
}

/* What stands behind a word in the body of the request. */
static const char *said(const connection *c, const char *word) {
  const char *mark = memmem(c->text + c->body_at, c->text_len - c->body_at, word, strlen(word));
  bool whole = mark != NULL && mark + strlen(word) + TAG_LEN <= c->text + c->text_len;
  return whole ? mark + strlen(word) : NULL;
}

static bool is_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* The first tag that stands alone in the body of the request: one of so many bytes is of it. */
static const char *find_tag(const connection *c) {
  for (size_t i = c->body_at; i < c->text_len; i += TAG_LEN) {
    size_t from = i, to = i;
    while (from > c->body_at && is_digit(c->text[from - 1]) && i - from < TAG_LEN)
      from--;
    while (to < c->text_len && is_digit(c->text[to]) && to - from <= TAG_LEN)
      to++;
    if (to > i && to - from == TAG_LEN)
      return c->text + from;
  }
  return NULL;
}

static void answer(connection *c) {
  c->out = c->reply->bytes;
  c->out_len = c->reply->len;
  if (c->reply->name_at > 0 && c->out_len <= sizeof c->filled) {
    const char *tag = said(c, NAME);
    if (tag != NULL)
      memcpy(named, tag, TAG_LEN);
    memcpy(c->filled, c->out, c->out_len);
    memcpy(c->filled + c->reply->name_at, named, TAG_LEN);
    c->out = c->filled;
  }
  for (size_t i = 0; i < line_count; i++) {
    const char *mark = c->reply == lines[i].plain ? find_tag(c) : NULL;
    if (mark == NULL)
      continue;
    memcpy(c->filled, lines[i].report->bytes, lines[i].report->len);
    for (size_t n = 0; n < 2; n++)
      memcpy(c->filled + lines[i].places[n], mark, TAG_LEN);
    c->out = c->filled;
    c->out_len = lines[i].report->len;
    if (lines[i].event_at > 0)
      seal(c->filled + lines[i].event_at, c->out_len - lines[i].event_at);
  }
  c->text_len = c->body_at = 0;
  c->in_chunks = false;
}

static void begin_request(connection *c) {
  const char *length = field(c->text, "content-length:");
  const char *coding = field(c->text, "transfer-encoding:");
  c->reply = find(c->text);
  c->in_chunks = coding != NULL && strncasecmp(coding, "chunked", 7) == 0;
  c->missing = length != NULL ? strtoul(length, NULL, 10) : 0;
  c->body_at = c->text_len;
  if (!c->in_chunks && c->missing == 0)
    answer(c);
}

/* The line before a chunk, which is not kept. */
static void begin_chunk(connection *c, size_t line_at) {
  bool ended = c->text[line_at] == '\r';
  size_t size = strtoul(c->text + line_at, NULL, 16);
  c->text_len = line_at;
  c->missing = size > 0 ? size + 2 : 0;
  if (ended)
    answer(c);
}

/* Takes what belongs to a head. Returns what is left of the input. */
static const char *take_head(connection *c, const char *in, const char *end) {
  size_t had = c->text_len, from = had < 3 ? 0 : had - 3;
  size_t part = (size_t)(end - in) < KEPT - had ? (size_t)(end - in) : KEPT - had;
  memcpy(c->text + had, in, part);
  const char *mark = memmem(c->text + from, had + part - from, "\r\n\r\n", 4);
  if (mark == NULL && had + part == KEPT)
    fail("a head that is too long");
  c->text_len = mark == NULL ? had + part : (size_t)(mark + 4 - c->text);
  c->text[c->text_len] = '\0';
  in += c->text_len - had;
  if (mark != NULL)
    begin_request(c);
  return in;
}

/* The same for the line before a chunk, byte by byte: it is short. */
static const char *take_line(connection *c, const char *in, const char *end) {
  size_t line_at = c->text_len;
  while (in < end && c->text_len < KEPT) {
    c->text[c->text_len++] = *in++;
    c->text[c->text_len] = '\0';
    if (in[-1] == '\n') {
      begin_chunk(c, line_at);
      return in;
    }
  }
  fail("a line in pieces, or too long");
}

static void feed(connection *c, const char *in, size_t len) {
  const char *end = in + len;
  while (in < end) {
    if (c->missing == 0) {
      in = c->body_at == 0 ? take_head(c, in, end) : take_line(c, in, end);
      continue;
    }
    size_t part = (size_t)(end - in) < c->missing ? (size_t)(end - in) : c->missing;
    size_t kept = part < KEPT - c->text_len ? part : KEPT - c->text_len;
    if (c->in_chunks)
      kept = 0;
    memcpy(c->text + c->text_len, in, kept);
    c->text_len += kept;
    c->missing -= part;
    in += part;
    if (c->missing == 0 && !c->in_chunks)
      answer(c);
  }
}

static bool flush_out(connection *c) {
  while (c->out_len > 0) {
    ssize_t n = send(c->fd, c->out, c->out_len, MSG_NOSIGNAL);
    if (n < 0)
      return errno == EAGAIN;
    c->out += n;
    c->out_len -= (size_t)n;
  }
  return true;
}

/* How much need not be looked at: neither kept nor the last of its part. The system drops it
 * without a copy, whose time would be the server's. */
static size_t unseen(const connection *c) {
  return c->missing > 1 && (c->in_chunks || c->text_len == KEPT) ? c->missing - 1 : 0;
}

static bool serve(connection *c, char *in) {
  if (c->out_len > 0)
    return flush_out(c);
  size_t skip = unseen(c);
  ssize_t n = skip > 0 ? recv(c->fd, NULL, skip, MSG_TRUNC) : recv(c->fd, in, IN_SIZE, 0);
  if (n <= 0)
    return n < 0 && errno == EAGAIN;
  if (skip > 0)
    c->missing -= (size_t)n;
  else
    feed(c, in, (size_t)n);
  return flush_out(c);
}

/* ---- the server ----------------------------------------------------------------------------- */

static int listen_on_loopback(int *port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t len = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) != 0 || listen(fd, 512) != 0 ||
      getsockname(fd, (struct sockaddr *)&address, &len) != 0)
    fail("cannot listen");
  *port = ntohs(address.sin_port);
  return fd;
}

/* A look at all connections for each request would cost as much as the requests: the kernel says
 * which of them have something. */
static void watch(int queue, int how, int fd, uint32_t events, void *what) {
  struct epoll_event event = {.events = events, .data.ptr = what};
  if (epoll_ctl(queue, how, fd, &event) != 0)
    fail("epoll_ctl");
}

static void accept_one(int queue, int listener) {
  int one = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
  if (fd < 0)
    fail("cannot accept");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  connection *c = must(calloc(1, sizeof *c));
  c->fd = fd;
  watch(queue, EPOLL_CTL_ADD, fd, EPOLLIN, c);
}

static void serve_one(int queue, connection *c, char *in) {
  bool was_sending = c->out_len > 0;
  if (!serve(c, in)) {
    close(c->fd);
    free(c);
    return;
  }
  bool sends = c->out_len > 0;
  if (sends != was_sending)
    watch(queue, EPOLL_CTL_MOD, c->fd, sends ? EPOLLOUT : EPOLLIN, c);
}

int main(void) {
  static struct epoll_event events[MAX_EVENTS];
  int port = 0, queue = epoll_create1(0);
  char *in = must(malloc(IN_SIZE));
  int listener = listen_on_loopback(&port);
  make_e2b();
  make_daytona(port);
  make_http();
  make_vercel();
  make_agentcore();
  watch(queue, EPOLL_CTL_ADD, STDIN_FILENO, EPOLLIN, NULL);
  watch(queue, EPOLL_CTL_ADD, listener, EPOLLIN, in);
  printf("http://127.0.0.1:%d\n", port);
  fflush(stdout);
  for (;;) {
    int n = epoll_wait(queue, events, MAX_EVENTS, -1);
    if (n < 0)
      fail("epoll_wait");
    for (int i = 0; i < n; i++) {
      void *what = events[i].data.ptr;
      if (what == NULL)
        return 0;
      if (what == in)
        accept_one(queue, listener);
      else
        serve_one(queue, what, in);
    }
  }
}
