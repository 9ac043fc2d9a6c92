#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace spillway::test {

/// The line of `train --json` for a step that waited a fifth of its time for data.
inline std::string step_line(int step, double loss) {
  nlohmann::json line = nlohmann::json::parse(R"({
    "epoch": 1, "accuracy": 0.5, "learning_rate": 0.01, "seconds": 0.8, "data_wait_seconds": 0.2,
    "near_peak_bytes": 1000000})");
  line["step"] = static_cast<unsigned>(step);
  line["loss"] = loss;
  return line.dump() + "\n";
}

inline std::string evaluation_line(int step, double loss, double accuracy) {
  const nlohmann::json evaluation{{"step", static_cast<unsigned>(step)},
                                  {"epoch", 1U},
                                  {"test_loss", loss},
                                  {"test_accuracy", accuracy}};
  return nlohmann::json{{"evaluation", evaluation}}.dump() + "\n";
}

inline std::string summary_line() {
  return R"({"summary": {"network": "lenet", "batch": 8, "data": "synthetic images"}})"
         "\n";
}

/// A timing with all runs within `deviation` of the median. Five settle.
inline nlohmann::json timing(double median, double deviation = 0.01, int runs = 5) {
  return {{"median", median},
          {"min", median * (1 - deviation)},
          {"max", median * (1 + deviation)},
          {"deviation", deviation},
          {"runs", static_cast<unsigned>(runs)},
          {"settled", runs >= 5}};
}

/// What `bench train` writes of a strategy at a part of the 1000 bytes that are needed, in
/// `percent`; the resident step takes a second, and everything is predicted 5 % too short.
inline nlohmann::json training_row(const std::string& strategy, int percent, double seconds) {
  const bool is_mode = strategy == "resident" || strategy == "copy";
  nlohmann::json row = nlohmann::json::parse(R"({
    "series": "budget", "net": "lenet", "image_size": 28, "batch": 8, "resident_bytes": 1000,
    "resident_seconds": 1.0, "resident_is": "measured", "bytes_in": 0, "bytes_out": 0, "faults": 0,
    "stalled_seconds": 0.0})");
  row["strategy"] = strategy;
  row["memory"] = is_mode ? strategy : "managed";
  row["planner"] = is_mode ? nlohmann::json{} : nlohmann::json(strategy);
  row["budget"] = std::to_string(percent) + "%";
  row["budget_bytes"] = row["near_peak_bytes"] = 10U * static_cast<unsigned>(percent);
  row["seconds"] = timing(seconds);
  row["images_per_second"] = 8 / seconds;
  row["ratio"] = seconds;
  row["predicted_seconds"] = 0.95 * seconds;
  return row;
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
  nlohmann::json file = nlohmann::json::parse(R"({
    "format": "spillway-bench", "version": 2, "date": "2026-11-22T11:00:00Z", "seconds": 12.5,
    "build": {"version": "0.1.0", "commit": null}, "options": {"net": "lenet"},
    "machine": {"processor": "A Processor", "processors": 2, "memory_bytes": 1000000,
                "kernel": "6.18", "device": "host", "paging": null, "load_at_start": 0.1}})");
  file["bench"] = bench;
  file["machine"]["id"] = machine;
  file["rows"] = std::move(rows);
  return file;
}

inline nlohmann::json link_row() {
  return {{"way", "prefetch"},       {"direction", "in"},           {"bytes", 4096U},
          {"seconds", timing(1e-6)}, {"bytes_per_second", 4.096e9}, {"call_seconds", nullptr}};
}

inline nlohmann::json paging_row(const std::string& way, double near_times, double ratio) {
  nlohmann::json row = nlohmann::json::parse(R"({
    "pattern": "stream", "bytes": 2000, "near_bytes": 1000, "faults": 3, "evictions": 2,
    "bytes_in": 1, "bytes_out": 0})");
  row["way"] = way;
  row["near_times"] = near_times;
  row["seconds"] = timing(ratio);
  row["plain_seconds"] = timing(1);
  row["ratio"] = ratio;
  return row;
}

}  // namespace spillway::test
