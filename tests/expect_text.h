#pragma once

#include <string>

namespace spillway::test {

/// Compares `actual` with the golden text at `path`, which is relative to tests/, and fails the
/// test with the first lines that differ. With SPILLWAY_UPDATE=1 in the environment, writes the
/// file.
void expect_text(const std::string& path, const std::string& actual);

/// The text with each `from` replaced.
[[nodiscard]] std::string with_all_replaced(std::string text, const std::string& from,
                                            const std::string& to);

}  // namespace spillway::test
