// Any bytes at all: either an Error, or a model that was read. Small models are imported, too.
#include <cstdio>
#include <cstdlib>

#include "driver.h"
#include "oar/base/error.h"
#include "oar/interop/onnx/import.h"
#include "oar/interop/proto_writer.h"

namespace {

using oar::ProtoWriter;

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

ProtoWriter node(const char* op, std::initializer_list<const char*> inputs, const char* output) {
  ProtoWriter made;
  for (const char* name : inputs) made.text(1, name);
  made.text(2, output);
  made.text(4, op);
  return made;
}

ProtoWriter port(const char* name, int64_t size) {
  ProtoWriter dim, shape, tensor, type, made;
  dim.integer(1, size);
  shape.message(1, dim);
  tensor.integer(1, 1);
  tensor.message(2, shape);
  type.message(1, tensor);
  made.text(1, name);
  made.message(2, type);
  return made;
}

ProtoWriter weight(const char* name, int64_t count) {
  ProtoWriter made;
  made.integer(1, count);
  made.integer(2, 1);
  made.text(8, name);
  made.text(9, std::string(static_cast<size_t>(count) * 4, '\1'));
  return made;
}

std::string model(const ProtoWriter& graph) {
  ProtoWriter set, made;
  set.integer(2, 17);
  made.integer(1, 8);
  made.message(7, graph);
  made.message(8, set);
  return made.bytes();
}

ProtoWriter sums() {
  ProtoWriter graph;
  graph.message(1, node("Add", {"x", "w"}, "a"));
  graph.message(1, node("Relu", {"a"}, "y"));
  graph.message(5, weight("w", 3));
  graph.message(11, port("x", 3));
  graph.message(12, port("y", 3));
  return graph;
}

// A branch with a graph inside each of its two attributes.
ProtoWriter branches() {
  ProtoWriter graph, choice = node("If", {"c"}, "y");
  for (const char* name : {"then_branch", "else_branch"}) {
    ProtoWriter inner, attribute;
    inner.message(1, node("Neg", {"x"}, "r"));
    inner.message(12, port("r", 3));
    attribute.text(1, name);
    attribute.message(6, inner);
    attribute.integer(20, 5);
    choice.message(5, attribute);
  }
  graph.message(1, node("ReduceSum", {"x"}, "s"));
  graph.message(1, node("Greater", {"s", "w"}, "c"));
  graph.message(1, choice);
  graph.message(5, weight("w", 1));
  graph.message(11, port("x", 3));
  graph.message(12, port("y", 3));
  return graph;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, so that a sanitizer sees a read beyond it.
  const std::vector<char> exact(data, data + size);
  const std::string_view file(exact.data(), exact.size());
  try {
    oar::onnx::import_model(file, "/nonexistent");
  } catch (const oar::Error& error) {
    if (error.kind() == oar::ErrorKind::Internal) broken(error.what());
  } catch (const std::bad_alloc&) {
    broken("a file of few bytes asks for more memory than there is");
  }
  try {
    oar::onnx::read_tensor(file);
  } catch (const oar::Error& error) {
    if (error.kind() == oar::ErrorKind::Internal) broken(error.what());
  }
  return 0;
}

std::vector<std::string> seeds() {
  return {model(sums()), model(branches()), weight("w", 2).bytes()};
}

std::vector<std::string> dictionary() {
  return {"Add",
          "Loop",
          "Scan",
          "Reshape",
          "Conv",
          "\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
          "ConstantOfShape",
          "SequenceAt",
          "body",
          "Range",
          "Split",
          "location"};
}
