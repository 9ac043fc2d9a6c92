#include "tools/gpu/fault_counts.h"

#include <memory>
#include <utility>

#include "tools/gpu/moves.h"
#include "tools/gpu/page_touch.h"
#include "um/ledger.h"
#include "um/memory_tier.h"

namespace spillway::gpu {
namespace {

using namespace um::literals;
using nlohmann::json;
using um::Bytes;
using um::DriverTotals;
using um::MemoryTier;
using um::Range;

class Swap {
 public:
  Swap(um::CudaDevice& device, um::CudaApi& api, Bytes size)
      : counters_{*device.driver_counters()},
        api_{api},
        ledger_{size},
        space_{device.make_managed_space(
            {.size = size, .near = size, .page = 2_MiB, .far = {}, .link = {}}, ledger_)},
        copy_{device.memory(), size},
        stream_{device.make_cuda_stream("reads")} {}

  // As a run does: nothing is touched where it is not.
  [[nodiscard]] json budgeted() {
    move(MemoryTier::kNear);
    for (int i = 0; i < 3; ++i) {
      read();
      move(MemoryTier::kFar);
      if (i % 2 == 0) {
        move(MemoryTier::kNear);
      } else {
        space_->hints().populate(slab());
      }
    }
    move(MemoryTier::kNear);  // also waits for the room that was given
    return to_json(counters_.read());
  }

  [[nodiscard]] json touched() {
    move(MemoryTier::kFar);
    read();  // by the GPU, which pulls or maps what is far
    json by_device = to_json(counters_.read());
    api_.prefetch(slab(), MemoryTier::kNear, stream_->native());
    api_.synchronize(stream_->native());
    static_cast<void>(touch_pages(slab()));
    return {{"by_device", std::move(by_device)}, {"by_processor", to_json(counters_.read())}};
  }

 private:
  [[nodiscard]] Range slab() const { return space_->slab(); }

  void move(MemoryTier place) {
    Moves moves;
    space_->hints().prefetch(slab(), place, moves.completion());
    static_cast<void>(moves.end());
  }

  void read() {
    api_.copy(slab(), copy_.data(), stream_->native());
    api_.synchronize(stream_->native());
  }

  um::DriverCounters& counters_;
  um::CudaApi& api_;
  um::Ledger ledger_;
  std::unique_ptr<um::ManagedSpace> space_;
  um::Block copy_;
  std::unique_ptr<um::CudaStream> stream_;  // one that waits for room that hints give
};

}  // namespace

json to_json(const DriverTotals& totals) {
  return {{"in_by_user", totals.in_by_user.count()},
          {"in_by_fault", totals.in_by_fault.count()},
          {"in_by_driver", totals.in_by_driver.count()},
          {"out_by_user", totals.out_by_user.count()},
          {"out_by_fault", totals.out_by_fault.count()},
          {"out_by_eviction", totals.out_by_eviction.count()},
          {"by_other_cause", totals.by_other_cause.count()},
          {"device_faults", totals.device_faults},
          {"host_faults", totals.host_faults},
          {"thrashes", totals.thrashes},
          {"remote_maps", totals.remote_maps},
          {"dropped", totals.dropped}};
}

json count_faults(um::CudaDevice& device, um::CudaApi& api, Bytes size) {
  Swap swap{device, api, size};
  json budgeted = swap.budgeted();
  return {
      {"size_bytes", size.count()}, {"budgeted", std::move(budgeted)}, {"touched", swap.touched()}};
}

}  // namespace spillway::gpu
