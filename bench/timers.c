/* timers.c - the core's timers beside libuv's own: what it costs to start one and to stop it again,
 * as every operation does with its deadline, while so many others are armed.
 *
 * make build/bench_timers && build/bench_timers */
#include "core/loop.h"

#include <stdio.h>
#include <stdlib.h>

enum { TIMES = 2000000, FAR_MS = 3600 * 1000 };

static void never(sbx_timer *timer) {
  (void)timer;
}

static void uv_never(uv_timer_t *timer) {
  (void)timer;
}

static double nanoseconds(uint64_t since) {
  return (double)(uv_hrtime() - since) / TIMES;
}

/* Due in no order. */
static uint64_t due_ms(size_t i) {
  return FAR_MS + i * 7919 % 60000;
}

static double measure_own(sbx_loop *loop, size_t armed) {
  sbx_timer *timers = calloc(armed + 1, sizeof *timers);
  for (size_t i = 0; i <= armed; i++)
    sbx_timer_init(&timers[i], loop, never);
  for (size_t i = 0; i < armed; i++)
    sbx_timer_start(&timers[i], due_ms(i));
  uint64_t since = uv_hrtime();
  for (size_t i = 0; i < TIMES; i++) {
    sbx_timer_start(&timers[armed], due_ms(i));
    sbx_timer_stop(&timers[armed]);
  }
  double result = nanoseconds(since);
  for (size_t i = 0; i < armed; i++)
    sbx_timer_stop(&timers[i]);
  free(timers);
  return result;
}

static double measure_libuv(uv_loop_t *uv, size_t armed) {
  uv_timer_t *timers = calloc(armed + 1, sizeof *timers);
  for (size_t i = 0; i <= armed; i++)
    uv_timer_init(uv, &timers[i]);
  for (size_t i = 0; i < armed; i++)
    uv_timer_start(&timers[i], uv_never, due_ms(i), 0);
  uint64_t since = uv_hrtime();
  for (size_t i = 0; i < TIMES; i++) {
    uv_timer_start(&timers[armed], uv_never, due_ms(i), 0);
    uv_timer_stop(&timers[armed]);
  }
  double result = nanoseconds(since);
  for (size_t i = 0; i <= armed; i++)
    uv_close((uv_handle_t *)&timers[i], NULL);
  uv_run(uv, UV_RUN_DEFAULT);
  free(timers);
  return result;
}

int main(void) {
  static const size_t counts[] = {0, 1, 100, 10000};
  uv_loop_t uv;
  sbx_loop *loop;
  sbx_err err;
  uv_loop_init(&uv);
  if (sbx_loop_new(&loop, &uv, &err) != SBX_OK)
    return 1;
  printf("| others armed | ours | libuv's | ratio |\n| --- | --- | --- | --- |\n");
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    double own = measure_own(loop, counts[i]), theirs = measure_libuv(&uv, counts[i]);
    printf("| %zu | %.0f ns | %.0f ns | %.1fx |\n", counts[i], own, theirs, own / theirs);
  }
  sbx_loop_close(loop, NULL, NULL);
  uv_run(&uv, UV_RUN_DEFAULT);
  return uv_loop_close(&uv) == 0 ? 0 : 1;
}
