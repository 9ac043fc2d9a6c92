#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/ops/backend.h"

namespace spillway::cuda {

template <class T>
class StepNumber;

/// Values that differ from step to step, in a small block of device memory. A captured launch has
/// the same arguments at each repetition and reads these values from there.
///
/// Thread safety: none; use it from the thread that launches on `stream`.
class StepNumbers {
 public:
  /// Bytes per StepNumber.
  static constexpr std::size_t kSlotBytes = 64;

  /// All values are zero at first. The host writes them in memory of `host`, preferably pinned:
  /// from other memory, a copy may wait for the GPU. The arguments outlive this object. Throws:
  /// um::CudaError.
  explicit StepNumbers(cudaStream_t stream,
                       std::pmr::memory_resource& host = *std::pmr::new_delete_resource());

  /// Returns a value that is `make(context)` in each step; 0 before the first begin_step(). This
  /// object outlives it. Throws: um::Error if more than 16384 exist at a time.
  template <class Make>
  [[nodiscard]] auto add(Make make) -> StepNumber<std::invoke_result_t<Make, const StepContext&>>;

  /// Updates all values for the work enqueued from now on. Waits for the GPU only if it has not
  /// begun the step before the last one. Throws: um::CudaError.
  void begin_step(const StepContext& context);

 private:
  template <class T>
  friend class StepNumber;

  using Write = std::function<void(const StepContext&, std::byte*)>;
  struct Free {
    void operator()(std::byte* memory) const noexcept { (void)cudaFree(memory); }
  };

  // The values of a step on their way to the device.
  class Sent {
   public:
    explicit Sent(std::pmr::memory_resource& memory);
    Sent(const Sent&) = delete;
    Sent& operator=(const Sent&) = delete;
    ~Sent();
    // Returns the values when no earlier copy() reads them.
    [[nodiscard]] std::byte* wait() const;
    void copy(std::byte* to, std::size_t bytes, cudaStream_t stream) const;

   private:
    std::pmr::memory_resource& memory_;
    void* values_;
    cudaEvent_t copied_ = nullptr;
  };

  [[nodiscard]] std::size_t take_slot(Write write);
  void give_back(std::size_t slot) noexcept { writes_[slot] = nullptr; }

  cudaStream_t stream_;
  std::unique_ptr<std::byte, Free> device_;
  std::vector<Write> writes_;                // by slot ever taken; empty for free slots
  std::array<std::optional<Sent>, 2> sent_;  // used in turn
  std::uint64_t steps_ = 0;
};

/// One of the values. Owns its slot; the destructor gives it back.
template <class T>
class StepNumber {
 public:
  StepNumber(const StepNumber&) = delete;
  StepNumber& operator=(const StepNumber&) = delete;
  StepNumber(StepNumber&& other) noexcept
      : numbers_{std::exchange(other.numbers_, nullptr)}, slot_{other.slot_} {}
  StepNumber& operator=(StepNumber&&) = delete;
  ~StepNumber() {
    if (numbers_ != nullptr) numbers_->give_back(slot_);
  }

  /// Returns the device address of the value.
  [[nodiscard]] const T* get() const {
    return reinterpret_cast<const T*>(numbers_->device_.get() + slot_ * StepNumbers::kSlotBytes);
  }

 private:
  friend class StepNumbers;
  StepNumber(StepNumbers& numbers, std::size_t slot) : numbers_{&numbers}, slot_{slot} {}

  StepNumbers* numbers_;
  std::size_t slot_;
};

template <class Make>
auto StepNumbers::add(Make make) -> StepNumber<std::invoke_result_t<Make, const StepContext&>> {
  using T = std::invoke_result_t<Make, const StepContext&>;
  static_assert(sizeof(T) <= kSlotBytes && std::is_trivially_copyable_v<T>);
  return {*this, take_slot([make = std::move(make)](const StepContext& context, std::byte* to) {
            const T value = make(context);
            std::memcpy(to, &value, sizeof value);
          })};
}

}  // namespace spillway::cuda
