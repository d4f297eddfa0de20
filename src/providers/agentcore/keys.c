/* keys.c - the access keys that requests are signed with: asks a container's address, or an
 * instance's metadata service, for temporary ones.
 *
 *   container: GET url
 *   instance:  PUT a token for this conversation -> GET the role's name -> GET its keys
 *
 * Invariant: keys are replaced as a whole, by an answer that is complete. */
#include "providers/agentcore/keys.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/err.h"
#include "core/json.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
  EARLY_S = 300, /* before they end they are replaced */
  AGAIN_S = 30,  /* after which others are asked for again */
  CONNECT_MS = 1000,
  TIMEOUT_MS = 5000,
  MAX_ROLE = 128,
};

#define MAX_SECRET ((size_t)16 * 1024)
#define ROLES "/latest/meta-data/iam/security-credentials/"

void sbx__ac_keys_free(sbx__ac_keys *keys) {
  sbx_http_client_free(keys->http);
  sbx_free(keys->url);
  sbx_free(keys->id);
  sbx_free_secret(keys->pass);
  sbx_free_secret(keys->secret);
  sbx_free_secret(keys->token);
}

bool sbx__ac_keys_are_valid(const sbx__ac_keys *keys, int64_t now) {
  return keys->secret != NULL && (keys->expires == 0 || now < keys->expires);
}

bool sbx__ac_keys_are_fresh(const sbx__ac_keys *keys, int64_t now) {
  return sbx__ac_keys_are_valid(keys, now) && (keys->expires == 0 || now < keys->renew);
}

/* ---- what an answer says -------------------------------------------------------------------- */

/* "2026-01-02T03:04:05Z", with or without parts of a second. */
static bool read_time(sbx_slice text, int64_t *out) {
  char copy[20] = "";
  struct tm utc = {0};
  if (text.len < sizeof copy || text.ptr[text.len - 1] != 'Z')
    return false;
  memcpy(copy, text.ptr, sizeof copy - 1);
  const char *end = strptime(copy, "%Y-%m-%dT%H:%M:%S", &utc);
  *out = end != NULL && *end == '\0' ? (int64_t)timegm(&utc) : 0;
  return *out > 0;
}

/* A credential that can stand in a header. */
static char *copy_word(const sbx_json *answer, const char *name) {
  sbx_slice text = {NULL, 0};
  sbx_json_string(sbx_json_get(answer, name), &text);
  for (size_t i = 0; i < text.len; i++) {
    if (text.ptr[i] <= ' ' || text.ptr[i] > '~')
      return NULL;
  }
  return text.len > 0 && text.len <= MAX_SECRET ? sbx_strndup(text.ptr, text.len) : NULL;
}

static int take_keys(sbx__ac_keys *keys, const sbx_json *answer, sbx_err *err) {
  sbx_slice ends = {NULL, 0};
  int64_t expires = 0, now = (int64_t)time(NULL);
  char *id = copy_word(answer, "AccessKeyId"), *secret = copy_word(answer, "SecretAccessKey");
  char *token = copy_word(answer, "Token");
  sbx_json_string(sbx_json_get(answer, "Expiration"), &ends);
  if (id == NULL || secret == NULL || token == NULL || !read_time(ends, &expires)) {
    sbx_free(id);
    sbx_free_secret(secret);
    sbx_free_secret(token);
    return sbx_err_set(err, SBX_EPROTO,
                       "the answer has no AccessKeyId, SecretAccessKey, Token and "
                       "Expiration");
  }
  sbx_free(keys->id);
  sbx_free_secret(keys->secret);
  sbx_free_secret(keys->token);
  keys->id = id;
  keys->secret = secret;
  keys->token = token;
  keys->expires = expires;
  keys->renew = expires - EARLY_S > now ? expires - EARLY_S : now + AGAIN_S;
  return SBX_OK;
}

/* ---- the conversation ----------------------------------------------------------------------- */

typedef struct fetch_op {
  sbx_steps steps;
  sbx__ac_keys *keys;
  sbx_headers headers; /* with what lets us ask */
} fetch_op;

static fetch_op *fetch_of(sbx_steps *steps) {
  return (fetch_op *)(void *)steps;
}

static void release(sbx_steps *steps) {
  sbx_headers_deinit(&fetch_of(steps)->headers);
}

/* An instance that does not answer is none. */
static void fail(fetch_op *f, const sbx_err *why) {
  bool container = f->keys->source == SBX__AC_CONTAINER;
  sbx_err err;
  int code = why->code == SBX_ENOMEM || why->code == SBX_ECANCELED || why->code == SBX_ECLOSED
                 ? why->code
             : container ? SBX_EAUTH
                         : SBX_EKEY;
  sbx_err_set(&err, code, "%s (%s)",
              container ? "the container's address gives no credentials"
                        : SBX__AC_NO_KEY "; the metadata service of an instance gives none either",
              why->message);
  sbx_steps_finish(&f->steps, &err);
}

static void fail_code(fetch_op *f, int code) {
  sbx_err err;
  sbx_err_set(&err, code, NULL);
  fail(f, &err);
}

/* The text of a success, blanks around it left out; else the op has ended. */
static bool took_text(fetch_op *f, const sbx_http *reply, sbx_slice *text) {
  sbx_err err;
  if (reply->op.err.code != SBX_OK) {
    fail(f, &reply->op.err);
    return false;
  }
  *text = sbx_buf_slice(&reply->body);
  while (text->len > 0 && (unsigned char)text->ptr[text->len - 1] <= ' ')
    text->len--;
  if (reply->status == 200 && text->len > 0)
    return true;
  sbx_err_set(&err, SBX_EAUTH, "HTTP %d", reply->status);
  fail(f, &err);
  return false;
}

static void ask(fetch_op *f, const char *method, const char *path, sbx_slice last,
                sbx_steps_reply on_reply) {
  sbx_buf url;
  sbx_buf_init(&url, MAX_SECRET);
  sbx_buf_append_str(&url, f->keys->url);
  sbx_buf_append_str(&url, path);
  sbx_percent_encode(&url, last);
  const sbx_http_request request = {.method = method,
                                    .url = sbx_buf_slice(&url),
                                    .headers = &f->headers,
                                    .repeatable = true,
                                    .connect_ms = CONNECT_MS,
                                    .timeout_ms = TIMEOUT_MS};
  if (url.error != SBX_OK)
    fail_code(f, url.error);
  else
    sbx_steps_send(&f->steps, f->keys->http, &request, on_reply);
  sbx_buf_deinit(&url);
}

static const sbx_slice nothing = {NULL, 0};

static void on_keys(sbx_steps *steps, sbx_http *reply) {
  fetch_op *f = fetch_of(steps);
  sbx_json_doc *doc = NULL;
  sbx_slice text;
  sbx_err err;
  if (!took_text(f, reply, &text))
    return;
  int rc = sbx_json_parse(&doc, text, NULL);
  if (rc == SBX_EPROTO)
    sbx_err_set(&err, SBX_EPROTO, "the answer is no JSON"); /* not a word of it: it may be a key */
  else if (rc != SBX_OK)
    sbx_err_set(&err, rc, NULL);
  else
    rc = take_keys(f->keys, sbx_json_root(doc), &err);
  sbx_json_free(doc, true);
  if (rc == SBX_OK)
    sbx_steps_finish(steps, NULL);
  else
    fail(f, &err);
}

static void on_role(sbx_steps *steps, sbx_http *reply) {
  fetch_op *f = fetch_of(steps);
  sbx_slice text;
  if (!took_text(f, reply, &text))
    return;
  text.len = sbx_slice_find(text, '\n');
  if (text.len > MAX_ROLE)
    fail_code(f, SBX_EPROTO);
  else
    ask(f, "GET", ROLES, text, on_keys);
}

static void add_field(fetch_op *f, const char *name, sbx_slice value, sbx_err *err) {
  if (err->code == SBX_OK)
    sbx_headers_add(&f->headers, sbx_slice_str(name), value, err);
}

static void on_token(sbx_steps *steps, sbx_http *reply) {
  fetch_op *f = fetch_of(steps);
  sbx_err err = {0};
  sbx_slice text;
  if (!took_text(f, reply, &text))
    return;
  sbx_headers_deinit(&f->headers);
  add_field(f, "X-aws-ec2-metadata-token", text, &err);
  if (err.code != SBX_OK)
    fail(f, &err);
  else
    ask(f, "GET", ROLES, nothing, on_role);
}

sbx_op *sbx__ac_keys_fetch(sbx__ac_keys *keys, sbx_loop *loop, sbx_op_done done, void *arg) {
  fetch_op *f = sbx_steps_new(sizeof *f, NULL, loop, done, arg);
  sbx_err err = {0};
  if (f == NULL)
    return NULL;
  f->keys = keys;
  f->steps.release = release;
  keys->renew = (int64_t)time(NULL) + AGAIN_S;
  sbx_headers_init(&f->headers, MAX_SECRET * 2);
  add_field(f, "Accept", sbx_slice_str("*/*"), &err);
  if (keys->source == SBX__AC_CONTAINER && keys->pass != NULL)
    add_field(f, "Authorization", sbx_slice_str(keys->pass), &err);
  if (keys->source == SBX__AC_INSTANCE)
    add_field(f, "X-aws-ec2-metadata-token-ttl-seconds", sbx_slice_str("21600"), &err);
  if (err.code != SBX_OK)
    fail(f, &err);
  else if (keys->source == SBX__AC_CONTAINER)
    ask(f, "GET", "", nothing, on_keys);
  else
    ask(f, "PUT", "/latest/api/token", nothing, on_token);
  return &f->steps.op;
}
