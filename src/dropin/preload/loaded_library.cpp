#include "src/dropin/preload/loaded_library.h"

#include <link.h>

#include <cstring>
#include <string_view>

namespace spillway::dropin {
namespace {

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

}  // namespace

LoadedPath loaded_library(const char* name) noexcept {
  Search search{.name = name};
  dl_iterate_phdr(&visit, &search);
  return search.found;
}

}  // namespace spillway::dropin
