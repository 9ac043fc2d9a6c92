#include "prefetch/files/known_keys.h"

#include <algorithm>
#include <cstddef>

#include "um/text/names.h"

namespace spillway::prefetch {
namespace {

// True when a sentence may hold the key.
bool is_readable(const std::string& key) {
  constexpr std::size_t kLongest = 64;
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  return !key.empty() && key.size() <= kLongest && std::ranges::none_of(key, is_control);
}

}  // namespace

void expect_known_keys(const nlohmann::json& object, const JsonView& place,
                       std::span<const std::string> known) {
  if (!object.is_object()) return;  // whoever reads it says so
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
