#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "um/bytes.h"

namespace spillway::um {

/// The machine, as the probe of its memory sees it.
struct MemoryToTouch {
  std::function<Bytes()> available;  ///< according to the system, now
  /// Takes more bytes until the probe is over. Returns false when the system refuses them.
  std::function<bool(Bytes)> take;
  /// Gives the machine time to grow.
  std::function<void()> pause;
};

/// Returns how much memory is available to a program that needs `wanted` bytes. Touches memory,
/// since some virtual machines grow only when memory is used, and counts what was touched.
/// Continues while the machine makes up for it, until `wanted` bytes are there. Never takes more
/// than half of what was available at first, nor more than 4 GiB, before the machine has made up
/// for it. Touches nothing when `wanted` is hundreds of times what is available.
[[nodiscard]] Bytes available_when_touched(Bytes wanted, const MemoryToTouch& memory);

/// As above, for this machine; frees what was touched.
[[nodiscard]] Bytes available_when_touched(Bytes wanted);

/// Returns the memory that this process could additionally use now without swapping. This is the
/// smaller of the system's available memory and the room left by its memory cgroups (version 1 or
/// 2). `root` is the folder that contains proc and sys.
/// Throws: Error when /proc/meminfo cannot be read.
[[nodiscard]] Bytes available_memory(const std::filesystem::path& root = "/");

/// Memory of a running training besides its near and far memory: oneDNN's generated code, batches
/// loaded ahead, thread stacks. 10 to 30 MiB were measured with LeNet, ResNet-18 and GoogLeNet.
inline constexpr Bytes kBesideTraining = 32_MiB;

/// Returns available_memory() less kBesideTraining: the most that near memory and far memory in RAM
/// may take.
[[nodiscard]] Bytes usable_memory(const std::filesystem::path& root = "/");

/// Returns the RAM that this process has now. 0 when /proc/self/statm cannot be read.
[[nodiscard]] Bytes resident_memory(const std::filesystem::path& root = "/");

/// Returns the most RAM that this process has had at any time so far.
[[nodiscard]] Bytes peak_resident_memory();

/// Returns the most memory that this process's memory cgroup (version 1 or 2) has had since it was
/// made, file pages and all; nullopt without a cgroup of its own, or where the kernel does not
/// tell.
[[nodiscard]] std::optional<Bytes> peak_of_cgroup(const std::filesystem::path& root = "/");

/// Throws: OutOfMemory unless `size` and `beside` are available, now or after touching memory
/// (available_when_touched()). Without this check the kernel accepts, and ends the process when
/// pages run out. The message names the failed `deed`, as in "take 3 GiB of near memory", and gives
/// `advice`, as in "use a smaller budget".
void expect_available(Bytes size, const std::string& deed, const std::string& advice,
                      Bytes beside = {});

}  // namespace spillway::um
