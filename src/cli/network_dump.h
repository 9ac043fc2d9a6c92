#pragma once

#include <string>

#include "nets/families/network_catalogue.h"
#include "src/cli/flags/cli11.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace spillway::cli {

/// The flag --dump: writes a network as a file that --net reads.
struct NetworkDump {
  std::string path;  ///< empty: it is not wanted; "-" is standard output

  /// Returns the option.
  CLI::Option* add_to(CLI::App& app);

  [[nodiscard]] bool is_wanted() const { return !path.empty(); }
  /// Throws: um::Error when it cannot be written, or the network cannot be built.
  void write(const nets::CatalogueEntry& entry, const nets::NetworkOptions& options) const;
};

}  // namespace spillway::cli
