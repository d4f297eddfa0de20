/* env.h - what the addon keeps for one Node environment (the main thread or one worker). */
#ifndef SBX_BINDING_ENV_H
#define SBX_BINDING_ENV_H

#include "sbx.h"

extern "C" {
#include "core/driver.h"
}

#include <napi.h>

namespace sbx {

class Sandbox;

class AddonData {
public:
  AddonData() = default;
  AddonData(const AddonData &) = delete;
  AddonData &operator=(const AddonData &) = delete;
  ~AddonData();

  /* For a runtime that has no libuv loop, before the first Loop(): the core brings its own. */
  void UseDriver() {
    uses_driver_ = true;
  }

  /* The core's loop of this environment, made at the first call. NULL with `err` filled when that
   * fails or the environment is ending. */
  sbx_loop *Loop(Napi::Env env, sbx_err *err);

  /* The loop that Loop() has made. */
  sbx_loop *RunningLoop() const {
    return loop_;
  }

  /* From here on no JavaScript value is touched: callbacks of the core only free. */
  bool IsDying() const {
    return dying_;
  }

  /* The process or the worker is about to end, and the loop may get no further turn: releases what
   * can be released at once. */
  void Abandon();

  void Add(Sandbox *sandbox);
  void Remove(Sandbox *sandbox);

private:
  /* Marks the environment as dying, frees every sandbox and begins to close the loop. */
  void Close();
  static void OnCleanup(napi_async_cleanup_hook_handle handle, void *arg);
  static void OnLoopClosed(void *arg);
  int LoopOnLibuv(sbx_err *err);
  int LoopOnDriver(sbx_err *err);
  static void TurnWanted(void *arg);
  static void Keep(void *arg, bool alive);
  static void Turn(napi_env env, napi_value callback, void *context, void *data);
  static void EndDriver(void *arg);
  static void RunInScope(void *arg, void (*body)(void *), void *body_arg);

  napi_env env_ = nullptr;
  napi_async_context context_ = nullptr;
  napi_async_cleanup_hook_handle hook_ = nullptr;
  sbx_loop *loop_ = nullptr;
  bool uses_driver_ = false;
  sbx_driver *driver_ = nullptr;
  napi_threadsafe_function turns_ = nullptr;
  Sandbox *sandboxes_ = nullptr;
  bool dying_ = false;
};

} // namespace sbx

#endif
