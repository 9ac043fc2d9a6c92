#include "src/run/kept_profiles.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/files/machine.h"
#include "src/plan/workload.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"
#include "um/bytes.h"
#include "um/options.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;
using namespace um::literals;

// Variables of the environment as a test wants them; an empty value unsets one.
class Environment {
 public:
  explicit Environment(const std::vector<std::pair<std::string, std::string>>& variables) {
    for (const auto& [name, value] : variables) {
      const char* const before = std::getenv(name.c_str());
      before_.emplace_back(name,
                           before == nullptr ? std::nullopt : std::optional{std::string{before}});
      value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const auto& [name, value] : before_) {
      value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
    }
  }

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

TEST(CacheFolder, IsWhereTheEnvironmentSays) {
  const auto found = [](const char* own, const char* shared, const char* home) {
    const Environment variables{
        {{"SPILLWAY_CACHE", own}, {"XDG_CACHE_HOME", shared}, {"HOME", home}}};
    return cache_folder().string();
  };
  EXPECT_EQ(found("", "/shared", "/home/me"), "/shared/spillway");
  EXPECT_EQ(found("", "", "/home/me"), "/home/me/.cache/spillway");
  EXPECT_EQ(found("", "relative", "/home/me"), "/home/me/.cache/spillway");
  EXPECT_EQ(found("/own", "/shared", "/home/me"), "/own");
  EXPECT_EQ(found("off", "/shared", "/home/me"), "");
  EXPECT_EQ(found("", "", ""), "");
}

class KeptProfilesTest : public testing::Test {
 protected:
  [[nodiscard]] ProfileKey key(const um::ManagedOptions& space, um::Bytes limit) const {
    return profile_key(
        context,
        {.workload = workload, .limit = limit, .mode = MemoryMode::kManaged, .space = space}, 1);
  }
  void keep(const ProfileKey& of) const { kept.keep(of, "small at batch 3", workload, profile); }

  test::TemporaryFolder folder;
  KeptProfiles kept{folder.path()};
  ExecutionContext context = test::small_context();
  Workload workload{test::small_network(), *context.backend, {.batch = 3}};
  prefetch::Profile profile =
      prefetch::model_profile(workload.training().graph, prefetch::find_machine("v100"));
  um::Bytes half{workload.need().resident.count() / 2};
};

TEST_F(KeptProfilesTest, AreFoundUnderTheirKeyAlone) {
  const ProfileKey own = key({}, half);
  EXPECT_FALSE(kept.find(own, workload));
  keep(own);
  const auto found = kept.find(own, workload);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->profile.durations, profile.durations);
  EXPECT_EQ(found->profile.link.latency, profile.link.latency);
  EXPECT_EQ(found->measured.size(), std::string{"2026-11-29 19:10 UTC"}.size());
  um::ManagedOptions slow;
  slow.link.bandwidth = um::Bandwidth{1e9};
  EXPECT_FALSE(kept.find(key(slow, half), workload));
  um::ManagedOptions on_disk;
  on_disk.far.file = "/scratch";
  EXPECT_FALSE(kept.find(key(on_disk, half), workload));
  um::ManagedOptions paged;
  paged.paging = um::Paging::kMemfdSegv;
  EXPECT_FALSE(kept.find(key(paged, half), workload));
  const Workload larger{test::small_network(), *context.backend, {.batch = 4}};
  const ProfileKey of_larger = profile_key(
      context, {.workload = larger, .limit = half, .mode = MemoryMode::kManaged, .space = {}}, 1);
  EXPECT_NE(of_larger.facts, own.facts);
}

// A task that needs more near memory than there was has no time.
TEST_F(KeptProfilesTest, AreFoundWithAsMuchRoomAsTheyWereMeasuredIn) {
  keep(key({}, half));
  EXPECT_TRUE(kept.find(key({}, half - 1_B), workload));
  EXPECT_FALSE(kept.find(key({}, half + 1_B), workload));
  keep(key({}, 100 * half));
  EXPECT_TRUE(kept.find(key({}, 2 * half + 2_B), workload)) << "more than all are no use";
}

TEST_F(KeptProfilesTest, AreGoneWhereTheyAreForgottenOrDamaged) {
  const ProfileKey own = key({}, half);
  keep(own);
  EXPECT_TRUE(kept.forget(own));
  EXPECT_FALSE(kept.forget(own));
  EXPECT_FALSE(kept.find(own, workload));
  keep(own);
  const fs::path file = kept.folder() / kept.entries().front().file;
  fs::resize_file(file, fs::file_size(file) / 2);
  EXPECT_FALSE(kept.find(own, workload));
  EXPECT_EQ(kept.entries().front().title, "cannot be read");
  keep(own);
  EXPECT_TRUE(kept.find(own, workload));
}

TEST_F(KeptProfilesTest, AreListedAndClearedAndNothingElse) {
  keep(key({}, half));
  std::ofstream{kept.folder() / "other"} << "text";
  const auto entries = kept.entries();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].title, "small at batch 3");
  EXPECT_EQ(entries[0].memory, "managed");
  EXPECT_EQ(entries[0].far, "ram");
  EXPECT_EQ(entries[0].backend, context.backend->description());
  EXPECT_GT(entries[0].size, um::Bytes{});
  EXPECT_EQ(kept.clear(), 1U);
  EXPECT_TRUE(kept.entries().empty());
  EXPECT_TRUE(fs::exists(kept.folder() / "other"));
}

TEST_F(KeptProfilesTest, AreNotMoreThanTheMost) {
  fs::create_directories(kept.folder());
  for (std::size_t i = 0; i < KeptProfiles::kMost + 3; ++i) {
    const fs::path file = kept.folder() / (std::to_string(i) + ".profile.json");
    std::ofstream{file} << "{}";
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours{1});
  }
  keep(key({}, half));
  EXPECT_EQ(kept.entries().size(), KeptProfiles::kMost);
  EXPECT_TRUE(kept.find(key({}, half), workload)) << "the newest stays";
}

}  // namespace
}  // namespace spillway
