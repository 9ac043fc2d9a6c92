#include "prefetch/files/json.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>

#include "um/files/input_file.h"
#include "um/files/replaced_file.h"
#include "um/text/json_limits.h"
#include "um/text/wording.h"

namespace spillway::prefetch {
namespace {

nlohmann::json parse(const std::string& text, const std::string& name) {
  if (const auto limit = um::beyond_json_limits(text)) throw um::Error{name + ": " + *limit};
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw um::Error{name + ": not JSON, at byte " + std::to_string(error.byte)};
  } catch (const nlohmann::json::out_of_range&) {
    throw um::Error{name + ": holds a number that is too large"};
  }
}

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

// Returns true if a message may quote the key.
bool is_readable(const std::string& key) {
  constexpr std::size_t kLongest = 64;
  return !key.empty() && key.size() <= kLongest && std::ranges::none_of(key, is_control);
}

}  // namespace

bool JsonView::has(const std::string& key) const {
  if (!value_->is_object()) throw error("is no object");
  return value_->contains(key);
}

JsonView JsonView::at(const std::string& key) const {
  const std::string place = place_ + (place_.ends_with(':') ? " " : ".") + key;
  if (!has(key)) throw um::Error{place + " is missing"};
  return {value_->at(key), place};
}

JsonView JsonView::at(std::size_t index) const {
  if (index >= size()) throw error("has only " + std::to_string(size()) + " elements");
  return {value_->at(index), place_ + "[" + std::to_string(index) + "]"};
}

std::size_t JsonView::size() const {
  if (!value_->is_array()) throw error("is no array");
  return value_->size();
}

std::vector<std::string> JsonView::keys() const {
  if (!value_->is_object()) throw error("is no object");
  std::vector<std::string> keys;
  for (const auto& entry : value_->items()) keys.push_back(entry.key());
  return keys;
}

std::string JsonView::string() const {
  if (!value_->is_string()) throw error("is no string");
  auto text = value_->get<std::string>();
  if (std::ranges::any_of(text, is_control)) throw error("holds a control character");
  return text;
}

bool JsonView::boolean() const {
  if (!value_->is_boolean()) throw error("is neither true nor false");
  return value_->get<bool>();
}

double JsonView::number() const {
  if (!value_->is_number()) throw error("is no number");
  const auto number = value_->get<double>();
  if (!std::isfinite(number) || number < 0) throw error("is negative or too large");
  return number;
}

double JsonView::positive_number() const {
  const double result = number();
  if (result == 0) throw error("is zero");
  return result;
}

std::uint64_t JsonView::integer(std::uint64_t largest) const {
  if (!value_->is_number_unsigned()) throw error("is no whole number from 0 up");
  const auto number = value_->get<std::uint64_t>();
  if (number > largest) throw error("is larger than " + std::to_string(largest));
  return number;
}

um::Error JsonView::error(const std::string& complaint) const {
  return um::Error{place_ + " " + complaint};
}

JsonFile::JsonFile(const std::string& path)
    : JsonFile{um::InputFile{path}.text(kLargestJsonFile), path} {}

JsonFile::JsonFile(const std::string& text, std::string name)
    : name_{std::move(name)}, value_(parse(text, name_)) {}

void JsonFile::expect_format(const std::string& format, std::uint64_t version) const {
  if (const JsonView found = root().at("format"); found.string() != format) {
    throw found.error("is '" + found.string() + "', not '" + format + "'");
  }
  const JsonView found = root().at("version");
  if (found.integer() != version) {
    throw found.error("is " + std::to_string(found.integer()) + "; this program reads version " +
                      std::to_string(version));
  }
}

std::string json_text(const nlohmann::json& value, int indent) {
  constexpr bool kEscapesAll = false;
  return value.dump(indent, ' ', kEscapesAll, nlohmann::json::error_handler_t::replace);
}

nlohmann::json as_utf8(const nlohmann::json& value) {
  return nlohmann::json::parse(json_text(value));
}

void write_json(const nlohmann::json& value, const std::string& path) {
  if (path == "-") {
    std::cout << json_text(value) << std::endl;
    if (!std::cout) throw um::Error{"cannot write to standard output"};
    return;
  }
  um::write_output(path, json_text(value, 1) + '\n');
}

void expect_known_keys(const nlohmann::json& object, const JsonView& place,
                       std::span<const std::string> known) {
  if (!object.is_object()) return;  // the reader of the object reports it
  for (const auto& entry : object.items()) {
    const std::string& key = entry.key();
    if (std::ranges::find(known, key) != known.end()) continue;
    if (!is_readable(key)) throw place.error("has an unknown key");
    const JsonView entry_place = place.at(key);
    if (const auto meant = um::nearest_name(key, known)) {
      throw entry_place.error("is unknown; did you mean '" + *meant + "'?");
    }
    std::string all;
    for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
    throw entry_place.error("is unknown; there are " + all);
  }
}

}  // namespace spillway::prefetch
