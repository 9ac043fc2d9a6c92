#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "src/ranks/communicator.h"

namespace spillway {

/// True where a launcher (mpirun, Slurm's srun, another PMI) started this process as one rank of
/// several. Reads the environment; loads nothing.
[[nodiscard]] bool started_with_ranks();

/// Processes of which a launcher that starts no MPI says that this is one.
struct AnnouncedRanks {
  std::string variable;  ///< of the environment, which says so
  std::size_t ranks = 0;
  std::string start;  ///< how to start as many with MPI, but for the program: "mpirun -n 4"
};

/// Variables by which a launcher tells a process how many there are, and which one it is. One of
/// them alone may be left from elsewhere.
struct Announcement {
  const char* ranks;
  const char* rank;
  const char* start;  ///< what starts MPI's processes there, but for their number
};
inline constexpr std::array kAnnouncements{
    Announcement{"SLURM_NTASKS", "SLURM_PROCID", "srun --mpi=pmix -n "},
    Announcement{"WORLD_SIZE", "RANK", "mpirun -n "},  // torchrun
    Announcement{"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "mpirun -n "},
    Announcement{"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "mpirun -n "},
    Announcement{"FLUX_JOB_SIZE", "FLUX_TASK_RANK", "mpirun -n "}};

/// What torchrun, a batch script of Slurm or another launcher announces; nothing where that is one
/// process alone. Reads the environment; loads nothing.
[[nodiscard]] std::optional<AnnouncedRanks> announced_ranks();

/// False where a launcher started this process as another rank than the first. For what ranks say
/// before they have joined each other. Reads the environment; loads nothing.
[[nodiscard]] bool is_started_first();

/// This rank's end of MPI's world, by libspillway_mpi.so, which is loaded from beside the program,
/// from where it is installed, or from where the system looks for libraries. At its end it takes
/// leave of MPI, so it can be opened once in a process. It ends before main() does; where it ends
/// by an exception, the launcher ends the other ranks.
/// Throws: um::Error, one sentence that says what to do, where the library is not there, cannot be
/// loaded or is of another build, or where MPI cannot be used.
[[nodiscard]] std::unique_ptr<Communicator> open_mpi(const CommunicatorOptions& options = {});

}  // namespace spillway
