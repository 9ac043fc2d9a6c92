#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace spillway {

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
