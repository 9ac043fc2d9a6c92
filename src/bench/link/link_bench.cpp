#include "src/bench/link/link_bench.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "src/bench/bench_file.h"
#include "um/error.h"

namespace spillway {
namespace {

using namespace um::literals;

constexpr std::array kDirections{Direction::kIn, Direction::kOut, Direction::kBoth};

// The rows of one bench, one after the other.
class LinkMeasurement {
 public:
  LinkMeasurement(um::Device& device, const LinkBenchOptions& options, const LinkListener& listener,
                  std::stop_token stop)
      : device_{device}, options_{options}, listener_{listener}, stop_{std::move(stop)} {}

  void run() {
    const std::vector<um::Bytes> sizes = sizes_with_room();
    rows_ = sizes.size() * options_.ways.size() * kDirections.size();
    for (const Way way : options_.ways) {
      for (const um::Bytes size : sizes) measure_way(way, size);
    }
  }

 private:
  std::vector<um::Bytes> sizes_with_room() {
    const um::Bytes available = device_.available_memory();
    std::vector<um::Bytes> sizes;
    for (const um::Bytes size : options_.sizes) {
      if (2 * room_for_transfer(size) <= available) {
        sizes.push_back(size);
      } else {
        note(um::to_string(size) + " is left out: it takes " +
             um::to_string(room_for_transfer(size)) + ", more than half of the " +
             um::to_string(available) + " available");
      }
    }
    return sizes;
  }

  void measure_way(Way way, um::Bytes size) {
    std::unique_ptr<Transfer> transfer;
    for (const Direction direction : kDirections) {
      const std::string what =
          to_string(way) + " " + to_string(direction) + " of " + um::to_string(size);
      listener_.on_progress(static_cast<double>(reached_++) / static_cast<double>(rows_), what);
      if (const auto reason = why_not_here(way, direction, size)) {
        note(*reason);
        continue;
      }
      if (transfer == nullptr) {
        transfer = make_transfer(device_, way, size, options_.space);
        note_on(way, *transfer);
      }
      listener_.on_row(measure_row(*transfer, way, direction, size));
    }
  }

  void note_on(Way way, const Transfer& transfer) {
    if (way != Way::kPageableCopy) {
      note(to_string(way) + ": " + described(way, transfer));
    } else if (is_link_slowed()) {
      note("pageable_copy is memcpy, which --link-bandwidth and --link-latency do not slow");
    }
  }

  [[nodiscard]] bool is_link_slowed() const {
    const um::LinkOptions& link = options_.space.link;
    return link.bandwidth.has_value() || link.latency > um::Nanoseconds{0};
  }

  // The same for each size, though pages are not.
  static std::string described(Way way, const Transfer& transfer) {
    std::string text = transfer.description();
    if (way != Way::kFault && way != Way::kPrefetch) return text;
    return text.substr(0, text.find(',')) + ", pages as large as the move and at most 2 MiB";
  }

  LinkRow measure_row(Transfer& transfer, Way way, Direction direction, um::Bytes size) {
    Samples calls{options_.repetition.settling};
    const TimingSummary time = measure(
        [&](RepetitionPhase phase) {
          transfer.prepare(direction);
          const TransferTime taken = transfer.move(direction);
          if (phase == RepetitionPhase::kCounted) calls.add(taken.call);
          return taken.whole;
        },
        options_.repetition, stop_);
    return {.way = way, .direction = direction, .size = size, .time = time, .call = calls.timing()};
  }

  [[nodiscard]] std::optional<std::string> why_not_here(Way way, Direction direction,
                                                        um::Bytes size) const {
    if (auto reason = why_not(device_, way, direction, size)) {
      return to_string(way) + " is left out where it cannot be: " + *reason;
    }
    if (way == Way::kFile && options_.space.far.file.empty()) {
      return "file is left out: give --far file:PATH to say where";
    }
    return std::nullopt;
  }

  void note(const std::string& text) {
    if (notes_.insert(text).second) listener_.on_note(text);
  }

  um::Device& device_;
  const LinkBenchOptions& options_;
  const LinkListener& listener_;
  std::stop_token stop_;
  std::size_t rows_ = 0;
  std::size_t reached_ = 0;
  std::set<std::string> notes_;
};

}  // namespace

double LinkRow::bytes_per_second() const {
  const double ways = direction == Direction::kBoth ? 2 : 1;
  return ways * static_cast<double>(size.count()) / time.median.count();
}

nlohmann::json to_json(const LinkRow& row) {
  return {{"way", to_string(row.way)},
          {"direction", to_string(row.direction)},
          {"bytes", row.size.count()},
          {"seconds", to_json(row.time)},
          {"bytes_per_second", row.bytes_per_second()},
          {"call_seconds", to_json(row.call)}};
}

LinkRow read_link_row(const prefetch::JsonView& row) {
  if (row.at("bytes").integer() == 0) throw row.at("bytes").error("is zero");
  LinkRow read{.way = NameOf<Way>{row.at("way").string()},
               .direction = read_word(row.at("direction"), find_direction),
               .size = um::Bytes{row.at("bytes").integer()},
               .time = read_timing(row.at("seconds")),
               .call = {}};
  // Of a call too short for the clock, zero is what was measured.
  if (const auto call = find_value(row, "call_seconds")) {
    read.call.median = Seconds{call->at("median").number()};
  }
  return read;
}

std::vector<um::Bytes> link_sizes() {
  std::vector<um::Bytes> sizes;
  for (um::Bytes size = 4_KiB; size <= 1_GiB; size = 4 * size) sizes.push_back(size);
  return sizes;
}

void bench_link(um::Device& device, const LinkBenchOptions& options, const LinkListener& listener,
                const std::stop_token& stop) {
  LinkMeasurement{device, options, listener, stop}.run();
}

}  // namespace spillway
