#include "src/bench/link/launch_bench.h"

#include <chrono>
#include <memory>
#include <optional>

#include "src/bench/link/repeated_clear.h"
#include "src/execute/executor.h"

namespace spillway {
namespace {

void move_beside(RepeatedClear& launches, Transfer& transfer, const LaunchBenchOptions& options,
                 const std::stop_token& stop) {
  const auto begin = std::chrono::steady_clock::now();
  do {
    if (stop.stop_requested()) throw Interrupted{};
    transfer.prepare(Direction::kOut);
    launches.count(true);
    static_cast<void>(transfer.move(Direction::kOut));
    launches.count(false);
  } while (launches.counted() < options.max_launches &&
           std::chrono::steady_clock::now() - begin < options.max_time);
}

std::optional<LaunchRow> measure_beside(ExecutionContext& context, std::optional<Way> way,
                                        const LaunchBenchOptions& options,
                                        const std::stop_token& stop) {
  const std::unique_ptr<Transfer> transfer =
      way ? make_transfer(*context.device, *way, options.size, options.space) : nullptr;
  RepeatedClear launches{*context.compute, context.device->memory(), *context.backend};
  if (transfer == nullptr) {
    launches.count(true);
    launches.wait_for(options.max_launches, options.max_time);
  } else {
    move_beside(launches, *transfer, options, stop);
  }
  const RepeatedClear::Times times = launches.stop();
  if (times.call.size() == 0) return std::nullopt;
  return LaunchRow{.beside = way,
                   .size = way ? options.size : um::Bytes{},
                   .call = times.call.timing(),
                   .whole = times.whole.timing()};
}

}  // namespace

void bench_launches(ExecutionContext& context, const LaunchBenchOptions& options,
                    const std::function<void(const LaunchRow&)>& on_row,
                    const std::stop_token& stop) {
  if (const auto row = measure_beside(context, std::nullopt, options, stop)) on_row(*row);
  for (const Way way : options.ways) {
    if (way != Way::kPrefetch && way != Way::kPinnedCopy) continue;
    if (why_not(*context.device, way, Direction::kOut, options.size)) continue;
    if (const auto row = measure_beside(context, way, options, stop)) on_row(*row);
  }
}

}  // namespace spillway
