// Spoilt files of texts: each opens and can be read to its end, or is refused in a sentence.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "src/io/data/open_dataset.h"
#include "tests/src/data/text/small_vocabulary.h"
#include "tests/src/data/text/token_numbers.h"
#include "tests/temporary_folder.h"
#include "um/error.h"

namespace spillway::test {
namespace {

constexpr int kCases = 300;

class SpoiltText : public testing::Test {
 protected:
  SpoiltText() {
    SmallVocabulary{}.write_to(folder_);
    SmallVocabulary::write(folder_, "a.txt", text());
  }

  static std::string text() {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "the thé, " + std::to_string(i * 37) + " 日本\n";
    return text;
  }
  static Content bytes(const std::string& text) { return {text.begin(), text.end()}; }

  // Opens `spec` with many spoilt versions of the file `name`, which holds `good`.
  void spoil(const std::string& name, const Content& good, const std::string& spec,
             const std::string& tokenizer) {
    int opened = 0;
    for (int i = 0; i < kCases; ++i) {
      folder_.write(name, spoilt(good));
      opened += opens(spec, tokenizer) ? 1 : 0;
    }
    folder_.write(name, good);
    EXPECT_TRUE(opens(spec, tokenizer));
    RecordProperty("opened", opened);
  }

  [[nodiscard]] bool opens(const std::string& spec, const std::string& tokenizer) const {
    try {
      const DatasetPair data = open_dataset(spec, {.image = nets::tokens(8),
                                                   .classes = 300,
                                                   .labels = {8, 1},
                                                   .objective = Objective::kMaskedTokens,
                                                   .tokenizer = tokenizer});
      for (const Dataset* set : {data.train.get(), data.test.get()}) read_all(*set);
      return true;
    } catch (const um::Error& error) {
      EXPECT_EQ(std::string{error.what()}.find('\n'), std::string::npos);
      return false;
    }
  }

 private:
  // Some bytes changed, taken out or put in, or the end cut off.
  Content spoilt(Content content) {
    for (unsigned changes = 1 + random_() % 4; changes > 0 && !content.empty(); --changes) {
      const std::size_t place = random_() % content.size();
      switch (random_() % 5) {
        case 0:
          content[place] ^= static_cast<std::uint8_t>(1U << (random_() % 8));
          break;
        case 1:
          content[place] = any_byte();
          break;
        case 2:
          content.erase(content.begin() + static_cast<std::ptrdiff_t>(place));
          break;
        case 3:
          content.insert(content.begin() + static_cast<std::ptrdiff_t>(place), any_byte());
          break;
        default:
          content.resize(place);
      }
    }
    return content;
  }

  std::uint8_t any_byte() { return static_cast<std::uint8_t>(random_() % 256); }

  static void read_all(const Dataset& set) {
    std::vector<float> image(8);
    std::vector<std::int32_t> labels(8);
    for (std::size_t i = 0; i < set.size(); ++i) {
      set.read(i, image);
      set.labels(i, labels);
      for (const float token : image) EXPECT_TRUE(token >= 0 && token < 300) << token;
    }
  }

 protected:
  TemporaryFolder folder_;
  std::mt19937 random_{5};  // NOLINT(cert-msc51-cpp): the same each time
};

TEST_F(SpoiltText, OfBytesHarmsNobody) {
  spoil("a.txt", bytes(text()), "text:" + folder_.file("a.txt"), "");
}

TEST_F(SpoiltText, OfBytePairsHarmsNobody) {
  spoil("a.txt", bytes(text()), "text:" + folder_.file("a.txt"), folder_.path());
}

TEST_F(SpoiltText, WithASpoiltVocabularyHarmsNobody) {
  const std::string spec = "text:" + folder_.file("a.txt");
  spoil("encoder.json", bytes(SmallVocabulary{}.encoder.dump()), spec, folder_.path());
  spoil("vocab.bpe", bytes(SmallVocabulary{}.merges), spec, folder_.path());
}

TEST_F(SpoiltText, OfTokensHarmsNobody) {
  std::vector<std::uint16_t> numbers;
  for (std::uint16_t i = 0; i < 50; ++i) numbers.push_back(i * 5);
  const std::string spec = "tokens:" + folder_.file("a.bin");
  spoil("a.bin", token_file(numbers), spec, "");
  spoil("a.bin", raw_tokens(numbers), spec, "");
}

// Headers that are wrong in their first numbers, which random changes seldom hit.
TEST_F(SpoiltText, WithASpoiltHeaderHarmsNobody) {
  const std::vector<std::uint16_t> numbers(50, 7);
  for (int i = 0; i < kCases; ++i) {
    Content file = token_file(numbers);
    file[random_() % 12] = static_cast<std::uint8_t>(random_() % 256);
    file.resize(random_() % 3 == 0 ? random_() % file.size() : file.size());
    folder_.write("a.bin", file);
    static_cast<void>(opens("tokens:" + folder_.file("a.bin"), ""));
  }
}

}  // namespace
}  // namespace spillway::test
