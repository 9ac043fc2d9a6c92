#include "um/host/host_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <optional>
#include <system_error>
#include <thread>

#include "um/error.h"
#include "um/host/copy_space.h"
#include "um/host/managed/fault_signal.h"
#include "um/host/managed/managed_region.h"
#include "um/host/managed/uffd_move.h"
#include "um/machine/available_memory.h"
#include "um/threads/thread_stream.h"

namespace spillway::um {
namespace {

/// Returns "AMD EPYC 9754", or "unknown processor" when the kernel does not report it.
std::string processor() {
  std::ifstream file{"/proc/cpuinfo"};
  std::string line;
  while (std::getline(file, line)) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

Capability huge_pages() {
  std::ifstream file{"/sys/kernel/mm/transparent_hugepage/enabled"};  // "always [madvise] never"
  std::string line;
  std::getline(file, line);
  if (line.find("[always]") != std::string::npos || line.find("[madvise]") != std::string::npos) {
    return {.name = "huge_pages", .available = true, .comment = "near memory in pages of 2 MiB"};
  }
  return {.name = "huge_pages",
          .available = false,
          .comment = line.empty() ? "this kernel has no transparent huge pages"
                                  : "turned off in /sys/kernel/mm/transparent_hugepage/enabled"};
}

Capability uffd_move() {
  const std::optional<std::string> reason = probe_uffd_move();
  return {.name = "uffd_move",
          .available = !reason,
          .comment = reason.value_or(
              "pages migrate without a copy, faults are served in user space (--paging uffd)")};
}

Capability memfd_segv() {
  const int descriptor = memfd_create("spillway-probe", MFD_CLOEXEC);
  const int failure = errno;
  if (descriptor < 0) {
    return {.name = "memfd_segv",
            .available = false,
            .comment = "memfd_create: " + std::generic_category().message(failure)};
  }
  close(descriptor);
  return {.name = "memfd_segv",
          .available = true,
          .comment = "pages are mapped from a memfd, on any Linux (--paging memfd)"};
}

}  // namespace

std::string HostDevice::name() const {
  const unsigned cpus = std::thread::hardware_concurrency();
  return "host (" + processor() + ", " + std::to_string(cpus) + (cpus == 1 ? " CPU)" : " CPUs)");
}

std::vector<Capability> HostDevice::capabilities() const {
  return {uffd_move(), memfd_segv(), huge_pages()};
}

Bytes HostDevice::available_memory() const { return usable_memory(); }

MemoryFacts HostDevice::memory_facts() const {
  return {.total = Bytes{static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))},
          .is_host = true};
}

void HostDevice::prepare_kernel_thread() { make_fault_stack(); }

std::unique_ptr<Stream> HostDevice::make_stream(const std::string& name) {
  return std::make_unique<ThreadStream>(name);
}

std::unique_ptr<ManagedSpace> HostDevice::make_managed_space(const ManagedOptions& options,
                                                             Ledger& ledger) {
  if (options.gpu.oversubscribe) {
    throw Error{"the host keeps to its budget: --oversubscribe is for --device cuda"};
  }
  if (options.gpu.discards) {
    throw Error{"the host always drops dead pages: --discard is for --device cuda"};
  }
  if (!options.gpu.graph) {
    throw Error{"the host has no CUDA graphs: --graph is for --device cuda"};
  }
  return make_managed_region(options, ledger);
}

std::unique_ptr<CopySpace> HostDevice::make_copy_space(const CopyOptions& options) {
  return std::make_unique<HostCopySpace>(options);
}

}  // namespace spillway::um
