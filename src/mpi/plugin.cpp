// libspillway_mpi.so: MPI as src/mpi/mpi_plugin.h describes it.
#include <cstddef>
#include <memory>
#include <optional>

#include "src/mpi/enter_mpi.h"
#include "src/mpi/mpi_plugin.h"

namespace spillway {
namespace {

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
