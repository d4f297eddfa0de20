/* egress_head.h - the head of a request to the proxy, and where its body ends. Sans-I/O.
 *
 * What two programs could read in different ways is refused: a second request must not hide in the
 * first, nor a second host behind the one that was checked. */
#ifndef SBX_EGRESS_HEAD_H
#define SBX_EGRESS_HEAD_H

#include "providers/local/egress_rules.h"

enum { SBX__EGRESS_HEAD_MAX = 16 * 1024, SBX__EGRESS_FIELDS_MAX = 100 };

/* Where the body of a request ends. */
typedef struct sbx__egress_body {
  enum {
    SBX__EGRESS_BODY_LENGTH, /* after `left` bytes */
    SBX__EGRESS_BODY_SIZE,   /* chunks: in the line with a chunk's size */
    SBX__EGRESS_BODY_DATA,
    SBX__EGRESS_BODY_DATA_END,
    SBX__EGRESS_BODY_TRAILER
  } state;
  uint64_t left;   /* of the body, or of the chunk */
  size_t line;     /* bytes of the line so far */
  size_t trailers; /* bytes of all trailer lines */
  unsigned digits; /* of the size */
  bool extension;  /* the size has ended */
  bool cr;         /* the last byte was one */
  bool done;
} sbx__egress_body;

typedef struct sbx__egress_request {
  bool connect; /* a tunnel; else one request, and then the end */
  bool is_head; /* its answer has no body */
  sbx__egress_target target;
  sbx_buf forward; /* the head for the host, when there is no tunnel */
  sbx__egress_body body;
} sbx__egress_request;

/* What is wrong with a request: the answer's status and what it says. Static text. */
typedef struct sbx__egress_fault {
  int status;
  const char *why;
} sbx__egress_fault;

/* The length of the head at the front of `bytes`, with its empty line; 0 when its end has not come.
 * `seen`: bytes that an earlier call had looked at. */
size_t sbx__egress_head_end(sbx_slice bytes, size_t seen);

void sbx__egress_request_init(sbx__egress_request *request);
void sbx__egress_request_deinit(sbx__egress_request *request);
/* Reads a whole head: CONNECT with host and port, or a method with an http URL. Of what is to be
 * forwarded, fields for the proxy are left out (Connection and what it names, Proxy-*), Host is the
 * URL's, and the connection ends with the answer. SBX_EINVAL: `fault` is filled. SBX_ENOMEM. */
int sbx__egress_request_parse(sbx__egress_request *request, sbx_slice head,
                              sbx__egress_fault *fault);

/* Takes bytes at any split, until `done`; *used says how many belong to the body. False: the chunks
 * are malformed. */
bool sbx__egress_body_feed(sbx__egress_body *body, sbx_slice bytes, size_t *used);

#endif
