// The help of every subcommand, the manual page, and what is refused: word for word.

#include <gtest/gtest.h>

#include <CLI/Version.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/expect_text.h"
#include "tests/src/cli/golden/checkpoints.h"
#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

constexpr const char* kHelps = "src/cli/golden/help.txt";
constexpr const char* kRefusals = "src/cli/golden/refusals.txt";

// Skips the test where other versions of CLI11 print the same flags in other words.
class Words : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string{CLI11_VERSION} != "2.1.2") GTEST_SKIP() << "these are CLI11 2.1.2's words";
  }
};

// Returns the names that stand below "Subcommands:".
Arguments subcommands_in(const std::string& help) {
  Arguments names;
  std::istringstream lines{help};
  std::string line;
  while (std::getline(lines, line) && line != "Subcommands:") {
  }
  while (std::getline(lines, line) && line.starts_with("  ")) {
    if (line.starts_with("   ")) continue;  // of the description before
    names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

// Adds the whole help of `command` and of its subcommands, by their names.
void add_helps(const Arguments& command, const std::string& name,
               std::map<std::string, std::string>& helps) {
  const std::string& help = helps[name] = succeed({command, "--help-all"}).output;
  for (const std::string& subcommand : subcommands_in(help)) {
    add_helps({command, subcommand}, (name + " ").append(subcommand), helps);
  }
}

std::map<std::string, std::string> all_helps() {
  std::map<std::string, std::string> helps;
  add_helps({}, "spillway", helps);
  EXPECT_GE(helps.size(), 20U) << "subcommands are missing in spillway --help";
  return helps;
}

TEST_F(Words, OfTheHelpOfEverySubcommandAreAsTheyWere) {
  std::set<std::string> names;
  for (const auto& [name, help] : all_helps()) {
    expect_text(kHelps, name, help);
    names.insert(name);
    const std::size_t blank = std::min(name.find(' '), name.size());
    const std::string brief = succeed({name.substr(blank).c_str(), "--help"}).output;
    if (brief == help) continue;
    names.insert(name + " in short");
    expect_text(kHelps, name + " in short", brief);
  }
  expect_only_sections(kHelps, names);
}

// Returns what stands in `text` behind `begin` and before the next `end`.
std::string part_of(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t at = text.find(begin);
  EXPECT_NE(at, std::string::npos) << "no '" << begin << "'";
  if (at == std::string::npos) return "";
  const std::size_t from = at + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

TEST_F(Words, OfTheManualPageAndCompletionsNameEveryFlagOfEverySubcommand) {
  const std::string manual =
      with_all_replaced(with_all_replaced(succeed("document man").output, "\\-", "-"), "\n", " \n");
  const std::string bash = succeed("document bash").output;
  const std::string zsh = succeed("document zsh").output;
  static const std::regex flags{R"(\n  (?:-\w,)?(--[\w-]+))"};
  for (const auto& [name, help] : all_helps()) {
    const std::size_t blank = name.find(' ');
    const std::string subcommand = blank == std::string::npos ? "" : name.substr(blank + 1);
    const std::string choices = "\n    '" + subcommand + "') choices='";
    const std::string completed = " " + part_of(bash, choices, "'") + " ";
    EXPECT_EQ(completed, " " + part_of(zsh, choices, "'") + " ");
    // The page has no section for the flags of the program itself.
    const std::string page =
        subcommand.empty() ? "" : part_of(manual, "\n.SS " + subcommand + " \n", "\n.S");
    for (std::sregex_iterator flag{help.begin(), help.end(), flags}, end; flag != end; ++flag) {
      expect_parts(completed, {" " + flag->str(1) + " "});
      if (page.empty() || flag->str(1).starts_with("--help")) continue;
      expect_parts(page, {"\n.B " + flag->str(1) + " "});
    }
  }
}

// TRAIN is a short training, FOLDER a temporary folder, and GOLDEN that of golden_checkpoints().
constexpr auto kRefused = std::to_array<const char*>({
    // what is not known, or missing
    "",
    "frobnicate",
    "trian --net lenet",
    "bench Link",
    "devices --net",
    "train --batch 8",
    "plan --net lenet",
    "TRAIN --bacth 8",
    "train --net ResNet-50 --batch 8",
    "plan --net perceptron --batch 8",
    "nets vgg:1,1,1",
    "train --net gpt:1,2,16 --batch 8",
    "plan --net lenet --batch 8 --machine V-100",
    "plan --net lenet --batch 8 --machine abacus",
    "TRAIN --planner magic",
    "TRAIN --device tpu",
    "TRAIN --data imagenet",
    "TRAIN --far disk",
    "document ps",
    "sample",
    "checkpoint",
    "checkpoint mend FOLDER",
    "export GOLDEN/sgd --to tf x",
    "bench link --ways teleport",
    "bench paging --patterns zigzag",
    "bench train --net Lenet:8",
    "sweep --net lenet --batch 8 --planners joint,vdnn_all",
    "TRAIN --init best",
    // values that nothing takes
    "train --net lenet --batch 0",
    "TRAIN --lr nan",
    "TRAIN --link-bandwidth fast",
    "TRAIN --link-latency soon",
    "TRAIN --budget 12Gib",
    "TRAIN --budget 40",
    "train --net lenet --batch 3.5",
    "TRAIN --batch 9",
    "plan --net lenet --batch 8 --budget",
    "TRAIN --trace x",
    "TRAIN --label-smoothing 1",
    "TRAIN --ema 1",
    "TRAIN --optimizer adam --beta1 1",
    "TRAIN --milestones 5,3",
    "TRAIN --schedule multistep --milestones 5,5",
    "TRAIN --sub-batch 0",
    "TRAIN --threads 0",
    "TRAIN --mixup -1",
    "TRAIN --hue 0.6",
    "sweep --net lenet --batch 8 --links fast",
    "sweep --net lenet --batch 8 --budgets 1",
    "plan --net lenet --batch 8 --noise loud",
    "TRAIN --early-stop x",
    "TRAIN --keep 0",
    // flags that do not go together
    "TRAIN --optimizer adam --momentum 0.5",
    "TRAIN --nesterov --momentum 0",
    "TRAIN --beta1 0.5",
    "TRAIN --alpha 0.5",
    "TRAIN --schedule step",
    "TRAIN --final-lr 0.5",
    "TRAIN --json - --timeline -",
    "plan --net lenet --batch 8 --json - --out -",
    "nets lenet --dump - --json -",
    "TRAIN --weights x.safetensors --init pytorch",
    "TRAIN --resume",
    "TRAIN --keep-best",
    "TRAIN --keep-best --eval-every 0 --checkpoint FOLDER/run",
    "TRAIN --shards 3",
    "TRAIN --zero 1",
    "plan --net lenet --batch 8 --interconnect 25GB/s",
    "plan --net lenet --batch 8 --ranks 2",
    "TRAIN --confusion FOLDER/x.csv",
    "report GOLDEN --csv - -o -",
    "profile --net lenet --batch 8 --machine v100 --far ram",
    // what cannot be
    "TRAIN --image-size 1",
    "TRAIN --attention own",
    "TRAIN --dropout 0.5",
    "TRAIN --freeze layer9*",
    "plan --net lenet --batch 8 --freeze *",
    "TRAIN --precision tf32",
    "TRAIN --emulate-bf16",
    "TRAIN --oversubscribe",
    "TRAIN --schedule cosine --cosine-steps 3 --warmup-steps 3",
    "TRAIN --memory copy --state far --planner vdnn-all",
    "TRAIN --aux-heads",
    "plan --net lenet --batch 8 --machine v100 --budget 1KiB",
    "plan --net lenet --batch 8 --machine v100 --planner resident --budget 50%",
    // files and folders
    "TRAIN --json FOLDER/nowhere/x",
    "TRAIN --json /dev/full",
    "TRAIN --checkpoint FOLDER/file/x",
    "TRAIN --far file:FOLDER/nowhere/x",
    "TRAIN --data idx:FOLDER",
    "TRAIN --data images:FOLDER",
    "TRAIN --data cifar10:FOLDER",
    "TRAIN --recipe FOLDER/file",
    "TRAIN --plan FOLDER/file",
    "TRAIN --weights FOLDER/file",
    "train --net FOLDER/file.net --batch 8",
    "train --net GOLDEN/missing.net --batch 8",
    "TRAIN --data text:GOLDEN/sums.txt",
    "train --net gpt:1,2,8,8 --vocabulary 8 --batch 2 --data text:GOLDEN/sums.txt",
    "train --net GOLDEN/tiny.net --batch 8 --resume --checkpoint FOLDER/sgd",
    "train --net GOLDEN/norms.net --batch 4 --resume --checkpoint FOLDER/sgd",
    "TRAIN --resume --checkpoint FOLDER",
    "evaluate FOLDER",
    "evaluate FOLDER/nowhere",
    "predict GOLDEN/gpt",
    "sample GOLDEN/sgd",
    "evaluate GOLDEN/sgd --best",
    "predict GOLDEN/images FOLDER/file",
    "export GOLDEN/sgd --to hf FOLDER/x",
    "export GOLDEN/gpt --to torchvision FOLDER/x",
    "checkpoint verify FOLDER/nowhere",
    "plan --trace-in FOLDER/file --machine v100",
    "plan --net lenet --batch 8 --profile FOLDER/file",
    "report FOLDER/none -o FOLDER/x",
    "report FOLDER/file -o FOLDER/x",
    "report FOLDER/nowhere",
});

// Numbers of bytes depend on the workspaces that oneDNN wants.
std::string without_sizes(const std::string& text) {
  static const std::regex sizes{R"([0-9][0-9.]* (bytes|B|KiB|MiB|GiB)\b)"};
  return std::regex_replace(text, sizes, "N $1");
}

TEST_F(Words, OfRefusalsAreAsTheyWere) {
  const TemporaryFolder folder;
  std::ofstream{folder.file("file")} << "neither JSON nor a picture\n";
  std::ofstream{folder.file("file.net")} << "spillway-network 1\nname x\ninput 1x8x8\nconv cake\n";
  const std::string here = folder.path().string();
  const std::string& golden = golden_checkpoints();
  std::filesystem::copy(golden + "/sgd", here + "/sgd");
  std::filesystem::create_directory(here + "/none");
  std::string text;
  for (const char* const shown : kRefused) {
    std::string command =
        with_all_replaced(shown, "TRAIN", "train --net lenet --batch 8 --steps 1");
    command = with_all_replaced(with_all_replaced(command, "FOLDER", here), "GOLDEN", golden);
    const Outcome outcome =
        run_spillway(command.c_str(), "SPILLWAY_MEASURING_TIME=0.1 OMP_WAIT_POLICY=PASSIVE");
    EXPECT_NE(outcome.exit_code, 0) << command;
    EXPECT_EQ(outcome.output, "") << command;
    const std::size_t begin = outcome.errors.rfind("spillway: ");  // behind its progress
    std::string said = begin == std::string::npos ? outcome.errors : outcome.errors.substr(begin);
    said = with_all_replaced(with_all_replaced(said, here, "FOLDER"), golden, "GOLDEN");
    text += "$ spillway " + std::string{shown} + "\nexit " + std::to_string(outcome.exit_code) +
            "\n" + without_sizes(said) + "\n";
  }
  expect_text(kRefusals, "refusals", text);
  expect_only_sections(kRefusals, {"refusals"});
}

}  // namespace
}  // namespace spillway::test
