// Sorts more data than fits near, four times as much by default. Compares the result with plain
// memory, and checks by the counters that data moved. A static destructor frees the vector after
// main. Arguments: MiB of near memory, and the factor.
#include <um/dropin/memory_resource.h>
#include <um/dropin/spillway_um.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

template <class Vector>
double sorting_seconds(Vector& numbers) {
  std::mt19937_64 random{7};
  for (auto& each : numbers) each = random();
  const Clock::time_point start = Clock::now();
  std::sort(numbers.begin(), numbers.end());
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The resource is destroyed after its vector, and the library after both.
std::unique_ptr<spillway::um::MemoryResource> resource;
std::optional<std::pmr::vector<std::uint64_t>> sorted;

}  // namespace

int main(int argc, char** argv) {
  const std::size_t near = (argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 16) << 20U;
  const std::size_t times = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 4;
  spillway_um_options options;
  spillway_um_options_init(&options);
  options.near_bytes = near;
  options.capacity_bytes = times * near;
  spillway_um_space space;
  if (spillway_um_create(&options, &space) != SPILLWAY_UM_OK) {
    std::fprintf(stderr, "%s\n", spillway_um_last_error());
    return 1;
  }
  resource = std::make_unique<spillway::um::MemoryResource>(space);
  sorted.emplace(times * near / sizeof(std::uint64_t), resource.get());
  const double seconds = sorting_seconds(*sorted);
  spillway_um_counters counters{};
  counters.version = SPILLWAY_UM_COUNTERS_VERSION;
  if (spillway_um_get_counters(space, &counters) != SPILLWAY_UM_OK) return 1;

  std::vector<std::uint64_t> plain(sorted->size());
  const double plain_seconds = sorting_seconds(plain);
  const bool is_right = std::equal(plain.begin(), plain.end(), sorted->begin());
  std::printf(
      "%zu MiB sorted in %.3f s with %zu MiB near, %.3f s in plain memory; %llu faults, "
      "%llu MiB in, %llu MiB out; %s\n",
      times * near >> 20U, seconds, near >> 20U, plain_seconds,
      static_cast<unsigned long long>(counters.faults),
      static_cast<unsigned long long>(counters.bytes_prefetched >> 20U),
      static_cast<unsigned long long>(counters.bytes_offloaded >> 20U),
      is_right ? "right" : "WRONG");

  bool throws = false;
  try {
    std::pmr::vector<char> too_much(2 * times * near, resource.get());
  } catch (const std::bad_alloc&) {
    throws = true;
  }
  const spillway::um::MemoryResource same{space};
  return is_right && throws && same == *resource && !(same == *std::pmr::new_delete_resource()) &&
                 counters.bytes_offloaded >= (times - 1) * near && counters.near_peak_bytes <= near
             ? 0
             : 1;
}
