#pragma once

#include <atomic>
#include <cstdint>
#include <random>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/sleeping_threads.h"
#include "tests/um/cuda/recording_api.h"

namespace spillway::testing {

/// A driver that tells whether its kernels are through.
class WatchedGpu : public um::RecordingApi {
 public:
  /// True when something that was asked of the kernels' stream has still to come.
  [[nodiscard]] bool is_computing() {
    const std::lock_guard lock{mutex_};
    return !streams_.named("compute").pending.empty();
  }
  [[nodiscard]] std::string name_of(cudaStream_t stream) {
    const std::lock_guard lock{mutex_};
    return streams_.of(stream).name;
  }
};

/// Several GPUs that do their work late, as um::LateGpu does for one: an event of one of them fires
/// when all other threads sleep, and have for a few looks. Those that ask again and again whether
/// something has ended sleep in between.
///
/// When it ends, everything fires.
class LateGpus {
 public:
  explicit LateGpus(std::vector<um::RecordedGpu*> gpus) : gpus_{std::move(gpus)} {
    for (um::RecordedGpu* const gpu : gpus_) gpu->hold();
    thread_ = std::thread{[this] { work(); }};
  }
  LateGpus(const LateGpus&) = delete;
  LateGpus& operator=(const LateGpus&) = delete;
  ~LateGpus() {
    ends_ = true;
    thread_.join();
    for (um::RecordedGpu* const gpu : gpus_) gpu->let_go();
  }

 private:
  static constexpr int kLooks = 3;

  void work() {
    int looks = 0;
    while (!ends_) {
      um::RecordedGpu& gpu = *gpus_[draw_() % gpus_.size()];
      looks = gpu.is_busy() && test::sleeping_threads() ? looks + 1 : 0;
      if (looks < kLooks || !gpu.is_busy()) continue;
      gpu.finish_one(static_cast<std::uint32_t>(draw_()));
      looks = 0;
    }
  }

  std::vector<um::RecordedGpu*> gpus_;
  std::mt19937 draw_{1};
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace spillway::testing
