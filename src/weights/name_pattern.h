#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway {

/// Names of one form: '#' stands for digits and '*' for any characters, at least one of each, as in
/// "h.#.ln_#.*". Of a list in braces, "{q,k}_proj", names have one of its words.

/// What stands for the '#' and '*' of `pattern`, which has no list, in `name`, in order; nothing
/// where the name has another form, or is longer than any name of a network.
[[nodiscard]] std::optional<std::vector<std::string>> match_name(std::string_view pattern,
                                                                 std::string_view name);

/// `pattern` with `parts` for its '#' and '*', in order. Requires: as many as it has, or more.
[[nodiscard]] std::string fill_name(std::string_view pattern, std::span<const std::string> parts);

/// The patterns of which `pattern` is one, with each word of its list; itself where it has none.
[[nodiscard]] std::vector<std::string> each_word_of(const std::string& pattern);

}  // namespace spillway
