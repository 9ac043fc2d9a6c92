#include "tools/gpu/streaming.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "tools/gpu/moves.h"
#include "tools/gpu/spread.h"
#include "um/completion.h"
#include "um/error.h"
#include "um/ledger.h"

namespace spillway::gpu {
namespace {

using namespace um::literals;
using nlohmann::json;
using um::Bytes;
using um::Completion;
using um::MemoryTier;
using Clock = Moves::Clock;

constexpr Bytes kPage = 2_MiB;

// Starts the move of the chunk at this offset of one half of the memory.
using Start = std::function<void(bool second, std::size_t offset, Completion)>;

// Two halves of memory that move independently. At the beginning the first is near, the second far.
struct Lanes {
  Start in;
  Start out;
};

class Streaming {
 public:
  Streaming(const Lanes& lanes, const StreamingOptions& options)
      : lanes_{lanes}, options_{options} {}

  [[nodiscard]] json measure() {
    std::vector<double> in;
    std::vector<double> out;
    std::vector<double> in_while_out;
    std::vector<double> out_while_in;
    static_cast<void>(swap());  // warms up
    for (int i = 0; i < options_.repeats; ++i) {
      in.push_back(alone(lanes_.in));
      out.push_back(alone(lanes_.out));
      const Rates rates = swap();
      in_while_out.push_back(rates.in);
      out_while_in.push_back(rates.out);
    }
    return {{"in", to_json(spread_of(in))},
            {"out", to_json(spread_of(out))},
            {"in_while_out", to_json(spread_of(in_while_out))},
            {"out_while_in", to_json(spread_of(out_while_in))}};
  }

 private:
  struct Rates {
    double in;
    double out;
  };

  void start(const Start& start, bool second, Moves& moves) const {
    for (std::size_t at = 0; at < options_.total.count(); at += options_.chunk.count()) {
      const Completion done = moves.completion();
      try {
        start(second, at, done);
      } catch (...) {
        done(std::current_exception());
      }
    }
  }
  [[nodiscard]] double rate(Clock::time_point begin, Clock::time_point end) const {
    constexpr double kShortest = 1e-9;  // of what the clock did not see
    const double seconds = std::chrono::duration<double>{end - begin}.count();
    return static_cast<double>(options_.total.count()) / std::max(seconds, kShortest);
  }

  // The half that is far comes in, or the same half goes out again.
  [[nodiscard]] double alone(const Start& way) const {
    Moves moves;
    const Clock::time_point begin = Clock::now();
    start(way, second_is_far_, moves);
    return rate(begin, moves.end());
  }

  // The half that is near goes out while the other one comes in.
  [[nodiscard]] Rates swap() {
    Moves in;
    Moves out;
    const Clock::time_point begin = Clock::now();
    start(lanes_.out, !second_is_far_, out);
    start(lanes_.in, second_is_far_, in);
    second_is_far_ = !second_is_far_;
    return {.in = rate(begin, in.end()), .out = rate(begin, out.end())};
  }

  const Lanes& lanes_;
  const StreamingOptions& options_;
  bool second_is_far_ = true;
};

json measure_managed(um::Device& device, const StreamingOptions& options) {
  const Bytes size = managed_need(options);
  um::Ledger ledger{size};
  const auto space = device.make_managed_space(
      {.size = size, .near = size, .page = kPage, .far = {}, .link = {}}, ledger);
  const auto move = [&](MemoryTier place, um::Range range, Completion done) {
    space->hints().prefetch(range, place, std::move(done));
  };
  const auto chunk = [&](bool second, std::size_t offset) {
    return space->slab().subspan(offset + (second ? options.total.count() : 0),
                                 options.chunk.count());
  };
  // Every page gets a place in both memories, and then its half's.
  Moves moves;
  move(MemoryTier::kNear, space->slab(), moves.completion());
  static_cast<void>(moves.end());
  move(MemoryTier::kFar, space->slab(), moves.completion());
  static_cast<void>(moves.end());
  move(MemoryTier::kNear, space->slab().first(options.total.count()), moves.completion());
  static_cast<void>(moves.end());
  const Start in = [&](bool second, std::size_t offset, Completion done) {
    move(MemoryTier::kNear, chunk(second, offset), std::move(done));
  };
  const Start out = [&](bool second, std::size_t offset, Completion done) {
    move(MemoryTier::kFar, chunk(second, offset), std::move(done));
  };
  return Streaming{{.in = in, .out = out}, options}.measure();
}

json measure_copies(um::Device& device, const StreamingOptions& options) {
  const Bytes size = 2 * options.total;
  const auto space = device.make_copy_space({.size = size, .near = size, .far = {}, .link = {}});
  const auto begin_of = [&](bool second, std::size_t offset) {
    return offset + (second ? options.total.count() : 0);
  };
  const Start in = [&](bool second, std::size_t offset, Completion done) {
    const std::size_t begin = begin_of(second, offset);
    space->copies().prefetch(Bytes{begin}, space->near().subspan(begin, options.chunk.count()),
                             std::move(done));
  };
  const Start out = [&](bool second, std::size_t offset, Completion done) {
    const std::size_t begin = begin_of(second, offset);
    space->copies().offload(space->near().subspan(begin, options.chunk.count()), Bytes{begin},
                            std::move(done));
  };
  return Streaming{{.in = in, .out = out}, options}.measure();
}

json unless_refused(json (*measure)(um::Device&, const StreamingOptions&), um::Device& device,
                    const StreamingOptions& options) {
  try {
    return measure(device, options);
  } catch (const um::Error& error) {
    return {{"why_not", error.what()}};
  }
}

}  // namespace

Bytes managed_need(const StreamingOptions& options) { return 2 * options.total; }

json measure_streaming(um::Device& device, const StreamingOptions& options) {
  um::expects(options.total.count() % options.chunk.count() == 0, "whole chunks each way");
  return {{"total_bytes", options.total.count()},
          {"chunk_bytes", options.chunk.count()},
          {"managed", unless_refused(measure_managed, device, options)},
          {"copy", unless_refused(measure_copies, device, options)}};
}

}  // namespace spillway::gpu
