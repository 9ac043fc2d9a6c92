#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "um/error.h"

namespace spillway::prefetch {

/// A value in a JSON file that knows its place, so that each error message names it: "plan.json:
/// runs[3].task is missing". Borrows from a JsonFile. Every function throws um::Error when the
/// value has another type or range.
class JsonView {
 public:
  JsonView(const nlohmann::json& value, std::string place)
      : value_{&value}, place_{std::move(place)} {}

  [[nodiscard]] bool has(const std::string& key) const;
  [[nodiscard]] JsonView at(const std::string& key) const;
  [[nodiscard]] JsonView at(std::size_t index) const;
  [[nodiscard]] bool is_null() const { return value_->is_null(); }
  /// Returns the number of elements of an array.
  [[nodiscard]] std::size_t size() const;

  /// Returns the keys of an object.
  [[nodiscard]] std::vector<std::string> keys() const;

  /// Returns text without control characters, which a message can quote.
  [[nodiscard]] std::string string() const;
  [[nodiscard]] bool boolean() const;
  /// Returns a finite number that is not negative.
  [[nodiscard]] double number() const;
  [[nodiscard]] double positive_number() const;
  /// Returns an integer from 0 to `largest`.
  [[nodiscard]] std::uint64_t integer(std::uint64_t largest = UINT64_MAX) const;

  /// Returns an error about this value: its place, then `complaint`.
  [[nodiscard]] um::Error error(const std::string& complaint) const;

 private:
  const nlohmann::json* value_;
  std::string place_;
};

/// The largest file that is read, in bytes.
inline constexpr std::size_t kLargestJsonFile = 256ULL << 20U;

/// A JSON file in memory. Throws: um::Error when it cannot be read, is not a regular file or not
/// JSON, is larger than kLargestJsonFile, or exceeds the limits of um/text/json_limits.h.
class JsonFile {
 public:
  explicit JsonFile(const std::string& path);
  JsonFile(const std::string& text, std::string name);

  [[nodiscard]] JsonView root() const { return {value_, name_ + ":"}; }
  [[nodiscard]] const nlohmann::json& value() const { return value_; }
  /// Checks "format" and "version", with which every file format of Spillway begins.
  void expect_format(const std::string& format, std::uint64_t version) const;

 private:
  std::string name_;
  nlohmann::json value_;
};

/// Returns `value` as JSON text, on one line unless `indent` is 0 or more. Replaces invalid UTF-8
/// bytes by U+FFFD, as file names may have any bytes.
[[nodiscard]] std::string json_text(const nlohmann::json& value, int indent = -1);

/// Returns `value` with invalid UTF-8 bytes replaced as json_text() does.
[[nodiscard]] nlohmann::json as_utf8(const nlohmann::json& value);

/// Writes json_text() of `value` to `path` ("-": standard output), as um::write_output() does.
/// Throws: um::Error when that fails.
void write_json(const nlohmann::json& value, const std::string& path);

/// Throws: um::Error if `object`, at `place`, has a key that is not in `known`; names it and the
/// nearest known key. Otherwise a misspelt optional key would be ignored silently.
void expect_known_keys(const nlohmann::json& object, const JsonView& place,
                       std::span<const std::string> known);

}  // namespace spillway::prefetch
