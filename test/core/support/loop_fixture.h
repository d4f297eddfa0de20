/* loop_fixture.h - a loop for one test, and its orderly end. */
#ifndef SBX_TEST_LOOP_FIXTURE_H
#define SBX_TEST_LOOP_FIXTURE_H

#include "core/loop.h"
#include "core_test.h"

/* How often the end of a loop was told since loop_open(): on_loop_closed() counts. */
extern int loops_closed;
void on_loop_closed(void *unused);

void loop_open(uv_loop_t *uv, sbx_loop **loop);
/* Closes the loop, unless the test has (NULL once it is gone). It ends once, with nothing open and
 * nothing allocated. */
void loop_end(uv_loop_t *uv, sbx_loop *loop);

#endif
