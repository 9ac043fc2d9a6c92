#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace spillway::test {

/// A timing whose runs were all within `deviation` of the median.
inline nlohmann::json timing(double median, double deviation = 0.01, int runs = 5) {
  return {{"median", median},
          {"min", median * (1 - deviation)},
          {"max", median * (1 + deviation)},
          {"deviation", deviation},
          {"runs", static_cast<unsigned>(runs)},
          {"settled", true}};
}

/// What `bench train` writes of a strategy at a part of the 1000 bytes that are needed, in
/// `percent`; the resident step takes a second, and everything is predicted 5 % too short.
inline nlohmann::json training_row(const std::string& strategy, int percent, double seconds) {
  const bool is_mode = strategy == "resident" || strategy == "copy";
  return {{"series", "budget"},
          {"net", "lenet"},
          {"image_size", 28U},
          {"batch", 8U},
          {"strategy", strategy},
          {"memory", is_mode ? strategy : "managed"},
          {"planner", is_mode ? nlohmann::json{} : nlohmann::json(strategy)},
          {"budget", std::to_string(percent) + "%"},
          {"budget_bytes", 10U * static_cast<unsigned>(percent)},
          {"resident_bytes", 1000U},
          {"seconds", timing(seconds)},
          {"images_per_second", 8 / seconds},
          {"ratio", seconds},
          {"resident_seconds", 1.0},
          {"resident_is", "measured"},
          {"predicted_seconds", 0.95 * seconds},
          {"near_peak_bytes", 10U * static_cast<unsigned>(percent)},
          {"bytes_in", 0U},
          {"bytes_out", 0U},
          {"faults", 0U},
          {"stalled_seconds", 0.0}};
}

/// The same of one that could not be run.
inline nlohmann::json failed_row(const std::string& strategy, int percent) {
  nlohmann::json row = training_row(strategy, percent, 1);
  for (const char* key : {"seconds", "images_per_second", "ratio", "predicted_seconds"}) {
    row.erase(key);
  }
  row["failed"] = "a budget too small";
  return row;
}

/// A file of "spillway-bench".
inline nlohmann::json bench_file(const std::string& bench, nlohmann::json rows,
                                 const std::string& machine = "0123456789ab") {
  return {{"format", "spillway-bench"},
          {"version", 2U},
          {"bench", bench},
          {"date", "2026-11-22T11:00:00Z"},
          {"seconds", 12.5},
          {"build", {{"version", "0.1.0"}, {"commit", nullptr}}},
          {"machine",
           {{"id", machine},
            {"processor", "A Processor"},
            {"processors", 2U},
            {"memory_bytes", 1000000U},
            {"kernel", "6.18"},
            {"device", "host"},
            {"paging", nullptr},
            {"load_at_start", 0.1}}},
          {"options", {{"net", "lenet"}}},
          {"rows", std::move(rows)}};
}

inline nlohmann::json link_row() {
  return {{"way", "prefetch"},       {"direction", "in"},           {"bytes", 4096U},
          {"seconds", timing(1e-6)}, {"bytes_per_second", 4.096e9}, {"call_seconds", nullptr}};
}

inline nlohmann::json paging_row(const std::string& way, double near_times, double ratio) {
  return {{"pattern", "stream"},
          {"way", way},
          {"near_times", near_times},
          {"bytes", 2000U},
          {"near_bytes", 1000U},
          {"seconds", timing(ratio)},
          {"plain_seconds", timing(1)},
          {"ratio", ratio},
          {"faults", 3U},
          {"evictions", 2U},
          {"bytes_in", 1U},
          {"bytes_out", 0U}};
}

}  // namespace spillway::test
