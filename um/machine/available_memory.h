#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "um/bytes.h"

namespace spillway::um {

/// What a probe of the machine's memory does.
struct MemoryToTouch {
  std::function<Bytes()> available;  ///< as the system says now
  /// Takes so many bytes more, until the probe is over. False when the system refuses them.
  std::function<bool(Bytes)> take;
  /// Gives a machine a moment to grow.
  std::function<void()> pause;
};

/// What there is for whoever wants `wanted` bytes, of a virtual machine that gets memory only as it
/// uses it: what is available when some has been touched, and what was touched. Goes on as long as
/// the machine makes up for that, until `wanted` bytes are there. Never takes more than half of
/// what was available at first, nor more than 4 GiB, before the machine has made up for it: a
/// machine whose memory does not grow is left with the rest. Touches nothing for whoever wants
/// hundreds of times what is available: no machine grows so far.
[[nodiscard]] Bytes available_when_touched(Bytes wanted, const MemoryToTouch& memory);

/// The same of this machine; what was touched is given back.
[[nodiscard]] Bytes available_when_touched(Bytes wanted);

/// The memory this process could use more of now without swapping: what the system has available,
/// or the room its memory cgroups (version 2 or 1) leave, whichever is smaller. `root` is the
/// folder that holds proc and sys.
/// Throws: Error when /proc/meminfo cannot be read.
[[nodiscard]] Bytes available_memory(const std::filesystem::path& root = "/");

/// What a training takes beside its near and far memory once it has begun: the code that oneDNN
/// makes for its kernels, the batches loaded ahead, the stacks of its threads. 10 to 30 MiB were
/// measured with LeNet, ResNet-18 and GoogLeNet.
inline constexpr Bytes kBesideTraining = 32_MiB;

/// available_memory() less kBesideTraining: what near and far memory in RAM may take of it.
[[nodiscard]] Bytes usable_memory(const std::filesystem::path& root = "/");

/// Throws: OutOfMemory unless `size` is available, and `beside` with it, now or when a part has
/// been touched (available_when_touched()): the kernel would say yes all the same, and end the
/// process when it runs out of pages. Its sentence says what cannot be done, as in "take 3 GiB of
/// near memory", and what to do instead, as in "use a smaller budget".
void expect_available(Bytes size, const std::string& deed, const std::string& advice,
                      Bytes beside = {});

}  // namespace spillway::um
