#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "prefetch/files/json.h"
#include "src/bench/bench_machine.h"
#include "src/bench/timing_summary.h"
#include "um/error.h"

namespace spillway {

/// What one bench measured: a file of format spillway-bench, version 2.
struct BenchFile {
  std::string bench;  ///< "link", "paging", "train" or "planners"
  std::chrono::system_clock::time_point begin;
  Seconds took{0};
  BenchMachine machine;
  nlohmann::json options = nlohmann::json::object();  ///< by flag, without dashes
  nlohmann::json rows = nlohmann::json::array();
  nlohmann::json more = nlohmann::json::object();  ///< further members of the file
};

[[nodiscard]] nlohmann::json to_json(const BenchFile& file);

/// The content of a file of format spillway-bench, version 2, or of version 1 made version 2.
/// Throws: um::Error when it is of another format or version.
[[nodiscard]] nlohmann::json bench_content(const prefetch::JsonFile& file);

/// Throws: um::Error that names the place, unless `file` has what to_json() writes around the rows.
/// Members that this program does not know may be there.
void expect_bench_file(const prefetch::JsonView& file);

/// The rows of a file, each read by `read`.
template <typename Row>
[[nodiscard]] std::vector<Row> read_rows(const prefetch::JsonView& file,
                                         Row (*read)(const prefetch::JsonView&)) {
  const prefetch::JsonView rows = file.at("rows");
  std::vector<Row> all;
  for (std::size_t i = 0; i < rows.size(); ++i) all.push_back(read(rows.at(i)));
  return all;
}

/// Member `key` of `object`; nothing where it is not there or null.
[[nodiscard]] std::optional<prefetch::JsonView> find_value(const prefetch::JsonView& object,
                                                           const std::string& key);
/// The number at `key`, 0 where there is none.
[[nodiscard]] double number_or_zero(const prefetch::JsonView& object, const std::string& key);
/// The same of what is counted.
[[nodiscard]] std::uint64_t count_or_zero(const prefetch::JsonView& object, const std::string& key);

/// The error of a word that means nothing here.
[[nodiscard]] um::Error unknown_word(const prefetch::JsonView& word);

/// What `find` makes of a word. Throws: um::Error where it is nothing.
template <typename Value>
[[nodiscard]] Value read_word(const prefetch::JsonView& word,
                              std::optional<Value> (*find)(const std::string&)) {
  const std::optional<Value> found = find(word.string());
  if (!found) throw unknown_word(word);
  return *found;
}

/// Throws: um::Error when there is a bench file at `path` that `bench` on `machine` would replace,
/// although it is of another bench or machine. Anything else may be replaced, also what is no bench
/// file.
void expect_replaceable(const std::string& path, const std::string& bench,
                        const BenchMachine& machine);

}  // namespace spillway
