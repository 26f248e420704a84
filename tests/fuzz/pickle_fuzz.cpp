// Any bytes at all: either an Error, or values that can be written again.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "driver.h"
#include "oar/base/error.h"
#include "oar/formats/npz.h"
#include "oar/formats/pickle.h"
#include "oar/formats/zip.h"
#include "oar/ops/gen/creation.h"
#include "parsers.h"

namespace {}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, so that a sanitizer sees a read beyond it.
  const std::vector<char> exact(data, data + size);
  const std::string_view file(exact.data(), exact.size());
  expect_error_or_nothing([&] { oar::parse_pickle(oar::to_pickle(oar::parse_pickle(file))); });
  expect_error_or_nothing([&] { oar::parse_npz(file); });
  expect_error_or_nothing([&] { oar::inflate(file, 1 << 16); });
  return 0;
}

std::vector<std::string> seeds() {
  oar::StateTree tree;
  tree.set("weight", oar::ones({2, 3}));
  tree.set("list", oar::StateTree::List{oar::StateTree(1), oar::StateTree(0.5), oar::StateTree()});
  return {oar::to_pickle(tree), "]q" + std::string("\0h\0a.", 5), std::string("\x03\0", 2),
          "PK\x05\x06" + std::string(18, '\0')};
}

std::vector<std::string> dictionary() {
  return {"(",
          ")",
          "]",
          "}",
          "t",
          "\x85",
          "\x86",
          "\x87",
          "\x94",
          "R",
          "b",
          "cnumpy\ndtype\n",
          "c_codecs\nencode\n",
          "ccollections\nOrderedDict\n",
          "cnumpy.core.multiarray\nscalar\n",
          "PK\x01\x02",
          "PK\x05\x06"};
}
