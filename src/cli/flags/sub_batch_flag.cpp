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
         "Plan the batch in sub-batches of at most so many images, whose gradients are added up; "
         "auto: by moDNN's Eq. 3 for modnn and vdnn+, by trial for the others; off. The figures "
         "are the whole batch's, --timeline is its last sub-batch's; needs --machine");
}

void SubBatchOption::add_to_train(CLI::App& app) {
  add_to(
      app,
      "Train each batch in sub-batches of at most so many images, whose gradients are added up "
      "before the weights change; auto: as spillway plan chooses, by modelled times; off. A "
      "--budget in percent or from min is of the whole batch. Batch norm's statistics are of "
      "each sub-batch alone. With --resume it is the checkpoint's; --plan and --profile are of one "
      "step, and go with off alone");
}

}  // namespace spillway::cli
