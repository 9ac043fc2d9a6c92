// A training removes checkpoints while somebody reads them.

#undef _FORTIFY_SOURCE  // whose open() is another function

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/train/checkpoint/checkpoint_choice.h"
#include "tests/src/train/checkpoint_fixture.h"

namespace spillway {
namespace {

// What happens right before a file whose name ends so is opened to be read.
struct Interruption {
  std::string ending;
  int times = 0;
  std::function<void()> work;
};
Interruption interruption;

void before_opening(std::string_view path) {
  if (interruption.times == 0 || !path.ends_with(interruption.ending)) return;
  --interruption.times;
  interruption.work();
}

class ReadBesideWriter : public test::CheckpointFixture {
 protected:
  ReadBesideWriter() {
    writer_.set_plan({}, step.graph);
    save_next();
  }
  ~ReadBesideWriter() override { interruption = {}; }

  void save_next() {
    state.initialise(++last_);
    Checkpoint moment = at_step(last_);
    moment.best = BestEvaluation{.step = last_};
    writer_.set_best(last_);
    writer_.save(moment, state);
  }
  // The last one, which is the best, and the one before stay.
  void replace_all() {
    save_next();
    save_next();
  }
  // Each of the next five openings of such a file comes after all checkpoints were replaced.
  void replace_before_opening(const std::string& ending) {
    interruption = {.ending = ending, .times = 5, .work = [this] { replace_all(); }};
  }
  [[nodiscard]] const std::filesystem::path& place() const { return other_.path(); }
  [[nodiscard]] std::uint64_t last() const { return last_; }

 private:
  test::TemporaryFolder other_;
  CheckpointFolder writer_{other_.path(), 1};
  std::uint64_t last_ = 0;
};

const std::vector<std::string> kEndings{".json", ".safetensors", "-plan.json", "checkpoint.json"};

TEST_F(ReadBesideWriter, LooksAgainWhereTheNewestIsGone) {
  for (const std::string& ending : kEndings) {
    replace_before_opening(ending);
    const ChosenCheckpoint chosen = choose_checkpoint(place());
    EXPECT_GE(chosen.manifest.checkpoint.step + 1, last()) << ending;
    EXPECT_EQ(chosen.passed_over, std::vector<std::string>{}) << ending;
  }
  EXPECT_GT(last(), 20U) << "some were replaced each time";
}

TEST_F(ReadBesideWriter, LooksAgainWhereTheBestIsGone) {
  for (const std::string& ending : kEndings) {
    replace_before_opening(ending);
    const ChosenCheckpoint chosen = choose_best_checkpoint(place());
    EXPECT_EQ(chosen.manifest.checkpoint.best->step, chosen.manifest.checkpoint.step) << ending;
  }
}

TEST_F(ReadBesideWriter, VerifiesWhatIsThere) {
  for (const std::string& ending : kEndings) {
    replace_before_opening(ending);
    for (const CheckpointFinding& finding : verify_checkpoints(place())) {
      EXPECT_EQ(finding.problem, std::nullopt) << ending;
    }
  }
}

TEST_F(ReadBesideWriter, ReadsTensorsThatAreRemovedAfterTheyWereChosen) {
  const ChosenCheckpoint chosen = choose_checkpoint(place());
  replace_all();
  ASSERT_FALSE(std::filesystem::exists(place() / chosen.manifest.tensors.name));
  std::vector<float> bias(3);
  chosen.tensors->read(chosen.tensors->find("fc.bias").value(), bias);
}

// Nothing comes in the place of a file that is gone for good.
TEST_F(ReadBesideWriter, GivesUpWhatStaysAway) {
  std::filesystem::remove(place() / "step-1.safetensors");
  EXPECT_EQ(test::refusal([&] {
              return choose_checkpoint(place());
            }).find("cannot read " + (place() / "step-1.safetensors").string()),
            0U);
  EXPECT_TRUE(verify_checkpoints(place()).front().problem.has_value());
}

}  // namespace
}  // namespace spillway

extern "C" int open(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if ((flags & O_ACCMODE) == O_RDONLY) spillway::before_opening(path);
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
