#include "src/cli/network_dump.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "nets/text/network_text.h"
#include "um/error.h"
#include "um/files/output_file.h"

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
  const std::string text = nets::to_text(entry, options);
  if (path == "-") {
    std::cout << text << std::flush;
    if (!std::cout) throw um::Error{"cannot write to standard output"};
    return;
  }
  um::write_output(path, text);
}

}  // namespace spillway::cli
