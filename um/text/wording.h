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

/// "1 task", "2 tasks": how many of what `noun` names, whose plural ends in s.
[[nodiscard]] inline std::string count_of(std::uint64_t number, std::string_view noun) {
  return std::to_string(number) + " " + std::string{noun} + (number == 1 ? "" : "s");
}

/// The double whose shortest decimal is that of `value`: for 0.01F it is 0.01, where a conversion
/// gives 0.009999999776482582. For JSON, whose numbers are doubles.
[[nodiscard]] double shortest_decimal(float value);

/// Two sizes for one sentence, as to_string() writes them; where both look the same though they
/// differ, exactly: "1200640 bytes".
[[nodiscard]] inline std::pair<std::string, std::string> texts_apart(Bytes one, Bytes other) {
  std::pair texts{to_string(one), to_string(other)};
  if (one == other || texts.first != texts.second) return texts;
  return {std::to_string(one.count()) + " bytes", std::to_string(other.count()) + " bytes"};
}

/// Names of which each is given once.
class FreeNames {
 public:
  FreeNames() = default;
  explicit FreeNames(std::unordered_set<std::string> taken) : taken_{std::move(taken)} {}

  /// Takes `name`. Returns false where it was taken before.
  bool insert(const std::string& name) {
    ++lookups_;
    return taken_.insert(name).second;
  }

  /// Takes and returns the first of `name`, name_2, name_3 and so on that is free.
  /// Complexity: all calls together look up as many names as there are calls and taken names.
  std::string take(const std::string& name) {
    if (insert(name)) return name;
    std::size_t& number = next_.try_emplace(name, 2).first->second;
    std::string numbered;
    do numbered = name + "_" + std::to_string(number++);
    while (!insert(numbered));
    return numbered;
  }

  /// How many names all calls together have looked up.
  [[nodiscard]] std::size_t lookups() const { return lookups_; }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, std::size_t> next_;  // lower ones are taken, by name
  std::size_t lookups_ = 0;
};

/// The one of `names` that `wrong` is likely to mean: equal but for case and punctuation, or but
/// for a few letters. Nothing where no name is that close.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view wrong,
                                                      std::span<const std::string> names);

}  // namespace spillway::um
