#include "src/cuda/layout/step_numbers.h"

#include <algorithm>
#include <string>

#include "um/cuda/driver/check.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

constexpr std::size_t kSlots = 16384;  // 1 MiB

}  // namespace

StepNumbers::StepNumbers(cudaStream_t stream) : stream_{stream} {
  void* memory = nullptr;
  um::check(cudaMalloc(&memory, kSlots * kSlotBytes));
  device_.reset(static_cast<std::byte*>(memory));
  um::check(cudaMemsetAsync(memory, 0, kSlots * kSlotBytes, stream_));
}

std::size_t StepNumbers::take_slot(Write write) {
  const auto free = std::ranges::find_if(writes_, [](const Write& each) { return !each; });
  const auto slot = static_cast<std::size_t>(free - writes_.begin());
  if (slot == kSlots) {
    throw um::Error{"more than " + std::to_string(kSlots) +
                    " kernels that depend on the step; use fewer layers"};
  }
  if (free == writes_.end()) {
    writes_.emplace_back();
    values_.resize(writes_.size() * kSlotBytes);
  }
  writes_[slot] = std::move(write);
  return slot;
}

void StepNumbers::begin_step(const StepContext& context) {
  for (std::size_t slot = 0; slot < writes_.size(); ++slot) {
    if (writes_[slot]) writes_[slot](context, values_.data() + slot * kSlotBytes);
  }
  if (values_.empty()) return;
  // From pageable memory, which may be overwritten as soon as the call returns.
  um::check(cudaMemcpyAsync(device_.get(), values_.data(), values_.size(), cudaMemcpyHostToDevice,
                            stream_));
}

}  // namespace spillway::cuda
