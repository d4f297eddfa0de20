/* canned.c - a server that answers as it was told; a request that was not foreseen ends the test.
 */
#include "canned.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct connection {
  uv_pipe_t pipe;
  canned *server;
  sbx_buf in;
  sbx_buf out;
  size_t sent;
  bool taken_over; /* what comes is no request any more */
  bool hang_up;
} connection;

typedef struct write_req {
  uv_write_t req;
  connection *c;
} write_req;

static void on_closed(uv_handle_t *handle) {
  connection *c = (connection *)handle;
  c->server->connections--;
  sbx_buf_deinit(&c->in);
  sbx_buf_deinit(&c->out);
  free(c);
}

static void hang_up(connection *c) {
  if (!uv_is_closing((uv_handle_t *)&c->pipe))
    uv_close((uv_handle_t *)&c->pipe, on_closed);
}

static void send_more(connection *c);

static void on_written(uv_write_t *req, int status) {
  connection *c = ((write_req *)req)->c;
  free(req);
  if (status == 0)
    send_more(c);
  else
    hang_up(c);
}

static void send_more(connection *c) {
  size_t left = c->out.len - c->sent;
  size_t piece = c->server->piece != 0 && c->server->piece < left ? c->server->piece : left;
  if (left == 0) {
    if (c->hang_up)
      hang_up(c);
    return;
  }
  write_req *w = calloc(1, sizeof *w);
  uv_buf_t buf = uv_buf_init(c->out.ptr + c->sent, (unsigned)piece);
  w->c = c;
  c->sent += piece;
  uv_write(&w->req, (uv_stream_t *)&c->pipe, &buf, 1, on_written);
}

static canned_answer *find(canned *server, sbx_slice request) {
  for (size_t i = 0; i < server->count; i++) {
    canned_answer *a = &server->answers[i];
    if (!a->used && sbx_slice_starts_with(request, sbx_slice_str(a->request))) {
      a->used = !a->stays;
      return a;
    }
  }
  fail_msg("not foreseen: %.*s", (int)sbx_slice_find(request, '\r'), request.ptr);
  return NULL;
}

/* Length of the whole request that stands in the buffer; 0: it is not whole. */
static size_t whole_request(const sbx_buf *in, size_t *head) {
  const char *end = in->len > 0 ? strstr(in->ptr, "\r\n\r\n") : NULL;
  if (end == NULL)
    return 0;
  *head = (size_t)(end - in->ptr) + 4;
  const char *length = strstr(in->ptr, "ontent-Length: ");
  size_t body = length != NULL && length < end ? (size_t)atol(length + 15) : 0;
  return in->len >= *head + body ? *head + body : 0;
}

/* "auto" stands for the length of the body. */
static void write_reply(sbx_buf *out, const canned_answer *a) {
  size_t len = a->len != 0 ? a->len : strlen(a->reply);
  const char *gap = strstr(a->reply, "Content-Length: auto\r\n\r\n");
  const char *at = a->reply;
  if (gap != NULL) {
    sbx_buf_append(out, at, (size_t)(gap - at) + 16);
    at = gap + 24;
    sbx_buf_appendf(out, "%zu\r\n\r\n", len - (size_t)(at - a->reply));
  }
  sbx_buf_append(out, at, len - (size_t)(at - a->reply));
}

static void answer(connection *c, size_t head, size_t whole) {
  canned *server = c->server;
  sbx_slice request = sbx_slice_of(c->in.ptr, whole);
  canned_answer *a = find(server, request);
  sbx_buf_append(&server->log, request.ptr, sbx_slice_find(request, '\r'));
  sbx_buf_append_char(&server->log, '\n');
  sbx_buf_append(&server->bodies, request.ptr + head, whole - head);
  sbx_buf_append_char(&server->bodies, '\n');
  bool upgrade = strstr(c->in.ptr, "Upgrade: ") != NULL;
  sbx_buf_consume(&c->in, whole);
  if (a->reply == NULL) {
    hang_up(c);
    return;
  }
  write_reply(&c->out, a);
  if (server->fill != NULL)
    server->fill(server, &c->out);
  c->hang_up = a->hang_up;
  c->taken_over = upgrade;
  send_more(c);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf) {
  (void)handle;
  *buf = uv_buf_init(malloc(size), (unsigned)size);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  connection *c = (connection *)stream;
  size_t head = 0, whole;
  if (n > 0)
    sbx_buf_append(&c->in, buf->base, (size_t)n);
  free(buf->base);
  if (n < 0 && !c->taken_over)
    hang_up(c);
  if (n > 0 && !c->taken_over && (whole = whole_request(&c->in, &head)) > 0)
    answer(c, head, whole);
}

static void on_connection(uv_stream_t *listener, int status) {
  connection *c = calloc(1, sizeof *c);
  assert_int_equal(status, 0);
  c->server = listener->data;
  c->server->connections++;
  sbx_buf_init(&c->in, SIZE_MAX / 2);
  sbx_buf_init(&c->out, SIZE_MAX / 2);
  uv_pipe_init(listener->loop, &c->pipe, 0);
  assert_int_equal(uv_accept(listener, (uv_stream_t *)&c->pipe), 0);
  uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
  uv_unref((uv_handle_t *)&c->pipe);
}

void canned_open(canned *server, uv_loop_t *uv) {
  static int number;
  *server = (canned){0};
  snprintf(server->path, sizeof server->path, "/tmp/canned-%ld-%d.sock", (long)getpid(), number++);
  unlink(server->path);
  sbx_buf_init(&server->log, SIZE_MAX / 2);
  sbx_buf_init(&server->bodies, SIZE_MAX / 2);
  uv_pipe_init(uv, &server->listener, 0);
  server->listener.data = server;
  assert_int_equal(uv_pipe_bind(&server->listener, server->path), 0);
  assert_int_equal(uv_listen((uv_stream_t *)&server->listener, 16, on_connection), 0);
  uv_unref((uv_handle_t *)&server->listener);
}

static void close_connection(uv_handle_t *handle, void *arg) {
  if (handle->type == UV_NAMED_PIPE && handle != (uv_handle_t *)&((canned *)arg)->listener)
    hang_up((connection *)handle);
}

/* The loop must run once more. */
void canned_close(canned *server) {
  uv_loop_t *uv = server->listener.loop;
  uv_walk(uv, close_connection, server);
  uv_close((uv_handle_t *)&server->listener, NULL);
  uv_run(uv, UV_RUN_NOWAIT);
  sbx_buf_deinit(&server->log);
  sbx_buf_deinit(&server->bodies);
}

void canned_add(canned *server, const char *request, const char *reply) {
  assert_true(server->count < sizeof server->answers / sizeof *server->answers);
  server->answers[server->count++] = (canned_answer){.request = request, .reply = reply};
}

canned_answer *canned_last(canned *server) {
  return &server->answers[server->count - 1];
}
