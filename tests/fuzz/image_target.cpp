#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "src/data/images/augmentation.h"
#include "src/data/images/image_pipeline.h"
#include "tests/fuzz/target.h"
#include "tests/src/data/images/exif_file.h"
#include "tests/src/data/images/golden_images.h"

namespace spillway::fuzz {
namespace {

// Both read it, in other parts and at other scales.
void read_image(const ImagePipeline& pipeline, const std::string& input) {
  const auto bytes = std::as_bytes(std::span{input});
  std::vector<float> image(pipeline.image().elements());
  pipeline.evaluate(bytes, image);
  pipeline.augment(bytes, Random{input.size()}, image);
}

}  // namespace

Target image_target() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator{test::image_golden()}) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".json")) continue;
    const test::FileContent content = test::golden_image(name);
    files.emplace_back(content.begin(), content.end());
  }
  const test::FileContent turned = test::with_orientation(test::golden_image("usual.jpg"), 6);
  files.emplace_back(turned.begin(), turned.end());
  std::ranges::sort(files);  // the same cases on every file system
  Augmentation changes = find_augmentation("strong").value();
  changes.hue = 0.1F;
  const ImagePipeline pipeline{{.channels = 3, .height = 16, .width = 16},
                               {.augmentation = changes}};
  return {"images", files, [pipeline](const std::string& input, const std::filesystem::path&) {
            read_image(pipeline, input);
          }};
}

}  // namespace spillway::fuzz
