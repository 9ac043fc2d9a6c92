#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace spillway::fuzz {

using Generator = std::mt19937_64;  // the same numbers on every machine

/// Returns a member of `corpus`, damaged in one to eight places, half of the time in one. Bits and
/// bytes are changed; parts are removed, doubled, moved, cut off or taken from another input.
/// Numbers become extreme, or brackets repeat. Half of the JSON documents stay JSON, see
/// spoilt_json(). The result depends only on the arguments. Requires: a corpus that is not empty.
[[nodiscard]] std::string spoilt_input(const std::vector<std::string>& corpus,
                                       Generator& generator);

}  // namespace spillway::fuzz
