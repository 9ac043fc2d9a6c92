#pragma once

#include <span>
#include <string>
#include <string_view>

#include "um/text/wording.h"

namespace spillway::cli {

using um::nearest_name;

/// What to answer to a name that does not exist: "no network 'ResNet-50'; did you mean
/// 'resnet50'?", or `otherwise` where no name is close.
[[nodiscard]] std::string suggest_name(std::string_view kind, std::string_view wrong,
                                       std::span<const std::string> names, std::string otherwise);

}  // namespace spillway::cli
