#include "src/dropin/preload/real_runtime.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace spillway::dropin {
namespace {

// A path, or "".
using LoadedPath = std::array<char, PATH_MAX>;

struct Search {
  std::string_view name;
  LoadedPath found{};
};

int visit(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  Search& search = *static_cast<Search*>(data);
  const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (!file.starts_with(search.name) || path.size() >= search.found.size()) return 0;
  std::memcpy(search.found.data(), path.data(), path.size());
  return 1;
}

// Returns the path of the first loaded library with a file name that begins with `name`:
// "libcudart.so" finds libcudart.so.13. Complexity: O(loaded libraries).
LoadedPath loaded_library(const char* name) noexcept {
  Search search{.name = name};
  dl_iterate_phdr(&visit, &search);
  return search.found;
}

// The bytes of a file, or none.
class MappedFile {
 public:
  explicit MappedFile(const char* path) noexcept {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat facts {};
    if (fstat(file, &facts) == 0 && facts.st_size > 0) {
      const auto size = static_cast<std::size_t>(facts.st_size);
      void* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
      if (mapped != MAP_FAILED) bytes_ = {static_cast<const char*>(mapped), size};
    }
    close(file);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }

  // Returns `count` elements at `offset`; null when the file is too short.
  template <class T>
  [[nodiscard]] const T* at(std::size_t offset, std::size_t count) const noexcept {
    const bool fits = offset <= bytes_.size() && count <= (bytes_.size() - offset) / sizeof(T);
    return fits ? reinterpret_cast<const T*>(bytes_.data() + offset) : nullptr;
  }

 private:
  std::string_view bytes_;
};

// Returns whether the executable has the section `name`.
bool has_section(std::string_view name) noexcept {
  const MappedFile file{"/proc/self/exe"};
  const auto* const header = file.at<ElfW(Ehdr)>(0, 1);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return false;
  const auto* const sections = file.at<ElfW(Shdr)>(header->e_shoff, header->e_shnum);
  if (sections == nullptr || header->e_shstrndx >= header->e_shnum) return false;
  const ElfW(Shdr)& table = sections[header->e_shstrndx];
  const char* const names = file.at<char>(table.sh_offset, table.sh_size);
  if (names == nullptr) return false;
  for (std::size_t i = 0; i < header->e_shnum; ++i) {
    const std::size_t begin = sections[i].sh_name;
    const bool fits = begin < table.sh_size && name.size() < table.sh_size - begin;
    if (fits && std::string_view{names + begin, name.size()} == name &&
        names[begin + name.size()] == '\0') {
      return true;
    }
  }
  return false;
}

bool is_loaded(const char* name) noexcept { return loaded_library(name).front() != '\0'; }

}  // namespace

void* find_real_function(const char* name) noexcept {
  void* const next = dlsym(RTLD_NEXT, name);
  if (next != nullptr) return next;
  const LoadedPath path = loaded_library("libcudart.so");
  if (path.front() == '\0') return nullptr;
  void* const runtime = dlopen(path.data(), RTLD_LAZY | RTLD_NOLOAD);
  return runtime == nullptr ? nullptr : dlsym(runtime, name);
}

bool is_bypassed() noexcept {
  if (is_loaded("libcudart.so")) return false;
  return is_loaded("libcuda.so") || has_section(".nv_fatbin");
}

}  // namespace spillway::dropin
