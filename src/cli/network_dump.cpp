#include "src/cli/network_dump.h"

#include <CLI/CLI.hpp>

#include "nets/text/network_text.h"
#include "src/cli/flags/output_path.h"

namespace spillway::cli {

CLI::Option* NetworkDump::add_to(CLI::App& app) {
  return app
      .add_option_function<std::string>(
          "--dump", [this](const std::string& value) { path = value.empty() ? "-" : value; },
          "Write the network to this file, which --net reads; - or nothing for standard output")
      ->expected(0, 1)
      ->type_name("FILE");
}

void NetworkDump::write(const nets::CatalogueEntry& entry,
                        const nets::NetworkOptions& options) const {
  write_text(nets::to_text(entry, options), path);
}

}  // namespace spillway::cli
