#include "src/plugin/plug_in.h"

#include <dlfcn.h>

#include <system_error>

#include "um/error.h"

namespace spillway {
namespace {

std::string path_of(const PlugIn& plug_in) {
  std::error_code error;  // where nobody may look: the system knows places, too
  for (const std::filesystem::path& folder : plug_in.folders) {
    if (std::filesystem::exists(folder / plug_in.file, error)) return folder / plug_in.file;
  }
  return plug_in.file;
}

}  // namespace

std::vector<std::filesystem::path> folders_of_program(const std::string& libraries) {
  std::error_code error;  // without /proc the system knows places, too
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return {program, program / libraries};
}

void* address_in(void* library, const std::string& name) { return dlsym(library, name.c_str()); }

void* load_plug_in(const PlugIn& plug_in) {
  const std::string path = path_of(plug_in);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const std::string error = dlerror();
    if (path == plug_in.file) throw um::Error{plug_in.if_absent};
    throw um::Error{"its library cannot be loaded: " + error + "; " + plug_in.if_broken};
  }
  const auto build =
      reinterpret_cast<const char* (*)()>(address_in(library, plug_in.build_function));
  if (build == nullptr || build() != plug_in.build) {
    throw um::Error{path + " is of another build of spillway; " + plug_in.if_foreign};
  }
  return library;
}

}  // namespace spillway
