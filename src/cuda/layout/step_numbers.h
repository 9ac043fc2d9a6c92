#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/ops/backend.h"

namespace spillway::cuda {

template <class T>
class StepNumber;

/// What kernels need to know of the step they run in, in a small block of device memory: a launch
/// that is captured and repeated has the same arguments each time, and reads there what differs.
///
/// Thread safety: none; to be used by the thread that launches on `stream`.
class StepNumbers {
 public:
  /// Each StepNumber takes so many bytes.
  static constexpr std::size_t kSlotBytes = 64;

  /// All zero at first. `stream` outlives it. Throws: um::CudaError.
  explicit StepNumbers(cudaStream_t stream);

  /// A number that is `make(context)` in the step of that context; 0 before the first begin_step().
  /// `this` outlives it. Throws: um::Error beyond 16384 at a time.
  template <class Make>
  [[nodiscard]] auto add(Make make) -> StepNumber<std::invoke_result_t<Make, const StepContext&>>;

  /// Makes all numbers anew, for what is enqueued from now on. Throws: um::CudaError.
  void begin_step(const StepContext& context);

 private:
  template <class T>
  friend class StepNumber;

  using Write = std::function<void(const StepContext&, std::byte*)>;
  struct Free {
    void operator()(std::byte* memory) const noexcept { (void)cudaFree(memory); }
  };

  [[nodiscard]] std::size_t take_slot(Write write);
  void give_back(std::size_t slot) noexcept { writes_[slot] = nullptr; }

  cudaStream_t stream_;
  std::unique_ptr<std::byte, Free> device_;
  std::vector<Write> writes_;      // by slot; empty where the slot is free
  std::vector<std::byte> values_;  // of all slots that were ever taken
};

/// One of the numbers, as long as it is needed.
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

  /// Where kernels read it.
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
