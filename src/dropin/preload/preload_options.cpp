#include "src/dropin/preload/preload_options.h"

#include <cstdlib>
#include <cstring>
#include <optional>

namespace spillway::dropin {
namespace {

using namespace um::literals;

constexpr um::Bytes kMin = 1_MiB;

bool is_on(const char* variable) noexcept {
  const char* const text = std::getenv(variable);
  return text != nullptr && std::strcmp(text, "1") == 0;
}

std::optional<um::Bytes> read_min() noexcept {
  const char* const text = std::getenv("SPILLWAY_UM_PRELOAD_LEAST");
  if (text == nullptr) return kMin;
  try {
    return um::parse_bytes(text);
  } catch (...) {
    return std::nullopt;
  }
}

}  // namespace

PreloadOptions read_preload_options() noexcept {
  const std::optional<um::Bytes> min = read_min();
  return {.min = min.value_or(um::Bytes{}),
          .is_quiet = is_on("SPILLWAY_UM_PRELOAD_QUIET"),
          .has_report = is_on("SPILLWAY_UM_PRELOAD_REPORT"),
          .is_understood = min.has_value()};
}

}  // namespace spillway::dropin
