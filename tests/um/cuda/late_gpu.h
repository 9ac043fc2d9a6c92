#pragma once

#include <atomic>
#include <cstdint>
#include <random>
#include <thread>

#include "tests/sleeping_threads.h"
#include "tests/um/cuda/recorded_gpu.h"

namespace spillway::um {

/// A GPU that works as late as possible: an event of the recorded driver fires only when every
/// other thread of the process sleeps, so that nothing can proceed without it. A seeded draw
/// chooses the stream. Code that fails to wait for an event is therefore always too early.
///
/// Its destructor fires all events.
class LateGpu {
 public:
  LateGpu(RecordedGpu& gpu, std::uint32_t seed) : gpu_{gpu}, draw_{seed} {
    gpu_.hold();
    thread_ = std::thread{[this] { work(); }};
  }
  LateGpu(const LateGpu&) = delete;
  LateGpu& operator=(const LateGpu&) = delete;
  ~LateGpu() {
    ends_ = true;
    thread_.join();
    gpu_.let_go();
  }

 private:
  void work() {
    while (!ends_) {
      if (gpu_.is_busy() && test::all_others_sleep()) {
        gpu_.finish_one(static_cast<std::uint32_t>(draw_()));
      } else {
        std::this_thread::yield();
      }
    }
  }

  RecordedGpu& gpu_;
  std::mt19937 draw_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace spillway::um
