#include "src/dropin/live_spaces.h"

#include <pthread.h>

#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "src/dropin/um_cuda_plugin.h"
#include "src/plugin/plug_in.h"
#include "um/dropin/allocations.h"
#include "um/error.h"
#include "um/host/host_device.h"

namespace spillway::dropin {
namespace {

const UmCudaPlugin& load_cuda() {
  const std::string file = "libspillway_um_cuda.so";
  void* const library = load_plug_in(
      {.file = file,
       .folders = {folder_of(reinterpret_cast<const void*>(&load_cuda))},  // this library's folder
       .build_function = kUmCudaBuildFunction,
       .build = SPILLWAY_BUILD,
       .if_absent = "this build has no CUDA side (" + file +
                    " was not found); build it where nvcc is, or use the device \"host\"",
       .if_broken = "install it again, or use the device \"host\"",
       .if_foreign = "install both from the same, or use the device \"host\""});
  return *reinterpret_cast<UmCudaPluginFunction>(address_in(library, kUmCudaPluginFunction))();
}

int ordinal_in(const std::string& name) {
  if (name == "cuda") return 0;
  const std::string prefix = "cuda:";
  int ordinal = -1;
  const char* const end = name.data() + name.size();
  if (name.starts_with(prefix) && name.size() > prefix.size()) {
    const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, ordinal);
    if (error == std::errc{} && rest == end && ordinal >= 0) return ordinal;
  }
  throw um::Misuse{"there is no device \"" + name + R"("; use "host", "cuda" or "cuda:N")"};
}

// Opens "host", "cuda" (the first GPU) or "cuda:N". Throws: um::Misuse when `name` is none of
// these; um::Error when the GPU does not exist.
DropInDevice open_device(const std::string& name) {
  if (name == "host") {
    return {.device = std::make_unique<um::HostDevice>(), .record = {}, .ordinal = -1};
  }
  const int ordinal = ordinal_in(name);
  return load_cuda().open(ordinal);
}

}  // namespace

LiveSpaces& live_spaces() {
  static auto* const spaces = new LiveSpaces;
  return *spaces;
}

LiveSpaces::LiveSpaces() {
  const int failure =
      pthread_atfork([] { live_spaces().mutex_.lock(); }, [] { live_spaces().mutex_.unlock(); },
                     [] {
                       LiveSpaces& all = live_spaces();
                       all.of_parents_.push_back(std::exchange(all.spaces_, {}));
                       all.gpus_.clear();
                       all.mutex_.unlock();
                     });
  if (failure != 0) throw um::system_error("cannot prepare spaces for fork", failure);
}

std::uint64_t LiveSpaces::make(const SpaceRequest& request) {
  auto made = std::make_shared<OpenSpace>(shared(open_device(request.device)), request);
  const std::lock_guard lock{mutex_};
  spaces_.emplace(++last_id_, std::move(made));
  return last_id_;
}

std::shared_ptr<const DropInDevice> LiveSpaces::shared(DropInDevice device) {
  auto opened = std::make_shared<const DropInDevice>(std::move(device));
  if (opened->ordinal < 0) return opened;
  const std::lock_guard lock{mutex_};
  std::weak_ptr<const DropInDevice>& known = gpus_[opened->ordinal];
  if (auto other = known.lock()) return other;
  known = opened;
  return opened;
}

std::shared_ptr<OpenSpace> LiveSpaces::at(std::uint64_t id) {
  const std::lock_guard lock{mutex_};
  return found(id)->second;
}

LiveSpaces::Spaces::iterator LiveSpaces::found(std::uint64_t id) {
  const auto found = spaces_.find(id);
  if (found != spaces_.end()) return found;
  throw InvalidSpace{id > 0 && id <= last_id_
                         ? "space " + std::to_string(id) +
                               " is not alive here: it was destroyed, or made before a fork"
                         : "no space was ever made with the handle " + std::to_string(id)};
}

bool LiveSpaces::has(std::uint64_t id) {
  const std::lock_guard lock{mutex_};
  return spaces_.find(id) != spaces_.end();
}

void LiveSpaces::end(std::uint64_t id) {
  Spaces::node_type ending;  // destroyed after the mutex is released
  const std::lock_guard lock{mutex_};
  ending = spaces_.extract(found(id));
}

}  // namespace spillway::dropin
