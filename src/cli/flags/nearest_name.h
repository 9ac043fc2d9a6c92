#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spillway::cli {

/// The one of `names` that `wrong` is likely to mean: equal but for case and punctuation, or but
/// for a few letters. Nothing where no name is that close.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view wrong,
                                                      std::span<const std::string> names);

/// What to answer to a name that does not exist: "no network 'ResNet-50'; did you mean
/// 'resnet50'?", or `otherwise` where no name is close.
[[nodiscard]] std::string suggest_name(std::string_view kind, std::string_view wrong,
                                       std::span<const std::string> names, std::string otherwise);

}  // namespace spillway::cli
