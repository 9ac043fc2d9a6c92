#include "src/files/safetensors_header.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "um/error.h"
#include "um/text/json_limits.h"

namespace spillway {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr std::uint64_t kWidest = 8;                   // bytes of a value

/// Bytes of a value of each type that files have.
struct ValueType {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array<ValueType, 17> kTypes{{{"F32", 4},
                                            {"F16", 2},
                                            {"BF16", 2},
                                            {"F64", 8},
                                            {"I64", 8},
                                            {"I32", 4},
                                            {"I16", 2},
                                            {"I8", 1},
                                            {"U64", 8},
                                            {"U32", 4},
                                            {"U16", 2},
                                            {"U8", 1},
                                            {"BOOL", 1},
                                            {"C64", 8},
                                            {"F8_E4M3", 1},
                                            {"F8_E5M2", 1},
                                            {"F8_E8M0", 1}}};

// The first name that an object of a JSON text has twice: a parser keeps one of them.
class RepeatedNames {
 public:
  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    const auto level = static_cast<std::size_t>(depth);
    if (event == json::parse_event_t::object_start) {
      names_.resize(level + 2);
      names_[level + 1].clear();
    } else if (event == json::parse_event_t::key && !found_) {
      const auto name = parsed.get<std::string>();
      if (!names_.at(level).insert(name).second) found_ = name;
    }
    return true;
  }
  [[nodiscard]] const std::optional<std::string>& found() const { return found_; }

 private:
  std::vector<std::set<std::string>> names_;  // of the objects that the parser is in, by depth
  std::optional<std::string> found_;
};

/// The header of a file; every refusal names the file.
class HeaderText {
 public:
  explicit HeaderText(const um::InputFile& file) : file_{file} { read_text(); }

  /// Where the values begin.
  [[nodiscard]] std::uint64_t end() const { return end_; }

  /// By place.
  [[nodiscard]] std::vector<TensorEntry> entries() const {
    std::vector<TensorEntry> entries;
    for (const auto& [name, value] : json_.items()) {
      if (name == kTensorMetadata) {
        check_metadata(value);
      } else {
        entries.push_back(read_entry(name, value));
      }
    }
    check_places(entries);
    return entries;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw um::Error{"cannot read " + file_.path().string() + " as a safetensors file: " + why};
  }

  void read_text() {
    if (file_.size() < sizeof(std::uint64_t)) refuse("it has fewer than 8 bytes");
    std::uint64_t length = 0;
    file_.read(0, std::as_writable_bytes(std::span{&length, 1}));
    if (length > kLongestHeader || length > file_.size() - sizeof(length)) {
      refuse("its header claims " + std::to_string(length) + " bytes, but the file has " +
             std::to_string(file_.size()));
    }
    end_ = sizeof(length) + length;
    std::string text(length, ' ');
    file_.read(sizeof(length), std::as_writable_bytes(std::span{text}));
    if (const auto limit = um::beyond_json_limits(text)) refuse("its header " + *limit);
    RepeatedNames names;
    json_ = json::parse(text, std::ref(names), /*allow_exceptions=*/false);
    if (!json_.is_object()) refuse("its header is no JSON object");
    if (names.found()) refuse("its header has the name '" + *names.found() + "' twice");
  }

  void check_metadata(const json& value) const {
    if (!value.is_object()) refuse("its __metadata__ is no JSON object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) refuse("its __metadata__ '" + key + "' is no string");
    }
  }

  [[nodiscard]] std::vector<std::size_t> read_numbers(const std::string& name, const json& value,
                                                      const char* key) const {
    const auto at = value.find(key);
    const bool is_numbers =
        at != value.end() && at->is_array() &&
        std::all_of(at->begin(), at->end(), [](const json& x) { return x.is_number_unsigned(); });
    if (!is_numbers) refuse("tensor '" + name + "' has no list of whole numbers as its " + key);
    return at->get<std::vector<std::size_t>>();
  }

  [[nodiscard]] TensorEntry read_entry(const std::string& name, const json& value) const {
    if (!value.is_object()) refuse("the entry of tensor '" + name + "' is no JSON object");
    const auto dtype = value.find("dtype");
    if (dtype == value.end() || !dtype->is_string()) refuse("tensor '" + name + "' has no dtype");
    TensorEntry entry{.name = name, .type = *dtype, .shape = read_numbers(name, value, "shape")};
    const auto* const type = std::ranges::find(kTypes, entry.type, &ValueType::name);
    if (type == kTypes.end()) refuse("tensor '" + name + "' has the unknown dtype " + entry.type);
    const std::vector<std::size_t> offsets = read_numbers(name, value, "data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1]) {
      refuse("tensor '" + name + "' has no begin and end as its data_offsets");
    }
    entry.begin = offsets[0];
    entry.end = offsets[1];
    const std::optional<std::uint64_t> count = count_elements(entry.shape);
    if (!count || entry.end - entry.begin != *count * type->bytes) {
      refuse("the bytes of tensor '" + name + "' do not match its shape");
    }
    return entry;
  }

  // Sorts `entries` by place: each must begin where the one before it ends, and the last must end
  // with the file.
  void check_places(std::vector<TensorEntry>& entries) const {
    std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
      return std::pair{a.begin, a.end} < std::pair{b.begin, b.end};
    });
    std::uint64_t at = 0;
    for (const TensorEntry& entry : entries) {
      if (entry.begin < at) refuse("tensor '" + entry.name + "' overlaps the one before it");
      if (entry.begin > at) refuse("there is a hole before tensor '" + entry.name + "'");
      at = entry.end;
    }
    if (at != file_.size() - end_) {
      refuse("its tensors need " + std::to_string(at) + " bytes after the header, but it has " +
             std::to_string(file_.size() - end_));
    }
  }

  const um::InputFile& file_;
  std::uint64_t end_ = 0;
  json json_;
};

}  // namespace

std::optional<std::uint64_t> count_elements(const std::vector<std::size_t>& shape) {
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) return 0;
  std::uint64_t count = 1;
  for (const std::size_t extent : shape) {
    if (extent > std::numeric_limits<std::uint64_t>::max() / kWidest / count) return {};
    count *= extent;
  }
  return count;
}

SafetensorsHeader read_safetensors_header(const um::InputFile& file) {
  const HeaderText header{file};
  return {.end = header.end(), .entries = header.entries()};
}

}  // namespace spillway
