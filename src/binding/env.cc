/* env.cc - one environment's loop, the scope that JavaScript runs in, and the orderly end.
 *
 * The end is an asynchronous cleanup hook: libuv handles can only be freed in later turns of the
 * loop, and Node aborts when it finds one left. The hook holds the environment until the core says
 * that it has closed everything. The main thread runs no hooks at process.exit(), so lib/ calls
 * Abandon() from an 'exit' listener, in every thread.
 *
 * Invariant: once `dying_` is set, nothing here or in call.cc calls into JavaScript again. */
#include "binding/env.h"

#include "binding/sandbox.h"

extern "C" {
#include "core/err.h"
#include "core/loop.h"
}

namespace sbx {

AddonData::~AddonData() {
  if (context_ != nullptr)
    napi_async_destroy(env_, context_);
}

sbx_loop *AddonData::Loop(Napi::Env env, sbx_err *err) {
  if (dying_) {
    sbx_err_set(err, SBX_ECLOSED, "the process or the worker thread is ending");
    return nullptr;
  }
  if (loop_ != nullptr)
    return loop_;

  uv_loop_t *uv = nullptr;
  if (napi_get_uv_event_loop(env, &uv) != napi_ok) {
    sbx_err_set(err, SBX_EUNSUPPORTED, "this JavaScript runtime has no libuv loop; use Node.js");
    return nullptr;
  }
  env_ = env;
  if (context_ == nullptr &&
      napi_async_init(env, nullptr, Napi::String::New(env, "cloudsandbox"), &context_) != napi_ok) {
    sbx_err_set(err, SBX_ENOMEM, nullptr);
    return nullptr;
  }
  if (sbx_loop_new(&loop_, uv, err) != SBX_OK)
    return nullptr;
  sbx_loop_set_scope(loop_, RunInScope, this);
  if (napi_add_async_cleanup_hook(env, OnCleanup, this, &hook_) != napi_ok) {
    sbx_loop_close(loop_, nullptr, nullptr);
    loop_ = nullptr;
    sbx_err_set(err, SBX_ENOMEM, nullptr);
  }
  return loop_;
}

void AddonData::RunInScope(void *arg, void (*body)(void *), void *body_arg) {
  auto *self = static_cast<AddonData *>(arg);
  napi_handle_scope handles = nullptr;
  napi_callback_scope callbacks = nullptr;
  if (!self->dying_ && napi_open_handle_scope(self->env_, &handles) == napi_ok) {
    napi_value resource = nullptr;
    if (napi_create_object(self->env_, &resource) == napi_ok)
      napi_open_callback_scope(self->env_, resource, self->context_, &callbacks);
  }
  body(body_arg);
  /* Closing it runs process.nextTick() callbacks and promise reactions. */
  if (callbacks != nullptr)
    napi_close_callback_scope(self->env_, callbacks);
  if (handles != nullptr)
    napi_close_handle_scope(self->env_, handles);
}

void AddonData::Add(Sandbox *sandbox) {
  sandbox->next_ = sandboxes_;
  sandbox->prev_ = nullptr;
  if (sandboxes_ != nullptr)
    sandboxes_->prev_ = sandbox;
  sandboxes_ = sandbox;
}

void AddonData::Remove(Sandbox *sandbox) {
  if (sandbox->prev_ != nullptr)
    sandbox->prev_->next_ = sandbox->next_;
  else
    sandboxes_ = sandbox->next_;
  if (sandbox->next_ != nullptr)
    sandbox->next_->prev_ = sandbox->prev_;
  sandbox->next_ = sandbox->prev_ = nullptr;
}

void AddonData::Close() {
  if (dying_)
    return;
  dying_ = true;
  while (sandboxes_ != nullptr)
    sandboxes_->Release();
  if (loop_ != nullptr)
    sbx_loop_close(loop_, OnLoopClosed, this);
}

void AddonData::Abandon() {
  Close();
  if (loop_ != nullptr)
    sbx_loop_run_ready(loop_);
}

void AddonData::OnCleanup(napi_async_cleanup_hook_handle, void *arg) {
  static_cast<AddonData *>(arg)->Close();
}

void AddonData::OnLoopClosed(void *arg) {
  auto *self = static_cast<AddonData *>(arg);
  self->loop_ = nullptr;
  /* The last word: the environment, and with it `self`, may be freed from here on. */
  napi_remove_async_cleanup_hook(self->hook_);
}

} // namespace sbx
