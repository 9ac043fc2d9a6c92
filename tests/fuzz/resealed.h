#pragma once

#include <optional>
#include <string>

#include "tests/fuzz/mutation.h"

namespace spillway::fuzz {

/// `text`, a JSON document, with one to three of its values changed, left out, doubled or taken
/// from elsewhere in it; numbers mostly become ones at the edge of some range. It stays JSON, so
/// that what stands behind the parser is reached. Nothing where `text` is none, or is very large.
[[nodiscard]] std::optional<std::string> spoilt_json(const std::string& text, Generator& generator);

/// The manifest of a checkpoint with the digest that it should have; nothing for other texts. A
/// digest tells damage: whoever may write a file may write a fitting one, too.
[[nodiscard]] std::optional<std::string> resealed_manifest(const std::string& text);

/// A plan or profile, which tells of which graph it is, as if it were of another: that of `known`.
/// Nothing where either does not tell it.
[[nodiscard]] std::optional<std::string> restamped(const std::string& text,
                                                   const std::string& known);

}  // namespace spillway::fuzz
