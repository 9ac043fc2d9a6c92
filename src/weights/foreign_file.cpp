#include "src/weights/foreign_file.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "src/weights/name_pattern.h"
#include "um/files/input_file.h"

namespace spillway {
namespace {

constexpr std::string_view kArchive{"PK\x03\x04"};  // torch.save()
constexpr char kPickle = '\x80';                    // torch.save() before version 1.6
constexpr std::string_view kLargeFile = "version https://git-lfs";

// What a file is that is no safetensors file; empty where that cannot be told.
std::string what_it_is(const std::filesystem::path& path) {
  const um::InputFile file{path};
  std::array<char, kLargeFile.size()> bytes{};
  const std::size_t count = std::min<std::uint64_t>(bytes.size(), file.size());
  file.read(0, std::as_writable_bytes(std::span{bytes}.first(count)));
  const std::string_view begin{bytes.data(), count};
  if (begin.empty()) return "it is empty";
  if (begin.starts_with(kArchive) || begin.front() == kPickle) {
    return "it was written by torch.save(); convert it with safetensors.torch.save_file()";
  }
  const bool is_text = begin.find('\0') == std::string_view::npos;  // no header's length
  if (begin.front() == '{' && is_text) {
    return "it is JSON, as the index of a model in several files is; join these into one file "
           "with safetensors.torch.save_file()";
  }
  if (begin == kLargeFile) return "it is a pointer of Git LFS; fetch the file with git lfs pull";
  return "";
}

// What each network's file has and no other's, as the table spells it.
std::string marking_tensor(const NameTable& table) {
  for (const NameRule& rule : table.rules) {
    if (const auto parts = match_name(rule.ours, table.mark)) {
      return fill_name(each_word_of(rule.theirs).front(), *parts);
    }
  }
  return "";
}

bool is_of(const NameTable& table, const SafetensorsReader& file) {
  const std::string mark = marking_tensor(table);
  if (file.find(mark)) return true;
  return !table.prefix.empty() && file.find(mark.substr(table.prefix.size())).has_value();
}

}  // namespace

SafetensorsReader open_weights(const std::filesystem::path& path) {
  try {
    return SafetensorsReader{path};
  } catch (const um::SystemError&) {
    throw;
  } catch (const um::Error& error) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) throw;
    const std::string what = what_it_is(path);
    if (what.empty()) throw;
    throw um::Error{"cannot read " + path.string() + " as a safetensors file: " + what};
  }
}

um::Error without_names(const std::string& network) {
  return um::Error{"network " + network + " has no names in files of other libraries; " +
                   kNetworksWithNames};
}

um::Error other_network_there(const std::string& network, const NameTable& table) {
  return um::Error{"network " + network + " differs from " + title(table) + ": " + table.obstacle};
}

um::Error of_another_network(const SafetensorsReader& file, const std::filesystem::path& path,
                             const std::string& network, const NamedTensors& wanted) {
  if (file.tensors().empty()) return um::Error{path.string() + " has no tensors"};
  for (const NameTable& table : all_name_tables({})) {
    if (!is_of(table, file)) continue;
    return um::Error{path.string() + " is of " + title(table) + ", but network " + network +
                     " has the names of " + title(wanted.table)};
  }
  return um::Error{path.string() + " has no tensor '" + marking_tensor(wanted.table) +
                   "', by which " + title(wanted.table) + " is known, which network " + network +
                   " has the names of; its first is '" + file.tensors().front().name + "'" +
                   advice_on_parts(path)};
}

std::string advice_on_parts(const std::filesystem::path& path) {
  if (!match_name("*-#-of-#.*", path.filename().string())) return "";
  return "; it is one of several files of a model, which are to be joined into one first";
}

}  // namespace spillway
