#include "um/machine/plug_in.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <climits>
#include <optional>
#include <system_error>

#include "um/error.h"

namespace spillway::um {
namespace {

std::optional<std::string> path_of(const PlugIn& plug_in) {
  std::error_code error;  // set for folders that cannot be read; ignored
  for (const std::filesystem::path& folder : plug_in.folders) {
    if (folder.is_relative()) continue;  // relative to a folder that others may write to
    if (std::filesystem::exists(folder / plug_in.file, error)) return folder / plug_in.file;
  }
  return std::nullopt;
}

/// Returns an empty path if the system does not tell.
std::filesystem::path folder_of_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

}  // namespace

std::vector<std::filesystem::path> folders_of_program(const std::string& libraries) {
  const std::filesystem::path program = folder_of_program();
  return {program, program / libraries};
}

// A library that was loaded by a relative path keeps that path when the current folder changes. The
// program itself has no name in the loader's list, and dlinfo() crashes when asked for its folder.
std::filesystem::path folder_of(const void* code) {
  Dl_info info{};
  void* loaded = nullptr;
  std::array<char, PATH_MAX> folder{};
  if (dladdr1(code, &info, &loaded, RTLD_DL_LINKMAP) == 0) return {};
  if (*static_cast<const link_map*>(loaded)->l_name == '\0') return folder_of_program();
  if (dlinfo(loaded, RTLD_DI_ORIGIN, folder.data()) != 0) return {};
  // The path may end with "/.", which stands for the folder itself.
  return (std::filesystem::path{folder.data()} / "file").lexically_normal().parent_path();
}

void* address_in(void* library, const std::string& name) { return dlsym(library, name.c_str()); }

void* load_plug_in(const PlugIn& plug_in) {
  const std::optional<std::string> path = path_of(plug_in);
  if (!path) throw Error{plug_in.if_absent};
  void* const library = dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const std::string error = dlerror();
    throw Error{"its library cannot be loaded: " + error + "; " + plug_in.if_broken};
  }
  const auto build =
      reinterpret_cast<const char* (*)()>(address_in(library, plug_in.build_function));
  if (build == nullptr || build() != plug_in.build) {
    throw Error{*path + " is of another build of spillway; " + plug_in.if_foreign};
  }
  return library;
}

}  // namespace spillway::um
