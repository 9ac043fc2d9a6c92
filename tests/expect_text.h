#pragma once

#include <map>
#include <set>
#include <string>

namespace spillway::test {

/// Compares `actual` with a section of the golden file at `path`, which is relative to tests/, and
/// fails the test with the first lines that differ. A section begins with a line `=== NAME`. With
/// SPILLWAY_UPDATE=1 in the environment, writes this section and leaves the others.
///
/// Requires: `actual` ends with a newline, and none of its lines begins a section.
void expect_text(const std::string& path, const std::string& section, const std::string& actual);

/// Returns the text of each section of the golden file at `path`, by its name.
[[nodiscard]] std::map<std::string, std::string> golden_sections(const std::string& path);

/// Fails the test for each section of the file that is not one of `sections`. With
/// SPILLWAY_UPDATE=1 in the environment, removes it.
void expect_only_sections(const std::string& path, const std::set<std::string>& sections);

/// The text with each `from` replaced.
[[nodiscard]] std::string with_all_replaced(std::string text, const std::string& from,
                                            const std::string& to);

}  // namespace spillway::test
