/* sandbox.cc - the JavaScript class over sbx_sandbox: arguments in, Promises out.
 *
 * Every method reads all of its arguments before it makes a Call, and no JavaScript runs between
 * the last of them and the core's function, which copies what it needs.
 *
 * Invariant: `sandbox_` is set exactly while the object is in its environment's list. */
#include "binding/sandbox.h"

#include "binding/env.h"
#include "binding/values.h"

extern "C" {
#include "core/err.h"
}

#include <cstring>

namespace sbx {

namespace {

constexpr napi_type_tag kTypeTag = {0x6f0c1a5d92b84e37, 0xa3e7d41b58f60c92};

/* An Error that carries the plain error object as its member `sbx`. */
void ThrowError(Napi::Env env, const sbx_err &err) {
  Napi::Error error = Napi::Error::New(env, err.message);
  napi_value plain = MakeError(env, err);
  if (plain != nullptr)
    error.Set("sbx", plain);
  error.ThrowAsJavaScriptException();
}

} // namespace

Napi::Function Sandbox::Define(Napi::Env env) {
  return DefineClass(env, "Sandbox",
                     {
                         InstanceMethod<&Sandbox::Start>("start"),
                         InstanceMethod<&Sandbox::Exec>("exec"),
                         InstanceMethod<&Sandbox::Feed>("feed"),
                         InstanceMethod<&Sandbox::EndInput>("endInput"),
                         InstanceMethod<&Sandbox::Signal>("signal"),
                         InstanceMethod<&Sandbox::Resize>("resize"),
                         InstanceMethod<&Sandbox::Write>("write"),
                         InstanceMethod<&Sandbox::Read>("read"),
                         InstanceMethod<&Sandbox::List>("list"),
                         InstanceMethod<&Sandbox::Stat>("stat"),
                         InstanceMethod<&Sandbox::ListDir>("listDir"),
                         InstanceMethod<&Sandbox::Remove>("remove"),
                         InstanceMethod<&Sandbox::Move>("move"),
                         InstanceMethod<&Sandbox::MakeDir>("makeDir"),
                         InstanceMethod<&Sandbox::ReadPart>("readPart"),
                         InstanceMethod<&Sandbox::WritePart>("writePart"),
                         InstanceMethod<&Sandbox::Control>("control"),
                         InstanceMethod<&Sandbox::Close>("close"),
                         InstanceMethod<&Sandbox::Cancel>("cancel"),
                         InstanceAccessor<&Sandbox::Id>("id"),
                         InstanceAccessor<&Sandbox::Capabilities>("capabilities"),
                         InstanceAccessor<&Sandbox::Isolation>("isolation"),
                     });
}

Sandbox *Sandbox::Unwrap(Napi::Object object) {
  napi_env env = object.Env();
  bool is_ours = false;
  void *self = nullptr;
  if (napi_check_object_type_tag(env, object, &kTypeTag, &is_ours) == napi_ok && is_ours &&
      napi_unwrap(env, object, &self) == napi_ok)
    return static_cast<Sandbox *>(self);
  if (!Napi::Env(env).IsExceptionPending())
    napi_throw_type_error(env, nullptr, "cloudsandbox: the receiver is not a native Sandbox");
  return nullptr;
}

Sandbox::Sandbox(const Napi::CallbackInfo &info) : ObjectWrap(info) {
  Napi::Env env = info.Env();
  if (env.IsExceptionPending())
    return;
  Text provider, options;
  if (!provider.Read(env, info[0], "provider") || !options.Read(env, info[1], "options"))
    return;
  if (provider.HasNul()) {
    ThrowType(env, "provider", "a string without U+0000");
    return;
  }
  auto *addon = env.GetInstanceData<AddonData>();
  sbx_err err = {};
  sbx_loop *loop = addon->Loop(env, &err);
  if (loop == nullptr ||
      sbx_sandbox_new(&sandbox_, loop, provider.CString(), options.Slice(), &err) != SBX_OK) {
    sandbox_ = nullptr;
    ThrowError(env, err);
    return;
  }
  addon_ = addon;
  addon_->Add(this);
  sbx_sandbox_on_progress(sandbox_, OnProgress, this);
  sbx_sandbox_on_life(sandbox_, OnLife, this);
  if (napi_type_tag_object(env, info.This(), &kTypeTag) != napi_ok)
    ThrowType(env, "this", "a new object");
}

Sandbox::~Sandbox() {
  Release();
}

void Sandbox::Release() {
  if (sandbox_ == nullptr)
    return;
  addon_->Remove(this);
  sbx_sandbox_free(sandbox_);
  sandbox_ = nullptr;
}

/* A member and no reference of ours: that would keep alive for ever what the listener knows, which
 * may be this object. */
void Sandbox::Tell(const char *member, sbx_slice json) {
  if (addon_->IsDying())
    return;
  Napi::Env env = Env();
  Napi::HandleScope scope(env);
  napi_value object = Value(), listener = nullptr, text = nullptr;
  napi_valuetype type = napi_undefined;
  if (object == nullptr || napi_get_named_property(env, object, member, &listener) != napi_ok ||
      napi_typeof(env, listener, &type) != napi_ok || type != napi_function)
    return;
  if (napi_create_string_utf8(env, json.ptr, json.len, &text) == napi_ok &&
      napi_call_function(env, object, listener, 1, &text, nullptr) == napi_ok)
    return;
  napi_value exception = TakeException(env);
  if (exception != nullptr)
    napi_fatal_exception(env, exception);
}

void Sandbox::OnProgress(void *arg, sbx_slice json) {
  static_cast<Sandbox *>(arg)->Tell("onProgress", json);
}

void Sandbox::OnLife(void *arg, sbx_slice json) {
  static_cast<Sandbox *>(arg)->Tell("onLife", json);
}

/* The first argument of every method that makes a call is its id. */
Call *Sandbox::NewCall(const Napi::CallbackInfo &info, Napi::Value on_output) {
  uint64_t id = 0;
  if (!ReadCount(info.Env(), info[0], "callId", &id))
    return nullptr;
  return Call::New(info.Env(), this, id, on_output);
}

/* `call` is NULL when an exception is pending. */
template <typename Begin> Napi::Value Sandbox::Run(Call *call, Begin begin) {
  if (call == nullptr)
    return Napi::Value();
  sbx_err err = {};
  int status = sandbox_ != nullptr
                   ? begin(&err)
                   : sbx_err_set(&err, SBX_ECLOSED, "the sandbox is closed: the process is ending");
  return call->Started(status, err);
}

Napi::Value Sandbox::Start(const Napi::CallbackInfo &info) {
  Call *call = NewCall(info);
  return Run(call, [&](sbx_err *err) {
    return sbx_sandbox_start(sandbox_, Call::OnDone, call, call->Handle(), err);
  });
}

Napi::Value Sandbox::Exec(const Napi::CallbackInfo &info) {
  Napi::Env env = info.Env();
  Napi::Value on_output = info[2];
  if (on_output.IsUndefined())
    on_output = Napi::Value();
  else if (!on_output.IsFunction()) {
    ThrowType(env, "onOutput", "a function");
    return Napi::Value();
  }
  ExecArgs args;
  if (!args.Read(env, info[1]))
    return Napi::Value();
  Call *call = NewCall(info, on_output);
  return Run(call, [&](sbx_err *err) {
    return sbx_sandbox_exec(sandbox_, args.Spec(), call->HasOutput() ? Call::OnOutput : nullptr,
                            Call::OnExec, call, call->Handle(), err);
  });
}

/* Something for the command that the call of the second argument runs; `give` has a core's function
 * of that. */
template <typename Function>
Napi::Value Sandbox::Give(const Napi::CallbackInfo &info, Function give) {
  uint64_t running = 0;
  if (!ReadCount(info.Env(), info[1], "running", &running))
    return Napi::Value();
  Call *call = NewCall(info);
  return Run(call, [&](sbx_err *err) {
    Call *command = Find(running);
    if (command == nullptr || *command->Handle() == nullptr)
      return sbx_err_set(err, SBX_ECLOSED,
                         "the command has ended, or was not started, and takes nothing any more");
    return give(*command->Handle(), call, err);
  });
}

/* feed(callId, running, bytes) */
Napi::Value Sandbox::Feed(const Napi::CallbackInfo &info) {
  sbx_slice bytes = {};
  if (!ReadBytes(info.Env(), info[2], "bytes", &bytes))
    return Napi::Value();
  return Give(info, [&](sbx_call *command, Call *call, sbx_err *err) {
    return sbx_call_write(command, bytes, Call::OnDone, call, err);
  });
}

/* endInput(callId, running) */
Napi::Value Sandbox::EndInput(const Napi::CallbackInfo &info) {
  return Give(info, [](sbx_call *command, Call *call, sbx_err *err) {
    return sbx_call_end_input(command, Call::OnDone, call, err);
  });
}

/* signal(callId, running, name) */
Napi::Value Sandbox::Signal(const Napi::CallbackInfo &info) {
  Text name;
  if (!name.Read(info.Env(), info[2], "name"))
    return Napi::Value();
  return Give(info, [&](sbx_call *command, Call *call, sbx_err *err) {
    return sbx_call_signal(command, name.CString(), Call::OnDone, call, err);
  });
}

/* resize(callId, running, columns, rows) */
Napi::Value Sandbox::Resize(const Napi::CallbackInfo &info) {
  sbx_tty_size size = {};
  if (!ReadSide(info.Env(), info[2], "columns", &size.columns) ||
      !ReadSide(info.Env(), info[3], "rows", &size.rows))
    return Napi::Value();
  return Give(info, [&](sbx_call *command, Call *call, sbx_err *err) {
    return sbx_call_resize(command, size, Call::OnDone, call, err);
  });
}

Napi::Value Sandbox::Write(const Napi::CallbackInfo &info) {
  Text path;
  sbx_slice bytes = {};
  if (!path.Read(info.Env(), info[1], "path") || !ReadBytes(info.Env(), info[2], "bytes", &bytes))
    return Napi::Value();
  Call *call = NewCall(info);
  return Run(call, [&](sbx_err *err) {
    return sbx_sandbox_write(sandbox_, path.Slice(), bytes, Call::OnDone, call, call->Handle(),
                             err);
  });
}

Napi::Value Sandbox::Read(const Napi::CallbackInfo &info) {
  Text path;
  uint64_t max_bytes = 0;
  if (!path.Read(info.Env(), info[1], "path") ||
      !ReadCount(info.Env(), info[2], "maxBytes", &max_bytes))
    return Napi::Value();
  Call *call = NewCall(info);
  return Run(call, [&](sbx_err *err) {
    return sbx_sandbox_read(sandbox_, path.Slice(), static_cast<size_t>(max_bytes), Call::OnRead,
                            call, call->Handle(), err);
  });
}

Napi::Value Sandbox::List(const Napi::CallbackInfo &info) {
  uint64_t max_entries = 0;
  if (!ReadCount(info.Env(), info[1], "maxEntries", &max_entries))
    return Napi::Value();
  Call *call = NewCall(info);
  return Run(call, [&](sbx_err *err) {
    return sbx_sandbox_list(sandbox_, static_cast<size_t>(max_entries), Call::OnList, call,
                            call->Handle(), err);
  });
}

Napi::Value Sandbox::Stat(const Napi::CallbackInfo &info) {
  Text path;
  if (!path.Read(info.Env(), info[1], "path"))
    return Napi::Value();
  Call *call = NewCall(info);
  return Run(call, [&](sbx_err *err) {
    return sbx_sandbox_stat(sandbox_, path.Slice(), Call::OnStat, call, call->Handle(), err);
  });
}

Napi::Value Sandbox::ListDir(const Napi::CallbackInfo &info) {
  Text path;
  uint64_t max_entries = 0;
  if (!path.Read(info.Env(), info[1], "path") ||
      !ReadCount(info.Env(), info[2], "maxEntries", &max_entries))
    return Napi::Value();
  Call *call = NewCall(info);
  return Run(call, [&](sbx_err *err) {
    return sbx_sandbox_list_dir(sandbox_, path.Slice(), static_cast<size_t>(max_entries),
                                Call::OnDir, call, call->Handle(), err);
  });
}

/* remove(callId, path, recursive): 0 or 1 */
Napi::Value Sandbox::Remove(const Napi::CallbackInfo &info) {
  Text path;
  uint64_t recursive = 0;
  if (!path.Read(info.Env(), info[1], "path") ||
      !ReadCount(info.Env(), info[2], "recursive", &recursive))
    return Napi::Value();
  Call *call = NewCall(info);
  return Run(call, [&](sbx_err *err) {
    return sbx_sandbox_remove(sandbox_, path.Slice(), recursive != 0, Call::OnRemove, call,
                              call->Handle(), err);
  });
}

Napi::Value Sandbox::Move(const Napi::CallbackInfo &info) {
  Text from, to;
  if (!from.Read(info.Env(), info[1], "from") || !to.Read(info.Env(), info[2], "to"))
    return Napi::Value();
  Call *call = NewCall(info);
  return Run(call, [&](sbx_err *err) {
    return sbx_sandbox_move(sandbox_, from.Slice(), to.Slice(), Call::OnDone, call, call->Handle(),
                            err);
  });
}

Napi::Value Sandbox::MakeDir(const Napi::CallbackInfo &info) {
  Text path;
  if (!path.Read(info.Env(), info[1], "path"))
    return Napi::Value();
  Call *call = NewCall(info);
  return Run(call, [&](sbx_err *err) {
    return sbx_sandbox_make_dir(sandbox_, path.Slice(), Call::OnDone, call, call->Handle(), err);
  });
}

/* readPart(callId, path, offset, maxBytes, stamp); an empty stamp: the first part. */
Napi::Value Sandbox::ReadPart(const Napi::CallbackInfo &info) {
  Text path, stamp;
  uint64_t offset = 0, max_bytes = 0;
  if (!path.Read(info.Env(), info[1], "path") ||
      !ReadCount(info.Env(), info[2], "offset", &offset) ||
      !ReadCount(info.Env(), info[3], "maxBytes", &max_bytes) ||
      !stamp.Read(info.Env(), info[4], "stamp"))
    return Napi::Value();
  Call *call = NewCall(info);
  return Run(call, [&](sbx_err *err) {
    return sbx_sandbox_read_part(sandbox_, path.Slice(), offset, static_cast<size_t>(max_bytes),
                                 stamp.Slice(), Call::OnPart, call, call->Handle(), err);
  });
}

/* writePart(callId, path, token, offset, bytes, step): 0 more, 1 last, 2 drop */
Napi::Value Sandbox::WritePart(const Napi::CallbackInfo &info) {
  Text path, token;
  uint64_t offset = 0, step = 0;
  sbx_slice bytes = {};
  if (!path.Read(info.Env(), info[1], "path") || !token.Read(info.Env(), info[2], "token") ||
      !ReadCount(info.Env(), info[3], "offset", &offset) ||
      !ReadCount(info.Env(), info[5], "step", &step) ||
      !ReadBytes(info.Env(), info[4], "bytes", &bytes))
    return Napi::Value();
  sbx_part_step what = step == 0 ? SBX_PART_MORE : step == 1 ? SBX_PART_LAST : SBX_PART_DROP;
  Call *call = NewCall(info);
  return Run(call, [&](sbx_err *err) {
    return sbx_sandbox_write_part(sandbox_, path.Slice(), token.Slice(), offset, bytes, what,
                                  Call::OnDone, call, call->Handle(), err);
  });
}

/* control(callId, "lifetime" | "extend" | "pause" | "resume", seconds) */
Napi::Value Sandbox::Control(const Napi::CallbackInfo &info) {
  Text what;
  uint64_t seconds = 0;
  if (!what.Read(info.Env(), info[1], "what") ||
      !ReadCount(info.Env(), info[2], "seconds", &seconds))
    return Napi::Value();
  sbx_control control = SBX_SET_LIFETIME;
  if (strcmp(what.CString(), "pause") == 0) {
    control = SBX_PAUSE;
  } else if (strcmp(what.CString(), "resume") == 0) {
    control = SBX_RESUME;
  } else if (strcmp(what.CString(), "extend") == 0) {
    control = SBX_EXTEND_LIFETIME;
  } else if (strcmp(what.CString(), "lifetime") != 0) {
    ThrowType(info.Env(), "what", "'lifetime', 'extend', 'pause' or 'resume'");
    return Napi::Value();
  }
  Call *call = NewCall(info);
  return Run(call, [&](sbx_err *err) {
    return sbx_sandbox_control(sandbox_, control, seconds, Call::OnDone, call, call->Handle(), err);
  });
}

/* close(graceMs); it has no id, for it cannot be cancelled. */
Napi::Value Sandbox::Close(const Napi::CallbackInfo &info) {
  uint64_t grace_ms = 0;
  if (!ReadCount(info.Env(), info[0], "graceMs", &grace_ms))
    return Napi::Value();
  Call *call = Call::New(info.Env(), this, 0, Napi::Value());
  return Run(call, [&](sbx_err *err) {
    return sbx_sandbox_close(sandbox_, grace_ms, Call::OnDone, call, err);
  });
}

void Sandbox::Cancel(const Napi::CallbackInfo &info) {
  uint64_t id = 0;
  if (!ReadCount(info.Env(), info[0], "callId", &id))
    return;
  Call *call = Find(id);
  if (call != nullptr)
    call->Cancel();
}

/* NULL: it has ended. */
Call *Sandbox::Find(uint64_t id) const {
  Call *call = calls_;
  while (call != nullptr && call->Id() != id)
    call = call->Next();
  return call;
}

Napi::Value Sandbox::Id(const Napi::CallbackInfo &info) {
  const char *id = sandbox_ != nullptr ? sbx_sandbox_id(sandbox_) : nullptr;
  return Napi::Value(info.Env(), MakeText(info.Env(), id));
}

Napi::Value Sandbox::Capabilities(const Napi::CallbackInfo &info) {
  return Napi::Number::New(info.Env(),
                           sandbox_ != nullptr ? sbx_sandbox_capabilities(sandbox_) : 0);
}

/* Text of JSON; empty where there is none. */
Napi::Value Sandbox::Isolation(const Napi::CallbackInfo &info) {
  char text[SBX_ISOLATION_MAX];
  size_t len = sandbox_ != nullptr ? sbx_sandbox_isolation(sandbox_, text, sizeof text) : 0;
  return Napi::String::New(info.Env(), text, len);
}

} // namespace sbx
