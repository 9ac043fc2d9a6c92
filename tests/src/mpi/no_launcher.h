#pragma once

#include <cstdlib>

#include "src/mpi/open_mpi.h"

namespace spillway::test {

/// Removes what a launcher has put into this process's environment, so that tests see none where
/// they run in a batch script, or as a rank.
inline void forget_launcher() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE",
                                 "PMI_RANK", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}) {
    unsetenv(name);
  }
  for (const Announcement& announcement : kAnnouncements) {
    unsetenv(announcement.ranks);
    unsetenv(announcement.rank);
  }
}

}  // namespace spillway::test
