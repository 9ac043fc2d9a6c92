#include "src/dropin/preload/bypass.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string_view>

#include "src/dropin/preload/loaded_library.h"

namespace spillway::dropin {
namespace {

/// A file's bytes, or none.
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

  /// `count` elements at `offset`; null when the file does not have them.
  template <class T>
  [[nodiscard]] const T* at(std::size_t offset, std::size_t count) const noexcept {
    const bool fits = offset <= bytes_.size() && count <= (bytes_.size() - offset) / sizeof(T);
    return fits ? reinterpret_cast<const T*>(bytes_.data() + offset) : nullptr;
  }

 private:
  std::string_view bytes_;
};

/// Whether the executable has a section of this name.
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

bool is_bypassed() noexcept {
  if (is_loaded("libcudart.so")) return false;
  return is_loaded("libcuda.so") || has_section(".nv_fatbin");
}

}  // namespace spillway::dropin
