/* session.c - the helper of a session, from its start to its first words.
 *
 * The first helper and one that takes the place of another that was killed come up the same way. An
 * isolated sandbox is what its helper's HELLO says, so commands wait for it.
 *
 * Invariant: while a helper is starting its socket is watched here, and nothing is sent to it. */
#include "providers/local/local.h"

#include "core/err.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

static void close_egress(sbx_session *session) {
  sbx__egress_stop(session->egress);
  session->egress = NULL;
}

static int add_proxy(void *arg, const char *name, const char *value) {
  return sbx__env_add(arg, name, value);
}

/* The way to the allowed hosts: over the socket that listens inside. Each helper of the session is
 * told the first one's port, so that the variables of commands hold. */
static int open_egress(sbx_session *session, sbx_err *err) {
  const sbx_config *config = session->config;
  struct sockaddr_in at = {.sin_family = AF_UNSPEC};
  socklen_t len = sizeof at;
  sbx__egress_rules rules;
  int *listener = &session->helper.listener;
  int rc = SBX_OK;
  if (config->isolation.setup.network != SBX_GUARD_NET_LISTEN)
    return SBX_OK;
  if (getsockname(*listener, (struct sockaddr *)&at, &len) != 0 || at.sin_family != AF_INET ||
      (session->proxy_port != 0 && session->proxy_port != ntohs(at.sin_port)))
    return sbx_err_set(err, SBX_EBINARY, "%s has opened no way to the allowed hosts; reinstall it",
                       config->guard_path);
  if (session->proxy_port == 0) {
    sbx__env_free(&session->proxies); /* what a start that failed has left */
    rc = sbx__egress_env(ntohs(at.sin_port), add_proxy, &session->proxies);
  }
  sbx__egress_rules_init(&rules);
  if (rc == SBX_OK)
    rc = sbx__egress_rules_copy(&rules, &config->isolation.hosts);
  if (rc != SBX_OK)
    sbx_err_set(err, rc, NULL);
  else
    rc = sbx__egress_start(&session->egress, config->loop, *listener, &rules, NULL, err);
  if (rc == SBX_OK) {
    *listener = -1;
    session->proxy_port = ntohs(at.sin_port);
  }
  sbx__egress_rules_deinit(&rules);
  return rc;
}

/* ---- waiting -------------------------------------------------------------------------------- */

void sbx__session_wait(sbx_session *session, sbx__waiter *waiter) {
  sbx__waiter **at = &session->waiters;
  while (*at != NULL)
    at = &(*at)->next;
  waiter->next = NULL;
  *at = waiter;
}

void sbx__session_leave(sbx_session *session, sbx__waiter *waiter) {
  for (sbx__waiter **at = &session->waiters; *at != NULL; at = &(*at)->next) {
    if (*at == waiter) {
      *at = waiter->next;
      return;
    }
  }
}

/* One who is told may start another helper; whoever waits then waits for that one. */
static void tell(sbx_session *session, const sbx_err *err) {
  sbx__waiter *list = session->waiters;
  session->waiters = NULL;
  while (list != NULL) {
    sbx__waiter *waiter = list;
    list = waiter->next;
    waiter->fn(waiter, err);
  }
}

bool sbx__session_is_starting(const sbx_session *session) {
  return session->hello_watch != NULL;
}

/* ---- start ---------------------------------------------------------------------------------- */

static void stop_hearing(sbx_session *session) {
  sbx_watch_stop(session->hello_watch);
  session->hello_watch = NULL;
}

static int take_up(sbx_session *session, int error, sbx_err *err) {
  const sbx_config *config = session->config;
  if (error == 0 && session->hello.frame.kind == SBX_GUARD_HELLO) {
    if (session->helper.isolated)
      sbx__isolated_verified(&config->isolation);
    return open_egress(session, err);
  }
  if (error == 0 && session->helper.isolated)
    return sbx__isolated_fail(&session->hello, err);
  return sbx_err_set(err, SBX_EBINARY,
                     "%s does not answer as the helper program should; reinstall it",
                     config->guard_path);
}

static void on_hello(void *arg, int events) {
  sbx_session *session = arg;
  sbx_err err;
  (void)events;
  int error = sbx__helper_hear(&session->helper, &session->hello);
  if (error == EAGAIN)
    return;
  stop_hearing(session);
  bool good = take_up(session, error, &err) == SBX_OK;
  if (good)
    session->open = true;
  else
    sbx__release_helper(session->config->loop, &session->helper);
  tell(session, good ? NULL : &err);
}

int sbx__session_start(sbx_session *session, sbx_err *err) {
  sbx_loop *loop = session->config->loop;
  sbx__helper *helper = &session->helper;
  unsigned serial = helper->serial;
  stop_hearing(session);
  close_egress(session);
  /* The release ends what a first process has, and waits for that. */
  bool is_sure = helper->isolated && helper->first >= 0;
  if (helper->unseen > 0 && !sbx__helper_saw_the_end(helper) && !is_sure)
    session->unseen_before += helper->unseen;
  sbx__release_helper(loop, helper);
  int rc = sbx__helper_start(helper, session, err);
  helper->serial = serial + 1;
  if (rc == SBX_OK)
    rc = sbx_watch_start(&session->hello_watch, loop, helper->fd, SBX_READABLE, on_hello, session,
                         err);
  if (rc != SBX_OK)
    sbx__release_helper(loop, helper);
  return rc;
}

void sbx__session_stop(sbx_session *session) {
  sbx_err err;
  stop_hearing(session);
  close_egress(session);
  sbx_err_set(&err, SBX_ECANCELED, "the sandbox was closed before the command had started");
  tell(session, &err);
}
