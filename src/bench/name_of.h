#pragma once

#include <string>
#include <utility>

namespace spillway {

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
