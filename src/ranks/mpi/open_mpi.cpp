#include "src/ranks/mpi/open_mpi.h"

#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>

#include "src/ranks/rank_names.h"
#include "um/machine/plug_in.h"

namespace spillway {
namespace {

// Returns the first of these environment variables that is a number.
std::optional<std::size_t> number_in(std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    if (const auto number = parse_rank_count(value)) return number;
  }
  return std::nullopt;
}

// Returns the number of ranks that the launcher announces: Open MPI's mpirun, a PMI launcher
// (MPICH's, Intel's) or Slurm's srun. Ignores SLURM_NTASKS: a batch script with one ordinary
// process has it, too.
std::optional<std::size_t> launched_ranks() {
  const auto ranks = number_in({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"});
  return ranks == std::size_t{0} ? std::nullopt : ranks;
}

}  // namespace

std::optional<AnnouncedRanks> announced_ranks() {
  for (const auto& [variable, rank, start] : kAnnouncements) {
    const std::size_t ranks = number_in({variable}).value_or(1);
    if (ranks < 2 || !number_in({rank})) continue;
    return AnnouncedRanks{
        .variable = variable, .ranks = ranks, .start = start + std::to_string(ranks)};
  }
  return std::nullopt;
}

bool started_with_ranks() {
  return launched_ranks().value_or(1) > 1 || std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr ||
         std::getenv("PMI_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr;
}

bool is_started_first() {
  return number_in({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}).value_or(0) ==
         0;
}

std::unique_ptr<Communicator> open_mpi(const CommunicatorOptions& options) {
  const std::string file = "libspillway_mpi.so";
  void* const library = um::load_plug_in(
      {.file = file,
       .folders = um::folders_of_program(SPILLWAY_LIBRARIES_FROM_PROGRAMS),
       .build_function = kMpiBuildFunction,
       .build = SPILLWAY_BUILD,
       .if_absent = "this build has no MPI side (" + file +
                    " was not found); build it where Open MPI is, or start one process without "
                    "mpirun",
       .if_broken = "if Open MPI's libraries are installed elsewhere, put their folder in "
                    "LD_LIBRARY_PATH, or start one process without mpirun",
       .if_foreign = "install both from the same, or start one process without mpirun"});
  const auto plugin =
      reinterpret_cast<MpiPluginFunction>(um::address_in(library, kMpiPluginFunction));
  return plugin()->open(options, launched_ranks());
}

}  // namespace spillway
