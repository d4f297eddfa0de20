/* transfer.c - curl_multi_socket_action() driven by the watches and one timer of an sbx_loop.
 *
 * libcurl says through two callbacks what it waits for; they only start and stop watches and the
 * timer. What happened is told to it from our own loop callbacks, each followed by a look for
 * transfers that have ended.
 *
 * An old libcurl gives a multi handle up after so many answers over HTTP/2: see STREAMS_MAX.
 *
 * Transfers are read one after the other until the core has had its share of the turn. One that is
 * read then is paused, for libcurl reads on as long as something comes, and descriptors that are
 * left are not read; both wait in one queue for the next turn. So whatever services send, the
 * host's other work gets its turn, and so does each of them.
 *
 * Invariant: owners are called, and handles removed, only outside of libcurl (`inside` is false).
 */
#include "core/transfer.h"

#include "core/alloc.h"
#include "core/err.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Connections that are kept. When more are busy at a time, each is closed as it becomes idle, and
 * the next request needs a new one. */
#define IDLE_CONNECTIONS_MAX 128L

/* A libcurl that cannot share HTTP/2 connections resets every stream after its end (curl_dl.h).
 * Servers count that as an attack and break the connection: those that stand on nghttp2, as node's,
 * after a thousand resets. libcurl cannot be told to use a connection no more, so after so many
 * streams a new multi handle takes what starts, and the old one ends with its last transfer. */
enum { STREAMS_MAX = 500 };

typedef struct sbx__pool pool;

/* A multi handle: its connections are its own. */
typedef struct sbx__hub {
  pool *pool;
  struct sbx__hub *next;
  CURLM *multi;
  sbx_timer timer;
  size_t transfers; /* active ones */
  size_t streams;   /* that are over */
} hub;

/* A descriptor that libcurl waits for. That of a kept connection goes on being watched between two
 * requests, which saves the system calls to stop and to start again. */
typedef struct sock {
  sbx__waiter waiter; /* first; while it is ready and not read */
  hub *hub;
  curl_socket_t fd;
  bool idle;  /* libcurl waits for nothing */
  int events; /* what is watched for */
  sbx_watch *watch;
  int ready; /* for what */
} sock;

struct sbx__pool {
  sbx_loop *loop;
  const sbx_curl *curl;
  hub *hubs;      /* the first takes what starts, the others end what they have */
  sbx_task sweep; /* frees those that have ended, outside of libcurl */
  /* By descriptor, since libcurl forgets what it was told of one with every request. */
  struct {
    sock *sock;
  } * socks;
  size_t sock_room, sock_count;
  sbx__waiter *first_waiter, *last_waiter;
  size_t waiters;
  sbx_transfer *active;
  bool any_failed; /* one of them */
  bool inside;
  uint64_t rounds; /* how often libcurl was told something */
};

/* ---- what waits for the next turn ---- */

static void leave_queue(pool *p, sbx__waiter *w) {
  if (!w->waits)
    return;
  if (w->prev != NULL)
    w->prev->next = w->next;
  else
    p->first_waiter = w->next;
  if (w->next != NULL)
    w->next->prev = w->prev;
  else
    p->last_waiter = w->prev;
  w->next = w->prev = NULL;
  w->waits = false;
  if (--p->waiters == 0)
    sbx_loop_each_turn(p->loop, NULL, NULL);
}

/* Each once at most: who comes meanwhile is behind them. */
static void serve_queue(void *arg) {
  pool *p = arg;
  for (size_t n = p->waiters; n > 0 && p->waiters > 0 && !sbx_loop_is_spent(p->loop); n--) {
    sbx__waiter *w = p->first_waiter;
    leave_queue(p, w);
    w->serve(w);
  }
}

static void join_queue(pool *p, sbx__waiter *w) {
  if (w->waits)
    return;
  w->waits = true;
  w->prev = p->last_waiter;
  if (w->prev != NULL)
    w->prev->next = w;
  else
    p->first_waiter = w;
  p->last_waiter = w;
  if (p->waiters++ == 0)
    sbx_loop_each_turn(p->loop, serve_queue, p);
}

/* ---- what has ended ---- */

static void unlink_transfer(pool *p, sbx_transfer *t) {
  leave_queue(p, &t->waiter);
  if (t->prev != NULL)
    t->prev->next = t->next;
  else
    p->active = t->next;
  if (t->next != NULL)
    t->next->prev = t->prev;
  t->next = t->prev = NULL;
  t->active = false;
}

/* A stream that is given up before its answer is reset by any version. */
static bool was_stream(const pool *p, const sbx_transfer *t) {
  long version = CURL_HTTP_VERSION_NONE;
  return !p->curl->shares_http2 &&
         p->curl->easy_getinfo(t->easy, CURLINFO_HTTP_VERSION, &version) == CURLE_OK &&
         version != CURL_HTTP_VERSION_1_0 && version != CURL_HTTP_VERSION_1_1;
}

static void remove_transfer(pool *p, sbx_transfer *t) {
  assert(!p->inside);
  hub *h = t->hub;
  unlink_transfer(p, t);
  h->streams += was_stream(p, t) ? 1 : 0;
  p->inside = true;
  p->curl->multi_remove_handle(h->multi, t->easy);
  p->inside = false;
  if (--h->transfers == 0 && h != p->hubs)
    sbx_loop_defer(p->loop, &p->sweep);
}

static void finish_transfer(pool *p, sbx_transfer *t, CURLcode result) {
  if (!t->stays || result != CURLE_OK)
    remove_transfer(p, t);
  t->done(t, result);
}

static sbx_transfer *transfer_of(pool *p, CURL *easy) {
  char *owner = NULL;
  p->curl->easy_getinfo(easy, CURLINFO_PRIVATE, &owner);
  return (sbx_transfer *)(void *)owner;
}

static sbx_transfer *first_failed(pool *p) {
  sbx_transfer *t = p->active;
  while (t != NULL && !t->failed)
    t = t->next;
  return t;
}

static void reap(hub *h) {
  CURLMsg *message;
  int left = 0;
  pool *p = h->pool;
  while ((message = p->curl->multi_info_read(h->multi, &left)) != NULL) {
    if (message->msg != CURLMSG_DONE)
      continue;
    /* The message does not outlive the removal of its handle. */
    CURLcode result = message->data.result;
    sbx_transfer *t = transfer_of(p, message->easy_handle);
    if (t != NULL)
      finish_transfer(p, t, t->failed ? CURLE_OUT_OF_MEMORY : result);
  }
  while (p->any_failed) {
    sbx_transfer *failed = first_failed(p);
    p->any_failed = failed != NULL;
    if (failed != NULL)
      finish_transfer(p, failed, CURLE_OUT_OF_MEMORY);
  }
}

static void act(hub *h, curl_socket_t fd, int events) {
  int running = 0;
  pool *p = h->pool;
  assert(!p->inside);
  p->inside = true;
  p->rounds++;
  CURLMcode rc = p->curl->multi_socket_action(h->multi, fd, events, &running);
  p->inside = false;
  if (rc != CURLM_OK && rc != CURLM_BAD_SOCKET) {
    /* The library can tell nothing about single transfers any more. */
    for (sbx_transfer *t = p->active; t != NULL; t = t->next)
      t->failed = t->failed || t->hub == h;
    p->any_failed = true;
  }
  reap(h);
}

/* ---- what libcurl waits for ---- */

static void set_events(sock *s, int events) {
  if (s->events == events)
    return;
  s->events = events;
  sbx_watch_set(s->watch, events);
}

static void serve(sock *s, int events) {
  int mask = ((events & SBX_READABLE) ? CURL_CSELECT_IN : 0) |
             ((events & SBX_WRITABLE) ? CURL_CSELECT_OUT : 0);
  if (!s->idle && mask != 0)
    act(s->hub, s->fd, mask);
}

static void serve_waiting(sbx__waiter *w) {
  sock *s = (sock *)(void *)w;
  serve(s, s->ready & s->events);
}

/* An error of the descriptor is passed on as readiness: libcurl then reads what came before it and
 * finds the error by itself, where its error bit would end the transfer unread. */
static void on_socket_event(void *arg, int events) {
  sock *s = arg;
  if (s->idle) {
    /* Most likely its end: libcurl looks when it wants to use it again. */
    set_events(s, 0);
    return;
  }
  if (events & SBX_FAILED) {
    events = s->events;
    sbx_watch_set(s->watch, events);
  }
  s->ready = events;
  pool *p = s->hub->pool;
  if (s->waiter.waits || sbx_loop_is_spent(p->loop))
    join_queue(p, &s->waiter);
  else
    serve(s, events);
}

static void on_timeout(sbx_timer *timer) {
  act((hub *)(void *)((char *)timer - offsetof(hub, timer)), CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_timer(CURLM *multi, long timeout_ms, void *arg) {
  hub *h = arg;
  (void)multi;
  sbx_timer_start(&h->timer, timeout_ms < 0 ? SBX_NO_TIMEOUT : (uint64_t)timeout_ms);
  return 0;
}

static void free_sock(sock *s) {
  pool *p = s->hub->pool;
  p->socks[s->fd].sock = NULL;
  p->sock_count--;
  leave_queue(p, &s->waiter);
  sbx_watch_stop(s->watch);
  sbx_free(s);
}

static sock *find_sock(const pool *p, curl_socket_t fd) {
  return (size_t)fd < p->sock_room ? p->socks[fd].sock : NULL;
}

static bool make_room(pool *p, size_t fd) {
  size_t room = 2 * fd + 32;
  if (fd < p->sock_room)
    return true;
  void *socks = sbx_realloc(p->socks, room * sizeof *p->socks);
  if (socks == NULL)
    return false;
  p->socks = socks;
  memset(p->socks + p->sock_room, 0, (room - p->sock_room) * sizeof *p->socks);
  p->sock_room = room;
  return true;
}

static sock *new_sock(hub *h, curl_socket_t fd) {
  pool *p = h->pool;
  sock *s = make_room(p, (size_t)fd) ? sbx_calloc(1, sizeof *s) : NULL;
  if (s == NULL)
    return NULL;
  if (sbx_watch_start(&s->watch, p->loop, fd, 0, on_socket_event, s, NULL) != SBX_OK) {
    sbx_free(s);
    return NULL;
  }
  s->waiter.serve = serve_waiting;
  s->hub = h;
  s->fd = fd;
  p->socks[fd].sock = s;
  p->sock_count++;
  return s;
}

/* Only the end of a kept connection surely comes to close_socket(). One that was given up before it
 * came about is closed by libcurl 7.88 without a word, as the resolver's descriptor is by any, and
 * its number is somebody else's from then on. */
static void unwatch_sock(sock *s, CURL *easy) {
  curl_socket_t kept = CURL_SOCKET_BAD;
  pool *p = s->hub->pool;
  const sbx_transfer *t = transfer_of(p, easy);
  if ((t != NULL && t->stays) || /* its owner watches it from now on */
      p->curl->easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &kept) != CURLE_OK || kept != s->fd) {
    free_sock(s);
    return;
  }
  s->idle = true;
  set_events(s, s->events & SBX_READABLE);
}

/* As libcurl would, but not inherited by the processes that local sandboxes start. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address) {
  (void)arg;
  (void)purpose;
#ifdef SOCK_CLOEXEC
  int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
#else
  int fd = socket(address->family, address->socktype, address->protocol);
  if (fd >= 0)
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
#endif
  return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static int close_socket(void *arg, curl_socket_t fd) {
  sock *s = find_sock(arg, fd);
  if (s != NULL)
    free_sock(s);
  return close(fd);
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *assigned) {
  hub *h = arg;
  pool *p = h->pool;
  sock *s = find_sock(p, fd);
  (void)assigned;
  if (what == CURL_POLL_REMOVE) {
    if (s != NULL)
      unwatch_sock(s, easy);
    return 0;
  }
  int events =
      ((what & CURL_POLL_IN) ? SBX_READABLE : 0) | ((what & CURL_POLL_OUT) ? SBX_WRITABLE : 0);
  if (s == NULL)
    s = new_sock(h, fd);
  if (s != NULL) {
    s->idle = false;
    set_events(s, events);
    return 0;
  }
  /* An error returned from here would end all transfers: only this one has to. */
  sbx_transfer *t = transfer_of(p, easy);
  if (t != NULL)
    t->failed = p->any_failed = true;
  sbx_timer_start(&h->timer, 0);
  return 0;
}

/* ---- multi handles ---- */

static void free_hub(hub *h) {
  pool *p = h->pool;
  p->inside = true;
  p->curl->multi_cleanup(h->multi);
  p->inside = false;
  /* Those whose end it has not told. */
  for (size_t fd = 0; fd < p->sock_room; fd++) {
    if (p->socks[fd].sock != NULL && p->socks[fd].sock->hub == h)
      free_sock(p->socks[fd].sock);
  }
  sbx_timer_stop(&h->timer);
  sbx_free(h);
}

static void free_ended_hubs(sbx_task *task) {
  pool *p = (pool *)(void *)((char *)task - offsetof(pool, sweep));
  hub **at = &p->hubs->next;
  while (*at != NULL) {
    hub *h = *at;
    if (h->transfers > 0) {
      at = &h->next;
      continue;
    }
    *at = h->next;
    free_hub(h);
  }
}

static hub *new_hub(pool *p) {
  const sbx_curl *curl = p->curl;
  hub *h = sbx_calloc(1, sizeof *h);
  if (h == NULL)
    return NULL;
  h->pool = p;
  h->multi = curl->multi_init();
  if (h->multi == NULL) {
    sbx_free(h);
    return NULL;
  }
  sbx_timer_init(&h->timer, p->loop, on_timeout);
  curl->multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
  curl->multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
  curl->multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
  curl->multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
  curl->multi_setopt(h->multi, CURLMOPT_PIPELINING,
                     curl->shares_http2 ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING);
  curl->multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS_MAX);
  return h;
}

/* Of what starts now; NULL: no memory. */
static hub *hub_of_next(pool *p) {
  if (p->hubs != NULL && p->hubs->streams < STREAMS_MAX)
    return p->hubs;
  hub *h = new_hub(p);
  if (h == NULL)
    return NULL;
  h->next = p->hubs;
  p->hubs = h;
  if (h->next != NULL && h->next->transfers == 0)
    sbx_loop_defer(p->loop, &p->sweep);
  return h;
}

/* ---- the pool of a loop ---- */

static void free_pool(void *state) {
  pool *p = state;
  assert(p->active == NULL);
  sbx_task_cancel(&p->sweep);
  while (p->hubs != NULL) {
    hub *h = p->hubs;
    p->hubs = h->next;
    free_hub(h);
  }
  sbx_free(p->socks);
  sbx_free(p);
}

static pool *new_pool(sbx_loop *loop, const sbx_curl *curl) {
  pool *p = sbx_calloc(1, sizeof *p);
  if (p == NULL)
    return NULL;
  p->loop = loop;
  p->curl = curl;
  sbx_task_init(&p->sweep, free_ended_hubs);
  return p;
}

/* What libcurl has held back comes first, from inside of this call. */
static void go_on(sbx__waiter *w) {
  sbx_transfer *t = (sbx_transfer *)(void *)w;
  pool *p = t->pool;
  p->inside = true;
  CURLcode rc = p->curl->easy_pause(t->easy, CURLPAUSE_CONT);
  p->inside = false;
  if (rc != CURLE_OK)
    finish_transfer(p, t, rc);
}

uint64_t sbx_transfer_round(const sbx_transfer *transfer) {
  return transfer->pool->rounds;
}

bool sbx_transfer_pause(sbx_transfer *transfer) {
  if (!sbx_loop_is_spent(transfer->pool->loop))
    return false;
  join_queue(transfer->pool, &transfer->waiter);
  return true;
}

int sbx_transfer_start(sbx_transfer *transfer, sbx_loop *loop, CURL *easy,
                       void (*done)(sbx_transfer *transfer, CURLcode result), sbx_err *err) {
  const sbx_curl *curl = NULL;
  int code = sbx_curl_get(&curl, err);
  if (code != SBX_OK)
    return code;
  pool *p = sbx_loop_transfer_state(loop);
  if (p == NULL) {
    p = new_pool(loop, curl);
    if (p == NULL)
      return sbx_err_set(err, SBX_ENOMEM, NULL);
    sbx_loop_set_transfer_state(loop, p, free_pool);
  }
  assert(!p->inside && !transfer->active);
  hub *h = hub_of_next(p);
  if (h == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  *transfer = (sbx_transfer){.waiter.serve = go_on,
                             .pool = p,
                             .hub = h,
                             .easy = easy,
                             .done = done,
                             .active = true,
                             .stays = transfer->stays,
                             .next = p->active};
  curl->easy_setopt(easy, CURLOPT_PRIVATE, transfer);
  curl->easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  curl->easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
  curl->easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, p);
  p->inside = true;
  CURLMcode rc = curl->multi_add_handle(h->multi, easy);
  p->inside = false;
  if (rc != CURLM_OK) {
    transfer->active = false;
    return sbx_err_set(err, SBX_ENOMEM, "libcurl cannot start a transfer: %s",
                       curl->multi_strerror(rc));
  }
  if (p->active != NULL)
    p->active->prev = transfer;
  p->active = transfer;
  h->transfers++;
  return SBX_OK;
}

void sbx_transfer_stop(sbx_transfer *transfer, sbx_loop *loop) {
  if (transfer->active)
    remove_transfer(sbx_loop_transfer_state(loop), transfer);
}

size_t sbx_transfer_connections(const sbx_loop *loop) {
  const pool *p = sbx_loop_transfer_state(loop);
  return p != NULL ? p->sock_count : 0;
}
