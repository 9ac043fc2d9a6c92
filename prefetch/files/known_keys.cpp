#include "prefetch/files/known_keys.h"

#include <algorithm>
#include <cstddef>

#include "um/text/nearest_name.h"

namespace spillway::prefetch {
namespace {

// A key as a sentence may hold it.
std::string shown(std::string key) {
  constexpr std::size_t kLongest = 64;
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  std::ranges::replace_if(key, is_control, '?');
  return key.size() > kLongest ? key.substr(0, kLongest) + "..." : key;
}

}  // namespace

void expect_known_keys(const nlohmann::json& object, const JsonView& place,
                       std::span<const std::string> known) {
  if (!object.is_object()) return;  // whoever reads it says so
  for (const auto& entry : object.items()) {
    const std::string& key = entry.key();
    if (std::ranges::find(known, key) != known.end()) continue;
    if (const auto meant = um::nearest_name(key, known)) {
      throw place.error("has an unknown key '" + shown(key) + "'; did you mean '" + *meant + "'?");
    }
    std::string all;
    for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
    throw place.error("has an unknown key '" + shown(key) + "'; there are " + all);
  }
}

}  // namespace spillway::prefetch
