// Errors about invalid flags.

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/src/cli/program.h"

namespace spillway::test {
namespace {

const Arguments kSubcommands = "train plan sweep profile bench report export nets devices document";

TEST(Help, OfEverySubcommandShowsAnExample) {
  for (const std::string& command : kSubcommands) {
    const Outcome outcome = succeed({command, "--help"});
    EXPECT_EQ(outcome.errors, "");
    expect_parts(outcome.output, {"Example: spillway " + command});
  }
}

// Letters of the longest line that could have been broken.
std::size_t longest_line(const std::string& help) {
  std::istringstream lines{help};
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t text = std::min(line.find_first_not_of(' '), line.size());
    const bool is_whole = line.starts_with("Example: ") || line.find(' ', text) == line.npos;
    if (!is_whole) longest = std::max(longest, line.size());
  }
  return longest;
}

TEST(Help, FitsTheTerminal) {
  for (const char* const command : {"", "train", "plan", "sweep", "bench", "bench train"}) {
    for (const char* const flag : {"--help", "--help-all"}) {
      EXPECT_LE(longest_line(succeed({command, flag}).output), 80U) << command << flag;
    }
  }
}

TEST(Help, ShowsFirstWhatIsUsuallyEnough) {
  const std::string brief = succeed("train --help").output;
  expect_parts(brief, {"Usually enough:\n", "\n  --budget ", "\n  --far ",
                       "\nspillway train --help-all shows all "});
  EXPECT_EQ(brief.find("--momentum"), std::string::npos);
  EXPECT_LT(std::ranges::count(brief, '\n'), 60);
  expect_parts(succeed("train --help-all").output, {"\n  --budget ", "\n  --momentum "});
}

TEST(Help, OfTheProgramNamesEverySubcommand) {
  expect_parts(succeed("--help").output, kSubcommands);
}

TEST(Documents, NameEverySubcommandAndTheFlagsOfTraining) {
  for (const char* format : {"man", "bash", "zsh"}) {
    const Outcome outcome = succeed({"document", format});
    expect_parts(outcome.output, kSubcommands);
    expect_parts(outcome.output, {"budget", "momentum", "joint"});
  }
}

TEST(Documents, CompleteNetworksAndMemoryModes) {
  for (const char* shell : {"bash", "zsh"}) {
    const std::string script = run_spillway({"document", shell}).output;

    expect_parts(script, {"'train --net') choices='lenet ",
                          "'train --memory') choices='auto managed copy resident'",
                          "'bench train --net') choices='lenet "});
  }
}

// Flags and parts of their error.
struct Refused {
  Arguments flags;
  std::vector<std::string> words;
};

void expect_all_refused(int code, const Arguments& command, const std::vector<Refused>& all) {
  for (const auto& [flags, words] : all) expect_refused(code, {command, flags}, words);
}

TEST(BadUsage, NamesWhatIsNotKnownOrMissing) {
  expect_all_refused(
      kBadUsage, {},
      {{"frobnicate", {"'frobnicate'", "train", "devices"}},
       {small_training("--wrong"), {"--wrong"}},
       {"devices --net", {"--net"}},
       {"train --batch 8", {"spillway: train needs --net; see spillway train --help\n"}},
       {"plan --net lenet", {"spillway: plan needs --batch; see"}},
       {small_training("--batch 9"), {"spillway: --batch is given twice\n"}},
       {small_training("--lr 1 --lr 2 --lr 3"), {"--lr is given 3 times"}},
       {"plan --net lenet --batch 8 --budget", {"spillway: --budget needs a value\n"}},
       {small_training("--keep 2"), {"--keep needs --checkpoint"}},
       {small_training("more"), {"spillway: train takes no 'more'; see"}},
       {small_training("--trace x"),
        {"spillway: train has no option '--trace'; it is called '--timeline' now"}},
       {"bench train --net lenet --timelines x", {"it is called '--timeline' now"}},
       {"plan --net lenet --batch 3.5",
        {"spillway: --batch: '3.5' is not a whole number from 1 to 1048576\n"}},
       {small_training("--memory swap"),
        {"--memory: 'swap' is not auto, managed, copy or resident\n"}}});
}

// Bare commands show what they can do.
TEST(BadUsage, WithoutASubcommandListsThem) {
  for (const std::string command : {"", "bench", "checkpoint"}) {
    const Outcome outcome = run_spillway(command.c_str());
    EXPECT_EQ(outcome.exit_code, kBadUsage);
    EXPECT_EQ(outcome.output, "");
    expect_parts(outcome.errors, {"\nSubcommands:\n  ", "Example: spillway " + command});
  }
  expect_parts(run_spillway({}).errors, kSubcommands);
}

// Expects one sentence with the intended name.
void expect_meant(const Arguments& arguments, const std::string& wrong, const std::string& meant) {
  const std::string sentence =
      expect_refused(kBadUsage, arguments, {"'" + wrong + "'", "did you mean '" + meant + "'?"});
  EXPECT_EQ(sentence.find("there are"), std::string::npos) << sentence;
}

TEST(BadUsage, AsksForTheNearestSubcommandAndFlag) {
  expect_meant("trian --net lenet", "trian", "train");
  expect_meant("bench Link", "Link", "link");
  expect_meant("train --net lenet --bacth 8", "--bacth", "--batch");
  expect_meant(small_training("--bugdet=40%"), "--bugdet", "--budget");
  expect_meant("bench train --round 1", "--round", "--rounds");
  expect_meant("nets --clases 10", "--clases", "--classes");
}

TEST(BadUsage, AsksForTheNearestNetworkPlannerAndMachine) {
  expect_meant("train --net ResNet-50 --batch 8", "ResNet-50", "resnet50");
  expect_meant("nets alexnet3", "alexnet3", "alexnet");
  expect_meant("bench train --net Lenet:8", "Lenet", "lenet");
  expect_meant(small_training("--planner jiont"), "jiont", "joint");
  expect_meant("sweep --net lenet --batch 8 --planners joint,vdnn_all", "vdnn_all", "vdnn-all");
  expect_meant("plan --net lenet --batch 8 --machine V-100", "V-100", "v100");
}

// Tries each of `flags` with each of `numbers`.
void expect_no_numbers(const Arguments& command, const Arguments& flags, const Arguments& numbers) {
  for (const std::string& flag : flags) {
    for (const std::string& number : numbers) {
      expect_refused(kBadUsage, {command, flag, number}, {flag, number});
    }
  }
}

TEST(BadUsage, RefusesNumbersThatNothingTakes) {
  const Arguments lenet = "train --net lenet";
  expect_no_numbers(lenet, "--batch", "0 -1 x 1.5");
  expect_no_numbers({lenet, "--batch 8"}, "--steps --epochs --seed --checkpoint-every",
                    "-1 x 1.5 99999999999999999999");
  expect_no_numbers(small_training(), "--lr --momentum --weight-decay", "-0.1 nan inf x");
  expect_no_numbers(small_training("--optimizer adam"), "--beta1 --beta2", "1 -0.1 nan x");
  expect_no_numbers(small_training(), "--link-bandwidth", "0 fast -1GB/s nan");
}

TEST(BadUsage, RefusesWhatAnotherOptimizerHas) {
  expect_all_refused(
      kBadUsage, small_training(),
      {{"--optimizer adagrad", {"adagrad", "sgd", "adamw"}},
       {"--optimizer adam --epsilon 0", {"--epsilon", "above 0"}},
       {"--optimizer adam --momentum 0.5",
        {"--momentum", "is for --optimizer sgd or rmsprop; adam has --beta1"}},
       {"--optimizer adamw --nesterov", {"--nesterov", "is for --optimizer sgd"}},
       {"--nesterov --momentum 0", {"--nesterov", "needs a --momentum above 0"}},
       {"--beta1 0.5", {"--beta1", "is for --optimizer adam or adamw", "sgd has --momentum"}},
       {"--beta2 0.5", {"--beta2", "is for --optimizer adam or adamw", "sgd has --momentum"}},
       {"--epsilon 0.5", {"--epsilon", "is for --optimizer adam or adamw or rmsprop"}},
       {"--alpha 0.5", {"--alpha", "is for --optimizer rmsprop"}},
       {"--label-smoothing 1", {"--label-smoothing", "below 1"}},
       {"--label-smoothing 0.99999999", {"--label-smoothing", "rounded to 1"}},
       {"--dropout 0.99999999", {"--dropout", "rounded to 1"}},
       {"--ema 1", {"--ema", "below 1"}}});
}

TEST(BadUsage, RefusesWhatAnotherScheduleHas) {
  expect_all_refused(kBadUsage, small_training(),
                     {{"--schedule linear", {"linear", "constant", "cosine"}},
                      {"--schedule step", {"--schedule step", "needs --step-every"}},
                      {"--schedule cosine --step-every 3", {"--step-every", "--schedule step"}},
                      {"--step-factor 0.5", {"--step-factor", "--schedule step"}},
                      {"--final-lr 0.5", {"--final-lr", "--schedule cosine"}},
                      {"--cosine-steps 5", {"--cosine-steps", "--schedule cosine"}}});
}

// Modes are compared by changing one word of a command line.
TEST(Usage, NotesWhatAnotherMemoryModeHas) {
  const std::vector<std::string> of_moves{
      "--planner capacity", "--recompute auto",    "--state near",           "--update auto",
      "--far ram",          "--far-checksums off", "--link-bandwidth 2GB/s", "--link-latency 1us"};
  const std::vector<std::string> of_managed{"--fault-latency 1us", "--paging memfd",
                                            "--oversubscribe", "--discard on"};
  const auto expect_useless = [](const Arguments& command, const std::string& memory,
                                 const std::vector<std::string>& flags) {
    for (const std::string& flag : flags) {
      const Outcome outcome = run_spillway({command, "--memory", memory, flag.c_str()});
      EXPECT_NE(outcome.exit_code, kBadUsage) << outcome.errors;
      expect_parts(outcome.errors, {"note: " + flag.substr(0, flag.find(' ')) +
                                    " does nothing with --memory " + memory + "\n"});
    }
  };
  expect_useless(small_training(), "resident", of_moves);
  expect_useless(small_training(), "resident", of_managed);
  expect_useless(small_training(), "copy", of_managed);
  expect_useless("evaluate nowhere", "copy", of_managed);
  expect_useless("predict nowhere", "resident", of_moves);
  expect_useless("profile --net lenet --batch 2", "resident", {"--far ram", "--paging memfd"});
  expect_useless("plan --net lenet --batch 2 --machine v100", "resident",
                 {"--planner capacity", "--state far"});
  const std::string everything =
      summary_of(succeed(small_training(
                     "--memory resident --json - --planner capacity --far file:/no/where "
                     "--link-bandwidth 2GB/s --state far --update far --paging memfd")))
          .value("weights_sha256", "");
  EXPECT_EQ(
      everything,
      summary_of(small_training("--memory resident --json -")).value("weights_sha256", "none"));
  succeed(
      {"train --net lenet --batch 2 --steps 1 --memory copy --planner capacity --far ram "
       "--far-checksums off --link-latency 1us --recompute off --state near --update near"});
}

TEST(BadUsage, ListsWhatAFlagMayBe) {
  expect_all_refused(kBadUsage, small_training(),
                     {{"--memory swap", {"copy", "managed", "resident"}},
                      {"--paging x", {"auto", "memfd", "uffd"}},
                      {"--recompute x", {"auto", "off"}},
                      {"--conv-algorithm fft", {"direct", "winograd"}},
                      {"--attention flash", {"own", "cudnn"}},
                      {"--far disk", {"'disk'", "ram", "file:PATH"}},
                      {"--link-bandwidth fast", {"2GB/s"}},
                      {"--link-latency soon", {"'soon'", "20us"}},
                      {"--device tpu", {"'tpu'", "host"}},
                      {"--device cuda:x", {"'cuda:x'", "cuda[:N]"}},
                      {"--data imagenet", {"'imagenet'", "synthetic", "idx:DIR", "cifar10:DIR"}},
                      {"--data idx:", {"idx:DIR"}}});
}

TEST(BadUsage, ListsTheNetworksPlannersAndMachinesThereAre) {
  const std::vector<std::string> networks{"'perceptron'", "lenet", "resnet50"};
  const std::vector<std::string> depths{"'resnet:6,32,0,6'", "4 stages", "resnet:6,32,100,6"};
  const std::vector<std::string> planners{"'magic'", "joint", "capacity", "on-demand", "resident"};
  const Arguments plan = "plan --net lenet --batch 8";
  expect_all_refused(kBadUsage, {},
                     {{"train --net perceptron --batch 8", networks},
                      {"plan --net perceptron --batch 8", networks},
                      {"nets perceptron", networks},
                      {"train --net resnet:6,32,0,6 --batch 8", depths},
                      {"plan --net resnet:6,32,0,6 --batch 8", depths},
                      {"nets resnet:6,32,0,6", depths},
                      {"nets vgg:1,1,1", {"'vgg:1,1,1'", "5 stages", "vgg:2,22,66,4,4"}},
                      {small_training("--planner magic"), planners},
                      {{plan, "--planner magic"}, planners},
                      {{plan, "--machine abacus"}, {"'abacus'", "v100", "host"}}});
}

TEST(BadUsage, RefusesTwoDocumentsOnStandardOutput) {
  const std::vector<std::string> words{"cannot both write to standard output"};
  const Arguments plan = "plan --net lenet --batch 8";
  expect_all_refused(kBadUsage, {},
                     {{small_training("--json - --timeline -"), words},
                      {{plan, "--json - --out -"}, words},
                      {{plan, "--timeline - --out -"}, words},
                      {{plan, "--trace-out - --json -"}, words}});
}

TEST(BadUsage, IsOneSentenceHoweverLongTheValue) {
  const std::string huge(100'000, 'x');
  expect_refused(kBadUsage, {small_training("--memory"), huge}, {"--memory", "..."});
  expect_refused(kBadUsage, {small_training("--batch"), huge}, {"--batch"});
}

TEST(BadUsage, OffersTheOptimizersRatesToTrainingAlone) {
  for (const char* flag : {"--momentum", "--weight-decay", "--beta1", "--lr"}) {
    for (const char* command : {"plan", "profile"}) {
      expect_refused(kBadUsage, {command, "--net lenet --batch 8", flag, "0.5"}, {flag});
    }
  }
}

TEST(BadUsage, NamesALimitOfUnifiedMemoryThatIsNone) {
  const auto sentence = [](const std::string& limit) {
    return "'" + limit + "' is no limit of unified memory";
  };
  expect_all_refused(kBadUsage, small_training(),
                     {{"--managed-limit much", {sentence("much"), "16GiB", "25%"}},
                      {"--managed-limit 0.25", {sentence("0.25")}},
                      {"--managed-limit 101%", {sentence("101%")}},
                      {"--managed-limit 0", {sentence("0")}},
                      {"--managed-limit 25%,0%", {sentence("0%")}},
                      {"--shared-gpu", {"it is called '--managed-limit' now"}}});
}

// The GPU's error depends on the machine: no CUDA build, no driver, no GPU, or none with number
// 999.
TEST(BadInput, SaysWhatCannotBe) {
  expect_all_refused(kFailure, small_training(),
                     {{"--schedule cosine --cosine-steps 3 --warmup-steps 3",
                       {"a warm-up of 3 steps leaves nothing of a cosine of 3", "--warmup-steps"}},
                      {"--image-size 1", {"pool1", "--image-size"}},
                      {"--attention own", {"lenet has no attention", "--attention"}},
                      {"--dropout 0.5", {"lenet has no dropout", "--dropout"}},
                      {"--device cuda:999", {"CUDA cannot be used: "}},
                      {"--device host --precision tf32", {"the host computes in fp32 and bf16"}},
                      {"--device host --emulate-bf16", {"--precision bf16"}},
                      {"--device host --managed-limit 25%", {"--device cuda"}},
                      {"--device host --oversubscribe", {"--device cuda"}},
                      {"--device host --graph off", {"--device cuda"}},
                      {"--device host --discard on", {"--device cuda"}},
                      {"--device host --discard off", {"--device cuda"}}});
  expect_refused(kFailure, "train --net gpt:1,2,16,8 --batch 2 --steps 1 --attention cudnn",
                 {"cuDNN has no attention for this", "NVIDIA GPU", "--attention cudnn"});
}

TEST(BadUsage, DrawsNoWeightsThatAFileHas) {
  expect_refused(kBadUsage, small_training("--weights model.safetensors --init pytorch"),
                 {"--init", "--weights has them all"});
}

TEST(BadInput, SaysThatNothingIsFrozen) {
  const std::vector<std::string> words{"no layer with parameters is called 'layer9*'"};
  for (const char* command : {"train", "plan", "sweep", "profile"}) {
    expect_refused(kFailure, {command, "--net lenet --batch 8 --freeze layer9*"}, words);
  }
  expect_refused(kFailure, "plan --net lenet --batch 8 --freeze *", {"all layers are frozen"});
}

TEST(BadInput, SaysThatOpenMpGivesTooFewThreads) {
  const Arguments limit = "OMP_THREAD_LIMIT=1";
  const std::vector<std::string> words{"OMP_THREAD_LIMIT", "fewer threads"};
  for (const Arguments& command :
       {small_training(), Arguments{"plan --net lenet --batch 8"}, Arguments{"nets lenet"}}) {
    expect_refused(kFailure, {command, "--threads 2"}, words, limit);
    succeed({command, "--threads 1"}, limit);
  }
}

TEST(Devices, AreShownWithoutThreadsToo) {
  const Outcome outcome = succeed("devices", "OMP_THREAD_LIMIT=1");
  expect_parts(outcome.output,
               {"unified memory, userfaultfd", "transparent huge pages", "bfloat16"});
}

}  // namespace
}  // namespace spillway::test
