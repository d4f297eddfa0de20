/* egress_reply.c - see the header. */
#include "providers/local/egress_reply.h"

#include <stdio.h>

enum { TEXT_MAX = 1024 };

/* `short_text` becomes the reason: one line of printable ASCII. */
static int reply(sbx_buf *out, const sbx__egress_request *request, int status,
                 const sbx_buf *short_text, const char *advice) {
  sbx_slice text = sbx_buf_slice(short_text);
  sbx_slice more = sbx_slice_str(advice);
  if (short_text->error != SBX_OK)
    return short_text->error;
  sbx_buf_appendf(out, "HTTP/1.1 %d ", status);
  sbx_buf_append_slice(out, text);
  sbx_buf_appendf(out,
                  "\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\nConnection: close\r\n"
                  "Proxy-Agent: cloudsandbox\r\n\r\n",
                  text.len + more.len + 1);
  if (request->is_head)
    return out->error;
  sbx_buf_append_slice(out, text);
  sbx_buf_append_slice(out, more);
  return sbx_buf_append_str(out, "\n");
}

int sbx__egress_reply_fault(sbx_buf *out, const sbx__egress_request *request,
                            const sbx__egress_fault *fault) {
  sbx_buf text;
  sbx_buf_init(&text, TEXT_MAX);
  sbx_buf_append_str(&text, fault->why);
  int rc = reply(out, request, fault->status, &text, "; nothing was sent.");
  sbx_buf_deinit(&text);
  return rc;
}

int sbx__egress_reply_refused(sbx_buf *out, const sbx__egress_request *request,
                              sbx__egress_verdict verdict) {
  const char *advice = "; nothing was sent. This sandbox reaches the hosts of its option "
                       "allowedHosts alone. Whoever made the sandbox can add this one there.";
  sbx_buf text;
  sbx_buf_init(&text, TEXT_MAX);
  sbx__egress_target_write(&text, &request->target);
  if (verdict == SBX__EGRESS_OTHER_PORT) {
    sbx_buf_append_str(&text, " is in allowedHosts with other ports only");
    advice = "; nothing was sent. An entry \"host\" allows ports 443 and 80, \"host:8443\" that "
             "port. Whoever made the sandbox can add this one.";
  } else if (verdict == SBX__EGRESS_LITERAL) {
    sbx_buf_append_str(&text, " is an address and not in allowedHosts");
    advice = "; nothing was sent. Ask for the host by its name; an address must be in the "
             "sandbox's allowedHosts itself.";
  } else {
    sbx_buf_append_str(&text, " is not in allowedHosts of this sandbox");
  }
  int rc = reply(out, request, 403, &text, advice);
  sbx_buf_deinit(&text);
  return rc;
}

int sbx__egress_reply_addr(sbx_buf *out, const sbx__egress_request *request,
                           const sbx__egress_addr *addr) {
  char name[SBX__EGRESS_ADDR_TEXT];
  const char *kind = sbx__egress_addr_kind(addr);
  sbx_buf text;
  sbx_buf_init(&text, TEXT_MAX);
  sbx__egress_addr_text(name, addr);
  sbx__egress_target_write(&text, &request->target);
  sbx_buf_appendf(&text, " leads to %s, a%s %s address", name,
                  kind != NULL && kind[0] == 'u' ? "n" : "", kind != NULL ? kind : "public");
  int rc =
      reply(out, request, 403, &text,
            "; nothing was sent. Such an address must be in the sandbox's allowedHosts itself, "
            "beside the host, with its port if that is neither 443 nor 80.");
  sbx_buf_deinit(&text);
  return rc;
}

int sbx__egress_reply_failed(sbx_buf *out, const sbx__egress_request *request, int status,
                             const char *why) {
  sbx_buf text;
  sbx_buf_init(&text, TEXT_MAX);
  sbx_buf_append_str(&text, "cannot reach ");
  sbx__egress_target_write(&text, &request->target);
  sbx_buf_appendf(&text, ": %s", why);
  int rc = reply(out, request, status, &text,
                 "; nothing was sent. The host is allowed; this comes from outside the sandbox.");
  sbx_buf_deinit(&text);
  return rc;
}

int sbx__egress_env(uint16_t port, int (*add)(void *arg, const char *name, const char *value),
                    void *arg) {
  static const char *const proxies[] = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
                                        "http_proxy", "https_proxy", "all_proxy"};
  static const char own[] = "localhost,127.0.0.1,::1";
  char url[sizeof "http://127.0.0.1:65535"];
  int rc = SBX_OK;
  snprintf(url, sizeof url, "http://127.0.0.1:%u", (unsigned)port);
  for (size_t i = 0; rc == SBX_OK && i < sizeof proxies / sizeof *proxies; i++)
    rc = add(arg, proxies[i], url);
  if (rc == SBX_OK)
    rc = add(arg, "NO_PROXY", own);
  if (rc == SBX_OK)
    rc = add(arg, "no_proxy", own);
  /* Node.js looks at these variables from 22.21 and 24 on, when it is told to. */
  return rc == SBX_OK ? add(arg, "NODE_USE_ENV_PROXY", "1") : rc;
}
