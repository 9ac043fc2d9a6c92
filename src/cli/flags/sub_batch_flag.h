#pragma once

#include <string>

#include "src/cli/flags/cli11.h"
#include "src/plan/sub_batch_plans.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// The flag --sub-batch of `spillway plan` and `spillway train`.
struct SubBatchOption : SubBatchChoice {
  void add_to_plan(CLI::App& app);
  void add_to_train(CLI::App& app);

 private:
  void add_to(CLI::App& app, const std::string& help);
};

}  // namespace spillway::cli
