/* sandbox.h - the sandbox object's own data, for the files of this folder.
 *
 *   place.c     one sandbox at the provider, from its open to its deletion
 *   spec.c      checks and copies of what a call is given
 *   life.c      what has become of a sandbox, as JSON
 *   relay.c     what is told piece by piece, on its way to the user's callback
 *   call.c      the base of every call: waiting for the start, cancel, probe, finish
 *   input.c     what a running command is given
 *   exec.c      run a command: two clocks, kill, outcome
 *   file.c      write, read, list
 *   control.c   lifetime, pause, resume
 *   object.c    the object: options, start, close, free
 *   sweep.c     what others have left at a provider
 *
 * Each uses only what stands above it in this list; what has to go the other way goes through
 * sbx__place_events and `step`. */
#ifndef SBX_SANDBOX_H
#define SBX_SANDBOX_H

#include "sandbox/place.h"
#include "sandbox/relay.h"

struct sbx_sandbox {
  sbx_loop *loop;
  const sbx_provider *provider;
  sbx__places places;
  char *shell;              /* for commands that name none; NULL: the provider chooses */
  uint64_t exec_timeout_ms; /* when the command brings none */
  uint64_t file_timeout_ms;
  uint64_t probe_timeout_ms;

  sbx_call *first_call; /* in order of arrival, until their callbacks have returned */
  sbx_call *last_call;
  sbx_progress_cb on_progress; /* NULL: nobody listens */
  void *progress_arg;
  sbx_life_cb on_life; /* NULL: nobody listens */
  void *life_arg;
  sbx__relay news; /* both of them, in the order in which they came */
  sbx_task news_task;

  size_t active;   /* calls in the list that are no closes */
  size_t closers;  /* closes that have not finished */
  sbx_timer grace; /* until the calls in flight are ended for a close */
  /* Something ended: goes on with a close or a free that waited for it. May free `sb`. */
  void (*step)(sbx_sandbox *sb);

  bool closed;   /* close or free was called: no further calls */
  bool deleting; /* the closers wait for deletions only */
};

#endif
