#include "src/io/data/image_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <system_error>
#include <utility>

#include "src/io/random.h"
#include "um/error.h"

namespace spillway {

namespace {

// A training goes on from a checkpoint only with all files that its data set had.
constexpr const char* kAdvice = ", or use --on-broken skip (with --resume, only the latter)";

}  // namespace

void BrokenFiles::add(const std::string& sentence) {
  if (rule_ == OnBroken::kStop) {
    throw um::Error{sentence + "; remove it" + kAdvice};
  }
  const std::lock_guard lock{mutex_};
  if (all_.insert(sentence).second) new_.push_back(sentence);
}

void BrokenFiles::expect_none() const {
  constexpr std::size_t kMostNamed = 10;
  const std::lock_guard lock{mutex_};
  if (all_.empty()) return;
  if (all_.size() == 1) throw um::Error{*all_.begin() + "; remove it" + kAdvice};
  std::string sentence = std::to_string(all_.size()) + " files are broken: ";
  std::size_t named = 0;
  for (const std::string& each : all_) {
    if (named++ == kMostNamed) break;
    sentence += each + "; ";
  }
  if (all_.size() > kMostNamed) {
    const std::size_t others = all_.size() - kMostNamed;
    sentence += "and " + std::to_string(others) + (others == 1 ? " other; " : " others; ");
  }
  throw um::Error{sentence + "remove them" + kAdvice};
}

std::vector<std::string> BrokenFiles::take_new() {
  const std::lock_guard lock{mutex_};
  return std::exchange(new_, {});
}

std::vector<std::string> BrokenFiles::all() const {
  const std::lock_guard lock{mutex_};
  return {all_.begin(), all_.end()};
}

std::size_t BrokenFiles::count() const {
  const std::lock_guard lock{mutex_};
  return all_.size();
}

namespace {

namespace fs = std::filesystem;

constexpr double kUsualValidation = 0.1;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

bool has_image_ending(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

um::Error unreadable(const fs::path& folder, const std::error_code& error) {
  return um::system_error("cannot read the folder " + folder.string(), error.value());
}

// Returns the folders in `folder`, sorted by name, links to folders included.
std::vector<std::string> folders_in(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry{folder, error}, end; !error && entry != end;
       entry.increment(error)) {
    std::error_code dangling;
    if (!is_hidden(entry->path()) && entry->is_directory(dangling)) {
      names.push_back(entry->path().filename());
    }
  }
  if (error) throw unreadable(folder, error);
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> classes_in(const fs::path& folder) {
  std::vector<std::string> classes = folders_in(folder);
  if (classes.size() >= 2) return classes;
  throw um::Error{
      "there " +
      (classes.empty() ? "is no folder" : "is one folder alone, " + classes.front() + ",") +
      " in " + folder.string() +
      "; put the images of each class, two or more, into a folder with its name there"};
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;  // listing reports what cannot be looked at
  return fs::is_directory(path, ignored);
}

// Lists the files of one data set.
class Lister {
 public:
  Lister(fs::path folder, BrokenFiles& broken) : folder_{std::move(folder)}, broken_{broken} {}

  // Lists the files below `part`, a class's folder. Sorted, as the order of directory entries
  // differs between systems.
  [[nodiscard]] std::vector<ImageFile> list(const fs::path& part, std::int32_t label) const {
    std::vector<ImageFile> files;
    std::error_code error;
    for (fs::recursive_directory_iterator entry{folder_ / part, error}, end; !error && entry != end;
         entry.increment(error)) {
      if (is_hidden(entry->path())) {
        entry.disable_recursion_pending();
      } else if (has_image_ending(entry->path()) && is_usable(*entry)) {
        files.push_back({entry->path().lexically_relative(folder_), label});
      }
    }
    if (error) throw unreadable(folder_ / part, error);
    std::ranges::sort(files, {}, &ImageFile::path);
    if (!files.empty()) return files;
    throw um::Error{"there is no image in " + (folder_ / part).string() +
                    "; put .jpg, .jpeg or .png files there, or remove the folder"};
  }

 private:
  // Refuses a folder or device with an image's name, a dangling link and an empty file.
  [[nodiscard]] bool is_usable(const fs::directory_entry& entry) const {
    std::error_code error;
    const fs::file_status status = entry.status(error);
    std::string cause;
    if (status.type() == fs::file_type::not_found) {
      cause = "is a link to a file that is not there";
    } else if (status.type() == fs::file_type::directory) {
      cause = "is a folder with the name of an image";
    } else if (error || status.type() != fs::file_type::regular) {
      cause = "is no ordinary file";
    } else if (entry.file_size(error) == 0 && !error) {
      cause = "is empty";
    } else {
      return true;
    }
    broken_.add(entry.path().string() + ' ' + cause);
    return false;
  }

  fs::path folder_;
  BrokenFiles& broken_;
};

// Moves the test files that `split` draws from each class.
void draw_split(const ImageSplit& split, ImageFiles& files) {
  const double part = split.validation.value_or(kUsualValidation);
  const std::vector<ImageFile> all = std::exchange(files.train, {});
  for (auto first = all.begin(); first != all.end();) {
    const std::int32_t label = first->label;
    const auto last =
        std::find_if(first, all.end(), [&](const ImageFile& file) { return file.label != label; });
    const auto count = static_cast<std::size_t>(last - first);
    auto drawn = static_cast<std::size_t>(std::lround(part * static_cast<double>(count)));
    drawn = std::clamp<std::size_t>(drawn, count > 1 ? 1 : 0, count - 1);
    const Permutation order{count, split.seed, static_cast<std::uint64_t>(label)};
    for (std::size_t i = 0; i < count; ++i, ++first) {
      (order(i) < drawn ? files.test : files.train).push_back(*first);
    }
  }
  if (files.test.empty()) {
    throw um::Error{"no class has two images, of which one could be to test on; add images"};
  }
}

void append(std::vector<ImageFile> files, std::vector<ImageFile>& all) {
  all.insert(all.end(), std::move_iterator{files.begin()}, std::move_iterator{files.end()});
}

void list_validation(const fs::path& folder, const Lister& lister, ImageFiles& files) {
  for (const std::string& name : folders_in(folder / "val")) {
    const auto found = std::ranges::find(files.classes, name);
    if (found == files.classes.end()) {
      throw um::Error{"there is a class " + name + " in " + (folder / "val").string() +
                      ", but none in " + (folder / "train").string() +
                      "; put images to learn from there too, or remove the folder"};
    }
    append(lister.list(fs::path{"val"} / name,
                       static_cast<std::int32_t>(found - files.classes.begin())),
           files.test);
  }
  if (files.test.empty()) {
    throw um::Error{"there is no folder in " + (folder / "val").string() +
                    "; put folders with the names of the classes there, or remove it"};
  }
}

// Returns "train", or an empty path.
fs::path train_part(const fs::path& folder) {
  if (is_folder(folder / "train")) return "train";
  if (!is_folder(folder / "val")) return {};
  throw um::Error{"there is a folder " + (folder / "val").string() + ", but no folder " +
                  (folder / "train").string() + "; put the images to learn from there"};
}

}  // namespace

ImageFiles list_images(const fs::path& folder, const ImageSplit& split, BrokenFiles& broken) {
  const fs::path part = train_part(folder);
  const bool has_validation = !part.empty() && is_folder(folder / "val");
  if (has_validation && split.validation) {
    throw um::Error{"there is a folder " + (folder / "val").string() +
                    ", whose images are to test on; leave out --validation, or move it away"};
  }
  ImageFiles files{.classes = classes_in(folder / part)};
  const Lister lister{folder, broken};
  std::int32_t label = 0;
  for (const std::string& name : files.classes) {
    append(lister.list(part / name, label++), files.train);
  }
  if (has_validation) {
    list_validation(folder, lister, files);
  } else {
    draw_split(split, files);
  }
  return files;
}

std::vector<std::string> find_images(const fs::path& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator entry{folder, error}, end; !error && entry != end;
       entry.increment(error)) {
    if (is_hidden(entry->path())) {
      entry.disable_recursion_pending();
    } else if (has_image_ending(entry->path())) {
      paths.push_back(entry->path());
    }
  }
  if (error) throw unreadable(folder, error);
  if (paths.empty()) {
    throw um::Error{"there is no .jpg, .jpeg or .png file in " + folder.string()};
  }
  std::ranges::sort(paths);
  return paths;
}

std::size_t count_image_classes(const fs::path& folder) {
  return classes_in(folder / train_part(folder)).size();
}

}  // namespace spillway
