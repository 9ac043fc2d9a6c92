#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "um/error.h"

namespace spillway::prefetch {

/// A value somewhere in a JSON file, which knows where it is, so that every complaint names the
/// place: "plan.json: runs[3].task is missing". Borrows from a JsonFile. Every function throws
/// um::Error when the value is not what is asked for.
class JsonView {
 public:
  JsonView(const nlohmann::json& value, std::string place)
      : value_{&value}, place_{std::move(place)} {}

  [[nodiscard]] bool has(const std::string& key) const;
  [[nodiscard]] JsonView at(const std::string& key) const;
  [[nodiscard]] JsonView at(std::size_t index) const;
  [[nodiscard]] bool is_null() const { return value_->is_null(); }
  /// Elements of an array.
  [[nodiscard]] std::size_t size() const;

  /// Text without control characters: it may stand in a sentence.
  [[nodiscard]] std::string string() const;
  [[nodiscard]] bool boolean() const;
  /// A finite number that is not negative.
  [[nodiscard]] double number() const;
  [[nodiscard]] double positive_number() const;
  /// A whole number from 0 up to `largest`.
  [[nodiscard]] std::uint64_t integer(std::uint64_t largest = UINT64_MAX) const;

  /// An error about this value: its place, then `complaint`.
  [[nodiscard]] um::Error error(const std::string& complaint) const;

 private:
  const nlohmann::json* value_;
  std::string place_;
};

/// Bytes of the largest file that is read.
inline constexpr std::size_t kLargestJsonFile = 256ULL << 20U;

/// A JSON file in memory. Throws: um::Error when it cannot be read, is no ordinary file, is no
/// JSON, is larger than kLargestJsonFile, or is beyond the limits of um/text/json_limits.h.
class JsonFile {
 public:
  explicit JsonFile(const std::string& path);
  JsonFile(const std::string& text, std::string name);

  [[nodiscard]] JsonView root() const { return {value_, name_ + ":"}; }
  [[nodiscard]] const nlohmann::json& value() const { return value_; }
  /// Checks "format" and "version", which every file format of ours begins with.
  void expect_format(const std::string& format, std::uint64_t version) const;

 private:
  std::string name_;
  nlohmann::json value_;
};

/// The same, where a byte of a text that is no UTF-8 becomes U+FFFD: users name files as they like,
/// and write_json() writes UTF-8 alone.
[[nodiscard]] nlohmann::json as_utf8(const nlohmann::json& value);

/// Writes `value` to `path` ("-": standard output), as um::write_output() does.
/// Throws: um::Error when that fails.
void write_json(const nlohmann::json& value, const std::string& path);

/// Throws: um::Error that names a key of `object`, which lies at `place`, that is none of `known`,
/// and the nearest of these: a misspelt optional key would be left out without a word.
void expect_known_keys(const nlohmann::json& object, const JsonView& place,
                       std::span<const std::string> known);

}  // namespace spillway::prefetch
