#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "nets/text/network_file.h"
#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "src/io/data/open_dataset.h"
#include "src/io/images/augmentation.h"
#include "src/io/images/image_pipeline.h"
#include "src/io/safetensors.h"
#include "src/plan/budget.h"
#include "src/report/report_input.h"
#include "tests/fuzz/target.h"
#include "tests/prefetch/toy_files.h"
#include "tests/src/io/images/image_files.h"
#include "tests/src/io/text/text_files.h"
#include "tests/src/report/sample_files.h"
#include "um/error.h"
#include "um/files/folder.h"

namespace spillway::fuzz {
namespace {

namespace fs = std::filesystem;

using prefetch::JsonFile;

// Returns an IDX file: two zeros, the type, the number of dimensions, and the size of each.
std::string idx_file(const std::vector<std::uint32_t>& sizes, std::size_t values) {
  std::string bytes{0, 0, 8, static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes) {
    for (unsigned shift = 32; shift > 0; shift -= 8) {
      bytes += static_cast<char>(size >> (shift - 8));
    }
  }
  return bytes + std::string(values, '\1');
}

void read_all(const DatasetPair& data) {
  for (const Dataset* set : {data.train.get(), data.test.get()}) {
    std::vector<float> image(set->image().elements());
    set->read(0, image);
    set->read(set->size() - 1, image);
    static_cast<void>(set->label(set->size() - 1));
  }
}

// Uses the input as one of four files; the others are valid.
void read_idx(const std::string& input, const fs::path& folder) {
  const bool is_of_images = input.size() > 3 && input[3] == 3;
  const std::string images = idx_file({2, 4, 4}, 32);
  const std::string labels = idx_file({2}, 2);
  write(folder / "train-images-idx3-ubyte", is_of_images ? input : images);
  write(folder / "train-labels-idx1-ubyte", is_of_images ? labels : input);
  write(folder / "t10k-images-idx3-ubyte", images);
  write(folder / "t10k-labels-idx1-ubyte", labels);
  read_all(open_idx(folder, 10));
}

constexpr std::size_t kCifarRecord = 1 + 3 * 32 * 32;

void read_cifar10(const std::string& input, const fs::path& folder) {
  for (int part = 1; part <= 5; ++part) {
    write(folder / ("data_batch_" + std::to_string(part) + ".bin"),
          part == 3 ? input : std::string(kCifarRecord, '\1'));
  }
  write(folder / "test_batch.bin", std::string(kCifarRecord, '\1'));
  read_all(open_cifar10(folder, 10));
}

TokenTask masked_task(std::size_t vocabulary) {
  return {.length = 4, .vocabulary = vocabulary, .objective = Objective::kMaskedTokens};
}

void read_labels(const DatasetPair& data) {
  std::vector<std::int32_t> labels(labels_each(*data.train));
  data.train->labels(data.train->size() - 1, labels);
}

void read_tokens(const std::string& input, const fs::path& folder) {
  const DatasetPair data = open_tokens(write(folder / "a.bin", input), masked_task(1U << 16U));
  read_all(data);
  read_labels(data);
}

// Uses the input as a text or one of two vocabulary files, chosen by its beginning.
void read_text(const std::string& input, const fs::path& folder) {
  const test::SmallVocabulary good;
  const bool is_of_tokens = input.starts_with('{');
  const bool is_of_merges = input.starts_with('#');
  write(folder / "encoder.json", is_of_tokens ? input : good.encoder.dump());
  write(folder / "vocab.bpe", is_of_merges ? input : good.merges);
  const std::string text =
      write(folder / "a.txt", is_of_tokens || is_of_merges ? "the other theme" : input);
  for (const std::string& tokenizer : {std::string{}, folder.string()}) {
    const DatasetPair data = open_text(text, tokenizer, masked_task(300));
    read_all(data);
    read_labels(data);
  }
}

std::string as_text(const test::Content& bytes) { return {bytes.begin(), bytes.end()}; }

std::string safetensors_file(const std::string& header, std::size_t values) {
  std::string bytes;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    bytes += static_cast<char>(header.size() >> shift);
  }
  return bytes + header + std::string(4 * values, '\0');
}

void read_safetensors(const std::string& input, const fs::path& folder) {
  const SafetensorsReader reader{write(folder / "file.safetensors", input)};
  for (std::size_t i = 0; i < reader.tensors().size(); ++i) {
    std::size_t count = 1;
    for (const std::size_t extent : reader.tensors()[i].shape) count *= extent;
    std::vector<float> values(count);
    reader.read(i, values);
  }
}

const std::string kLock = "process 4711 on somewhere since 2026-11-23 12:00:00 UTC\n";

// Reads a lock file that a training left behind.
void read_lock(const std::string& input, const fs::path& folder) {
  write(folder / um::FolderLock::kFile, input);
  const um::FolderLock lock{um::Folder{folder}};
}

// Reads a lock file that another training holds; the error quotes the file.
void read_held_lock(const std::string& input, const fs::path& folder) {
  const std::string path = write(folder / um::FolderLock::kFile, input);
  const int held = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const std::shared_ptr<void> guard{nullptr, [held](void*) { ::close(held); }};
  if (held < 0 || ::flock(held, LOCK_EX) != 0) throw std::runtime_error{"no lock to hold"};
  const um::FolderLock lock{um::Folder{folder}};
  throw std::logic_error{"a lock that another holds is taken"};
}

// Reads values of options and environment variables.
void read_amount(const std::string& input, const fs::path& /*folder*/) {
  static_cast<void>(um::parse_amount(input));
  static_cast<void>(um::parse_bytes(input));
  static_cast<void>(Budget::parse(input));
}

void read_networks(const std::string& input, const fs::path& /*folder*/) {
  std::istringstream stream{input};
  const nets::CatalogueEntry entry = nets::read_network(stream, "input");
  static_cast<void>(entry.build(entry.image, entry.classes));
}

void read_report(const std::string& input, const fs::path& folder) {
  const std::vector<std::string> paths{write(folder / "input.json", input)};
  static_cast<void>(read_report_inputs(paths));
}

Target machine_target() {
  return {"machine",
          {prefetch::testing::small_machine().dump()},
          [](const auto& input, const auto& folder) {
            static_cast<void>(prefetch::find_machine(write(folder / "input.json", input)));
          }};
}

Target bench_target() {
  using namespace test;
  return {"bench",
          {bench_file("train",
                      nlohmann::json::array({training_row("joint", 50, 2), failed_row("copy", 9)}))
               .dump(),
           bench_file("link", nlohmann::json::array({link_row()})).dump(),
           bench_file("paging", nlohmann::json::array({paging_row("managed", 2, 3)})).dump(),
           step_line(1, 2) + evaluation_line(1, 2, 0.5) + summary_line()},
          read_report};
}

Target safetensors_target() {
  return {"safetensors",
          {safetensors_file(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                            R"("b":{"dtype":"F32","shape":[],"data_offsets":[24,28]}})",
                            7)},
          read_safetensors};
}

// Evaluates and augments an image, which read other parts at other scales.
void read_image(const ImagePipeline& pipeline, const std::string& input) {
  const auto bytes = std::as_bytes(std::span{input});
  std::vector<float> image(pipeline.image().elements());
  pipeline.evaluate(bytes, image);
  pipeline.augment(bytes, Random{input.size()}, image);
}

}  // namespace

std::vector<Target> targets_of(const std::string& name) {
  std::vector<Target> targets{
      {"network", {}, read_networks},
      machine_target(),
      bench_target(),
      checkpoint_target(),
      safetensors_target(),
      weights_target(),
      onnx_target(),
      {"idx", {idx_file({2, 4, 4}, 32), idx_file({2}, 2)}, read_idx},
      {"cifar10",
       {std::string(kCifarRecord, '\1') + std::string(kCifarRecord, '\2')},
       read_cifar10},
      image_target(),
      {"tokens",
       {as_text(test::token_file({1, 2, 3, 4, 5, 6, 7, 8, 9})),
        as_text(test::raw_tokens({1, 2, 3, 4, 5, 6, 7, 8, 9}))},
       read_tokens},
      {"text",
       {"the thé, 日本 and 't is\n", test::SmallVocabulary{}.encoder.dump(),
        test::SmallVocabulary{}.merges},
       read_text},
      {"lock", {kLock}, read_lock},
      {"held_lock", {kLock}, read_held_lock},
      {"amount", {"512MiB", "1.5e9", "40%", "min+20%", "auto"}, read_amount}};
  std::ranges::move(planning_targets(), std::back_inserter(targets));
  if (name.empty() || name == kResumed) targets.push_back(resumed_target());  // trains first
  if (!name.empty()) std::erase_if(targets, [&](const Target& each) { return each.name != name; });
  return targets;
}

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
