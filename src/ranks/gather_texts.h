#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/ranks/communicator.h"

namespace spillway {

/// All ranks' texts, by rank, on every rank.
[[nodiscard]] std::vector<std::string> gather_texts(Communicator& communicator,
                                                    std::string_view text);

}  // namespace spillway
