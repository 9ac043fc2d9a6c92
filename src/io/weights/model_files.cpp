#include "src/io/weights/model_files.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "src/io/weights/name_table.h"
#include "um/error.h"
#include "um/files/folder.h"
#include "um/files/input_file.h"
#include "um/text/json_limits.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kModel = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr std::string_view kIndexEnding = ".index.json";
constexpr std::size_t kLargestIndex = 100'000'000;  // as a safetensors file's header

constexpr std::string_view kArchive{"PK\x03\x04"};  // torch.save()
constexpr char kPickle = '\x80';                    // torch.save() before version 1.6
constexpr std::string_view kLargeFile = "version https://git-lfs";

// Says what a file is if it is not a safetensors file; empty if unknown.
std::string what_it_is(const fs::path& path) {
  const um::InputFile file{path};
  std::array<char, kLargeFile.size()> bytes{};
  const std::size_t count = std::min<std::uint64_t>(bytes.size(), file.size());
  file.read(0, std::as_writable_bytes(std::span{bytes}.first(count)));
  const std::string_view begin{bytes.data(), count};
  if (begin.empty()) return "it is empty";
  if (begin.starts_with(kArchive) || begin.front() == kPickle) {
    return "it was written by torch.save(); convert it with safetensors.torch.save_file()";
  }
  const bool is_text = begin.find('\0') == std::string_view::npos;  // not the length of a header
  if (begin.front() == '{' && is_text) {
    return "it is JSON, as the index of a model in several files is; give the folder of that model";
  }
  if (begin == kLargeFile) return "it is a pointer of Git LFS; fetch the file with git lfs pull";
  return "";
}

SafetensorsReader open_file(const fs::path& path) {
  try {
    return SafetensorsReader{path};
  } catch (const um::SystemError&) {
    throw;
  } catch (const um::Error& error) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) throw;
    const std::string what = what_it_is(path);
    if (what.empty()) throw;
    throw um::Error{"cannot read " + path.string() + " as a safetensors file: " + what};
  }
}

// Returns whether an entry `name` exists; dangling links count, too.
bool has_file(const fs::path& folder, const char* name) {
  std::error_code error;
  return fs::exists(fs::symlink_status(folder / name, error));
}

bool is_written_by_torch(const std::string& name) {
  return std::ranges::any_of(std::array{".bin", ".pt", ".pth", ".ckpt"},
                             [&](const char* ending) { return name.ends_with(ending); });
}

// Returns advice about a folder without a readable model.
std::string advice_for(const fs::path& folder) {
  if (has_file(folder, "checkpoint.json")) {
    return "it holds checkpoints of spillway; spillway export makes such a file of one";
  }
  std::vector<std::string> names = um::Folder{folder}.names();
  std::ranges::sort(names);
  const auto is_model = [](const std::string& name) { return name.ends_with(".safetensors"); };
  const auto model = std::ranges::find_if(names, is_model);
  if (model != names.end() && match_name("*-#-of-#.*", *model)) {
    return "it has " + *model + ", and needs the index of such files; download that, too";
  }
  if (std::ranges::count_if(names, is_model) == 1) {
    return "give its file, " + (folder / *model).string();
  }
  if (model != names.end()) return "give one of its files, such as " + (folder / *model).string();
  const auto saved = std::ranges::find_if(names, is_written_by_torch);
  if (saved == names.end()) return "download the model's safetensors files into it";
  return "it has " + *saved +
         ", which torch.save() writes; convert that with safetensors.torch.save_file()";
}

// Returns the file of the model or its index.
fs::path file_of(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  for (const char* const name : {kModel, kIndex}) {
    if (has_file(path, name)) return path / name;
  }
  throw um::Error{"there is neither " + std::string{kModel} + " nor " + kIndex + " in " +
                  path.string() + "; " + advice_for(path)};
}

// Returns the file name of each tensor.
std::map<std::string, std::string> read_index(const fs::path& path) {
  const std::string text = um::InputFile{path}.text(kLargestIndex);
  const auto refuse = [&](const std::string& why) {
    return um::Error{"cannot read " + path.string() + " as the index of a model: " + why};
  };
  if (const auto limit = um::beyond_json_limits(text)) throw refuse("it " + *limit);
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool has_map = root.is_object() && root.contains("weight_map") &&
                       root["weight_map"].is_object() && !root["weight_map"].empty();
  if (!has_map) throw refuse("it has no weight_map, which says where each tensor is");
  std::map<std::string, std::string> files;
  for (const auto& [tensor, value] : root["weight_map"].items()) {
    if (!value.is_string() || !um::is_file_name(value.get_ref<const std::string&>())) {
      throw refuse("tensor '" + tensor + "' is in " + value.dump() +
                   ", which is no file beside it");
    }
    files.emplace(tensor, value.get<std::string>());
  }
  return files;
}

void expect_there(const fs::path& index, const std::set<std::string>& names) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> missing;
  std::error_code ignored;
  std::ranges::copy_if(names, std::back_inserter(missing), [&](const std::string& name) {
    return !fs::exists(index.parent_path() / name, ignored);
  });
  if (missing.empty()) return;
  std::string list;
  for (std::size_t i = 0; i < std::min(missing.size(), kNamed); ++i) {
    list += (i == 0 ? "" : ", ") + missing[i];
  }
  if (missing.size() > kNamed) list += " and others";
  throw um::Error{um::count_of(missing.size(), "file") + " that " + index.string() + " lists " +
                  (missing.size() == 1 ? "is" : "are") + " not there: " + list +
                  "; download the whole model"};
}

// Returns a tensor, in the table's spelling, that only files of this network have.
std::string marking_tensor(const NameTable& table) {
  for (const NameRule& rule : table.rules) {
    if (const auto parts = match_name(rule.ours, table.mark)) {
      return fill_name(each_word_of(rule.theirs).front(), *parts);
    }
  }
  return "";
}

bool is_of(const NameTable& table, const ModelFiles& files) {
  const std::string mark = marking_tensor(table);
  if (files.find(mark)) return true;
  return !table.prefix.empty() && files.find(mark.substr(table.prefix.size())).has_value();
}

}  // namespace

ModelFiles::ModelFiles(const fs::path& path) {
  const fs::path file = file_of(path);
  if (file.string().ends_with(kIndexEnding)) {
    open_shards(file);
  } else {
    add(open_file(file));
  }
}

void ModelFiles::open_shards(const fs::path& index) {
  const std::map<std::string, std::string> listed = read_index(index);
  std::set<std::string> names;
  for (const auto& [tensor, name] : listed) names.insert(name);
  expect_there(index, names);
  std::unordered_map<std::string, const std::string*> found;  // by tensor
  for (const std::string& name : names) {
    const std::size_t first = tensors_.size();
    add(open_file(index.parent_path() / name));
    for (std::size_t i = first; i < tensors_.size(); ++i) {
      const auto [at, is_new] = found.emplace(tensors_[i].name, &name);
      if (is_new) continue;
      throw um::Error{"tensor '" + tensors_[i].name + "' is in two files that " + index.string() +
                      " lists, " + *at->second + " and " + name + "; download the model again"};
    }
  }
  const auto wrong = std::ranges::find_if(listed, [&](const auto& entry) {
    const auto at = found.find(entry.first);
    return at == found.end() || *at->second != entry.second;
  });
  if (wrong != listed.end()) {
    throw um::Error{index.string() + " says that tensor '" + wrong->first + "' is in " +
                    wrong->second + ", which does not have it; download the model again"};
  }
}

void ModelFiles::add(SafetensorsReader file) {
  tensors_.insert(tensors_.end(), file.tensors().begin(), file.tensors().end());
  ends_.push_back(tensors_.size());
  files_.push_back(std::move(file));
}

std::optional<std::size_t> ModelFiles::find(std::string_view name) const {
  for (std::size_t file = 0; file < files_.size(); ++file) {
    const auto found = files_[file].find(name);
    if (found) return *found + (file == 0 ? 0 : ends_[file - 1]);
  }
  return std::nullopt;
}

void ModelFiles::read(std::size_t index, std::span<float> values) const {
  const auto file =
      static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
  files_.at(file).read(index - (file == 0 ? 0 : ends_[file - 1]), values);
}

um::Error without_names(const std::string& network) {
  return um::Error{"network " + network + " has no names in files of other libraries; " +
                   kNetworksWithNames};
}

um::Error other_network_there(const std::string& network, const NameTable& table) {
  return um::Error{"network " + network + " differs from " + title(table) + ": " + table.obstacle};
}

um::Error of_another_network(const ModelFiles& files, const std::filesystem::path& path,
                             const std::string& network, const NamedTensors& wanted) {
  if (files.tensors().empty()) return um::Error{path.string() + " has no tensors"};
  for (const NameTable& table : all_name_tables({})) {
    if (!is_of(table, files)) continue;
    return um::Error{path.string() + " is of " + title(table) + ", but network " + network +
                     " has the names of " + title(wanted.table)};
  }
  return um::Error{path.string() + " has no tensor '" + marking_tensor(wanted.table) +
                   "', by which " + title(wanted.table) + " is known, which network " + network +
                   " has the names of; its first is '" + files.tensors().front().name + "'" +
                   advice_on_parts(path)};
}

std::string advice_on_parts(const std::filesystem::path& path) {
  if (!match_name("*-#-of-#.*", path.filename().string())) return "";
  return "; it is one of several files of a model; give their folder";
}

}  // namespace spillway
