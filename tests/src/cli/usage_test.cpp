// What the program says about flags that make no sense.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/src/cli/refused.h"

namespace spillway::test {
namespace {

Arguments lenet(const Arguments& more) { return {"train --net lenet", more}; }

const Arguments kSubcommands = "train plan sweep profile bench report nets devices document";

TEST(Help, OfEverySubcommandShowsAnExample) {
  for (const std::string& command : kSubcommands) {
    const Outcome outcome = succeed({command, "--help"});
    EXPECT_EQ(outcome.errors, "");
    expect_parts(outcome.output, {"Example: spillway " + command});
  }
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
                          "'train --memory') choices='copy managed resident'",
                          "'bench train --net') choices='lenet "});
  }
}

TEST(BadUsage, WantsASubcommandThatIsThere) {
  expect_refused(kBadUsage, {}, {"subcommand is required"});
  expect_refused(kBadUsage, "frobnicate", {"'frobnicate'", "train", "devices"});
}

// One sentence, which names what is meant.
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

TEST(BadUsage, NamesTheFlagItDoesNotKnow) {
  expect_refused(kBadUsage, small_training("--wrong"), {"--wrong"});
  expect_refused(kBadUsage, "devices --net", {"--net"});
}

TEST(BadUsage, NamesTheFlagThatIsMissing) {
  expect_refused(kBadUsage, "train --batch 8", {"--net is required"});
  expect_refused(kBadUsage, "plan --net lenet", {"--batch is required"});
}

TEST(BadUsage, RefusesABatchThatIsNoNumberFromOneUp) {
  for (const char* batch : {"0", "-1", "x", "1.5"}) {
    expect_refused(kBadUsage, lenet({"--batch", batch}), {"--batch", batch});
  }
}

TEST(BadUsage, RefusesCountsBelowZero) {
  for (const char* flag : {"--steps", "--epochs", "--seed", "--checkpoint-every"}) {
    for (const char* count : {"-1", "x", "1.5", "99999999999999999999"}) {
      expect_refused(kBadUsage, lenet({"--batch 8", flag, count}), {flag, count});
    }
  }
}

TEST(BadUsage, RefusesRatesThatAreNoNumbers) {
  for (const char* flag : {"--lr", "--momentum", "--weight-decay"}) {
    for (const char* rate : {"-0.1", "nan", "inf", "x"}) {
      expect_refused(kBadUsage, small_training({flag, rate}), {flag, rate});
    }
  }
}

TEST(BadUsage, RefusesNumbersThatNoOptimizerTakes) {
  for (const char* flag : {"--beta1", "--beta2"}) {
    for (const char* beta : {"1", "-0.1", "nan", "x"}) {
      expect_refused(kBadUsage, small_training({"--optimizer adam", flag, beta}), {flag, beta});
    }
  }
  expect_refused(kBadUsage, small_training("--optimizer adam --epsilon 0"),
                 {"--epsilon", "above 0"});
}

TEST(BadUsage, RefusesWhatAnotherOptimizerHas) {
  const auto refuse = [](const Arguments& flags, const std::vector<std::string>& words) {
    expect_refused(kBadUsage, small_training(flags), words);
  };
  refuse("--optimizer adagrad", {"adagrad", "sgd", "adamw"});
  refuse("--optimizer adam --momentum 0.5",
         {"--momentum", "is for --optimizer sgd; adam has --beta1"});
  refuse("--optimizer adamw --nesterov", {"--nesterov", "is for --optimizer sgd"});
  refuse("--nesterov --momentum 0", {"--nesterov", "needs a --momentum above 0"});
  for (const char* flag : {"--beta1", "--beta2", "--epsilon"}) {
    refuse({flag, "0.5"}, {flag, "is for --optimizer adam or adamw"});
  }
}

TEST(BadUsage, RefusesWhatAnotherScheduleHas) {
  const auto refuse = [](const Arguments& flags, const std::vector<std::string>& words) {
    expect_refused(kBadUsage, small_training(flags), words);
  };
  refuse("--schedule linear", {"linear", "constant", "cosine"});
  refuse("--schedule step", {"--schedule step", "needs --step-every"});
  refuse("--schedule cosine --step-every 3", {"--step-every", "--schedule step"});
  refuse("--step-factor 0.5", {"--step-factor", "--schedule step"});
  refuse("--final-lr 0.5", {"--final-lr", "--schedule cosine"});
  refuse("--cosine-steps 5", {"--cosine-steps", "--schedule cosine"});
}

TEST(BadInput, RefusesAWarmUpThatIsAllOfACosine) {
  expect_refused(kFailure, small_training("--schedule cosine --cosine-steps 3 --warmup-steps 3"),
                 {"a warm-up of 3 steps leaves nothing of a cosine of 3", "--warmup-steps"});
}

TEST(BadUsage, RefusesALinkThatIsNoLink) {
  for (const char* rate : {"0", "fast", "-1GB/s", "nan"}) {
    expect_refused(kBadUsage, small_training({"--link-bandwidth", rate}),
                   {"--link-bandwidth", rate, "2GB/s"});
  }
  expect_refused(kBadUsage, small_training("--link-latency soon"), {"'soon'", "20us"});
}

TEST(BadUsage, ListsWhatAFlagMayBe) {
  expect_refused(kBadUsage, small_training("--memory swap"), {"copy", "managed", "resident"});
  expect_refused(kBadUsage, small_training("--paging x"), {"auto", "memfd", "uffd"});
  expect_refused(kBadUsage, small_training("--recompute x"), {"auto", "off"});
  expect_refused(kBadUsage, small_training("--conv-algorithm fft"), {"direct", "winograd"});
  expect_refused(kBadUsage, small_training("--far disk"), {"'disk'", "ram", "file:PATH"});
}

TEST(BadUsage, ListsTheNetworksThereAre) {
  const std::vector<std::string> words{"'perceptron'", "lenet", "resnet50"};
  expect_refused(kBadUsage, "train --net perceptron --batch 8", words);
  expect_refused(kBadUsage, "plan --net perceptron --batch 8", words);
  expect_refused(kBadUsage, "nets perceptron", words);
}

TEST(BadValues, ThatAreDepthsOfANetworkAreToldWhatDepthsAre) {
  const std::vector<std::string> words{"'resnet:6,32,0,6'", "4 stages", "resnet:6,32,100,6"};
  expect_refused(kBadUsage, "train --net resnet:6,32,0,6 --batch 8", words);
  expect_refused(kBadUsage, "plan --net resnet:6,32,0,6 --batch 8", words);
  expect_refused(kBadUsage, "nets resnet:6,32,0,6", words);
  expect_refused(kBadUsage, "nets vgg:1,1,1", {"'vgg:1,1,1'", "5 stages", "vgg:2,22,66,4,4"});
}

TEST(BadUsage, ListsThePlannersThereAre) {
  const std::vector<std::string> words{"'magic'", "joint", "capacity", "on-demand", "resident"};
  expect_refused(kBadUsage, small_training("--planner magic"), words);
  expect_refused(kBadUsage, "plan --net lenet --batch 8 --planner magic", words);
}

TEST(BadUsage, ListsTheMachinesThereAre) {
  expect_refused(kBadUsage, "plan --net lenet --batch 8 --machine abacus",
                 {"'abacus'", "v100", "host"});
}

TEST(BadUsage, SaysWhichDevicesThereAre) {
  expect_refused(kBadUsage, small_training("--device tpu"), {"'tpu'", "host"});
  expect_refused(kBadUsage, small_training("--device cuda:x"), {"'cuda:x'", "cuda[:N]"});
}

TEST(BadUsage, SaysWhichDataSetsThereAre) {
  expect_refused(kBadUsage, small_training("--data imagenet"),
                 {"'imagenet'", "synthetic", "idx:DIR", "cifar10:DIR"});
  expect_refused(kBadUsage, small_training("--data idx:"), {"idx:DIR"});
}

TEST(BadUsage, RefusesTwoDocumentsOnStandardOutput) {
  const std::vector<std::string> words{"cannot both write to standard output"};
  expect_refused(kBadUsage, small_training("--json - --trace -"), words);
  const Arguments plan = "plan --net lenet --batch 8";
  expect_refused(kBadUsage, {plan, "--json - --out -"}, words);
  expect_refused(kBadUsage, {plan, "--timeline - --out -"}, words);
}

TEST(BadUsage, OffersTheOptimizersRatesToTrainingAlone) {
  for (const char* flag : {"--momentum", "--weight-decay", "--beta1", "--lr"}) {
    for (const char* command : {"plan", "profile"}) {
      expect_refused(kBadUsage, {command, "--net lenet --batch 8", flag, "0.5"}, {flag});
    }
  }
}

// With whatever is missing: the CUDA side, a driver, a GPU, or the thousandth one.
TEST(BadInput, SaysWhyThereIsNoSuchGpu) {
  expect_refused(kFailure, small_training("--device cuda:999"), {"CUDA cannot be used: "});
}

TEST(BadInput, RefusesOnTheHostWhatIsAGpus) {
  const auto refuse = [](const Arguments& flags, const char* words) {
    expect_refused(kFailure, {small_training("--device host"), flags}, {words});
  };
  refuse("--precision bf16", "the host computes in fp32");
  refuse("--shared-gpu", "--device cuda");
  refuse("--oversubscribe", "--device cuda");
  refuse("--no-discard", "--device cuda");
}

TEST(BadInput, RefusesAnImageTooSmallForTheNetwork) {
  expect_refused(kFailure, small_training("--image-size 1"), {"pool1", "--image-size"});
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
  expect_parts(outcome.output, {"uffd_move"});
}

}  // namespace
}  // namespace spillway::test
