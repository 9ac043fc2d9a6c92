#pragma once

#include <string>

#include "prefetch/gradient_exchange.h"
#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// The flag --bucket: how gradients are put together to be exchanged between ranks.
struct BucketFlag {
  std::string size = "25MiB";

  CLI::Option* add_to(CLI::App& app, const std::string& group);

  [[nodiscard]] prefetch::BucketRule rule() const;
};

}  // namespace spillway::cli
