/* exchange.c - one request to a service and its reply, and what a reply means that is no success.
 *
 * Bodies of refusals differ between versions, hops and routes, and may be empty; statuses do not.
 * Invariant: what a refusal means is decided here, by its status first. */
#include "providers/remote/exchange.h"

#include "core/err.h"

#include <time.h>

enum { MAX_HEADERS = 64 * 1024 };

/* ---- request -------------------------------------------------------------------------------- */

static int sign(const sbx_remote_signer *signer, sbx_http_request *request, sbx_headers *headers,
                sbx_err *err) {
  const sbx_headers *given = request->headers;
  int rc = SBX_OK;
  for (size_t i = 0; given != NULL && rc == SBX_OK && i < given->count; i++)
    rc = sbx_headers_add(headers, given->items[i].name, given->items[i].value, err);
  request->headers = headers;
  return rc == SBX_OK ? signer->sign(signer->arg, request, headers, err) : rc;
}

void sbx_remote_exchange_send(sbx_steps *steps, sbx_http_client *client, sbx_buf *url,
                              const sbx_http_request *request, const sbx_remote_signer *signer,
                              sbx_steps_reply on_reply) {
  sbx_http_request http = *request;
  sbx_headers headers;
  sbx_err err;
  sbx_headers_init(&headers, MAX_HEADERS);
  http.url = sbx_buf_slice(url);
  int rc = url->error;
  if (rc == SBX_OK && http.take_body != NULL)
    rc = http.take_body->error;
  if (rc != SBX_OK)
    sbx_err_set(&err, rc, NULL);
  else if (signer != NULL)
    rc = sign(signer, &http, &headers, &err);
  if (rc == SBX_OK)
    sbx_steps_send(steps, client, &http, on_reply);
  else
    sbx_steps_finish(steps, &err);
  sbx_headers_deinit(&headers);
  sbx_buf_deinit(url);
  if (http.take_body != NULL)
    sbx_buf_deinit(http.take_body);
}

/* ---- reply ---------------------------------------------------------------------------------- */

bool sbx_remote_exchange_says(sbx_slice body, const char *text) {
  sbx_slice wanted = sbx_slice_str(text);
  for (; body.len >= wanted.len; body = sbx_slice_skip(body, 1)) {
    if (sbx_slice_eq_nocase(sbx_slice_of(body.ptr, wanted.len), wanted))
      return true;
  }
  return false;
}

bool sbx_remote_exchange_is_page(const sbx_http *reply) {
  sbx_slice type;
  return sbx_headers_get(&reply->headers, "content-type", &type) &&
         sbx_remote_exchange_says(sbx_slice_of(type.ptr, type.len < 40 ? type.len : 40),
                                  "text/html");
}

bool sbx_remote_exchange_is_gone(const sbx_remote_service *service, const sbx_http *reply) {
  sbx_json_doc *doc = NULL;
  if (reply->op.err.code != SBX_OK || reply->status != 404)
    return false;
  bool gone = service->owns_404 == NULL ||
              (sbx_json_parse(&doc, sbx_buf_slice(&reply->body), NULL) == SBX_OK &&
               service->owns_404(sbx_json_root(doc)));
  sbx_json_free(doc, true);
  return gone;
}

/* A service may have a header for each of its limits. At once is also a time: 0 would mean that
 * nothing was said. */
static uint64_t retry_after(const sbx_headers *headers) {
  static const char prefix[] = "retry-after";
  uint64_t longest = 0, ms;
  for (size_t i = 0; i < headers->count; i++) {
    sbx_slice name = headers->items[i].name;
    if (name.len < sizeof prefix - 1 ||
        !sbx_slice_eq_nocase(sbx_slice_of(name.ptr, sizeof prefix - 1), sbx_slice_str(prefix)) ||
        !sbx_retry_after(headers->items[i].value, (int64_t)time(NULL), &ms))
      continue;
    ms = ms > 0 ? ms : 1;
    longest = ms > longest ? ms : longest;
  }
  return longest;
}

static bool fits(const sbx_remote_meaning *meaning, const sbx_http *reply) {
  const char *says = meaning->says;
  if (meaning->status != reply->status)
    return false;
  if (says != NULL && says[0] == '\0')
    return reply->body.len == 0;
  return says == NULL || sbx_remote_exchange_says(sbx_buf_slice(&reply->body), says);
}

static const sbx_remote_meaning *meaning_of(const sbx_remote_service *service,
                                            const sbx_http *reply) {
  for (const sbx_remote_meaning *m = service->meanings; m != NULL && m->status != 0; m++) {
    if (fits(m, reply))
      return m;
  }
  return NULL;
}

static int refuse(sbx_err *err, const sbx_remote_service *service, const sbx_http *reply,
                  const char *verb) {
  int status = reply->status;
  const sbx_remote_meaning *meaning = meaning_of(service, reply);
  sbx_http_status_error(err, service->provider, verb, status, sbx_buf_slice(&reply->body));
  err->retry_after_ms = retry_after(&reply->headers);
  err->no_effect = status >= 400 && status < 500 && status != 408;
  bool foreign = status < 500 && sbx_remote_exchange_is_page(reply);
  if (meaning != NULL) {
    err->code = meaning->code;
    if (meaning->advice != NULL)
      sbx_err_append(err, "%s", meaning->advice);
    if (meaning->effect != SBX_REMOTE_EFFECT_BY_STATUS)
      err->no_effect = meaning->effect == SBX_REMOTE_EFFECT_NONE;
  } else if (status == 404 && !sbx_remote_exchange_is_gone(service, reply)) {
    err->code = service->foreign_404;
    foreign = true;
  }
  if (foreign && service->foreign != NULL)
    sbx_err_append(err, "%s", service->foreign);
  return err->code;
}

bool sbx_remote_exchange_broke_off(const sbx_http *reply) {
  return reply->op.err.code == SBX_ENET && reply->status >= 200 && reply->status < 300;
}

int sbx_remote_exchange_check(sbx_err *err, const sbx_remote_service *service,
                              const sbx_http *reply, const char *verb) {
  if (reply->op.err.code != SBX_OK) {
    sbx_err_set(err, reply->op.err.code, "%s: %s: %s", service->provider, verb,
                reply->op.err.message);
    err->provider = service->provider;
    err->no_effect = !reply->sent_maybe;
    return err->code;
  }
  if (reply->status < 200 || reply->status >= 300)
    return refuse(err, service, reply, verb);
  if (!sbx_remote_exchange_is_page(reply))
    return SBX_OK;
  sbx_err_set(err, SBX_EPROTO, "%s: %s: a web page came in place of an answer%s", service->provider,
              verb, service->foreign != NULL ? service->foreign : "");
  err->status = reply->status;
  err->provider = service->provider;
  return SBX_EPROTO;
}

int sbx_remote_exchange_json(sbx_json_doc **doc, const sbx_remote_service *service,
                             const sbx_http *reply, const char *verb, sbx_err *err) {
  sbx_err why;
  int rc = sbx_remote_exchange_check(err, service, reply, verb);
  if (rc != SBX_OK)
    return rc;
  rc = sbx_json_parse(doc, sbx_buf_slice(&reply->body), &why);
  if (rc == SBX_EPROTO) {
    sbx_err_set(err, SBX_EPROTO, "%s: %s: unexpected answer: %s", service->provider, verb,
                why.message);
    err->status = reply->status;
  } else if (rc != SBX_OK) {
    sbx_err_copy(err, &why);
  }
  return rc;
}
