/* egress_head.c - see the header. */
#include "providers/local/egress_head.h"

#include "core/alloc.h"

#include <string.h>

typedef struct field {
  sbx_slice name, value;
} field;

typedef struct fields {
  field items[SBX__EGRESS_FIELDS_MAX];
  size_t count;
} fields;

static int refuse(sbx__egress_fault *fault, int status, const char *why) {
  *fault = (sbx__egress_fault){status, why};
  return SBX_EINVAL;
}

/* ---- pieces --------------------------------------------------------------------------------- */

static bool is_token(sbx_slice s) {
  for (size_t i = 0; i < s.len; i++) {
    if (!sbx_is_letter(s.ptr[i]) && !sbx_is_digit(s.ptr[i]) &&
        (s.ptr[i] == '\0' || strchr("!#$%&'*+-.^_`|~", s.ptr[i]) == NULL))
      return false;
  }
  return s.len > 0;
}

static bool is_visible(sbx_slice s) {
  for (size_t i = 0; i < s.len; i++) {
    if (s.ptr[i] <= 0x20 || s.ptr[i] == 0x7f || s.ptr[i] == '#')
      return false;
  }
  return true;
}

static sbx_slice trim(sbx_slice s) {
  while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
    s = sbx_slice_skip(s, 1);
  while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
    s.len--;
  return s;
}

static bool is(sbx_slice s, const char *text) {
  return sbx_slice_eq_nocase(s, sbx_slice_str(text));
}

/* Takes a line and its CRLF off the front; false when a CR or LF stands alone in it. */
static bool take_line(sbx_slice *in, sbx_slice *line) {
  size_t end = sbx_slice_find(*in, '\n');
  if (end == in->len || end == 0 || in->ptr[end - 1] != '\r')
    return false;
  *line = sbx_slice_of(in->ptr, end - 1);
  *in = sbx_slice_skip(*in, end + 1);
  return sbx_slice_find(*line, '\r') == line->len;
}

/* Takes the next member off a comma-separated list. */
static sbx_slice take_member(sbx_slice *list) {
  size_t end = sbx_slice_find(*list, ',');
  sbx_slice member = trim(sbx_slice_of(list->ptr, end));
  *list = sbx_slice_skip(*list, end + 1);
  return member;
}

size_t sbx__egress_head_end(sbx_slice bytes, size_t seen) {
  for (size_t i = seen > 3 ? seen - 3 : 0; i + 4 <= bytes.len; i++) {
    if (memcmp(bytes.ptr + i, "\r\n\r\n", 4) == 0)
      return i + 4;
  }
  return 0;
}

/* ---- fields --------------------------------------------------------------------------------- */

static int read_fields(fields *out, sbx_slice in, sbx__egress_fault *fault) {
  sbx_slice line;
  for (out->count = 0; take_line(&in, &line);) {
    if (line.len == 0)
      return SBX_OK; /* the head ends here: nothing can follow */
    if (out->count == SBX__EGRESS_FIELDS_MAX)
      return refuse(fault, 431, "the request has too many header fields");
    size_t colon = sbx_slice_find(line, ':');
    field *f = &out->items[out->count++];
    *f = (field){sbx_slice_of(line.ptr, colon), trim(sbx_slice_skip(line, colon + 1))};
    if (colon == line.len || !is_token(f->name))
      return refuse(fault, 400, "a header field is malformed");
    for (size_t i = 0; i < f->value.len; i++) {
      unsigned char c = (unsigned char)f->value.ptr[i];
      if ((c < 0x20 && c != '\t') || c == 0x7f)
        return refuse(fault, 400, "a header field has a control character");
    }
  }
  return refuse(fault, 400, "a line of the head does not end with CR and LF");
}

/* How many fields of this name there are; `value` becomes the last one's. */
static size_t find(const fields *in, const char *name, sbx_slice *value) {
  size_t count = 0;
  for (size_t i = 0; i < in->count; i++) {
    if (is(in->items[i].name, name)) {
      *value = in->items[i].value;
      count++;
    }
  }
  return count;
}

/* Whether a Connection field names it, so that it is for the next hop alone. */
static bool is_named(const fields *in, sbx_slice name) {
  for (size_t i = 0; i < in->count; i++) {
    sbx_slice list = in->items[i].value;
    while (is(in->items[i].name, "connection") && list.len > 0) {
      if (sbx_slice_eq_nocase(take_member(&list), name))
        return true;
    }
  }
  return false;
}

static bool is_for_proxy(const fields *in, sbx_slice name) {
  static const char *const hop[] = {"connection",
                                    "proxy-connection",
                                    "proxy-authorization",
                                    "proxy-authenticate",
                                    "keep-alive",
                                    "te",
                                    "upgrade",
                                    "host"};
  for (size_t i = 0; i < sizeof hop / sizeof *hop; i++) {
    if (is(name, hop[i]))
      return true;
  }
  return is_named(in, name);
}

static int read_length(sbx__egress_body *body, sbx_slice text, sbx__egress_fault *fault) {
  if (text.len == 0 || text.len > 18)
    return refuse(fault, 400, "Content-Length is malformed");
  for (size_t i = 0; i < text.len; i++) {
    if (!sbx_is_digit(text.ptr[i]))
      return refuse(fault, 400, "Content-Length is malformed");
    body->left = body->left * 10 + (uint64_t)(text.ptr[i] - '0');
  }
  body->done = body->left == 0;
  return SBX_OK;
}

static int read_framing(sbx__egress_body *body, const fields *in, bool http10,
                        sbx__egress_fault *fault) {
  sbx_slice length, coding;
  size_t lengths = find(in, "content-length", &length),
         codings = find(in, "transfer-encoding", &coding);
  if (is_named(in, sbx_slice_str("content-length")) ||
      is_named(in, sbx_slice_str("transfer-encoding")) || is_named(in, sbx_slice_str("host")))
    return refuse(fault, 400, "Connection names a field that says where the request ends or goes");
  if (lengths + codings > 1)
    return refuse(fault, 400, "the length of the request is said more than once");
  if (lengths == 1)
    return read_length(body, length, fault);
  body->done = codings == 0;
  if (body->done)
    return SBX_OK;
  body->state = SBX__EGRESS_BODY_SIZE;
  if (http10)
    return refuse(fault, 400, "HTTP/1.0 has no Transfer-Encoding");
  return is(coding, "chunked") ? SBX_OK
                               : refuse(fault, 501, "the only Transfer-Encoding is chunked");
}

/* At most one Host, and that of the target. */
static int check_host(const fields *in, const sbx__egress_request *request,
                      sbx__egress_fault *fault) {
  sbx_slice value;
  sbx__egress_target host;
  size_t count = find(in, "host", &value);
  if (count == 0)
    return SBX_OK;
  if (count > 1)
    return refuse(fault, 400, "the request has more than one Host field");
  /* For a tunnel some programs leave the port out. */
  if (!sbx__egress_target_parse(&host, value, request->connect ? request->target.port : 80) ||
      host.is_addr != request->target.is_addr || host.port != request->target.port ||
      strcmp(host.name, request->target.name) != 0)
    return refuse(fault, 403, "the Host field names another host than the request");
  return SBX_OK;
}

/* ---- the request ---------------------------------------------------------------------------- */

/* "http://host[:port][/path]" */
static int read_url(sbx__egress_request *request, sbx_slice url, sbx_slice *path,
                    sbx__egress_fault *fault) {
  static const char scheme[] = "http://";
  size_t len = sizeof scheme - 1, end;
  if (url.len > 0 && url.ptr[0] == '/')
    return refuse(fault, 400,
                  "this is the proxy of a sandbox, not a server: a request names its "
                  "host in a whole URL");
  if (url.len > 8 && is(sbx_slice_of(url.ptr, 8), "https://"))
    return refuse(fault, 400, "https goes through this proxy by CONNECT");
  if (url.len <= len || !is(sbx_slice_of(url.ptr, len), scheme))
    return refuse(fault, 400, "only http URLs and CONNECT go through this proxy");
  url = sbx_slice_skip(url, len);
  for (end = 0; end < url.len && url.ptr[end] != '/' && url.ptr[end] != '?';)
    end++;
  if (sbx_slice_find(sbx_slice_of(url.ptr, end), '@') < end)
    return refuse(fault, 400, "the URL has a user name");
  *path = sbx_slice_skip(url, end);
  if (!sbx__egress_target_parse(&request->target, sbx_slice_of(url.ptr, end), 80))
    return refuse(fault, 400, "the host of the URL is none");
  return SBX_OK;
}

static int write_forward(sbx_buf *out, sbx_slice method, sbx_slice path, bool http10,
                         const sbx__egress_target *target, const fields *in) {
  sbx_buf_append_slice(out, method);
  sbx_buf_append_str(out, path.len > 0 && path.ptr[0] == '/' ? " " : " /");
  sbx_buf_append_slice(out, path);
  /* The host answers in the client's version. */
  sbx_buf_appendf(out, " HTTP/1.%d\r\nHost: ", http10 ? 0 : 1);
  if (target->port != 80) {
    sbx__egress_target_write(out, target);
  } else {
    bool v6 = target->is_addr && target->addr.len == 16;
    sbx_buf_appendf(out, "%s%s%s", v6 ? "[" : "", target->name, v6 ? "]" : "");
  }
  sbx_buf_append_str(out, "\r\nConnection: close\r\n");
  for (size_t i = 0; i < in->count; i++) {
    if (is_for_proxy(in, in->items[i].name))
      continue;
    sbx_buf_append_slice(out, in->items[i].name);
    sbx_buf_append_str(out, ": ");
    sbx_buf_append_slice(out, in->items[i].value);
    sbx_buf_append_str(out, "\r\n");
  }
  return sbx_buf_append_str(out, "\r\n");
}

static int read_line(sbx__egress_request *request, sbx_slice line, sbx_slice *method,
                     sbx_slice *path, bool *http10, sbx__egress_fault *fault) {
  size_t one = sbx_slice_find(line, ' ');
  sbx_slice rest = sbx_slice_skip(line, one + 1);
  size_t two = sbx_slice_find(rest, ' ');
  sbx_slice url = sbx_slice_of(rest.ptr, two), version = sbx_slice_skip(rest, two + 1);
  *method = sbx_slice_of(line.ptr, one);
  *http10 = sbx_slice_eq_str(version, "HTTP/1.0");
  if (!is_token(*method) || method->len > 32 || url.len == 0 || !is_visible(url))
    return refuse(fault, 400, "the request line is malformed");
  if (!*http10 && !sbx_slice_eq_str(version, "HTTP/1.1"))
    return refuse(fault, 505, "the proxy speaks HTTP/1.1");
  request->is_head = sbx_slice_eq_str(*method, "HEAD");
  request->connect = sbx_slice_eq_str(*method, "CONNECT");
  if (!request->connect)
    return read_url(request, url, path, fault);
  if (!sbx__egress_target_parse(&request->target, url, 0))
    return refuse(fault, 400, "CONNECT needs a host and a port");
  return SBX_OK;
}

void sbx__egress_request_init(sbx__egress_request *request) {
  *request = (sbx__egress_request){0};
  /* What is added is shorter than what a URL loses, but for a long name and its fields. */
  sbx_buf_init(&request->forward, SBX__EGRESS_HEAD_MAX + 512);
}

void sbx__egress_request_deinit(sbx__egress_request *request) {
  if (request->forward.ptr != NULL)
    sbx_wipe(request->forward.ptr, request->forward.len);
  sbx_buf_deinit(&request->forward);
}

int sbx__egress_request_parse(sbx__egress_request *request, sbx_slice head,
                              sbx__egress_fault *fault) {
  fields all;
  sbx_slice line, method, path = {0};
  bool http10;
  if (!take_line(&head, &line))
    return refuse(fault, 400, "the request line is malformed");
  int rc = read_line(request, line, &method, &path, &http10, fault);
  if (rc == SBX_OK)
    rc = read_fields(&all, head, fault);
  if (rc == SBX_OK)
    rc = check_host(&all, request, fault);
  if (rc == SBX_OK)
    rc = read_framing(&request->body, &all, http10, fault);
  if (rc != SBX_OK)
    return rc;
  if (request->connect)
    return request->body.done ? SBX_OK : refuse(fault, 400, "CONNECT has no body");
  rc = write_forward(&request->forward, method, path, http10, &request->target, &all);
  return rc == SBX_ETOOBIG ? refuse(fault, 431, "the head of the request is too long") : rc;
}

/* ---- the body ------------------------------------------------------------------------------- */

enum { SIZE_LINE_MAX = 256, TRAILERS_MAX = 8 * 1024, DIGITS_MAX = 15 };

/* A line's end must be CR and LF. True: it has come. */
static bool line_ends(sbx__egress_body *body, char c, bool *bad) {
  *bad = *bad || (body->cr && c != '\n') || (!body->cr && c == '\n');
  bool ends = body->cr && c == '\n';
  body->cr = c == '\r';
  return ends;
}

static int hex(char c) {
  if (sbx_is_digit(c))
    return c - '0';
  c = (char)(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool feed_size(sbx__egress_body *body, char c) {
  bool bad = ++body->line > SIZE_LINE_MAX;
  if (line_ends(body, c, &bad)) {
    body->state = body->left > 0 ? SBX__EGRESS_BODY_DATA : SBX__EGRESS_BODY_TRAILER;
    bad = bad || body->digits == 0;
    body->line = 0;
    body->digits = 0;
    body->extension = false;
  } else if (c == ';') {
    body->extension = true;
  } else if (!body->extension && c != '\r') {
    int digit = hex(c);
    bad = bad || digit < 0 || ++body->digits > DIGITS_MAX;
    body->left = body->left << 4 | (uint64_t)(digit & 15);
  } else {
    bad = bad || (c != '\r' && c != '\t' && (unsigned char)c < 0x20);
  }
  return !bad;
}

static bool feed_trailer(sbx__egress_body *body, char c) {
  bool bad = ++body->trailers > TRAILERS_MAX;
  if (line_ends(body, c, &bad)) {
    body->done = body->line == 0;
    body->line = 0;
  } else if (c != '\r') {
    bad = bad || (c != '\t' && (unsigned char)c < 0x20);
    body->line++;
  }
  return !bad;
}

static bool feed_byte(sbx__egress_body *body, char c) {
  bool bad = false;
  if (body->state == SBX__EGRESS_BODY_SIZE)
    return feed_size(body, c);
  if (body->state == SBX__EGRESS_BODY_TRAILER)
    return feed_trailer(body, c);
  if (line_ends(body, c, &bad))
    body->state = SBX__EGRESS_BODY_SIZE;
  else
    bad = bad || c != '\r';
  return !bad;
}

bool sbx__egress_body_feed(sbx__egress_body *body, sbx_slice bytes, size_t *used) {
  for (*used = 0; *used < bytes.len && !body->done;) {
    if (body->state != SBX__EGRESS_BODY_LENGTH && body->state != SBX__EGRESS_BODY_DATA) {
      if (!feed_byte(body, bytes.ptr[(*used)++]))
        return false;
      continue;
    }
    size_t rest = bytes.len - *used, taken = rest < body->left ? rest : (size_t)body->left;
    *used += taken;
    body->left -= taken;
    if (body->left == 0) {
      body->done = body->state == SBX__EGRESS_BODY_LENGTH;
      body->state = body->done ? SBX__EGRESS_BODY_LENGTH : SBX__EGRESS_BODY_DATA_END;
    }
  }
  return true;
}
