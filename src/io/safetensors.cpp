#include "src/io/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/ops/narrow_floats.h"
#include "um/error.h"
#include "um/files/input_file.h"
#include "um/text/json_limits.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

// The header's entry that does not describe a tensor.
constexpr const char* kTensorMetadata = "__metadata__";

// A tensor in the header, with the offsets of its values after the header.
struct TensorEntry {
  std::string name;
  std::string type;  // "F32"
  std::vector<std::size_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

using nlohmann::json;

constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr std::uint64_t kWidest = 8;                   // bytes of a value

// Bytes of a value, by type.
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

// Finds the first name that a JSON object has twice; a parser would drop one of them.
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
  std::vector<std::set<std::string>> names_;  // of the open objects, by depth
  std::optional<std::string> found_;
};

// Number of values of a shape; nothing when their bytes exceed 64 bits.
std::optional<std::uint64_t> count_elements(const std::vector<std::size_t>& shape) {
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) return 0;
  std::uint64_t count = 1;
  for (const std::size_t extent : shape) {
    if (extent > std::numeric_limits<std::uint64_t>::max() / kWidest / count) return {};
    count *= extent;
  }
  return count;
}

// Reads the header of a file; each error names the file.
class HeaderText {
 public:
  explicit HeaderText(const um::InputFile& file) : file_{file} { read_text(); }

  // Offset of the values in the file.
  [[nodiscard]] std::uint64_t end() const { return end_; }

  // Tensors ordered by offset.
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

  // Sorts `entries` by offset. Each must begin where the one before it ends, and the last must end
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

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::size_t kTensorAlignment = 8;

std::string header_of(std::span<const StoredTensor> tensors, const TensorMetadata& metadata) {
  json header = json::object();
  if (!metadata.empty()) header[kTensorMetadata] = metadata;
  std::uint64_t offset = 0;
  for (const StoredTensor& tensor : tensors) {
    um::expects(tensor.name != kTensorMetadata && !header.contains(tensor.name),
                "names that differ");
    const std::optional<std::uint64_t> count = count_elements(tensor.shape);
    um::expects(count.has_value(), "shapes of tensors that there can be");
    const std::uint64_t end = offset + *count * sizeof(float);
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment, ' ');
  return text;
}

}  // namespace

std::string shape_text(std::span<const std::size_t> shape) {
  std::string text;
  for (const std::size_t extent : shape) {
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  }
  return "(" + text + ")";
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::span<const StoredTensor> tensors,
                                     const TensorMetadata& metadata)
    : file_{path} {
  begin(tensors, metadata);
}

SafetensorsWriter::SafetensorsWriter(const um::Folder& folder, std::string name,
                                     std::span<const StoredTensor> tensors)
    : file_{folder, std::move(name)} {
  begin(tensors, {});
}

void SafetensorsWriter::begin(std::span<const StoredTensor> tensors,
                              const TensorMetadata& metadata) {
  const std::string header = header_of(tensors, metadata);
  const std::uint64_t length = header.size();
  write(std::as_bytes(std::span{&length, 1}));
  write(std::as_bytes(std::span{header}));
  for (const StoredTensor& tensor : tensors) missing_.push_back(*count_elements(tensor.shape));
  end_tensors();
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  file_.write(bytes);
  whole_.update(bytes);
  digests_.bytes += bytes.size();
}

// Goes on to the tensor of the next value, past tensors without values.
void SafetensorsWriter::end_tensors() {
  for (; current_ < missing_.size() && missing_[current_] == 0; ++current_) {
    digests_.tensors.push_back(tensor_.hex());
    tensor_ = Sha256{};
  }
}

void SafetensorsWriter::append(std::span<const float> values) {
  while (!values.empty()) {
    um::expects(current_ < missing_.size(), "no more values than the tensors have");
    const auto count = std::min<std::uint64_t>(values.size(), missing_[current_]);
    const auto bytes = std::as_bytes(values.first(count));
    write(bytes);
    tensor_.update(bytes);
    missing_[current_] -= count;
    values = values.subspan(count);
    end_tensors();
  }
}

void SafetensorsWriter::expect_whole() const {
  um::expects(current_ == missing_.size(), "as many values as the tensors have");
}

TensorFileDigests SafetensorsWriter::flush() {
  expect_whole();
  file_.flush();
  digests_.file = whole_.hex();
  return std::move(digests_);
}

void SafetensorsWriter::commit() {
  expect_whole();
  file_.commit();
}

SafetensorsReader::SafetensorsReader(um::InputFile file) : file_{std::move(file)} {
  const HeaderText header{file_};
  offsets_.push_back(header.end());
  for (TensorEntry& entry : header.entries()) {
    numbers_.emplace(entry.name, tensors_.size());
    tensors_.push_back({.name = std::move(entry.name), .shape = std::move(entry.shape)});
    types_.push_back(std::move(entry.type));
    offsets_.push_back(header.end() + entry.end);
  }
}

std::optional<std::size_t> SafetensorsReader::find(std::string_view name) const {
  const auto found = numbers_.find(std::string{name});
  return found == numbers_.end() ? std::nullopt : std::optional{found->second};
}

void SafetensorsReader::read(std::size_t index, std::span<float> values) const {
  const StoredTensor& tensor = tensors_.at(index);
  if (values.size() != count_elements(tensor.shape)) {
    throw um::Error{"tensor '" + tensor.name + "' of " + file_.path().string() + " has the shape " +
                    shape_text(tensor.shape) + ", which is not of " +
                    um::count_of(values.size(), "number")};
  }
  const std::string& type = types_[index];
  if (type == "F32") return file_.read(offsets_[index], std::as_writable_bytes(values));
  if (type != "F16" && type != "BF16") {
    throw um::Error{"tensor '" + tensor.name + "' of " + file_.path().string() + " holds " + type +
                    ", and only F32, F16 and BF16 can be read"};
  }
  std::vector<std::uint16_t> narrow(values.size());
  file_.read(offsets_[index], std::as_writable_bytes(std::span{narrow}));
  if (type == "F16") {
    std::ranges::transform(narrow, values.begin(), float_of_half);
  } else {
    std::ranges::transform(narrow, values.begin(), Bfloat16::from_bits);
  }
}

}  // namespace spillway
