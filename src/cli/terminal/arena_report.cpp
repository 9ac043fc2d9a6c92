#include "src/cli/terminal/arena_report.h"

#include <fmt/core.h>

#include <cstdint>

#include "um/bytes.h"

namespace spillway::cli {

nlohmann::json places_json(const ArenaUse& use) {
  return {{"extent_bytes", use.extent.count()},
          {"arena_bytes", use.room.count()},
          {"fits", use.fits()}};
}

std::string describe_places(const nlohmann::json& use) {
  const auto bytes = [&](const char* key) {
    return um::to_string(um::Bytes{use.at(key).get<std::uint64_t>()});
  };
  if (use.at("fits").get<bool>()) {
    return fmt::format("fixed places in {} of {}", bytes("extent_bytes"), bytes("arena_bytes"));
  }
  return fmt::format("places as blocks come, compacted where needed: fixed ones take {}, not {}",
                     bytes("extent_bytes"), bytes("arena_bytes"));
}

}  // namespace spillway::cli
