#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "src/ranks/communicator.h"

namespace spillway {

/// Returns whether a launcher (mpirun, Slurm's srun, another PMI) started this process as one of
/// several ranks. Reads only the environment.
[[nodiscard]] bool started_with_ranks();

/// Processes that a launcher without MPI announces, this one included.
struct AnnouncedRanks {
  std::string variable;  ///< environment variable that says so
  std::size_t ranks = 0;
  std::string start;  ///< command to start as many with MPI, without the program: "mpirun -n 4"
};

/// Environment variables in which a launcher announces the number of processes and the rank. One of
/// them alone may be left over from elsewhere.
struct Announcement {
  const char* ranks;
  const char* rank;
  const char* start;  ///< command that starts MPI processes there, without their number
};
inline constexpr std::array kAnnouncements{
    Announcement{"SLURM_NTASKS", "SLURM_PROCID", "srun --mpi=pmix -n "},
    Announcement{"WORLD_SIZE", "RANK", "mpirun -n "},  // torchrun
    Announcement{"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "mpirun -n "},
    Announcement{"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "mpirun -n "},
    Announcement{"FLUX_JOB_SIZE", "FLUX_TASK_RANK", "mpirun -n "}};

/// Returns what torchrun, a batch script of Slurm or another launcher announces; nothing for a
/// single process. Reads only the environment.
[[nodiscard]] std::optional<AnnouncedRanks> announced_ranks();

/// Returns false if a launcher started this process as another rank than 0. For messages before
/// ranks have joined. Reads only the environment.
[[nodiscard]] bool is_started_first();

/// Opens this rank's end of MPI's world with libspillway_mpi.so. Looks for the library beside the
/// program, in its installed place and on the system's path. Its destructor finalises MPI, so a
/// process can open it only once, and must destroy it before main() returns. If it is destroyed by
/// an exception, the launcher ends the other ranks.
/// Throws: um::Error, one sentence with advice, when the library is missing, cannot be loaded or is
/// of another build, or MPI cannot be used.
[[nodiscard]] std::unique_ptr<Communicator> open_mpi(const CommunicatorOptions& options = {});

/// MPI in a library of its own (libspillway_mpi.so), so that the program starts without MPI.
class MpiPlugin {
 public:
  virtual ~MpiPlugin() = default;
  /// Initialises MPI. `launched`: the number of ranks that the launcher announces, if it does.
  /// Throws: um::Error, one sentence with advice, when MPI cannot be used.
  [[nodiscard]] virtual std::unique_ptr<Communicator> open(
      const CommunicatorOptions& options, std::optional<std::size_t> launched) const = 0;
};

/// Functions that the library exports with C linkage. The build names version and compiler. A
/// program calls nothing else of a library of another build, as the two share classes.
inline constexpr const char* kMpiBuildFunction = "spillway_mpi_build";
inline constexpr const char* kMpiPluginFunction = "spillway_mpi_plugin";
using MpiPluginFunction = const MpiPlugin* (*)();

}  // namespace spillway
