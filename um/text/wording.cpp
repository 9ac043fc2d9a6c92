#include "um/text/wording.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <vector>

namespace spillway::um {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

double shortest_decimal(float value) {
  std::array<char, 32> text{};  // enough for any float
  const std::to_chars_result written = std::to_chars(text.data(), text.data() + text.size(), value);
  double result = 0;
  std::from_chars(text.data(), written.ptr, result);
  return result;
}

namespace {

// Keeps letters and digits only, in lower case: "ResNet-50" becomes "resnet50".
std::string folded(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) letters += static_cast<char>(std::tolower(byte));
  }
  return letters;
}

// Returns the optimal string alignment distance: the letters to insert, remove, replace or swap
// until `a` is `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> costs(a.size() + 1,
                                              std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      std::size_t& cost = costs[i][j];
      if (i == 0 || j == 0) {
        cost = i + j;
        continue;
      }
      const std::size_t replaced = costs[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost = std::min({replaced, costs[i - 1][j] + 1, costs[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost = std::min(cost, costs[i - 2][j - 2] + 1);
      }
    }
  }
  return costs[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view wrong,
                                        std::span<const std::string> names) {
  constexpr std::size_t kLongestName = 64;  // a longer text is not a misspelt name
  constexpr std::size_t kLettersPerEdit = 4;
  const std::string meant = folded(wrong);
  if (meant.empty() || meant.size() > kLongestName) return std::nullopt;
  std::size_t allowed = std::max<std::size_t>(1, meant.size() / kLettersPerEdit);
  std::optional<std::string> nearest;
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(meant, folded(name));
    if (distance > allowed || (nearest && distance == allowed)) continue;
    allowed = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace spillway::um
