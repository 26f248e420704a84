// Any bytes at all as a saved program or an array: either an Error, or a model that runs or refuses its inputs.
#include <cstdio>
#include <cstdlib>

#include "driver.h"
#include "oar/base/error.h"
#include "oar/formats/npy.h"
#include "oar/runtime/model.h"

namespace {

[[noreturn]] void broken(const char* what, std::string_view text) {
  std::fprintf(stderr, "fuzz: %s\n%.*s\n", what, static_cast<int>(text.size()), text.data());
  std::abort();
}

// What is more than this takes long, and is no mistake of the reader.
constexpr int64_t kMostElements = 1 << 16;

void run_on_zeros(const oar::Model& model) {
  std::vector<oar::Tensor> inputs;
  for (const auto& port : model.inputs()) {
    oar::Shape shape;
    for (oar::Dim d : port.shape) shape.push_back(d.is_known() ? d : oar::Dim(2));
    for (oar::Dim d : shape)
      if (d.value() > kMostElements) return;
    if (shape.numel().value() > kMostElements || oar::is_packed(port.dtype)) return;
    oar::Tensor t = oar::Tensor::empty(shape, port.dtype);
    std::memset(t->data, 0, static_cast<size_t>(t->numel) * oar::size_of(port.dtype));
    inputs.push_back(std::move(t));
  }
  model.run(inputs);
}

template <class F>
void expect_error_or_nothing(std::string_view text, F&& body) {
  try {
    body();
  } catch (const oar::Error& error) {
    if (error.kind() == oar::ErrorKind::Internal) broken(error.what(), text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<char> exact(data, data + size);
  const std::string_view text(exact.data(), exact.size());
  const std::map<std::string, oar::Tensor> weights = {
      {"weight", oar::Tensor::from_vector<float>({2, 3}, oar::Shape{2}, oar::DType::Float32)}};
  expect_error_or_nothing(text, [&] {
    const oar::Model model = oar::Model::parse(text, weights);
    // A mutated program may ask for more memory than there is: only small ones run.
    for (const auto& port : model.outputs())
      for (oar::Dim d : port.shape)
        if (!d.is_known() || d.value() > kMostElements) return;
    if (text.size() < 600) run_on_zeros(model);
  });
  expect_error_or_nothing(text, [&] { oar::parse_npy(text); });
  return 0;
}

std::vector<std::string> seeds() {
  return {
      "{\"format\": \"oar program\", \"version\": 1, \"feed\": [\"x\"], \"fetch\": [\"y\"], \"names\": {\"w\": \"weight\"}}\n"
      "program f(%x: float32[2], state %w: float32[2]) -> (%1: float32[2]) {\n"
      "  %1 = add(%x, %w) : float32[2]\n}\n",
      "{\"format\": \"oar program\", \"version\": 1, \"feed\": [], \"fetch\": [], \"names\": {}}\n"
      "program f() -> () {\n}\n",
      std::string("\x93NUMPY\1\0\x40\0", 10) +
          "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }      \n" + std::string(8, 'x'),
  };
}

std::vector<std::string> dictionary() {
  return {"\"format\"", "\"version\"", "\"feed\"",   "\"fetch\"", "\"names\"", "oar program",
          "%x",         "float32[2]",  "weight",     "add",       "relu",      "matmul",
          "state",      "'descr':",    "'shape': (", "<f8",       "|b1",       "(99999999999999,)",
          "True",       "\x93NUMPY",   "\n"};
}
