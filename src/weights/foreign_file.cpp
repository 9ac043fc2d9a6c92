#include "src/weights/foreign_file.h"

#include "src/weights/name_pattern.h"

namespace spillway {
namespace {

// What each network's file has and no other's, as the table spells it.
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
