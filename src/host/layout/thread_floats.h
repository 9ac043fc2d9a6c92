#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace spillway::host {

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
