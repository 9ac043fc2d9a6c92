#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::um {

/// "1 task", "2 tasks": how many of what `noun` names, whose plural ends in s.
[[nodiscard]] inline std::string count_of(std::uint64_t number, std::string_view noun) {
  return std::to_string(number) + " " + std::string{noun} + (number == 1 ? "" : "s");
}

}  // namespace spillway::um
