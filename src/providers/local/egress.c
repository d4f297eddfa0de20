/* egress.c - see the header: the listener, and what its connections share. */
#include "providers/local/egress.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/os.h"
#include "providers/local/egress_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Accepted in one go; and how long to wait when this process has no descriptor left. */
enum { ACCEPT_MOST = 16, RETRY_MS = 100 };

struct sbx__egress {
  sbx__egress_shared shared; /* first: `ended` gets it */
  sbx__egress_count counts[SBX__EGRESS_COUNTS_MAX + 1];
  int listener;
  sbx_watch *watch;
  sbx_timer retry;
};

static void accept_again(sbx__egress *egress) {
  bool full = egress->shared.totals.open >= egress->shared.limits.connections;
  sbx_watch_set(egress->watch, full ? 0 : SBX_READABLE);
}

static void on_ended(sbx__egress_shared *shared) {
  sbx__egress *egress = (sbx__egress *)(void *)shared;
  if (!egress->retry.armed)
    accept_again(egress);
}

static void on_retry(sbx_timer *timer) {
  accept_again((sbx__egress *)(void *)((char *)timer - offsetof(sbx__egress, retry)));
}

static void on_listener(void *arg, int events) {
  sbx__egress *egress = arg;
  (void)events;
  for (int i = 0; i < ACCEPT_MOST && egress->shared.totals.open < egress->shared.limits.connections;
       i++) {
    int fd = sbx_os_accept(egress->listener);
    if (fd >= 0) {
      sbx__egress_conn_start(&egress->shared, fd);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      sbx_watch_set(egress->watch, 0);
      sbx_timer_start(&egress->retry, RETRY_MS);
      return;
    }
  }
  accept_again(egress);
}

static uint64_t or_default(uint64_t value, uint64_t otherwise) {
  return value > 0 ? value : otherwise;
}

static sbx__egress_limits with_defaults(const sbx__egress_limits *given) {
  sbx__egress_limits l = given != NULL ? *given : (sbx__egress_limits){0};
  l.connections = l.connections > 0 ? l.connections : 256;
  l.head_ms = or_default(l.head_ms, 10000);
  l.connect_ms = or_default(l.connect_ms, 15000);
  l.idle_ms = or_default(l.idle_ms, 300000);
  return l;
}

int sbx__egress_start(sbx__egress **out, sbx_loop *loop, int listener, sbx__egress_rules *rules,
                      const sbx__egress_limits *limits, sbx_err *err) {
  int flags = fcntl(listener, F_GETFL);
  if (flags < 0 || fcntl(listener, F_SETFL, flags | O_NONBLOCK) != 0)
    return sbx_err_set(err, SBX_EINVAL, "cannot listen for the sandbox's connections: %s",
                       sbx_err_system(errno));
  sbx__egress *egress = sbx_calloc(1, sizeof *egress);
  if (egress == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  egress->listener = listener;
  egress->shared = (sbx__egress_shared){.loop = loop,
                                        .limits = with_defaults(limits),
                                        .lookups = sbx__egress_lookups_new(loop),
                                        .counts = egress->counts,
                                        .ended = on_ended};
  sbx_timer_init(&egress->retry, loop, on_retry);
  int rc = egress->shared.lookups != NULL ? sbx_watch_start(&egress->watch, loop, listener,
                                                            SBX_READABLE, on_listener, egress, err)
                                          : sbx_err_set(err, SBX_ENOMEM, NULL);
  if (rc != SBX_OK) {
    sbx__egress_lookups_free(egress->shared.lookups);
    sbx_free(egress);
    return rc;
  }
  egress->shared.rules = *rules;
  sbx__egress_rules_init(rules);
  *out = egress;
  return SBX_OK;
}

void sbx__egress_stop(sbx__egress *egress) {
  if (egress == NULL)
    return;
  sbx_timer_stop(&egress->retry);
  sbx_watch_stop(egress->watch);
  sbx__egress_conns_end(&egress->shared);
  sbx__egress_lookups_free(egress->shared.lookups);
  sbx__egress_rules_deinit(&egress->shared.rules);
  close(egress->listener);
  sbx_free(egress);
}

const sbx__egress_count *sbx__egress_counts(const sbx__egress *egress, size_t *count) {
  for (*count = 0; *count <= SBX__EGRESS_COUNTS_MAX && egress->counts[*count].connections > 0;)
    ++*count;
  return egress->counts;
}

sbx__egress_totals sbx__egress_get_totals(const sbx__egress *egress) {
  return egress->shared.totals;
}
