#include "tools/gpu/link_table.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "tools/gpu/managed_block.h"
#include "tools/gpu/noise.h"
#include "tools/gpu/spread.h"
#include "um/memory_tier.h"

namespace spillway::gpu {
namespace {

using nlohmann::json;
using um::Bytes;
using um::MemoryTier;
using um::Range;

using Call = std::function<void(cudaStream_t)>;

// A move each way between near and far memory of one kind.
struct Way {
  std::string memory;
  std::function<Call(Bytes)> in;
  std::function<Call(Bytes)> out;
};

class LinkTable {
 public:
  LinkTable(MoveTimer& timer, const LinkTableOptions& options) : timer_{timer}, options_{options} {}

  // Moves go in and out in turn, so that each finds its memory where the other left it.
  void measure(const Way& way) {
    for (const Bytes size : options_.sizes) {
      for (const bool behind_work : {false, true}) {
        std::vector<MoveTime> in;
        std::vector<MoveTime> out;
        timer_.run(way.in(size));  // warms up
        timer_.run(way.out(size));
        for (int i = 0; i < options_.repeats; ++i) {
          in.push_back(timer_.time(way.in(size), behind_work));
          out.push_back(timer_.time(way.out(size), behind_work));
        }
        lines_.push_back(line(way.memory, "in", size, behind_work, in));
        lines_.push_back(line(way.memory, "out", size, behind_work, out));
      }
    }
  }

  [[nodiscard]] json take() { return std::move(lines_); }

 private:
  static json line(const std::string& memory, const char* way, Bytes size, bool behind_work,
                   const std::vector<MoveTime>& times) {
    std::vector<double> rates;
    std::vector<double> host;
    for (const MoveTime& time : times) {
      // Where the clock saw nothing there is no rate; a driver that only pretends gives such times.
      constexpr double kShortest = 1e-9;
      rates.push_back(static_cast<double>(size.count()) / std::max(time.stream_seconds, kShortest));
      host.push_back(time.host_seconds);
    }
    return {{"memory", memory},
            {"way", way},
            {"size_bytes", size.count()},
            {"stream", behind_work ? "behind work" : "idle"},
            {"bytes_per_second", to_json(spread_of(std::move(rates)))},
            {"host_seconds", to_json(spread_of(std::move(host)))}};
  }

  MoveTimer& timer_;
  const LinkTableOptions& options_;
  json lines_ = json::array();
};

Way copies(um::CudaApi& api, std::string name, Range near, Range far) {
  return {.memory = std::move(name),
          .in = [&api, near, far](Bytes size) -> Call {
            return [=, &api](cudaStream_t stream) {
              api.copy(far.first(size.count()), near.data(), stream);
            };
          },
          .out = [&api, near, far](Bytes size) -> Call {
            return [=, &api](cudaStream_t stream) {
              api.copy(near.first(size.count()), far.data(), stream);
            };
          }};
}

Way prefetches(um::CudaApi& api, Range slab) {
  const auto to = [&api, slab](MemoryTier place) {
    return [=, &api](Bytes size) -> Call {
      return
          [=, &api](cudaStream_t stream) { api.prefetch(slab.first(size.count()), place, stream); };
    };
  };
  return {.memory = "managed", .in = to(MemoryTier::kNear), .out = to(MemoryTier::kFar)};
}

}  // namespace

json measure_links(um::CudaApi& api, const LinkMemory& memory, MoveTimer& timer,
                   const LinkTableOptions& options) {
  const Bytes size = options.sizes.back();
  const um::Block near{memory.device, size};
  const um::Block pinned{memory.pinned, size};
  fill_with_noise(pinned.bytes());
  LinkTable table{timer, options};
  table.measure(copies(api, "pinned", near.bytes(), pinned.bytes()));
  {
    std::vector<std::byte> pageable(size.count());
    fill_with_noise(pageable);
    table.measure(copies(api, "pageable", near.bytes(), pageable));
  }
  if (memory.managed != nullptr) {
    const ManagedBlock slab{*memory.managed, size};
    timer.run([&](cudaStream_t stream) { api.prefetch(slab.range(), MemoryTier::kNear, stream); });
    timer.run([&](cudaStream_t stream) { api.copy(pinned.bytes(), slab.range().data(), stream); });
    timer.run([&](cudaStream_t stream) { api.prefetch(slab.range(), MemoryTier::kFar, stream); });
    table.measure(prefetches(api, slab.range()));
  }
  return table.take();
}

}  // namespace spillway::gpu
