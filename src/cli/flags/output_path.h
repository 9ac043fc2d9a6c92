#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>

namespace spillway::cli {

/// Leaves nothing behind. An empty path and "-" are fine.
/// Throws: um::Error when a file cannot be written at `path`; so that a long run does not find out
/// at its end.
void expect_writable(const std::string& path);

/// Writes `text` to standard output where `path` is "-", else as um::write_output() does. Throws:
/// um::Error.
void write_text(const std::string& text, const std::string& path);

/// A flag and the path it was given, perhaps none.
struct NamedOutput {
  std::string flag;
  std::string path;
};

/// Throws: CLI::ValidationError when more than one output is "-": their documents would mix.
void expect_one_standard_output(std::initializer_list<NamedOutput> outputs);

/// Leaves nothing behind. Throws: um::Error when `folder` cannot be made or nothing written into
/// it.
void expect_writable_folder(const std::filesystem::path& folder);

}  // namespace spillway::cli
