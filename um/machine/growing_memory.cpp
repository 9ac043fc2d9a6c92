#include "um/machine/growing_memory.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "um/error.h"
#include "um/machine/available_memory.h"
#include "um/machine/mapping.h"

namespace spillway::um {
namespace {

constexpr Bytes kMostLost = 4_GiB;
constexpr Bytes kSmallestStep = 16_MiB;
constexpr Bytes kLargestStep = 256_MiB;
constexpr int kPauses = 20;
constexpr std::uint64_t kMostGrowth = 256;  // times what a machine has at first
constexpr auto kPause = std::chrono::milliseconds{10};

// Mappings that live as long as this.
class Touched {
 public:
  Touched() = default;
  Touched(const Touched&) = delete;
  Touched& operator=(const Touched&) = delete;
  ~Touched() {
    for (const Range memory : taken_) unmap_memory(memory);
  }
  [[nodiscard]] bool take(Bytes size) {
    try {
      taken_.reserve(taken_.size() + 1);
      taken_.push_back(map_memory(size));
      touch_memory(taken_.back());
    } catch (const OutOfMemory&) {
      return false;
    }
    return true;
  }

 private:
  std::vector<Range> taken_;
};

}  // namespace

Bytes available_when_touched(Bytes wanted, const MemoryToTouch& memory) {
  const Bytes at_first = memory.available();
  if (wanted.count() / kMostGrowth > at_first.count()) return at_first;
  const Bytes most_lost = std::min(kMostLost, Bytes{at_first.count() / 2});
  const Bytes step = std::clamp(Bytes{most_lost.count() / 4}, kSmallestStep, kLargestStep);
  Bytes taken;
  Bytes now = at_first;
  int pauses = 0;  // since the last step
  while (now + taken < wanted) {
    if (saturating_difference(at_first, now) + step <= most_lost) {
      if (!memory.take(step)) break;
      taken += step;
      pauses = 0;
    } else {
      if (++pauses > kPauses) break;
      memory.pause();
    }
    now = memory.available();
  }
  return now + taken;
}

Bytes available_when_touched(Bytes wanted) {
  Touched touched;
  return available_when_touched(wanted, {.available = [] { return available_memory(); },
                                         .take = [&](Bytes size) { return touched.take(size); },
                                         .pause = [] { std::this_thread::sleep_for(kPause); }});
}

}  // namespace spillway::um
