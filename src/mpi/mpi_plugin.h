#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "src/ranks/communicator.h"

namespace spillway {

/// MPI, in a library of its own (libspillway_mpi.so), so that the program starts where MPI is
/// absent.
class MpiPlugin {
 public:
  virtual ~MpiPlugin() = default;
  /// Enters MPI. `launched`: how many ranks the launcher says that it started, where it does.
  /// Throws: um::Error, one sentence that says what to do, where MPI cannot be used.
  [[nodiscard]] virtual std::unique_ptr<Communicator> open(
      const CommunicatorOptions& options, std::optional<std::size_t> launched) const = 0;
};

/// What the library exports, with C linkage. The build says version and compiler: a program calls
/// nothing else of a library whose build is not its own, since the two share classes.
inline constexpr const char* kMpiBuildFunction = "spillway_mpi_build";
inline constexpr const char* kMpiPluginFunction = "spillway_mpi_plugin";
using MpiPluginFunction = const MpiPlugin* (*)();

}  // namespace spillway
