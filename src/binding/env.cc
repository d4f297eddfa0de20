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

  env_ = env;
  if ((uses_driver_ ? LoopOnDriver(err) : LoopOnLibuv(err)) != SBX_OK)
    return nullptr;
  return loop_;
}

int AddonData::LoopOnLibuv(sbx_err *err) {
  uv_loop_t *uv = nullptr;
  if (napi_get_uv_event_loop(env_, &uv) != napi_ok)
    return sbx_err_set(err, SBX_EUNSUPPORTED, "this JavaScript runtime has no libuv loop");
  if (context_ == nullptr &&
      napi_async_init(env_, nullptr, Napi::String::New(env_, "cloudsandbox"), &context_) != napi_ok)
    return sbx_err_set(err, SBX_ENOMEM, nullptr);
  int code = sbx_loop_new(&loop_, uv, err);
  if (code != SBX_OK)
    return code;
  sbx_loop_set_scope(loop_, RunInScope, this);
  if (napi_add_async_cleanup_hook(env_, OnCleanup, this, &hook_) != napi_ok) {
    sbx_loop_close(loop_, nullptr, nullptr);
    loop_ = nullptr;
    return sbx_err_set(err, SBX_ENOMEM, nullptr);
  }
  return SBX_OK;
}

/* The hook comes last here, so it runs before the environment ends the function. */
int AddonData::LoopOnDriver(sbx_err *err) {
  if (napi_create_threadsafe_function(env_, nullptr, nullptr,
                                      Napi::String::New(env_, "cloudsandbox"), 0, 1, nullptr,
                                      nullptr, this, Turn, &turns_) != napi_ok)
    return sbx_err_set(err, SBX_ENOMEM, nullptr);
  napi_unref_threadsafe_function(env_, turns_);
  const sbx_driver_host host = {TurnWanted, Keep, this};
  int code = sbx_driver_new(&driver_, &loop_, &host, err);
  if (code == SBX_OK && napi_add_env_cleanup_hook(env_, EndDriver, this) != napi_ok) {
    sbx_driver_free(driver_);
    driver_ = nullptr;
    loop_ = nullptr;
    code = sbx_err_set(err, SBX_ENOMEM, nullptr);
  }
  if (code != SBX_OK)
    napi_release_threadsafe_function(turns_, napi_tsfn_abort);
  return code;
}

void AddonData::TurnWanted(void *arg) {
  napi_call_threadsafe_function(static_cast<AddonData *>(arg)->turns_, nullptr,
                                napi_tsfn_nonblocking);
}

void AddonData::Keep(void *arg, bool alive) {
  auto *self = static_cast<AddonData *>(arg);
  if (alive)
    napi_ref_threadsafe_function(self->env_, self->turns_);
  else
    napi_unref_threadsafe_function(self->env_, self->turns_);
}

void AddonData::Turn(napi_env env, napi_value, void *context, void *) {
  auto *self = static_cast<AddonData *>(context);
  if (env != nullptr && !self->dying_)
    sbx_driver_turn(self->driver_);
}

void AddonData::EndDriver(void *arg) {
  auto *self = static_cast<AddonData *>(arg);
  self->Close();
  sbx_driver_free(self->driver_); /* it minds an end inside of a turn, as by process.exit() */
  self->driver_ = nullptr;
  self->loop_ = nullptr;
  napi_release_threadsafe_function(self->turns_, napi_tsfn_abort);
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
  if (driver_ != nullptr)
    sbx_loop_close(loop_, nullptr, nullptr);
  else if (loop_ != nullptr)
    sbx_loop_close(loop_, OnLoopClosed, this);
}

void AddonData::Abandon() {
  Close();
  if (loop_ != nullptr)
    sbx_loop_run_ready(loop_);
  if (driver_ != nullptr)
    sbx_driver_quiet(driver_);
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
