#include "src/report/bench_check.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

namespace spillway {
namespace {

using prefetch::JsonView;

void expect_one_of(const JsonView& value, std::initializer_list<std::string_view> words) {
  const std::string found = value.string();
  if (std::ranges::find(words, found) == words.end()) {
    throw value.error("is '" + found + "', which this program does not know");
  }
}

bool has_value(const JsonView& object, const std::string& key) {
  return object.has(key) && !object.at(key).is_null();
}

void expect_strings(const JsonView& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) static_cast<void>(object.at(key).string());
}

void expect_integers(const JsonView& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) static_cast<void>(object.at(key).integer());
}

// Absent and null are fine.
void expect_numbers_if_any(const JsonView& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (has_value(object, key)) static_cast<void>(object.at(key).number());
  }
}

void check_figure(const JsonView& figure) {
  const double median = figure.at("median").positive_number();
  if (figure.at("least").positive_number() > median) {
    throw figure.at("least").error("is more than the median");
  }
  if (figure.at("most").number() < median) throw figure.at("most").error("is less than the median");
  static_cast<void>(figure.at("deviation").number());
  if (figure.at("runs").integer() == 0) throw figure.at("runs").error("is zero");
  static_cast<void>(figure.at("settled").boolean());
}

void check_link_row(const JsonView& row) {
  expect_strings(row, {"way"});
  expect_one_of(row.at("direction"), {"in", "out", "both"});
  if (row.at("bytes").integer() == 0) throw row.at("bytes").error("is zero");
  check_figure(row.at("seconds"));
  static_cast<void>(row.at("bytes_per_second").positive_number());
  if (has_value(row, "call_seconds")) {
    // Of a call too short for the clock, zero is what was measured.
    static_cast<void>(row.at("call_seconds").at("median").number());
  }
}

void check_paging_row(const JsonView& row) {
  expect_strings(row, {"pattern", "way"});
  static_cast<void>(row.at("near_times").positive_number());
  expect_integers(row, {"bytes", "near_bytes"});
  check_figure(row.at("seconds"));
  check_figure(row.at("plain_seconds"));
  static_cast<void>(row.at("ratio").positive_number());
  expect_numbers_if_any(row, {"faults", "evictions", "bytes_in", "bytes_out"});
}

void check_training_row(const JsonView& row) {
  expect_one_of(row.at("series"), {"batch", "budget", "planner"});
  expect_strings(row, {"net", "strategy", "memory", "budget"});
  expect_integers(row, {"image_size", "batch", "budget_bytes"});
  if (has_value(row, "failed")) {
    static_cast<void>(row.at("failed").string());
    if (row.has("seconds")) throw row.at("seconds").error("stands beside 'failed'");
    return;
  }
  if (row.at("resident_bytes").integer() == 0) throw row.at("resident_bytes").error("is zero");
  check_figure(row.at("seconds"));
  static_cast<void>(row.at("images_per_second").positive_number());
  if (has_value(row, "ratio")) static_cast<void>(row.at("ratio").positive_number());
  if (has_value(row, "predicted_seconds")) {
    static_cast<void>(row.at("predicted_seconds").positive_number());
  }
  if (has_value(row, "resident_is")) {
    expect_one_of(row.at("resident_is"), {"measured", "simulated"});
  }
  expect_numbers_if_any(row, {"resident_seconds", "near_peak_bytes", "bytes_in", "bytes_out",
                              "faults", "stalled_seconds"});
}

void check_machine(const JsonView& machine) {
  expect_strings(machine, {"id", "processor", "kernel", "device"});
  expect_integers(machine, {"processors", "memory_bytes"});
  expect_numbers_if_any(machine, {"load_at_start"});
  if (has_value(machine, "paging")) static_cast<void>(machine.at("paging").string());
}

}  // namespace

void check_bench(const JsonView& root) {
  expect_one_of(root.at("bench"), {"link", "paging", "train", "planners"});
  expect_strings(root, {"date"});
  static_cast<void>(root.at("seconds").number());
  expect_strings(root.at("build"), {"version"});
  if (has_value(root.at("build"), "commit")) expect_strings(root.at("build"), {"commit"});
  check_machine(root.at("machine"));
  static_cast<void>(root.at("options").has(""));  // it is an object
  const std::string bench = root.at("bench").string();
  const JsonView rows = root.at("rows");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (bench == "link") {
      check_link_row(rows.at(i));
    } else if (bench == "paging") {
      check_paging_row(rows.at(i));
    } else {
      check_training_row(rows.at(i));
    }
  }
}

}  // namespace spillway
