#include "src/cli/flags/sub_batch_flag.h"

#include <CLI/CLI.hpp>

#include "src/cli/flags/complaint.h"

namespace spillway::cli {
namespace {

std::string check(const std::string& text) {
  return complaint_of([&] { expect_sub_batch(text); });
}

}  // namespace

void SubBatchOption::add_to(CLI::App& app, const std::string& help) {
  app.add_option("--sub-batch", text, help)->check(check)->capture_default_str()->group("Planning");
}

void SubBatchOption::add_to_plan(CLI::App& app) {
  add_to(app,
         "Gradient accumulation over sub-batches of at most N images: N, auto (by moDNN's Eq. 3 "
         "for modnn and vdnn+, by trial for the others), or off. Figures are for the whole batch, "
         "--timeline is of its last sub-batch. Needs --machine");
}

void SubBatchOption::add_to_train(CLI::App& app) {
  add_to(
      app,
      "Gradient accumulation over sub-batches of at most N images: N, auto (chosen as by spillway "
      "plan), or off. A --budget in percent or from min refers to the whole batch. Batch norm "
      "normalizes each sub-batch by itself. --resume takes the checkpoint's; --plan and --profile "
      "need off");
}

}  // namespace spillway::cli
