#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "src/ranks/communicator.h"

namespace spillway {

/// MpiPlugin::open(). Where the process has entered MPI already, with a sufficient thread level, it
/// is left to who did.
[[nodiscard]] std::unique_ptr<Communicator> enter_mpi(const CommunicatorOptions& options,
                                                      std::optional<std::size_t> launched);

}  // namespace spillway
