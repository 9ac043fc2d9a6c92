#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/src/train/power/recorded_folder.h"

namespace spillway::test {

/// What a disk may hold of a folder when the power goes after the first calls of a recording. As
/// POSIX has it, no more is promised than this: the content of a file is there as it was when the
/// file was last synced; a name is as it was when the folder was last synced. Of all later changes
/// of names any part may be there, in any selection, and of later content nothing, half, all, or
/// zeros in its place.
class DiskAfterPowerLoss {
 public:
  struct State {
    std::map<std::string, std::string> files;   ///< content by name
    std::optional<std::uint64_t> acknowledged;  ///< the last step that must stay
  };

  explicit DiskAfterPowerLoss(const std::vector<FileCall>& calls) : calls_{calls} {}

  /// Calls `visit` with every state, each once.
  void for_each(const std::function<void(const State&)>& visit) {
    for (const FileCall& call : calls_) {
      visit_states(visit);
      apply(call);
    }
    visit_states(visit);
  }

 private:
  using Kind = FileCall::Kind;
  enum class Lost { kNothing, kAll, kHalf, kZeroed };
  struct File {
    std::string content;
    std::size_t synced = 0;
  };

  void apply(const FileCall& call) {
    switch (call.kind) {
      case Kind::kCreate:
      case Kind::kRename:
      case Kind::kRemove:
        unsynced_.push_back(call);
        break;
      case Kind::kWrite:
        files_[call.file].content += call.bytes;
        break;
      case Kind::kSyncFile:
        files_[call.file].synced = files_[call.file].content.size();
        break;
      case Kind::kSyncFolder:
        for (const FileCall& change : unsynced_) rename(change, names_);
        unsynced_.clear();
        break;
      case Kind::kAcknowledge:
        acknowledged_ = call.step;
        break;
    }
  }

  // The new name of a file is there whether or not its old one was.
  static void rename(const FileCall& change, std::map<std::string, std::size_t>& names) {
    names.erase(change.name);
    if (change.kind != Kind::kRemove) names[change.to] = change.file;
  }

  void visit_states(const std::function<void(const State&)>& visit) {
    for (std::uint64_t kept = 0; kept < std::uint64_t{1} << unsynced_.size(); ++kept) {
      std::map<std::string, std::size_t> names = names_;
      for (std::size_t i = 0; i < unsynced_.size(); ++i) {
        if ((kept >> i & 1U) != 0) rename(unsynced_[i], names);
      }
      for (const Lost lost : {Lost::kNothing, Lost::kAll, Lost::kHalf, Lost::kZeroed}) {
        State state{.acknowledged = acknowledged_};
        for (const auto& [name, file] : names) state.files[name] = content_of(file, lost);
        if (visited_.insert(key_of(state)).second) visit(state);
      }
    }
  }

  std::string content_of(std::size_t number, Lost lost) {
    const File& file = files_[number];
    const std::string synced = file.content.substr(0, file.synced);
    const std::string later = file.content.substr(file.synced);
    switch (lost) {
      case Lost::kAll:
        return synced;
      case Lost::kHalf:
        return synced + later.substr(0, later.size() / 2);
      case Lost::kZeroed:
        return synced + std::string(later.size(), '\0');
      case Lost::kNothing:
        break;
    }
    return synced + later;
  }

  static std::string key_of(const State& state) {
    std::string key = std::to_string(state.acknowledged.value_or(0));
    for (const auto& [name, content] : state.files) {
      key += '\n' + name + ' ' + std::to_string(std::hash<std::string>{}(content));
    }
    return key;
  }

  const std::vector<FileCall>& calls_;
  std::map<std::size_t, File> files_;         // as the program sees them
  std::map<std::string, std::size_t> names_;  // as they were when the folder was synced
  std::vector<FileCall> unsynced_;            // changes of names since
  std::optional<std::uint64_t> acknowledged_;
  std::set<std::string> visited_;
};

}  // namespace spillway::test
