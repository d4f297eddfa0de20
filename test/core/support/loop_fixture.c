/* loop_fixture.c - see the header. */
#include "loop_fixture.h"

int loops_closed;

void on_loop_closed(void *unused) {
  (void)unused;
  loops_closed++;
}

void loop_open(uv_loop_t *uv, sbx_loop **loop) {
  loops_closed = 0;
  assert_int_equal(uv_loop_init(uv), 0);
  assert_int_equal(sbx_loop_new(loop, uv, NULL), SBX_OK);
}

void loop_end(uv_loop_t *uv, sbx_loop *loop) {
  if (loop != NULL && !sbx_loop_is_closing(loop))
    sbx_loop_close(loop, on_loop_closed, NULL);
  assert_int_equal(uv_run(uv, UV_RUN_DEFAULT), 0);
  assert_int_equal(loops_closed, 1);
  assert_int_equal(uv_loop_close(uv), 0);
  assert_int_equal(sbx_alloc_live(), 0);
}
