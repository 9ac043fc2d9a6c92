#include "src/cli/bench/bench_machine.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace spillway::cli {
namespace {

// Of the host, which pages in software; nothing on a GPU.
std::optional<std::string> paging_of(const um::Device& device, const std::string& wanted) {
  const std::vector<um::Capability> all = device.capabilities();
  const auto uffd = std::ranges::find(all, "uffd_move", &um::Capability::name);
  if (uffd == all.end()) return std::nullopt;
  if (wanted != "auto") return wanted;
  return uffd->available ? "uffd" : "memfd";
}

}  // namespace

BenchMachine bench_machine(const um::Device& device, const MemoryFlags& memory) {
  std::optional<std::string> paging = paging_of(device, memory.paging);
  return find_bench_machine(paging ? "host" : device.name(), std::move(paging));
}

}  // namespace spillway::cli
