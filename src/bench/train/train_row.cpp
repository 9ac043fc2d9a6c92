#include "src/bench/train/train_row.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "prefetch/planners/catalogue.h"
#include "src/bench/bench_file.h"
#include "um/error.h"

namespace spillway {
namespace {

using nlohmann::json;
using prefetch::JsonView;

bool can_win(const TrainRow& row) {
  return row.measurement.has_value() && !row.key.strategy.is_resident();
}

// True for the resident step that the ratio of `row` may be over.
bool is_measure_of(const TrainRow& resident, const TrainRow& row) {
  const TrainRowKey& key = resident.key;
  return key.strategy.is_resident() && resident.measurement && key.net == row.key.net &&
         key.image_size == row.key.image_size && key.batch == row.key.batch;
}

// The ratio, which leaves out how fast the machine was at that time.
double length_of(const TrainRow& row) {
  return row.ratio().value_or(row.measurement->step.median.count());
}

// Not told apart by how much they scatter.
bool is_as_fast(const TrainRow& a, const TrainRow& b) {
  return std::abs(length_of(a) - length_of(b)) <= a.measurement->step.deviation * length_of(a) +
                                                      b.measurement->step.deviation * length_of(b);
}

// Of what has not settled: as short as its shortest run.
double least_length_of(const TrainRow& row) {
  const TimingSummary& step = row.measurement->step;
  return length_of(row) * (step.min / step.median);
}

json json_or_null(const std::optional<double>& value) { return value ? json(*value) : json(); }

json json_or_null(const std::optional<Seconds>& value) {
  return value ? json(value->count()) : json();
}

constexpr std::array kSeriesNames{"batch", "budget", "planner"};
static_assert(kSeriesNames.size() == static_cast<std::size_t>(TrainSeries::kPlanner) + 1);

std::optional<TrainSeries> find_series(const std::string& name) {
  return find_named<TrainSeries>(kSeriesNames, name);
}

std::optional<MemoryMode> find_memory(const std::string& name) {
  for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy, MemoryMode::kResident}) {
    if (to_string(mode) == name) return mode;
  }
  return std::nullopt;
}

// Null where this program has none of that name.
const prefetch::Planner* find_planner(const std::string& name) {
  const auto found = std::ranges::find(prefetch::planners(), name,
                                       [](const auto& planner) { return planner->name(); });
  return found == prefetch::planners().end() ? nullptr : found->get();
}

// A planner or memory that this program does not know, as another version may write, becomes a part
// of the name, so that it stays apart from others.
TrainStrategy read_strategy(const JsonView& row) {
  TrainStrategy strategy{.name = row.at("strategy").string()};
  const std::string memory = row.at("memory").string();
  if (const auto planner = find_value(row, "planner")) {
    strategy.planner = find_planner(planner->string());
    if (strategy.planner == nullptr && strategy.name == "copy") strategy.name = planner->string();
  }
  if (const auto known = find_memory(memory)) {
    strategy.memory = *known;
  } else {
    strategy.name += " (" + memory + ")";
  }
  return strategy;
}

bool read_is_measured(const JsonView& word) {
  const std::string text = word.string();
  if (text != "measured" && text != "simulated") throw unknown_word(word);
  return text == "measured";
}

TrainRowKey read_row_key(const JsonView& row) {
  return {.series = read_word(row.at("series"), find_series),
          .net = row.at("net").string(),
          .image_size = row.at("image_size").integer(),
          .batch = row.at("batch").integer(),
          .strategy = read_strategy(row),
          .budget = row.at("budget").string(),
          .budget_bytes = um::Bytes{row.at("budget_bytes").integer()},
          .resident_bytes = um::Bytes{count_or_zero(row, "resident_bytes")}};
}

void add(const TrainMeasurement& measurement, json& row) {
  row["seconds"] = to_json(measurement.step);
  row["near_peak_bytes"] = measurement.near_peak.count();
  row["bytes_in"] = measurement.bytes_in.count();
  row["bytes_out"] = measurement.bytes_out.count();
  row["faults"] = measurement.faults;
  row["stalled_seconds"] = measurement.stalled.count();
}

}  // namespace

std::string_view to_string(TrainSeries series) {
  return kSeriesNames.at(static_cast<std::size_t>(series));
}

bool TrainRowKey::competes_with(const TrainRowKey& other) const {
  return series == other.series && net == other.net && image_size == other.image_size &&
         batch == other.batch && budget == other.budget;
}

std::optional<double> TrainRow::images_per_second() const {
  if (!measurement || measurement->step.median <= Seconds{0}) return std::nullopt;
  return static_cast<double>(key.batch) / measurement->step.median.count();
}

std::optional<double> TrainRow::ratio() const {
  if (!measurement || !resident || resident->time <= Seconds{0}) return std::nullopt;
  return measurement->step.median / resident->time;
}

std::optional<double> TrainRow::predicted_over_measured() const {
  if (!measurement || !predicted || measurement->step.median <= Seconds{0}) return std::nullopt;
  return *predicted / measurement->step.median;
}

json to_json(const TrainRow& row) {
  const TrainRowKey& key = row.key;
  json result{
      {"series", to_string(key.series)},
      {"net", key.net},
      {"image_size", key.image_size},
      {"batch", key.batch},
      {"strategy", key.strategy.name},
      {"memory", to_string(key.strategy.memory)},
      {"planner",
       key.strategy.planner != nullptr ? json(std::string{key.strategy.planner->name()}) : json()},
      {"budget", key.budget},
      {"budget_bytes", key.budget_bytes.count()},
      {"resident_bytes", key.resident_bytes.count()}};
  if (!row.measurement) {
    result["failed"] = row.failure;
    return result;
  }
  add(*row.measurement, result);
  result["images_per_second"] = json_or_null(row.images_per_second());
  result["ratio"] = json_or_null(row.ratio());
  result["resident_seconds"] = row.resident ? json(row.resident->time.count()) : json();
  result["resident_is"] = row.resident && row.resident->is_measured ? "measured" : "simulated";
  result["predicted_seconds"] = json_or_null(row.predicted);
  return result;
}

json to_json(std::span<const TrainRow> rows) {
  json all = json::array();
  for (const TrainRow& row : rows) all.push_back(to_json(row));
  return all;
}

TrainRow read_train_row(const JsonView& row) {
  TrainRow read{.key = read_row_key(row)};
  if (const auto failed = find_value(row, "failed")) {
    read.failure = failed->string();
    if (row.has("seconds")) throw row.at("seconds").error("stands beside 'failed'");
    return read;
  }
  if (row.at("resident_bytes").integer() == 0) throw row.at("resident_bytes").error("is zero");
  read.measurement = {.step = read_timing(row.at("seconds")),
                      .near_peak = um::Bytes{count_or_zero(row, "near_peak_bytes")},
                      .bytes_in = um::Bytes{count_or_zero(row, "bytes_in")},
                      .bytes_out = um::Bytes{count_or_zero(row, "bytes_out")},
                      .faults = count_or_zero(row, "faults"),
                      .stalled = Seconds{number_or_zero(row, "stalled_seconds")}};
  const auto resident_is = find_value(row, "resident_is");
  const bool is_measured = resident_is && read_is_measured(*resident_is);
  if (const auto resident = find_value(row, "resident_seconds")) {
    read.resident = {.time = Seconds{resident->number()}, .is_measured = is_measured};
  }
  if (const auto predicted = find_value(row, "predicted_seconds")) {
    read.predicted = Seconds{predicted->positive_number()};
  }
  return read;
}

std::vector<bool> find_settled(std::span<const TrainRow> rows) {
  std::vector<bool> settled;
  settled.reserve(rows.size());
  for (const TrainRow& row : rows) {
    settled.push_back(row.measurement && row.measurement->step.settled &&
                      std::ranges::none_of(rows, [&](const TrainRow& other) {
                        return is_measure_of(other, row) && !other.measurement->step.settled;
                      }));
  }
  return settled;
}

std::vector<bool> find_winners(std::span<const TrainRow> rows, const std::vector<bool>& settled) {
  um::expects(settled.size() == rows.size(), "whether each row has settled");
  std::vector<bool> winners;
  winners.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TrainRow& row = rows[i];
    if (!can_win(row) || !settled[i]) {
      winners.push_back(false);
      continue;
    }
    const TrainRow* fastest = &row;
    std::size_t rivals = 0;
    double least = std::numeric_limits<double>::infinity();  // of what has not settled
    for (std::size_t j = 0; j < rows.size(); ++j) {
      const TrainRow& other = rows[j];
      if (j == i || !can_win(other) || !row.key.competes_with(other.key)) continue;
      ++rivals;
      if (!settled[j]) {
        least = std::min(least, least_length_of(other));
      } else if (length_of(other) < length_of(*fastest)) {
        fastest = &other;
      }
    }
    winners.push_back(rivals > 0 && least > length_of(*fastest) && is_as_fast(row, *fastest));
  }
  return winners;
}

}  // namespace spillway
