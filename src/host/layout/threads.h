#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace spillway::host {

/// Returns the number of CPUs that this process may run on.
[[nodiscard]] std::size_t usable_cpus();

/// Starts the calling thread's OpenMP team; call it on the thread that will run kernels, since each
/// thread has its own team. Binds one thread to each CPU of the process if there are exactly as
/// many CPUs as threads. Each thread of the team then calls `prepare`. Throws: um::Error if the
/// system or OpenMP grants fewer threads (oneDNN would wait for them forever); whatever `prepare`
/// throws.
void start_team(
    std::size_t threads, const std::function<void()>& prepare = [] {});

/// During its lifetime, OpenMP regions and oneDNN primitives created or run by this thread use
/// `threads` threads.
class TeamSize {
 public:
  explicit TeamSize(std::size_t threads);
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;
  TeamSize(TeamSize&&) = delete;
  TeamSize& operator=(TeamSize&&) = delete;
  ~TeamSize();

 private:
  int threads_before_;
  int dynamic_before_;
};

/// A buffer for each thread of a parallel region. It is allocated before the region, because no
/// exception may leave the region.
class ThreadFloats {
 public:
  /// Allocates `count` zeroed floats for each thread that OpenMP may use. Throws: std::bad_alloc.
  explicit ThreadFloats(std::size_t count);
  /// Returns the calling thread's buffer, in the region.
  [[nodiscard]] std::span<float> mine();

 private:
  std::size_t count_;
  std::size_t stride_;  // so large that threads share no cache line
  std::vector<float> all_;
};

}  // namespace spillway::host
