#include "um/machine/plug_in.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/refusal.h"

namespace spillway::um {
namespace {

namespace fs = std::filesystem;

PlugIn plug_in(const fs::path& folder) {
  return {.file = "libempty_plug_in.so",
          .folders = {folder},
          .build_function = "empty_plug_in_build",
          .build = "the build of the tests",
          .if_absent = "it is nowhere",
          .if_broken = "install it again",
          .if_foreign = "install both from the same"};
}

TEST(PlugIn, IsLoadedFromAFolderThatItsProgramNames) {
  void* const library = load_plug_in(plug_in(SPILLWAY_PLUG_IN_FOLDER));
  EXPECT_NE(address_in(library, "empty_plug_in_build"), nullptr);
  EXPECT_EQ(address_in(library, "another function"), nullptr);
}

TEST(PlugIn, OfAnotherBuildIsRefused) {
  PlugIn other = plug_in(SPILLWAY_PLUG_IN_FOLDER);
  other.build = "another build";
  const std::string sentence = test::refusal([&] { static_cast<void>(load_plug_in(other)); });
  EXPECT_TRUE(sentence.ends_with(
      "libempty_plug_in.so is of another build of spillway; install both from the same"))
      << sentence;
}

// There it may be anybody's.
TEST(PlugIn, IsNotLookedForInTheCurrentFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(SPILLWAY_PLUG_IN_FOLDER);
  for (const char* folder : {"", ".", "../" SPILLWAY_PLUG_IN_NAME}) {
    EXPECT_EQ(test::refusal([&] { static_cast<void>(load_plug_in(plug_in(folder))); }),
              "it is nowhere")
        << folder;
  }
  fs::current_path(before);
}

TEST(FolderOf, IsAbsoluteAlsoWhereTheCurrentFolderWasAnotherWhenItsFileWasLoaded) {
  const fs::path before = fs::current_path();
  fs::current_path(SPILLWAY_PLUG_IN_FOLDER);
  void* const library = dlopen("./libempty_plug_in.so", RTLD_NOW | RTLD_LOCAL);
  fs::current_path(before);
  EXPECT_EQ(folder_of(address_in(library, "empty_plug_in_build")), SPILLWAY_PLUG_IN_FOLDER);
}

void code_of_the_program() {}

TEST(FolderOf, IsTheProgramsForItsOwnCode) {
  EXPECT_EQ(folder_of(reinterpret_cast<const void*>(&code_of_the_program)),
            fs::read_symlink("/proc/self/exe").parent_path());
}

TEST(FolderOf, IsEmptyForWhatNoFileHolds) {
  const int local = 0;
  EXPECT_EQ(folder_of(&local), "");
}

}  // namespace
}  // namespace spillway::um
