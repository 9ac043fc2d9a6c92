#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "src/io/images/augmentation.h"
#include "src/io/images/image_pipeline.h"
#include "tests/fuzz/target.h"
#include "tests/src/io/images/exif_file.h"
#include "tests/src/io/images/golden_images.h"

namespace spillway::fuzz {
namespace {

// Evaluates and augments an image, which read other parts at other scales.
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
  std::ranges::sort(files);  // the same order on every file system
  Augmentation changes = find_augmentation("strong").value();
  changes.hue = 0.1F;
  const ImagePipeline pipeline{{.channels = 3, .height = 16, .width = 16},
                               {.augmentation = changes}};
  return {"images", files, [pipeline](const std::string& input, const std::filesystem::path&) {
            read_image(pipeline, input);
          }};
}

}  // namespace spillway::fuzz
