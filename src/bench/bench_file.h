#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "src/bench/repetition.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway {

/// On what a bench measures.
struct BenchMachine {
  std::string processor;  ///< "AMD EPYC 9754", or "unknown processor"
  std::size_t processors = 1;
  um::Bytes memory;
  std::string kernel;                 ///< release: "6.18.1"
  std::string device;                 ///< "host", or "cuda:0 NVIDIA H100"
  std::optional<std::string> paging;  ///< "uffd" or "memfd"; nothing where it does not matter
  double load = 0;                    ///< others' work when the bench began, averaged over a minute

  /// Files with different ids may not stand in one table: 12 digits of a SHA-256 over processor,
  /// processors, memory, kernel and device.
  [[nodiscard]] std::string id() const;
};

/// This machine, now. `root` is the folder that holds proc.
[[nodiscard]] BenchMachine find_bench_machine(std::string device, std::optional<std::string> paging,
                                              const std::filesystem::path& root = "/");

/// {"id", "processor", "processors", "memory_bytes", "kernel", "device", "paging",
/// "load_at_start"}
[[nodiscard]] nlohmann::json to_json(const BenchMachine& machine);

/// For people: "AMD EPYC 9754, 2 processors, 23.5 GiB, Linux 6.18.1, host".
[[nodiscard]] std::string to_string(const BenchMachine& machine);

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

/// The value of an enumeration that is called `name`, where `names` are those of its values in
/// their order; nothing when there is none.
template <typename Value>
[[nodiscard]] std::optional<Value> find_named(std::span<const char* const> names,
                                              const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Value>(found - names.begin());
}

/// A value by its name: of a row that was read from a file, also a name that this program gives no
/// value of the type.
template <typename Value>
class NameOf {
 public:
  NameOf(Value value) : name_{to_string(value)} {}  // implicit: rows are made of values
  explicit NameOf(std::string name) : name_{std::move(name)} {}

  [[nodiscard]] friend const std::string& to_string(const NameOf& name) { return name.name_; }
  friend bool operator==(const NameOf&, const NameOf&) = default;

 private:
  std::string name_;
};

}  // namespace spillway
