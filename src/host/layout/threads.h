#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace spillway::host {

/// CPUs that this process may run on.
[[nodiscard]] std::size_t usable_cpus();

/// Starts the OpenMP team of the calling thread, which must be the one that will run kernels (each
/// such thread has a team of its own), and binds its threads to the CPUs of the process, one each,
/// when there are exactly as many CPUs as threads. Each thread of the team then calls `prepare`.
/// Throws: um::Error when the system starts no more threads, or OpenMP gives fewer (oneDNN would
/// wait for the missing ones for ever); what `prepare` throws.
void start_team(
    std::size_t threads, const std::function<void()>& prepare = [] {});

/// While it lives, OpenMP regions and oneDNN primitives made or run by this thread count on
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

/// Room for each thread of a parallel region, taken before the region begins: no exception may
/// leave the region, and so nothing may be allocated in it.
class ThreadFloats {
 public:
  /// `count` floats, all zero, for each thread that OpenMP may use now. Throws: std::bad_alloc.
  explicit ThreadFloats(std::size_t count);
  /// The calling thread's, in the region.
  [[nodiscard]] std::span<float> mine();

 private:
  std::size_t count_;
  std::size_t stride_;  // threads share no cache line
  std::vector<float> all_;
};

}  // namespace spillway::host
