#pragma once

#include <string>
#include <utility>

#include "um/bytes.h"

namespace spillway::um {

/// Two sizes for one sentence, as to_string() writes them; where both look the same though they
/// differ, exactly: "1200640 bytes".
[[nodiscard]] inline std::pair<std::string, std::string> texts_apart(Bytes one, Bytes other) {
  std::pair texts{to_string(one), to_string(other)};
  if (one == other || texts.first != texts.second) return texts;
  return {std::to_string(one.count()) + " bytes", std::to_string(other.count()) + " bytes"};
}

}  // namespace spillway::um
