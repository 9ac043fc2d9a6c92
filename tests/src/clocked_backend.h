#pragma once

#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "src/host/host_backend.h"
#include "src/ops/backend.h"
#include "tests/src/on_host_backend.h"
#include "um/bytes.h"
#include "um/stream.h"

namespace spillway::test {

/// A clock that only kernels move.
using KernelClock = std::chrono::steady_clock::time_point;

/// The host's kernels on one thread, counted; each run moves a clock. It outlives its kernels.
class ClockedBackend final : public OnHostBackend {
 public:
  /// How long run number `run` of an operation takes, counted from 0.
  using Duration = std::function<um::Nanoseconds(const Operation& operation,
                                                 std::string_view algorithm, std::size_t run)>;

  explicit ClockedBackend(Duration duration = [](const Operation&, std::string_view,
                                                 std::size_t) { return um::Nanoseconds{1000}; })
      : duration_{std::move(duration)} {}

  [[nodiscard]] const host::HostBackend& host() const { return host_; }
  [[nodiscard]] KernelClock now() const { return now_; }
  void pass(um::Nanoseconds time) const { now_ += time; }
  /// Of all operations of a type together, by one algorithm.
  template <class Op>
  [[nodiscard]] std::size_t runs(std::string_view algorithm = "default") const {
    const auto found = runs_.find({Operation{Op{}}.index(), std::string{algorithm}});
    return found == runs_.end() ? 0 : found->second;
  }
  [[nodiscard]] std::size_t all_runs() const {
    std::size_t sum = 0;
    for (const auto& [which, runs] : runs_) sum += runs;
    return sum;
  }

  [[nodiscard]] std::unique_ptr<Kernel> prepare(const Operation& operation,
                                                std::string_view algorithm) const override {
    return std::make_unique<ClockedKernel>(*this, operation, std::string{algorithm},
                                           host_.prepare(operation, algorithm));
  }

 private:
  class ClockedKernel final : public Kernel {
   public:
    ClockedKernel(const ClockedBackend& backend, Operation operation, std::string algorithm,
                  std::unique_ptr<Kernel> kernel)
        : backend_{backend},
          operation_{std::move(operation)},
          algorithm_{std::move(algorithm)},
          kernel_{std::move(kernel)} {}
    void run(const KernelArguments& arguments) override {
      kernel_->run(arguments);
      backend_.now_ += backend_.duration_(operation_, algorithm_, run_++);
      ++backend_.runs_[{operation_.index(), algorithm_}];
    }

   private:
    const ClockedBackend& backend_;
    Operation operation_;
    std::string algorithm_;
    std::unique_ptr<Kernel> kernel_;
    std::size_t run_ = 0;
  };

  Duration duration_;
  mutable KernelClock now_{};
  mutable std::map<std::pair<std::size_t, std::string>, std::size_t> runs_;
};

/// Work at once, by the clock of a backend, which outlives it. Each notice takes some time, as on a
/// GPU, or none, as on a host.
class ClockedStream final : public um::Stream {
 public:
  explicit ClockedStream(const ClockedBackend& backend, um::Nanoseconds notice = um::Nanoseconds{0})
      : backend_{backend}, notice_{notice} {}

  void enqueue(std::function<void()> work) override {
    if (error_ != nullptr) return;
    try {
      work();
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  [[nodiscard]] std::shared_ptr<const um::Event> record() override {
    return std::make_shared<const Fired>();
  }
  void wait(std::shared_ptr<const um::Event> /*event*/) override {}
  void synchronize() override {
    if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
  }
  void notify(um::Notice then) override {
    backend_.pass(notice_);
    then(backend_.now());
  }
  [[nodiscard]] bool has_free_notices() const override { return notice_ == um::Nanoseconds{0}; }
  void read(std::span<const std::byte> near, std::span<std::byte> into) override {
    std::memcpy(into.data(), near.data(), near.size());
  }
  void write(std::span<const std::byte> from, std::span<std::byte> near) override {
    std::memcpy(near.data(), from.data(), from.size());
  }

 private:
  class Fired final : public um::Event {
    [[nodiscard]] bool has_fired() const override { return true; }
    void wait() const override {}
  };

  const ClockedBackend& backend_;
  um::Nanoseconds notice_;
  std::exception_ptr error_;
};

}  // namespace spillway::test
