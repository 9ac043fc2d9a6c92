#include "src/cli/flags/suggest_name.h"

namespace spillway::cli {

std::string suggest_name(std::string_view kind, std::string_view wrong,
                         std::span<const std::string> names, std::string otherwise) {
  const auto nearest = nearest_name(wrong, names);
  if (!nearest) return otherwise;
  return "no " + std::string{kind} + " '" + std::string{wrong} + "'; did you mean '" + *nearest +
         "'?";
}

}  // namespace spillway::cli
