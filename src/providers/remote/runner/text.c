/* text.c - the texts of the runner's programs. They are made by scripts/embed.sh while this is
 * built, escaped already for the wires, so that nothing of them is copied or changed per command.
 */
#include "providers/remote/runner/text.h"

#include <assert.h>

#include "runner_programs.h"

// clang-format off
#define TEXT(array) {(array), sizeof(array) - 1}
#define PROGRAM(name) {TEXT(plain_##name), {NULL, 0}, TEXT(quoted_##name)}
#define PROGRAM_IN_JSON(name) {TEXT(plain_##name), TEXT(json_##name), TEXT(quoted_##name)}
// clang-format on

static const struct {
  sbx_slice plain, json, quoted;
} programs[] = {
    [SBX_RUNNER_WRAP_SHELL] = PROGRAM_IN_JSON(wrap_shell),
    [SBX_RUNNER_WRAP_CODE] = PROGRAM_IN_JSON(wrap_code),
    [SBX_RUNNER_BOUND_SHELL] = PROGRAM_IN_JSON(bound_shell),
    [SBX_RUNNER_BOUND_CODE] = PROGRAM_IN_JSON(bound_code),
    [SBX_RUNNER_KILL] = PROGRAM_IN_JSON(kill),
    [SBX_RUNNER_KERNEL] = PROGRAM_IN_JSON(kernel),
    [SBX_RUNNER_RUN_SHELL] = PROGRAM(run_shell),
    [SBX_RUNNER_RUN_CODE] = PROGRAM(run_code),
    [SBX_RUNNER_ASK] = PROGRAM(ask),
    [SBX_RUNNER_FETCH] = PROGRAM(fetch),
    [SBX_RUNNER_FORGET] = PROGRAM(forget),
    [SBX_RUNNER_STOP] = PROGRAM(stop),
    [SBX_RUNNER_STORE] = PROGRAM(store),
    [SBX_RUNNER_LIST] = PROGRAM(list),
    [SBX_RUNNER_GET] = PROGRAM(get),
    [SBX_RUNNER_PUT] = PROGRAM(put),
    [SBX_RUNNER_AT] = PROGRAM(at),
    [SBX_RUNNER_PART] = PROGRAM(part),
    [SBX_RUNNER_LOAD] = PROGRAM_IN_JSON(load),
    [SBX_RUNNER_SAVE] = PROGRAM_IN_JSON(save),
    [SBX_RUNNER_LIVE] = PROGRAM(live),
};

sbx_slice sbx_runner_text(sbx_runner_program program) {
  return programs[program].plain;
}

sbx_slice sbx_runner_json(sbx_runner_program program) {
  assert(programs[program].json.ptr != NULL);
  return programs[program].json;
}

sbx_slice sbx_runner_quoted(sbx_runner_program program) {
  return programs[program].quoted;
}
