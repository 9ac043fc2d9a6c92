#include "src/cuda/layout/step_numbers.h"

#include <algorithm>
#include <string>

#include "um/cuda/driver/check.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

constexpr std::size_t kSlots = 16384;  // 1 MiB

}  // namespace

StepNumbers::Sent::Sent(std::pmr::memory_resource& memory)
    : memory_{memory}, values_{memory.allocate(kSlots * kSlotBytes, kSlotBytes)} {
  try {
    um::check(cudaEventCreateWithFlags(&copied_, cudaEventBlockingSync | cudaEventDisableTiming));
  } catch (...) {
    memory_.deallocate(values_, kSlots * kSlotBytes, kSlotBytes);
    throw;
  }
}

StepNumbers::Sent::~Sent() {
  (void)cudaEventSynchronize(copied_);  // the copy reads the values
  (void)cudaEventDestroy(copied_);
  memory_.deallocate(values_, kSlots * kSlotBytes, kSlotBytes);
}

std::byte* StepNumbers::Sent::wait() const {
  um::check(cudaEventSynchronize(copied_));
  return static_cast<std::byte*>(values_);
}

void StepNumbers::Sent::copy(std::byte* to, std::size_t bytes, cudaStream_t stream) const {
  um::check(cudaMemcpyAsync(to, values_, bytes, cudaMemcpyHostToDevice, stream));
  const cudaError_t status = cudaEventRecord(copied_, stream);
  if (status != cudaSuccess) (void)cudaStreamSynchronize(stream);  // nothing else tells the end
  um::check(status);
}

StepNumbers::StepNumbers(cudaStream_t stream, std::pmr::memory_resource& host) : stream_{stream} {
  void* memory = nullptr;
  um::check(cudaMalloc(&memory, kSlots * kSlotBytes));
  device_.reset(static_cast<std::byte*>(memory));
  um::check(cudaMemsetAsync(memory, 0, kSlots * kSlotBytes, stream_));
  for (auto& each : sent_) each.emplace(host);
}

std::size_t StepNumbers::take_slot(Write write) {
  const auto free = std::ranges::find_if(writes_, [](const Write& each) { return !each; });
  const auto slot = static_cast<std::size_t>(free - writes_.begin());
  if (slot == kSlots) {
    throw um::Error{"more than " + std::to_string(kSlots) +
                    " kernels that depend on the step; use fewer layers"};
  }
  if (free == writes_.end()) {
    writes_.push_back(std::move(write));
    return slot;
  }
  um::check(cudaMemsetAsync(device_.get() + slot * kSlotBytes, 0, kSlotBytes, stream_));
  writes_[slot] = std::move(write);
  return slot;
}

void StepNumbers::begin_step(const StepContext& context) {
  if (writes_.empty()) return;
  const Sent& sent = *sent_[steps_++ % sent_.size()];
  std::byte* const values = sent.wait();
  std::fill_n(values, writes_.size() * kSlotBytes, std::byte{});
  for (std::size_t slot = 0; slot < writes_.size(); ++slot) {
    if (writes_[slot]) writes_[slot](context, values + slot * kSlotBytes);
  }
  sent.copy(device_.get(), writes_.size() * kSlotBytes, stream_);
}

}  // namespace spillway::cuda
