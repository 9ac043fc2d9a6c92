#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace spillway {

/// A library that a program loads only when it is asked for what is in it.
struct PlugIn {
  std::string file;                            ///< "libspillway_cuda.so"
  std::vector<std::filesystem::path> folders;  ///< where it may be, the first that has it wins
  std::string build_function;  ///< its const char*(), to return `build`: both share classes
  std::string build;
  std::string if_absent;   ///< the sentence when it is nowhere
  std::string if_broken;   ///< what to do when it cannot be loaded, as half a sentence
  std::string if_foreign;  ///< what to do when it is of another build
};

/// Where a plug-in of the program under way may be: beside it, or in the folder `libraries` as seen
/// from there.
[[nodiscard]] std::vector<std::filesystem::path> folders_of_program(const std::string& libraries);

/// The folder of the program or library that holds `code`, as it was loaded; empty where the system
/// does not say.
[[nodiscard]] std::filesystem::path folder_of(const void* code);

/// Loads it, for the rest of the process, by its absolute path: folders that are relative to the
/// current one, and those that the environment names, are not searched. Throws: um::Error, one
/// sentence that says what to do.
[[nodiscard]] void* load_plug_in(const PlugIn& plug_in);

/// Null when it has none of that name.
[[nodiscard]] void* address_in(void* library, const std::string& name);

}  // namespace spillway
