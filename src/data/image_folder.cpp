#include "src/data/image_folder.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "src/data/images/image_decoder.h"
#include "src/files/sha256.h"
#include "um/error.h"
#include "um/files/input_file.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 28U;
constexpr std::size_t kSmallSide = 64;  // images below are not cut for an evaluation
constexpr float kUsualEvalCrop = 0.875F;

enum class Part : std::uint8_t { kTrain, kTest };

struct FileBytes {
  std::unique_ptr<std::byte[]> bytes;  // NOLINT(modernize-avoid-c-arrays): not written twice
  std::size_t size = 0;
  [[nodiscard]] std::span<std::byte> all() const { return {bytes.get(), size}; }
};

// The first `most` bytes, or all where it has fewer. Throws: um::Error, also for more than an image
// may have.
FileBytes read_bytes(const fs::path& path, std::uint64_t most = kLargestFile) {
  const um::InputFile file{path};
  if (file.size() > kLargestFile) {
    throw um::Error{path.string() + " has " + std::to_string(file.size()) +
                    " bytes, more than the " + std::to_string(kLargestFile) +
                    " that an image may have"};
  }
  const std::size_t size = std::min(file.size(), most);
  FileBytes result{std::make_unique_for_overwrite<std::byte[]>(size),  // NOLINT: as above
                   size};
  file.read(0, result.all());
  return result;
}

// Says what is wrong with the header of an image; nothing where it can be opened.
std::optional<std::string> fault_in(std::span<const std::byte> file) {
  try {
    static_cast<void>(open_image(file));
    return std::nullopt;
  } catch (const um::Error& error) {
    return error.what();
  }
}

// Throws: um::Error where the header of an image is broken. Reads the whole file only where its
// header seems to be longer than usual.
void expect_header(const fs::path& path) {
  constexpr std::uint64_t kUsualHeader = std::uint64_t{1} << 16U;
  const FileBytes beginning = read_bytes(path, kUsualHeader);
  std::optional<std::string> fault = fault_in(beginning.all());
  if (fault && beginning.size == kUsualHeader) fault = fault_in(read_bytes(path).all());
  if (fault) throw um::Error{path.string() + ' ' + *fault};
}

// Whether not the file is at fault, but a disk or a network, of which all files suffer.
bool is_of_the_machine(const um::Error& error) {
  const auto* const of_system = dynamic_cast<const um::SystemError*>(&error);
  return of_system != nullptr && of_system->code() != EACCES && of_system->code() != ENOENT;
}

class ImageFolder final : public Dataset, private ByteImages {
 public:
  // `broken` is shared by both parts, and by whoever reports what is in it. Without a folder, the
  // files' paths are whole.
  ImageFolder(fs::path folder, std::vector<ImageFile> files, const ImageTask& task, Part part,
              std::shared_ptr<BrokenFiles> broken)
      : folder_{std::move(folder)},
        files_{std::move(files)},
        classes_{task.classes},
        seed_{task.seed},
        is_augmented_{part == Part::kTrain},
        broken_{std::move(broken)},
        pipeline_{task.image, pipeline_options(task)} {}

  [[nodiscard]] std::string name() const override {
    return folder_.empty() ? "files of images" : "images in " + folder_.string();
  }
  [[nodiscard]] nets::Shape image() const override { return pipeline_.image(); }
  [[nodiscard]] std::size_t classes() const override { return classes_; }
  [[nodiscard]] std::size_t size() const override { return files_.size(); }
  [[nodiscard]] std::int32_t label(std::size_t index) const override {
    return files_.at(index).label;
  }

  void read(std::size_t index, std::span<float> image) const override { read_as(index, 0, image); }
  void show(std::size_t index, std::uint64_t epoch, std::span<float> image,
            std::span<std::int32_t> labels) const override {
    show_as(index, epoch, image, labels);
  }
  void look(std::size_t index, BrokenFiles& found) const override;
  /// Not where an augmentation makes other numbers of them.
  [[nodiscard]] const ByteImages* as_bytes() const override {
    return is_augmented_ && !pipeline_.augments_bytes() ? nullptr : this;
  }
  [[nodiscard]] std::string content_sha256() const override;

 private:
  static PipelineOptions pipeline_options(const ImageTask& task) {
    const bool is_small = task.image.height < kSmallSide || task.image.width < kSmallSide;
    return {.augmentation = task.options.augmentation,
            .eval_crop = task.options.eval_crop.value_or(is_small ? 1.0F : kUsualEvalCrop)};
  }

  [[nodiscard]] std::span<const float> byte_numbers() const override {
    return pipeline_.byte_numbers();
  }
  void show_bytes(std::size_t index, std::uint64_t epoch, std::span<std::uint8_t> bytes,
                  std::span<std::int32_t> labels) const override {
    show_as(index, epoch, bytes, labels);
  }

  // As numbers, or as bytes.
  template <class T>
  void read_as(std::size_t index, std::uint64_t epoch, std::span<T> image) const;
  template <class T>
  void show_as(std::size_t index, std::uint64_t epoch, std::span<T> image,
               std::span<std::int32_t> labels) const;

  fs::path folder_;
  std::vector<ImageFile> files_;
  std::size_t classes_;
  std::uint64_t seed_;
  bool is_augmented_;
  std::shared_ptr<BrokenFiles> broken_;
  ImagePipeline pipeline_;
};

// What is drawn depends on the file's place in the list, not on who reads it when.
template <class T>
void ImageFolder::read_as(std::size_t index, std::uint64_t epoch, std::span<T> image) const {
  const fs::path path = folder_ / files_.at(index).path;
  const FileBytes content = read_bytes(path);
  const std::span<const std::byte> bytes = content.all();
  try {
    if (is_augmented_) {
      pipeline_.augment(bytes, Random{seed_, epoch, index}, image);
    } else {
      pipeline_.evaluate(bytes, image);
    }
  } catch (const um::Error& error) {
    throw um::Error{path.string() + ' ' + error.what()};
  }
}

// A broken image is as one of nothing, whose label does not count.
template <class T>
void ImageFolder::show_as(std::size_t index, std::uint64_t epoch, std::span<T> image,
                          std::span<std::int32_t> labels) const {
  try {
    read_as(index, epoch, image);
    labels[0] = label(index);
  } catch (const um::Error& error) {
    if (is_of_the_machine(error)) throw;
    broken_->add(error.what());
    std::ranges::fill(image, T{});
    labels[0] = -1;
  }
}

void ImageFolder::look(std::size_t index, BrokenFiles& found) const {
  const fs::path path = folder_ / files_.at(index).path;
  try {
    expect_header(path);
  } catch (const um::Error& error) {
    if (is_of_the_machine(error)) throw;
    found.add(error.what());
  }
}

// Of the files' names and sizes: to read all of a large folder takes longer than an epoch of many a
// training. A file of the same size with other content is not noticed.
std::string ImageFolder::content_sha256() const {
  Sha256 digest;
  for (const ImageFile& file : files_) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(folder_ / file.path, error);
    if (error) {
      throw um::system_error("cannot look at " + (folder_ / file.path).string(), error.value());
    }
    const std::string line =
        file.path + ' ' + std::to_string(size) + ' ' + std::to_string(file.label) + '\n';
    digest.update(std::as_bytes(std::span{line}));
  }
  return digest.hex();
}

// What is wrong with files is said first, where the folder has too few others.
ImageFiles list_all(const fs::path& folder, const ImageTask& task, BrokenFiles& broken) {
  try {
    return list_images(folder, {.validation = task.options.validation, .seed = task.seed}, broken);
  } catch (const um::Error&) {
    if (task.options.on_broken == OnBroken::kStop) broken.expect_none();
    throw;
  }
}

}  // namespace

DatasetPair open_image_folder(const fs::path& folder, const ImageTask& task) {
  const auto broken = std::make_shared<BrokenFiles>(task.options.on_broken);
  const bool skips = task.options.on_broken == OnBroken::kSkip;
  BrokenFiles unusable{OnBroken::kSkip};
  ImageFiles files = list_all(folder, task, skips ? *broken : unusable);
  if (files.classes.size() > task.classes) {
    throw um::Error{"there are " + std::to_string(files.classes.size()) + " classes in " +
                    folder.string() + ", but the network has " + std::to_string(task.classes) +
                    "; use --classes " + std::to_string(files.classes.size()) + " or more"};
  }
  const auto open = [&](std::vector<ImageFile>& part, Part name) {
    return std::make_unique<ImageFolder>(folder, std::move(part), task, name, broken);
  };
  DatasetPair pair{.train = open(files.train, Part::kTrain), .test = open(files.test, Part::kTest)};
  pair.class_names = std::move(files.classes);
  pair.broken = broken;
  if (!skips && unusable.count() > 0) {  // and what else is broken
    look_at_files(pair, {}, {}, unusable);
    unusable.expect_none();
  }
  return pair;
}

std::unique_ptr<Dataset> open_image_files(const std::vector<std::string>& paths,
                                          const ImageTask& task,
                                          std::shared_ptr<BrokenFiles> broken) {
  std::vector<ImageFile> files;
  files.reserve(paths.size());
  for (const std::string& path : paths) files.push_back({.path = path});
  return std::make_unique<ImageFolder>(fs::path{}, std::move(files), task, Part::kTest,
                                       std::move(broken));
}

}  // namespace spillway
