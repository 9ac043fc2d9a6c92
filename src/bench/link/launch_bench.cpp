#include "src/bench/link/launch_bench.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "src/bench/repetition.h"
#include "src/ops/backend.h"
#include "src/run/executor.h"
#include "um/memory.h"
#include "um/stream.h"

namespace spillway {
namespace {

/// Launches the smallest kernel there is again and again, on a stream, each time when the one
/// before has ended, and times those that begin and end while they count.
class RepeatedClear {
 public:
  /// Begins. Everything must outlive it. Throws: um::OutOfMemory.
  RepeatedClear(um::Stream& stream, um::Memory& memory, const Backend& backend);
  RepeatedClear(const RepeatedClear&) = delete;
  RepeatedClear& operator=(const RepeatedClear&) = delete;
  ~RepeatedClear();

  /// Whether launches count from now on. At first they do not.
  void count(bool counts);
  /// Waits until so many have counted, but no longer than that.
  void wait_for(std::size_t launches, Seconds max);
  [[nodiscard]] std::size_t counted() const;

  struct Times {
    Samples call;   ///< how long the launching call held its thread
    Samples whole;  ///< until the kernel had ended
  };
  /// Ends. Throws: um::Error when a launch failed.
  [[nodiscard]] Times stop();

 private:
  using Clock = std::chrono::steady_clock;

  void repeat();
  void ask_to_stop();
  void end_launch(Clock::time_point moment);

  um::Block block_;
  um::Stream& stream_;
  const Backend& backend_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool is_stopped_ = false;
  bool is_under_way_ = false;
  bool counts_ = false;
  bool has_counted_throughout_ = false;  // the launch under way
  Clock::time_point begin_;
  Seconds call_{0};
  Times times_;
};

constexpr um::Bytes kCleared{64};  // the least that can be

RepeatedClear::RepeatedClear(um::Stream& stream, um::Memory& memory, const Backend& backend)
    : block_{memory, kCleared}, stream_{stream}, backend_{backend} {
  stream_.enqueue([this] { repeat(); });
}

RepeatedClear::~RepeatedClear() {
  ask_to_stop();
  try {
    stream_.synchronize();
  } catch (...) {  // another exception is on its way, or stop() has thrown this one
  }
}

void RepeatedClear::repeat() {
  for (;;) {
    {
      std::unique_lock lock{mutex_};
      changed_.wait(lock, [this] { return !is_under_way_; });
      if (is_stopped_) return;
      is_under_way_ = true;
      has_counted_throughout_ = counts_;
    }
    const Clock::time_point begin = Clock::now();
    backend_.clear(block_.bytes());
    const Seconds call = Clock::now() - begin;
    {
      const std::lock_guard lock{mutex_};
      begin_ = begin;
      call_ = call;
    }
    stream_.notify([this](Clock::time_point moment) { end_launch(moment); });
  }
}

void RepeatedClear::end_launch(Clock::time_point moment) {
  const std::lock_guard lock{mutex_};
  is_under_way_ = false;
  if (has_counted_throughout_ && counts_) {
    times_.call.add(call_);
    times_.whole.add(std::max<Seconds>(call_, moment - begin_));
  }
  changed_.notify_all();
}

void RepeatedClear::count(bool counts) {
  const std::lock_guard lock{mutex_};
  counts_ = counts;
  if (!counts) has_counted_throughout_ = false;
}

void RepeatedClear::wait_for(std::size_t launches, Seconds max) {
  std::unique_lock lock{mutex_};
  changed_.wait_for(lock, max, [&] { return times_.call.size() >= launches; });
}

std::size_t RepeatedClear::counted() const {
  const std::lock_guard lock{mutex_};
  return times_.call.size();
}

void RepeatedClear::ask_to_stop() {
  const std::lock_guard lock{mutex_};
  is_stopped_ = true;
}

RepeatedClear::Times RepeatedClear::stop() {
  ask_to_stop();
  stream_.synchronize();
  return std::move(times_);
}

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

nlohmann::json to_json(const LaunchRow& row) {
  return {{"beside", row.beside ? nlohmann::json(to_string(*row.beside)) : nlohmann::json{}},
          {"bytes", row.size.count()},
          {"call_seconds", to_json(row.call)},
          {"seconds", to_json(row.whole)}};
}

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
