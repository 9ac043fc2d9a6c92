#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/um/cuda/recording_api.h"
#include "um/cuda/cuda_device.h"
#include "um/cuda/streams/cuda_stream.h"
#include "um/memory.h"

namespace spillway::um {
namespace {

using Log = std::vector<std::string>;

class CudaLanesTest : public ::testing::Test {
 protected:
  // Makes a, copies it out and back, and uses it.
  void give() {
    kernel("make", a_.bytes(), Access::kWrite);
    lanes_.wait(Lane::kOut, lanes_.mark(Lane::kCompute));
    lanes_.copy(Lane::kOut, a_.bytes(), b_.data());
    lanes_.wait(Lane::kIn, lanes_.mark(Lane::kOut));
    lanes_.copy(Lane::kIn, b_.bytes(), a_.data());
    lanes_.wait(Lane::kCompute, lanes_.mark(Lane::kIn));
    kernel("use", a_.bytes(), Access::kRead);
  }
  void kernel(const std::string& name, Range range, Access access) {
    const Use use{.range = range, .access = access};
    api_.launch(compute_.get(), name, {&use, 1}, [this, name] { done_.push_back(name); });
  }

  RecordingApi api_;
  StreamHandle compute_{api_, "compute"};
  DeviceMemory memory_{api_};
  Block a_{memory_, Bytes{2U << 20U}};
  Block b_{memory_, Bytes{2U << 20U}};
  Log done_;
  CudaLanes lanes_{api_, compute_.get()};
};

TEST_F(CudaLanesTest, BeginAndEndWithTheStream) {
  static_cast<void>(api_.take_log());
  lanes_.run([] {});
  EXPECT_EQ(api_.take_log(),
            (Log{"compute: record", "step in: wait for compute", "step out: wait for compute",
                 "step in: record", "compute: wait for step in", "step out: record",
                 "compute: wait for step out"}));
}

TEST_F(CudaLanesTest, OrderWhatTheyAreGiven) {
  lanes_.run([this] { give(); });
  EXPECT_EQ(done_, (Log{"make", "use"}));
}

TEST_F(CudaLanesTest, TellOfAMissingWait) {
  std::vector<std::string> conflicts;
  api_.tell_conflicts([&](const std::string& conflict) { conflicts.push_back(conflict); });
  lanes_.keep([this] {
    kernel("make", a_.bytes(), Access::kWrite);
    lanes_.copy(Lane::kOut, a_.bytes(), b_.data());
  });
  EXPECT_EQ(conflicts, Log{});
  lanes_.run_kept();
  EXPECT_EQ(conflicts, (Log{"no order between \"compute: make\" and, later, \"step out: copy "
                            "device 0+1 to device 0\" on device 0+1"}));
}

TEST_F(CudaLanesTest, RepeatWhatTheyHaveKeptWithOneCall) {
  lanes_.keep([this] { give(); });
  EXPECT_EQ(done_, Log{});
  EXPECT_TRUE(lanes_.has_kept());
  static_cast<void>(api_.take_log());
  const std::size_t before = api_.calls();
  lanes_.run_kept();
  lanes_.run_kept();
  EXPECT_EQ(api_.calls() - before, 2U);
  EXPECT_EQ(api_.take_log(), (Log{"compute: launch graph", "compute: launch graph"}));
  EXPECT_EQ(done_, (Log{"make", "use", "make", "use"}));
}

// Work after a launch is ordered after all work of the launch.
TEST_F(CudaLanesTest, AreJoinedByTheStream) {
  lanes_.keep([this] { lanes_.copy(Lane::kOut, a_.bytes(), b_.data()); });
  lanes_.run_kept();
  kernel("overwrite", a_.bytes(), Access::kWrite);
  kernel("overwrite", b_.bytes(), Access::kWrite);
  lanes_.run_kept();
  api_.synchronize(compute_.get());
}

TEST_F(CudaLanesTest, KeepNothingWhereGivingFails) {
  static_cast<void>(api_.take_log());
  EXPECT_THROW(lanes_.keep([this] {
    give();
    throw Error{"no kernel"};
  }),
               Error);
  EXPECT_EQ(api_.take_log().back(), "compute: abandon capture");
  EXPECT_FALSE(lanes_.has_kept());
  EXPECT_FALSE(api_.is_captured(compute_.get()));
  lanes_.run([this] { give(); });
  EXPECT_EQ(done_, (Log{"make", "use"}));
}

TEST_F(CudaLanesTest, HaveEndedWhatWasGivenWhenGivingHasFailed) {
  EXPECT_THROW(lanes_.run([this] {
    give();
    throw Error{"no kernel"};
  }),
               Error);
  api_.touch(a_.bytes(), Access::kReadWrite);
  api_.touch(b_.bytes(), Access::kReadWrite);
}

TEST_F(CudaLanesTest, TellWhenSomethingWas) {
  api_.hold();
  Lanes::Mark mark = 0;
  lanes_.run([&] {
    kernel("make", a_.bytes(), Access::kWrite);
    mark = lanes_.mark(Lane::kCompute);
  });
  api_.finish("compute", Nanoseconds{1000});
  api_.finish("compute", Nanoseconds{1250});
  api_.let_go();
  EXPECT_EQ(lanes_.time(mark), Nanoseconds{250});
}

}  // namespace
}  // namespace spillway::um
