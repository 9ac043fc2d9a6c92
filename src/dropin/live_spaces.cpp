#include "src/dropin/live_spaces.h"

#include <pthread.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "prefetch/profile.h"
#include "src/dropin/um_cuda_plugin.h"
#include "um/bytes.h"
#include "um/dropin/allocations.h"
#include "um/dropin/space.h"
#include "um/error.h"
#include "um/host/host_device.h"
#include "um/machine/plug_in.h"
#include "um/memory.h"

namespace spillway::dropin {
namespace {

using Clock = std::chrono::steady_clock;

/// Latency of one move, without its transfer: the wake-up of a sleeping thread.
constexpr um::Nanoseconds kLatency{20'000};
constexpr um::Bandwidth kGuess{2e9};
constexpr std::uint64_t kPages = 8;
constexpr int kTimes = 3;

um::Nanoseconds time_of_move(um::Space& space, const std::byte* pages, um::Bytes size,
                             um::MemoryTier tier) {
  const auto begin = Clock::now();
  space.prefetch(pages, size, tier);
  space.synchronize();
  return std::max(um::Nanoseconds{1}, um::Nanoseconds{Clock::now() - begin});
}

um::Bandwidth speed(um::Bytes size, um::Nanoseconds time) {
  const um::Nanoseconds moving = std::max(time - kLatency, time / 2);
  return um::Bandwidth{static_cast<double>(size.count()) / um::seconds(moving)};
}

// Returns the profile of a link with known bandwidth.
prefetch::LinkProfile link_of(um::Bandwidth bandwidth) {
  return {.offload = bandwidth, .prefetch = bandwidth, .latency = kLatency};
}

// Measures how fast the space moves pages: allocates a few pages briefly and moves them out and in,
// taking the best of three. Returns a cautious guess when the space has no room. Takes the time of
// a few dozen page moves; concurrent moves continue and affect the result.
prefetch::LinkProfile measure_link(um::Space& space) {
  prefetch::LinkProfile link = link_of(kGuess);
  const um::Bytes near = space.near_budget();
  const um::Bytes size = std::max(
      space.page(),
      std::min(kPages * space.page(), um::round_down(um::Bytes{near.count() / 4}, space.page())));
  std::byte* pages = nullptr;
  try {
    pages = space.allocate(size, space.page());
  } catch (const um::OutOfMemory&) {
    return link;
  }
  std::memset(pages, 1, size.count());
  um::Nanoseconds out{um::Nanoseconds::max()};
  um::Nanoseconds in{um::Nanoseconds::max()};
  try {
    // Brings the pages near: on a GPU they are still far, so a first offload would move nothing.
    static_cast<void>(time_of_move(space, pages, size, um::MemoryTier::kNear));
    for (int i = 0; i < kTimes; ++i) {
      out = std::min(out, time_of_move(space, pages, size, um::MemoryTier::kFar));
      in = std::min(in, time_of_move(space, pages, size, um::MemoryTier::kNear));
    }
  } catch (...) {
    space.free(pages);
    throw;
  }
  space.free(pages);
  link.offload = speed(size, out);
  link.prefetch = speed(size, in);
  return link;
}

const UmCudaPlugin& load_cuda() {
  const std::string file = "libspillway_um_cuda.so";
  void* const library = um::load_plug_in(
      {.file = file,
       .folders = {um::folder_of(
           reinterpret_cast<const void*>(&load_cuda))},  // this library's folder
       .build_function = kUmCudaBuildFunction,
       .build = SPILLWAY_BUILD,
       .if_absent = "this build has no CUDA side (" + file +
                    " was not found); build it where nvcc is, or use the device \"host\"",
       .if_broken = "install it again, or use the device \"host\"",
       .if_foreign = "install both from the same, or use the device \"host\""});
  return *reinterpret_cast<UmCudaPluginFunction>(um::address_in(library, kUmCudaPluginFunction))();
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
    return {.device = std::make_unique<um::HostDevice>(), .stream_of = {}, .ordinal = -1};
  }
  const int ordinal = ordinal_in(name);
  return load_cuda().open(ordinal);
}

}  // namespace

OpenSpace::OpenSpace(std::shared_ptr<const DropInDevice> device, const SpaceRequest& request)
    : device_{std::move(device)},
      link_{request.options.link.bandwidth},
      space_{*device_->device, request.options} {}

std::byte* OpenSpace::allocate(um::Bytes size, um::Bytes alignment) {
  std::byte* const address = space_.allocate(size, alignment);
  if (auto* const learned = this->learned()) learned->allocated(address, size);
  return address;
}

std::byte* OpenSpace::allocate_for(void* stream, um::Bytes size, um::Bytes alignment) {
  if (!device_->stream_of) return allocate(size, alignment);
  std::byte* const address = space_.allocate_for(*device_->stream_of(stream), size, alignment);
  if (auto* const learned = this->learned()) learned->allocated(address, size);
  return address;
}

void OpenSpace::free(const void* address) {
  if (auto* const learned = this->learned()) learned->freeing(address);
  space_.free(address);
}

void OpenSpace::free_after(const void* address, void* stream) {
  if (!device_->stream_of) {
    if (stream != nullptr) throw um::Misuse{"the host device has no streams; pass NULL"};
    free(address);
    return;
  }
  if (auto* const learned = this->learned()) learned->freeing(address);
  space_.free_after(address, *device_->stream_of(stream));
}

void OpenSpace::touch(const void* address, um::Bytes size, um::Access access) {
  if (auto* const learned = this->learned()) learned->touching(address, size, access);
  space_.touch(address, size, access);
}

void OpenSpace::synchronize() {
  if (auto* const learned = this->learned()) learned->wait();
  space_.synchronize();
}

void OpenSpace::mark_iteration() {
  const std::lock_guard lock{first_mark_};  // held while measuring: marks are rare
  if (owned_ == nullptr) {
    prefetch::LinkProfile link = link_ ? link_of(*link_) : measure_link(space_);
    if (device_->ordinal < 0) link.faults = um::kHostFaults;  // otherwise the default, a GPU's
    owned_ = std::make_unique<LearnedPrefetch>(space_, link);
    learned_.store(owned_.get(), std::memory_order_release);
  }
  owned_->mark();
}

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
