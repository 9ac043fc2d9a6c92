// Training on images that travel to the device as bytes.

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/files/plan_file.h"
#include "src/ops/narrow_floats.h"
#include "src/train/trainer.h"
#include "tests/src/byte_dataset.h"
#include "tests/src/gpu_training.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using namespace test;  // the trainings

std::unique_ptr<Dataset> byte_images() {
  return std::make_unique<ByteDataset>(kImage, kClasses, 3 * kBatch);
}

// Images that are uploaded as bytes, and become floats on the device; on the host as well.
TEST(GpuByteImages, TeachTheSameAsFloats) {
  const auto trained = [](Opened opened, MemoryMode mode, bool has_bytes) {
    return train(std::move(opened), mode, {.has_bytes = has_bytes, .data = byte_images});
  };
  const auto expected = trained(this_machine(), MemoryMode::kResident, false).numbers();
  EXPECT_EQ(trained(this_machine(), MemoryMode::kResident, true).numbers(), expected);
  for (const MemoryMode mode : {MemoryMode::kResident, MemoryMode::kManaged, MemoryMode::kCopy}) {
    const Trained of_bytes = trained(recorded_gpu(um::RecordingApi::h200()), mode, true);
    EXPECT_EQ(of_bytes.numbers(), expected) << to_string(mode);
    EXPECT_TRUE(of_bytes.kept_budget) << to_string(mode);
    const um::Bytes beside = float_bytes(kBatch + kImage.channels * kByteValues);  // labels, table
    EXPECT_EQ(of_bytes.staged - beside, um::Bytes{kBatch * kImage.elements()}) << to_string(mode);
  }
}

class TrainerOnBytes : public testing::Test {
 protected:
  // Six images of 1x8x8 and of three classes.
  TrainerOnBytes() {
    std::vector<std::uint8_t> images{0, 0, 8, 3, 0, 0, 0, 6, 0, 0, 0, 8, 0, 0, 0, 8};
    for (unsigned i = 0; i < 6 * 64; ++i) images.push_back(static_cast<std::uint8_t>(i * i));
    for (const std::string split : {"train", "t10k"}) {
      folder_.write(split + "-images-idx3-ubyte", images);
      folder_.write(split + "-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 6, 0, 1, 2, 2, 1, 0});
    }
  }
  [[nodiscard]] TrainerOptions options() const {
    return {.network = small_network(),
            .data = "idx:" + folder_.path().string(),
            .step = {.batch = 3, .convolution = ConvolutionAlgorithm::kDirect},
            .memory = {.mode = MemoryMode::kResident},
            .training = {.steps = 4}};
  }
  // Of the same network, and of data that are floats.
  [[nodiscard]] std::string plan_of_floats(ExecutionContext context) const {
    TrainerOptions drawn = options();
    drawn.data = "synthetic";
    const Trainer trainer{std::move(context), drawn};
    EXPECT_FALSE(trainer.session().loads_bytes());
    std::ofstream{folder_.file("plan")} << prefetch::to_json(trainer.plan(), trainer.graph());
    return folder_.file("plan");
  }
  // Nobody declares to it what kernels use, so that what it trains is of no use.
  static ExecutionContext gpu() { return recorded_gpu(um::RecordingApi::h200()).context; }

  TemporaryFolder folder_;
};

// There is room for floats in it.
TEST_F(TrainerOnBytes, TakesAPlanThatKnewNothingOfTheData) {
  EXPECT_TRUE((Trainer{gpu(), options()}.session().loads_bytes()));
  TrainerOptions planned = options();
  planned.planning.plan_file = plan_of_floats(gpu());
  EXPECT_FALSE((Trainer{gpu(), planned}.session().loads_bytes()));
}

TEST_F(TrainerOnBytes, TakesSuchAPlanForBytesWhereNothingIsStaged) {
  TrainerOptions planned = options();
  planned.planning.plan_file = plan_of_floats(small_context());
  Trainer trainer{small_context(), planned};
  EXPECT_TRUE(trainer.session().loads_bytes());
  EXPECT_EQ(trainer.run().weights_sha256, Trainer(small_context(), options()).run().weights_sha256);
}

TEST_F(TrainerOnBytes, GoesOnWithItsPlan) {
  TrainerOptions saved = options();
  saved.checkpoint.folder = folder_.file("checkpoint");
  saved.training.steps = 1;
  Trainer{gpu(), saved}.run();
  saved.checkpoint.resume = true;
  saved.training.steps = 2;
  EXPECT_TRUE((Trainer{gpu(), saved}.session().loads_bytes()));
}

TEST_F(TrainerOnBytes, MixesFloats) {
  TrainerOptions mixed = options();
  mixed.training.mixing.mixup = 0.2F;
  const Trainer trainer{small_context(), mixed};
  EXPECT_FALSE(trainer.session().loads_bytes());
}

}  // namespace
}  // namespace spillway
