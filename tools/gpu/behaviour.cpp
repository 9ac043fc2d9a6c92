#include "tools/gpu/behaviour.h"

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tools/gpu/managed_block.h"
#include "tools/gpu/page_touch.h"
#include "tools/gpu/spread.h"
#include "um/memory_tier.h"

namespace spillway::gpu {
namespace {

using nlohmann::json;
using um::Bytes;
using um::MemoryTier;
using um::Range;

using Call = std::function<void(cudaStream_t)>;

Call prefetch(um::CudaApi& api, Range range, MemoryTier place) {
  return [&api, range, place](cudaStream_t stream) { api.prefetch(range, place, stream); };
}

// The times of several calls, by name.
class Times {
 public:
  void add(const std::string& name, const MoveTime& time) {
    stream_[name].push_back(time.stream_seconds);
    host_[name].push_back(time.host_seconds);
  }
  [[nodiscard]] json to_json() const {
    json all = json::object();
    for (const auto& [name, seconds] : stream_) {
      all[name] = {{"stream_seconds", gpu::to_json(spread_of(seconds))},
                   {"host_seconds", gpu::to_json(spread_of(host_.at(name)))}};
    }
    return all;
  }

 private:
  std::map<std::string, std::vector<double>> stream_;
  std::map<std::string, std::vector<double>> host_;
};

}  // namespace

json measure_free_memory(um::CudaApi& api, um::CudaManagedMemory& managed, MoveTimer& timer,
                         Bytes size) {
  const auto free = [&] { return api.memory().free.count(); };
  json result{{"size_bytes", size.count()}, {"before", free()}};
  {
    const ManagedBlock block{managed, size};
    result["allocated"] = free();
    timer.run(prefetch(api, block.range(), MemoryTier::kNear));
    const std::uint64_t near = free();
    timer.run(prefetch(api, block.range(), MemoryTier::kFar));
    const std::uint64_t far = free();
    result["near"] = near;
    result["far"] = far;
    result["far_gives_back"] = far >= near + size.count() / 2;
  }
  result["freed"] = free();
  return result;
}

json measure_discard(um::CudaApi& api, um::CudaManagedMemory& managed, MoveTimer& timer,
                     const BehaviourOptions& options) {
  if (!api.facts().has_discard) return {{"why_not", "the driver has no discard"}};
  const ManagedBlock block{managed, options.size};
  const Range range = block.range();
  const Call discard = [&](cudaStream_t stream) { api.discard({&range, 1}, stream); };
  const Call renew = [&](cudaStream_t stream) {
    api.discard_and_prefetch_near({&range, 1}, stream);
  };
  Times times;
  timer.run(prefetch(api, range, MemoryTier::kNear));  // warms up
  timer.run(prefetch(api, range, MemoryTier::kFar));
  for (int i = 0; i < options.repeats; ++i) {
    times.add("bring_back_far", timer.time(prefetch(api, range, MemoryTier::kNear), false));
    timer.run(prefetch(api, range, MemoryTier::kFar));
    times.add("renew_far", timer.time(renew, false));
    times.add("renew_near", timer.time(renew, false));
    times.add("discard_near", timer.time(discard, false));
    times.add("bring_back_discarded", timer.time(prefetch(api, range, MemoryTier::kNear), false));
    timer.run(prefetch(api, range, MemoryTier::kFar));
  }
  json result = times.to_json();
  result["size_bytes"] = options.size.count();
  return result;
}

json measure_faults(um::CudaApi& api, um::CudaManagedMemory& managed, um::Memory& device,
                    MoveTimer& timer, const BehaviourOptions& options) {
  const ManagedBlock block{managed, options.size};
  const um::Block copy{device, options.size};
  const Range range = block.range();
  const Call read = [&](cudaStream_t stream) { api.copy(range, copy.data(), stream); };
  Times times;
  std::vector<double> touching;
  timer.run(prefetch(api, range, MemoryTier::kNear));  // warms up
  timer.run(read);
  for (int i = 0; i < options.repeats; ++i) {
    timer.run(prefetch(api, range, MemoryTier::kFar));
    times.add("read_far", timer.time(read, false));
    timer.run(prefetch(api, range, MemoryTier::kFar));
    times.add("bring_then_read", timer.time(
                                     [&](cudaStream_t stream) {
                                       api.prefetch(range, MemoryTier::kNear, stream);
                                       read(stream);
                                     },
                                     false));
    touching.push_back(touch_pages(range));  // near, by now
  }
  json result = times.to_json();
  result["size_bytes"] = options.size.count();
  result["touch_by_processor_seconds"] = to_json(spread_of(touching));
  return result;
}

}  // namespace spillway::gpu
