#include "src/report/report_page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace spillway {
namespace {

using nlohmann::json;

TEST(ScriptJson, HoldsNothingThatEndsAScript) {
  const json data{{"</script>", "<!-- <script>"}};
  const std::string text = script_json(data);
  EXPECT_EQ(text.find('<'), std::string::npos);
  EXPECT_EQ(json::parse(text), data);
}

TEST(ScriptJson, IsAscii) {
  const json data = "a line\u2028end, 1.04×";
  const std::string text = script_json(data);
  EXPECT_EQ(text, R"("a line\u2028end, 1.04\u00d7")");
  EXPECT_EQ(json::parse(text), data);
}

TEST(ScriptJson, TakesNamesThatAreNoText) {
  EXPECT_EQ(script_json(std::string{"a\xff"}), R"("a\ufffd")");
}

TEST(Page, HoldsTheDataOnceAndNoPlaceholder) {
  const std::string page = make_page({{"file", "{{script}} here"}});
  const std::string data = R"({"file":"{{script}} here"})";
  const std::size_t at = page.find(data);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(page.find("{{data}}"), std::string::npos);
  EXPECT_EQ(page.find("{{style}}"), std::string::npos);
  EXPECT_EQ(page.find("{{script}}", at + data.size()), std::string::npos);
}

TEST(Page, BringsAllItNeedsAndTheLicence) {
  const std::string page = make_page(json::object());
  for (const char* reference : {"src=\"", "href=\"http", "@import", "url(http"}) {
    EXPECT_EQ(page.find(reference), std::string::npos) << reference;
  }
  EXPECT_NE(page.find("Redistribution and use in source and binary forms"), std::string::npos);
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
}

}  // namespace
}  // namespace spillway
