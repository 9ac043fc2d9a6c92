#include "tests/src/cuda/emulated_gpu/card_settings.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>

namespace spillway::emulated {
namespace {

[[noreturn]] void refuse(const std::string& setting, const std::string& why) {
  std::fprintf(stderr, "emulated GPU: '%s' in SPILLWAY_EMULATED_GPU %s\n", setting.c_str(),
               why.c_str());
  _exit(98);
}

template <class Value>
void read_number(const std::string& setting, const std::string& text, Value& value) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) refuse(setting, "needs a number");
}

template <class Value>
void choose(const std::string& setting, const std::string& text,
            const std::map<std::string, Value>& choices, Value& value) {
  const auto found = choices.find(text);
  if (found == choices.end()) {
    std::string names;
    for (const auto& [name, each] : choices) names += (names.empty() ? "" : ", ") + name;
    refuse(setting, "must be one of " + names);
  }
  value = found->second;
}

void read_switch(const std::string& setting, const std::string& text, bool& value) {
  choose<bool>(setting, text, {{"on", true}, {"off", false}}, value);
}

using Reader = std::function<void(const std::string&, const std::string&, CardSettings&)>;

const std::map<std::string, Reader>& readers() {
  using S = CardSettings;
  using T = const std::string&;
  static const std::map<std::string, Reader> all{
      {"order",
       [](T name, T text, S& s) {
         choose<WorkOrder>(name, text,
                           {{"eager", WorkOrder::kEager},
                            {"late", WorkOrder::kLate},
                            {"moves", WorkOrder::kMoves},
                            {"compute", WorkOrder::kCompute},
                            {"all", WorkOrder::kAll},
                            {"chance", WorkOrder::kChance}},
                           s.order);
       }},
      {"kind",
       [](T name, T text, S& s) {
         choose<CardKind>(name, text,
                          {{"discrete", CardKind::kDiscrete},
                           {"no-hints", CardKind::kNoHints},
                           {"integrated", CardKind::kIntegrated},
                           {"coherent", CardKind::kCoherent}},
                          s.kind);
       }},
      {"seed", [](T name, T text, S& s) { read_number(name, text, s.seed); }},
      {"devices", [](T name, T text, S& s) { read_number(name, text, s.devices); }},
      {"memory-mib",
       [](T name, T text, S& s) {
         read_number(name, text, s.memory);
         s.memory <<= 20U;
       }},
      {"driver", [](T name, T text, S& s) { read_number(name, text, s.driver); }},
      {"misalignment", [](T name, T text, S& s) { read_number(name, text, s.misalignment); }},
      {"dry", [](T name, T text, S& s) { read_switch(name, text, s.is_dry); }},
      {"races", [](T name, T text, S& s) { read_switch(name, text, s.finds_races); }},
      {"ignores-hints", [](T name, T text, S& s) { read_switch(name, text, s.ignores_hints); }},
      {"trace", [](T name, T text, S& s) { read_switch(name, text, s.traces); }},
      {"go-on", [](T name, T text, S& s) { read_switch(name, text, s.goes_on); }},
      {"keep", [](T name, T text, S& s) { read_switch(name, text, s.keeps); }},
      {"fail", [](T, T text, S& s) { s.fail = text; }},
      {"lost", [](T name, T text, S& s) { read_switch(name, text, s.is_lost); }},
      {"invalidates", [](T name, T text, S& s) { read_switch(name, text, s.invalidates); }},
      {"fail-rate", [](T name, T text, S& s) { read_number(name, text, s.fail_rate); }},
      {"report", [](T, T text, S& s) { s.report = text; }},
      {"sites", [](T name, T text, S& s) { read_switch(name, text, s.lists_sites); }},
  };
  return all;
}

}  // namespace

CardSettings read_card_settings() {
  CardSettings settings;
  const char* const given = std::getenv("SPILLWAY_EMULATED_GPU");
  std::istringstream all{given == nullptr ? "" : given};
  for (std::string setting; std::getline(all, setting, ',');) {
    const std::size_t equal = setting.find('=');
    const auto reader = readers().find(setting.substr(0, equal));
    if (equal == std::string::npos || reader == readers().end()) {
      std::string names;
      for (const auto& [name, each] : readers()) names += (names.empty() ? "" : ", ") + name;
      refuse(setting, "is unknown; there are " + names);
    }
    reader->second(setting, setting.substr(equal + 1), settings);
  }
  return settings;
}

}  // namespace spillway::emulated
