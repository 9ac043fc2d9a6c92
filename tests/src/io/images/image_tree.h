#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/src/io/images/golden_images.h"
#include "tests/temporary_folder.h"

namespace spillway::test {

/// A folder of images: train/{cat,dog} with two images each, val/{cat,dog} with one.
class ImageTree {
 public:
  ImageTree() {
    for (const std::string name : {"cat", "dog"}) {
      add("train/" + name + "/1.jpg", golden_image("usual.jpg"));
      add("train/" + name + "/2.png", golden_image("rgb.png"));
      add("val/" + name + "/1.jpg", golden_image("full-color.jpg"));
    }
  }

  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }

  void add(const std::string& name, const FileContent& content) const {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    folder_.write(name, content);
  }
  void remove(const std::string& name) const { std::filesystem::remove_all(path() / name); }

 private:
  TemporaryFolder folder_;
};

}  // namespace spillway::test
