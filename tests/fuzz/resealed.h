#pragma once

#include <optional>
#include <string>

#include "tests/fuzz/mutation.h"

namespace spillway::fuzz {

/// Returns the JSON document `text` with one to three values changed, removed, doubled or copied
/// from elsewhere in it. Numbers mostly move to the edge of some range. The result stays JSON, so
/// that code after the parser is reached. Nothing if `text` is very large or is not JSON.
[[nodiscard]] std::optional<std::string> spoilt_json(const std::string& text, Generator& generator);

/// Returns the manifest of a checkpoint with a valid digest; nothing for other texts. A digest
/// detects accidental damage, but a user who can write the file can update it.
[[nodiscard]] std::optional<std::string> resealed_manifest(const std::string& text);

/// Returns a plan or profile with the graph's stamp of `known`. Nothing if either has none.
[[nodiscard]] std::optional<std::string> restamped(const std::string& text,
                                                   const std::string& known);

}  // namespace spillway::fuzz
