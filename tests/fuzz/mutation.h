#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace spillway::fuzz {

using Generator = std::mt19937_64;  // gives the same numbers everywhere

/// One of `corpus`, spoilt in one to eight places, half of the time in one: bits and bytes changed,
/// parts left out, doubled, moved, cut off, taken from another input, numbers made extreme, or
/// brackets repeated; of JSON documents half stay JSON, as spoilt_json() has it. The result depends
/// on nothing but the arguments. Requires: a corpus that is not empty.
[[nodiscard]] std::string spoilt_input(const std::vector<std::string>& corpus,
                                       Generator& generator);

}  // namespace spillway::fuzz
