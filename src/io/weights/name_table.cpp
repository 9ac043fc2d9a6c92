#include "src/io/weights/name_table.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "um/error.h"

namespace spillway {

std::string to_string(WeightSource source) {
  return source == WeightSource::kHuggingFace ? "Hugging Face" : "torchvision";
}

std::string title(const NameTable& table) {
  return to_string(table.source) + "'s " + table.network;
}

std::vector<NameTable> all_name_tables(std::span<const StoredTensor> arrays) {
  std::vector<NameTable> tables = hugging_face_names();
  std::ranges::move(torchvision_names(arrays), std::back_inserter(tables));
  return tables;
}

namespace {

constexpr std::size_t kLongestName = 256;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_wildcard(char c) { return c == '#' || c == '*'; }

// Fills `parts` from the end. Complexity: recursion as deep as the pattern is long.
bool match_rest(std::string_view pattern, std::string_view name, std::vector<std::string>& parts) {
  if (pattern.empty()) return name.empty();
  const char first = pattern.front();
  pattern.remove_prefix(1);
  if (!is_wildcard(first)) {
    return name.starts_with(first) && match_rest(pattern, name.substr(1), parts);
  }
  for (std::size_t length = 1; length <= name.size(); ++length) {
    if (first == '#' && !is_digit(name[length - 1])) return false;
    parts.emplace_back(name.substr(0, length));
    if (match_rest(pattern, name.substr(length), parts)) return true;
    parts.pop_back();
  }
  return false;
}

}  // namespace

std::optional<std::vector<std::string>> match_name(std::string_view pattern,
                                                   std::string_view name) {
  std::vector<std::string> parts;
  if (name.size() > kLongestName || !match_rest(pattern, name, parts)) return std::nullopt;
  return parts;
}

std::string fill_name(std::string_view pattern, std::span<const std::string> parts) {
  std::string name;
  for (const char c : pattern) {
    if (!is_wildcard(c)) {
      name += c;
      continue;
    }
    um::expects(!parts.empty(), "a part for each wildcard");
    name += parts.front();
    parts = parts.subspan(1);
  }
  return name;
}

std::vector<std::string> each_word_of(const std::string& pattern) {
  const std::size_t begin = pattern.find('{');
  if (begin == std::string::npos) return {pattern};
  const std::size_t end = pattern.find('}', begin);
  std::vector<std::string> patterns;
  for (std::size_t word = begin + 1; word <= end;) {
    const std::size_t after = std::min(pattern.find(',', word), end);
    patterns.push_back(pattern.substr(0, begin) + pattern.substr(word, after - word) +
                       pattern.substr(end + 1));
    word = after + 1;
  }
  return patterns;
}

}  // namespace spillway
