#include "src/profile/measuring_time.h"

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

#include "um/error.h"

namespace spillway {
namespace {

constexpr const char* kVariable = "SPILLWAY_MEASURING_TIME";

double factor() {
  const char* const variable = std::getenv(kVariable);
  const std::string_view text = variable == nullptr ? "1" : variable;
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && stop == text.data() + text.size() && value > 0 && value <= 1) {
    return value;
  }
  throw um::Error{std::string{kVariable} + "=" + std::string{text} +
                  " is no factor over 0 and at most 1"};
}

}  // namespace

std::chrono::nanoseconds measuring_time(std::chrono::nanoseconds usual) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(usual * factor());
}

}  // namespace spillway
