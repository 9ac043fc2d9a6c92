// Uses a Thrust vector on TBB of four times the near memory.
#include <thrust/device_vector.h>
#include <thrust/mr/allocator.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/system/tbb/memory.h>
#include <thrust/transform.h>
#include <um/dropin/spillway_um.h>
#include <um/dropin/thrust_memory_resource.h>

#include <cstdint>
#include <cstdio>

namespace {

using Resource = spillway::um::ThrustMemoryResource<thrust::tbb::pointer<void>>;
using Allocator = thrust::mr::allocator<std::uint64_t, Resource>;

struct Twice {
  std::uint64_t operator()(std::uint64_t x) const { return 2 * x; }
};

}  // namespace

int main() {
  constexpr std::size_t kNear = 8U << 20U;
  constexpr std::uint64_t kCount = 4 * kNear / sizeof(std::uint64_t);
  spillway_um_options options;
  spillway_um_options_init(&options);
  options.near_bytes = kNear;
  options.capacity_bytes = 4 * kNear;
  spillway_um_space space;
  if (spillway_um_create(&options, &space) != SPILLWAY_UM_OK) {
    std::fprintf(stderr, "%s\n", spillway_um_last_error());
    return 1;
  }
  Resource resource{space};
  spillway_um_counters counters{};
  counters.version = SPILLWAY_UM_COUNTERS_VERSION;
  std::uint64_t sum = 0;
  {
    thrust::device_vector<std::uint64_t, Allocator> numbers(kCount, Allocator{&resource});
    thrust::sequence(numbers.begin(), numbers.end());
    thrust::transform(numbers.begin(), numbers.end(), numbers.begin(), Twice{});
    sum = thrust::reduce(numbers.begin(), numbers.end());
  }
  if (spillway_um_get_counters(space, &counters) != SPILLWAY_UM_OK) return 1;
  std::printf("sum %llu, %llu faults\n", static_cast<unsigned long long>(sum),
              static_cast<unsigned long long>(counters.faults));
  const bool moved = counters.bytes_offloaded >= 3 * kNear && counters.near_peak_bytes <= kNear;
  const bool is_freed = counters.frees == counters.allocations && counters.allocations > 0;
  return sum == kCount * (kCount - 1) && moved && is_freed &&
                 spillway_um_destroy(space) == SPILLWAY_UM_OK
             ? 0
             : 1;
}
