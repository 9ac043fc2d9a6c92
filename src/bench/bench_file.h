#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "src/bench/bench_machine.h"
#include "src/bench/timing_summary.h"

namespace spillway {

/// What one bench measured: a file of format spillway-bench, version 1.
struct BenchFile {
  std::string bench;  ///< "link", "paging", "train" or "planners"
  std::chrono::system_clock::time_point begin;
  Seconds took{0};
  BenchMachine machine;
  nlohmann::json options = nlohmann::json::object();  ///< by flag, without dashes
  nlohmann::json rows = nlohmann::json::array();
};

[[nodiscard]] nlohmann::json to_json(const BenchFile& file);

/// Throws: um::Error when there is a bench file at `path` that `bench` on `machine` would replace,
/// although it is of another bench or machine. Anything else may be replaced, also what is no bench
/// file.
void expect_replaceable(const std::string& path, const std::string& bench,
                        const BenchMachine& machine);

}  // namespace spillway
