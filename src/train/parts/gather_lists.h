#pragma once

#include <string>
#include <vector>

#include "src/ranks/communicator.h"

namespace spillway {

/// All ranks' lists of texts, by rank, on every rank. A byte that is no UTF-8 becomes U+FFFD.
[[nodiscard]] std::vector<std::vector<std::string>> gather_lists(
    Communicator& communicator, const std::vector<std::string>& own);

}  // namespace spillway
