/* driver.h - an event loop of our own under core/loop, for programs whose own loop cannot watch
 * descriptors for us (Bun, Deno). Linux only.
 *
 * A thread waits until something is ready and says so, and nothing more: all that happens then
 * happens in sbx_driver_turn(), which the program calls on the loop's thread. */
#ifndef SBX_CORE_DRIVER_H
#define SBX_CORE_DRIVER_H

#include "sbx.h"

typedef struct sbx_driver sbx_driver;

typedef struct sbx_driver_host {
  /* A turn is wanted. Called on the waiting thread, and then not again before that turn. */
  void (*ready)(void *arg);
  /* Whether the program must go on because of us; no, at first. Called on the loop's thread. */
  void (*keep)(void *arg, bool alive);
  void *arg;
} sbx_driver_host;

/* Makes a driver and a loop on it, for the thread that calls. Errors: SBX_ENOMEM, SBX_EPROVIDER
 * when the system gives no descriptors or no thread. */
int sbx_driver_new(sbx_driver **out, sbx_loop **loop, const sbx_driver_host *host, sbx_err *err);

/* One turn of the loop. Waits for nothing. Not from inside itself. */
void sbx_driver_turn(sbx_driver *driver);

/* Ends the waiting thread: `ready` is not called any more once this returns. For a program that
 * ends without further turns. */
void sbx_driver_quiet(sbx_driver *driver);

/* Closes the loop, unless that has begun, takes turns until it is closed, waiting as it must, and
 * frees all. `keep` is not called any more. From inside a turn, such as where the program ends in a
 * callback, it only ends the waiting thread: what there is stays for the rest of the turn, and is
 * the process's to free, or a second call's. */
void sbx_driver_free(sbx_driver *driver);

#endif
