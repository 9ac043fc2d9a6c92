#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/um/cuda/recording_api.h"

namespace spillway::testing {

/// A driver that can keep kernels from completing.
class WatchedGpu : public um::RecordingApi {
 public:
  [[nodiscard]] std::string name_of(cudaStream_t stream) {
    const std::lock_guard lock{mutex_};
    return streams_.of(stream).name;
  }
  /// Fires one event of any stream; with `keeps_last`, not the last event of the kernels' stream.
  /// Returns false if there is none.
  bool fire_one(bool keeps_last) {
    const std::lock_guard lock{mutex_};
    for (auto* const stream : streams_.busy()) {
      if (keeps_last && stream->name == "compute" && stream->pending.size() == 1) continue;
      fire_next(*stream, Clock::now() - begin_);
      return true;
    }
    return false;
  }
};

/// GPUs that do not complete their kernels while `is_kept(rank)` returns true. They complete when
/// this object is destroyed, or after a while without any other progress.
class WaitingGpus {
 public:
  WaitingGpus(std::vector<WatchedGpu*> gpus, std::function<bool(std::size_t rank)> is_kept)
      : gpus_{std::move(gpus)}, is_kept_{std::move(is_kept)} {
    thread_ = std::thread{[this] { work(); }};
  }
  WaitingGpus(const WaitingGpus&) = delete;
  WaitingGpus& operator=(const WaitingGpus&) = delete;
  ~WaitingGpus() {
    ends_ = true;
    thread_.join();
    for (WatchedGpu* const gpu : gpus_) gpu->let_go();
  }

  /// Returns true if kernels had to be released because nothing else made progress.
  [[nodiscard]] bool had_to_let_go() const { return had_to_let_go_; }

 private:
  void work() {
    constexpr std::chrono::seconds kPatience{30};
    auto last = std::chrono::steady_clock::now();
    while (!ends_) {
      bool any = false;
      for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
        const bool keeps = !had_to_let_go_ && is_kept_(rank);
        while (gpus_[rank]->fire_one(keeps)) any = true;
      }
      const auto now = std::chrono::steady_clock::now();
      if (any) last = now;
      if (now - last > kPatience) had_to_let_go_ = true;
      if (!any) std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
  }

  std::vector<WatchedGpu*> gpus_;
  std::function<bool(std::size_t)> is_kept_;
  std::atomic<bool> ends_ = false;
  std::atomic<bool> had_to_let_go_ = false;
  std::thread thread_;
};

}  // namespace spillway::testing
