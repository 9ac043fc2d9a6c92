#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "src/cli/commands.h"
#include "src/cli/flags/output_path.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "um/bytes.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

struct CheckpointVerifyFlags {
  std::string folder;
  std::string json;
};

void print(const CheckpointFinding& finding) {
  if (finding.problem) {
    fmt::print("{}: DOES NOT VERIFY: {}\n", finding.manifest, *finding.problem);
    return;
  }
  fmt::print("{}: step {} verifies, {} in {}\n", finding.manifest, *finding.step,
             um::count_of(finding.tensors, "tensor"), um::to_string(um::Bytes{finding.bytes}));
}

void verify(const CheckpointVerifyFlags& flags) {
  expect_writable(flags.json);
  const std::vector<CheckpointFinding> findings = verify_checkpoints(flags.folder);
  nlohmann::json list = nlohmann::json::array();
  for (const CheckpointFinding& finding : findings) {
    if (flags.json != "-") print(finding);
    nlohmann::json object{{"manifest", finding.manifest},
                          {"step", nullptr},
                          {"tensors", finding.tensors},
                          {"bytes", finding.bytes},
                          {"verified", !finding.problem}};
    if (finding.step) object["step"] = *finding.step;
    if (finding.problem) object["problem"] = *finding.problem;
    list.push_back(std::move(object));
  }
  if (!flags.json.empty()) {
    prefetch::write_json({{"folder", flags.folder}, {"manifests", list}}, flags.json);
  }
  const auto bad = static_cast<std::size_t>(std::ranges::count_if(
      findings, [](const CheckpointFinding& finding) { return finding.problem.has_value(); }));
  if (bad == 0) return;
  throw um::Error{fmt::format("{} of {} in {} {} not verify", bad,
                              um::count_of(findings.size(), "manifest"), flags.folder,
                              bad == 1 ? "does" : "do")};
}

}  // namespace

void add_checkpoint_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("checkpoint", "Look at the checkpoints in a folder of train --checkpoint");
  command->require_subcommand(1);
  CLI::App* const verifying = command->add_subcommand(
      "verify", "Compare every file of every checkpoint with its digest, and change nothing");
  const auto flags = std::make_shared<CheckpointVerifyFlags>();  // shared with the callback
  verifying->add_option("folder", flags->folder, "Folder of train --checkpoint")
      ->required()
      ->type_name("DIR");
  verifying->add_option("--json", flags->json,
                        "Write the findings to this file, - for standard output");
  verifying->footer(
      "A training may go on in the folder meanwhile. The exit status is 1 when anything does not "
      "verify; train --resume then goes on from the newest checkpoint that does.\n"
      "Example: spillway checkpoint verify run1");
  verifying->callback([flags] { verify(*flags); });
  command->footer("Example: spillway checkpoint verify run1");
}

}  // namespace spillway::cli
