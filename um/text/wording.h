#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "um/bytes.h"

namespace spillway::um {

/// Returns `word` in single quotes.
[[nodiscard]] inline std::string quoted(std::string_view word) {
  return "'" + std::string{word} + "'";
}

/// Formats a count: "1 task", "2 tasks". The plural of `noun` ends in s.
[[nodiscard]] inline std::string count_of(std::uint64_t number, std::string_view noun) {
  return std::to_string(number) + " " + std::string{noun} + (number == 1 ? "" : "s");
}

/// Returns `text` as a field of CSV, in quotes where it needs them (RFC 4180).
[[nodiscard]] std::string csv_field(const std::string& text);

/// Returns the double with the same shortest decimal as `value`: 0.01 for 0.01F, which a conversion
/// turns into 0.009999999776482582. Serves JSON, which stores doubles.
[[nodiscard]] double shortest_decimal(float value);

/// Formats two sizes for one sentence like to_string(). Formats both exactly, "1200640 bytes", when
/// they differ but look the same.
[[nodiscard]] inline std::pair<std::string, std::string> texts_apart(Bytes one, Bytes other) {
  std::pair texts{to_string(one), to_string(other)};
  if (one == other || texts.first != texts.second) return texts;
  return {std::to_string(one.count()) + " bytes", std::to_string(other.count()) + " bytes"};
}

/// A set of names that gives out each name once.
class FreeNames {
 public:
  FreeNames() = default;
  explicit FreeNames(std::unordered_set<std::string> taken) : taken_{std::move(taken)} {}

  /// Takes `name`. Returns false when it was already taken.
  bool insert(const std::string& name) {
    ++lookups_;
    return taken_.insert(name).second;
  }

  /// Takes and returns the first free one of `name`, name_2, name_3 and so on. Complexity:
  /// amortised; all calls together look up as many names as there are calls and taken names.
  std::string take(const std::string& name) {
    if (insert(name)) return name;
    std::size_t& number = next_.try_emplace(name, 2).first->second;
    std::string numbered;
    do numbered = name + "_" + std::to_string(number++);
    while (!insert(numbered));
    return numbered;
  }

  /// Returns the number of names looked up by all calls.
  [[nodiscard]] std::size_t lookups() const { return lookups_; }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, std::size_t> next_;  // the next number to try, by name
  std::size_t lookups_ = 0;
};

/// Returns the one of `names` that `wrong` probably means: equal except for case and punctuation,
/// or nearly equal. Returns nullopt when no name is that close.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view wrong,
                                                      std::span<const std::string> names);

}  // namespace spillway::um
