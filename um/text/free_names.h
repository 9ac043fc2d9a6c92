#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace spillway::um {

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

}  // namespace spillway::um
