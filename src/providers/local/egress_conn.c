/* egress_conn.c - see the header.
 *
 *   HEAD -> LOOKUP -> CONNECT -> RELAY -> end
 *     `-------`---------`--------`-> REPLY: our own answer, then what still comes is dropped
 *
 * Invariant: each function that may end the connection is the last thing its caller does. A
 * direction is read only while nothing of it waits to be written, so a slow reader slows its
 * sender, and memory is bounded. */
#include "providers/local/egress_conn.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/os.h"
#include "providers/local/egress_tls.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 32 * 1024, ADDRS_MAX = 6, ROUNDS_MAX = 8, REPLY_MS = 2000 };

/* One direction. */
typedef struct pump {
  char *bytes; /* BUFFER of them */
  size_t at, len;
  bool eof;  /* nothing more comes */
  bool shut; /* and the other side was told */
} pump;

typedef enum stage { HEAD, LOOKUP, CONNECT, RELAY, REPLY } stage;

struct sbx__egress_conn {
  sbx__egress_shared *shared;
  sbx__egress_conn *next, *prev;
  stage stage;
  int client_fd, host_fd;
  sbx_watch *client, *host;
  sbx_timer timer;
  uint64_t moved_ms; /* when the last bytes moved */
  pump up, down;     /* from the client, and to it */
  sbx__egress_request request;
  sbx__egress_hello hello;
  bool host_deaf;  /* it takes nothing any more, and may still have something to say */
  bool checks_tls; /* what comes from the client waits until it is known where it wants to go */
  sbx__egress_lookup lookup;
  struct sockaddr_storage addrs[ADDRS_MAX];
  size_t addr_count, addr_next;
  int connect_error; /* of the last address */
  sbx__egress_count *count;
};

/* ---- the end -------------------------------------------------------------------------------- */

static void close_fd(int *fd) {
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
}

static void leave_host(sbx__egress_conn *c) {
  sbx_watch_stop(c->host);
  c->host = NULL;
  close_fd(&c->host_fd);
}

static void drop(sbx__egress_conn *c) {
  sbx__egress_shared *shared = c->shared;
  sbx__egress_lookup_drop(shared->lookups, &c->lookup);
  sbx_timer_stop(&c->timer);
  leave_host(c);
  sbx_watch_stop(c->client);
  close_fd(&c->client_fd);
  sbx__egress_request_deinit(&c->request);
  sbx__egress_hello_deinit(&c->hello);
  sbx_free(c->up.bytes);
  sbx_free(c->down.bytes);
  if (c->prev != NULL)
    c->prev->next = c->next;
  else
    shared->conns = c->next;
  if (c->next != NULL)
    c->next->prev = c->prev;
  shared->totals.open--;
  sbx_free(c);
}

static void end(sbx__egress_conn *c) {
  sbx__egress_shared *shared = c->shared;
  drop(c);
  shared->ended(shared);
}

/* So that an answer which is cut off does not look whole. */
static void end_broken(sbx__egress_conn *c) {
  struct linger reset = {.l_onoff = 1};
  setsockopt(c->client_fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  end(c);
}

void sbx__egress_conns_end(sbx__egress_shared *shared) {
  while (shared->conns != NULL)
    drop(shared->conns);
}

/* ---- one direction -------------------------------------------------------------------------- */

/* How it went: nothing to do now, some bytes moved, or the connection is broken. */
typedef enum moved { STUCK, MOVED, BROKEN } moved;

static size_t waiting(const pump *p) {
  return p->len - p->at;
}

/* Reads behind what is there, as far as there is room for `most` in all. */
static moved fill(pump *p, int fd, size_t most) {
  if (p->at == p->len)
    p->at = p->len = 0;
  if (p->eof || p->len >= most)
    return STUCK;
  ssize_t n = recv(fd, p->bytes + p->len, most - p->len, 0);
  if (n < 0)
    return errno == EAGAIN || errno == EINTR ? STUCK : BROKEN;
  p->eof = n == 0;
  p->len += (size_t)n;
  return MOVED;
}

static moved flush(pump *p, int fd, uint64_t *count) {
  if (waiting(p) > 0) {
    ssize_t n = send(fd, p->bytes + p->at, waiting(p), MSG_NOSIGNAL);
    if (n < 0)
      return errno == EAGAIN || errno == EINTR ? STUCK : BROKEN;
    p->at += (size_t)n;
    if (count != NULL)
      *count += (uint64_t)n;
    return MOVED;
  }
  if (!p->eof || p->shut)
    return STUCK;
  p->shut = true;
  shutdown(fd, SHUT_WR);
  return MOVED;
}

static bool make_room(pump *p) {
  if (p->bytes == NULL)
    p->bytes = sbx_malloc(BUFFER);
  return p->bytes != NULL;
}

static void put(pump *p, sbx_slice bytes) {
  memcpy(p->bytes + p->len, bytes.ptr, bytes.len);
  p->len += bytes.len;
}

/* ---- our own answers ------------------------------------------------------------------------ */

static void run_reply(sbx__egress_conn *c) {
  moved out = flush(&c->down, c->client_fd, NULL), in = MOVED;
  for (int i = 0; i < ROUNDS_MAX && in == MOVED && !c->up.eof; i++) {
    c->up.at = c->up.len = 0;
    in = fill(&c->up, c->client_fd, BUFFER);
  }
  if (out == MOVED && waiting(&c->down) == 0)
    out = flush(&c->down, c->client_fd, NULL); /* the end */
  if (out == BROKEN || in == BROKEN || (c->up.eof && c->down.shut))
    end(c);
  else
    sbx_watch_set(c->client,
                  (c->up.eof ? 0 : SBX_READABLE) | (waiting(&c->down) > 0 ? SBX_WRITABLE : 0));
}

/* Sends `bytes` and closes, once the client has read them: a close with something unread would take
 * them away from it. */
static void answer_bytes(sbx__egress_conn *c, sbx_slice bytes) {
  leave_host(c);
  c->stage = REPLY;
  c->down.at = c->down.len = 0;
  c->down.eof = true;
  if (bytes.len > BUFFER || !make_room(&c->down)) {
    end_broken(c);
    return;
  }
  put(&c->down, bytes);
  sbx_timer_start(&c->timer, REPLY_MS);
  run_reply(c);
}

/* `rc` is what came of writing it. */
static void answer(sbx__egress_conn *c, sbx_buf *text, int rc) {
  if (rc == SBX_OK)
    answer_bytes(c, sbx_buf_slice(text));
  sbx_buf_deinit(text);
  if (rc != SBX_OK)
    end_broken(c);
}

static void refuse_fault(sbx__egress_conn *c, int status, const char *why) {
  sbx_buf text;
  sbx__egress_fault fault = {status, why};
  sbx_buf_init(&text, BUFFER);
  c->shared->totals.refused++;
  answer(c, &text, sbx__egress_reply_fault(&text, &c->request, &fault));
}

static void fail_host(sbx__egress_conn *c, int status, const char *why) {
  sbx_buf text;
  sbx_buf_init(&text, BUFFER);
  c->shared->totals.failed++;
  answer(c, &text, sbx__egress_reply_failed(&text, &c->request, status, why));
}

/* Inside a tunnel nothing but TLS is understood: its alert "unrecognized name". */
static void refuse_tls(sbx__egress_conn *c) {
  static const char alert[] = {0x15, 3, 1, 0, 2, 2, 112};
  c->shared->totals.refused++;
  answer_bytes(c, sbx_slice_of(alert, sizeof alert));
}

/* ---- relay ---------------------------------------------------------------------------------- */

static void want(sbx__egress_conn *c) {
  bool takes = !c->up.eof && !c->host_deaf && (c->checks_tls || waiting(&c->up) == 0);
  bool gives = !c->down.eof && waiting(&c->down) == 0;
  bool writes = waiting(&c->up) > 0 && !c->checks_tls;
  sbx_watch_set(c->client, (takes ? SBX_READABLE : 0) | (waiting(&c->down) > 0 ? SBX_WRITABLE : 0));
  sbx_watch_set(c->host, (gives ? SBX_READABLE : 0) | (writes ? SBX_WRITABLE : 0));
}

/* Looks at what has come from the client, from `from` on, before it may go on: the name that TLS
 * says, or the end of the request. False: the connection has been answered or ended. */
static bool look_at_client(sbx__egress_conn *c, size_t from) {
  sbx_slice fresh = sbx_slice_of(c->up.bytes + from, c->up.len - from);
  const char *why;
  size_t used;
  if (!c->request.connect) {
    bool good = sbx__egress_body_feed(&c->request.body, fresh, &used);
    c->up.len = from + used; /* what comes behind the request is dropped */
    if (!good)
      end_broken(c);
    return good;
  }
  if (!c->checks_tls)
    return true;
  if (waiting(&c->up) == 0) {
    c->checks_tls = !c->up.eof;
    return true;
  }
  if ((unsigned char)c->up.bytes[c->up.at] != SBX__EGRESS_TLS_FIRST &&
      c->request.target.port != 443) {
    c->checks_tls = false; /* another protocol, on a port that was listed for it */
    return true;
  }
  bool good = sbx__egress_hello_feed(&c->hello, fresh, &why) == SBX_OK;
  if (good && !c->hello.done && c->up.len < BUFFER && !c->up.eof)
    return true;
  if (good && c->hello.done) {
    /* Who asked for an address, which must be listed, may say any name. */
    good = c->request.target.is_addr || sbx__egress_target_is(&c->request.target, c->hello.name);
    c->checks_tls = false;
  } else {
    good = false;
  }
  sbx__egress_hello_deinit(&c->hello);
  if (!good)
    refuse_tls(c);
  return good;
}

static moved move_up(sbx__egress_conn *c, bool *alive) {
  size_t before = c->up.at == c->up.len ? 0 : c->up.len;
  moved in = STUCK, out = STUCK;
  *alive = true;
  if (c->host_deaf)
    return STUCK;
  if (c->checks_tls || waiting(&c->up) == 0)
    in = fill(&c->up, c->client_fd, BUFFER);
  if (in == BROKEN)
    return BROKEN;
  if (in == MOVED) {
    *alive = look_at_client(c, before);
    if (!*alive)
      return MOVED;
  }
  /* The host sees the request's own end; a half-closed connection some take for a broken one. */
  if (!c->checks_tls && (c->request.connect || waiting(&c->up) > 0 || !c->request.body.done))
    out = flush(&c->up, c->host_fd, &c->count->sent);
  if (out == BROKEN) {
    c->host_deaf = true;
    c->up.at = c->up.len = 0;
    return MOVED;
  }
  return in == MOVED ? MOVED : out;
}

static moved move_down(sbx__egress_conn *c) {
  moved in = STUCK, out = STUCK;
  if (waiting(&c->down) == 0)
    in = fill(&c->down, c->host_fd, BUFFER);
  if (in == BROKEN)
    return BROKEN;
  if (in == MOVED)
    c->count->received += c->down.len;
  /* The end of what was broken off is no end. */
  if (c->host_deaf && c->down.eof && waiting(&c->down) == 0)
    return BROKEN;
  out = flush(&c->down, c->client_fd, NULL);
  return out == STUCK ? in : out;
}

/* Moves what can be moved now. `progress` tells whether anything was. False: it has ended. */
static bool relay_round(sbx__egress_conn *c, bool *progress) {
  bool alive;
  moved up = move_up(c, &alive);
  if (!alive)
    return false;
  moved down = up == BROKEN ? BROKEN : move_down(c);
  if (down == BROKEN) {
    end_broken(c);
    return false;
  }
  *progress = up == MOVED || down == MOVED;
  if (c->down.shut && (c->up.shut || !c->request.connect)) {
    end(c);
    return false;
  }
  return true;
}

static void run_relay(sbx__egress_conn *c) {
  bool progress = true;
  for (int i = 0; i < ROUNDS_MAX && progress && !(i > 0 && sbx_loop_is_spent(c->shared->loop));
       i++) {
    if (!relay_round(c, &progress))
      return;
    if (progress)
      c->moved_ms = sbx_now_ms();
  }
  want(c);
}

static sbx__egress_count *count_of(sbx__egress_shared *shared, const sbx__egress_target *target) {
  sbx__egress_count *count = shared->counts, *last = count + SBX__EGRESS_COUNTS_MAX;
  while (count < last && count->connections > 0 &&
         (count->target.port != target->port || strcmp(count->target.name, target->name) != 0))
    count++;
  if (count < last)
    count->target = *target;
  return count;
}

static void begin_relay(sbx__egress_conn *c) {
  static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
  if (!make_room(&c->down)) {
    end_broken(c);
    return;
  }
  c->stage = RELAY;
  c->count = count_of(c->shared, &c->request.target);
  c->count->connections++;
  c->moved_ms = sbx_now_ms();
  sbx_timer_start(&c->timer, c->shared->limits.idle_ms);
  c->checks_tls = c->request.connect;
  if (c->request.connect)
    put(&c->down, sbx_slice_of(established, sizeof established - 1));
  /* What came with the head. */
  if (look_at_client(c, c->request.connect ? c->up.at : c->up.at + c->request.forward.len))
    run_relay(c);
}

/* ---- connect -------------------------------------------------------------------------------- */

static void on_host(void *arg, int events);

static socklen_t addr_len(const struct sockaddr_storage *addr) {
  return addr->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* One address. False: `connect_error` says why not. */
static bool connect_one(sbx__egress_conn *c, const struct sockaddr_storage *addr) {
  int on = 1;
  c->connect_error = 0;
  c->host_fd = sbx_os_stream(addr->ss_family);
  if (c->host_fd < 0 || (connect(c->host_fd, (const struct sockaddr *)addr, addr_len(addr)) != 0 &&
                         errno != EINPROGRESS))
    c->connect_error = errno;
  else if (sbx_watch_start(&c->host, c->shared->loop, c->host_fd, SBX_WRITABLE, on_host, c, NULL) !=
           SBX_OK)
    c->connect_error = ENOMEM;
  if (c->connect_error != 0) {
    leave_host(c);
    return false;
  }
  setsockopt(c->host_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return true;
}

static void connect_next(sbx__egress_conn *c) {
  while (c->addr_next < c->addr_count) {
    uint64_t share = c->shared->limits.connect_ms / (uint64_t)(c->addr_count - c->addr_next + 1);
    bool last = c->addr_next + 1 == c->addr_count;
    if (!connect_one(c, &c->addrs[c->addr_next++]))
      continue;
    sbx_timer_start(&c->timer, last ? c->shared->limits.connect_ms : share);
    return;
  }
  fail_host(c, c->connect_error == ETIMEDOUT ? 504 : 502, sbx_err_system(c->connect_error));
}

static void on_connect(sbx__egress_conn *c, int events) {
  socklen_t len = sizeof c->connect_error;
  if (getsockopt(c->host_fd, SOL_SOCKET, SO_ERROR, &c->connect_error, &len) != 0)
    c->connect_error = errno;
  if (c->connect_error == 0 && (events & SBX_WRITABLE)) {
    begin_relay(c);
    return;
  }
  if (c->connect_error == 0)
    c->connect_error = ECONNREFUSED;
  leave_host(c);
  connect_next(c);
}

static void on_host(void *arg, int events) {
  sbx__egress_conn *c = arg;
  if (c->stage == CONNECT) {
    on_connect(c, events);
    return;
  }
  /* What it had said before can still be read. */
  c->host_deaf = c->host_deaf || (events & SBX_FAILED);
  run_relay(c);
}

static void add_addr(sbx__egress_conn *c, const struct sockaddr *sa, socklen_t len) {
  struct sockaddr_storage *to = &c->addrs[c->addr_count++];
  memcpy(to, sa, len);
  if (sa->sa_family == AF_INET)
    ((struct sockaddr_in *)to)->sin_port = htons(c->request.target.port);
  else
    ((struct sockaddr_in6 *)to)->sin6_port = htons(c->request.target.port);
}

/* Keeps the addresses that may be connected to: it is these, and no name is looked for again. */
static void on_lookup(void *arg, const struct addrinfo *found, const char *why) {
  sbx__egress_conn *c = arg;
  sbx__egress_addr addr, refused = {0};
  for (const struct addrinfo *a = found; a != NULL; a = a->ai_next) {
    if (!sbx__egress_addr_of(&addr, a->ai_addr))
      continue;
    if (!sbx__egress_check_addr(&c->shared->rules, &addr, c->request.target.port))
      refused = refused.len == 0 ? addr : refused;
    else if (c->addr_count < ADDRS_MAX)
      add_addr(c, a->ai_addr, a->ai_addrlen);
  }
  if (c->addr_count > 0) {
    c->stage = CONNECT;
    connect_next(c);
  } else if (refused.len > 0) {
    sbx_buf text;
    sbx_buf_init(&text, BUFFER);
    c->shared->totals.refused++;
    answer(c, &text, sbx__egress_reply_addr(&text, &c->request, &refused));
  } else {
    fail_host(c, 502, why != NULL ? why : "its name has no address");
  }
}

/* An address that was asked for, and is listed. */
static void connect_addr(sbx__egress_conn *c) {
  const sbx__egress_addr *addr = &c->request.target.addr;
  struct sockaddr_in v4 = {.sin_family = AF_INET};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
  memcpy(&v4.sin_addr, addr->bytes, sizeof v4.sin_addr);
  memcpy(&v6.sin6_addr, addr->bytes, sizeof v6.sin6_addr);
  if (addr->len == 4)
    add_addr(c, (const struct sockaddr *)&v4, sizeof v4);
  else
    add_addr(c, (const struct sockaddr *)&v6, sizeof v6);
  c->stage = CONNECT;
  connect_next(c);
}

/* ---- the request ---------------------------------------------------------------------------- */

/* The head gives way to what is sent in its place; what came behind it stays. */
static bool replace_head(sbx__egress_conn *c, size_t head) {
  sbx_slice forward = sbx_buf_slice(&c->request.forward);
  size_t rest = c->up.len - head;
  if (forward.len + rest > BUFFER)
    return false;
  if (rest > 0)
    memmove(c->up.bytes + forward.len, c->up.bytes + head, rest);
  if (forward.len > 0)
    memcpy(c->up.bytes, forward.ptr, forward.len);
  c->up.len = forward.len + rest;
  return true;
}

static void on_request(sbx__egress_conn *c, size_t head) {
  sbx__egress_fault fault;
  int rc = sbx__egress_request_parse(&c->request, sbx_slice_of(c->up.bytes, head), &fault);
  if (rc == SBX_ENOMEM) {
    end_broken(c);
    return;
  }
  if (rc != SBX_OK) {
    refuse_fault(c, fault.status, fault.why);
    return;
  }
  sbx__egress_verdict verdict = sbx__egress_check(&c->shared->rules, &c->request.target);
  if (verdict != SBX__EGRESS_ALLOWED) {
    sbx_buf text;
    sbx_buf_init(&text, BUFFER);
    c->shared->totals.refused++;
    answer(c, &text, sbx__egress_reply_refused(&text, &c->request, verdict));
    return;
  }
  if (!replace_head(c, head)) {
    refuse_fault(c, 431, "the head of the request is too long");
    return;
  }
  sbx_watch_set(c->client, 0);
  sbx_timer_start(&c->timer, c->shared->limits.connect_ms);
  if (c->request.target.is_addr) {
    connect_addr(c);
    return;
  }
  c->stage = LOOKUP;
  sbx__egress_lookup_start(c->shared->lookups, &c->lookup, c->request.target.name, on_lookup, c);
}

static void run_head(sbx__egress_conn *c) {
  size_t before = c->up.len;
  moved in = fill(&c->up, c->client_fd, SBX__EGRESS_HEAD_MAX);
  size_t head = sbx__egress_head_end(sbx_slice_of(c->up.bytes, c->up.len), before);
  if (in == BROKEN || (c->up.eof && head == 0))
    end(c);
  else if (head > 0)
    on_request(c, head);
  else if (c->up.len > 0 && (unsigned char)c->up.bytes[0] == SBX__EGRESS_TLS_FIRST)
    refuse_fault(c, 400, "the connection to the proxy itself is plain HTTP");
  else if (c->up.len == SBX__EGRESS_HEAD_MAX)
    refuse_fault(c, 431, "the head of the request is too long");
}

static void on_client(void *arg, int events) {
  sbx__egress_conn *c = arg;
  if (events & SBX_FAILED)
    end(c);
  else if (c->stage == HEAD)
    run_head(c);
  else if (c->stage == REPLY)
    run_reply(c);
  else if (c->stage == RELAY)
    run_relay(c);
}

static sbx__egress_conn *of_timer(sbx_timer *timer) {
  return (sbx__egress_conn *)(void *)((char *)timer - offsetof(sbx__egress_conn, timer));
}

static void on_idle(sbx__egress_conn *c) {
  uint64_t idle = sbx_now_ms() - c->moved_ms;
  if (idle >= c->shared->limits.idle_ms)
    end_broken(c);
  else
    sbx_timer_start(&c->timer, c->shared->limits.idle_ms - idle);
}

static void on_timer(sbx_timer *timer) {
  sbx__egress_conn *c = of_timer(timer);
  if (sbx_timer_put_off(timer))
    return;
  if (c->stage == RELAY) {
    on_idle(c);
  } else if (c->stage == CONNECT) {
    c->connect_error = ETIMEDOUT;
    leave_host(c);
    connect_next(c);
  } else if (c->stage == LOOKUP) {
    sbx__egress_lookup_drop(c->shared->lookups, &c->lookup);
    fail_host(c, 504, "its name was not found in time");
  } else if (c->stage == HEAD && c->up.len > 0) {
    refuse_fault(c, 408, "the head of the request did not come in time");
  } else {
    end(c);
  }
}

void sbx__egress_conn_start(sbx__egress_shared *shared, int fd) {
  int on = 1;
  sbx__egress_conn *c = sbx_calloc(1, sizeof *c);
  if (c == NULL || !make_room(&c->up)) {
    sbx_free(c);
    close(fd);
    return;
  }
  c->shared = shared;
  c->client_fd = fd;
  c->host_fd = -1;
  sbx__egress_request_init(&c->request);
  sbx__egress_hello_init(&c->hello);
  sbx_timer_init(&c->timer, shared->loop, on_timer);
  c->next = shared->conns;
  if (c->next != NULL)
    c->next->prev = c;
  shared->conns = c;
  shared->totals.open++;
  shared->totals.accepted++;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (sbx_watch_start(&c->client, shared->loop, fd, SBX_READABLE, on_client, c, NULL) != SBX_OK) {
    drop(c);
    return;
  }
  sbx_timer_start(&c->timer, shared->limits.head_ms);
}
