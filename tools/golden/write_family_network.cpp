// Writes a network of tests/golden/families.json to standard output, for make_family_golden.

#include <algorithm>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "tools/golden/family_networks.h"

int main(int argc, char** argv) {
  const std::span<char*> words{argv, static_cast<std::size_t>(argc)};
  const std::vector<std::string> names = spillway::golden::family_network_names();
  if (words.size() == 2 && std::find(names.begin(), names.end(), words[1]) != names.end()) {
    std::cout << spillway::golden::family_network_text(words[1]) << std::flush;
    return std::cout ? 0 : 1;
  }
  std::cerr << "usage: write_family_network NAME, which is one of";
  for (const std::string& name : names) std::cerr << ' ' << name;
  std::cerr << '\n';
  return 2;
}
