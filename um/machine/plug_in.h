#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace spillway::um {

/// A library that a program loads only when it needs it.
struct PlugIn {
  std::string file;                            ///< "libspillway_cuda.so"
  std::vector<std::filesystem::path> folders;  ///< searched in this order
  std::string build_function;  ///< name of its const char*() that must return `build`, since both
                               ///< share classes
  std::string build;
  std::string if_absent;   ///< error message if no folder has the file
  std::string if_broken;   ///< what to do if loading fails, as half a sentence
  std::string if_foreign;  ///< what to do if it belongs to another build
};

/// Returns the folders of the running program's plug-ins: the program's own, then `libraries`
/// relative to it.
[[nodiscard]] std::vector<std::filesystem::path> folders_of_program(const std::string& libraries);

/// Returns the folder of the program or library that holds `code`, as it was loaded; empty if the
/// system does not tell.
[[nodiscard]] std::filesystem::path folder_of(const void* code);

/// Loads the plug-in by its absolute path, for the rest of the process. Does not search relative
/// folders or those that the environment names. Throws: um::Error, one sentence that says what to
/// do.
[[nodiscard]] void* load_plug_in(const PlugIn& plug_in);

/// Returns null if the library has no symbol of that name.
[[nodiscard]] void* address_in(void* library, const std::string& name);

}  // namespace spillway::um
