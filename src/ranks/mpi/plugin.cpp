// libspillway_mpi.so: MPI as src/ranks/mpi/open_mpi.h describes it.
#include <mpi.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "src/ranks/communicator.h"
#include "src/ranks/mpi/mpi_communicator.h"
#include "src/ranks/mpi/open_mpi.h"
#include "um/error.h"

namespace spillway {
namespace {

// Restores signal handlers: Open MPI replaces them to print a stack, but page faults of managed
// memory are signals, too.
class KeptSignals {
 public:
  KeptSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &actions_[i]);
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;
  ~KeptSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &actions_[i], nullptr);
  }

 private:
  static constexpr std::array kSignals{SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
  std::array<struct sigaction, kSignals.size()> actions_{};
};

// Initialises MPI. Returns false if it was initialised before.
bool enter() {
  int is_over = 0;
  check_mpi(MPI_Finalized(&is_over), "MPI does not say whether it is over");
  if (is_over != 0) throw um::Error{"this process has left MPI, which can be entered only once"};
  int is_in = 0;
  check_mpi(MPI_Initialized(&is_in), "MPI does not say whether it has begun");
  int level = MPI_THREAD_SINGLE;
  if (is_in != 0) {
    check_mpi(MPI_Query_thread(&level), "MPI does not say what threads may do");
  } else {
    const KeptSignals signals;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level),
              "MPI cannot be entered");
  }
  if (level < MPI_THREAD_SERIALIZED) {
    throw um::Error{
        "this MPI lets only one thread of a process call it, but gradients are exchanged by "
        "another one than the first: use an MPI that was built with MPI_THREAD_SERIALIZED"};
  }
  return is_in == 0;
}

// Implements MpiPlugin::open(). If the process has already initialised MPI, with a sufficient
// thread level, leaves its end to that code.
std::unique_ptr<Communicator> enter_mpi(const CommunicatorOptions& options,
                                        std::optional<std::size_t> launched) {
  const bool leaves_mpi = enter();
  int ranks = 0;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &ranks), "MPI does not say how many ranks there are");
  if (ranks == 1 && launched.value_or(1) > 1) {
    throw um::Error{"the launcher started " + std::to_string(*launched) +
                    " processes, but MPI sees this one alone: start them with the mpirun of the "
                    "MPI that spillway was built with, or with srun --mpi=pmix"};
  }
  return std::make_unique<MpiCommunicator>(std::make_unique<MpiMessages>(options.time_limit),
                                           leaves_mpi);
}

class Plugin final : public MpiPlugin {
 public:
  [[nodiscard]] std::unique_ptr<Communicator> open(
      const CommunicatorOptions& options, std::optional<std::size_t> launched) const override {
    return enter_mpi(options, launched);
  }
};

}  // namespace

}  // namespace spillway

extern "C" {

[[gnu::visibility("default")]] const char* spillway_mpi_build() { return SPILLWAY_BUILD; }

[[gnu::visibility("default")]] const spillway::MpiPlugin* spillway_mpi_plugin() {
  static const spillway::Plugin plugin;
  return &plugin;
}

}  // extern "C"
