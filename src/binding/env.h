/* env.h - what the addon keeps for one Node environment (the main thread or one worker). */
#ifndef SBX_BINDING_ENV_H
#define SBX_BINDING_ENV_H

#include "sbx.h"

#include <napi.h>

namespace sbx {

class Sandbox;

class AddonData {
public:
  AddonData() = default;
  AddonData(const AddonData &) = delete;
  AddonData &operator=(const AddonData &) = delete;
  ~AddonData();

  /* The core's loop on this environment's uv loop, made at the first call. NULL with `err` filled
   * when that fails or the environment is ending. */
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
  static void RunInScope(void *arg, void (*body)(void *), void *body_arg);

  napi_env env_ = nullptr;
  napi_async_context context_ = nullptr;
  napi_async_cleanup_hook_handle hook_ = nullptr;
  sbx_loop *loop_ = nullptr;
  Sandbox *sandboxes_ = nullptr;
  bool dying_ = false;
};

} // namespace sbx

#endif
