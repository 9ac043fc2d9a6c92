#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "prefetch/files/json.h"

namespace spillway::prefetch {

/// Throws: um::Error that names a key of `object`, which lies at `place`, that is none of `known`,
/// and the nearest of these: a misspelt optional key would be left out without a word.
void expect_known_keys(const nlohmann::json& object, const JsonView& place,
                       std::span<const std::string> known);

}  // namespace spillway::prefetch
