/* text.c - the texts of the runner's programs. They are made by scripts/embed.sh while this is
 * built, escaped already for the wires, so that nothing of them is copied or changed per command.
 */
#include "providers/remote/runner/text.h"

#include "runner_programs.h"

#define PROGRAMS(X)                                                                                \
  X(SBX_RUNNER_LAUNCH, launch)                                                                     \
  X(SBX_RUNNER_WRAP, wrap)                                                                         \
  X(SBX_RUNNER_KILL, kill)                                                                         \
  X(SBX_RUNNER_RUN, run)                                                                           \
  X(SBX_RUNNER_ASK, ask)                                                                           \
  X(SBX_RUNNER_FETCH, fetch)                                                                       \
  X(SBX_RUNNER_FORGET, forget)                                                                     \
  X(SBX_RUNNER_STOP, stop)                                                                         \
  X(SBX_RUNNER_STORE, store)                                                                       \
  X(SBX_RUNNER_LIST, list)                                                                         \
  X(SBX_RUNNER_GET, get)                                                                           \
  X(SBX_RUNNER_PUT, put)

sbx_slice sbx_runner_text(sbx_runner_program program) {
  static const sbx_slice texts[] = {
#define X(number, name) [number] = {plain_##name, sizeof plain_##name - 1},
      PROGRAMS(X)
#undef X
  };
  return texts[program];
}

sbx_slice sbx_runner_json(sbx_runner_program program) {
  static const sbx_slice texts[] = {
#define X(number, name) [number] = {json_##name, sizeof json_##name - 1},
      PROGRAMS(X)
#undef X
  };
  return texts[program];
}

sbx_slice sbx_runner_quoted(sbx_runner_program program) {
  static const sbx_slice texts[] = {
#define X(number, name) [number] = {quoted_##name, sizeof quoted_##name - 1},
      PROGRAMS(X)
#undef X
  };
  return texts[program];
}
