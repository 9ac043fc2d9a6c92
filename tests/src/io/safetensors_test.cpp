#include "src/io/safetensors.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/io/file_digest.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"
#include "um/error.h"

namespace spillway {
namespace {

using test::refusal;
using test::TemporaryFolder;

std::string content_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

// Writes a file with this header and `data` zero bytes.
void write_raw(const std::string& path, const std::string& header, std::size_t data) {
  std::ofstream file{path, std::ios::binary};
  for (unsigned shift = 0; shift < 64; shift += 8) {
    file.put(static_cast<char>(header.size() >> shift));
  }
  file << header << std::string(data, '\0');
}

struct NamedTensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::vector<float> values;
};

void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors) {
  std::vector<StoredTensor> stored;
  for (const NamedTensor& tensor : tensors) stored.push_back({tensor.name, tensor.shape});
  SafetensorsWriter writer{path, stored};
  for (const NamedTensor& tensor : tensors) writer.append(tensor.values);
  writer.commit();
}

std::vector<float> values_of(const SafetensorsReader& file, std::size_t index) {
  std::size_t count = 1;
  for (const std::size_t extent : file.tensors().at(index).shape) count *= extent;
  std::vector<float> values(count);
  file.read(index, values);
  return values;
}

class SafetensorsFile : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return folder_.file("a.safetensors"); }
  [[nodiscard]] std::string reason() const {
    const std::string start = "cannot read " + path() + " as a safetensors file: ";
    const std::string sentence = refusal([&] { return SafetensorsReader{path()}; });
    return sentence.starts_with(start) ? sentence.substr(start.size()) : sentence;
  }
  [[nodiscard]] std::string reason_of(const std::string& header, std::size_t data) const {
    write_raw(path(), header, data);
    return reason();
  }

  TemporaryFolder folder_;
};

TEST_F(SafetensorsFile, GivesBackWhatWasWritten) {
  const std::vector<NamedTensor> tensors{
      {.name = "z.weight", .shape = {2, 3}, .values = {1, -2, 3.5, 0, 1e-30F, 1e30F}},
      {.name = "empty", .shape = {0, 7}, .values = {}},
      {.name = "a \"quoted\" scalar", .shape = {}, .values = {42}}};
  write_safetensors(path(), tensors);
  const SafetensorsReader file{path()};
  ASSERT_EQ(file.tensors().size(), 3U);
  EXPECT_FALSE(file.find("z"));
  for (const NamedTensor& written : tensors) {
    const auto at = file.find(written.name);
    ASSERT_TRUE(at) << written.name;
    EXPECT_EQ(file.tensors()[*at].shape, written.shape);
    EXPECT_EQ(values_of(file, *at), written.values);
  }
}

// One value of 4 bytes, and metadata, which are allowed and ignored.
TEST_F(SafetensorsFile, MayHoldMetadata) {
  EXPECT_EQ(reason_of(R"({"__metadata__": {"format": "pt"},
                          "w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})",
                      4),
            "accepted");
  EXPECT_EQ(SafetensorsReader{path()}.tensors().size(), 1U);
}

TEST_F(SafetensorsFile, HasTheBytesOfTheFormat) {
  write_safetensors(path(), {{.name = "w", .shape = {1}, .values = {1}}});
  const std::string header = R"({"w":{"data_offsets":[0,4],"dtype":"F32","shape":[1]}})";
  // 54 bytes, padded with blanks to 56; 1.0F is 0x3f800000.
  EXPECT_EQ(content_of(path()),
            std::string("\x38\0\0\0\0\0\0\0", 8) + header + "  " + std::string("\0\0\x80\x3f", 4));
}

TEST_F(SafetensorsFile, MayHoldNothing) {
  write_safetensors(path(), {});
  EXPECT_TRUE(SafetensorsReader{path()}.tensors().empty());
}

TEST_F(SafetensorsFile, MayBeWrittenInPiecesOfAnySize) {
  const std::vector<StoredTensor> tensors{{"a", {2}}, {"b", {3}}};
  SafetensorsWriter writer{path(), tensors};
  writer.append(std::vector<float>{1});
  writer.append(std::vector<float>{2, 3, 4});  // the end of a and the beginning of b
  writer.append(std::vector<float>{5});
  writer.commit();
  EXPECT_EQ(values_of(SafetensorsReader{path()}, 0), (std::vector<float>{1, 2}));
  EXPECT_EQ(values_of(SafetensorsReader{path()}, 1), (std::vector<float>{3, 4, 5}));
}

TEST_F(SafetensorsFile, ReplacesTheOldOneAndLeavesNothingBeside) {
  write_safetensors(path(), {{.name = "old", .shape = {}, .values = {1}}});
  write_safetensors(path(), {{.name = "new", .shape = {}, .values = {2}}});
  EXPECT_EQ(SafetensorsReader{path()}.tensors().at(0).name, "new");
  const std::filesystem::directory_iterator files{folder_.path()};
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(SafetensorsFile, StaysOldWhenTheNewOneIsWrong) {
  write_safetensors(path(), {{.name = "old", .shape = {}, .values = {1}}});
  const NamedTensor new_one{.name = "new", .shape = {2}, .values = {1, 2}};
  EXPECT_THROW(write_safetensors(path(), {new_one, new_one}), um::ContractError);
  NamedTensor wrong = new_one;
  for (const std::vector<float>& values : {std::vector<float>{1}, std::vector<float>{1, 2, 3}}) {
    wrong.values = values;
    EXPECT_THROW(write_safetensors(path(), {wrong}), um::ContractError);
  }
  wrong = new_one;
  wrong.name = "__metadata__";
  EXPECT_THROW(write_safetensors(path(), {wrong}), um::ContractError);
  EXPECT_EQ(SafetensorsReader{path()}.tensors().at(0).name, "old");
}

// The reader may expect another size than the file has.
TEST_F(SafetensorsFile, IsReadIntoAsMuchRoomAsATensorNeeds) {
  write_safetensors(path(), {{.name = "w", .shape = {2}, .values = {1, 2}}});
  const SafetensorsReader file{path()};
  std::vector<float> values(3);
  EXPECT_EQ(refusal([&] { file.read(0, values); }),
            "tensor 'w' of " + path() + " has the shape (2), which is not of 3 numbers");
}

// An empty tensor has the digest that sha256sum gives for no bytes.
TEST_F(SafetensorsFile, IsDigestedAsItIsWritten) {
  SafetensorsWriter writer{path(),
                           std::vector<StoredTensor>{{"a", {3}}, {"none", {0}}, {"b", {1}}}};
  const std::vector<float> values{1, 2, 3, 4};
  writer.append(std::span{values}.first(2));
  writer.append(std::span{values}.subspan(2));  // across the end of a
  const TensorFileDigests digests = writer.flush();
  writer.take_place();
  EXPECT_EQ(digests.bytes, std::filesystem::file_size(path()));
  EXPECT_EQ(digests.file, sha256_of(um::InputFile{path()}));
  const auto part = [&](std::size_t begin, std::size_t count) {
    return sha256_of(std::as_bytes(std::span{values}.subspan(begin, count)));
  };
  EXPECT_EQ(digests.tensors, (std::vector{part(0, 3), part(3, 0), part(3, 1)}));
  EXPECT_EQ(part(3, 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_F(SafetensorsFile, NeedsAFolder) {
  const std::string nowhere = folder_.file("missing/a.safetensors");
  EXPECT_EQ(refusal([&] { write_safetensors(nowhere, {}); }),
            "cannot write " + nowhere + ": No such file or directory");
  EXPECT_EQ(refusal([&] { return SafetensorsReader{nowhere}; }),
            "cannot read " + nowhere + ": No such file or directory");
}

TEST_F(SafetensorsFile, IsRefusedWhenCutOffAnywhere) {
  write_safetensors(path(), {{.name = "w", .shape = {3}, .values = {1, 2, 3}}});
  const std::string whole = content_of(path());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::ofstream{path(), std::ios::binary} << whole.substr(0, size);
    EXPECT_NE(reason(), "accepted") << size;
  }
  EXPECT_EQ(reason(), "its tensors need 12 bytes after the header, but it has 11");
  std::ofstream{path(), std::ios::binary} << whole.substr(0, 7);
  EXPECT_EQ(reason(), "it has fewer than 8 bytes");
}

// 1.5 is 0x3e00 in F16 and 0x3fc0 in BF16.
TEST_F(SafetensorsFile, GivesNumbersOf16BitsExactly) {
  const std::string bytes = R"({"a": {"dtype": "F16", "shape": [2], "data_offsets": [0, 4]},
                          "b": {"dtype": "BF16", "shape": [1], "data_offsets": [4, 6]}})";
  write_raw(path(), bytes, 0);
  std::ofstream{path(), std::ios::binary | std::ios::app}
      << std::string{"\x00\x3e\x01\x80\xc0\x3f", 6};
  const SafetensorsReader file{path()};
  EXPECT_EQ(values_of(file, 0), (std::vector<float>{1.5F, -0x1p-24F}));
  EXPECT_EQ(values_of(file, 1), std::vector<float>{1.5F});
}

TEST_F(SafetensorsFile, MayHoldOtherNumbersWhichAreNotRead) {
  EXPECT_EQ(reason_of(R"({"w": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}})", 8),
            "accepted");
  EXPECT_EQ(refusal([&] { return values_of(SafetensorsReader{path()}, 0); }),
            "tensor 'w' of " + path() + " holds I64, and only F32, F16 and BF16 can be read");
}

void update(Sha256& hash, std::string_view text) { hash.update(std::as_bytes(std::span{text})); }

std::string digest(std::string_view text) {
  Sha256 hash;
  update(hash, text);
  return hash.hex();
}

// Examples of FIPS 180-4.
TEST(Sha256, GivesTheKnownDigests) {
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, TakesBytesPieceByPiece) {
  Sha256 hash;
  update(hash, "a");
  update(hash, "");
  update(hash, "bc");
  EXPECT_EQ(hash.hex(), digest("abc"));
}

TEST(Sha256, GoesOnAfterADigest) {
  Sha256 hash;
  update(hash, "ab");
  EXPECT_EQ(hash.hex(), digest("ab"));
  update(hash, "c");
  EXPECT_EQ(hash.hex(), digest("abc"));
}

}  // namespace
}  // namespace spillway
