#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "um/bytes.h"

namespace spillway::um {

/// "1 task", "2 tasks": how many of what `noun` names, whose plural ends in s.
[[nodiscard]] inline std::string count_of(std::uint64_t number, std::string_view noun) {
  return std::to_string(number) + " " + std::string{noun} + (number == 1 ? "" : "s");
}

/// The double whose shortest decimal is that of `value`: for 0.01F it is 0.01, where a conversion
/// gives 0.009999999776482582. For JSON, whose numbers are doubles.
[[nodiscard]] double shortest_decimal(float value);

/// Two sizes for one sentence, as to_string() writes them; where both look the same though they
/// differ, exactly: "1200640 bytes".
[[nodiscard]] inline std::pair<std::string, std::string> texts_apart(Bytes one, Bytes other) {
  std::pair texts{to_string(one), to_string(other)};
  if (one == other || texts.first != texts.second) return texts;
  return {std::to_string(one.count()) + " bytes", std::to_string(other.count()) + " bytes"};
}

}  // namespace spillway::um
